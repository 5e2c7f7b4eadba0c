r"""Adam on exact gradients, and SPSA on noisy losses (algorithm 18).

Adam has a step size that falls along a cosine:

.. math::

   m \leftarrow \beta_1 m + (1-\beta_1) g, \quad v \leftarrow \beta_2 v + (1-\beta_2) g^2, \quad
   \theta \leftarrow \theta - \eta_t\,\frac{m/(1-\beta_1^t)}{\sqrt{v/(1-\beta_2^t)} + \epsilon}, \quad
   \eta_t = \frac{\eta}{2}\Bigl(1 + \cos\frac{\pi (t-1)}{T}\Bigr)

SPSA estimates the gradient from two losses per step:

.. math::

   \hat g = \frac{f(\theta + c_t\Delta) - f(\theta - c_t\Delta)}{2 c_t}\,\Delta, \qquad
   \theta \leftarrow \theta - a_t\,\hat g, \qquad a_t = \frac{a}{t^{\alpha}}, \quad c_t = \frac{c}{t^{\gamma}}

with every entry of Δ drawn from {−1, +1}, so that 1/Δ is Δ itself.
"""

import math

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.optimize.training import (
    Batch,
    DifferentiableObjective,
    Minimum,
    Objective,
    OnStep,
    Stopping,
    TrainingState,
    begin_or_resume,
    clipped,
    run_steps,
)

_EPSILON = 1e-8


def minimize_adam(
    objective: DifferentiableObjective[Batch],
    start: Array | TrainingState,
    stopping: Stopping,
    *,
    rng: np.random.Generator | None = None,
    learning_rate: float = 0.02,
    beta1: float = 0.9,
    beta2: float = 0.999,
    clip_norm: float | None = None,
    on_step: OnStep | None = None,
) -> Minimum:
    """Minimize a loss over batches by its gradient, one evaluation a step.

    Parameters are those of :func:`minimize_spsa`; `learning_rate` is the first step size η, and
    `beta1` and `beta2` are the memories of the two running means.
    """

    def advance(state: TrainingState) -> float:
        t = state.step + 1
        loss, gradient = objective.value_and_gradient(state.theta, objective.draw(state.rng))
        gradient = clipped(gradient, clip_norm)
        state.evaluations += 1
        mean = beta1 * state.moments[0] + (1.0 - beta1) * gradient
        square = beta2 * state.moments[1] + (1.0 - beta2) * gradient**2
        state.moments = np.stack([mean, square])
        step_size = learning_rate * 0.5 * (1.0 + math.cos(math.pi * state.step / stopping.steps))
        scale = np.sqrt(square / (1.0 - beta2**t)) + _EPSILON
        state.theta = state.theta - step_size * (mean / (1.0 - beta1**t)) / scale
        return loss

    return run_steps(begin_or_resume(start, rng), advance, stopping, on_step)


GAINS = (6.0, 0.1, 0.602, 0.101)
"""a, c, α and γ where none are given: the usual powers, and a first step that suits circuits of a few dozen weights
(`python benchmarks/fraud_study.py --tune` finds 2 to 60 best, by circuit and loss)."""


def minimize_spsa(
    objective: Objective[Batch],
    start: Array | TrainingState,
    stopping: Stopping,
    *,
    rng: np.random.Generator | None = None,
    a: float = GAINS[0],
    c: float = GAINS[1],
    alpha: float = GAINS[2],
    gamma: float = GAINS[3],
    clip_norm: float | None = 1.0,
    on_step: OnStep | None = None,
) -> Minimum:
    """Minimize a loss over batches by exactly two evaluations a step.

    Parameters
    ----------
    objective : Objective
        Draws batches and evaluates them.
    start : ndarray of shape (p,) or TrainingState
        Parameters to begin with, or a training to go on with, which brings its own generator.
    stopping : Stopping
        Steps, early stop, and which iterate is kept; the paper keeps the last.
    rng : Generator
        Of batches and perturbations; needed with parameters to begin with.
    a, c : float
        First step size and first perturbation.
    alpha, gamma : float
        How they fall with the step.
    clip_norm : float or None
        Longest gradient estimate that is followed.
    on_step : callable or None
        Called with the state after every step; stops the training by returning True.
    """
    if not c > 0:
        raise ParameterError(f"The perturbation 'c' of SPSA must be a number above 0. Got {c!r} instead.")

    def advance(state: TrainingState) -> float:
        t = state.step + 1
        step_size, perturbation = a / t**alpha, c / t**gamma
        batch = objective.draw(state.rng)
        signs = 2.0 * state.rng.integers(0, 2, size=len(state.theta)) - 1.0
        aside = perturbation * signs
        above = objective.value(state.theta + aside, batch)
        below = objective.value(state.theta - aside, batch)
        state.evaluations += 2
        estimate = (above - below) / (2.0 * perturbation) * signs
        state.theta = state.theta - step_size * clipped(estimate, clip_norm)
        return (above + below) / 2.0

    return run_steps(begin_or_resume(start, rng), advance, stopping, on_step)
