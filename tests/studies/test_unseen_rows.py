"""Test rows are seen by nothing: neither fits, SMOTE and searches, nor the thresholds that validation rows choose."""

import dataclasses

import numpy as np
import pytest

from qmedoid.exceptions import DataError
from qmedoid.studies.datasets import Dataset, load_creditcard_sample, load_dataset
from qmedoid.studies.rare_baselines import RARE_BASELINES, SMOTE_SHARE
from qmedoid.studies.reproduction import fraud, small
from qmedoid.studies.reproduction.cells import Cell
from qmedoid.studies.reproduction.fraud import FraudMethod, Scored, run_fraud, split_of
from qmedoid.studies.splits import Split, paper_split

CELL = Cell("fraud", "creditcard-sample", "random", 3, "made up", False)


def few_payments():
    """Some hundred payments, few enough frauds among them to be filled up, in a few columns."""
    whole = load_creditcard_sample()
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.choice(np.flatnonzero(whole.y == label), n) for label, n in ((0, 700), (1, 40))])
    rows = np.sort(rows)
    names = whole.feature_names[:6]
    return Dataset("few", whole.X[rows, :6], whole.y[rows], names, whole.class_names, whole.times[rows])


FEW = few_payments()
SPLIT = paper_split(FEW.y, 3)


def spoilt(data, rows):
    """The same data with other numbers and other labels in some rows."""
    X, y = data.X.copy(), data.y.copy()
    X[rows] = np.random.default_rng(1).normal(5, 100, X[rows].shape)
    y[rows] = y[rows][::-1] if len(np.unique(y)) > 2 else 1 - y[rows]
    return dataclasses.replace(data, X=X, y=y)


@pytest.mark.parametrize("name", fraud.METHODS)
def test_no_fit_on_the_frauds_sees_a_test_row(name):
    method = fraud.METHODS[name]
    before, after = (method.run(data, SPLIT, 3) for data in (FEW, spoilt(FEW, SPLIT.test)))
    assert np.array_equal(before.scores[SPLIT.fit], after.scores[SPLIT.fit])
    assert (before.fixed, before.chosen) == (after.fixed, after.chosen)
    assert not np.array_equal(before.scores[SPLIT.test], after.scores[SPLIT.test])


@pytest.mark.parametrize("name", RARE_BASELINES)
def test_plain_classifiers_do_not_see_validation_rows_either(name):
    method = fraud.METHODS[name]
    before, after = (method.run(data, SPLIT, 3) for data in (FEW, spoilt(FEW, SPLIT.val)))
    others = np.concatenate([SPLIT.train, SPLIT.test])
    assert np.array_equal(before.scores[others], after.scores[others])


@pytest.mark.parametrize("name", [name for name, one in RARE_BASELINES.items() if one.smote])
def test_smote_fills_up_training_rows_alone(name, monkeypatch):
    from imblearn.over_sampling import SMOTE

    seen, resample = [], SMOTE.fit_resample

    def recorded(self, X, y, **others):
        made = resample(self, X, y, **others)
        seen.append((len(y), int(np.sum(y)), len(made[1]), int(np.sum(made[1]))))
        return made

    monkeypatch.setattr(SMOTE, "fit_resample", recorded)
    fraud.METHODS[name].run(FEW, SPLIT, 3)
    n, n_frauds = len(SPLIT.train), int(FEW.y[SPLIT.train].sum())
    assert [one[:2] for one in seen] == [(n, n_frauds)]
    for rows, own, made_rows, made_own in seen:
        assert made_own == int(SMOTE_SHARE * (rows - own)) > own
        assert made_rows - made_own == rows - own


class TestThresholds:
    """A method with given scores: which rows choose, and which are judged."""

    @pytest.fixture
    def run(self, monkeypatch):
        def run(scores):
            method = FraudMethod(lambda *_: Scored(scores, 0.5, {"kept": 1}), False, True, 1.0)
            monkeypatch.setitem(fraud.METHODS, "made up", method)
            return run_fraud(CELL, FEW)

        return run

    @pytest.fixture
    def scores(self):
        return np.random.default_rng(2).normal(size=len(FEW.y)) + 3 * FEW.y

    def test_validation_rows_alone_choose(self, run, scores):
        thresholds = run(scores)["thresholds"]
        for part, changes in (("train", False), ("test", False), ("val", True)):
            other, rows = scores.copy(), getattr(SPLIT, part)
            other[rows] += 0.37
            found = run(other)["thresholds"]
            if changes:
                assert all(found[name] != thresholds[name] for name in fraud.CHOICES)
            else:
                assert found == thresholds

    def test_matched_alerts_are_as_many_as_the_rate_allows(self, run, scores):
        found = run(scores)
        tp, fp, _, _ = found["val"]["counts"]["alert rate 1.31 %"]
        assert tp + fp == int(0.0131 * len(SPLIT.val)) == 1

    def test_counts_are_of_the_rows_that_they_are_said_to_be(self, run, scores):
        found = run(scores)
        parts = {"all": np.arange(len(FEW.y)), "train": SPLIT.train, "val": SPLIT.val, "test": SPLIT.test}
        for part, rows in parts.items():
            assert found[part]["rows"] == len(rows)
            for name, threshold in found["thresholds"].items():
                alert, positive = scores[rows] >= threshold, FEW.y[rows] == 1
                expected = [(alert & positive).sum(), (alert & ~positive).sum(), (~alert & positive).sum()]
                assert found[part]["counts"][name] == [*expected, (~alert & ~positive).sum()]
        assert found["thresholds"]["fixed"] == 0.5
        assert found["kept"] == 1
        assert ("curves" in found["all"], "curves" in found["train"]) == (True, False)

    def test_a_floor_that_validation_rows_cannot_reach_is_left_out(self, run, scores):
        found = run(-scores - 50 * FEW.y)
        assert "precision at least 0.5" not in found["thresholds"]
        assert "precision at least 0.5" not in found["test"]["counts"]
        assert "best F1" in found["thresholds"]


def test_a_split_by_time_needs_times():
    with pytest.raises(DataError, match="no times"):
        split_of(load_dataset("wine"), "time", 0)


@pytest.mark.parametrize("name", small.METHODS)
def test_no_fit_on_a_small_data_set_sees_a_test_row(name):
    """Rows are decided one by one: half of the test rows gives the same, whatever stands in the other half."""
    data = load_dataset("wine")
    split, method = paper_split(data.y, 1), small.METHODS[name]
    half, rest = split.test[::2], split.test[1::2]
    whole = method.run(data, split, 1)
    first = method.run(spoilt(data, rest), Split(split.train, split.val, half), 1)
    second = method.run(spoilt(data, half), Split(split.train, split.val, rest), 1)
    sums = np.add(first["test"]["confusion"], second["test"]["confusion"])
    assert whole["test"]["confusion"] == sums.tolist()
    for key in set(whole) - {"test"}:
        assert whole[key] == first[key] == second[key]


@pytest.mark.parametrize("name", ["printed", "LogReg"])
def test_a_cell_takes_the_split_of_its_seed(name):
    data = load_dataset("wine")
    cells = [Cell("small", "wine", "random", seed, name, name == "printed") for seed in (0, 1)]
    found = [small.run_small(cell, data) for cell in cells]
    for seed, result in enumerate(found):
        assert result == small.METHODS[name].run(data, paper_split(data.y, seed), seed)
        assert np.sum(result["test"]["confusion"], axis=1).tolist() == [15, 18, 12]
    assert found[0] != found[1]
