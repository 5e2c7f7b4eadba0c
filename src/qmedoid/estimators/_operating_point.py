"""Operating points: which rule cuts a score into a decision, where it cuts, and what that did to held-out rows."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.estimators._parameters import Constraint, Optional, Positive
from qmedoid.exceptions import DataError, MajorityAlertWarning, ParameterError, warn
from qmedoid.geometry.row_groups import draws_per_row, part_of
from qmedoid.kernels.ties import merged
from qmedoid.metrics.operating_points import at_cost, at_precision, at_recall, most_precise
from qmedoid.metrics.thresholds import THRESHOLD_METRICS, counts_at, steady_threshold, threshold_at_rate
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.training_summary import HeldOutCurve
from qmedoid.variational.selection import OutOfFold, two_class_margin


@dataclass(frozen=True)
class OperatingPoint:
    """None for the likeliest class, a metric to be made best, or a probability."""

    def allows(self, value: Any) -> bool:
        """Whether the value is one of these."""
        if value is None or isinstance(value, str):
            return value is None or value in THRESHOLD_METRICS
        return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1

    def __str__(self) -> str:
        return "None, a number between 0 and 1, or one of " + ", ".join(map(repr, THRESHOLD_METRICS))


@dataclass(frozen=True)
class AlertRate:
    """None, or the share of the records that may be called positive."""

    def allows(self, value: Any) -> bool:
        """Whether the value is one of these."""
        return value is None or (isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 1)

    def __str__(self) -> str:
        return "None or a number above 0 and below 1"


@dataclass(frozen=True)
class Floor:
    """None, or the least share that is to be reached."""

    def allows(self, value: Any) -> bool:
        """Whether the value is one of these."""
        return value is None or (isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) <= 1)

    def __str__(self) -> str:
        return "None or a number above 0 and at most 1"


OPERATING_CONSTRAINTS: Mapping[str, Constraint] = {
    "operating_point": OperatingPoint(),
    "alert_rate": AlertRate(),
    "min_precision": Floor(),
    "min_recall": Floor(),
    "cost": Optional(Positive()),
}
"""Parameters that say where two classes are told apart; at most one of them is given."""

# Rules that cut where labels of both classes say.
_NEED_BOTH = ("min_precision", "min_recall", "cost")


@dataclass(frozen=True)
class Rule:
    """A rule of `qmedoid.model.operating_point.RULES`, and the number that was asked for."""

    name: str
    asked: float | None = None

    def cut(self, positive: Flags, margins: Array) -> float:
        """The log-odds above which a record is called the second class, by rows whose class is known."""
        asked = 0.5 if self.asked is None else self.asked
        match self.name:
            case "likeliest":
                return 0.0
            case "probability":
                return math.log(asked) - math.log1p(-asked)
            case "alert_rate":
                return threshold_at_rate(margins, asked)
            case "min_recall":
                return at_recall(positive, margins, asked).threshold
            case "cost":
                return at_cost(positive, margins, asked).threshold
            case "min_precision":
                try:
                    return at_precision(positive, margins, asked).threshold
                except DataError:
                    return most_precise(positive, margins).threshold
        return steady_threshold(positive.astype(np.intp), margins, self.name)

    @property
    def needs_rows(self) -> bool:
        """Whether held-out rows say where to cut."""
        return self.name not in ("likeliest", "probability")

    def can_cut(self, positive: Flags) -> bool:
        """Whether these rows say where."""
        return not self.needs_rows or (len(positive) > 0 and (self.name not in _NEED_BOTH or len(set(positive)) == 2))


def asked_rule(parameters: Mapping[str, Any], classes: npt.NDArray[Any]) -> Rule:
    """The rule that parameters ask for; raise where there are two, or more than two classes."""
    given = {name: parameters[name] for name in OPERATING_CONSTRAINTS if parameters.get(name) is not None}
    if len(given) > 1:
        (first, one), (second, other), *_ = given.items()
        raise ParameterError(
            f"{first!r} and {second!r} both say where to cut. Got {one!r} and {other!r}: pass one of them."
        )
    if given and len(classes) > 2:
        name = next(iter(given))
        raise ParameterError(
            f"{name!r} cuts the probability of one of two classes, and there are {len(classes)}. Use {name}=None."
        )
    for name, value in given.items():
        if name != "operating_point":
            return Rule(name, float(value))
        return Rule(value) if isinstance(value, str) else Rule("probability", float(value))
    return Rule("likeliest")


def warn_on_majority(rule: Rule, codes: Codes, classes: npt.NDArray[Any]) -> None:
    """Warn where a share of alerts goes to the more frequent of two classes, which few mean."""
    share = float((codes == 1).mean())
    if rule.name == "alert_rate" and share > 0.5:
        first, second = classes.tolist()
        warn(
            f"The alert rate is spent on {second!r}, the second class in order, which {100 * share:.3g} % of the rows "
            f"are of. If alerts are to be of {first!r}, pass a y in which it is the second in order, such as "
            f"y == {first!r}, or use a TableClassifier, which takes the positive class.",
            MajorityAlertWarning,
        )


def held_out_curve(codes: Codes, held_out: OutOfFold | None) -> HeldOutCurve | None:
    """True and false positives of held-out rows by threshold; None for more than two classes or without such rows."""
    rows = np.zeros(0, dtype=np.intp) if held_out is None else held_out.judged
    if held_out is None or len(rows) == 0 or held_out.scores.shape[1] != 2:
        return None
    return HeldOutCurve.of(codes[rows] == 1, merged(two_class_margin(held_out.scores[rows])))


def operating_summary(
    rule: Rule, codes: Codes, held_out: OutOfFold | None, groups: Codes | None = None
) -> OperatingSummary:
    """Where a rule cuts, and what it did to held-out rows; rows of one group count as one draw.

    Where no rows were held out that could say, the cut is at even odds; a floor that is out of reach is replaced by the
    nearest that is not.
    """
    rows = np.zeros(0, dtype=np.intp) if held_out is None else held_out.judged
    if held_out is None or len(rows) == 0:
        if rule.needs_rows:
            warn("No row was held out to choose the threshold by: it stays at even odds.")
            return OperatingSummary(rule.name, rule.asked, 0.0)
        return OperatingSummary(rule.name, rule.asked, rule.cut(np.zeros(0, dtype=np.bool_), np.zeros(0)))
    positive, margins = codes[rows] == 1, merged(two_class_margin(held_out.scores[rows]))
    if rule.can_cut(positive):
        cut = rule.cut(positive, margins)
        _warn_out_of_reach(rule, positive, margins, cut)
    else:
        warn(f"All {len(rows):,} held-out rows are of one class: the threshold stays at even odds.")
        cut = 0.0
    share = draws_per_row(part_of(groups, rows))
    return OperatingSummary(
        rule.name, rule.asked, cut, Counts(**counts_at(positive, margins, cut)), draws_per_row=share
    )


def _warn_out_of_reach(rule: Rule, positive: Flags, margins: Array, cut: float) -> None:
    """Say what can be reached where the rule asks for more than held-out rows have."""
    if rule.name == "min_precision" and rule.asked is not None:
        try:
            at_precision(positive, margins, rule.asked)
        except DataError as error:
            warn(f"{error} The threshold of this best precision is used.")
    if rule.name == "alert_rate" and not (margins > cut).any():
        warn(
            f"An alert rate of {rule.asked:g} is less than one of the {len(margins):,} held-out rows, or their highest "
            "scores are equal: the threshold is their highest score, and alerts will be rarer than asked for."
        )
