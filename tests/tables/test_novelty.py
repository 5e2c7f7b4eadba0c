"""Records unlike anything known are noticed, and records like the training rows are not."""

import io
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from qmedoid import MedoidClassifier, load
from qmedoid.datasets import read_shipped
from qmedoid.model.contract import Dates, Levels, Numbers
from qmedoid.model.novelty import encoded_readings, fit_novelty
from qmedoid.saved import SavedModel
from qmedoid.tables.novelty import ENOUGH_ROWS, NoveltyTally, record_novelty
from qmedoid.tables.results import ResultColumns, ScoreSettings


@pytest.fixture(scope="module")
def heart():
    """A model of three quarters of the patients, and the others."""
    table = pyarrow.csv.read_csv(io.BytesIO(read_shipped("heart.csv")))
    order = np.random.default_rng(3).permutation(len(table))
    rows, y = table.drop_columns(["HeartDisease"]).take(order), np.array(table["HeartDisease"].to_pylist())[order]
    classifier = MedoidClassifier(random_state=0).fit(rows.slice(0, 688), y[:688])
    return SavedModel(classifier.model_), rows.slice(688), classifier


def changed(table, **columns):
    for name, values in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    return table


def numbers(table, name):
    return np.array(table[name].to_pylist(), dtype=float)


def swapped(table, one, other):
    return table.rename_columns([{one: other, other: one}.get(name, name) for name in table.column_names])


def test_new_patients_are_like_the_known_ones(heart):
    model, new, _ = heart
    report = model.novelty_report(new)
    assert report.found["status"] == "none"
    assert report.lines == []
    assert report.found["shifted"] == []
    # One in a hundred is expected to lie beyond, and 230 rows show about that.
    assert (model.novelty(new) > 1).mean() < 0.05


@pytest.mark.parametrize("pair", [("RestingBP", "MaxHR"), ("Age", "MaxHR"), ("Cholesterol", "RestingBP")], ids=str)
def test_two_swapped_columns_are_noticed(heart, pair):
    model, new, _ = heart
    report = model.novelty_report(swapped(new, *pair))
    assert report.found["status"] == "unlike"
    found = {one["column"] for key in ("shifted", "outside") for one in report.found[key]}
    assert found
    assert found <= set(pair)


@pytest.mark.parametrize(
    ("column", "change"), [("Age", lambda age: age + 200), ("RestingBP", np.negative)], ids=["older", "negative"]
)
@pytest.mark.parametrize("n_rows", [1, 5, 230])
def test_values_beyond_all_that_is_known_are_named(heart, column, change, n_rows):
    model, new, _ = heart
    some = new.filter(pa.array(numbers(new, column) > 0)).slice(0, n_rows)
    odd = changed(some, **{column: change(numbers(some, column))})
    report = model.novelty_report(odd)
    assert report.found["status"] == "unlike"
    assert repr(column) in report.lines[0]
    assert (model.novelty(odd) > 1).all()
    (found,) = report.found["outside"]
    assert (found["column"], found["rows"], report.found["outside_rows"]) == (column, len(odd), len(odd))
    # The one that is farthest out.
    assert found["value"] == numbers(odd, column)[found["row"]] == max(numbers(odd, column), key=abs)


def test_single_odd_record_is_found_in_a_table(heart):
    model, new, _ = heart
    ages = numbers(new, "Age")
    ages[17] = 245
    odd = changed(new, Age=ages)
    (found,) = model.novelty_report(odd).found["outside"]
    assert list(found.values())[:4] == ["Age", 1, 17, 245.0]
    assert np.argmax(model.novelty(odd)) == 17


def test_few_rows_are_too_few_to_tell(heart):
    model, new, _ = heart
    assert model.novelty_report(new.slice(0, ENOUGH_ROWS - 1)).found["status"] == "too few"
    assert model.novelty_report(new.slice(0, ENOUGH_ROWS)).found["status"] == "none"


def test_broken_joint_distribution_raises_distances():
    """Columns that are each as expected, but do not belong together: the distance says what no column does."""
    rng = np.random.default_rng(0)
    known = rng.normal(size=(800, 1)) + rng.normal(scale=0.05, size=(800, 4))
    y = (known[:, 0] + rng.normal(scale=0.5, size=800) > 0).astype(int)
    model = SavedModel(MedoidClassifier(random_state=0).fit(known, y).model_)
    new = rng.normal(size=(400, 1)) + rng.normal(scale=0.05, size=(400, 4))
    torn = np.column_stack([rng.permutation(column) for column in new.T])
    usual, odd = model.novelty_report(new), model.novelty_report(torn)
    assert usual.found["status"] == "none"
    found = odd.found
    assert (odd.found["status"], found["shifted"], found["outside"]) == ("unlike", [], [])
    assert found["far_share"] > 0.5 > usual.found["far_high"]
    assert "farther from every medoid" in odd.lines[0]


def test_batches_count_as_the_whole_table(heart):
    model, new, classifier = heart
    columns = list(classifier._encoded(new).T)
    # Long enough for every 16th row to be counted; a column is far out in one place.
    many = [np.tile(column, 60) for column in columns]
    many[0] = many[0].copy()
    many[0][9_999] = 1e6
    whole, parts = NoveltyTally(), NoveltyTally()
    whole.add(model.model, many)
    for start in range(0, len(many[0]), 777):
        parts.add(model.model, [column[start : start + 777] for column in many])
    report = whole.report(model.model)
    assert report == parts.report(model.model)
    found = report.found
    assert (found["compared_rows"], found["outside_rows"]) == (-(-len(many[0]) // 16), 1)
    assert list(found["outside"][0].values())[:4] == ["Age", 1, 9_999, 1e6]


def test_order_of_rows_and_unit_of_a_column_do_not_matter(heart):
    model, new, _ = heart
    order = np.random.default_rng(0).permutation(len(new))
    np.testing.assert_array_equal(model.novelty(new)[order], model.novelty(new.take(order)))
    rng = np.random.default_rng(1)
    X, unit = rng.lognormal(size=(300, 3)), np.array([1.0, 1024.0, 0.25])
    one, other = fit_novelty(X), fit_novelty(X * unit)
    np.testing.assert_array_equal(one.high * unit, other.high)
    np.testing.assert_array_equal(one.counts, other.counts)
    read = np.ones(3, dtype=bool)
    new_rows = rng.lognormal(sigma=2.0, size=(300, 3))
    np.testing.assert_array_equal(
        one.of_records(list(new_rows.T), read, None), other.of_records(list((new_rows * unit).T), read, None)
    )


def test_novelty_is_saved_and_the_classifier_says_the_same(heart, tmp_path):
    model, new, classifier = heart
    loaded = load(model.save(tmp_path / "model"))
    odd = changed(new, Age=numbers(new, "Age") * 3)
    assert loaded.novelty_report(odd) == model.novelty_report(odd)
    np.testing.assert_array_equal(loaded.novelty(odd), classifier.novelty(odd))
    assert ResultColumns(model.model, ScoreSettings(add=("novelty",))).names[-1] == "novelty"


def test_new_level_counts_as_new_as_often_as_it_should():
    rng = np.random.default_rng(0)

    def shop(n_rows, first=0):
        return {"x": rng.normal(size=n_rows), "shop": [f"s{number}" for number in first + rng.integers(0, 400, n_rows)]}

    known = shop(600)
    y = np.array(known["x"]) + rng.normal(size=600) > 0
    model = SavedModel(MedoidClassifier(random_state=0).fit(known, y).model_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of new levels, be they more than usual or not
        usual, report = model.novelty_report(shop(300)), model.novelty_report(shop(300, first=1000))
    assert usual.found["status"] == "none"
    assert [(one["column"], one["kind"], one["share"]) for one in report.found["shifted"]] == [("shop", "level", 1.0)]
    assert "'shop' has a new level in 100 % of the rows" in report.lines[0]


def test_what_is_kept_of_encoded_columns():
    levels = Levels(("a",), np.zeros((3, 3)), (": share of yes", ": share of no", ": frequency"))
    flags = Levels(("a", "b"), np.zeros((4, 2)), ("=: frequency", " is missing"))
    dates = Dates(("days", "hour"), np.zeros(2), indicator=True)
    assert encoded_readings([Numbers(0.0), Numbers(0.0, indicator=True), dates, levels, flags]) == [
        "number", "number", "flag", "days", "part", "flag", "nothing", "nothing", "frequency", "flag", "flag",
    ]  # fmt: skip


def test_models_without_medoids_or_summary_know_less():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = MedoidClassifier(random_state=0).fit(X, X[:, 0] > 0)
    saved = MedoidClassifier(random_state=0).fit(X, (X[:, 0] > 0).astype(int)).model_
    assert saved.novelty.far is None  # nearly all rows are medoids
    far_out = [np.array([0.0, 50.0]), np.zeros(2)]
    np.testing.assert_array_equal(record_novelty(saved, far_out) > 1, [False, True])
    assert model.model_.novelty.n_rows == 60
    nothing = replace(saved, novelty=None)
    assert np.isnan(record_novelty(nothing, far_out)).all()
    tally = NoveltyTally()
    tally.add(nothing, far_out)
    assert tally.report(nothing).found["status"] == "unknown"
