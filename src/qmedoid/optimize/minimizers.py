r"""Adam on exact gradients and SPSA on noisy losses (algorithm 18).

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
from collections.abc import Callable

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.optimize.training import (
    Batch,
    DifferentiableObjective,
    Ended,
    Minimum,
    Objective,
    OnStep,
    Stopping,
    TrainingState,
)

# Memories of Adam's two running means, and the guard of its denominator.
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
# Weight of the past in the running mean of batch losses, by which a stopped training picks its best parameters.
_SMOOTHING = 0.9
GAINS = (6.0, 0.1, 0.602, 0.101)
"""a, c, α and γ of SPSA where none are given: the usual powers, and a first step that suits circuits of a few dozen
weights (`python benchmarks/fraud_study.py --tune` finds 2 to 60 best, by circuit and loss)."""


def minimize_adam(
    objective: DifferentiableObjective[Batch],
    state: TrainingState,
    stopping: Stopping,
    *,
    learning_rate: float = 0.02,
    clip_norm: float | None = None,
    on_step: OnStep | None = None,
) -> Minimum:
    """Minimize a loss over batches by its gradient, one evaluation a step.

    Parameters are those of :func:`minimize_spsa`; `learning_rate` is the first step size η.
    """

    def advance() -> float:
        t = state.step + 1
        loss, gradient = objective.value_and_gradient(state.theta, objective.draw(state.rng))
        gradient = clipped(gradient, clip_norm)
        state.evaluations += 1
        mean = _BETA1 * state.moments[0] + (1.0 - _BETA1) * gradient
        square = _BETA2 * state.moments[1] + (1.0 - _BETA2) * gradient**2
        state.moments = np.stack([mean, square])
        step_size = learning_rate * 0.5 * (1.0 + math.cos(math.pi * state.step / stopping.steps))
        scale = np.sqrt(square / (1.0 - _BETA2**t)) + _EPSILON
        state.theta = state.theta - step_size * (mean / (1.0 - _BETA1**t)) / scale
        return loss

    return _run_steps(state, advance, stopping, on_step)


def minimize_spsa(
    objective: Objective[Batch],
    state: TrainingState,
    stopping: Stopping,
    *,
    gains: tuple[float, float, float, float] = GAINS,
    clip_norm: float | None = 1.0,
    on_step: OnStep | None = None,
) -> Minimum:
    """Minimize a loss over batches by exactly two evaluations a step.

    Parameters
    ----------
    objective : Objective
        Draws batches and evaluates them.
    state : TrainingState
        A training to begin or to go on with; it is advanced in place, and its generator draws.
    stopping : Stopping
        Steps, early stop, and which iterate is kept; the paper keeps the last.
    gains : tuple of float
        First step size a and first perturbation c, and the powers α and γ by which they fall with the step.
    clip_norm : float or None
        Longest gradient estimate that is followed.
    on_step : callable or None
        Called with the state after every step; may keep a copy, and stops the training by returning True. A stopped
        training keeps the mean of its last iterates if it has come so far, else its best parameters.
    """
    a, c, alpha, gamma = gains
    if not c > 0:
        raise ParameterError(f"The perturbation 'c' of SPSA must be a number above 0. Got {c!r} instead.")

    def advance() -> float:
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

    return _run_steps(state, advance, stopping, on_step)


def clipped(gradient: Array, norm: float | None) -> Array:
    """The gradient, shortened to `norm` where it is longer."""
    if norm is None:
        return gradient
    length = math.sqrt(gradient @ gradient)
    return gradient * (norm / length) if length > norm else gradient


def _run_steps(
    state: TrainingState, advance: Callable[[], float], stopping: Stopping, on_step: OnStep | None
) -> Minimum:
    """Advance the state until the training ends; `advance` does one step and returns the batch loss before it."""
    patience = stopping.patience
    ended: Ended = "steps"
    while state.step < stopping.steps:
        if patience is not None and state.waited >= patience:
            ended = "patience"
            break
        before = state.theta
        _note(state, advance(), before, stopping)
        if on_step is not None and on_step(state) and state.step < stopping.steps:
            ended = "stopped"
            break
    return Minimum(_kept(state, stopping, ended), np.array(state.losses), state.evaluations, ended)


def _note(state: TrainingState, loss: float, before: Array, stopping: Stopping) -> None:
    """Count the step and update what ends a training and what it keeps; the loss is of the parameters before it."""
    state.step += 1
    state.losses.append(loss)
    if loss < state.lowest - stopping.tolerance:
        state.lowest, state.waited = loss, 0
    else:
        state.waited += 1
    state.smoothed = loss if state.step == 1 else _SMOOTHING * state.smoothed + (1.0 - _SMOOTHING) * loss
    if state.smoothed < state.best_loss:
        state.best_loss, state.best_theta = state.smoothed, before.copy()
    if state.step > stopping.steps - max(1, round(stopping.average * stopping.steps)):
        state.averaged += 1
        state.average = state.average + (state.theta - state.average) / state.averaged


def _kept(state: TrainingState, stopping: Stopping, ended: Ended) -> Array:
    if state.step == 0 or (stopping.keep == "last" and ended != "stopped"):
        return state.theta.copy()
    if stopping.keep == "average" and state.averaged:
        return state.average.copy()
    return state.best_theta.copy()
