"""Misspelt names of columns and classes: the message asks back, and nothing is guessed in silence."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qmedoid
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import as_table

_NAMES = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6, unique_by=str.casefold)


@given(_NAMES, st.randoms())
def test_a_name_in_other_case_is_the_one_meant(names, random):
    name = random.choice(names)
    changed = name.swapcase()
    if changed.casefold() == name.casefold():  # a few letters have no other case
        assert did_you_mean(changed, names) == f" Did you mean {name!r}?"


def test_nothing_is_suggested_where_nothing_is_close():
    assert did_you_mean("income", ["Age", "Sex"]) == ""
    assert did_you_mean("Age", []) == ""


def test_labels_that_are_numbers_are_compared_as_they_are_written():
    assert did_you_mean("1750", [175, 90]) == " Did you mean 175?"


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"Age": rng.normal(size=40), "Sex": rng.choice(["f", "m"], 40), "y": ["no", "yes"] * 20})


def test_python_asks_back(frame):
    with pytest.raises(ParameterError, match=r"Did you mean 'y'\?|not a column"):
        qmedoid.check_table(frame, target="Y")
    with pytest.raises(ParameterError, match="Did you mean 'Age'"):
        qmedoid.check_table(frame, roles={"Ages": "ignore"})
    with pytest.raises(ParameterError, match="Did you mean 'yes'"):
        qmedoid.MedoidClassifier(positive="Yess", method="evidence").fit(frame[["Age", "Sex"]], frame["y"])
    with pytest.raises(DataError, match="Did you mean 'Age'"):
        as_table(frame, ["Aga"])
