"""Adam is the textbook's, with a cosine."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_losses import Quadratic, Scripted

from qmedoid.optimize.minimizers import Stopping, TrainingState, minimize_adam


def textbook(objective, theta, rng, steps, eta, beta1, beta2, longest=None):
    """Algorithm 1 of the paper on Adam, entry by entry, with a step size that falls along a cosine."""
    theta = [float(value) for value in theta]
    m, v = [0.0] * len(theta), [0.0] * len(theta)
    for t in range(1, steps + 1):
        _, g = objective.value_and_gradient(np.array(theta), objective.draw(rng))
        length = math.hypot(*g)
        if longest is not None and length > longest:
            g = g / length * longest
        step = eta * (1 + math.cos(math.pi * (t - 1) / steps)) / 2
        for j in range(len(theta)):
            m[j] = beta1 * m[j] + (1 - beta1) * g[j]
            v[j] = beta2 * v[j] + (1 - beta2) * g[j] ** 2
            theta[j] -= step * (m[j] / (1 - beta1**t)) / (math.sqrt(v[j] / (1 - beta2**t)) + 1e-8)
    return theta


@given(
    seed=st.integers(0, 2**31),
    eta=st.floats(0.001, 0.5),
    longest=st.none() | st.floats(0.1, 3),
)
@settings(max_examples=50, deadline=None)
def test_adam_is_the_textbooks(seed, eta, longest):
    start = np.array([0.3, 2.0, -1.0])
    found = minimize_adam(
        Quadratic(), TrainingState(start, np.random.default_rng(seed)), Stopping(25, average=0.0),
        learning_rate=eta, clip_norm=longest,
    )  # fmt: skip
    expected = textbook(Quadratic(), start, np.random.default_rng(seed), 25, eta, 0.9, 0.999, longest)
    np.testing.assert_allclose(found[0], expected, rtol=1e-7, atol=1e-9)


def test_step_falls_along_a_cosine():
    """A gradient that never changes makes Adam's step the step size itself."""
    seen = [np.zeros(2)]
    minimize_adam(
        Scripted([1.0] * 8), TrainingState(np.zeros(2), np.random.default_rng(0)), Stopping(8), learning_rate=0.1,
        on_step=lambda state: seen.append(state.theta.copy()),
    )  # fmt: skip
    steps = -np.diff(np.array(seen)[:, 0])
    np.testing.assert_allclose(steps, [0.05 * (1 + math.cos(math.pi * t / 8)) for t in range(8)], rtol=1e-6)
    assert steps[0] == pytest.approx(0.1)


def test_one_evaluation_a_step_and_the_loss_before_it():
    objective = Quadratic()
    found = minimize_adam(objective, TrainingState(np.zeros(3), np.random.default_rng(0)), Stopping(12))
    assert len(objective.asked) == objective.draws == len(found[1]) == 12
    again = [Quadratic().value(theta, batch) for theta, batch in objective.asked]
    np.testing.assert_array_equal(found[1], again)


def test_adam_finds_the_minimum_of_a_quadratic():
    objective = Quadratic(noise=0.2)
    found = minimize_adam(
        objective, TrainingState(np.zeros(3), np.random.default_rng(3)), Stopping(1500), learning_rate=0.05
    )
    np.testing.assert_allclose(found[0], objective.center, atol=0.03)
