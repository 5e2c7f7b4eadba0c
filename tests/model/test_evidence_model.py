"""An evidence model is what it says: a sum of channels of distances, each measurable by the compact SWAP test."""

import numpy as np
import pytest

from qmedoid import EvidenceClassifier, MedoidClassifier, compact_swap_test
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.evidence.part import CLIP

SMALL = EvidenceSettings(n_medoids=24, n_pairs=3, n_triples=2)


def table(n_classes, n=180, columns=5, seed=3):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, columns)) + codes[:, None] * np.linspace(-1.0, 1.0, columns)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = X[:, 2] > 0
    return X, codes


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, codes = table(request.param)
    return fit_evidence(X, codes, request.param, SMALL, 0).model, X


def test_the_outputs_are_the_sum_written_out_term_by_term(fitted):
    model, X = fitted
    ranks, own_ranks = model.rank_scaling.apply(X), model.rank_scaling.apply(model.medoids)
    plain, own_plain = (np.clip(model.linear_scaling.apply(rows), -CLIP, CLIP) for rows in (X, model.medoids))
    expected = np.tile(model.intercepts, (len(X), 1))
    terms = model.terms
    for j in range(len(terms)):
        group = model.groups[terms.group[j]]
        rows, own = (ranks, own_ranks) if group.by_rank else (plain, own_plain)
        square = sum(
            weight * (rows[:, column] - own[terms.medoid[j], column]) ** 2
            for column, weight in zip(group.columns, group.weights, strict=True)
        )
        channel = [square, np.sqrt(square), np.exp(-np.sqrt(square) / terms.length[j])][terms.channel[j]]
        expected += (channel - terms.center[j])[:, None] * terms.weights[j]
    scores = np.hstack([expected / 2, -expected / 2]) if model.n_classes == 2 else -expected
    np.testing.assert_allclose(model.score(X).scores, scores, rtol=1e-9, atol=1e-9)


def test_every_distance_is_measured_by_the_compact_swap_test_on_the_columns_of_its_group(fitted):
    model, X = fitted
    measured = []

    def swap_test(rows, medoids):
        measured.append(rows.shape[1])
        return compact_swap_test(rows, medoids)

    np.testing.assert_allclose(model.score_measured(X, swap_test).scores, model.score(X).scores, rtol=1e-6, atol=1e-6)
    assert sorted(measured) == sorted(len(group.columns) for group in model.groups)


def test_the_kernel_and_the_definition_agree(fitted):
    model, X = fitted
    by_kernel, by_definition = model.score(X, channels=True), model.score_measured(X, compact_swap_test)
    np.testing.assert_allclose(by_kernel.scores, by_definition.scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by_kernel.channels.distance, by_definition.channels.distance, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(by_kernel.nearest, by_definition.nearest)


def test_medoids_are_training_rows_of_their_classes_and_no_more_than_allowed(fitted):
    model, X = fitted
    codes = table(model.n_classes)[1]
    np.testing.assert_array_equal(model.medoids, X[model.medoid_rows])
    np.testing.assert_array_equal(model.medoid_classes, codes[model.medoid_rows])
    assert len(np.unique(model.medoid_rows)) == len(model.medoid_rows) <= 24


def test_the_nearest_medoid_of_each_class_is_told(fitted):
    model, X = fitted
    found = model.score(X, channels=True)
    scaled, own = model.rank_scaling.apply(X), model.rank_scaling.apply(model.medoids)
    roots = np.sqrt(model.column_weights)
    distances = np.linalg.norm((scaled[:, None] - own[None]) * roots, axis=2)
    for code in range(model.n_classes):
        of_class = np.where(model.medoid_classes == code, distances, np.inf)
        np.testing.assert_allclose(found.channels.distance[:, code], of_class.min(axis=1), atol=1e-6)
        picked = distances[np.arange(len(X)), found.nearest[:, code]]
        np.testing.assert_allclose(picked, of_class.min(axis=1), atol=1e-6)


def test_a_classifier_measured_by_circuits_is_the_same_classifier():
    X, codes = table(2)
    fitted = MedoidClassifier(method=EvidenceClassifier(n_medoids=8, n_pairs=2), random_state=0).fit(X, codes)
    measured = fitted.measured_by(compact_swap_test)
    np.testing.assert_allclose(measured.predict_proba(X), fitted.predict_proba(X), atol=1e-6)
