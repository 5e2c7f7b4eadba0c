"""What a user says of a column wins over what its cells look like; what cannot be is refused in one sentence."""

import datetime as dt

import pyarrow as pa
import pytest

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.model.contract import Column
from qmedoid.tables.dataset import check_roles, in_roles, read_roles_file
from qmedoid.tables.kinds import infer_alike, infer_columns
from qmedoid.tables.roles import ROLES
from qmedoid.tables.source import open_table

ZIPS = [2139, 10115, 2139, 75001] * 6


def read(role, cells, name="c"):
    roles = {} if role is None else {name: role}
    return infer_columns(in_roles(pa.table({name: cells}), roles), roles=roles)


@pytest.mark.parametrize(
    ("role", "cells", "expected"),
    [
        ("category", ZIPS, Column("c", "category")),
        ("category", [1.5, 2.0, None], Column("c", "category", missing=True)),
        ("category", [True, False], Column("c", "category")),
        ("number", ["007", "008", "x"], Column("c", "number", missing=True, is_open=True)),
        ("number", ["V4", "1", "2", "1"], Column("c", "number", missing=True, is_open=True)),
        ("date", ["2024-01-01", "2024-01-02", "soon"], Column("c", "date", missing=True, is_open=True)),
        ("keep", list(range(40)), Column("c", "number")),
        ("keep", [f"person {k}" for k in range(40)], Column("c", "category")),
        ("category", list(range(40)), Column("c", "category")),
        ("number", list(range(40)), Column("c", "number")),
    ],
)
def test_role_wins_over_the_guess(role, cells, expected):
    assert read(role, cells).columns == (expected,)
    assert read(None, cells).columns != (expected,)


def test_cells_that_are_not_of_the_role_are_counted():
    assert read("number", ["1", "2", "x"]).notes["c"] == (
        "column 'c': 1 of 3 cells are not numbers, such as 'x': taken as missing, the first in row 2 (from 0)"
    )
    days = read("date", ["2024-01-01", "2024-01-02", "soon"])
    assert "1 of 3 cells are not dates, such as 'soon'" in days.notes["c"]


@pytest.mark.parametrize(
    ("role", "cells", "spelling"),
    [
        ("number", ["1.275,22", "935,5", "12,0"], "1.234,5"),
        ("date", ["31.01.2024", "01.02.2024", "28.02.2024"], "d.m.y"),
        ("date", [20240131, 20240201], "yyyymmdd"),
        ("date", ["20240131", "20240201"], "yyyymmdd"),
        ("number", [20240131, 20240201] * 20, ""),
    ],
)
def test_role_finds_the_spelling_of_its_cells(role, cells, spelling):
    (column,) = read(role, cells).columns
    assert (column.kind, column.spelling, column.missing) == (role, spelling, False)
    settled = read(role, cells)
    assert infer_alike(pa.table({"c": cells[:2]}), settled).columns == settled.columns


def test_ignored_columns_are_left_out_and_roles_help_no_constant():
    assert read("ignore", [[1], [2]]).left_out == {"c": "it was to be ignored"}
    assert read("keep", [3, 3]).left_out == {"c": "every cell is 3"}
    assert read("category", [3, 3]).left_out == {"c": "every cell is '3'"}


@pytest.mark.parametrize(
    ("role", "cells"),
    [
        ("number", ["a", "b"]),
        ("number", [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
        ("date", ["a", "b"]),
        ("date", [1.5, 2.5]),
        ("category", [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
        ("category", [[1], [2]]),
        ("number", [[1], [2]]),
        ("keep", [b"a", b"b"]),
    ],
)
def test_column_that_cannot_have_its_role_is_refused(role, cells):
    with pytest.raises(DataError, match=rf"Column 'c' has the role '{role}', but") as refused:
        read(role, cells)
    assert "\n" not in str(refused.value)


def test_text_file_gives_the_cells_of_categories_as_they_are_written(tmp_path):
    (tmp_path / "t.csv").write_text("version,x\n1.10,1\n1.1,2\n2.0,3\n")
    for max_rows in (None, 10):
        with open_table(tmp_path / "t.csv") as source:
            table = source.read(max_rows=max_rows, texts=["version"])[0]
        assert table["version"].to_pylist() == ["1.10", "1.1", "2.0"]
        assert table["x"].type == pa.int64()


def test_other_rows_are_read_alike():
    """Of some rows only, a column may look like numbers, like row numbers, or like names of rows."""
    table = pa.table({
        "code": ["250", "250.83", "428"] * 10 + ["V45", "E909"] * 2,
        "text": [f"t{k}" for k in range(33)] + ["t0"],
        "row": [*range(33), 5],
        "id": range(34),
        "few": [1] * 33 + [2],
    })  # fmt: skip
    settled = infer_columns(table)
    part = infer_alike(table.slice(0, 30), settled)
    assert [column.kind for column in part.columns] == ["category", "category", "number"]
    assert part.left_out == {"id": "it numbers the rows", "few": "every cell is 1"}
    assert infer_alike(table, settled) == settled
    assert infer_columns(table.slice(0, 30)).columns != part.columns


@pytest.mark.parametrize("roles", [["zip"], "zip", {1: "category"}, {"zip": "text"}, {"zip": None}, 3])
def test_what_is_no_mapping_of_names_to_roles_is_refused(roles):
    with pytest.raises(ParameterError, match="'roles' parameter"):
        check_roles(("The 'roles' parameter", roles))
    assert check_roles(("The 'roles' parameter", None)) == {}
    assert check_roles(("The 'roles' parameter", {role: role for role in ROLES})) == {role: role for role in ROLES}


def test_two_roles_of_one_column_are_refused_unless_they_agree():
    assert check_roles(("a", {"c": "keep"}), ("b", {"c": "number"}), ("d", {"c": "keep"})) == {"c": "number"}
    for one, two in (("number", "category"), ("keep", "ignore"), ("ignore", "date")):
        with pytest.raises(ParameterError, match=rf"'c' has two roles: '{one}' by --a and '{two}' by --b"):
            check_roles(("--a", {"c": one}), ("--b", {"c": two}))


def test_names_that_are_no_columns_and_the_target_have_no_role():
    with pytest.raises(ParameterError, match=r"'zpi' has the role 'category'.* Did you mean 'zip'"):
        check_roles(("a", {"zpi": "category"}), names=["zip", "y"])
    with pytest.raises(ParameterError, match="'y' is the target"):
        check_roles(("a", {"y": "category"}), names=["zip", "y"], target="y")


def test_roles_in_a_file(tmp_path):
    file = tmp_path / "roles.toml"
    file.write_text('# of the table\nzip = "category"\n"first visit" = "date"\n', encoding="utf-8-sig")
    assert read_roles_file(file) == {"zip": "category", "first visit": "date"}
    for text, words in {
        "zip = category": "no TOML file",
        'zip = "zone"': "the role 'zone'",
        'a.b = "number"': "into quotes",
        "zip = 3": "the role 3",
        'zip = "number"\nzip = "date"': "no TOML file",
    }.items():
        file.write_text(text)
        with pytest.raises((DataError, ParameterError), match=words):
            read_roles_file(file)
    with pytest.raises(DataError, match="cannot be read"):
        read_roles_file(tmp_path / "none.toml")


def test_numbers_as_levels_are_written_without_a_needless_fraction():
    floats = in_roles(pa.table({"c": [1.0, 2.5, None]}), {"c": "category"})["c"].to_pylist()
    assert floats == ["1", "2.5", None]
    texts = in_roles(pa.table({"c": ["1.0", " 2. ", "1.50", "007", "v1.0"]}), {"c": "category"})["c"].to_pylist()
    assert texts == ["1", " 2 ", "1.50", "007", "v1.0"]
