"""Rare events by prototypes and comparisons, weighted by out-of-fold rows."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from qmedoid import MedoidClassifier, RareEventClassifier, VariationalClassifier
from qmedoid.methods.rare.part import RarePart

SMALL = {"n_common": 60, "n_hard": 30, "random_state": 0}
CIRCUIT = VariationalClassifier(n_steps=10, n_seeds=1, n_reps=1, n_qubits=2, cv=2)


def stepped(n=3000, seed=0):
    """Rare rows lie in a box of three columns, whose sides distances to prototypes follow badly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    inside = (X[:, 0] > 0.5) & (X[:, 1] > 0) & (X[:, 2] < -0.3)
    return X, (inside & (rng.random(n) < 0.8)).astype(int)


@pytest.fixture(scope="module", params=[False, True], ids=["second class", "first class"])
def fitted(request):
    X, y = stepped()
    y = 1 - y if request.param else y
    return X, y, RareEventClassifier(**SMALL).fit(X[::2], y[::2])


def test_comparisons_make_new_rows_likelier_where_rare_rows_lie_in_a_box(fitted):
    X, y, classifier = fitted
    alone = RareEventClassifier(comparisons=False, **SMALL).fit(X[::2], y[::2])
    assert isinstance(alone.model_.parts[0], RarePart)
    assert alone.weights_ == {"rare": 1.0}
    assert set(classifier.weights_) == {"rare", "comparisons"}
    new, labels = X[1::2], y[1::2]
    assert log_loss(labels, classifier.predict_proba(new)) < 0.9 * log_loss(labels, alone.predict_proba(new))


def test_scores_are_the_weighted_sum_of_prototypes_and_comparisons(fitted):
    X, y, classifier = fitted
    alone, model = RareEventClassifier(comparisons=False, **SMALL).fit(X[::2], y[::2]), classifier.model_
    rare, trees = alone.model_.score(X).scores, model.parts[1].score(X).scores
    wanted = model.weights[0] * rare + model.weights[1] * trees - model.biases
    np.testing.assert_allclose(model.score(X).scores, wanted, atol=1e-12)
    assert model.parts[0].rare_class == alone.model_.parts[0].rare_class == int(y.mean() < 0.5)


def test_the_order_of_the_columns_changes_nothing(fitted):
    X, y, classifier = fitted
    order = np.array([3, 0, 4, 2, 1])
    moved = RareEventClassifier(**SMALL).fit(X[::2, order], y[::2])
    np.testing.assert_allclose(moved.predict_proba(X[:, order]), classifier.predict_proba(X), atol=1e-9)


def test_a_circuit_corrects_the_sum_for_the_likeliest_events():
    X, y = stepped(1500)
    settings = {"method": RareEventClassifier(**SMALL), "variational": CIRCUIT, "refine": 0.05, "random_state": 0}
    model = MedoidClassifier(**settings).fit(X, y).model_
    decided = model.decide(X)
    scores, picked = decided.scores, decided.by_circuit
    log_odds = model.calibration.apply(model.score(X).scores) @ np.array([-1.0, 1.0])
    assert model.weights[1] > 0
    assert 0 < picked.mean() < 0.2
    assert log_odds[picked].min() >= log_odds[~picked].max()
    np.testing.assert_array_equal((scores @ np.array([-1.0, 1.0]))[~picked], log_odds[~picked])


def test_nothing_is_added_where_no_rare_row_can_be_held_out():
    X, y = stepped(400)
    rare = np.flatnonzero(y)[:2]
    kept = np.append(np.flatnonzero(y == 0), rare)
    with pytest.warns(UserWarning, match="none of them can be held out"):
        classifier = RareEventClassifier(**SMALL).fit(X[kept], y[kept])
    assert isinstance(classifier.model_.parts[0], RarePart)
    assert len(classifier.model_.parts) == 1


def test_noise_stays_noise():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(1200, 4)), (rng.random(1200) < 0.1).astype(int)
    classifier = RareEventClassifier(**SMALL).fit(X, y)
    new, labels = rng.normal(size=(4000, 4)), (rng.random(4000) < 0.1).astype(int)
    chance = -np.mean(labels * np.log(y.mean()) + (1 - labels) * np.log(1 - y.mean()))
    assert log_loss(labels, classifier.predict_proba(new)) < chance + 0.01
