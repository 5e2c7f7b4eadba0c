"""Types of a text file: those that Arrow's reader infers, in one reading and without a second copy of the text."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.tables.source import Bytes, open_table
from qmedoid.tables.text_kinds import infer_types

CELLS = {
    "whole": ["1", "-20", " 3", "4 ", "9007199254740993"],
    "number": ["1.5", ".5", "-2e-3", "inf", "1.", "12345678901234567890"],
    "truth": ["true", "False", "1", "0", "TRUE", " true"],
    "day": ["2024-01-31", " 2024-02-29", "1899-12-31"],
    "time": ["12:30", "23:59:59", "00:00 "],
    "moment": ["2024-01-31 12:30", " 2024-01-31 12:30", "2024-01-31T12:30:01", "2024-01-31"],
    "fraction": ["2024-01-31 12:30:01.25", "2024-01-31 12:30:01"],
    "zoned": ["2024-01-31T12:30:01Z", "2024-01-31 12:30:01+0200"],
    "text": ["x", "1,5", "24:00", "2024-02-30", "tRUE", "1 2", "+-1", "0x"],
}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([*CELLS, None]), min_size=1, max_size=3).flatmap(
    lambda kinds: st.lists(
        st.sampled_from([cell for kind in kinds for cell in (CELLS[kind] if kind else [None])]), min_size=1, max_size=8
    )
))  # fmt: skip
def test_types_of_texts_are_those_of_arrows_reader(cells):
    texts = pa.table({"a": pa.array(cells, pa.string()), "b": ["x"] * len(cells)})
    written = io.BytesIO()
    pyarrow.csv.write_csv(texts, written)
    options = pyarrow.csv.ConvertOptions(null_values=[""], strings_can_be_null=True)
    expected = pyarrow.csv.read_csv(io.BytesIO(written.getvalue()), convert_options=options)
    found = infer_types(texts, ".")
    # Whole numbers with more digits than a float has stay texts.
    if found["a"].type == pa.string() and pa.types.is_floating(expected["a"].type):
        assert any(cell is not None and len(cell) > 15 for cell in cells)
        return
    assert found["a"].type == expected["a"].type
    assert found["a"].combine_chunks().equals(expected["a"].combine_chunks())


@pytest.mark.parametrize(
    ("cells", "kind"),
    [(["1,5", "2"], pa.float64()), (["1.5", "2,5"], pa.string()), (["1", "2"], pa.int64()), (["1.234,5"], pa.string())],
)
def test_decimal_commas_make_numbers_where_no_cell_has_a_point(cells, kind):
    assert infer_types(pa.table({"a": cells}), ",")["a"].type == kind


@pytest.mark.parametrize("cells", [["0x1F", "12"], ["0X07", "0x08"], [" 0x1F", "12"]])
def test_hexadecimal_codes_stay_texts(cells):
    assert infer_types(pa.table({"a": cells}), ".")["a"].to_pylist() == cells


def test_kept_columns_stay_texts():
    table = infer_types(pa.table({"a": ["1", "2"], "b": ["1", "2"]}), ".", ["a"])
    assert table.schema.types == [pa.string(), pa.int64()]


@pytest.mark.parametrize("max_rows", [None, 1000, 50])
def test_text_is_opened_once_and_never_written_out(tmp_path, monkeypatch, max_rows):
    path = tmp_path / "t.csv"
    rng = np.random.default_rng(0)
    path.write_text("a,b,c,d\n" + "".join(f"{x:.3f},{i},t{i % 3},2024-01-{1 + i % 28:02}\n"
                                           for i, x in enumerate(rng.normal(size=300))))  # fmt: skip
    opened = []
    monkeypatch.setattr(
        Bytes, "__init__", lambda self, file, init=Bytes.__init__: (opened.append(file), init(self, file))[1]
    )
    for name in ("write_csv", "CSVWriter"):
        monkeypatch.setattr(pyarrow.csv, name, None)
    with open_table(path) as source:
        table = source.read(max_rows)[0]
    assert table.schema.types == [pa.float64(), pa.int64(), pa.string(), pa.date32()]
    assert opened == [path]
