"""What minimizers of a noisy objective share: the objective, a resumable state, and the stopping rule."""

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
_COUNTS = ("step", "averaged", "waited", "evaluations")


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

    def __init__(self, theta: Array, rng: np.random.Generator) -> None:
        self.theta: Array = np.array(theta, dtype=np.float64)
        self.moments, self.average = np.zeros((2, len(theta))), np.zeros(len(theta))
        self.best_theta = self.theta.copy()
        self.step = self.averaged = self.waited = self.evaluations = 0
        self.smoothed, self.best_loss, self.lowest = math.nan, math.inf, math.inf
        self.losses: list[float] = []
        self.rng = rng

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
        return {name: getattr(self, name) for name in _COUNTS} | {"generator": self.rng.bit_generator.state}

    @classmethod
    def restore(cls, arrays: Mapping[str, Array], counts: Mapping[str, Any]) -> "TrainingState":
        """The state that `arrays` and `counts` describe; what does not fit together is refused."""
        state = cls(np.zeros(arrays["theta"].size), np.random.Generator(np.random.PCG64()))
        state.rng.bit_generator.state = counts["generator"]
        for name in _COUNTS:
            setattr(state, name, int(counts[name]))
        shapes = {name: array.shape for name, array in state.arrays().items()} | {"losses": (state.step,)}
        for name, shape in shapes.items():
            if arrays[name].shape != shape or arrays[name].dtype != np.float64:
                raise DataError(
                    f"The {name!r} of a training after {state.step} steps with {len(state.theta)} parameters must be "
                    f"of shape {shape} and type float64. Got {arrays[name].shape} and {arrays[name].dtype} instead."
                )
        for name in ("theta", "moments", "average", "best_theta"):
            setattr(state, name, np.array(arrays[name]))
        state.losses = arrays["losses"].tolist()
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
        Maximum number of steps.
    patience : int or None
        Number of steps after which to end if the batch loss did not fall below its lowest by more than `tolerance`.
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
