"""What says the class is found where it is planted, alone, by what is missing and in pairs, and nowhere else."""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from sklearn import datasets

from qmedoid import EvidenceClassifier, MedoidClassifier, check_table
from qmedoid.exceptions import QMedoidWarning
from qmedoid.tables.arrow import as_table
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.leaks import balanced_rows, find_leaks

N = 1200
SHARES = pytest.mark.parametrize("share", [0.5, 0.1])


def drawn(share: float, seed: int = 0) -> tuple[np.random.Generator, np.ndarray, dict[str, np.ndarray]]:
    """A generator, two classes, of which the second has this share, and columns that say little about them."""
    rng = np.random.default_rng(seed)
    y = rng.random(N) < share
    own = {f"n{place}": np.round(rng.normal(size=N) + 0.3 * y, 3) for place in range(4)}
    return rng, y, own | {"town": rng.choice([*"abcdefghij"], N), "day": some_days(rng)}


def some_days(rng: np.random.Generator) -> np.ndarray:
    return np.datetime64("2024-01-01") + rng.integers(0, 300, N)


def labels(y: np.ndarray) -> np.ndarray:
    return np.where(y, "fraud", "fine")


def leaks(columns: dict[str, object], y: np.ndarray) -> list[tuple[str, bool, tuple[str, ...]]]:
    table = as_table(columns)
    names, codes = np.unique(labels(y) if y.dtype == bool else y, return_inverse=True)
    rows = infer_columns(table).columns, codes, names.tolist()
    found = find_leaks(table, *rows)
    # The search of a fit passes over most columns, and finds the same problems.
    quick = find_leaks(table, *rows, is_quick=True)
    assert [(one.code, one.columns) for one in quick if one.is_problem] == [
        (one.code, one.columns) for one in found if one.is_problem
    ]
    return [(leak.code, leak.is_problem, leak.columns) for leak in found]


@SHARES
@pytest.mark.parametrize("seed", range(3))
def test_columns_that_say_little_raise_no_alarm(share, seed):
    rng, y, columns = drawn(share, seed)
    columns["gap"] = np.where(rng.random(N) < 0.3, np.nan, rng.normal(size=N))
    columns["hole"] = np.where(rng.random(N) < 0.3, np.nan, rng.normal(size=N))
    columns["word"] = rng.choice(["fraud desk", "front desk", "mail"], N)
    columns["other"] = np.where(~y & (rng.random(N) < 0.3), "fraud excluded", rng.choice(["call", "mail"], N))
    assert leaks(columns, y) == []


@SHARES
@pytest.mark.parametrize("words", [None, ["red", "blue"]])
def test_column_that_is_the_class_in_97_of_100_rows_is_nearly_the_target(share, words):
    rng, y, columns = drawn(share)
    flipped = y ^ (rng.random(N) < 0.03)
    columns["copy"] = flipped.astype(int) if words is None else np.array(words)[flipped.astype(int)]
    assert leaks(columns, y) == [("nearly_target", True, ("copy",))]
    columns["copy"] = y.astype(int) if words is None else np.array(words)[y.astype(int)]
    assert leaks(columns, y) == [("target_copy", True, ("copy",))]


def test_levels_that_say_one_of_many_classes_each_are_nearly_the_target():
    rng, _, columns = drawn(0.5)
    y = np.array(["low", "middle", "high"])[rng.integers(0, 3, N)]
    codes = np.unique(y, return_inverse=True)[1]
    wrong = rng.random(N) < 0.03
    columns["grade"] = np.array([*"xyz"])[np.where(wrong, rng.integers(0, 3, N), codes)]
    assert leaks(columns, y) == [("nearly_target", True, ("grade",))]


@SHARES
@pytest.mark.parametrize("is_missing", [True, False])
def test_cells_that_are_missing_where_the_class_is_give_it_away(share, is_missing):
    """In either class, in 95 of 100 rows: a date of closing, or a reason that fraud alone has."""
    rng, y, columns = drawn(share)
    where = y ^ (rng.random(N) < 0.05)
    columns["closed"] = np.where(where == is_missing, np.nan, rng.normal(size=N))
    assert leaks(columns, y) == [("missing_by_class", True, ("closed",))]


def test_cells_that_are_missing_in_half_of_a_rare_class_are_found_by_a_fit():
    rng, y, columns = drawn(0.1)
    columns["stopped"] = np.where(y & (rng.random(N) < 0.6), np.nan, rng.normal(size=N))
    assert leaks(columns, y) == [("missing_by_class", True, ("stopped",))]


def test_cells_that_are_missing_in_a_few_rows_of_one_class_are_a_note():
    rng, y, columns = drawn(0.5)
    columns["lab"] = np.where(y & (rng.random(N) < 0.1), np.nan, rng.normal(size=N))
    assert leaks(columns, y) == [("missing_by_class", False, ("lab",))]


@SHARES
def test_two_columns_whose_equality_is_the_class_are_a_pair(share):
    rng, y, columns = drawn(share)
    amount = np.round(rng.lognormal(3, 1, N), 2)
    pair = {"amount": amount, "refund": np.where(y, amount, np.round(amount * rng.uniform(0.1, 1.9, N), 2))}
    assert leaks(columns | pair, y) == [("pair", True, ("amount", "refund"))]
    home = rng.choice([*"abcdefghij"], N)
    pair = {
        "home": home,
        "shop": np.where(y, np.roll(np.array([*"abcdefghij"]), 1)[np.searchsorted([*"abcdefghij"], home)], home),
    }
    assert leaks(columns | pair, y) == [("pair", True, ("home", "shop"))]


@SHARES
def test_two_dates_whose_order_is_the_class_are_a_pair(share):
    rng, y, columns = drawn(share)
    due = some_days(rng)
    late = {"due": due, "paid": due + np.where(y, rng.integers(1, 20, N), -rng.integers(0, 20, N))}
    assert leaks(columns | late, y) == [("pair", True, ("due", "paid"))]
    nearly = {"due": due, "paid": due + np.where(y ^ (rng.random(N) < 0.03), 5, -rng.integers(0, 20, N))}
    assert leaks(columns | nearly, y) == [("pair", False, ("due", "paid"))]


@SHARES
def test_two_columns_whose_missing_cells_are_the_class_together_are_a_pair(share):
    """Both in one class, and in the other one of them or neither; or just one of them in one class."""
    rng, y, columns = drawn(share)
    place = rng.random(N)
    gaps = {"left": y | (place > 0.48), "right": y | ~((place > 0.48) & (place < 0.96))}
    found = leaks(columns | {name: np.where(flags, np.nan, place) for name, flags in gaps.items()}, y)
    assert [one for one in found if one[1]] == [("pair", True, ("left", "right"))]
    gaps = {"left": place > 0.5, "right": (place > 0.5) ^ y}
    found = leaks(columns | {name: np.where(flags, np.nan, place) for name, flags in gaps.items()}, y)
    assert found == [("pair", True, ("left", "right"))]


def test_order_that_is_a_threshold_of_one_column_is_no_pair():
    rng, y, columns = drawn(0.5)
    columns["strong"] = (y ^ (rng.random(N) < 0.035)) + 0.1 * rng.normal(size=N)
    columns["level"] = 0.5 + 1e-3 * rng.normal(size=N)
    assert leaks(columns, y) == []


def test_columns_that_are_mostly_0_are_no_pair():
    """Of pictures: where both corners are empty it is a 1, and one is empty in others, too."""
    rng = np.random.default_rng(0)
    y, ink = rng.random(N) < 0.3, rng.integers(1, 16, (2, N))
    empty = np.where(y, 2, rng.integers(0, 2, N))
    columns = {"left": np.where(empty > 0, 0, ink[0]), "right": np.where(empty != 1, 0, ink[1])}
    assert leaks(columns, y) == []


@pytest.mark.parametrize("step", [1, 2, 3])
def test_order_that_says_one_class_as_one_column_does_is_no_pair(step):
    """Of the flowers of one kind the petals are shorter than the sepals are wide, and shorter than any others."""
    X, y = datasets.load_iris(return_X_y=True)
    columns = {f"x{place}": own for place, own in enumerate(X[::step].T)}
    assert leaks(columns, y[::step].astype(str)) == []


@SHARES
def test_cells_that_name_the_class_are_found(share):
    rng, y, columns = drawn(share)
    named = rng.choice(["Fraud, confirmed", "possible fraud"], N)
    columns["note"] = np.where(y & (rng.random(N) < 0.4), named, rng.choice(["call", "mail", "none"], N))
    assert leaks(columns, y) == [("names_class", True, ("note",))]


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
def test_no_table_of_scikit_learn_has_a_leak(name):
    bunch = getattr(datasets, f"load_{name}")()
    report = check_table(
        {**dict(zip(bunch.feature_names, bunch.data.T, strict=True)), "y": bunch.target.astype(str)}, "y"
    )
    assert report["problems"] == 0
    assert (report["without"] is not None) == (name in ("iris", "breast_cancer"))


def test_no_real_table_has_a_leak():
    folder = os.environ.get("QMEDOID_DATA")
    if folder is None:
        pytest.skip("needs the data: set QMEDOID_DATA to the folder of the tables, see docs/reproduction.md")
    sets = json.loads((Path(folder) / "MANIFEST.json").read_text())
    assert len(sets) >= 20
    for name, about in sets.items():
        path = Path(folder) / about["file"]
        table = as_table(csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path))
        target = table[about["target"]].combine_chunks().dictionary_encode()
        codes = target.indices.to_numpy(zero_copy_only=False).astype(np.intp)
        rows = balanced_rows(codes, 60_000)
        table, codes = table.take(pa.array(rows)), codes[rows]
        columns = infer_columns(table, skip={about["target"]}).columns
        found = find_leaks(table, columns, codes, target.dictionary.to_pylist())
        assert [leak for leak in found if leak.is_problem] == [], name


def test_strong_columns_are_ranked_with_what_a_model_gets_without_them():
    rng, y, columns = drawn(0.5)
    columns |= {"best": y + 0.33 * rng.normal(size=N), "good": y + 0.4 * rng.normal(size=N)}
    report = check_table(columns | {"y": labels(y)}, "y")
    (strong,) = (one for one in report["findings"] if one["code"] == "strong")
    assert (strong["columns"], strong["severity"], report["problems"]) == (["best", "good"], "problem", 1)
    without = report["without"]
    assert without["columns"] == ["best", "good"]
    assert without["all_columns"] > 0.97
    assert 0.5 < without["others"] < 0.8
    kept = check_table(columns | {"y": labels(y)}, "y", roles={"best": "keep", "good": "keep"})
    assert (kept["problems"], kept["without"]) == (0, None)


def test_a_column_that_is_kept_is_no_problem():
    rng, y, columns = drawn(0.5)
    columns |= {"copy": y ^ (rng.random(N) < 0.03), "y": labels(y)}
    for roles, problems in (({}, 1), ({"copy": "keep"}, 0), ({"copy": "ignore"}, 0)):
        assert check_table(columns, "y", roles=roles)["problems"] == problems


@pytest.mark.parametrize("seed", range(3))
def test_quick_models_are_judged_on_other_rows(seed):
    rng = np.random.default_rng(seed)
    y = rng.random(300) < 0.5
    noise = {f"n{place}": rng.normal(size=300) for place in range(60)}
    report = check_table(noise | {"best": y + 0.33 * rng.normal(size=300), "y": labels(y)}, "y")
    assert 0.38 < report["without"]["others"] < 0.62
    assert 0.9 < report["without"]["all_columns"] < 1.0


def test_strong_column_that_others_stand_by_is_a_note():
    rng, y, columns = drawn(0.5)
    columns |= {"best": y + 0.33 * rng.normal(size=N)} | {f"m{k}": y + 0.8 * rng.normal(size=N) for k in range(4)}
    report = check_table(columns | {"y": labels(y)}, "y")
    assert report["problems"] == 0
    assert report["without"]["columns"] == ["best"]
    assert report["without"]["others"] > 0.9


def test_one_column_that_is_all_leaves_none():
    rng, y, _ = drawn(0.5)
    report = check_table({"copy": y ^ (rng.random(N) < 0.03), "y": labels(y)}, "y")
    assert (report["without"]["columns"], report["without"]["others"]) == (["copy"], None)
    assert "no column is left" in report["findings"][-1]["message"]


def test_fit_warns_of_what_says_the_class_and_keeps_quiet_of_what_is_kept():
    rng, y, columns = drawn(0.5)
    amount = np.round(rng.lognormal(3, 1, N), 2)
    columns |= {"copy": (y ^ (rng.random(N) < 0.03)).astype(int), "amount": amount}
    columns["refund"] = np.where(y, amount, np.round(amount * rng.uniform(0.1, 1.9, N), 2))
    quick = {"method": EvidenceClassifier(n_medoids=4, n_neighbors=0), "refine": "never", "random_state": 0}
    with pytest.warns(QMedoidWarning, match=r"^Column 'copy' is nearly the target .*; whether 'amount' equals"):
        fitted = MedoidClassifier(**quick).fit(columns, labels(y))
    assert [note for note in fitted.notes_ if "'amount' equals 'refund'" in note]
    roles = {"copy": "keep", "amount": "keep"}
    with warnings.catch_warnings():
        warnings.simplefilter("error", QMedoidWarning)
        kept = MedoidClassifier(roles=roles, **quick).fit(columns, labels(y))
    assert not [note for note in kept.notes_ if "known before the class" in note]


def test_column_that_names_people_who_come_back_is_no_leak_of_a_fit():
    """They are to be held out together: a model without the column would still know them."""
    rng = np.random.default_rng(0)
    people = rng.permutation(np.repeat(np.arange(120), 8))
    traits, y = rng.normal(size=(120, 5)), (np.arange(120) % 2 == 1)[people]
    X = {f"n{place}": one[people] + 0.3 * rng.normal(size=960) for place, one in enumerate(traits.T)}
    X["customer"] = np.char.add("C", people.astype(str))
    quick = {"method": EvidenceClassifier(n_medoids=4, n_neighbors=0), "refine": "never", "random_state": 0}
    with pytest.warns(QMedoidWarning) as warned:
        fitted = MedoidClassifier(**quick).fit(X, labels(y))
    said = [str(one.message) for one in warned]
    assert sum("hold them out together" in one for one in said) == 1
    assert not [one for one in said if "leave it out" in one]
    assert not [note for note in fitted.notes_ if "known before the class" in note]


def test_quick_models_do_not_know_people_who_come_back():
    rng = np.random.default_rng(0)
    people = rng.permutation(np.repeat(np.arange(100), 8))
    traits, y = rng.normal(size=(8, 100)), (np.arange(100) % 2 == 1)[people]
    X = {f"n{place}": one[people] + 0.1 * rng.normal(size=800) for place, one in enumerate(traits)}
    X |= {"customer": np.char.add("C", people.astype(str)), "best": y + 0.35 * rng.normal(size=800)}
    without = check_table(X | {"y": labels(y)}, "y")["without"]
    assert without["columns"] == ["best"]
    assert without["others"] < 0.7


def test_rows_are_drawn_of_every_class_alike():
    codes = (np.arange(50_000) % 500 == 0).astype(int)
    rows = balanced_rows(codes, 10_000)
    assert (np.diff(rows) > 0).all()
    assert np.bincount(codes[rows]).tolist() == [5_000, 100]
    assert balanced_rows(codes[:9_000], 10_000).tolist() == list(range(9_000))
    table = pa.table({"x": np.where(codes == 1, np.nan, 0.5 + np.arange(50_000))})
    (leak,) = find_leaks(table, infer_columns(table).columns, codes, ["a", "b"])
    assert leak.message.startswith("column 'x' alone separates the classes")
    assert rows[len(rows) // 2] > 20_000


def test_shares_of_drawn_rows_are_those_of_the_table():
    """Of the rows that are missing three in ten are common ones: in as many rows of either class few would be."""
    rng = np.random.default_rng(0)
    codes = (np.arange(30_000) % 50 == 0).astype(int)
    x = np.where(rng.random(30_000) < np.where(codes == 1, 0.6, 0.005), np.nan, rng.normal(size=30_000))
    table = pa.table({"x": x})
    assert find_leaks(table, infer_columns(table).columns, codes, ["a", "b"]) == []
