"""Fit of a hybrid model: calibration, training data of the circuit, and whether the circuit helps (algorithm 20)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.calibration.fit import CalibrationKind, fit_calibration
from qmedoid.geometry.channels import Channels
from qmedoid.geometry.row_groups import draws_per_row, group_sums, part_of
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.base import Measured, Scorer
from qmedoid.methods.nearest.fit import Selected
from qmedoid.model.hybrid import (
    DeltaSettings,
    HybridModel,
    shared_out,
    two_nearest,
    two_nearest_scores,
)
from qmedoid.variational.model import VariationalModel
from qmedoid.variational.selection import OutOfFold
from qmedoid.variational.training import TrainingData


@dataclass(frozen=True)
class Stage:
    """A calibrated method with its scores of the training rows.

    Attributes
    ----------
    model : HybridModel
        Without a circuit.
    scores : ndarray of shape (n, C)
        Calibrated scores of the training rows by the final model.
    out_of_fold : ndarray of shape (n, C)
        The same, out-of-fold where a fold holds the row out. A row that is a medoid, or helped to choose one, lies
        nearer to its class than new rows do, and would show the circuit its label.
    features : ndarray of shape (n, m)
        Deltas of the training rows, out-of-fold as well.
    held_out : OutOfFold
        Calibrated out-of-fold scores.
    """

    model: HybridModel
    scores: Array
    out_of_fold: Array
    features: Array
    held_out: OutOfFold

    def training_data(self, codes: Codes, class_weights: Array) -> tuple[TrainingData, Codes]:
        """What the circuit is trained on, and which rows that are.

        A circuit that decides between the two nearest classes learns from the records that belong to one of them:
        code 1 is the nearest, 0 the runner-up.
        """
        residual = self.model.residual
        if not self.model.deltas.decides_between_two(self.out_of_fold.shape[1]):
            offset = self.out_of_fold if residual else None
            return TrainingData(self.features, codes, class_weights, offset), np.arange(len(codes))
        best, second = two_nearest(self.out_of_fold)
        rows = np.flatnonzero((codes == best) | (codes == second))
        offset = two_nearest_scores(self.out_of_fold)[rows] if residual else None
        between = (codes == best)[rows].astype(np.intp)
        return TrainingData(self.features[rows], between, np.ones(2), offset), rows

    def with_circuit(self, circuit: VariationalModel, refine_below: float) -> HybridModel:
        """The hybrid model."""
        return replace(self.model, variational=circuit, refine_below=refine_below)

    def refined_held_out(self, circuit: OutOfFold, rows: Codes, refine_below: float) -> OutOfFold:
        """Out-of-fold scores of the hybrid model: the circuit's where the policy picks a row, else the method's.

        Parameters
        ----------
        circuit : OutOfFold
            Scores of the rows that the circuit was trained on.
        rows : ndarray
            Which rows of the table these are.
        """
        held_out = self.held_out.scores.copy()
        by_circuit = np.full((len(held_out), circuit.scores.shape[1]), np.nan)
        by_circuit[rows] = circuit.scores
        # Other rows belong to neither of their two nearest classes: sharing those out anew does not change their class.
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


def fusion_apart(selected: Selected, folds: Sequence[Codes], measured: Measured) -> Measured:
    """Measurements of the training rows by a nearest-medoid method, out-of-fold where a fold holds the row out."""
    if selected.out_of_fold is None:
        return measured
    rows = np.concatenate(folds)
    channels = Channels(measured.channels.distance.copy(), measured.channels.angle.copy())
    channels.distance[rows], channels.angle[rows] = selected.out_of_fold
    return measured._replace(channels=channels, scores=selected.model.fuse(channels))


def calibrated_stage(
    first: Scorer,
    measured: Measured,
    out_of_fold: Measured,
    folds: Sequence[Codes],
    codes: Codes,
    *,
    kind: CalibrationKind,
    deltas: DeltaSettings,
    residual: bool,
    groups: Codes | None = None,
) -> Stage:
    """Calibrate a method on its out-of-fold rows, and score the training rows.

    Parameters
    ----------
    first : Scorer
    measured, out_of_fold : Measured
        Measurements of the training rows, and the same out-of-fold where a fold holds the row out.
    folds : sequence of ndarray
        The rows of the table that each fold held out.
    groups : ndarray of shape (n,), optional
        Rows of one group count as one draw.
    """
    rows = np.concatenate(folds)
    calibration = fit_calibration(out_of_fold.scores[rows], codes[rows], kind, part_of(groups, rows))
    out_of_fold_scores = calibration.apply(out_of_fold.scores)
    held_out = OutOfFold(np.full(out_of_fold.scores.shape, np.nan), np.full(len(codes), -1, dtype=np.intp))
    held_out.scores[rows] = out_of_fold_scores[rows]
    held_out.fold[rows] = np.repeat(np.arange(len(folds)), [len(fold) for fold in folds])
    model = HybridModel(first, calibration, deltas, residual=residual)
    features = deltas.features(first, out_of_fold, out_of_fold_scores)
    return Stage(model, calibration.apply(measured.scores), out_of_fold_scores, features, held_out)


def circuit_pays(before: OutOfFold, after: OutOfFold, codes: Codes, groups: Codes | None = None) -> bool:
    """Whether refinement improves the out-of-fold likelihood by more than one standard error of the difference."""
    rows = np.flatnonzero((before.fold >= 0) & (after.fold >= 0))
    rows = rows[(before.scores[rows] != after.scores[rows]).any(axis=1)]
    if len(rows) < 2:
        return False
    each = np.arange(len(rows))
    gain = log_softmax(after.scores[rows])[each, codes[rows]] - log_softmax(before.scores[rows])[each, codes[rows]]
    together = part_of(groups, rows)
    gain = draws_per_row(together) * group_sums(gain, together)
    return bool(len(gain) > 1 and gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))
