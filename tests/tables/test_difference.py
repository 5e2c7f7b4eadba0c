"""The diff between a table and a contract: what breaks it, what is only noted, and how both are said."""

import datetime as dt
import json
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import ContractError, QMedoidWarning
from qmedoid.model.contract import Column, Contract, Dates, Levels, Numbers
from qmedoid.tables.difference import Issues, compare_columns
from qmedoid.tables.encode import encode_batch

CONTRACT = Contract(
    (
        Column("age", "number"),
        Column("city", "category", is_open=True),
        Column("sex", "category", levels=("f", "m")),
        Column("member", "boolean"),
        Column("since", "date"),
    ),
    target="y",
    left_out={"id": "it numbers the rows"},
)
OPEN = Levels(("Oslo", "Rome"), np.zeros((4, 1)), (": frequency",))
CLOSED = Levels(("f", "m"), np.zeros((4, 1)), ("=m",))
ENCODINGS = (Numbers(0.0), OPEN, CLOSED, Numbers(0.0), Dates(("days",), np.zeros(1)))
GOOD = {
    "age": [30, 40],
    "city": ["Oslo", "Rome"],
    "sex": ["f", "m"],
    "member": [True, False],
    "since": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)],
}


def compare(**changes):
    """The difference of a good table with some columns changed, cells included; None takes one out."""
    table = pa.table({name: values for name, values in (GOOD | changes).items() if values is not None})
    difference, found = compare_columns(CONTRACT, table.schema), Issues()
    encode_batch(table, CONTRACT, ENCODINGS, issues=found)
    return replace(difference, issues=found)


@given(st.permutations(sorted(GOOD)))
@settings(deadline=None)
def test_order_target_and_columns_that_were_left_out_are_no_difference(order):
    names = [*order, "id", "y"]
    assert not compare_columns(CONTRACT, names).lines()
    assert not compare().lines()


@given(st.lists(st.sampled_from([*GOOD, "id", "y", "new", "AGE", "c i t y"]), unique=True))
@settings(deadline=None)
def test_every_column_is_accounted_for_once(names):
    difference = compare_columns(CONTRACT, names)
    assert set(difference.missing) == set(CONTRACT.names) - set(names)
    assert set(difference.extra) == set(names) - {*GOOD, "id", "y"}
    assert difference.breaks == bool(difference.missing)


@pytest.mark.parametrize("name", ["Age", " age ", "AGE", "a-g_e", "age."])
def test_name_that_differs_in_case_and_punctuation_is_suggested(name):
    assert compare(**{"age": None, name: [30, 40]}).lines() == [
        f"- missing: 'age' (number); did you mean {name!r}?",
        f"+ extra: {name!r} (ignored)",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"age": [30.5, 40]},
        {"age": ["30", "40"]},
        {"age": [True, False]},
        {"age": pa.array([30, 40], pa.float32())},
        {"member": [1, 0]},
        {"member": ["yes", "no"]},
        {"since": ["2024-01-01", "2024-01-02"]},
        {"since": [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)]},
        {"sex": pa.array(["f", "m"]).dictionary_encode()},
        {"city": pa.array(["Oslo", "Rome"], pa.large_string())},
    ],
)
def test_harmless_changes_of_type(changes):
    assert not compare(**changes).lines()


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"age": GOOD["since"]}, "~ kind: 'age' was a number, and is a date"),
        ({"since": [1, 2]}, "~ kind: 'since' was a date, and is a number"),
        ({"age": [[1], [2]]}, "~ kind: 'age' was a number, and is of type list<item: int64>"),
        ({"city": GOOD["since"]}, "~ kind: 'city' was a category, and is a date"),
        ({"age": ["30", "abc"]}, "~ kind: 'age' was a number, 1 of 2 cells is not, such as 'abc'"),
        ({"member": [1, 2]}, "~ kind: 'member' was a boolean, 1 of 2 cells is not, such as '2'"),
        ({"since": ["x", "y"]}, "~ kind: 'since' was a date, 2 of 2 cells are not, such as 'x'"),
        ({"sex": ["f", "d"]}, "~ unseen: 'sex' has 1 level that the training rows did not, in 1 row: 'd'"),
        ({"age": None}, "- missing: 'age' (number)"),
    ],
)
def test_what_breaks(changes, line):
    difference = compare(**changes)
    assert difference.lines() == [line]
    assert difference.breaks
    with pytest.raises(ContractError) as raised:
        difference.raise_or_warn("error")
    assert line in str(raised.value)
    with pytest.warns(QMedoidWarning) as warned:
        difference.raise_or_warn("warn")
    assert line in str(warned[0].message)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"city": ["X", "Y"]}, "~ unseen: 'city' has 2 levels that the training rows did not, in 2 rows: 'X', 'Y'"),
        ({"age": [1, None]}, "~ missing cells: 'age' has 1, and had none in the training rows"),
        ({"age": [1.0, np.inf]}, "~ huge: 'age' has 1 of 2 cells beyond 1e150: taken as missing"),
    ],
)
def test_what_is_noted(changes, line):
    difference = compare(**changes)
    assert difference.lines() == [line]
    assert not difference.breaks
    with pytest.warns(QMedoidWarning, match="not like the one"):
        difference.raise_or_warn("error")


def test_extra_columns_are_listed_and_not_warned_of():
    difference = compare(new=[1, 2])
    assert difference.lines() == ["+ extra: 'new' (ignored)"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        difference.raise_or_warn("error")


def test_new_levels_of_closed_categories_can_be_tolerated():
    difference = compare(sex=["f", "d"])
    assert difference.breaks
    assert not replace(difference, tolerate_unseen=True).breaks


def test_of_very_many_new_levels_it_is_said_that_they_are_many():
    for count, said in ((999, "has 999 levels"), (1000, "more than 999 levels"), (5000, "more than 999 levels")):
        cells = {name: (values * count)[:count] for name, values in GOOD.items()}
        difference = compare(**cells | {"city": [f"new {number}" for number in range(count)]})
        assert any(said in line for line in difference.lines())


def test_long_diff_is_cut():
    contract = Contract(tuple(Column(f"c{number:03d}", "number") for number in range(500)))
    with pytest.raises(ContractError, match="… and 480 more"):
        compare_columns(contract, []).raise_or_warn("error")


def test_dictionary_is_json_and_says_the_same():
    difference = compare(age=["1", "abc"], sex=["f", "d"], new=[1, 2], member=None)
    told = json.loads(json.dumps(difference.as_dict()))
    assert told["breaks"] is True
    assert told["missing"] == ["member"]
    assert told["extra"] == ["new"]
    assert told["rows"] == 2
    assert told["cells"]["age"]["wrong_examples"] == ["abc"]
    assert told["cells"]["sex"]["unseen_levels"] == ["d"]


OPEN_NUMBERS = Contract((Column("x", "number", is_open=True), Column("day", "date", is_open=True)))


def compare_open(**columns):
    table, found = pa.table(columns), Issues()
    encode_batch(table, OPEN_NUMBERS, (Numbers(0.0), Dates(("days",), np.zeros(1))), issues=found)
    return replace(compare_columns(OPEN_NUMBERS, table.schema), issues=found)


@given(st.integers(1, 60), st.integers(0, 60))
@settings(deadline=None, max_examples=30)
def test_few_other_cells_are_expected_where_texts_were_fitted_on_and_most_are_not(good, bad):
    days = ["2024-01-01"] * (good + bad)
    difference = compare_open(x=["1.5"] * good + ["junk"] * bad, day=days)
    assert difference.breaks == (good + bad >= 20 and bad > good)
    assert bool(difference.lines()) == bool(bad)
    assert difference.as_dict()["cells"].get("x", {"wrong": 0})["wrong"] == bad


def test_levels_that_the_contract_knows_and_the_encoding_does_not_are_noted():
    contract, found = Contract((Column("sex", "category", levels=("d", "f", "m")),)), Issues()
    table = pa.table({"sex": ["f", "d", " d ", "x"]})
    (coded,) = encode_batch(table, contract, [CLOSED], issues=found)
    difference = replace(compare_columns(contract, table.schema), issues=found)
    assert difference.lines() == [
        "~ unseen: 'sex' has 1 level that the training rows did not, in 1 row: 'x'",
        "~ unseen: 'sex' has 1 level that the training rows did not, in 2 rows: 'd'",
    ]
    assert difference.breaks
    assert len(coded) == 4
    without = replace(compare_columns(contract, table.schema), issues=Issues(3, {"sex": found.columns["sex"]}))
    without.issues.columns["sex"] |= {"unseen": 0, "unseen_levels": []}
    assert not without.breaks


def test_huge_cells_are_nothing_new_where_training_rows_had_cells_to_fill_in():
    table = pa.table({"x": [1.0, 1e200]})
    for missing in (False, True):
        contract, found = Contract((Column("x", "number", missing=missing),)), Issues()
        encode_batch(table, contract, [Numbers(0.0, indicator=missing)], issues=found)
        assert bool(replace(compare_columns(contract, table.schema), issues=found).lines()) is not missing


@pytest.mark.parametrize("mode", ["error", "warn"])
def test_refused_cells_are_refused_in_either_mode(mode):
    contract, found = Contract((Column("x", "number"), Column("y", "number"))), Issues()
    table = pa.table({"x": [1.0, None, np.inf, 1e200], "y": [1.0, 2.0, 3.0, 4.0]})
    encode_batch(table, contract, [Numbers(np.nan)] * 2, issues=found)
    difference = replace(compare_columns(contract, table.schema), issues=found)
    assert difference.lines() == [
        "~ missing cells: 'x' has 1 of 4, and they cannot be filled in",
        "~ huge: 'x' has 2 of 4 cells beyond 1e150, and they cannot be filled in",
    ]
    with pytest.raises(ContractError, match="'qmedoid fit', which fill in missing cells"):
        difference.raise_or_warn(mode)
