"""The cut between two classes: chosen on rows by a rule or a budget of alerts, and counted on a held-out curve."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import DataError, ParameterError, warn
from qmedoid.metrics import thresholds
from qmedoid.model.documents import BudgetDict
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.training_summary import MOST_CUTS, HeldOutCurve
from qmedoid.spelling import number_of

ABOVE_HIGHEST = 1e-3
"""How far above the highest score the cut lies that no row exceeds."""
# Rules that cut where labels of both classes say.
_NEED_BOTH = ("min_precision", "min_recall", "cost")


def chosen_cut(rule: str, asked: float | None, positive: Flags, margins: Array) -> float:
    """The log-odds above which a record is called the second class, by held-out rows where the rule needs them.

    Where they cannot say, the cut is at even odds; a floor that is out of reach is replaced by the nearest that is not.
    """
    asked = asked or 0.0
    if rule == "likeliest":
        return 0.0
    if rule == "probability":
        return math.log(asked) - math.log1p(-asked)
    if len(positive) == 0:
        warn("No row was held out to choose the threshold by: it stays at even odds.")
        return 0.0
    if rule in _NEED_BOTH and len(set(positive)) < 2:
        warn(f"All {len(positive):,} held-out rows are of one class: the threshold stays at even odds.")
        return 0.0
    match rule:
        case "alert_rate":
            cut = thresholds.threshold_at_rate(margins, asked)
            if not (margins > cut).any():
                warn(
                    f"An alert rate of {asked:g} is less than one of the {len(margins):,} held-out rows, or their "
                    "highest scores are equal: the threshold is just above their highest score, and alerts will be "
                    "rarer than that rate."
                )
                # Scores of the fitted model that are equal but for rounding would all lie above it.
                return cut + ABOVE_HIGHEST
            return cut
        case "min_recall":
            return thresholds.threshold_at_recall(positive, margins, asked)
        case "cost":
            return thresholds.threshold_at_cost(positive, margins, asked)
        case "min_precision":
            try:
                return thresholds.threshold_at_precision(positive, margins, asked)
            except DataError as error:
                warn(f"{error} The threshold of this best precision is used.")
                return thresholds.most_precise_threshold(positive, margins)
    return thresholds.steady_threshold(positive.astype(np.intp), margins, rule)


def curve_rows(curve: HeldOutCurve) -> tuple[Flags, Array]:
    """Classes and log-odds of the held-out rows that a curve counts, shape (n,).

    Rows between two thresholds that were kept have the lower one.
    """
    true, false = (np.diff(counts, prepend=0) for counts in (curve.true_positives, curve.false_positives))
    log_odds = np.concatenate([np.repeat(curve.thresholds, true), np.repeat(curve.thresholds, false)])
    return np.arange(len(log_odds)) < curve.n_positive, log_odds


def curve_counts(curve: HeldOutCurve, log_odds: float) -> Counts:
    """The held-out counts of the nearest threshold that was kept at or above a cut.

    Where all thresholds were kept they are those of the cut, else within 2 / (`MOST_CUTS` − 1) of each rate.
    """
    place = int((curve.thresholds > log_odds).sum()) - 1
    true, false = (0, 0) if place < 0 else (int(curve.true_positives[place]), int(curve.false_positives[place]))
    return Counts(true, false, curve.n_positive - true, curve.n_negative - false)


def cut_on_curve(rule: str, asked: float | None, curve: HeldOutCurve | None) -> OperatingSummary:
    """The operating point of a rule by a stored held-out curve, at the training priors.

    On a curve of at most `MOST_CUTS` rows it is the one that a fit chooses, to the last bit. Else the cut is just below
    a threshold that was kept, so that its counts are exact.

    Raises
    ------
    DataError
        There is no curve, and the rule needs one.
    """
    if rule in ("likeliest", "probability"):
        cut = chosen_cut(rule, asked, np.zeros(0, dtype=np.bool_), np.zeros(0))
    elif curve is None:
        raise DataError(
            "This model holds no curve of held-out rows, by which a cut could be chosen: give a probability to cut at, "
            "or fit it again with rows held out."
        )
    else:
        cut = _exact(chosen_cut(rule, asked, *curve_rows(curve)), curve)
    return OperatingSummary(rule, asked, cut, None if curve is None else curve_counts(curve, cut))


def _exact(cut: float, curve: HeldOutCurve) -> float:
    """A cut with the counts of a threshold that was kept: itself, or just below the next one above it."""
    above = curve.thresholds[curve.thresholds > cut]
    if len(above) == 0 or curve.n_positive + curve.n_negative <= MOST_CUTS:
        return cut
    return math.nextafter(float(above[-1]), -math.inf)


# Copies of a row of mean weight where held-out rows are repeated in proportion to their weights, and rows in all.
_COPIES, _MOST_ROWS = 20, 2_000_000


def copies(factors: Array) -> Codes:
    """Indices of rows, repeated in proportion to their weights: a row of weight 1 about 20 times."""
    total = max(len(factors), min(_COPIES * len(factors), _MOST_ROWS))
    ends = np.round(np.cumsum(factors) * (total / factors.sum())).astype(np.intp)
    return np.repeat(np.arange(len(factors)), np.diff(ends, prepend=0))


def budget_of(given: Any, n_rows: int) -> tuple[str, int]:
    """A budget of alerts as a text, and the alerts that it allows among so many rows.

    It is a number of alerts, such as 100 or ``"100"``, or their share of the records: 0.05, ``"0.05"`` or ``"5%"``.

    Raises
    ------
    ParameterError
        It is neither a whole number from 1 up nor a share above 0 and at most 1.
    """
    is_percent = str(given).strip().endswith("%")
    number = number_of(str(given)) if isinstance(given, str) or thresholds.is_number(given) else None
    value = math.nan if number is None else number
    if 0 < value <= 1 and (is_percent or value < 1):
        return f"{100 * value:.6g}%", math.floor(value * n_rows + 1e-9)
    if not is_percent and value >= 1 and value.is_integer():
        return f"{int(value)}", int(value)
    raise ParameterError(
        "A budget must be a number of alerts, such as 100, or a share of the records above 0, such as 5% or 0.05. "
        f"Got {given!r} instead."
    )


def budgets_on_rows(budgets: Iterable[Any], positive: Flags, log_odds: Array) -> list[tuple[str, OperatingSummary]]:
    """Budgets as texts, and the operating point that each means on rows whose classes are known.

    Alerts are fewer than allowed where scores are equal, which are all alerts or all not.
    """
    if not len(positive):
        raise DataError("There are no rows to spend a budget on.")
    asked = [budget_of(one, len(positive)) for one in budgets]
    cuts = [(text, thresholds.threshold_at_count(log_odds, count)) for text, count in asked]
    return [
        (text, OperatingSummary("alert_rate", None, cut, Counts(**thresholds.counts_at(positive, log_odds, cut))))
        for text, cut in cuts
    ]


def budgets_on_curve(budgets: Iterable[Any], curve: HeldOutCurve | None) -> list[tuple[str, OperatingSummary]]:
    """As `budgets_on_rows` on the held-out rows of a fit, at the training priors."""
    if curve is None:
        raise DataError("This model holds no curve of held-out rows to spend a budget on: give labeled rows.")
    _, log_odds = curve_rows(curve)
    asked = [budget_of(one, len(log_odds)) for one in budgets]
    cuts = [(text, _exact(thresholds.threshold_at_count(log_odds, count), curve)) for text, count in asked]
    return [(text, OperatingSummary("alert_rate", None, cut, curve_counts(curve, cut))) for text, cut in cuts]


def budget_dict(budget: str, operating: OperatingSummary) -> BudgetDict:
    """A budget and its operating point by name, fit for JSON and for a data frame."""
    figures = (operating.alert_rate, operating.precision, operating.recall)
    alert_rate, precision, recall = (one or (None, None, None) for one in figures)
    return {
        "budget": budget,
        "threshold": operating.threshold,
        "alerts": operating.alerts,
        "rows": operating.n_rows,
        "alert_rate": alert_rate[0],
        "alert_rate_low": alert_rate[1],
        "alert_rate_high": alert_rate[2],
        "precision": precision[0],
        "precision_low": precision[1],
        "precision_high": precision[2],
        "recall": recall[0],
        "recall_low": recall[1],
        "recall_high": recall[2],
    }
