r"""Minimizers of a noisy objective: Adam on gradients, SPSA on losses (algorithm 18).

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
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError

Batch = TypeVar("Batch")
Ended = Literal["steps", "patience", "stopped"]

# Memories of Adam's two running means, and the guard of its denominator.
_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
# Weight of the past in the running mean of batch losses, by which a stopped training picks its best parameters.
_SMOOTHING = 0.9
GAINS = (6.0, 0.1, 0.602, 0.101)
"""a, c, α and γ of SPSA where none are given: the usual powers, and a first step that suits circuits of a few dozen
weights (`python benchmarks/fraud_study.py --tune` finds 2 to 60 best, by circuit and loss)."""


class Objective(Protocol[Batch]):
    """A loss over batches that the objective draws itself."""

    def draw(self, rng: np.random.Generator) -> Batch:
        """The batch of the next step."""

    def value(self, theta: Array, batch: Batch) -> float:
        """Loss of the parameters on a batch."""


class DifferentiableObjective(Objective[Batch], Protocol[Batch]):
    """A loss that knows its gradient."""

    def value_and_gradient(self, theta: Array, batch: Batch) -> tuple[float, Array]:
        """Loss on a batch and its gradient by the parameters."""


class TrainingState:
    """All that the next step depends on, the generator included.

    Attributes
    ----------
    step : steps done
    theta : parameters after them
    moments : running means of the gradient and of its square, shape (2, p); only Adam uses them
    average, averaged : mean of the last iterates, and how many are in it
    smoothed, best_loss, best_theta : running mean of the batch losses, its lowest value, and the parameters there
    lowest, waited : lowest batch loss, and steps since it last fell by the tolerance
    losses : batch loss of every step
    rng : the generator of batches and perturbations
    """

    def __init__(self, theta: Array, rng: np.random.Generator) -> None:
        self.theta: Array = np.array(theta, dtype=np.float64)
        self.moments, self.average = np.zeros((2, len(theta))), np.zeros(len(theta))
        self.best_theta = self.theta.copy()
        self.step = self.averaged = self.waited = 0
        self.smoothed, self.best_loss, self.lowest = math.nan, math.inf, math.inf
        self.losses: list[float] = []
        self.rng = rng


Minimum = tuple[Array, Array, Ended]
"""What a training ends with: the parameters that are kept, (p,), the batch loss of every step, and why it ended."""


@dataclass(frozen=True)
class Stopping:
    """When a training ends and what it keeps.

    Attributes
    ----------
    steps : int
        Maximum number of steps.
    patience : int or None
        Number of steps after which to end if the batch loss did not fall below its lowest by more than `tolerance`.
    tolerance : float
    average : float
        Share of the steps, the last ones, whose mean iterate is kept; 0 keeps the last one. A training that is stopped
        before them keeps its best.
    """

    steps: int
    patience: int | None = None
    tolerance: float = 0.0
    average: float = 0.3


OnStep = Callable[[TrainingState], bool | None]


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
    state : TrainingState
        The training; it is advanced in place, and its generator draws.
    stopping : Stopping
        The paper keeps the last iterate.
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
        loss = advance()
        # The loss is of the parameters before the step.
        state.step += 1
        state.losses.append(loss)
        if loss < state.lowest - stopping.tolerance:
            state.lowest, state.waited = loss, 0
        else:
            state.waited += 1
        state.smoothed = loss if state.step == 1 else _SMOOTHING * state.smoothed + (1.0 - _SMOOTHING) * loss
        if state.smoothed < state.best_loss:
            state.best_loss, state.best_theta = state.smoothed, before.copy()
        if stopping.average and state.step > stopping.steps - max(1, round(stopping.average * stopping.steps)):
            state.averaged += 1
            state.average = state.average + (state.theta - state.average) / state.averaged
        if on_step is not None and on_step(state) and state.step < stopping.steps:
            ended = "stopped"
            break
    if state.step == 0 or (not stopping.average and ended != "stopped"):
        kept = state.theta
    else:
        kept = state.average if state.averaged else state.best_theta
    return kept.copy(), np.array(state.losses), ended
