"""Closed forms of the evidence fit against refits, and its parts against their definitions."""

import numpy as np
import pytest
from benchmarks._fingerprints import nudged

from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.methods.evidence import ridge
from qmedoid.methods.evidence.bag import chosen_groups
from qmedoid.methods.evidence.design import Scaled, evidence_design, linear_part, near_part
from qmedoid.methods.evidence.fit import medoids_of_classes, stratified_sample
from qmedoid.methods.evidence.ridge import fit_multinomial, fit_ridge


def scaled(n, columns, seed=0):
    rng = np.random.default_rng(seed)
    return Scaled(rng.normal(size=(n, columns)), rng.normal(size=(n, columns)))


def refitted_ridge(features, targets, penalty):
    """Weights and intercepts of a ridge from its definition, with an intercept that is not shrunk."""
    columns = np.column_stack([np.ones(len(features)), features])
    shrinking = np.diag([0.0] + [penalty] * features.shape[1])
    return np.linalg.solve(columns.T @ columns + shrinking, columns.T @ targets)


@pytest.mark.parametrize(("n", "p", "n_outputs"), [(30, 5, 1), (30, 5, 3), (12, 20, 1)])
def test_left_out_outputs_are_those_of_refits(n, p, n_outputs):
    rng = np.random.default_rng(p)
    features = rng.normal(size=(n, p))
    features -= features.mean(axis=0)
    targets = np.sign(features[:, :n_outputs] + rng.normal(size=(n, n_outputs)))
    ridge = fit_ridge(features, targets)
    for row in range(n):
        others = np.arange(n) != row
        # The penalty is λ n for all rows, and stays so when one is left out.
        weights = refitted_ridge(features[others], targets[others], ridge.penalty * n)
        np.testing.assert_allclose(
            ridge.out_of_fold[row], weights[0] + features[row] @ weights[1:], rtol=1e-6, atol=1e-8
        )


def test_ridge_weights_are_those_of_the_definition():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(40, 6))
    features -= features.mean(axis=0)
    targets = np.sign(rng.normal(size=(40, 2)) + features[:, :2])
    ridge = fit_ridge(features, targets)
    expected = refitted_ridge(features, targets, ridge.penalty * 40)
    np.testing.assert_allclose(ridge.means, expected[0], atol=1e-10)
    np.testing.assert_allclose(ridge.directions @ ridge.coefficients, expected[1:], atol=1e-8)
    assert ridge.path.errors[ridge.path.place] == ridge.path.errors.min()


def test_rows_that_judge_choose_the_penalty_alone():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60, 6))
    features -= features.mean(axis=0)
    targets = np.sign(features[:, :1] + np.r_[np.zeros(30), 9 * rng.normal(size=30)][:, None])
    clear, noisy = (fit_ridge(features, targets, np.arange(30) + first) for first in (0, 30))
    assert clear.penalty < noisy.penalty
    missed = (targets - clear.out_of_fold)[:30]
    assert clear.path.errors[clear.path.place] == pytest.approx((missed**2).mean())


def test_a_multinomial_refit_finds_the_penalty_that_held_out_rows_ask_for(monkeypatch):
    rng = np.random.default_rng(3)
    rotated = rng.normal(size=(200, 60))
    codes = (2.0 * rotated[:, :3] + rng.normal(size=(200, 3))).argmax(axis=1)
    start = np.zeros(3), np.zeros((60, 3))
    folds = rng.permutation(np.arange(200) % 5)
    found = row_losses(fit_multinomial(rotated, codes, 0.05, start, folds)[2], codes)
    monkeypatch.setattr(ridge, "_STRENGTHS", (1.0,))
    as_given = row_losses(fit_multinomial(rotated, codes, 0.05, start, folds)[2], codes)
    assert found.mean() < 0.8 * as_given.mean()


@pytest.mark.parametrize("seed", [0, 1])
def test_refit_of_separable_classes_does_not_hang_on_rounding(seed):
    """Weights of separable classes have no end in sight: steps that do not arrive must not multiply rounding."""
    rng = np.random.default_rng(seed)
    rotated = rng.normal(size=(400, 80)) * np.logspace(0, -2, 80)
    rotated -= rotated.mean(axis=0)
    codes = (2.0 * rotated[:, :4] + rotated[:, 4:8] * rotated[:, 8:12]).argmax(axis=1)
    start, folds = (np.zeros(4), np.zeros((80, 4))), rng.permutation(np.arange(400) % 5)
    found = fit_multinomial(rotated, codes, 1e-5, start, folds)[2]
    for nudge in range(3):
        moved = nudged(rotated, np.random.default_rng(nudge))
        np.testing.assert_allclose(
            fit_multinomial(moved, codes, 1e-5, start, folds)[2], found, rtol=0, atol=1e-9 * np.abs(found).max()
        )


def test_the_linear_part_is_linear_in_its_column():
    rows, medoids = scaled(50, 3), scaled(7, 3, seed=1)
    part = linear_part(1, rows, medoids)
    feature = part.values(rows, medoids) @ part.mixing
    slope, intercept = np.polyfit(rows.plain[:, 1], feature[:, 0], 1)
    np.testing.assert_allclose(feature[:, 0], slope * rows.plain[:, 1] + intercept, atol=1e-10)
    assert feature.std() == pytest.approx(1.0)
    assert len(part.medoids) == 2


def test_a_column_of_two_values_needs_one_distance():
    rows = Scaled(np.zeros((10, 1)), np.tile([[-0.5], [2.0]], (5, 1)))
    medoids = Scaled(rows.ranks[:5:2], rows.plain[:5:2])
    part = linear_part(0, rows, medoids)
    feature = (part.values(rows, medoids) @ part.mixing)[:, 0]
    assert len(part.medoids) == 1
    assert feature.std() == pytest.approx(1.0)
    assert set(np.round(feature, 12)) == {0.0, feature.max().round(12)}


def test_a_column_that_is_mostly_0_is_linear_even_where_all_medoids_are_0():
    rows = Scaled(np.zeros((30, 1)), np.r_[np.zeros(20), np.arange(10.0)][:, None])
    medoids = Scaled(rows.ranks[:4], rows.plain[:4])
    part = linear_part(0, rows, medoids)
    feature = (part.values(rows, medoids) @ part.mixing)[:, 0]
    np.testing.assert_allclose(feature, rows.plain[:, 0] / rows.plain[:, 0].std())


def test_every_block_has_mean_zero_and_total_variance_one():
    rows, medoids = scaled(60, 3), scaled(9, 3, seed=1)
    parts = [linear_part(column, rows, medoids) for column in range(3)]
    parts += [near_part("group", columns, np.arange(9), rows, medoids) for columns in ((0, 1), (1, 2))]
    design = evidence_design(parts, rows, medoids)
    np.testing.assert_allclose(design.features.mean(axis=0), 0.0, atol=1e-12)
    variances = design.features.var(axis=0)
    assert variances[:3].sum() == pytest.approx(1.0)
    assert variances[3:].sum() == pytest.approx(1.0)


def test_gains_are_those_of_counting_cells_one_by_one():
    rng = np.random.default_rng(5)
    Z, residuals = rng.integers(0, 3, size=(200, 5)).astype(float), rng.normal(size=(200, 2))
    residuals[:, 0] += (Z[:, 1] == Z[:, 4]) * 0.7
    residuals -= residuals.mean(axis=0)
    chance = (residuals**2).sum(axis=1).mean()

    def explained(*columns):
        cells = [residuals[(Z[:, list(columns)] == cell).all(axis=1)] for cell in np.unique(Z[:, columns], axis=0)]
        return sum((cell.sum(axis=0) ** 2).sum() / len(cell) - chance for cell in cells)

    pairs = [(f, g) for f in range(5) for g in range(f + 1, 5)]
    gains = [explained(f, g) - max(explained(f), 0) - max(explained(g), 0) for f, g in pairs]
    expected = [pairs[place] for place in np.argsort(np.negative(gains), kind="stable")]
    assert chosen_groups(Z, residuals, len(pairs), 0) == expected
    assert expected[0] == (1, 4)


def test_a_triple_that_only_tells_together_is_found():
    rng = np.random.default_rng(6)
    Z = rng.integers(0, 2, size=(800, 5)).astype(float)
    residuals = np.where(Z[:, [0, 2, 3]].sum(axis=1) % 2 == 1, 1.0, -1.0)[:, None]
    assert chosen_groups(Z, residuals, 0, 4)[0] == (0, 2, 3)


def test_medoids_take_turns_between_classes_and_sit_in_their_clusters():
    rng = np.random.default_rng(7)
    corners = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0], [20.0, 20.0]])
    Z = np.repeat(corners, 25, axis=0) + rng.normal(size=(100, 2))
    codes = np.repeat([0, 1, 0, 1], 25)
    found = medoids_of_classes(Z, codes, 2, 16, rng)
    np.testing.assert_array_equal(codes[found], np.arange(16) % 2)
    assert len(set(found.tolist())) == 16
    one = medoids_of_classes(Z, codes, 2, 2, rng)
    assert codes[one].tolist() == [0, 1]
    assert not set(medoids_of_classes(Z, codes, 2, 16, rng, found)) & set(found)


def test_a_sample_keeps_shares_and_every_class():
    codes = np.r_[np.zeros(900), np.ones(99), 2].astype(np.intp)
    kept = stratified_sample(codes, 3, 100, np.random.default_rng(0))
    assert np.bincount(codes[kept]).tolist() == [90, 10, 1]
    assert (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(stratified_sample(codes, 3, 1000, np.random.default_rng(0)), np.arange(1000))
