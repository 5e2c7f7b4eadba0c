"""Odd tables are read as they are meant, or a sentence names the trouble: never another table in silence."""

import pytest
from benchmarks.odd.all import ODD, SCORED
from benchmarks.odd.doors import SILENT, fit_plain, score_odd, through
from benchmarks.odd.judge import look, verdict


@pytest.mark.parametrize("name", ODD)
def test_odd_table_is_read_as_it_is_meant_or_named(name, tmp_path):
    odd = ODD[name]
    found = verdict(odd, look(odd, tmp_path))
    assert not found, found


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model of the plain table, and its scores."""
    folder = tmp_path_factory.mktemp("scored")
    return folder, *fit_plain(folder)


@pytest.mark.parametrize("name", SCORED)
def test_odd_table_is_scored_as_the_plain_one_or_named(name, fitted):
    folder, model, expected = fitted
    one = SCORED[name]
    assert score_odd(one, model, expected, folder) != SILENT


FITTED = (
    "UTF-8 with a mark", "Latin-1", "semicolons between cells", "decimal commas between tabs",
    "Parquet with a dictionary", "points between thousands", "negative in parentheses", "per cent", "numbers and NA",
    "a few texts among numbers", "days with points", "moments with an offset", "nein and ja", "FALSE and TRUE",
    "levels and NA", "blanks in the target", "identifiers", "one class", "texts of pandas",
    "a categorical with unused levels", "Arrow wide decimals",
)  # fmt: skip


@pytest.mark.parametrize("name", FITTED)
def test_odd_table_gives_the_model_of_the_plain_one_through_every_door(name, tmp_path):
    found = through(ODD[name], tmp_path)
    assert found.is_right, found


def test_there_are_enough_odd_tables():
    assert len(ODD) >= 150
