"""From parameters to trained circuits: candidates, folds and progress."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.callback import CallbackContext

from qmedoid.estimators import parameters as allowed
from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.recipes import time_is_up
from qmedoid.exceptions import InterruptedWarning, warn
from qmedoid.kernels.statevector import MAX_QUBITS
from qmedoid.methods.variational.training import (
    CircuitSettings,
    Selection,
    Split,
    Trained,
    TrainingData,
    Watch,
    select_variational,
    train_candidate,
)
from qmedoid.optimize.minimizers import Stopping

if TYPE_CHECKING:
    from qmedoid.estimators.variational import VariationalClassifier
BATCH_SIZE = 256
"""Rows of a batch where no number is asked for."""
# Progress is reported about so often per training, however many steps it has.
_REPORTS = 50
GRID: dict[str, allowed.Constraint] = {
    "n_reps": allowed.whole(1),
    "reupload": allowed.FLAG,
    "n_steps": allowed.whole(1),
    "batch_size": allowed.NONE | allowed.whole(1),
    "n_qubits": allowed.NONE | allowed.whole(1, MAX_QUBITS),
    "clip": allowed.NONE | allowed.POSITIVE,
    "learning_rate": allowed.POSITIVE,
}


@dataclass(frozen=True)
class TrainingPlan:
    """Candidates, folds and data of one fit."""

    data: TrainingData
    points: tuple[dict[str, Any], ...]
    candidates: tuple[CircuitSettings, ...]
    splits: Sequence[Split]
    entropy: list[int]
    n_seeds: int
    metric: str | None

    @classmethod
    def of(
        cls,
        estimator: "VariationalClassifier",
        data: TrainingData,
        rows: TrainingTable,
        entropy: list[int],
        *,
        out_of_fold: bool,
    ) -> "TrainingPlan":
        """The plan that the parameters of an estimator describe; the circuits are checked against the data.

        Folds of the rows are made where there is something to choose, or where out-of-fold scores are asked for.
        """
        points, candidates = grid_candidates(estimator)
        n_rows, n_inputs = data.features.shape
        for point, circuit in zip(points, candidates, strict=True):
            circuit.network(n_inputs, len(rows.classes))
            asked = point.get("batch_size", estimator.batch_size)
            if asked is not None and asked > n_rows:
                warn(f"batch_size={asked} is more than the {n_rows} rows: every step uses all of them.")
        splits: Sequence[Split] = ()
        # Where every class has one row, no row can be held out.
        if (out_of_fold or len(candidates) > 1) and np.bincount(data.codes).max() > 1:
            rng = np.random.default_rng(entropy)
            splits = rows.splits(estimator, rng)
        metric = estimator.operating_point if isinstance(estimator.operating_point, str) else None
        return cls(data, points, candidates, splits, entropy, estimator.n_seeds, metric)

    @property
    def n_reports(self) -> int:
        """How often the fit will report."""
        steps = [one.stopping.steps for one in self.candidates]
        reports = [self.n_seeds * (number // _stride(number)) for number in steps]
        return len(self.splits) * sum(reports) + max(reports)

    def run(self, watch: Watch) -> tuple[Trained, dict[str, Any], Selection | None]:
        """Choose a candidate, if there is a choice, and train it on all rows; its point of the grid, and the choice.

        An interrupt (Ctrl-C) while candidates are judged ends the choice with the best so far; a second one, in the
        final training, ends that with its best.
        """
        best, selection = 0, None
        if self.splits:
            selection = select_variational(
                self.data, self.candidates, self.splits, [*self.entropy, 0], self.n_seeds, self.metric, watch
            )
            if watch.stop.is_set():
                watch.stop.clear()
                judged = 0 if selection is None else len(selection[1])
                message = f"The choice was interrupted: {judged} of {len(self.candidates)} candidates were judged."
                warn(message, InterruptedWarning)
            best = 0 if selection is None else selection[0]
        trained = train_candidate(self.data, self.candidates[best], [*self.entropy, 1], self.n_seeds, watch)
        if trained.stopped:
            steps = max(len(losses) for _, losses, _ in trained.minima)
            warn(f"The training was stopped after {steps} steps; the best weights so far are used.", InterruptedWarning)
        return trained, self.points[best], selection


def grid_candidates(
    estimator: "VariationalClassifier",
) -> tuple[tuple[dict[str, Any], ...], tuple[CircuitSettings, ...]]:
    """Every point of the grid, and the circuit and training that it describes; one point where there is no grid."""
    grid = estimator.grid or {}
    points = tuple(dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values()))
    return points, tuple(_candidate(estimator.get_params(deep=False) | point) for point in points)


def _candidate(parameters: Mapping[str, Any]) -> CircuitSettings:
    learned = isinstance(parameters["input_scales"], str)
    scales = 1.0 if learned else parameters["input_scales"]
    stopping = Stopping(
        steps=parameters["n_steps"],
        patience=parameters["patience"],
        tolerance=float(parameters["tolerance"]),
        average=float(parameters["average"]),
    )
    a, c, alpha, gamma = parameters["spsa_gains"]
    return CircuitSettings(
        n_qubits=parameters["n_qubits"],
        n_reps=parameters["n_reps"],
        reupload=bool(parameters["reupload"]),
        final_rz=bool(parameters["final_rz"]),
        readout=parameters["readout"],
        scales=tuple(np.atleast_1d(np.asarray(scales, dtype=np.float64)).tolist()),
        learn_scales=learned,
        clip=None if parameters["clip"] is None else float(parameters["clip"]),
        span=float(parameters["span"]),
        precision=parameters["precision"],
        optimizer=parameters["optimizer"],
        stopping=stopping,
        batch_size=BATCH_SIZE if parameters["batch_size"] is None else parameters["batch_size"],
        sampling=parameters["sampling"],
        learning_rate=float(parameters["learning_rate"]),
        spsa_gains=(float(a), float(c), float(alpha), float(gamma)),
        clip_norm=parameters["clip_norm"],
    )


def reporting_watch(estimator: Any, context: CallbackContext) -> Watch:
    """A watch that tells scikit-learn's callbacks of the trainings, with the loss among the metadata.

    A callback may ask to stop, or the time be up; the trainings then keep their best.
    """

    def on_step(seed: int, step: int, steps: int, loss: float) -> bool:
        if step % _stride(steps):
            return False
        task = context.subcontext(task_name=f"seed {seed}, step {step}")
        metadata = {"seed": seed, "step": step, "steps": steps, "loss": loss}
        begun = task.call_on_fit_task_begin(estimator=estimator)
        return bool(begun.call_on_fit_task_end(estimator=estimator, metadata=metadata)) or time_is_up()

    return Watch(on_step)


def _stride(steps: int) -> int:
    return max(1, steps // _REPORTS)
