"""Neighbors under a learnt metric: exact gradients, votes of rows of other groups, contributions that add up."""

from dataclasses import replace

import numpy as np
import pytest

from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.methods.evidence.design import fit_rank_scaling
from qmedoid.methods.neighbors import fit
from qmedoid.methods.neighbors.fit import fit_neighbors, loss_and_gradient


def checkered(n=1200, n_noise=4, seed=0):
    """Classes in a fine checkered pattern of two columns, among columns of noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 2 + n_noise))
    return X, (np.floor(4 * X[:, :2]).sum(axis=1) % 2).astype(np.intp)


def fitted_on(X, codes, groups=None):
    scores = np.zeros((len(codes), 2))
    return fit_neighbors(X, codes, scores, fit_rank_scaling(X), np.random.default_rng(0), groups)


@pytest.fixture(scope="module")
def fitted():
    X, codes = checkered()
    found = fitted_on(X, codes)
    assert found is not None
    return X, codes, found[0]


def test_gradient_of_the_metric_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(7, 3)), rng.normal(size=(11, 3))
    codes, scores, votes = rng.integers(3, size=7), rng.normal(size=(7, 3)), rng.uniform(-1, 1, size=(11, 3))
    same = rng.random((7, 11)) < 0.2
    point = np.array([0.3, -0.2, 0.1, -0.5, 0.4])

    def at(values):
        metric = values[:3], float(values[3]), float(values[4])
        return loss_and_gradient(metric, rows, codes, scores, others, votes, same)

    steps = 1e-6 * np.eye(5)
    differences = [(at(point + step)[0] - at(point - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(at(point)[1], differences, rtol=1e-6, atol=1e-9)


def test_a_slope_that_is_rounding_moves_no_column(monkeypatch):
    """Adam's steps are as long for a slope of 1e-9 as for one of 1."""
    slopes = np.array([1.0, 2e-6, 2e-5, -1.0, 0.5])
    monkeypatch.setattr(fit, "loss_and_gradient", lambda *_: (0.0, slopes.copy()))
    rng = np.random.default_rng(0)
    table = rng.normal(size=(30, 3)), np.zeros(30, dtype=np.intp), np.zeros((30, 2)), np.zeros((30, 2)), np.arange(30)
    columns, *_ = fit._Adam(table, (np.zeros(3), 0.0, 0.0), 10).steps(5, rng)
    assert columns[1] == 0.0
    assert columns[2] == pytest.approx(columns[0], rel=0.01)


def test_metric_finds_the_columns_of_a_checkered_pattern(fitted):
    model = fitted[-1]
    weights = model.column_weights
    assert weights[:2].min() > 5 * weights[2:].max()
    new, labels = checkered(400, seed=1)
    assert np.mean(model.score(new).scores.argmin(axis=1) == labels) > 0.8


def test_neighbors_are_not_kept_where_classes_are_noise():
    X, codes = checkered()
    assert fitted_on(X, np.random.default_rng(3).permutation(codes)) is None


def test_rows_of_one_group_do_not_vote_for_each_other():
    X, _ = checkered(1000)
    noise = np.random.default_rng(4).integers(2, size=1000)
    doubled, groups = np.vstack([X, X]), np.tile(np.arange(1000), 2)
    assert fitted_on(doubled, np.tile(noise, 2), groups) is None


@pytest.fixture(scope="module")
def fitted_in_cells():
    X, codes = checkered(3000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "ROWS_IN_CELLS", 2000)
        found = fitted_on(X, codes)
    assert found is not None
    return X, codes, found[0]


def test_cells_around_a_record_hold_nearly_all_of_its_neighbors(fitted_in_cells):
    _, _, model = fitted_in_cells
    new, labels = checkered(400, seed=1)
    assert model.cells is not None
    everywhere = replace(model, cells=None)
    assert np.mean(np.abs(model.score(new).scores - everywhere.score(new).scores) < 1e-9) > 0.95
    assert np.mean(model.score(new).scores.argmin(axis=1) == labels) > 0.8


@pytest.mark.parametrize("kind", ["fitted", "fitted_in_cells"])
def test_records_are_measured_and_explained_by_weighted_votes(kind, request):
    X, _, model = request.getfixturevalue(kind)
    new = X[:20] + 0.003
    scores = model.score(new).scores
    np.testing.assert_allclose(model.score_measured(new, compact_swap_test).scores, scores, atol=1e-9)
    for row, its in zip(new, scores, strict=True):
        parts = model.contributions(row[None], 1, 0)
        assert sum(one.contribution for one in parts.neighbors) == pytest.approx(its[0] - its[1], abs=1e-12)
        assert parts.terms == {"neighbors": pytest.approx(its[0] - its[1], abs=1e-12)}
    np.testing.assert_array_equal(model.with_columns(np.arange(6)).score(new).scores, scores)


def test_metric_that_fits_chance_is_not_flattered_by_the_rows_it_was_learnt_from(monkeypatch):
    rng = np.random.default_rng(5)
    X, codes = rng.uniform(size=(1000, 60)), rng.integers(2, size=1000)
    monkeypatch.setattr(fit, "_pays", lambda *_: True)
    found = fitted_on(X, codes)
    assert found is not None
    out_of_fold = found[1]
    agrees = np.sign(out_of_fold[:, 0] - out_of_fold[:, 1]) == np.sign(codes - 0.5)
    assert np.mean(agrees) < 0.55


def test_neighbors_need_many_rows():
    assert fitted_on(*checkered(fit.LEAST_ROWS - 1)) is None
