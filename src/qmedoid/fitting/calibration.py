r"""A calibration from held-out fusion scores: the most likely :math:`p_c \propto \exp(b_c - \beta s_c)`."""

from typing import Literal

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.fitting.bend import fit_bend, fit_class_bend
from qmedoid.fitting.likeliest import likeliest
from qmedoid.fitting.row_groups import draws_per_row
from qmedoid.models.calibration import Calibration

CalibrationKind = Literal["curve", "logistic", "temperature"]
CALIBRATION_KINDS: tuple[CalibrationKind, ...] = ("curve", "logistic", "temperature")

# Weight of one imagined row that pulls β to 0 and the biases to the logarithms of the priors: without it, classes that
# are told apart perfectly would make β infinite.
_PULL = 1.0
# Smallest β in units of a typical spread: where held-out rows speak against the score, its order is kept all the same.
_FLATTEST = 1e-3


def fit_calibration(fused: Array, codes: Codes, kind: CalibrationKind, groups: Codes | None = None) -> Calibration:
    """Slope and biases (none with "temperature") of the highest likelihood, and with "curve" a bend.

    Parameters
    ----------
    fused : ndarray of shape (n, C)
        Fusion scores of rows that the model has not seen.
    codes : ndarray of shape (n,)
        Their classes.
    kind : {"curve", "logistic", "temperature"}
    groups : ndarray of shape (n,), optional
        Rows of one group count as one draw, where it matters how many there are.
    """
    share = draws_per_row(groups)
    if kind != "curve":
        return _straight(fused, codes, kind != "temperature", share)
    two = fused.shape[1] == 2
    straight = _doubtful(fused, codes, share) if two else _straight(fused, codes, True, share)
    scores = straight.apply(fused)
    bend = fit_bend(scores[:, 1] - scores[:, 0], codes == 1, groups) if two else fit_class_bend(scores, codes, groups)
    return Calibration(straight.slope, straight.biases, *bend)


def _straight(fused: Array, codes: Codes, biased: bool, share: float) -> Calibration:
    """Slope and, if asked, biases, held back by one imagined draw; a row is this share of one."""
    n, n_classes = fused.shape
    priors = (share * np.bincount(codes, minlength=n_classes) + 0.5) / (share * n + 0.5 * n_classes)
    prior_biases = np.log(priors / priors.max()) if biased else np.zeros(n_classes)
    unit = _typical_spread(fused)
    # One bias is redundant: the last class keeps its prior.
    n_parameters = n_classes if biased else 1
    found = likeliest(
        [-fused / unit], np.eye(n_classes)[codes], np.eye(n_parameters)[0], lowest=[_FLATTEST],
        pulls=np.full(n_parameters, _PULL / share), towards=np.zeros(n_parameters), offset=prior_biases,
    )  # fmt: skip
    return Calibration(float(found[0]) / unit, prior_biases + _padded(found[1:], n_classes))


def _doubtful(fused: Array, codes: Codes, share: float) -> Calibration:
    """Slope and biases of two classes for targets that leave room for doubt.

    A row of class c, of which there are N_c draws, counts as (N_c + 1)/(N_c + 2) of c, and the rest of the other
    (Platt): so classes that are told apart perfectly have a finite slope, and no slope is pulled to 0.
    """
    n = len(fused)
    counts = share * np.bincount(codes, minlength=2)
    doubt = 1.0 / (counts[codes] + 2)
    targets = np.tile(doubt[:, None], (1, 2))
    targets[np.arange(n), codes] = 1.0 - doubt
    unit = _typical_spread(fused)
    start = np.log(np.maximum(counts, 0.5) / max(counts[-1], 0.5))[:1]
    found = likeliest(
        [-fused / unit], targets, np.append(1.0, start), lowest=[_FLATTEST], pulls=np.zeros(2), towards=np.zeros(2)
    )
    return Calibration(float(found[0]) / unit, _padded(found[1:], 2))


def _typical_spread(fused: Array) -> float:
    """How far a row's scores lie apart: they are shares of a few hundredths, and in this unit β is of the order of 1.

    From the nearest class to the farthest, over rows whose scores differ at all: where two classes have the same
    medoid, the two smallest scores say nothing.
    """
    spread = fused.max(axis=1) - fused.min(axis=1)
    apart = spread[spread > 1e-12]
    return max(float(np.median(apart)), 1e-6) if len(apart) else 1.0


def _padded(shifts: Array, n_classes: int) -> Array:
    return np.concatenate([shifts, np.zeros(n_classes - len(shifts))])
