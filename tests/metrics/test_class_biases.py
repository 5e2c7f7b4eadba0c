"""Class biases of three and more classes, for a metric or by cost."""

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score

from qmedoid import EvidenceClassifier, load
from qmedoid.exceptions import ParameterError
from qmedoid.metrics.thresholds import figures_by_flips, fit_class_biases
from qmedoid.model.decision import Decision


def scored(n=4000, seed=0):
    """Calibrated scores of three classes, one of which is rare, and classes drawn from their probabilities."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 3)) * 1.5 + np.array([1.0, 0.5, -2.0])
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return scores, (rng.random((n, 1)) > chances.cumsum(axis=1)).sum(axis=1)


FIGURES = {"macro_f1": lambda y, p: f1_score(y, p, average="macro"), "balanced_accuracy": balanced_accuracy_score}


@pytest.mark.parametrize("rule", FIGURES)
def test_biases_raise_the_figure_of_new_rows(rule):
    scores, codes = scored()
    new, labels = scored(seed=1)
    biases = fit_class_biases(scores, codes, rule)
    likeliest, biased = (FIGURES[rule](labels, (new + b).argmax(axis=1)) for b in (0.0, biases))
    assert biased > likeliest + 0.01
    assert biases.mean() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("rule", ["macro_f1", "balanced_accuracy", "cost"])
def test_figures_after_each_flip_are_those_of_counting_again(rule):
    rng = np.random.default_rng(0)
    targets, rival = rng.dirichlet(np.ones(4), size=12), rng.choice([0, 2, 3], size=12)
    cost = rng.random((4, 4))
    found = figures_by_flips(targets, rival, 1, rule, cost)
    for flips in range(13):
        called = np.where(np.arange(12) < flips, 1, rival)
        confusion = np.array([[targets[called == j, i].sum() for j in range(4)] for i in range(4)])
        support, calls, hits = confusion.sum(axis=1), confusion.sum(axis=0), np.diag(confusion)
        if rule == "cost":
            start = np.array([[targets[rival == j, i].sum() for j in range(4)] for i in range(4)])
            wanted = (cost * start).sum() - (cost * confusion).sum()
        else:
            wanted = np.mean(hits / support if rule == "balanced_accuracy" else 2 * hits / (calls + support))
        assert found[flips] == pytest.approx(wanted, abs=1e-12)


def test_decision_with_biases_keeps_its_probabilities_and_its_calls_under_a_shift():
    scores, _ = scored(200)
    priors, biases = np.array([0.5, 0.4, 0.1]), np.array([-0.5, 0.0, 0.5])
    plain, biased = Decision((0, 1, 2), priors=priors), Decision((0, 1, 2), priors=priors, biases=biases)
    np.testing.assert_array_equal(biased.probabilities(scores), plain.probabilities(scores))
    codes, _, margins = biased.decide(scores)
    np.testing.assert_array_equal(codes, (scores + biases).argmax(axis=1))
    assert (margins >= 0).all()
    shifted = biased.at_priors([0.2, 0.2, 0.6])
    np.testing.assert_array_equal(shifted.decide(scores)[0], codes)
    assert not np.allclose(shifted.probabilities(shifted.shifted_scores(scores)), biased.probabilities(scores))


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    codes = rng.choice(3, p=[0.6, 0.35, 0.05], size=900)
    X = rng.normal(size=(900, 4)) + np.eye(3)[codes] @ rng.normal(size=(3, 4))
    return X, np.array(["a", "b", "c"])[codes]


@pytest.mark.parametrize("point", ["macro_f1", {"cost": [[0, 1, 1], [1, 0, 1], [9, 9, 0]]}])
def test_classifier_of_three_classes_takes_an_operating_point(fitted, point, tmp_path):
    X, y = fitted
    plain = EvidenceClassifier(random_state=0).fit(X, y)
    biased = EvidenceClassifier(operating_point=point, random_state=0).fit(X, y)
    np.testing.assert_array_equal(biased.predict_proba(X), plain.predict_proba(X))
    assert (biased.predict(X) == "c").sum() > (plain.predict(X) == "c").sum()
    loaded = load(biased.save(tmp_path / "three.qmedoid"))
    np.testing.assert_array_equal(loaded.predict(X), biased.predict(X))
    moved = np.flatnonzero(biased.predict(X) != plain.predict(X))[:1]
    explained = loaded.explain(X[moved])
    total = sum(one["contribution"] for one in explained["columns"]) + sum(explained["terms"].values())
    assert total == pytest.approx(explained["margin"], abs=1e-9)
    assert explained["terms"]["operating point"] != 0


@pytest.mark.parametrize("point", ["f1", 0.3, {"alert_rate": 0.1}, {"cost": 2.0}, {"cost": [[0, 1], [1, 0]]}])
def test_operating_points_of_two_classes_are_refused_for_three(fitted, point):
    X, y = fitted
    with pytest.raises(ParameterError, match="'operating_point' of 3 classes"):
        EvidenceClassifier(operating_point=point).fit(X, y)
