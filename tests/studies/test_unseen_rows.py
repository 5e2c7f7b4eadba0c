"""Test rows are seen by nothing: neither fits, SMOTE and searches, nor the thresholds that validation rows choose."""

import dataclasses

import numpy as np
import pytest
from benchmarks.datasets import Dataset, load_creditcard_sample, load_dataset
from benchmarks.studies import baselines, ours
from benchmarks.studies.baselines import RARE_BASELINES, SMOTE_SHARE
from benchmarks.studies.cells import CHOICES, Cell, Split, fraud_metrics, paper_split
from benchmarks.studies.paper import FRAUD_METHODS, SMALL_METHODS


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


@pytest.fixture
def run_on(monkeypatch):
    """Runs a method on a given split, whatever the labels are by then."""

    def run_on(methods, name, data, split, seed):
        for module in (baselines, ours):
            monkeypatch.setattr(module, "split_of", lambda *_: split)
        return methods[name].run(data, Cell("", "", "random", seed, name), **methods[name].settings)

    return run_on


@pytest.fixture
def run_fraud(run_on, monkeypatch):
    """What a method on the frauds hands to the metrics, and what else it keeps."""

    def handed(_data, _split, scores, fixed, rows):
        return {"scores": scores, "fixed": fixed, "rows": rows.tolist()}

    for module in (baselines, ours):
        monkeypatch.setattr(module, "fraud_metrics", handed)
    return lambda name, data: run_on(FRAUD_METHODS, name, data, SPLIT, 3)


@pytest.mark.parametrize("name", FRAUD_METHODS)
def test_no_fit_on_the_frauds_sees_a_test_row(name, run_fraud):
    before, after = (run_fraud(name, data) for data in (FEW, spoilt(FEW, SPLIT.test)))
    first, second = before.pop("scores"), after.pop("scores")
    assert np.array_equal(first[SPLIT.fit], second[SPLIT.fit])
    assert before == after
    assert not np.array_equal(first[SPLIT.test], second[SPLIT.test])
    with_validation = name == "RandomForest, fitted on 75 %"
    assert before["rows"] == (SPLIT.fit if with_validation else SPLIT.train).tolist()


@pytest.mark.parametrize("name", RARE_BASELINES)
def test_plain_classifiers_do_not_see_validation_rows_either(name, run_fraud):
    before, after = (run_fraud(name, data)["scores"] for data in (FEW, spoilt(FEW, SPLIT.val)))
    others = np.concatenate([SPLIT.train, SPLIT.test])
    assert np.array_equal(before[others], after[others])


@pytest.mark.parametrize("name", [name for name in RARE_BASELINES if "SMOTE" in name])
def test_smote_fills_up_training_rows_alone(name, run_fraud, monkeypatch):
    from imblearn.over_sampling import SMOTE

    seen, resample = [], SMOTE.fit_resample

    def recorded(self, X, y, **others):
        made = resample(self, X, y, **others)
        seen.append((len(y), int(np.sum(y)), len(made[1]), int(np.sum(made[1]))))
        return made

    monkeypatch.setattr(SMOTE, "fit_resample", recorded)
    run_fraud(name, FEW)
    n, n_frauds = len(SPLIT.train), int(FEW.y[SPLIT.train].sum())
    assert [one[:2] for one in seen] == [(n, n_frauds)]
    for rows, own, made_rows, made_own in seen:
        assert made_own == int(SMOTE_SHARE * (rows - own)) > own
        assert made_rows - made_own == rows - own


class TestThresholds:
    """A method with given scores: which rows choose, and which are judged."""

    @pytest.fixture
    def run(self):
        return lambda scores: fraud_metrics(FEW, SPLIT, scores, 0.5, SPLIT.train)

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
                assert all(found[name] != thresholds[name] for name in CHOICES)
            else:
                assert found == thresholds

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
        assert ("curves" in found["all"], "curves" in found["train"]) == (True, False)
        # Matched alerts are as many as the rate allows; a floor that validation rows cannot reach is left out.
        assert sum(found["val"]["counts"]["alert rate 1.31 %"][:2]) == int(0.0131 * len(SPLIT.val)) == 1
        without = run(-scores - 50 * FEW.y)
        assert "precision at least 0.5" not in {*without["thresholds"], *without["test"]["counts"]}
        assert "best F1" in without["thresholds"]


@pytest.mark.parametrize("name", SMALL_METHODS)
def test_no_fit_on_a_small_data_set_sees_a_test_row(name, run_on):
    """Rows are decided one by one: half of the test rows gives the same, whatever stands in the other half."""
    data = load_dataset("wine")
    split = paper_split(data.y, 1)
    half, rest = split.test[::2], split.test[1::2]
    both = run_on(SMALL_METHODS, name, data, split, 1)
    first = run_on(SMALL_METHODS, name, spoilt(data, rest), Split(split.train, split.val, half), 1)
    second = run_on(SMALL_METHODS, name, spoilt(data, half), Split(split.train, split.val, rest), 1)
    sums = np.add(first["test"]["confusion"], second["test"]["confusion"])
    assert both["test"]["confusion"] == sums.tolist()
    for key in set(both) - {"test"}:
        assert both[key] == first[key] == second[key]
