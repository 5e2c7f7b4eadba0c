"""Accuracy to F-beta (algorithm 9), ROC-AUC, average precision, log-loss, calibration error, agreement of fits."""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags

Average = Literal["macro", "weighted"]


@dataclass(frozen=True)
class ClassMetrics:
    """Metrics of a confusion matrix. Arrays have one entry per class; a 0/0 counts as 0.

    Attributes
    ----------
    confusion : ndarray of shape (C, C)
        Rows are true classes, columns predicted ones.
    """

    confusion: Array

    @property
    def support(self) -> Array:
        """Number of rows of each true class."""
        support: Array = self.confusion.sum(axis=1)
        return support

    @property
    def accuracy(self) -> float:
        """Share of correct predictions."""
        return _ratio(np.trace(self.confusion), self.confusion.sum()).item()

    @property
    def precision(self) -> Array:
        """TP / (TP + FP) of each class."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=0))

    @property
    def recall(self) -> Array:
        """TP / (TP + FN) of each class."""
        return _ratio(np.diag(self.confusion), self.confusion.sum(axis=1))

    @property
    def f1(self) -> Array:
        """2·TP / (2·TP + FP + FN) of each class, the harmonic mean of precision and recall."""
        return self.f_beta(1.0)

    def f_beta(self, beta: float) -> Array:
        """(1+β²)·P·R / (β²·P + R) of each class, computed from counts so that it is exact at the corners."""
        hits = (1.0 + beta**2) * np.diag(self.confusion)
        missed = self.confusion.sum(axis=1) - np.diag(self.confusion)
        false = self.confusion.sum(axis=0) - np.diag(self.confusion)
        return _ratio(hits, hits + beta**2 * missed + false)

    def average(self, values: Array, how: Average = "macro") -> float:
        """Mean over classes, equal (``"macro"``) or by support (``"weighted"``)."""
        if how == "macro":
            return float(values.mean())
        return float(_ratio(self.support @ values, self.support.sum()))

    @property
    def macro_f1(self) -> float:
        """Plain mean of the class-wise F1, the objective of the search."""
        return self.average(self.f1)


def confusion_matrix(y_true: Codes, y_pred: Codes, n_classes: int) -> Array:
    """Number of rows of every (true, predicted) pair of class codes, shape (C, C)."""
    cells = np.bincount(y_true * n_classes + y_pred, minlength=n_classes**2)
    return cells.reshape(n_classes, n_classes).astype(np.float64)


def evaluate(y_true: Codes, y_pred: Codes, n_classes: int) -> ClassMetrics:
    """Metrics of predicted class codes (algorithm 9)."""
    return ClassMetrics(confusion_matrix(y_true, y_pred, n_classes))


def _ratio(part: npt.ArrayLike, whole: npt.ArrayLike) -> Array:
    numerator, denominator = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator != 0)


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
    of_true_class = probabilities[np.arange(len(codes)), codes]
    return float(-np.log(np.maximum(of_true_class, _SMALLEST)).mean())


def _cumulative(positive: Flags, scores: Array) -> tuple[Array, Array]:
    """Positive records and all records at or above every different score, the highest first."""
    order = np.argsort(-scores, kind="stable")
    ranked: npt.NDArray[Any] = scores[order]
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    return np.cumsum(positive[order], dtype=np.float64)[ends], (ends + 1).astype(np.float64)


# Labels drawn in all, so that large tables do not wait; and the fewest and most tables of them.
_DRAWS = 40_000_000
_FEWEST, _MOST = 20, 500


class CalibrationErrorDict(TypedDict):
    """Calibration error, and what it is by chance alone; models with probabilities alone."""

    error: Annotated[float, "How far probabilities are off on average."]
    by_chance: Annotated[float, "The mean error of probabilities that are right, on this number of rows."]
    by_chance_high: Annotated[float, "The error of such probabilities that one table in 20 exceeds."]
    ratio: Annotated[float | None, "error / by_chance."]


def calibration_error(
    outcomes: Flags, probabilities: Array, *, rng: np.random.Generator, n_bins: int = 15
) -> CalibrationErrorDict:
    """The expected calibration error in bins of equal mass: the mean distance of shares of outcomes from probabilities.

    Records of equal probability share a bin. By chance are the mean and the 95 % quantile of the error where outcomes
    are drawn from the probabilities themselves; the ratio is 1 where both are 0.

    Parameters
    ----------
    outcomes : ndarray of bool of shape (n,)
        What happened.
    probabilities : ndarray of shape (n,)
        The probability that it would.
    rng : numpy.random.Generator
        Draws the outcomes of a perfectly calibrated model.
    """
    order = np.argsort(probabilities, kind="stable")
    ranked = probabilities[order]
    # Bins begin every n/n_bins records, or next where a new probability begins.
    wanted = np.arange(n_bins) * len(ranked) // n_bins
    starts = np.unique(np.searchsorted(ranked, ranked[wanted], side="left"))
    promised = np.add.reduceat(ranked, starts)

    def error(happened: Flags) -> float:
        return float(np.abs(np.add.reduceat(happened.astype(np.float64), starts) - promised).sum() / len(ranked))

    n_tables = int(np.clip(_DRAWS // len(ranked), _FEWEST, _MOST))
    drawn = np.array([error(rng.random(len(ranked)) < ranked) for _ in range(n_tables)])
    found, by_chance = error(outcomes[order]), float(drawn.mean())
    ratio = found / by_chance if by_chance else 1.0 if found == 0.0 else math.inf
    return {"error": found, "by_chance": by_chance, "by_chance_high": float(np.quantile(drawn, 0.95)), "ratio": ratio}


def confidence_outcomes(codes: Codes, probabilities: Array) -> tuple[Flags, Array]:
    """Outcomes and their probabilities, each (n,), from codes (n,) and class probabilities (n, C).

    For two classes whether a record is of the second one, for more whether the likeliest class is right.
    """
    if probabilities.shape[1] == 2:
        return codes == 1, probabilities[:, 1]
    return np.argmax(probabilities, axis=1) == codes, probabilities.max(axis=1)


def group_agreement(groups: Collection[frozenset[int]], others: Collection[frozenset[int]]) -> float:
    """Mean Jaccard index |g ∩ h| / |g ∪ h| of every group of two sets with its best match in the other set.

    1 if and only if the sets are equal (two empty ones, too), 0 if they have no column in common.
    """
    if not groups or not others:
        return float(not groups and not others)
    columns = np.array(sorted(frozenset().union(*groups, *others)))
    first, second = (np.array([np.isin(columns, list(one)) for one in of], dtype=float) for of in (groups, others))
    shared = first @ second.T
    jaccard = shared / (first.sum(axis=1)[:, None] + second.sum(axis=1) - shared)
    return float(np.concatenate([jaccard.max(axis=1), jaccard.max(axis=0)]).mean())


def flip_rates(votes: npt.NDArray[np.int64], decided: Codes) -> Array:
    """Share of the votes about each record that differ from a decision, shape (n,); NaN where there are no votes.

    Parameters
    ----------
    votes : ndarray of shape (n, C)
        How many fits decided for each class.
    decided : ndarray of shape (n,)
        The class code that they are compared with.
    """
    total = votes.sum(axis=1)
    same = votes[np.arange(len(votes)), decided]
    rates = np.full(len(votes), np.nan)
    np.divide(total - same, total, out=rates, where=total > 0)
    return rates


def mean_and_error(values: Iterable[float]) -> tuple[float, float | None]:
    """Mean of independent draws with its standard error s/√n; None for the error of a single draw."""
    drawn = np.array(list(values), dtype=np.float64)
    error = None if len(drawn) < 2 else float(drawn.std(ddof=1) / np.sqrt(len(drawn)))
    return float(drawn.mean()), error
