"""The operating point of two classes: the rule that a user asks for, its cut, and the figures expected of it.

A cut is chosen on rows by a rule or a budget of alerts, and counted on rows or on a held-out curve.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, cast

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import DataError, ParameterError, warn
from qmedoid.metrics.intervals import Interval, next_table, share_change, share_interval
from qmedoid.metrics.thresholds import (
    CLASS_METRICS,
    THRESHOLD_METRICS,
    chosen_threshold,
    cost_matrix,
    counts_at,
    is_number,
    threshold_at_count,
)
from qmedoid.model.documents import BudgetDict, OperatingDict
from qmedoid.model.training_summary import MOST_CUTS, HeldOutCurve
from qmedoid.schema import Values, shown
from qmedoid.spelling import number_of

DRIFT_WIDTH = 3.0
"""Standard errors up to which an alert rate counts as expected: one table in 370 is beyond them by chance."""
ASKED = ("probability", "alert_rate", "min_precision", "min_recall", "cost")
"""Rules with a number that was asked for."""
RULES = ("likeliest", *ASKED, *THRESHOLD_METRICS)
"""Ways to cut: at even odds, at a number that was asked for, or where a metric was best."""
KEPT_PROBABILITIES = ("likeliest", "probability", "cost")
"""Rules that are about a probability: with another prevalence they cut at the same one, and pick other records."""
_LARGEST = {"probability": math.nextafter(1.0, 0.0), "alert_rate": math.nextafter(1.0, 0.0), "cost": math.inf}
"""The largest number that a rule asks for; of the others 1. All are above 0."""


def asked_rule(operating_point: Any, classes: Sequence[Any]) -> tuple[str, float | None]:
    """The rule of `RULES` that a user asks for, and its number.

    Three or more classes have "macro_f1", "balanced_accuracy" and "cost", whose matrix `cost_matrix` reads.

    Raises
    ------
    ParameterError
        It is not None, a probability, the name of a metric, or a dict of one rule and its number.
    """
    if operating_point is None:
        return "likeliest", None
    is_rule = isinstance(operating_point, Mapping) and len(operating_point) == 1
    name, asked = next(iter(operating_point.items())) if is_rule else ("probability", operating_point)
    if len(classes) > 2:
        if name == "cost" and cost_matrix(asked, list(classes)) is not None:
            return "cost", None
        if not isinstance(operating_point, str) or operating_point not in CLASS_METRICS:
            raise ParameterError(
                f"'operating_point' of {len(classes)} classes is None, 'macro_f1', 'balanced_accuracy', or "
                f"{{'cost': matrix}} with a number from 0 up for each of {len(classes)} x {len(classes)} pairs of true "
                f"and called class. Got {shown(operating_point)} instead."
            )
        return operating_point, None
    if isinstance(operating_point, str) and operating_point in THRESHOLD_METRICS:
        return operating_point, None
    known = ("alert_rate", "min_precision", "min_recall", "cost") if is_rule else ("probability",)
    limit = _LARGEST.get(name, 1.0) if isinstance(name, str) else 0.0
    if name not in known or not is_number(asked) or not 0 < asked <= limit or math.isinf(asked):
        raise ParameterError(
            "The operating point must be None, a probability above 0 and below 1, one of "
            f"{', '.join(map(repr, THRESHOLD_METRICS))}, or a dict with one of 'alert_rate' (above 0 and below 1), "
            "'min_precision', 'min_recall' (above 0 and at most 1) and 'cost' (above 0). "
            f"Got {shown(operating_point)} instead."
        )
    return name, float(asked)


class Counts(NamedTuple):
    """Positive records among the alerts, the other alerts, positive records without an alert, and the rest."""

    tp: int
    fp: int
    fn: int
    tn: int


class Drift(NamedTuple):
    """The alert rate of a table compared with the one expected.

    Attributes
    ----------
    alerts, rows : int
    alert_rate, expected : float
    low, high : float
        Rates that a table of this size shows unless something has changed: `DRIFT_WIDTH` standard errors, in which
        both these rows and the out-of-fold ones are counted as draws.
    standard_errors : float
        By how many of them the rate is above what was expected.
    direction : {"none", "up", "down"}
        Whether it is beyond them.
    """

    alerts: int
    rows: int
    alert_rate: float
    expected: float
    low: float
    high: float
    standard_errors: float
    direction: Literal["none", "up", "down"]


@dataclass(frozen=True)
class OperatingSummary:
    """The operating point of a fitted two-class model.

    Attributes
    ----------
    rule : str
        One of `RULES`.
    asked : float or None
        The number that was asked for, where the rule has one.
    log_odds : float
        The cut: records above it are called the second class, and are alerts.
    counts : Counts or None
        Out-of-fold counts at the cut. Where it was chosen on them, precision and recall are a little better than new
        rows will show, by a few hundredths on a few hundred rows, which `forecast` counts. None without
        out-of-fold rows, or where another prevalence leaves counts without meaning.
    prevalence : float or None
        The prevalence that is expected, where it is not that of the out-of-fold rows.
    draws_per_row : float
        Independent draws for each out-of-fold row, above 0 and at most 1: rows of one group, such as equal ones, are
        one draw. Intervals are as wide as those of that number of draws.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from qmedoid import EvidenceClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = EvidenceClassifier(operating_point={"min_recall": 0.99}, random_state=0).fit(X, y)
    >>> model.expected_.rule, model.expected_.recall.value >= 0.99
    ('min_recall', True)
    """

    rule: Annotated[str, RULES]
    asked: float | None
    log_odds: float
    counts: Counts | None = None
    prevalence: float | None = None
    draws_per_row: Annotated[float, Values(above=0, most=1)] = 1.0

    @property
    def threshold(self) -> float:
        """The cut as a probability of the second class."""
        return probability(self.log_odds)

    @property
    def n_rows(self) -> int:
        """Number of out-of-fold rows."""
        return 0 if self.counts is None else sum(self.counts)

    @property
    def alerts(self) -> int:
        """Alerts among the out-of-fold rows."""
        return 0 if self.counts is None else self.counts.tp + self.counts.fp

    @property
    def recall(self) -> Interval | None:
        """Share of the positive records that are alerts, with the 95 % interval of the model's rate.

        It is the same at any prevalence. What one table will show is further apart: see `forecast`. None where there
        is no positive record to take a share of.
        """
        if self.counts is None or self.counts.tp + self.counts.fn == 0:
            return None
        return self._interval(self.counts.tp, self.counts.tp + self.counts.fn)

    @property
    def alert_rate(self) -> Interval | None:
        """Share of the records that are alerts, with the 95 % interval of the model's rate; see `forecast`."""
        if self.counts is None:
            return None
        tp, fp, _, _ = self.counts
        if self.prevalence is None:
            return self._interval(tp + fp, self.n_rows)
        recall, false = self._rates(self.counts)
        share = self.prevalence
        return Interval(*(share * hit + (1.0 - share) * miss for hit, miss in zip(recall, false, strict=True)))

    @property
    def precision(self) -> Interval | None:
        """Share of the alerts that are positive, with the 95 % interval of the model's rate; None without an alert."""
        if self.counts is None or self.counts.tp + self.counts.fp == 0:
            return None
        tp, fp, _, _ = self.counts
        if self.prevalence is None:
            return self._interval(tp, tp + fp)
        recall, false = self._rates(self.counts)
        return Interval(
            self._precision(recall.value, false.value),
            self._precision(recall.low, false.high),
            self._precision(recall.high, false.low) if recall.high else 1.0,
        )

    def forecast(self, rows: int | None = None) -> dict[str, Interval]:
        """What the next table of so many rows will show, with intervals that hold it 19 times in 20.

        Parameters
        ----------
        rows : int, optional
            Rows of the next table; as many as there were out-of-fold rows, if not given.

        Returns
        -------
        dict of str to Interval
            ``"alert_rate"``, ``"precision"``, ``"recall"``, ``"f1"``, ``"accuracy"``, ``"prevalence"``, and for the
            rule ``"cost"`` the ``"cost"`` per row in false alerts; without those that are not defined. Empty without
            out-of-fold rows. The chance of the next table counts, that of the out-of-fold rows, that the cut was chosen
            on these, and that the model of all rows is another one than those of the folds.

        Raises
        ------
        ParameterError
            `rows` is no int from 1 up.
        """
        if rows is not None and (isinstance(rows, bool) or not isinstance(rows, int | np.integer) or rows < 1):
            raise ParameterError(f"The 'rows' parameter must be None or an int >= 1. Got {rows!r} instead.")
        if self.counts is None or self.n_rows == 0:
            return {}
        tp, fp, fn, tn = (self.draws_per_row * count for count in self.counts)
        draws = max(1, round(self.draws_per_row * (self.n_rows if rows is None else int(rows))))
        return next_table((tp, fp, fn, tn), draws, self.log_odds, self.prevalence, self._cost)

    @property
    def _cost(self) -> float | None:
        return self.asked if self.rule == "cost" else None

    def at_prevalence(self, prevalence: float, shift: float) -> "OperatingSummary":
        """A copy adjusted to another prevalence of the second class, where all log-odds are larger by `shift`.

        A rule about a probability keeps its cut; what that will do to the records is then not known from counts. All
        others keep the records that they pick: their cut moves along.
        """
        if self.rule in KEPT_PROBABILITIES:
            return replace(self, counts=None, prevalence=prevalence)
        return replace(self, log_odds=self.log_odds + shift, prevalence=prevalence)

    def drift(self, alerts: int, rows: int) -> Drift | None:
        """Compare the alerts among some rows with what is expected; None where nothing is."""
        if self.counts is None or self.n_rows == 0 or rows == 0:
            return None
        (tp, fp, fn, tn), per_row = self.counts, self.draws_per_row
        draws = per_row * self.n_rows
        share = per_row * (tp + fp) / draws
        if self.prevalence is not None:
            recall, false = (hits / (hits + misses) if hits else 0.0 for hits, misses in ((tp, fn), (fp, tn)))
            share = self.prevalence * recall + (1.0 - self.prevalence) * false
            draws = self._draws(self.counts)
        change = share_change(alerts, rows, share * draws, draws, width=DRIFT_WIDTH)
        beyond = abs(change.standard_errors) > DRIFT_WIDTH
        direction: Literal["none", "up", "down"] = "none"
        if beyond:
            direction = "up" if change.standard_errors > 0 else "down"
        return Drift(alerts, rows, alerts / rows, share, change.low, change.high, change.standard_errors, direction)

    def as_dict(self, rows: int | None = None) -> OperatingDict:
        """Everything by name, fit for JSON, with the forecast for so many rows; intervals as value, low and high."""
        counts, forecast = self.counts, self.forecast(rows)
        alert_rate, precision, recall = self.alert_rate, self.precision, self.recall
        return {
            "rule": self.rule,
            "asked": self.asked,
            "threshold": self.threshold,
            "log_odds": self.log_odds,
            "held_out_rows": self.n_rows,
            "draws_per_row": self.draws_per_row,
            "counts": None if counts is None else {"tp": counts.tp, "fp": counts.fp, "fn": counts.fn, "tn": counts.tn},
            "prevalence": self.prevalence,
            "alert_rate": None if alert_rate is None else alert_rate.as_dict(),
            "precision": None if precision is None else precision.as_dict(),
            "recall": None if recall is None else recall.as_dict(),
            "forecast_rows": (rows or self.n_rows) if forecast else None,
            "forecast": {name: figure.as_dict() for name, figure in forecast.items()},
        }

    def _rates(self, counts: Counts) -> tuple[Interval, Interval]:
        """Shares of the positive and of the other records that are alerts."""
        return self._interval(counts.tp, counts.tp + counts.fn), self._interval(counts.fp, counts.fp + counts.tn)

    def _interval(self, hits: int, n: int) -> Interval:
        return share_interval(self.draws_per_row * hits, self.draws_per_row * n)

    def _precision(self, recall: float, false: float) -> float:
        share = self.prevalence or 0.0
        found, mistaken = share * recall, (1.0 - share) * false
        return found / (found + mistaken) if found > 0 else 0.0

    def _draws(self, counts: Counts) -> float:
        """Number of draws of a plain proportion with the variance of this mixture of two."""
        share = self.prevalence or 0.0
        tp, fp, fn, tn = (self.draws_per_row * count for count in counts)
        kinds = ((share, tp, fn), (1.0 - share, fp, tn))
        # A hit and a miss more than there were: none seen is not none to come.
        rates = [(weight, (hits + 1.0) / (hits + misses + 2.0), hits + misses + 2.0) for weight, hits, misses in kinds]
        rate = sum(weight * one for weight, one, _ in rates)
        return rate * (1.0 - rate) / sum(weight**2 * one * (1.0 - one) / n for weight, one, n in rates)


def probability(log_odds: float) -> float:
    """The probability of these log-odds."""
    return 1.0 / (1.0 + math.exp(-log_odds)) if log_odds > 0 else math.exp(log_odds) / (1.0 + math.exp(log_odds))


def cut_in_words(summary: OperatingSummary, positive: str) -> str:
    """Which records are called positive, and how the cut was chosen: a sentence without its end."""
    return (
        f"a record is called {positive} if its probability is above {summary.threshold:.4g} ({rule_in_words(summary)})"
    )


def rule_in_words(summary: OperatingSummary) -> str:
    """How the cut was chosen."""
    asked = summary.asked if summary.asked is not None else 0.0
    words = {
        "likeliest": "the likelier class",
        "probability": "the probability that was asked for",
        "alert_rate": f"at most {100 * asked:.4g} % of the rows it was chosen on are alerts",
        "min_precision": f"a precision of at least {asked:.4g} on the rows it was chosen on, and the most recall",
        "min_recall": f"a recall of at least {asked:.4g} on the rows it was chosen on, and the fewest alerts",
        "cost": f"a missed positive costs as much as {asked:.4g} false alerts",
    }
    return words.get(summary.rule, f"the best {summary.rule.replace('_', '-')} on the rows it was chosen on")


# How far above the highest score the cut lies that no row exceeds.
_ABOVE_HIGHEST = 1e-3


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
    if rule in ("min_precision", "min_recall", "cost") and len(set(positive)) < 2:
        warn(f"All {len(positive):,} held-out rows are of one class: the threshold stays at even odds.")
        return 0.0
    cut = chosen_threshold(rule, asked, positive, margins)
    if rule == "alert_rate" and not (margins > cut).any():
        warn(
            f"An alert rate of {asked:g} is less than one of the {len(margins):,} held-out rows, or their highest "
            "scores are equal: the threshold is just above their highest score, and alerts will be rarer than that "
            "rate."
        )
        # Scores of the fitted model that are equal but for rounding would all lie above it.
        return cut + _ABOVE_HIGHEST
    return cut


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
    index = int((curve.thresholds > log_odds).sum()) - 1
    true, false = (0, 0) if index < 0 else (int(curve.true_positives[index]), int(curve.false_positives[index]))
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


def budget_of(given: Any, n_rows: int) -> tuple[str, int]:
    """A budget of alerts as a text, and the alerts that it allows among `n_rows`.

    It is a number of alerts, such as 100 or ``"100"``, or their share of the records: 0.05, ``"0.05"`` or ``"5%"``.

    Raises
    ------
    ParameterError
        It is neither a whole number from 1 up nor a share above 0 and at most 1.
    """
    is_percent = str(given).strip().endswith("%")
    number = number_of(str(given)) if isinstance(given, str) or is_number(given) else None
    value = math.nan if number is None else number
    if 0 < value <= 1 and (is_percent or value < 1):
        return f"{100 * value:.6g}%", math.floor(value * n_rows + 1e-9)
    if not is_percent and value >= 1 and value.is_integer():
        return f"{int(value)}", int(value)
    raise ParameterError(
        "A budget must be a number of alerts, such as 100, or a share of the records above 0, such as 5% or 0.05. "
        f"Got {given!r} instead."
    )


def budgets_on_rows(
    budgets: Iterable[Any], positive: Flags, log_odds: Array, curve: HeldOutCurve | None = None
) -> list[tuple[str, OperatingSummary]]:
    """Budgets as texts, and the operating point that each means on rows whose classes are known.

    Alerts are fewer than allowed where scores are equal, which are all alerts or all not. Rows of a `curve` have its
    counts.
    """
    if not len(positive):
        raise DataError("There are no rows to spend a budget on.")
    spent = []
    for budget in budgets:
        text, count = budget_of(budget, len(positive))
        cut = threshold_at_count(log_odds, count)
        if curve is None:
            counts = Counts(**counts_at(positive, log_odds, cut))
        else:
            cut = _exact(cut, curve)
            counts = curve_counts(curve, cut)
        spent.append((text, OperatingSummary("alert_rate", None, cut, counts)))
    return spent


def budget_dict(budget: str, operating: OperatingSummary) -> BudgetDict:
    """A budget and its operating point by name, fit for JSON and for a data frame."""
    document: dict[str, Any] = {"budget": budget, "threshold": operating.threshold}
    document |= {"alerts": operating.alerts, "rows": operating.n_rows}
    for name in ("alert_rate", "precision", "recall"):
        figure = getattr(operating, name) or (None,) * 3
        document |= zip((name, f"{name}_low", f"{name}_high"), figure, strict=True)
    return cast("BudgetDict", document)
