import math

import pytest
from benchmarks.studies.document import Document, Heading, Picture, Section, Table
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.exceptions import ParameterError


def _table(name: str = "t", **changes: object) -> Table:
    return Table(**{"name": name, "title": "T", "columns": [Heading("a"), Heading("b")], "rows": [], **changes})  # type: ignore[arg-type]


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.integers(0, 8))
def test_float_is_written_within_half_a_unit_of_its_last_digit(value: float, digits: int) -> None:
    text = _table(columns=[Heading("a", digits=digits)], rows=[[value]]).cell_text(0, 0)
    assert float(text) == pytest.approx(value, rel=1e-15, abs=0.5000001 * 10**-digits)
    assert len(text.partition(".")[2]) == digits
    assert not (text.startswith("-") and float(text) == 0)


@pytest.mark.parametrize(("value", "text"), [(None, ""), (3, "3"), ("a", "a"), (True, "True"), (math.nan, "nan")])
def test_other_cells_are_written_as_they_are(value: object, text: str) -> None:
    assert _table(columns=[Heading("a")], rows=[[value]]).cell_text(0, 0) == text


@pytest.mark.parametrize("name", ["", "A", "a.b", "../a", "a b", "ä", "a\n", "a/b"])
def test_names_that_are_none_of_a_file_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match="a-z, 0-9"):
        _table(name)
    with pytest.raises(ParameterError, match="a-z, 0-9"):
        Picture(name, "P", "")


def test_names_are_those_of_one_part_of_a_kind() -> None:
    tables, picture = [_table("x"), _table("y")], Picture("x", "P", "")
    document = Document("D", [], [], [Section("S", [], [tables[0], picture]), Section("T", [], [tables[1]])])
    assert document.tables == tables
    assert document.pictures == [picture]
    for part, kind in ((tables[0], "tables"), (picture, "pictures")):
        with pytest.raises(ParameterError, match=f"{kind} of a document .* 'x'"):
            Document("D", [], [], [Section("S", [], [part]), Section("T", [], [part])])


def test_tables_that_do_not_hold_together_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"Row 2 of table 't' must have 2 values.* Got 1"):
        _table(rows=[[1, 2], [3]])
    with pytest.raises(ParameterError, match="called 'g: a'"):
        _table(columns=[Heading("a", "g"), Heading("a"), Heading("a", "g")])
    with pytest.raises(ParameterError, match="first column"):
        _table(columns=[Heading("a", is_error=True), Heading("b")])


def test_decimals_of_a_row_go_before_those_of_its_columns():
    columns = [Heading("name"), Heading("a", digits=4), Heading("b", digits=1)]
    table = Table("t", "T", columns, [["x", 1.0, 2.0], ["y", 1.0, 2.0]], row_digits=[2, None])
    assert [table.cell_text(0, column) for column in range(3)] == ["x", "1.00", "2.00"]
    assert [table.cell_text(1, column) for column in range(3)] == ["y", "1.0000", "2.0"]
