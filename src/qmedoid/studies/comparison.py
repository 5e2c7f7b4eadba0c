"""A fitted model next to plain baselines: the same rows to fit, the same rows to judge by, and paired differences."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.row_groups import group_sums, numbered
from qmedoid.metrics.agreement import mean_and_error
from qmedoid.metrics.classification import evaluate, pr_auc, roc_auc
from qmedoid.report.diff_documents import ComparedMethodDict, ComparisonDict

OURS = "qmedoid"
FIGURES = ("log_loss", "roc_auc", "pr_auc", "macro_f1", "fit_seconds")
"""What methods are compared by; areas and macro-F1 are better the larger they are, the others the smaller."""
_SMALL_IS_GOOD = ("log_loss", "fit_seconds")
_SMALLEST = float(np.finfo(np.float64).eps)
# Standard errors on both sides of a mean that 95 % of normal draws lie within.
_WIDTH = 1.96


class Outcome(NamedTuple):
    """A method on the judged rows of one fold: its probabilities, shape (m, C), and how long its fit took."""

    probabilities: Array
    seconds: float


class Fold(NamedTuple):
    """The methods by name on some judged rows, their class codes, and which of them are one draw."""

    outcomes: Mapping[str, Outcome]
    codes: Codes
    groups: Codes | None = None


class Spread(NamedTuple):
    """Mean of a figure over folds, with its standard error; None for that of one fold."""

    mean: float
    error: float | None


class PairedDifference(NamedTuple):
    """How much larger the log-loss of a baseline is than ours: mean over rows, standard error, and 95 % interval."""

    mean: float
    error: float
    low: float
    high: float


class MethodFigures(NamedTuple):
    """A method, its figures by name (None where one is not defined), and its difference from ours."""

    name: str
    figures: Mapping[str, Spread | None]
    difference: PairedDifference | None

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "name": self.name,
            **{name: None if spread is None else spread.mean for name, spread in self.figures.items()},
            "errors": {name: None if spread is None else spread.error for name, spread in self.figures.items()},
            "log_loss_difference": None if self.difference is None else self.difference._asdict(),
        }


@dataclass(frozen=True)
class Comparison:
    """Methods on the same rows, ours first.

    Attributes
    ----------
    methods : tuple of MethodFigures
    n_rows : int
        Rows that judge.
    n_folds : int
    """

    methods: tuple[MethodFigures, ...]
    n_rows: int
    n_folds: int

    def best(self, figure: str) -> float | None:
        """The best mean of a figure; None where it is not defined."""
        means = [spread.mean for one in self.methods if (spread := one.figures[figure]) is not None]
        return (min if figure in _SMALL_IS_GOOD else max)(means, default=None)

    def verdict(self) -> str:
        """One sentence: whether a plain baseline is better, by log-loss, and whether that may be luck."""
        baselines = [(one, one.difference) for one in self.methods if one.difference is not None]
        if not baselines:
            return "No baseline was fitted."
        best, found = min(baselines, key=lambda pair: pair[1].mean)
        by = f"by {abs(found.mean):.4f} (95 %: {found.low:+.4f} to {found.high:+.4f})"
        if found.high < 0:
            return f"A plain baseline wins: the log-loss of {best.name} is lower than ours {by}."
        if found.low > 0:
            return f"No plain baseline wins: the log-loss of the best, {best.name}, is higher than ours {by}."
        side = "lower" if found.mean < 0 else "higher"
        return f"The log-loss of the best plain baseline, {best.name}, is {side} than ours {by}: that may be luck."

    def to_dict(self) -> ComparisonDict:
        """The comparison as plain values."""
        return {
            "rows": self.n_rows,
            "folds": self.n_folds,
            "methods": [cast("ComparedMethodDict", one.as_dict()) for one in self.methods],
            "verdict": self.verdict(),
        }


def compared(folds: Sequence[Fold]) -> Comparison:
    """Figures of one fold, or their means over several, and differences over the rows of all."""
    names = [name for name in folds[0].outcomes if all(name in fold.outcomes for fold in folds)]
    losses = {name: np.concatenate([row_losses(fold.outcomes[name], fold.codes) for fold in folds]) for name in names}
    draws = _draws(folds)
    methods = []
    for name in names:
        by_fold = [_figures(fold.outcomes[name], fold.codes) for fold in folds]
        figures = {figure: _spread([one[figure] for one in by_fold]) for figure in FIGURES}
        difference = None if name == OURS else paired_difference(losses[name], losses[OURS], draws)
        methods.append(MethodFigures(name, figures, difference))
    return Comparison(tuple(methods), sum(len(fold.codes) for fold in folds), len(folds))


def row_losses(outcome: Outcome, codes: Codes) -> Array:
    """−log p of the true class of every row."""
    of_true_class = outcome.probabilities[np.arange(len(codes)), codes]
    return np.asarray(-np.log(np.maximum(of_true_class, _SMALLEST)))


def paired_difference(losses: Array, ours: Array, groups: Codes | None = None) -> PairedDifference:
    r"""Mean difference of two losses of the same rows, with the standard error of the mean.

    Rows of one group are one draw: with sums :math:`D_g` over the :math:`n_g` rows of each of G groups and the mean
    :math:`\bar d`,

    .. math:: \frac{1}{n}\sqrt{\frac{G}{G-1} \sum_g (D_g - n_g \bar d)^2},

    which is the usual s/√n where every row is a group. A single group has no spread, and an infinite error.
    """
    differences = losses - ours
    mean = float(differences.mean())
    by_group = group_sums(differences - mean, groups)
    n_groups = len(by_group)
    spread = n_groups / (n_groups - 1) * float(by_group @ by_group) if n_groups > 1 else math.inf
    error = math.sqrt(spread) / len(differences)
    return PairedDifference(mean, error, mean - _WIDTH * error, mean + _WIDTH * error)


def _draws(folds: Sequence[Fold]) -> Codes | None:
    """Groups of the rows of all folds; those of two folds are never one."""
    if all(fold.groups is None for fold in folds):
        return None
    labels, begin = [], 0
    for fold in folds:
        own = np.arange(len(fold.codes)) if fold.groups is None else numbered(fold.groups)
        labels.append(own + begin)
        begin += len(own)
    return numbered(np.concatenate(labels))


def _spread(values: Sequence[float]) -> Spread | None:
    known = [value for value in values if not math.isnan(value)]
    return Spread(*mean_and_error(known)) if known else None


def _figures(outcome: Outcome, codes: Codes) -> dict[str, float]:
    """Figures of one method: areas of the second of two classes, or means of one class against all others."""
    probabilities, n_classes = outcome.probabilities, outcome.probabilities.shape[1]
    called = evaluate(codes, probabilities.argmax(axis=1), n_classes)
    classes = [1] if n_classes == 2 else np.unique(codes).tolist()
    areas = [roc_auc(codes == code, probabilities[:, code]) for code in classes]
    return {
        "log_loss": float(row_losses(outcome, codes).mean()),
        "roc_auc": float(np.mean(areas)),
        "pr_auc": pr_auc(codes == 1, probabilities[:, 1]) if n_classes == 2 else math.nan,
        "macro_f1": float(called.f1[called.support > 0].mean()),
        "fit_seconds": outcome.seconds,
    }
