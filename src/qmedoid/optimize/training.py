"""Training loop of the stochastic minimizers: resumable state, stopping rule and callbacks."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError

Batch = TypeVar("Batch")
Keep = Literal["average", "last"]
KEEPS: tuple[Keep, ...] = ("average", "last")
Ended = Literal["steps", "patience", "stopped"]

# Weight of the past in the running mean of batch losses, by which a stopped training picks its best parameters.
_SMOOTHING = 0.9


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
    """All that the next step depends on, the generator included: a training taken up from it ends bit for bit alike.

    Attributes
    ----------
    step : steps done
    theta : parameters after them
    moments : running means of the gradient and of its square, shape (2, p); only Adam uses them
    average, averaged : mean of the last iterates, and how many are in it
    smoothed, best_loss, best_theta : running mean of the batch losses, its lowest value, and the parameters there
    lowest, waited : lowest batch loss, and steps since it last fell by the tolerance
    evaluations : losses computed
    losses : batch loss of every step
    rng : the generator of batches and perturbations
    """

    step: int
    theta: Array
    moments: Array
    average: Array
    averaged: int
    smoothed: float
    best_loss: float
    best_theta: Array
    lowest: float
    waited: int
    evaluations: int
    losses: list[float]
    rng: np.random.Generator

    @classmethod
    def begin(cls, theta: Array, rng: np.random.Generator) -> "TrainingState":
        """The state before the first step."""
        state = cls()
        state.theta = np.array(theta, dtype=np.float64)
        state.moments, state.average = np.zeros((2, len(state.theta))), np.zeros_like(state.theta)
        state.step = state.averaged = state.waited = state.evaluations = 0
        state.smoothed, state.best_loss, state.lowest = math.nan, math.inf, math.inf
        state.best_theta, state.losses, state.rng = state.theta.copy(), [], rng
        return state

    def arrays(self) -> dict[str, Array]:
        """The arrays of the state by name."""
        return {
            "theta": self.theta,
            "moments": self.moments,
            "average": self.average,
            "best_theta": self.best_theta,
            "losses": np.array(self.losses, dtype=np.float64),
            "numbers": np.array([self.smoothed, self.best_loss, self.lowest]),
        }

    def counts(self) -> dict[str, Any]:
        """The whole numbers of the state and the state of its generator, fit for JSON."""
        return {
            "step": self.step,
            "averaged": self.averaged,
            "waited": self.waited,
            "evaluations": self.evaluations,
            "generator": self.rng.bit_generator.state,
        }

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], counts: Mapping[str, Any]) -> "TrainingState":
        """The state that `arrays` and `counts` describe; what does not fit together is refused."""
        p, step = arrays["theta"].size, int(counts["step"])
        shapes = {
            "theta": (p,),
            "moments": (2, p),
            "average": (p,),
            "best_theta": (p,),
            "losses": (step,),
            "numbers": (3,),
        }
        for name, shape in shapes.items():
            if arrays[name].shape != shape or arrays[name].dtype != np.float64:
                raise DataError(
                    f"The {name!r} of a training after {step} steps with {p} parameters must be of shape {shape} and "
                    f"type float64. Got {arrays[name].shape} and {arrays[name].dtype} instead."
                )
        rng = np.random.Generator(np.random.PCG64())
        rng.bit_generator.state = counts["generator"]
        state = cls.begin(arrays["theta"], rng)
        state.step, state.losses = step, arrays["losses"].tolist()
        state.averaged, state.waited = int(counts["averaged"]), int(counts["waited"])
        state.evaluations = int(counts["evaluations"])
        state.moments, state.average = np.array(arrays["moments"]), np.array(arrays["average"])
        state.best_theta = np.array(arrays["best_theta"])
        state.smoothed, state.best_loss, state.lowest = arrays["numbers"].tolist()
        return state


class Minimum(NamedTuple):
    """What a training ends with.

    Attributes
    ----------
    theta : ndarray of shape (p,)
        The parameters that are kept.
    losses : ndarray of shape (steps,)
        Batch loss of every step.
    evaluations : int
        Losses computed, gradients counted as one.
    ended : {"steps", "patience", "stopped"}
        All steps done, no improvement for too long, or asked to stop.
    """

    theta: Array
    losses: Array
    evaluations: int
    ended: Ended

    @property
    def steps(self) -> int:
        """Steps done."""
        return len(self.losses)


@dataclass(frozen=True)
class Stopping:
    """When a training ends and what it keeps.

    Attributes
    ----------
    steps : int
        At most so many.
    patience : int or None
        End after so many steps in which the batch loss did not fall below its lowest by more than `tolerance`.
    tolerance : float
    keep : {"average", "last"}
        The mean of the last iterates, or the last one.
    average : float
        Share of the steps, the last ones, that the mean is over. A training that ends before them keeps its best.
    """

    steps: int
    patience: int | None = None
    tolerance: float = 0.0
    keep: Keep = "average"
    average: float = 0.3

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ParameterError(f"A training needs at least 1 step. Got steps={self.steps!r} instead.")
        if self.patience is not None and self.patience < 1:
            raise ParameterError(f"The 'patience' must be None or an int >= 1. Got {self.patience!r} instead.")
        if not 0 < self.average <= 1:
            raise ParameterError(f"The 'average' must be a number above 0, at most 1. Got {self.average!r} instead.")
        if self.keep not in KEEPS:
            raise ParameterError(f"The 'keep' must be one of {list(KEEPS)}. Got {self.keep!r} instead.")


OnStep = Callable[[TrainingState], bool | None]


def run_steps(
    state: TrainingState,
    advance: Callable[[TrainingState], float],
    stopping: Stopping,
    on_step: OnStep | None = None,
) -> Minimum:
    """Advance the state step by step until the training ends.

    Parameters
    ----------
    advance : callable
        Does one step: gives the state new parameters, counts its evaluations, returns the batch loss before the step.
    on_step : callable or None
        Called with the state after every step; may keep a copy, and stops the training by returning True. A stopped
        training keeps the mean of its last iterates if it has come so far, else its best parameters.
    """
    ended: Ended = "steps"
    while state.step < stopping.steps and not _has_waited(state, stopping):
        before = state.theta
        _note(state, advance(state), before, stopping)
        if on_step is not None and on_step(state) and state.step < stopping.steps:
            ended = "stopped"
            break
    if ended == "steps" and state.step < stopping.steps:
        ended = "patience"
    return Minimum(_kept(state, stopping, ended), np.array(state.losses), state.evaluations, ended)


def begin_or_resume(start: Array | TrainingState, rng: np.random.Generator | None) -> TrainingState:
    """The state to go on from; new parameters need a generator."""
    if isinstance(start, TrainingState):
        return start
    if rng is None:
        raise ParameterError("A training from new parameters needs an 'rng': pass a numpy.random.Generator.")
    return TrainingState.begin(start, rng)


def clipped(gradient: Array, norm: float | None) -> Array:
    """The gradient, shortened to `norm` where it is longer."""
    if norm is None:
        return gradient
    length = math.sqrt(gradient @ gradient)
    return gradient * (norm / length) if length > norm else gradient


def _has_waited(state: TrainingState, stopping: Stopping) -> bool:
    return stopping.patience is not None and state.waited >= stopping.patience


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
