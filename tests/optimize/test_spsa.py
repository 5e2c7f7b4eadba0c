"""SPSA is algorithm 18 as printed: two losses a step, and nothing but the given generator decides."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_losses import Quadratic

from qmedoid.exceptions import ParameterError
from qmedoid.optimize.minimizers import GAINS, Stopping, TrainingState, minimize_spsa


def algorithm_18(objective, theta, rng, steps, a, c, alpha, gamma, g_max, patience, delta):
    """Line by line as printed."""
    theta, record = np.array(theta, dtype=float), []
    best_loss, no_improve = math.inf, 0
    for t in range(1, steps + 1):
        a_t, c_t = a / t**alpha, c / t**gamma
        batch = objective.draw(rng)
        perturbation = np.array([-1.0, 1.0])[rng.integers(0, 2, size=len(theta))]
        f_plus = objective.value(theta + c_t * perturbation, batch)
        f_minus = objective.value(theta - c_t * perturbation, batch)
        g = (f_plus - f_minus) / (2 * c_t) / perturbation
        norm = math.sqrt(sum(g**2))
        g = g * min(1.0, g_max / norm) if norm > 0 else g
        theta = theta - a_t * g
        mb_loss = (f_plus + f_minus) / 2
        record.append(mb_loss)
        if mb_loss < best_loss - delta:
            best_loss, no_improve = mb_loss, 0
        else:
            no_improve += 1
        if no_improve >= patience:
            break
    return theta, record


def begun(n_parameters=3, seed=0):
    """A training that begins at 0."""
    return TrainingState(np.zeros(n_parameters), np.random.default_rng(seed))


class Signs:
    """In place of a generator: perturbations as listed."""

    def __init__(self, *signs):
        self.left = [np.array(s) for s in signs]

    def integers(self, low, high, size):
        assert (low, high) == (0, 2)
        drawn = (self.left.pop(0) + 1) // 2
        assert drawn.shape == (size,)
        return drawn


def test_three_steps_by_hand():
    """f(x, y) = x² + 2y from (2, 0) with a = 0.5, c = 0.2, α = 1, γ = 0.5 and gradients cut to length 3.

    A quadratic's central difference along Δ is exact: ĝ = (2xΔ₁ + 2Δ₂)·Δ.
    """

    class Function:
        def draw(self, _rng):
            return None

        def value(self, theta, _batch):
            return theta[0] ** 2 + 2 * theta[1]

    seen = []
    found = minimize_spsa(
        Function(),
        TrainingState(np.array([2.0, 0.0]), Signs([1, -1], [-1, -1], [1, 1])),
        Stopping(3, average=0.0),
        gains=(0.5, 0.2, 1.0, 0.5), clip_norm=3.0,
        on_step=lambda state: seen.append(state.theta.copy()),
    )  # fmt: skip
    # 1: slope 4 - 2 = 2, ĝ = (2, -2), length 2.83 is not cut; a₁ = 1/2.
    np.testing.assert_allclose(seen[0], [1.0, 1.0], rtol=0, atol=1e-12)
    # 2: slope -2 - 2 = -4, ĝ = (4, 4), length 5.66 is cut to 3, (2.1213, 2.1213); a₂ = 1/4.
    np.testing.assert_allclose(seen[1], [0.4696699141, 0.4696699141], rtol=0, atol=1e-9)
    # 3: slope 0.9393398282 + 2 = 2.9393398282, both entries; length 4.157 is cut to 3; a₃ = 1/6.
    np.testing.assert_allclose(seen[2], [0.1161165235, 0.1161165235], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found[0], seen[2])
    # Mean of both losses: f plus the curvature c_t², which is 0.04, 0.02 and 0.0133.
    np.testing.assert_allclose(found[1], [4.04, 3.02, 0.2205898282 + 0.9393398282 + 0.04 / 3], rtol=0, atol=1e-9)


@given(
    seed=st.integers(0, 2**31),
    gains=st.tuples(st.floats(0.01, 0.5), st.floats(0.01, 0.5), st.floats(0, 1), st.floats(0, 0.5)),
    g_max=st.floats(0.05, 5),
    patience=st.integers(1, 12),
    delta=st.floats(0, 0.3),
)
@settings(max_examples=30, deadline=None)
def test_spsa_is_the_printed_algorithm(seed, gains, g_max, patience, delta):
    start = np.array([3.0, 1.0, -1.0])
    theta, record = algorithm_18(Quadratic(), start, np.random.default_rng(seed), 30, *gains, g_max, patience, delta)
    found = minimize_spsa(
        Quadratic(), TrainingState(start, np.random.default_rng(seed)),
        Stopping(30, patience=patience, tolerance=delta, average=0.0), gains=gains, clip_norm=g_max,
    )  # fmt: skip
    assert len(found[1]) == len(record)
    assert found[2] == ("steps" if len(record) == 30 else "patience")
    np.testing.assert_allclose(found[0], theta, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found[1], record, rtol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_spsa_finds_the_minimum_of_a_quadratic(noise):
    objective = Quadratic(noise=noise)
    found = minimize_spsa(objective, begun(seed=3), Stopping(1500), gains=(0.3, *GAINS[1:]))
    np.testing.assert_allclose(found[0], objective.center, atol=0.01 if noise == 0 else 0.15)


@pytest.mark.parametrize("c", [0.0, -0.1, math.nan])
def test_perturbation_of_no_size_is_refused(c):
    with pytest.raises(ParameterError, match=r"perturbation 'c' of SPSA must be a number above 0\. Got"):
        minimize_spsa(Quadratic(), begun(), Stopping(3), gains=(6.0, c, 0.602, 0.101))
