"""What a method's scores and probabilities are worth on rows that it has not seen.

Nothing here comes from the package that is judged, so that figures of other methods do not depend on it.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from benchmarks.quality.tables import Array, Codes
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

BINS = 15
"""Of equal numbers of rows, for the calibration error."""
MOST_DRAWN = 5_000_000
"""Labels that are drawn to see what chance does."""
ALERTS = 0.0131
"""The share of the rows that may be alerts, for recall on the frauds."""


def best_cut(y: Codes, scores: Array) -> tuple[float, float]:
    """The threshold of the best macro-F1, halfway between two scores, and that macro-F1; of equal ones the lowest.

    Parameters
    ----------
    y : ndarray of shape (n,)
        0 or 1.
    scores : ndarray of shape (n,)
        Rows above the threshold are called 1.
    """
    order = np.argsort(scores, kind="stable")
    rising, is_one = scores[order], y[order] == 1
    # Cut k calls the rows from position k on positive; only cuts between different scores are decisions.
    cuts = np.concatenate([[0], np.flatnonzero(rising[1:] > rising[:-1]) + 1, [len(y)]])
    missed = np.concatenate([[0], np.cumsum(is_one)])[cuts]
    rightly_below = cuts - missed
    hits, false = missed[-1] - missed, rightly_below[-1] - rightly_below
    values = hits / np.maximum(2 * hits + missed + false, 1) + rightly_below / np.maximum(
        2 * rightly_below + missed + false, 1
    )
    best = int(np.argmax(values >= values.max() - 1e-12))
    cut = int(cuts[best])
    below = rising[cut - 1] if cut > 0 else rising[0] - 1.0
    above = rising[cut] if cut < len(y) else rising[-1] + 1.0
    return float((below + above) / 2), float(values[best])


def macro_f1(y: Codes, called: Codes) -> float:
    """Plain mean of the F1 of the classes."""
    return float(f1_score(y, called, average="macro"))


def decide(scores: Array, threshold: float | None) -> Codes:
    """Classes of two-class scores of shape (n,) above and below a threshold, or the best of scores of shape (n, C)."""
    return np.asarray(scores.argmax(axis=1) if scores.ndim == 2 else scores > threshold, dtype=np.intp)


def judge(y: Codes, called: Codes, scores: Array, probabilities: Array | None) -> dict[str, float]:
    """Figures of one method on test rows.

    Parameters
    ----------
    y, called : ndarray of shape (n,)
        True and predicted classes.
    scores : ndarray of shape (n,) or (n, C)
        For two classes, larger means likelier class 1; for more, one per class.
    probabilities : ndarray of shape (n, C), optional
        Where the method has some.
    """
    found = {"macro_f1": macro_f1(y, called)}
    if scores.ndim == 1:
        found |= {"roc_auc": float(roc_auc_score(y, scores)), "pr_auc": float(average_precision_score(y, scores))}
    if probabilities is not None:
        found |= calibration_error(y, probabilities)._asdict()
    return found


class CalibrationError(NamedTuple):
    """Expected calibration error, and its mean over labels that are drawn by the probabilities themselves."""

    ece: float
    chance_ece: float


def calibration_error(y: Codes, probabilities: Array, bins: int = BINS) -> CalibrationError:
    """How far probabilities are from frequencies, and how far perfect ones would seem to be on so many rows.

    Rows are put in bins of about equal numbers by the probability of class 1, or for more classes by that of the
    likeliest; rows of one probability share a bin. The error is the mean over rows of |frequency − mean probability| of
    their bin.
    """
    two = probabilities.shape[1] == 2
    claimed = probabilities[:, 1] if two else probabilities.max(axis=1)
    true = y == 1 if two else probabilities.argmax(axis=1) == y
    order = np.argsort(claimed, kind="stable")
    claimed, true = claimed[order], true[order]
    wanted = np.arange(bins) * len(y) // bins
    starts = np.unique(np.searchsorted(claimed, claimed[wanted]))
    promised = np.add.reduceat(claimed, starts)

    def error(outcomes: npt.NDArray[np.bool_]) -> float:
        return float(np.abs(np.add.reduceat(outcomes.astype(np.float64), starts) - promised).sum() / len(y))

    generator = np.random.default_rng(0)
    draws = int(np.clip(MOST_DRAWN // len(y), 100, 1000))
    return CalibrationError(
        error(true), float(np.mean([error(generator.random(len(y)) < claimed) for _ in range(draws)]))
    )


def recall_at(y: Codes, scores: Array, share: float = ALERTS) -> float:
    """Share of the rows of class 1 among the highest scores; rows that tie at the cut count in proportion."""
    alerts = round(share * len(y))
    cut = np.partition(scores, -alerts)[-alerts]
    above, at = scores > cut, scores == cut
    return float((y[above].sum() + (alerts - above.sum()) * y[at].mean()) / y.sum())


def positive_scores(classifier: Any, X: Array) -> Array:
    """Scores of a fitted classifier: of class 1 where there are two, else one per class."""
    if hasattr(classifier, "decision_function"):
        return np.asarray(classifier.decision_function(X), dtype=np.float64)
    probabilities = np.asarray(classifier.predict_proba(X), dtype=np.float64)
    return probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
