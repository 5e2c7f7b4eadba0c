"""What columns are taken for, and which are left out."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.model.contract import Column
from qmedoid.tables.kinds import infer_columns, with_levels_of


def infer(skip=(), **columns):
    return infer_columns(pa.table(columns), skip=skip)


def kind(values, kind=None):
    inferred = infer(c=pa.array(values, kind))
    assert not inferred.left_out
    return inferred.columns[0].kind


def reason(values, name="c"):
    inferred = infer(**{name: values})
    assert not inferred.columns
    return inferred.left_out[name]


DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 3], "number"),
        ([1.5, 2.0], "number"),
        ([Decimal("1.50"), Decimal("2.00")], "number"),
        ([dt.timedelta(1), dt.timedelta(2)], "number"),
        ([True, False], "boolean"),
        (DAYS, "date"),
        ([dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)], "date"),
        ([dt.time(1), dt.time(2)], "date"),
        (["a", "b"], "category"),
        (["yes", "no"], "category"),
        (["true", "false"], "category"),
        (["1", "2"], "number"),
        ([" 1.5", "-2e3 "], "number"),
        (["2024-01-01", "2024-01-02T10:30:00Z"], "date"),
        (["2024-01-01", "soon"], "category"),
        (["1,5", "2,5"], "number"),
    ],
)
def test_kinds(values, expected):
    assert kind(values) == expected


def test_dictionaries_are_categories_whatever_they_hold():
    assert kind(pa.array(["1", "2", "1"]).dictionary_encode()) == "category"


@given(st.integers(0, 100))
@settings(deadline=None)
def test_texts_are_numbers_if_nine_in_ten_are(words):
    cells = ["word"] * words + [str(number % 7) for number in range(100 - words)]
    inferred = infer(c=cells)
    if words == 100:
        assert inferred.left_out == {"c": "every cell is 'word'"}
        return
    assert inferred.columns[0].kind == ("number" if words <= 10 else "category")
    assert inferred.columns[0].missing == (0 < words <= 10)
    assert bool(inferred.notes) == (0 < words <= 50)
    if 10 < words <= 50:
        said = (
            f"column 'c' is taken as texts: {100 - words} of 100 cells are numbers, and others, such as 'word', are not"
        )
        assert inferred.notes["c"] == said


def test_note_counts_cells_and_shows_one():
    inferred = infer(c=["1", "2", None, "3"] * 10 + ["n/a"] * 2)
    assert list(inferred.notes.values()) == [
        "column 'c': 2 of 42 cells are not numbers, such as 'n/a': taken as missing, the first in row 40 (from 0)"
    ]


def test_missing_cells_of_every_kind_are_noticed():
    table = pa.table(
        {
            "number": [1.0, float("nan"), 2.0],
            "text": ["a", "", "b"],
            "date": [*DAYS, None],
            "truth": [True, None, False],
            "huge": [1.0, 1e200, 2.0],
            "whole": [1.0, 4.0, 2.0],
        }
    )
    assert {column.name: column.missing for column in infer_columns(table).columns} == {
        "number": True,
        "text": True,
        "date": True,
        "truth": True,
        "huge": True,
        "whole": False,
    }


def test_huge_numbers_are_noted():
    note = "column 'c': 1 of 3 cells are infinite or beyond 1e150: taken as missing"
    assert infer(c=[1.0, 2.0, float("inf")]).notes == {"c": note}


@given(st.integers(-1000, 1000), st.integers(20, 60), st.randoms())
@settings(max_examples=30, deadline=None)
def test_run_of_numbers_in_any_order_numbers_the_rows(first, n, random):
    numbers = list(range(first, first + n))
    random.shuffle(numbers)
    assert reason(numbers) == "it numbers the rows"
    # One number that occurs twice, or one far off, and it may say something.
    assert kind([*numbers, numbers[0]]) == "number"
    assert kind([*numbers, first + 10 * n]) == "number"


@given(st.integers(0, 1), st.integers(60, 200), st.floats(0.6, 1.0), st.randoms())
@settings(max_examples=30, deadline=None)
def test_share_of_numbered_rows_is_numbered(first, n, share, random):
    """What is left to fit on once rows are held out: with the number of its row a model would know its place."""
    numbers = sorted(random.sample(range(first, first + n), int(share * n)))
    assert reason(numbers) == "it numbers the rows"


def test_different_numbers_far_apart_say_something():
    assert kind([number * number for number in range(60)]) == "number"
    assert kind(list(range(0, 200, 10))) == "number"


def test_texts_of_their_own_name_rows():
    texts = [f"person {number}" for number in range(20)]
    assert "as an identifier has" in reason(texts)
    assert kind(texts[:19]) == "category"
    assert kind([*texts, texts[0]]) == "category"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None, None], "every cell is missing"),
        (["", ""], "every cell is missing"),
        ([float("nan")] * 2, "every cell is missing"),
        ([3, 3], "every cell is 3"),
        (["x", "x"], "every cell is 'x'"),
        ([True, True], "every cell is 1"),
        ([DAYS[0], DAYS[0]], "every cell is 2024-01-01T00:00:00.000000"),
        ([[1], [2, 3]], "cells of type list<item: int64> are not read"),
        ([b"a", b"b"], "cells of type binary are not read"),
        ([{"a": 1}, {"a": 2}], "cells of type struct<a: int64> are not read"),
    ],
)
def test_left_out(values, expected):
    assert reason(values) == expected


@given(st.permutations(range(4)))
@settings(max_examples=10, deadline=None)
def test_columns_keep_their_order_and_do_not_depend_on_each_other(order):
    columns = {"a": [1, 2, 9], "b": ["x", "y", "x"], "c": [None] * 3, "d": np.array([True, False, True])}
    names = [list(columns)[place] for place in order]
    inferred = infer_columns(pa.table({name: columns[name] for name in names}))
    assert [column.name for column in inferred.columns] == [name for name in names if name != "c"]
    assert list(inferred.left_out) == ["c"]


def test_numbers_and_dates_that_stand_in_texts_are_open():
    """Rows that are held out may have cells of another kind, which the file that was fitted on shall not break on."""
    assert infer(c=["1", "2", "3"]).columns == (Column("c", "number", is_open=True),)
    assert infer(c=["2024-01-01", "2024-01-02"]).columns == (Column("c", "date", is_open=True),)
    assert infer(c=[1, 2, 5]).columns == (Column("c", "number"),)
    assert infer(c=DAYS).columns == (Column("c", "date"),)


def test_moments_beyond_the_calendar_are_missing_and_noted():
    inferred = infer(c=pa.array([0, 5, 2**62], pa.timestamp("s")))
    assert inferred.columns == (Column("c", "date", missing=True, is_open=True),)
    assert "1 of 3 cells are beyond the calendar" in next(iter(inferred.notes.values()))


def test_names_of_levels_are_added_to_closed_categories_alone():
    columns = (Column("a", "category", levels=("x",)), Column("b", "category", is_open=True), Column("c", "number"))
    table = pa.table({"a": ["y ", None, "", "x"], "b": ["p"] * 4, "c": [1] * 4})
    assert with_levels_of(columns, table) == (Column("a", "category", levels=("x", "y")), *columns[1:])
    assert with_levels_of(columns, table.drop_columns(["a"])) == columns
