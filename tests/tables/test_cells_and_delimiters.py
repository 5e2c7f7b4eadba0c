"""Cells that a spreadsheet would run, by every sign that begins one, and delimiters that are not the widest."""

import csv
import itertools

import numpy as np
import pyarrow as pa
import pytest

from qmedoid.tables._dialect import DELIMITERS, sniff
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.writing import open_sink

SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: f"U+{ord(sign):04X}")
def test_every_sign_that_begins_a_formula_is_guarded_in_cells_and_in_names(tmp_path, sign, ending):
    path = tmp_path / f"o{ending}"
    texts = [f"{sign}x", f"{sign}1+1", f"{sign}=1", f"x{sign}"]
    batch = pa.record_batch({f"{sign}name": texts})
    with open_sink(str(path), batch.schema) as sink:
        sink.write(batch)
    with path.open(encoding="utf-8", newline="") as file:
        (name,), *cells = csv.reader(file, delimiter="\t" if ending == ".tsv" else ",")
    assert name == f"'{sign}name"
    assert [cell for (cell,) in cells] == [*(f"'{text}" for text in texts[:3]), texts[3]]


@pytest.mark.parametrize(("delimiter", "other"), list(itertools.permutations(DELIMITERS, 2)))
def test_what_parts_every_line_alike_is_the_delimiter_however_often_another_sign_occurs(delimiter, other):
    """A header full of the other sign, and texts with some of it, do not make it the delimiter."""
    header = delimiter.join([f"total{other} net{other} of tax{other} in all", "name"])
    lines = [delimiter.join([str(number), f"a{f'{other} b' * (number % 3)}"]) for number in range(12)]
    dialect = sniff("\n".join([header, *lines, ""]).encode(), True, "table", None, None)
    assert dialect.delimiter == delimiter
    assert len(dialect.names) == 2


@pytest.mark.parametrize("kept", [1.0, 0.7, 0.45, 0.3])
def test_numbers_of_rows_are_not_learnt_from_in_a_sample_of_them(kept):
    """Of 1,000 numbered rows some are drawn: their numbers still say nothing but where they stood."""
    rng = np.random.default_rng(0)
    numbers = rng.choice(1000, size=int(1000 * kept), replace=False)
    table = pa.table({"no. of it": numbers, "x": rng.normal(size=len(numbers))})
    found = infer_columns(table)
    assert [column.name for column in found.columns] == ["x"]
    assert "no. of it" in found.left_out
