"""Choices of a fit go to the best, and to what was meant: multipliers, circuits that pay, which class is rare."""

import numpy as np
import pytest

from qmedoid.estimators._refiner import circuit_pays
from qmedoid.geometry.channels import Channels, fusion_scores, predict_codes
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.calibration import fit_calibration
from qmedoid.methods.nearest.fit import calibrate
from qmedoid.methods.rare.fit import fit_rare
from qmedoid.methods.rare.prototypes import RareSettings
from qmedoid.methods.variational.selection import OutOfFold
from qmedoid.metrics.classification import evaluate


def test_multipliers_and_alpha_are_the_best_of_all_that_there_are():
    rng = np.random.default_rng(0)
    codes = (rng.random(200) < 0.2).astype(np.intp)
    channels = Channels(*(rng.random((200, 2)) + 0.3 * (1.0 - np.eye(2)[codes]) for _ in range(2)))
    options, alphas = [np.array([1.0, weight]) for weight in (0.6, 0.9, 1.0, 1.3)], (0.0, 0.3, 0.7, 1.0)

    def macro_f1(alpha, multipliers):
        scores = fusion_scores(channels, alpha, use_angular=True, multipliers=multipliers)
        return evaluate(codes, predict_codes(scores), 2).macro_f1

    sweep, option = calibrate(channels, codes, True, alphas, options)
    every = [macro_f1(alpha, multipliers) for alpha in alphas for multipliers in options]
    assert macro_f1(sweep.value, options[option]) == sweep.score == max(every) > min(every)


@pytest.mark.parametrize(("in_errors", "pays"), [(-3.0, False), (0.5, False), (0.95, False), (1.05, True), (3.0, True)])
def test_a_circuit_pays_from_one_standard_error_on(in_errors, pays):
    """Rows that a circuit makes likelier by gains of a known mean and deviation; rows it leaves alone do not count."""
    rng = np.random.default_rng(1)
    codes, n = np.arange(60) % 2, 40
    gains = rng.normal(size=n)
    gains = 0.1 * (gains - gains.mean()) / gains.std(ddof=1)
    gains += in_errors * 0.1 / np.sqrt(n)
    before = np.zeros((60, 2))
    after = before.copy()
    chances = np.log(0.5) + gains
    after[np.arange(n), codes[:n]] = chances
    after[np.arange(n), 1 - codes[:n]] = np.log1p(-np.exp(chances))
    fold = np.arange(60) % 3
    np.testing.assert_allclose(log_softmax(after)[np.arange(n), codes[:n]] - np.log(0.5), gains)
    assert circuit_pays(OutOfFold(before, fold), OutOfFold(after, fold), codes) == pays


def test_of_classes_of_equal_size_the_second_is_the_rare_one():
    rng = np.random.default_rng(0)
    codes = np.arange(80) % 2
    X = rng.normal(size=(80, 3)) + codes[:, None]
    settings = RareSettings(n_common=20, n_hard=5)
    assert [fit_rare(X, own, settings, 0).model.rare_class for own in (codes, 1 - codes)] == [1, 1]


@pytest.mark.parametrize("n", [3, 20, 300])
def test_classes_told_apart_perfectly_leave_the_doubt_of_so_many_rows(n):
    """N rows of each class, N at one score and N at another: a new one is of the other class with 1/(4N)."""
    codes = np.repeat([0, 1], n)
    fused = np.where(np.eye(2)[codes] > 0, 0.3, 0.7)
    calibration = fit_calibration(fused, codes, "curve")
    chances = np.exp(log_softmax(calibration.apply(fused)))[np.arange(2 * n), codes]
    np.testing.assert_allclose(1 - chances, 0.25 / n, rtol=1e-3)
