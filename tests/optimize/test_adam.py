"""Adam is the textbook's, with a cosine."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_losses import Quadratic

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


def test_adam_finds_the_minimum_of_a_quadratic():
    objective = Quadratic(noise=0.2)
    found = minimize_adam(
        objective, TrainingState(np.zeros(3), np.random.default_rng(3)), Stopping(1500), learning_rate=0.05
    )
    np.testing.assert_allclose(found[0], objective.center, atol=0.03)
