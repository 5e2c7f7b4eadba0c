"""The operating point that a user asks for, as a rule and as a cut on held-out rows."""

from collections.abc import Mapping, Sequence
from math import log, log1p
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import DataError, ParameterError, warn
from qmedoid.geometry.row_groups import draws_per_row
from qmedoid.kernels.ties import merged
from qmedoid.metrics.class_biases import CLASS_METRICS, cost_matrix, fit_class_biases
from qmedoid.metrics.operating import at_cost, at_precision, at_recall, most_precise
from qmedoid.metrics.thresholds import counts_at, steady_threshold, threshold_at_rate
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.training_summary import HeldOutCurve
from qmedoid.schema import shown

# Rules that cut where labels of both classes say.
_NEED_BOTH = ("min_precision", "min_recall", "cost")


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
    operating_point: Any, classes: Sequence[Any], scores: Array, codes: Codes, groups: Codes | None = None
) -> ChosenPoint:
    """Turn an operating point into a cut or into biases by the scores (n, C) of held-out rows, of which none may be.

    Rows of one group count as one draw.
    """
    rule, asked = asked_rule(operating_point, classes)
    if len(classes) > 2:
        return ChosenPoint(
            biases=None if rule == "likeliest" else _class_biases(operating_point, classes, scores, codes)
        )
    positive, margins, curve, cut = codes == 1, np.zeros(0), None, None
    if len(scores):
        margins = merged(scores[:, 1] - scores[:, 0])
        curve = HeldOutCurve.of(positive, margins)
    if rule == "probability" and asked is not None:
        cut = log(asked) - log1p(-asked)
    elif rule != "likeliest":
        cut = chosen_cut(rule, asked or 0.0, positive, margins)
    counts = Counts(**counts_at(positive, margins, cut or 0.0)) if len(scores) else None
    share = draws_per_row(groups) if len(scores) else 1.0
    return ChosenPoint(cut, OperatingSummary(rule, asked, cut or 0.0, counts, draws_per_row=share), curve)


def _class_biases(operating_point: Any, classes: Sequence[Any], scores: Array, codes: Codes) -> Array | None:
    """Biases of three or more classes."""
    if not len(scores):
        warn("No row was held out to choose class biases by: the likeliest class is called.")
        return None
    rule, _ = asked_rule(operating_point, classes)
    cost = cost_matrix(operating_point["cost"], list(classes)) if rule == "cost" else None
    return fit_class_biases(scores, codes, rule, cost)


def chosen_cut(rule: str, asked: float, positive: Flags, margins: Array) -> float:
    """The log-odds above which a record is called the second class, by held-out rows.

    Where they cannot say, the cut is at even odds; a floor that is out of reach is replaced by the nearest that is not.
    """
    if len(positive) == 0:
        warn("No row was held out to choose the threshold by: it stays at even odds.")
        return 0.0
    if rule in _NEED_BOTH and len(set(positive)) < 2:
        warn(f"All {len(positive):,} held-out rows are of one class: the threshold stays at even odds.")
        return 0.0
    match rule:
        case "alert_rate":
            cut = threshold_at_rate(margins, asked)
            if not (margins > cut).any():
                warn(
                    f"An alert rate of {asked:g} is less than one of the {len(margins):,} held-out rows, or their "
                    "highest scores are equal: the threshold is their highest score, and alerts will be rarer than "
                    "asked for."
                )
            return cut
        case "min_recall":
            return at_recall(positive, margins, asked).threshold
        case "cost":
            return at_cost(positive, margins, asked).threshold
        case "min_precision":
            try:
                return at_precision(positive, margins, asked).threshold
            except DataError as error:
                warn(f"{error} The threshold of this best precision is used.")
                return most_precise(positive, margins).threshold
    return steady_threshold(positive.astype(np.intp), margins, rule)
