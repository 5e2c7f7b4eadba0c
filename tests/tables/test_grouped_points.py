"""Columns of 1.275 and 20.628 alone: decimals by default, with a note, and whole thousands where asked for."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from qmedoid.tables import cells
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.source import open_table
from qmedoid.tables.text_kinds import ENOUGH_CELLS, grouped_example

COUNTS = [1275, 2128, 20628, 935_000, 1500, 7001, 88_888, 4000]
DOUBT = "may part thousands"


def parted(count):
    return f"{'-' if count < 0 else ''}{abs(count):,}".replace(",", ".")


def from_csv(columns, folder, **dialect):
    """The same cells from a text file, in a sample of its rows as the commands read it."""
    file = folder / "table.csv"
    lines = [";".join(columns), *(";".join(row) for row in zip(*columns.values(), strict=True))]
    file.write_text("\n".join(lines) + "\n")
    with open_table(file, **dialect) as source:
        return source.read(max_rows=1000)[0]


def from_texts(columns, _folder, **_dialect):
    """The same cells as texts of a data frame."""
    return pa.table({name: pa.array(texts) for name, texts in columns.items()})


@pytest.fixture(params=[from_csv, from_texts])
def table_of(request, tmp_path):
    return lambda columns, **dialect: request.param(columns, tmp_path, **dialect)


def notes(table, **hints):
    return [note for note in infer_columns(table, **hints).notes.values() if DOUBT in note]


@settings(max_examples=50)
@given(
    st.lists(st.integers(1000, 999_999), min_size=ENOUGH_CELLS, max_size=40, unique=True),
    st.lists(st.sampled_from([1, -1]), min_size=40, max_size=40),
    st.integers(0, 3),
)
def test_doubt_is_told_and_each_answer_to_it_is_kept(sizes, signs, n_missing):
    counts = [sign * size for size, sign in zip(sizes, signs, strict=False)]
    table = pa.table({"a": [*map(parted, counts), *[None] * n_missing]})
    for hints, values, told in (({}, 1000, 1), ({"decimal": "."}, 1000, 0), ({"decimal": ","}, 1, 0)):
        (column,) = infer_columns(table, roles={"a": "keep"}, **hints).columns
        read = cells.read(table["a"], "number", column.spelling).values[: len(counts)]
        assert column.kind == "number"
        np.testing.assert_array_equal(read, np.array(counts) / values)
        assert len(notes(table, roles={"a": "keep"}, **hints)) == told


def test_note_says_what_was_read_and_what_to_do(table_of):
    (note,) = notes(table_of({"a": list(map(parted, COUNTS)), "b": list("12345678")}))
    assert note.startswith("column 'a' is read as numbers with a decimal point: '1.275' is 1.275, not 1275;")
    assert "--decimal , reads it so" in note


def test_advice_of_the_note_holds(table_of):
    columns = {"a": list(map(parted, COUNTS)), "b": list("12345678")}
    table = table_of(columns, decimal=",")
    column = infer_columns(table, decimal=",").columns[0]
    assert cells.read(table["a"], "number", column.spelling).values.tolist() == COUNTS
    assert not notes(table_of(columns, decimal="."), decimal=".")


@pytest.mark.parametrize("cell", ["0.275", "1.27", "1.2755", "1275.125", "0.5"])
def test_one_cell_that_shows_a_decimal_point_is_enough(table_of, cell):
    columns = {"a": [*map(parted, COUNTS)], "b": [cell, *"2345678"]}
    assert not notes(table_of({"a": [*columns["a"][1:], cell], "b": list("12345678")}))
    assert not notes(table_of(columns)), "another column shows it too"


def test_prices_of_another_column_show_a_decimal_point(table_of):
    columns = {"a": list(map(parted, COUNTS)), "b": [f"${cents / 100:.2f}" for cents in range(150, 158)]}
    assert not notes(table_of(columns))
    assert len(notes(table_of(columns | {"b": [f"${cents}" for cents in range(150, 158)]}))) == 1


def test_few_different_cells_show_nothing(table_of):
    few = [parted(count) for count in COUNTS[: ENOUGH_CELLS - 1]]
    assert not notes(table_of({"a": few * 3, "b": [str(row) for row in range(3 * len(few))]}))
    assert grouped_example(pa.array([None, None], pa.string())) is None


def test_round_thousands_are_no_decimals(table_of):
    """1.500 has three digits after its point, though the number 1.5 has one: it shows nothing about other columns."""
    columns = {"a": list(map(parted, COUNTS)), "b": [parted(500 * count) for count in range(2, 10)]}
    assert len(notes(table_of(columns))) == 2


def test_role_of_a_category_leaves_no_doubt(tmp_path):
    table = from_csv({"a": list(map(parted, COUNTS)), "b": list("12345678")}, tmp_path)
    assert not notes(table, roles={"a": "category"})
    assert len(notes(table, roles={"a": "number"})) == 1
    assert not notes(table, skip={"a"})
    assert len(notes(table.take([7, 6, 5, 4, 3, 2, 1]))) == 1, "the doubt goes with the rows"


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_diabetes])
@pytest.mark.parametrize("digits", [None, 3])
def test_tables_with_decimals_get_no_note(load, digits, tmp_path):
    data = load()
    cells_of = [[f"{cell:.{digits}f}" if digits else repr(float(cell)) for cell in column] for column in data.data.T]
    assert not notes(from_csv(dict(zip(data.feature_names, cells_of, strict=True)), tmp_path))


def test_file_whose_commas_part_cells_and_decimals_is_read_again(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a,b\n" + "".join(f"{parted(count)},1\n" for count in COUNTS))
    with open_table(file, decimal=",") as source:
        first, second = (list(source.batches(types={"a": pa.string()})) for _ in range(2))
    assert first == second
