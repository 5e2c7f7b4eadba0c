"""Choices of a fit go to the best, and to what was meant: multipliers, circuits that pay, which class is rare."""

import numpy as np
import pytest

from qmedoid.geometry.channels import Channels, first_smallest_of_rows, fusion_scores
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.calibration import fit_calibration
from qmedoid.methods.nearest.fit import calibrate
from qmedoid.methods.rare.fit import RareSettings, fit_rare
from qmedoid.metrics.classification import evaluate


def test_multipliers_and_alpha_are_the_best_of_all_that_there_are():
    rng = np.random.default_rng(0)
    codes = (rng.random(200) < 0.2).astype(np.intp)
    channels = Channels(*(rng.random((200, 2)) + 0.3 * (1.0 - np.eye(2)[codes]) for _ in range(2)))
    options, alphas = [np.array([1.0, weight]) for weight in (0.6, 0.9, 1.0, 1.3)], (0.0, 0.3, 0.7, 1.0)

    def macro_f1(alpha, multipliers):
        scores = fusion_scores(channels, alpha, use_angular=True, multipliers=multipliers)
        return evaluate(codes, first_smallest_of_rows(scores), 2).macro_f1

    sweep, option = calibrate(channels, codes, True, alphas, options)
    every = [macro_f1(alpha, multipliers) for alpha in alphas for multipliers in options]
    assert macro_f1(sweep.value, options[option]) == sweep.score == max(every) > min(every)


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
