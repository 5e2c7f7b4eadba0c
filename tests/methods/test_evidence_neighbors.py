"""Neighbors are kept where rows that are left out say that they pay, and nowhere else."""

import numpy as np
import pytest

from qmedoid import EvidenceClassifier, MedoidClassifier
from qmedoid.exceptions import ParameterError
from qmedoid.methods.evidence.design import EvidenceSettings, Scaled
from qmedoid.methods.evidence.fit import choose_neighbors, fit_evidence

SMALL = EvidenceSettings(n_medoids=12, n_pairs=1, n_triples=0)


def squares(n, n_classes=2, seed=4):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 5, size=(n, 2))
    return X, (np.floor(X[:, 0]) + np.floor(X[:, 1])).astype(int) % n_classes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_they_tell_apart_what_few_medoids_cannot(n_classes):
    X, codes = squares(600, n_classes)
    rows, own = squares(400, n_classes, seed=5)
    right = [
        (
            fit_evidence(X, codes, n_classes, EvidenceSettings(**settings), 0).model.score(rows).scores.argmin(axis=1)
            == own
        )
        for settings in ({"n_medoids": 12, "n_neighbors": 0}, {"n_medoids": 12})
    ]
    assert right[1].mean() > right[0].mean() + 0.1
    assert right[1].mean() > 0.8


@pytest.mark.parametrize("n_classes", [2, 4])
def test_they_are_not_kept_where_classes_are_drawn_or_lie_on_both_sides_of_a_plane(n_classes):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 4))
    drawn = rng.integers(0, n_classes, 400)
    assert fit_evidence(X, drawn, n_classes, SMALL, 0).model.neighbors is None
    chances = 1 / (1 + np.exp(-3 * X[:, 0]))
    sides = (rng.random(400) < chances).astype(int)
    assert fit_evidence(X, sides, 2, SMALL, 0).model.neighbors is None


def test_what_is_held_out_is_what_the_others_say():
    """Of a row that is far from all but its twins, the held-out score is that of the model without the row."""
    X, codes = squares(300)
    fitted = fit_evidence(X, codes, 2, SMALL, 0)
    known = fitted.model.neighbors
    assert known is not None
    space = fitted.model.rank_scaling.apply(X) if known.by_rank else fitted.model.scaled(X)[1]
    plain = fit_evidence(X, codes, 2, EvidenceSettings(n_medoids=12, n_pairs=1, n_triples=0, n_neighbors=0), 0)
    for row in range(0, 300, 37):
        distances = np.sqrt(((space - space[row]) ** 2).sum(axis=1))
        distances[row] = np.inf
        nearest = np.argsort(distances, kind="stable")[: known.n_nearest]
        near = (distances[nearest] / known.length + 0.05) ** -3
        added = near / (1 + near.sum()) @ known.amounts[nearest]
        expected = plain.out_of_fold[row] + np.array([0.5, -0.5]) * added
        np.testing.assert_allclose(fitted.out_of_fold[row], expected, rtol=1e-9, atol=1e-9)


def test_no_more_rows_are_kept_than_asked_for():
    X, codes = squares(600)
    model = fit_evidence(X, codes, 2, EvidenceSettings(n_medoids=12, n_neighbors=150), 0).model
    assert model.neighbors is not None
    assert len(model.neighbors.rows) == 150
    np.testing.assert_array_equal(model.neighbors.records, X[model.neighbors.rows])
    np.testing.assert_array_equal(model.neighbors.classes, codes[model.neighbors.rows])


def test_rows_beyond_the_sample_are_judged_with_neighbors():
    X, codes = squares(700)
    fitted = fit_evidence(X, codes, 2, EvidenceSettings(n_medoids=12, max_rows=400), 0)
    known = fitted.model.neighbors
    assert known is not None
    outside = np.setdiff1d(np.arange(700), known.rows)
    assert len(outside) == 300
    np.testing.assert_array_equal(fitted.out_of_fold[outside], fitted.model.score(X).scores[outside])


def test_twins_few_rows_and_no_columns_have_no_neighbors():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 2))
    codes = np.arange(60) % 2
    twins = Scaled(np.zeros((60, 1)), np.zeros((60, 1)))
    assert choose_neighbors(scores, 1, codes, twins, np.arange(60)) is None
    spread = Scaled(rng.normal(size=(60, 1)), rng.normal(size=(60, 1)))
    assert choose_neighbors(scores, 1, codes, spread, np.arange(5)) is None
    empty = Scaled(np.zeros((60, 0)), np.zeros((60, 0)))
    assert choose_neighbors(scores, 1, codes, empty, np.arange(60)) is None


def test_tiny_models_and_0_keep_none():
    X, codes = squares(400)
    for settings in ({"n_medoids": 6, "n_neighbors": 0}, {"n_neighbors": 0}):
        fitted = MedoidClassifier(method=EvidenceClassifier(**settings), random_state=0).fit(X, codes)
        assert fitted.estimator_.model_.parts[0].neighbors is None
    asked = MedoidClassifier(method=EvidenceClassifier(n_medoids=6, n_neighbors=300), random_state=0).fit(X, codes)
    assert len(asked.estimator_.model_.parts[0].neighbors.rows) == 300
    with pytest.raises(ParameterError, match="n_neighbors"):
        MedoidClassifier(method=EvidenceClassifier(n_neighbors="all")).fit(X, codes)
