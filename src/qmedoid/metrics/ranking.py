"""How well a score ranks records, and how well a probability fits them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags

# Probabilities below this count as this, so that one sure mistake does not make a mean infinite.
_SMALLEST = float(np.finfo(np.float64).eps)


def roc_auc(positive: Flags, scores: Array) -> float:
    """Chance that a positive record has a higher score than another, ties counting half; NaN with one class only."""
    hits, alerts = _cumulative(positive, scores)
    n_positive, n_negative = hits[-1], alerts[-1] - hits[-1]
    if n_positive == 0 or n_negative == 0:
        return float("nan")
    false = alerts - hits
    area = np.sum(np.diff(false, prepend=0.0) * (hits + np.concatenate([[0.0], hits[:-1]])) / 2.0)
    return float(area / (n_positive * n_negative))


def pr_auc(positive: Flags, scores: Array) -> float:
    """Average precision: precision at every threshold, weighted by the recall it adds; NaN without a positive."""
    hits, alerts = _cumulative(positive, scores)
    if hits[-1] == 0:
        return float("nan")
    return float(np.sum(np.diff(hits, prepend=0.0) * hits / alerts) / hits[-1])


def log_loss(codes: Codes, probabilities: Array) -> float:
    """Mean of −log p of the true class."""
    own = probabilities[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(own, _SMALLEST)).mean())


def _cumulative(positive: Flags, scores: Array) -> tuple[Array, Array]:
    """Positive records and all records at or above every different score, the highest first."""
    order = np.argsort(-scores, kind="stable")
    ranked: npt.NDArray[Any] = scores[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    return np.cumsum(positive[order], dtype=np.float64)[ends], (ends + 1).astype(np.float64)
