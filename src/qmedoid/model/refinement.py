"""From a fitted method to a hybrid model: calibration, training data of the circuit, whether it pays (algorithm 20)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.row_groups import draws_per_row, group_sums, part_of
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.calibration import CalibrationKind, fit_calibration
from qmedoid.methods.part import Part, Scored
from qmedoid.methods.variational.selection import OutOfFold
from qmedoid.methods.variational.training import TrainingData
from qmedoid.model.hybrid import (
    DeltaSettings,
    HybridModel,
    shared_out,
)


@dataclass(frozen=True, eq=False)
class FittedMethod:
    """A fitted method and its out-of-fold predictions.

    Attributes
    ----------
    model : Part
    measured : Scored
        Of the training rows, by the model.
    out_of_fold : Scored
        The same; rows that a fold held out are measured by a model that was not fitted on them.
    folds : sequence of ndarray
        The rows that each fold held out.
    details : object
        What the estimator of the method shows of this fit.
    """

    model: Part
    measured: Scored
    out_of_fold: Scored
    folds: Sequence[Codes]
    details: Any = None


@dataclass(frozen=True, eq=False)
class CalibratedMethod:
    """A calibrated method with its out-of-fold predictions, and with a circuit once there is one.

    Attributes
    ----------
    model : HybridModel
    scores : ndarray of shape (n, C)
        Calibrated scores of the training rows by the final model.
    out_of_fold : ndarray of shape (n, C)
        The same by models that were not fitted on the row, where a fold holds it out. A row that is a medoid, or
        helped to choose one, lies nearer to its class than new rows do, and would tell the circuit its label.
    measured : Scored
        Of the training rows, out-of-fold in the same way.
    held_out : OutOfFold or None
        Out-of-fold scores of `model`; None where a circuit was stopped before it had any.
    circuit : VariationalClassifier or None
        The circuit as an estimator.
    details : object
        As of `FittedMethod`.
    """

    model: HybridModel
    scores: Array
    out_of_fold: Array
    measured: Scored
    held_out: OutOfFold | None
    circuit: Any = None
    details: Any = None

    def training_data(self, codes: Codes, class_weights: Array) -> tuple[TrainingData, Codes]:
        """What the circuit is trained on, and which rows that are: see `HybridModel.training_data`."""
        return self.model.training_data(self.measured, self.out_of_fold, codes, class_weights)

    def refined_held_out(self, circuit: OutOfFold, rows: Codes, refine_below: float) -> OutOfFold:
        """Out-of-fold scores of the hybrid model: the circuit's where the policy picks a row, else the fusion's.

        Parameters
        ----------
        circuit : OutOfFold
            Scores of the rows that the circuit was trained on.
        rows : ndarray
            Which rows of the table these are.
        """
        assert self.held_out is not None, "a method has out-of-fold scores"
        held_out = self.held_out.scores.copy()
        by_circuit = np.full((len(held_out), circuit.scores.shape[1]), np.nan)
        by_circuit[rows] = circuit.scores
        # Other rows belong to neither of their two nearest classes: sharing those out anew leaves their own class be.
        concerned = np.isin(np.arange(len(held_out)), rows) & (
            self.model.refinement_margins(self.out_of_fold) <= refine_below
        )
        judged = (self.held_out.fold >= 0) & (~concerned | np.isfinite(by_circuit[:, 0]))
        fold = np.where(judged, self.held_out.fold, -1)
        picked = np.flatnonzero(judged & concerned)
        if self.model.deltas.decides_between_two(held_out.shape[1]):
            held_out[picked] = shared_out(held_out[picked], self.out_of_fold[picked], by_circuit[picked])
        else:
            held_out[picked] = by_circuit[picked]
        return OutOfFold(held_out, fold)


def calibrated(
    fitted: FittedMethod,
    codes: Codes,
    *,
    kind: CalibrationKind,
    deltas: DeltaSettings | None = None,
    residual: bool = False,
    groups: Codes | None = None,
    row_weights: Array | None = None,
) -> CalibratedMethod:
    """Calibrate a method on its out-of-fold scores; rows of one group count as one draw."""
    deltas = deltas or DeltaSettings()
    rows = np.concatenate(fitted.folds)
    raw = fitted.out_of_fold.scores
    weights = None if row_weights is None else row_weights[rows] / row_weights[rows].mean()
    calibration = fit_calibration(raw[rows], codes[rows], kind, part_of(groups, rows), weights)
    scores = calibration.apply(raw)
    held_out = OutOfFold(np.full(raw.shape, np.nan), np.full(len(codes), -1, dtype=np.intp))
    held_out.scores[rows] = scores[rows]
    held_out.fold[rows] = np.repeat(np.arange(len(fitted.folds)), [len(fold) for fold in fitted.folds])
    model = HybridModel(fitted.model, calibration, deltas, residual=residual)
    in_sample = calibration.apply(fitted.measured.scores)
    return CalibratedMethod(model, in_sample, scores, fitted.out_of_fold, held_out, details=fitted.details)


def circuit_pays(before: OutOfFold, after: OutOfFold, codes: Codes, groups: Codes | None = None) -> bool:
    """Whether held-out rows are likelier after refinement, by more than one standard error of the difference."""
    rows = np.flatnonzero((before.fold >= 0) & (after.fold >= 0))
    rows = rows[(before.scores[rows] != after.scores[rows]).any(axis=1)]
    if len(rows) < 2:
        return False
    own = np.arange(len(rows))
    gain = log_softmax(after.scores[rows])[own, codes[rows]] - log_softmax(before.scores[rows])[own, codes[rows]]
    together = part_of(groups, rows)
    gain = draws_per_row(together) * group_sums(gain, together)
    return bool(len(gain) > 1 and gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))
