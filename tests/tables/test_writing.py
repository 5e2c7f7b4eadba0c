"""Results in files: every format gives back what was written, formulas are made safe, failures leave nothing."""

import csv
import datetime
import io
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import ParameterError
from qmedoid.tables.writing import SUFFIXES, TEXT_SUFFIXES, check_output, open_sink

BATCH = pa.record_batch(
    {
        "text": ["a", 'b "c"', "d,e\nf\tg"],
        "number": [1.5, -2.0, 1e-300],
        "whole": [1, -2, None],
        "flag": [True, False, None],
        "day": pa.array([datetime.date(2024, 1, 31)] * 3),
    }
)
RISKY = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def written(folder, batch, name="o.csv", **options):
    path = folder / name
    with open_sink(str(path), batch.schema, **options) as sink:
        sink(batch)
        sink(batch.slice(0, 1))
    return path


def csv_rows(path, delimiter=","):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


@pytest.mark.parametrize("ending", [ending for ending in SUFFIXES if ending not in TEXT_SUFFIXES])
def test_binary_formats_give_back_what_was_written(tmp_path, ending):
    path = written(tmp_path, BATCH, f"o{ending}")
    expected = pa.Table.from_batches([BATCH, BATCH.slice(0, 1)])
    read = pyarrow.feather.read_table if ending in (".feather", ".arrow") else pyarrow.parquet.read_table
    assert read(path).equals(expected)


@pytest.mark.parametrize("ending", TEXT_SUFFIXES)
def test_text_formats_give_back_what_was_written(tmp_path, ending):
    path = written(tmp_path, BATCH, f"o{ending}")
    parsing = pyarrow.csv.ParseOptions(delimiter="\t" if ending == ".tsv" else ",", newlines_in_values=True)
    read = pyarrow.csv.read_csv(path, parse_options=parsing)
    assert read.equals(pa.Table.from_batches([BATCH, BATCH.slice(0, 1)]))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8), min_size=1, max_size=8))
@settings(deadline=None)
def test_text_cells_never_begin_a_formula(texts):
    out = io.BytesIO()
    batch = pa.record_batch({"cell": [f"{text}." for text in texts]})
    kept = sys.stdout
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8")
    try:
        with open_sink("-", batch.schema) as sink:
            sink(batch)
    finally:
        wrapper, sys.stdout = sys.stdout, kept
        wrapper.detach()
    _, *rows = csv.reader(io.StringIO(out.getvalue().decode(), newline=""))
    for (cell,), text in zip(rows, batch["cell"].to_pylist(), strict=True):
        if text[0] not in RISKY:
            assert cell == text
        elif cell != "'" + text:
            # Left as it is: a number, or a dash alone.
            assert cell == text
            assert cell == "-" or float(cell.replace(",", "").replace(".", "") or "x") is not None


@pytest.mark.parametrize("number", ["-1", "+1", "-1.5", "-.5", "-1e9", "-1,5", "-1.234,5", "-1.", "+49123", "-"])
def test_numbers_in_text_are_left_alone(tmp_path, number):
    assert csv_rows(written(tmp_path, pa.record_batch({"x": [number]})))[1] == [number]


@pytest.mark.parametrize(
    "formula", [*(f"{sign}x" for sign in RISKY), "=1", "-1-1", "-1e", "\t1", "\r\n=1", "－1", "-inf()"]
)
def test_formulas_get_an_apostrophe_where_they_are_asked_to(tmp_path, formula):
    batch = pa.record_batch({formula: [formula, None]})
    assert csv_rows(written(tmp_path, batch))[:2] == [["'" + formula], ["'" + formula]]
    assert csv_rows(written(tmp_path, batch, safe_csv=False))[:2] == [[formula], [formula]]
    assert csv_rows(written(tmp_path, batch, "o.tsv"), "\t")[:2] == [["'" + formula], ["'" + formula]]
    kept = pyarrow.parquet.read_table(written(tmp_path, batch, "o.parquet"))
    assert kept.column_names == [formula]
    assert kept[formula][0].as_py() == formula


def test_lists_structures_and_bytes_become_text_in_csv(tmp_path):
    batch = pa.record_batch({"l": [[1, 2]], "s": [{"a": 1}], "b": [b"=x"]})
    assert csv_rows(written(tmp_path, batch))[1] == ["[1, 2]", "{'a': 1}", "'=x"]


@pytest.mark.parametrize("ending", SUFFIXES)
def test_failure_leaves_what_was_there(tmp_path, ending):
    path = tmp_path / f"o{ending}"
    path.write_bytes(b"old")

    def fail():
        with open_sink(str(path), BATCH.schema) as sink:
            sink(BATCH)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("name", ["o.xlsx", "o", "csv", "o.csv.zip", "o.parquet.gz", ""])
def test_endings_that_say_no_format(tmp_path, name):
    with pytest.raises(ParameterError, match=r"must end in one of \.csv, \.csv\.gz"):
        check_output(str(tmp_path / name))


def test_folders_that_are_not_there(tmp_path):
    with pytest.raises(ParameterError, match="does not exist: make it first"):
        check_output(str(tmp_path / "none" / "o.csv"))
    check_output("-")
    check_output("o.csv")
