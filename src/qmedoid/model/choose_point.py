"""The operating point that a user asks for: as a rule, and on held-out rows."""

from collections.abc import Mapping, Sequence
from math import log, log1p
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ParameterError, warn
from qmedoid.geometry.row_groups import draws_per_row
from qmedoid.kernels.ties import merged
from qmedoid.metrics.class_biases import CLASS_METRICS, cost_matrix, fit_class_biases
from qmedoid.metrics.thresholds import counts_at
from qmedoid.model.cut import chosen_cut
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.training_summary import HeldOutCurve
from qmedoid.schema import shown

# Copies of a row of mean weight where held-out rows are repeated in proportion to their weights, and rows in all.
_COPIES, _MOST_ROWS = 20, 2_000_000


def asked_rule(operating_point: Any, classes: Sequence[Any]) -> tuple[str, float | None]:
    """The rule of `qmedoid.model.operating_point.RULES` that is asked for, and its number.

    Three or more classes have "macro_f1", "balanced_accuracy" and "cost", whose matrix `cost_matrix` reads.
    """
    if operating_point is None:
        return "likeliest", None
    is_rule = isinstance(operating_point, Mapping)
    name, asked = next(iter(operating_point.items())) if is_rule else (operating_point, None)
    if len(classes) > 2:
        if name == "cost" and cost_matrix(asked, list(classes)) is not None:
            return "cost", None
        if name not in CLASS_METRICS:
            raise ParameterError(
                f"'operating_point' of {len(classes)} classes is None, 'macro_f1', 'balanced_accuracy', or "
                f"{{'cost': matrix}} with a number from 0 up for each of {len(classes)} x {len(classes)} pairs of true "
                f"and called class. Got {shown(operating_point)} instead."
            )
        return name, None
    if is_rule:
        if not isinstance(asked, Real):
            raise ParameterError("'cost' of two classes is one number: a missed alert costs as many false ones.")
        return name, float(asked)
    return (operating_point, None) if isinstance(operating_point, str) else ("probability", float(operating_point))


class ChosenPoint(NamedTuple):
    """An operating point on held-out rows: cut, figures and curve of two classes, or biases of more."""

    cut: float | None = None
    expected: OperatingSummary | None = None
    curve: HeldOutCurve | None = None
    biases: Array | None = None


def choose_point(
    operating_point: Any,
    classes: Sequence[Any],
    scores: Array,
    codes: Codes,
    groups: Codes | None = None,
    weights: Array | None = None,
) -> ChosenPoint:
    """Turn an operating point into a cut or into biases by the scores (n, C) of held-out rows, of which none may be.

    Rows of one group count as one draw, and each as much as its weight; rows that have weights have no curve.
    """
    rule, asked = asked_rule(operating_point, classes)
    again = slice(None) if weights is None else _copies(weights)
    if len(classes) > 2:
        is_asked = rule != "likeliest"
        return ChosenPoint(
            biases=_class_biases(operating_point, classes, scores[again], codes[again]) if is_asked else None
        )
    positive, margins, curve, cut = codes == 1, np.zeros(0), None, None
    if len(scores):
        margins = merged(scores[:, 1] - scores[:, 0])
        curve = HeldOutCurve.of(positive, margins) if weights is None else None
    if rule == "probability" and asked is not None:
        cut = log(asked) - log1p(-asked)
    elif rule != "likeliest":
        cut = chosen_cut(rule, asked or 0.0, positive[again], margins[again])
    counts = Counts(**counts_at(positive, margins, cut or 0.0, weights)) if len(scores) else None
    share = draws_per_row(groups, weights) if len(scores) else 1.0
    return ChosenPoint(cut, OperatingSummary(rule, asked, cut or 0.0, counts, draws_per_row=share), curve)


def _class_biases(operating_point: Any, classes: Sequence[Any], scores: Array, codes: Codes) -> Array | None:
    """Biases of three or more classes."""
    if not len(scores):
        warn("No row was held out to choose class biases by: the likeliest class is called.")
        return None
    rule, _ = asked_rule(operating_point, classes)
    cost = cost_matrix(operating_point["cost"], list(classes)) if rule == "cost" else None
    return fit_class_biases(scores, codes, rule, cost)


def _copies(factors: Array) -> Codes:
    """Indices of rows, repeated in proportion to their weights: a row of weight 1 about 20 times."""
    total = max(len(factors), min(_COPIES * len(factors), _MOST_ROWS))
    ends = np.round(np.cumsum(factors) * (total / factors.sum())).astype(np.intp)
    return np.repeat(np.arange(len(factors)), np.diff(ends, prepend=0))
