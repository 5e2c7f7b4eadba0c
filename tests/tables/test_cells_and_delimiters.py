"""Delimiters that are not the widest, numbers of rows, and levels that the encoding does not know."""

import itertools

import numpy as np
import pyarrow as pa
import pytest

from qmedoid.model.contract import Column, Levels
from qmedoid.tables.dialect import DELIMITERS, detect_dialect
from qmedoid.tables.difference import Issues
from qmedoid.tables.encode import encode_column
from qmedoid.tables.kinds import infer_columns


@pytest.mark.parametrize(("delimiter", "other"), list(itertools.permutations(DELIMITERS, 2)))
def test_what_parts_every_line_alike_is_the_delimiter_however_often_another_sign_occurs(delimiter, other):
    """A header full of the other sign, and texts with some of it, do not make it the delimiter."""
    header = delimiter.join([f"total{other} net{other} of tax{other} in all", "name"])
    lines = [delimiter.join([str(number), f"a{f'{other} b' * (number % 3)}"]) for number in range(12)]
    dialect = detect_dialect("\n".join([header, *lines, ""]).encode(), True, "table", None, None)
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


@pytest.mark.parametrize(
    "cells", [[5.0, None, 5.0], [7, None], ["a", None], [True, None, True], ["2024-01-31", None]], ids=str
)
def test_one_value_and_missing_cells_say_something_whatever_the_kind(cells):
    (column,) = infer_columns(pa.table({"x": cells})).columns
    assert column.missing
    assert not infer_columns(pa.table({"x": [cell for cell in cells if cell is not None] * 2})).columns


@pytest.mark.parametrize("padded", ["01", "007", "0000"])
def test_one_cell_with_a_leading_zero_makes_texts_of_a_column(padded):
    found = infer_columns(pa.table({"x": ["10", "25", padded, "10", "25", "99"]}))
    assert [column.kind for column in found.columns] == ["category"]


def test_level_that_the_contract_knows_and_the_encoding_does_not_is_no_new_one():
    column = Column("c", "category", False, levels=("a", "b", "c"))
    encoding, found = Levels(("a", "b"), np.vstack([np.eye(2), np.zeros((2, 2))]), ("=a", "=b")), Issues()
    first, second = encode_column(pa.array(["a", "c", "d", "b", "c"]), column, encoding, found)
    assert (first.tolist(), second.tolist()) == ([1, 0, 0, 0, 0], [0, 0, 0, 1, 0])
    counts = found.columns["c"]
    assert (counts["untrained"], counts["untrained_levels"]) == (2, ["c"])
    assert (counts["unseen"], counts["unseen_levels"]) == (1, ["d"])
