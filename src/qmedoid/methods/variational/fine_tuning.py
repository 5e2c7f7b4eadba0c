"""Noise-aware fine-tuning: a few steps of training through a noisy backend, kept if they make held-out rows likelier.

Three ways, by how many circuits they take:

``readout``
    Rows are measured once, and the weights of the read-out take some steps on what was measured. Noise shrinks
    expectation values, above all, and weights undo that.
``spsa``
    All parameters, by two losses for each step.
``adam``
    All parameters, by exact gradients (:mod:`qmedoid.methods.variational.parameter_shift`).

Held-out rows are measured by the same backend with the weights before and after. The new weights are kept if the mean
gain in log-likelihood is larger than its standard error, from differences row by row.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.row_groups import group_sums
from qmedoid.kernels.cross_entropy import cross_entropy, row_losses
from qmedoid.methods.variational.batches import batch_objective, batch_rows, row_weights
from qmedoid.methods.variational.expectations import expectations_of_settings
from qmedoid.methods.variational.model import Batch, ExpectationFunction, Network, VariationalModel
from qmedoid.methods.variational.parameter_shift import MeasuredObjective, gradient_circuits
from qmedoid.methods.variational.training import TrainingData
from qmedoid.optimize.minimizers import GAINS, minimize_adam, minimize_spsa
from qmedoid.optimize.training import Minimum, Stopping, TrainingState

TuningOptimizer = Literal["readout", "adam", "spsa"]
TUNING_OPTIMIZERS: tuple[TuningOptimizer, ...] = ("readout", "adam", "spsa")
# Share of the last steps whose parameters are averaged, and the longest gradient estimate of SPSA that is followed.
_AVERAGE, _CLIP_NORM = 0.5, 1.0


@dataclass(frozen=True)
class TuningSettings:
    """Settings of a fine-tuning; what is None is set by the optimizer.

    Attributes
    ----------
    optimizer : {"readout", "adam", "spsa"}
    n_steps : int or None
    batch_size : int or None
        Rows of a step; of the read-out the rows that are measured, once.
    learning_rate : float or None
        First step size: η of Adam, a of SPSA.
    """

    optimizer: TuningOptimizer = "readout"
    n_steps: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None

    def filled(self) -> "ChosenTuning":
        """The settings with nothing left open."""
        steps, rows, rate = _DEFAULTS[self.optimizer]
        return ChosenTuning(
            self.optimizer,
            steps if self.n_steps is None else self.n_steps,
            rows if self.batch_size is None else self.batch_size,
            rate if self.learning_rate is None else self.learning_rate,
        )


class ChosenTuning(NamedTuple):
    """Settings of a fine-tuning, each with its value."""

    optimizer: TuningOptimizer
    n_steps: int
    batch_size: int
    learning_rate: float


# Steps, rows of a step and learning rate.
_DEFAULTS: Mapping[TuningOptimizer, tuple[int, int, float]] = {
    "readout": (50, 400, 0.03),
    "adam": (10, 32, 0.02),
    "spsa": (30, 64, 0.3),
}


@dataclass(frozen=True)
class FineTuningReport:
    """How a fine-tuning went.

    Attributes
    ----------
    optimizer, n_steps, batch_size, learning_rate : as of `TuningSettings`
    n_tuning_rows, n_held_out_rows : int
        Rows that batches were drawn from, and rows that judged.
    n_circuits : int
        Circuits that were run, those of the held-out rows included.
    batch_losses : tuple of float
        Loss of every step, before it.
    loss_before, loss_after : float
        Mean loss of the held-out rows under noise, minus the log-likelihood, with the weights before and after.
    loss_before_error, loss_after_error : float
        Their standard errors.
    gain, gain_error : float
        Mean of the difference by row, above 0 where the new weights are better, and its standard error.
    kept : bool
        Whether the new weights were kept.
    reason : str
        Why, or why not.
    """

    optimizer: TuningOptimizer
    n_steps: int
    batch_size: int
    learning_rate: float
    n_tuning_rows: int
    n_held_out_rows: int
    n_circuits: int
    batch_losses: tuple[float, ...] = field(repr=False)
    loss_before: float
    loss_before_error: float
    loss_after: float
    loss_after_error: float
    gain: float
    gain_error: float
    kept: bool
    reason: str


def fine_tuning_circuits(network: Network, codes: Codes, n_held_out: int, settings: TuningSettings) -> int:
    """Circuits that a fine-tuning on rows of these classes takes, with as many rows that judge.

    Examples
    --------
    >>> import numpy as np
    >>> from qmedoid.methods.variational.fine_tuning import TuningSettings, fine_tuning_circuits
    >>> from qmedoid.methods.variational.training import CircuitSettings
    >>> network, codes = CircuitSettings().network(n_inputs=3, n_classes=2), np.arange(600) % 2
    >>> [fine_tuning_circuits(network, codes, 200, TuningSettings(name)) for name in ("readout", "spsa", "adam")]
    [600, 4240, 16080]
    """
    optimizer, n_steps, batch_size, _ = settings.filled()
    rows = batch_rows(codes, network.readout.n_classes, batch_size, "importance")
    if optimizer == "readout":
        return rows + n_held_out
    per_step = gradient_circuits(network, rows) if optimizer == "adam" else 2 * rows
    return n_steps * per_step + 2 * n_held_out


def fine_tune(
    model: VariationalModel,
    tuning: TrainingData,
    held_out: TrainingData,
    backend: ExpectationFunction,
    settings: TuningSettings,
    rng: np.random.Generator,
    groups: Codes | None = None,
) -> tuple[VariationalModel, FineTuningReport]:
    """Train a model a little further through a backend, and keep that if held-out rows are likelier under its noise.

    Parameters
    ----------
    model : VariationalModel
        Where the steps begin.
    tuning, held_out : TrainingData
        Rows to draw batches from, and other rows that judge.
    backend : callable (ansatz, rotations, inputs, observables) -> expectation values
        Draws new shots in every call.
    settings : TuningSettings
    rng : numpy.random.Generator
        Draws batches and perturbations.
    groups : ndarray of shape (n_held_out,) or None
        Held-out rows of one group count as one draw.

    Returns
    -------
    VariationalModel
        The tuned model, or `model` itself where the new weights were not kept.
    FineTuningReport
    """
    chosen, network = settings.filled(), model.network
    if chosen.optimizer == "readout" and not network.readout.n_parameters:
        raise ParameterError(
            "This circuit has a read-out without weights: there is nothing to tune by optimizer='readout'. Pass "
            "optimizer='spsa' or 'adam', which tune rotations and input scales."
        )
    if not len(held_out.codes):
        raise DataError("A fine-tuning needs held-out rows that judge it, and there are none.")
    n_circuits = fine_tuning_circuits(network, tuning.codes, len(held_out.codes), settings)
    minimum, theta = _tuned(model, tuning, backend, chosen, rng)
    if not np.isfinite(theta).all():
        raise DataError(
            f"The fine-tuning diverged: the weights are not finite after {minimum.steps} steps. Lower the learning "
            "rate, and look at what the backend measures."
        )
    measured = _held_out_losses(model, theta, held_out, backend, same_circuits=chosen.optimizer == "readout")
    weights = row_weights(held_out.codes, held_out.class_weights)
    before, after, gain = (
        _mean_and_error(values, weights, groups) for values in (*measured, measured[0] - measured[1])
    )
    kept, reason = _judged(*gain)
    report = FineTuningReport(
        *chosen, len(tuning.codes), len(held_out.codes), n_circuits, tuple(minimum.losses.tolist()),
        *before, *after, *gain, kept, reason,
    )  # fmt: skip
    return replace(model, theta=theta) if kept else model, report


def _tuned(
    model: VariationalModel,
    data: TrainingData,
    backend: ExpectationFunction,
    chosen: ChosenTuning,
    rng: np.random.Generator,
) -> tuple[Minimum, Array]:
    """What the steps end with, and all parameters then."""
    network, stopping = model.network, Stopping(chosen.n_steps, average=_AVERAGE)
    rows = Batch(
        model.angle_map.apply(data.features), data.codes, row_weights(data.codes, data.class_weights), data.offset
    )
    plain = batch_objective(network, rows, data.class_weights, chosen.batch_size, "importance")
    if chosen.optimizer == "readout":
        batch = plain.draw(rng)
        state = TrainingState(model.parameters.readout, rng)
        values = _measured(network, model.theta, batch, backend)
        minimum = minimize_adam(
            _ReadoutObjective(network, batch, values), state, stopping, learning_rate=chosen.learning_rate
        )
        kept = network.n_parameters - network.readout.n_parameters
        return minimum, np.concatenate([model.theta[:kept], minimum.theta])
    objective = MeasuredObjective(network, rows, plain.draw_rows, backend=backend)
    state = TrainingState(model.theta, rng)
    if chosen.optimizer == "adam":
        minimum = minimize_adam(objective, state, stopping, learning_rate=chosen.learning_rate)
    else:
        gains = (chosen.learning_rate, *GAINS[1:])
        minimum = minimize_spsa(objective, state, stopping, gains=gains, clip_norm=_CLIP_NORM)
    return minimum, minimum.theta


@dataclass(frozen=True)
class _ReadoutObjective:
    """The loss of the weights of a read-out on expectation values that were measured once."""

    network: Network
    batch: Batch
    values: Array

    def draw(self, rng: np.random.Generator) -> Batch:  # noqa: ARG002
        return self.batch

    def value(self, theta: Array, batch: Batch) -> float:
        return self.value_and_gradient(theta, batch)[0]

    def value_and_gradient(self, theta: Array, batch: Batch) -> tuple[float, Array]:
        readout = self.network.readout
        scores = readout.scores(self.values, theta)
        scores = scores if batch.offset is None else scores + batch.offset
        loss, by_scores = cross_entropy(scores, batch.codes, batch.weights)
        return loss, readout.gradient(self.values, theta, by_scores)[1]


def _measured(network: Network, theta: Array, batch: Batch, backend: ExpectationFunction) -> Array:
    rotations, inputs = network.split(theta).rotations, network.encoded(theta, batch.inputs)
    observables = network.readout.observables
    values: Array = expectations_of_settings(backend, network.ansatz, rotations[None], inputs[None], observables)[0]
    return values


def _held_out_losses(
    model: VariationalModel, theta: Array, data: TrainingData, backend: ExpectationFunction, *, same_circuits: bool
) -> tuple[Array, Array]:
    """Minus the log-likelihood of every row before and after, both measured in one call.

    Where only the read-out differs, the circuits are the same, and are run once.
    """
    network, inputs = model.network, model.angle_map.apply(data.features)
    thetas = [model.theta] if same_circuits else [model.theta, theta]
    values = expectations_of_settings(
        backend, network.ansatz, np.stack([network.split(one).rotations for one in thetas]),
        np.stack([network.encoded(one, inputs) for one in thetas]), network.readout.observables,
    )  # fmt: skip
    offset = 0.0 if data.offset is None else data.offset
    before, after = (
        row_losses(network.readout.scores(measured, network.split(one).readout) + offset, data.codes)
        for measured, one in ((values[0], model.theta), (values[-1], theta))
    )
    return before, after


def _judged(gain: float, error: float) -> tuple[bool, str]:
    """Whether a mean gain in log-likelihood is kept, and why."""
    moved, limit = "fell" if gain > 0 else "rose", "more than" if abs(gain) > error else "no more than"
    return gain > error, (
        f"the held-out loss under noise {moved} by {abs(gain):.4g}, {limit} its standard error of {error:.4g}"
    )


class _Mean(NamedTuple):
    mean: float
    error: float


def _mean_and_error(values: Array, weights: Array, groups: Codes | None) -> _Mean:
    """Weighted mean with its standard error; weights add up to 1, and rows of one group are one draw."""
    mean = float(weights @ values)
    apart = group_sums(weights * (values - mean), groups)
    if len(apart) < 2:
        return _Mean(mean, float("inf"))
    return _Mean(mean, float(np.sqrt(len(apart) / (len(apart) - 1) * (apart @ apart))))
