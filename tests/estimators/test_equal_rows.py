"""Rows that belong together are left out together by every method: a table that is doubled is the same table."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from qmedoid import MedoidClassifier, NearestMedoidClassifier, VariationalClassifier
from qmedoid.estimators.evidence import EvidenceClassifier
from qmedoid.estimators.folds import stratified_splits
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.estimators.sum import SumClassifier
from qmedoid.exceptions import DataError, QMedoidWarning
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence

CIRCUIT = VariationalClassifier(n_steps=20, n_reps=1, n_seeds=1, cv=3)
QUICK = {"n_anchors": 3, "subset_sizes": (2, 2), "max_passes": 1, "n_models": 1}
METHODS = {
    "evidence": {"method": EvidenceClassifier()},
    "evidence, folds": {"method": EvidenceClassifier(cv=3, n_medoids=16)},
    "evidence, circuit": {"method": EvidenceClassifier(n_medoids=16), "refine": "always", "variational": CIRCUIT},
    "sum": {"method": SumClassifier()},
    "rare": {"method": RareEventClassifier(), "refine": "never"},
    "rare, folds": {"method": RareEventClassifier(cv=3), "refine": "never"},
    "nearest": {"method": NearestMedoidClassifier(**QUICK), "refine": "never"},
    "convex, one split": {"method": NearestMedoidClassifier.paper(**QUICK), "refine": "never"},
}


def drawn(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] * X[:, 1] + X[:, 2] + 0.7 * rng.normal(size=n) > 0.6).astype(int)


def fitted(method, X, y, groups=None, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MedoidClassifier(**METHODS[method], random_state=0, **changes).fit(X, y, groups=groups)


def loss(model, X, y):
    return -np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()


@pytest.mark.parametrize(
    ("method", "n_copies"), [*((name, 2) for name in METHODS), ("evidence", 3), ("rare", 3), ("nearest", 3)]
)
def test_copies_of_a_table_change_neither_probabilities_nor_expected_figures(method, n_copies):
    """Log-loss of new rows within 0.03, expected figures within the intervals of one table, which are as wide."""
    X, y = drawn(300)
    new, truth = drawn(2000, seed=1)
    once = fitted(method, X, y)
    copies = fitted(method, np.tile(X, (n_copies, 1)), np.tile(y, n_copies))
    assert abs(loss(copies, new, truth) - loss(once, new, truth)) < 0.03
    for figure in ("precision", "recall", "alert_rate"):
        before, after = getattr(once.expected_, figure), getattr(copies.expected_, figure)
        assert before.low <= after.value <= before.high
        assert after.high - after.low > 0.8 * (before.high - before.low)


@pytest.mark.parametrize("method", METHODS)
def test_group_is_never_on_both_sides(method):
    """Copies with labels that are noise, beside the first of each: whoever finds the copy knows the label."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 5)), rng.integers(0, 2, 150)
    X, y, groups = np.concatenate([X, X + 1e-9]), np.tile(y, 2), np.tile(np.arange(150), 2)
    counts = fitted(method, X, y, groups).expected_.counts
    assert (counts.tp + counts.tn) / sum(counts) < 0.5 + 4.0 * np.sqrt(0.25 / 150)


def test_copies_of_a_raw_table_with_a_large_category_change_little():
    rng = np.random.default_rng(0)
    X, y = drawn(400)
    shops = np.array([f"shop {number}" for number in rng.integers(0, 60, 400)])
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "shop": shops})
    once = MedoidClassifier(random_state=0).fit(table, y)
    twice = MedoidClassifier(random_state=0).fit(pd.concat([table, table]), np.tile(y, 2))
    for figure in ("precision", "recall", "alert_rate"):
        before, after = getattr(once.expected_, figure), getattr(twice.expected_, figure)
        assert before.low <= after.value <= before.high
    assert any("400 of 800 rows are equal" in note for note in twice.notes_)
    assert not any("equal" in note for note in once.notes_)


def test_equal_rows_are_told_of_and_given_groups_are_not():
    X, y = drawn(60)
    for model in (EvidenceClassifier(), NearestMedoidClassifier(max_passes=0)):
        with pytest.warns(QMedoidWarning, match="60 of 120 rows are equal"):
            model.fit(np.tile(X, (2, 1)), np.tile(y, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", QMedoidWarning)
        model = MedoidClassifier(random_state=0).fit(X, y, groups=np.arange(60) // 2)
    assert model.expected_.draws_per_row == 0.5


@pytest.mark.parametrize("groups", [np.zeros(60), np.arange(59), [None, *range(59)]])
def test_groups_that_cannot_be_left_out_are_refused(groups):
    X, y = drawn(60)
    for model in (MedoidClassifier(), NearestMedoidClassifier(), VariationalClassifier(), EvidenceClassifier()):
        with pytest.raises(DataError, match="group"):
            model.fit(X, y, groups=groups)


def test_labels_of_groups_mean_nothing():
    X, y = drawn(120)
    groups = np.arange(120) // 3
    numbers = fitted("evidence", X, y, groups)
    names = fitted("evidence", X, y, [f"customer {999 - group}" for group in groups])
    np.testing.assert_array_equal(numbers.predict_proba(X), names.predict_proba(X))
    assert numbers.expected_ == names.expected_


def test_neighbors_are_not_of_the_group_of_the_row():
    """Rows of two copies in two far places each: their neighbors are their copies, whose labels are noise."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    X, y, groups = np.tile(X, (3, 1)), np.tile(y, 3), np.tile(np.arange(200), 3)
    blind = fit_evidence(X, y, 2, EvidenceSettings(), 0)
    sighted = fit_evidence(X, y, 2, EvidenceSettings(), 0, None, groups)
    assert sighted.model.neighbors is None
    assert ((blind.out_of_fold[:, 0] > blind.out_of_fold[:, 1]) == y).mean() > 0.9
    assert ((sighted.out_of_fold[:, 0] > sighted.out_of_fold[:, 1]) == y).mean() < 0.65


@pytest.mark.parametrize("cv", [4, KFold(4, shuffle=True, random_state=0)])
def test_splits_keep_groups_together(cv):
    groups = np.random.default_rng(0).integers(0, 40, 200)
    groups = np.unique(groups, return_inverse=True)[1]
    X, y = drawn(200)
    splits = stratified_splits(cv, X, y, np.arange(2), np.random.default_rng(0), groups)
    for train, val in splits:
        assert not set(groups[train]) & set(groups[val])
        assert len(train) + len(val) == 200
    assert sorted(np.concatenate([val for _, val in splits])) == list(range(200))


def test_splits_that_cut_a_group_in_two_are_told_of():
    X, y = drawn(60)
    splits = [(np.arange(30, 60), np.arange(30)), (np.arange(30), np.arange(30, 60))]
    with pytest.warns(QMedoidWarning, match="same group as 30 of its 30"):
        MedoidClassifier(method=EvidenceClassifier(cv=splits)).fit(X, y, groups=np.arange(60) % 30)
