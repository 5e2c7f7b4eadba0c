"""Weights of rows in the losses of fits: with groups of copies they are the same fit, to rounding."""

import numpy as np
import pytest

from qmedoid.estimators.encoding import Category, target_statistics
from qmedoid.methods.calibration import fit_calibration, fit_sum
from qmedoid.methods.evidence.ridge import RowGroups, fit_multinomial, fit_ridge
from qmedoid.methods.rare.fit import fit_logistic


def rows(n=90, p=6, n_classes=2, seed=0):
    """Features of weighted mean 0, classes, whole weights, and copies with their groups."""
    rng = np.random.default_rng(seed)
    codes, times = rng.integers(0, n_classes, n), rng.integers(1, 5, n)
    features = rng.normal(size=(n, p)) + 0.5 * codes[:, None]
    features -= np.average(features, axis=0, weights=times)
    return features, codes, times, np.repeat(np.arange(n), times)


@pytest.mark.parametrize("p", [6, 120])
@pytest.mark.parametrize("same_intercept", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_ridge_of_weighted_rows_is_that_of_copies(p, same_intercept, grouped):
    """Leave-one-out outputs and the choice of the penalty, too: all copies of a row, or of a group, are left out."""
    features, codes, times, copies = rows(p=p)
    targets, groups = 2.0 * codes[:, None] - 1.0, np.arange(len(codes)) // (2 if grouped else 1)
    # The intercept is never that of all rows for groups of rows that differ.
    same_intercept = same_intercept and not grouped
    together = RowGroups(groups[copies], features[copies])
    own = RowGroups(groups, features) if grouped else None
    copied = fit_ridge(features[copies], targets[copies], None, PENALTIES, together, same_intercept=same_intercept)
    weighed = fit_ridge(
        features, targets, None, PENALTIES, own, same_intercept=same_intercept, row_weights=times / times.mean()
    )
    assert weighed.path.place == copied.path.place
    np.testing.assert_allclose(weighed.path.errors, copied.path.errors, rtol=1e-8)
    np.testing.assert_allclose(weighed.means, copied.means)
    np.testing.assert_allclose(weighed.out_of_fold[copies], copied.out_of_fold, rtol=1e-7, atol=1e-9)
    made = [one.directions @ one.coefficients for one in (weighed, copied)]
    np.testing.assert_allclose(made[0], made[1], rtol=1e-7, atol=1e-9)


PENALTIES = 10.0 ** np.arange(-4.0, 1.0)


def test_multinomial_regression_of_weighted_rows_is_that_of_copies():
    features, codes, times, copies = rows(n_classes=3)
    start, folds = (np.zeros(3), np.zeros((features.shape[1], 3))), np.arange(len(codes)) % 5
    copied = fit_multinomial(features[copies], codes[copies], 2.0 * times.mean(), start, folds[copies])
    weighed = fit_multinomial(features, codes, 2.0, start, folds, times / times.mean())
    np.testing.assert_allclose(weighed[1], copied[1], atol=5e-3)
    np.testing.assert_allclose(weighed[2][copies], copied[2], atol=1e-2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sum_and_calibration_of_weighted_rows_are_those_of_copies(n_classes):
    _, codes, times, copies = rows(n_classes=n_classes)
    rng = np.random.default_rng(1)
    scores = [rng.normal(size=(len(codes), n_classes)) - 0.7 * np.eye(n_classes)[codes] for _ in range(2)]
    u = times / times.mean()
    copied = fit_sum([one[copies] for one in scores], codes[copies], copies)
    weighed = fit_sum(scores, codes, None, u)
    np.testing.assert_allclose(weighed.weights, copied.weights, rtol=1e-7)
    np.testing.assert_allclose(weighed.biases, copied.biases, rtol=1e-7, atol=1e-9)
    assert weighed.loss == pytest.approx(copied.loss / times.mean())
    for kind in ("logistic", "temperature"):
        copied = fit_calibration(scores[0][copies], codes[copies], kind, copies)
        weighed = fit_calibration(scores[0], codes, kind, None, u)
        assert weighed.slope == pytest.approx(copied.slope, rel=0.05)  # its unit is a median of rows as they are
        np.testing.assert_allclose(weighed.biases, copied.biases, atol=0.05)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curve_of_weighted_rows_is_as_likely_as_that_of_copies(n_classes):
    """Weighted log-loss on the rows themselves; the knots are at other quantiles."""
    rng = np.random.default_rng(0)
    n = 800
    codes = rng.integers(0, n_classes, n)
    times = rng.integers(1, 3, n) * np.where(codes == 1, 4, 1)
    scores = rng.normal(size=(n, n_classes)) - 1.5 * np.eye(n_classes)[codes]
    scores = np.sign(scores) * np.abs(scores) ** 1.6
    copies, u = np.repeat(np.arange(n), times), times / times.mean()
    copied = fit_calibration(scores[copies], codes[copies], "curve", copies)
    weighed = fit_calibration(scores, codes, "curve", None, u)
    plain = fit_calibration(scores, codes, "curve")

    def loss(calibration):
        logits = calibration.apply(scores)
        log_p = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        return -np.average(log_p[np.arange(n), codes], weights=times)

    assert abs(loss(weighed) - loss(copied)) < 5e-3
    assert loss(weighed) < loss(plain) - 0.01


def test_regression_of_rare_events_counts_rows_by_their_weights():
    features, codes, times, copies = rows()
    strengths = np.full(features.shape[1], 0.3)
    copied = fit_logistic(features[copies], codes[copies] == 1, strengths)
    weighed = fit_logistic(features, codes == 1, strengths, row_weights=times.astype(float))
    assert weighed[0] == pytest.approx(copied[0], rel=1e-6)
    np.testing.assert_allclose(weighed[1], copied[1], rtol=1e-6, atol=1e-9)


def test_shares_of_levels_are_those_of_weighted_rows():
    rng = np.random.default_rng(0)
    n = 1500
    places, codes, u = rng.integers(0, 12, n), rng.integers(0, 2, n), rng.uniform(0.1, 3.0, n)
    counts = np.bincount(places, minlength=12)
    category = Category(tuple(f"{level:02d}" for level in range(12)), places, counts, np.arange(12), 100)
    levels, _ = target_statistics(category, codes, [0, 1], np.random.default_rng(0), row_weights=u)
    shares = np.bincount(places, u * codes, 12) / np.bincount(places, u, 12)
    plain, _ = target_statistics(category, codes, [0, 1], np.random.default_rng(0))
    mean = np.average(codes, weights=u)
    # Pulled to the mean, and from there on in the order of the shares.
    found = levels.values[:12, 0]
    assert np.corrcoef(found, shares)[0, 1] > 0.99
    assert np.corrcoef(found, shares)[0, 1] > np.corrcoef(plain.values[:12, 0], shares)[0, 1]
    assert levels.values[-1, 0] == pytest.approx(mean)
