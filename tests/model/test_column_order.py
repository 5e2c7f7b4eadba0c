"""Columns in the order of their values: a model is the same model, whatever the order of the table."""

import numpy as np
import pytest

from qmedoid import EvidenceClassifier, MedoidClassifier, RareEventClassifier
from qmedoid.kernels.ties import order_by_content

STAGES = {
    "evidence": EvidenceClassifier(n_medoids=12, n_pairs=3, n_triples=2),
    "rare": RareEventClassifier(comparisons=False, n_common=40, n_hard=10),
}


def rows_with_levels(n=260, seed=0):
    """Numbers, and the levels of a category, which make groups of columns that are equally good."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, size=n)
    level = np.where(rng.random(n) < 0.5, codes, rng.integers(0, 3, size=n))
    numbers = rng.normal(size=(n, 4)) + codes[:, None] * [0.3, 0.0, 1.0, 0.5]
    return np.column_stack([numbers, level[:, None] == np.arange(3)]).astype(np.float64), codes


@pytest.fixture(scope="module", params=STAGES)
def case(request):
    method = STAGES[request.param]
    X, codes = rows_with_levels()
    fitted = MedoidClassifier(method=method, refine="never", random_state=0).fit(X, codes)
    return fitted.estimator_.model_.parts[0], X, codes, method


def test_the_order_depends_on_what_columns_hold_alone():
    X, _ = rows_with_levels()
    content = X[:, order_by_content(X)]
    for seed in range(5):
        mixed = X[:, np.random.default_rng(seed).permutation(X.shape[1])]
        np.testing.assert_array_equal(mixed[:, order_by_content(mixed)], content)


def test_the_last_digits_change_no_order():
    X, _ = rows_with_levels()
    rng = np.random.default_rng(0)
    nudged = X + X * np.finfo(float).eps * rng.integers(-4, 5, size=X.shape)
    assert not np.array_equal(nudged, X)
    np.testing.assert_array_equal(order_by_content(nudged), order_by_content(X))


def test_columns_that_differ_in_late_rows_alone_have_an_order():
    X = np.zeros((6000, 3))
    X[5000, 0], X[5500, 2] = 1.0, 2.0
    content = X[:, order_by_content(X)]
    np.testing.assert_array_equal(X[:, ::-1][:, order_by_content(X[:, ::-1])], content)


def test_a_fit_to_the_columns_in_another_order_is_the_same_model(case):
    model, X, codes, method = case
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(X.shape[1])
        other = MedoidClassifier(method=method, refine="never", random_state=0).fit(X[:, order], codes)
        stage = other.estimator_.model_.parts[0]
        np.testing.assert_array_equal(stage.medoid_rows, model.medoid_rows)
        for one, same in zip(bits(model), bits(stage), strict=True):
            np.testing.assert_array_equal(same, one)
        groups = {tuple(sorted(order[list(columns)])) for columns in stage.facts["groups"]}
        assert groups == {tuple(sorted(columns)) for columns in model.facts["groups"]}
        one, same = model.score(X, channels=True), stage.score(X[:, order], channels=True)
        np.testing.assert_allclose(same.scores, one.scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(same.nearest, one.nearest)
        np.testing.assert_allclose(same.channels.distance, one.channels.distance, rtol=1e-9)


def bits(stage):
    """What was fitted and has no columns."""
    if not hasattr(stage, "groups"):
        return [np.array([stage.intercept]), np.sort(stage.weights)]
    return [stage.intercepts, stage.terms.weights, stage.terms.center, stage.terms.length]
