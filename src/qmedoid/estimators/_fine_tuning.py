"""Fine-tuning of the circuit of a fitted classifier: parameters, classes, and which rows tune and which judge."""

import copy
from abc import abstractmethod
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Codes
from qmedoid.estimators import _parameters as allowed
from qmedoid.estimators._folds import stratified_splits
from qmedoid.exceptions import DataError, some_of, warn
from qmedoid.geometry.row_groups import draw_rows, part_of
from qmedoid.methods.variational.fine_tuning import (
    TUNING_OPTIMIZERS,
    FineTuningReport,
    TuningOptimizer,
    TuningSettings,
    fine_tune,
)
from qmedoid.methods.variational.model import ExpectationFunction, VariationalModel, check_expectations
from qmedoid.methods.variational.training import TrainingData

_CONSTRAINTS = {
    "optimizer": allowed.choice(TUNING_OPTIMIZERS),
    "n_steps": allowed.NONE | allowed.whole(1),
    "batch_size": allowed.NONE | allowed.whole(1),
    "learning_rate": allowed.NONE | allowed.POSITIVE,
    "max_held_out": allowed.whole(2),
    "random_state": allowed.SEED,
}


class TuningRows(NamedTuple):
    """A circuit, the rows that it may be tuned on with their classes, and the group of each."""

    circuit: VariationalModel
    data: TrainingData
    classes: npt.NDArray[Any]
    groups: Codes | None


class FineTuningMixin:
    """A classifier with a circuit that can be tuned for a noisy backend.

    Attributes
    ----------
    fine_tuning_ : FineTuningReport
        How the weights were tuned; only of copies made by `fine_tuned`.
    """

    random_state: Any
    fine_tuning_: FineTuningReport

    def fine_tuned(
        self,
        X: Any,
        y: Any,
        backend: ExpectationFunction,
        *,
        groups: Any = None,
        optimizer: TuningOptimizer = "readout",
        n_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        max_held_out: int = 500,
        random_state: Any = None,
    ) -> Self:
        """A copy whose circuit is trained a little further through a noisy backend, if that helps.

        One half of the rows tunes and the other judges, in equal shares of the classes. The new weights are kept if
        they make the rows that judge likelier under the noise of the backend by more than a standard error; else there
        is a warning. Predict by `measured_by` of the copy: simulated exactly, weights that make up for noise are too
        sure of themselves.

        Parameters
        ----------
        X, y : as of `fit`
            Labeled rows, new ones if there are. A `VariationalClassifier` takes those of its fit, too; but where it
            fits them better than new rows, they ask for weights that are too sure. A `MedoidClassifier` leaves rows of
            its fit out, with a warning: they lie nearer to their class than new rows do.
        backend : callable (ansatz, rotations, inputs, observables) -> expectation values
            One of the variational backends of :mod:`qmedoid.quantum.circuits`, or anything with the same call. It
            should draw new shots in every call: samplers that start afresh from a seed in every job do not.
        groups : array-like of shape (n,), optional
            Rows with the same label belong together, and tune or judge together. None takes equal rows as groups.
        optimizer : {"readout", "spsa", "adam"}, default="readout"
            Weights of the read-out alone, on rows that are measured once; all parameters by two losses for each step;
            or all parameters by exact gradients (parameter shift), which take many circuits.
        n_steps : int or None, default=None
            None takes 50, 30 or 10 steps, by the optimizer.
        batch_size : int or None, default=None
            Rows of a step; of the read-out the rows that are measured. None takes 400, 64 or 32.
        learning_rate : float or None, default=None
            First step size. None takes 0.03, 0.3 or 0.02.
        max_held_out : int, default=500
            Maximum number of rows that judge.
        random_state : int, RandomState or None, default=None
            Seed of the split, the batches and the perturbations; None takes that of the classifier.

        Returns
        -------
        Self
            Its `fine_tuning_` says how it went. The threshold stays as it was.
        """
        check_is_fitted(self)
        seed = self.random_state if random_state is None else random_state
        given = {
            "optimizer": optimizer, "n_steps": n_steps, "batch_size": batch_size, "learning_rate": learning_rate,
            "max_held_out": max_held_out, "random_state": seed,
        }  # fmt: skip
        allowed.check_parameters("fine_tuned", given, _CONSTRAINTS)
        check_expectations("'backend' parameter of fine_tuned", backend)
        settings = TuningSettings(optimizer, n_steps, batch_size, learning_rate)
        rng = np.random.default_rng(check_random_state(seed).randint(2**31, size=4))
        rows = self._tuning_rows(X, y, groups)
        circuit, report = _tuned(rows, backend, settings, max_held_out, rng)
        if not report.kept:
            warn(f"The fine-tuned weights were not kept: {report.reason}. The classifier has the weights that it had.")
        tuned = copy.copy(self)
        tuned.fine_tuning_ = report
        tuned._hold_circuit(circuit)
        return tuned

    def _tuning_metrics(self) -> dict[str, Any]:
        """What a saved model shows of a fine-tuning that changed its weights."""
        report = getattr(self, "fine_tuning_", None)
        if report is None or not report.kept:
            return {}
        return {"fine_tuning": {name: value for name, value in asdict(report).items() if name != "batch_losses"}}

    def _forget_tuning(self) -> None:
        """A fit leaves nothing of a fine-tuning before it."""
        vars(self).pop("fine_tuning_", None)

    @abstractmethod
    def _tuning_rows(self, X: Any, y: Any, groups: Any) -> TuningRows:
        """The circuit, without a backend that runs it, and what it may be tuned on."""

    @abstractmethod
    def _hold_circuit(self, circuit: VariationalModel) -> None:
        """Decide by another circuit of the same shape."""


def known_classes(labels: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Codes:
    """The class of every row as its place among the classes of a fit; others are refused."""
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise DataError(
            f"y holds classes that the classifier was not fitted on: {some_of([*map(repr, unknown)], 5)}. Leave their "
            f"rows out; the classes are {some_of([*map(repr, classes.tolist())], 5)}."
        )
    return np.searchsorted(classes, labels).astype(np.intp)


def _tuned(
    rows: TuningRows,
    backend: ExpectationFunction,
    settings: TuningSettings,
    max_held_out: int,
    rng: np.random.Generator,
) -> tuple[VariationalModel, FineTuningReport]:
    """Tune by half of the rows and judge by the others; rows of one group are on one side."""
    circuit, data, classes, groups = rows
    tuning = judging = np.arange(len(data.codes))
    if len(data.codes):
        tuning, judging = stratified_splits(2, data.features, data.codes, classes, rng, groups)[0]
    if len(judging) < 2 or np.isin(judging, tuning).any() or len(np.unique(data.codes[tuning])) < 2:
        raise DataError(
            f"The circuit decides {len(data.codes)} of the rows, which cannot be split into some that tune and some "
            "that judge: give at least 2 rows of each of 2 classes, and rows that do not all belong together."
        )
    judging = draw_rows(judging, max_held_out, rng)
    together = part_of(groups, judging)
    return fine_tune(circuit, data.part(tuning), data.part(judging), backend, settings, rng, together)
