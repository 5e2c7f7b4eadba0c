"""What a rare-event model says of records: the definition, in blocks of any size, as an exact sum."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.methods.rare.fit import RareSettings, fit_rare


def logits_of(model, X):
    """Log-odds of the rare class."""
    scores = model.score(X).scores
    return scores[:, 1 - model.rare_class] - scores[:, model.rare_class]


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(3)
    codes = (rng.random(700) < 0.05).astype(np.intp)
    X = rng.standard_t(3, size=(700, 4)) * [1.0, 10.0, 0.1, 5.0]
    X[codes == 1, 1] += 25.0
    return X, codes


@pytest.fixture(scope="module")
def model(records):
    X, codes = records
    return fit_rare(X, codes, RareSettings(n_common=80, n_hard=30), 0).model


def test_deltas_are_means_of_the_nearest_distances(model):
    new = np.random.default_rng(0).normal(size=(40, 4)) * 10
    geometry = model.geometry
    scaled = geometry.scaling.apply(new)
    found = model.features(new)
    place = 0
    for weights in geometry.metrics:
        roots = np.sqrt(weights)
        rare, common = (
            np.sort(cdist(scaled * roots, rows * roots), axis=1) for rows in (geometry.rare, geometry.common)
        )
        for k in geometry.counts:
            near, far = rare[:, :k].mean(axis=1), common[:, :k].mean(axis=1)
            np.testing.assert_allclose(found[:, place], (far - near) / (far + near), rtol=1e-10, atol=1e-12)
            place += 1
    assert place == geometry.n_features[0]


def test_columns_are_judged_by_distances_to_real_rows(model):
    new = np.random.default_rng(1).normal(size=(40, 4)) * 10
    geometry = model.geometry
    scaled = geometry.scaling.apply(new)
    typical = geometry.common[~geometry.hard]
    n_deltas, m, *_ = geometry.n_features
    rare, common = (
        np.exp(-np.abs(scaled[:, None] - rows[None]) / geometry.length).mean(axis=1) + geometry.floor
        for rows in (geometry.rare, typical)
    )
    found = model.features(new)
    np.testing.assert_allclose(found[:, n_deltas : n_deltas + m], np.log(rare / common), rtol=1e-9, atol=1e-12)
    rows = np.concatenate([geometry.rare, typical])
    low, high = rows.min(axis=0), rows.max(axis=0)
    positions = ((scaled - low) ** 2 - (scaled - high) ** 2) / (2 * (high - low))
    np.testing.assert_allclose(found[:, n_deltas + m : n_deltas + 2 * m], positions, rtol=1e-9, atol=1e-9)
    first = n_deltas + 2 * m
    for prototypes in (geometry.common[~geometry.hard], geometry.rare):
        middle = np.quantile(prototypes, 0.5, axis=0, method="lower")
        np.testing.assert_allclose(found[:, first : first + m], np.abs(scaled - middle), rtol=1e-12)
        first += m
    assert first == found.shape[1]


def test_distances_are_those_of_the_compact_swap_test(model, records):
    X = records[0][:50]
    measured = model.score(X, channels=True)
    geometry = model.geometry
    roots = np.sqrt(geometry.metrics[0])
    rows = geometry.scaling.apply(X) * roots
    prototypes = np.concatenate([geometry.rare, geometry.common]) * roots
    tested = compact_swap_test(rows, prototypes)
    for c in (0, 1):
        of_class = np.flatnonzero(model.medoid_classes == c)
        np.testing.assert_allclose(
            measured.channels.distance[:, c], tested.distance[:, of_class].min(axis=1), atol=1e-6
        )
        assert (model.medoid_classes[measured.nearest[:, c]] == c).all()
        there = (np.arange(50), measured.nearest[:, c])
        np.testing.assert_allclose(measured.channels.distance[:, c], tested.distance[there], atol=1e-6)
        np.testing.assert_allclose(measured.channels.angle[:, c], tested.angle[there], atol=1e-6)


def test_contributions_add_up_to_the_logit(model, records):
    X = records[0][:5]
    logits = logits_of(model, X)
    for row, logit in zip(X, logits, strict=True):
        found = model.contributions(row[None], model.rare_class, 1 - model.rare_class)
        assert sum(one.contribution for one in found.groups) + model.intercept == pytest.approx(logit, rel=1e-12)
        assert found.terms == {"intercept": model.intercept}
        assert len({(one.columns, one.name) for one in found.groups}) == len(found.groups) == len(model.weights)
    np.testing.assert_allclose(model.logit(model.features(X)), logits, rtol=1e-12)
    scores = model.score(X).scores
    np.testing.assert_allclose(scores, np.column_stack([logits / 2, -logits / 2]), rtol=1e-12)


def test_the_circuit_is_fed_features_of_the_model(model, records):
    X = records[0][:20]
    assert len(model.circuit_features) == 8
    np.testing.assert_array_equal(model.score(X, channels=True).features, model.features(X)[:, model.circuit_features])


def test_rare_rows_it_has_not_seen_are_ranked_high(model):
    rng = np.random.default_rng(9)
    X = rng.standard_t(3, size=(300, 4)) * [1.0, 10.0, 0.1, 5.0]
    X[:30, 1] += 25.0
    logits = logits_of(model, X)
    assert (logits[:30, None] > logits[None, 30:]).mean() > 0.85


class Recorded:
    """A SWAP test, exact or with 64 shots, that keeps the pairs which it was asked for."""

    def __init__(self, rng=None):
        self.pairs, self.rng = [], rng

    def __call__(self, rows, prototypes):
        self.pairs += [(row.tobytes(), one.tobytes()) for row in rows for one in prototypes]
        if self.rng is None:
            return compact_swap_test(rows, prototypes)
        return compact_swap_test(rows, prototypes, shots=64, rng=self.rng)

    def tests_of(self, n_columns):
        return sum(len(row) == 8 * n_columns for row, _ in self.pairs)


def test_distances_to_the_nearest_prototypes_are_measured_by_the_compact_swap_test(model, records):
    swap_test, X = Recorded(), records[0][::25]
    found, plain = model.score_measured(X, swap_test), model.score(X, channels=True)
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.features, plain.features, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found.nearest, plain.nearest)
    # Of every record the eight nearest of both classes in both metrics, and the nearest on each of the four columns.
    assert swap_test.tests_of(4) == len(X) * 2 * 2 * 8
    assert swap_test.tests_of(1) == len(X) * 4


def test_measured_features_are_those_of_the_closed_form(model, records):
    new = np.concatenate([np.random.default_rng(1).normal(size=(40, 4)) * 10, records[0][:20], np.full((1, 4), 1e6)])
    new[3] = -1e6
    np.testing.assert_allclose(
        model.measured_features(new, compact_swap_test), model.features(new), rtol=1e-9, atol=1e-9
    )
    assert model.measured_features(new[:0], compact_swap_test).shape == (0, len(model.weights))


def test_what_is_measured_does_not_depend_on_the_results(model, records):
    exact, drawn = Recorded(), Recorded(np.random.default_rng(0))
    X = records[0][::50]
    features = [model.measured_features(X, swap_test) for swap_test in (exact, drawn)]
    assert exact.pairs == drawn.pairs
    # Every feature is made of measured distances.
    assert (np.ptp(features, axis=0) > 0).any(axis=0).all()


def test_few_prototypes_and_constant_columns_are_measured_alike():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), np.full(40, 7.0)])
    X[:2, 0] += 3.0
    model = fit_rare(X, np.where(np.arange(40) < 2, 0, 1), RareSettings(n_common=3, n_hard=1), 0).model
    new = np.column_stack([rng.normal(size=10), rng.normal(size=10)])
    np.testing.assert_allclose(model.measured_features(new, compact_swap_test), model.features(new), atol=1e-9)


def test_a_large_value_in_a_column_of_tiny_ones_is_far_from_all(records):
    X, codes = records
    model = fit_rare(X * 1e-300, codes, RareSettings(n_common=80, n_hard=30), 0).model
    found = model.score(np.array([[1e150, 0.0, -1e150, 1e100]]), channels=True)
    assert np.isfinite(found.scores).all()
    np.testing.assert_array_equal(model.medoid_classes[found.nearest], [[0, 1]])
