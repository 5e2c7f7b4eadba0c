"""Columns of 1.275 and 20.628 alone: decimals by default, and whole thousands where asked for."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.exceptions import DataError
from qmedoid.tables import cells
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.source import open_table

DOUBT = "may separate thousands"


def parted(count):
    return f"{'-' if count < 0 else ''}{abs(count):,}".replace(",", ".")


@given(
    st.lists(st.integers(1000, 999_999), min_size=5, max_size=40, unique=True),
    st.lists(st.sampled_from([1, -1]), min_size=40, max_size=40),
    st.integers(0, 3),
)
def test_points_are_decimal_points_with_a_note_unless_an_option_says_otherwise(sizes, signs, n_missing):
    counts = [sign * size for size, sign in zip(sizes, signs, strict=False)]
    table = pa.table({"a": [*map(parted, counts), *[None] * n_missing]})
    for hints, values, n_notes in (({}, 1000, 1), ({"decimal": "."}, 1000, 0), ({"decimal": ","}, 1, 0)):
        inferred = infer_columns(table, roles={"a": "keep"}, **hints)
        (column,) = inferred.columns
        assert sum(DOUBT in note for note in inferred.notes.values()) == n_notes
        read = cells.read(table["a"], "number", column.spelling).values[: len(counts)]
        assert column.kind == "number"
        np.testing.assert_array_equal(read, np.array(counts) / values)


@pytest.mark.parametrize("shown", ["0.5", "1.27", "1275.125", "36.6"])
def test_another_column_of_a_file_shows_what_a_point_means(tmp_path, shown):
    file = tmp_path / "table.csv"
    for cell, other, is_shown in ((shown, "2", True), ("2.500", "3.500", False), ("2", "2", False)):
        lines = [f"1.275,{cell}", *(f"{935 + row},{other}" for row in range(9))]
        file.write_text("\n".join(["a,b", *lines]) + "\n")
        with open_table(file) as source:
            table = source.read()[0]
        if is_shown:
            assert infer_columns(table).columns[0].spelling == "1234.5"
        else:
            with pytest.raises(DataError, match="--decimal"):
                infer_columns(table)


@pytest.mark.parametrize(
    ("cells_of_a", "other", "is_noted"),
    [
        (["1.275", "2.128", "20.628", "1.500", "7.001"], "2", True),
        (["1.275", "2.128", "20.628", "1.500", "7.001"], "2.500", True),
        (["1.275", "2.128", "20.628", "1.500", "7.001"], "0.5", False),
        (["1.275", "2.128", "20.628", "1.500", "0.275"], "2", False),
        (["1.275", "2.128", "20.628", "1.500", "1275.125"], "2", False),
        (["1.275", "2.128", "20.628", "1.500", "1.500"], "2", False),
    ],
)
def test_file_leaves_a_note_where_nothing_shows_the_decimal_point(tmp_path, cells_of_a, other, is_noted):
    file = tmp_path / "table.csv"
    file.write_text("\n".join(["a,b", *(f"{cell},{other}" for cell in cells_of_a)]) + "\n")
    with open_table(file) as source:
        inferred = infer_columns(source.read()[0], roles={"a": "keep"})
    assert (DOUBT in inferred.notes.get("a", "")) == is_noted
    assert inferred.columns[0].kind == "number"


def test_file_whose_commas_part_cells_and_decimals_is_read_again(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("a,b\n" + "".join(f"{parted(count)},1\n" for count in (1275, 20628, 935_000)))
    with open_table(file, decimal=",") as source:
        first, second = (list(source.batches(types={"a": pa.string()})) for _ in range(2))
    assert first == second
