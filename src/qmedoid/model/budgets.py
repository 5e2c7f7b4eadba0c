"""Budgets of alerts: which threshold each means, and with which precision and recall."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.metrics.thresholds import counts_at, is_number, threshold_at_count
from qmedoid.model.cut import curve_counts, curve_rows, exact_cut
from qmedoid.model.decision import Decision
from qmedoid.model.documents import BudgetDict
from qmedoid.model.operating_point import Counts, OperatingSummary
from qmedoid.model.training_summary import HeldOutCurve
from qmedoid.spelling import number_of


@dataclass(frozen=True)
class Budget:
    """Alerts that can be looked at: their number, or their share of the records."""

    number: int | None = None
    share: float | None = None

    @classmethod
    def of(cls, given: Any) -> "Budget":
        """The budget that is meant by 100, ``"100"``, 0.05, ``"0.05"`` or ``"5%"``.

        Raises
        ------
        ParameterError
            It is neither a whole number from 1 up nor a share above 0 and at most 1.
        """
        is_percent = str(given).strip().endswith("%")
        number = number_of(str(given)) if isinstance(given, str) or is_number(given) else None
        value = math.nan if number is None else number
        if 0 < value <= 1 and (is_percent or value < 1):
            return cls(share=value)
        if not is_percent and value >= 1 and value.is_integer():
            return cls(number=int(value))
        raise ParameterError(
            "A budget must be a number of alerts, such as 100, or a share of the records above 0, such as 5% or 0.05. "
            f"Got {given!r} instead."
        )

    def count(self, n_rows: int) -> int:
        """The alerts that it allows among so many rows."""
        return self.number if self.number is not None else math.floor((self.share or 0.0) * n_rows + 1e-9)

    def __str__(self) -> str:
        return f"{self.number}" if self.number is not None else f"{100 * (self.share or 0.0):.6g}%"


@dataclass(frozen=True)
class SpentBudget:
    """A budget, and the operating point that it means on some rows."""

    budget: Budget
    operating: OperatingSummary

    @property
    def alerts(self) -> int:
        """Alerts among the rows; fewer than allowed where scores are equal, which are all alerts or all not."""
        counts = self.operating.counts
        return 0 if counts is None else counts.tp + counts.fp

    def as_dict(self) -> BudgetDict:
        """Everything by name, fit for JSON and for a data frame."""
        nothing = (None, None, None)
        alert_rate, precision, recall = (
            one or nothing for one in (self.operating.alert_rate, self.operating.precision, self.operating.recall)
        )
        return {
            "budget": str(self.budget),
            "threshold": self.operating.threshold,
            "alerts": self.alerts,
            "rows": self.operating.n_rows,
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


def budgets_on_rows(budgets: Iterable[Any], positive: Flags, log_odds: Array) -> list[SpentBudget]:
    """What budgets mean on rows whose classes are known."""
    if not len(positive):
        raise DataError("There are no rows to spend a budget on.")
    return [
        SpentBudget(budget, OperatingSummary("alert_rate", None, cut, Counts(**counts_at(positive, log_odds, cut))))
        for budget in map(Budget.of, budgets)
        for cut in [threshold_at_count(log_odds, budget.count(len(positive)))]
    ]


def budgets_on_curve(budgets: Iterable[Any], decision: Decision, curve: HeldOutCurve | None) -> list[SpentBudget]:
    """What budgets mean on the held-out rows of a fit, at the priors that a decision expects."""
    asked = [Budget.of(one) for one in budgets]
    decision.check_cuttable()
    if curve is None:
        raise DataError("This model holds no curve of held-out rows to spend a budget on: give labeled rows.")
    _, log_odds = curve_rows(curve)
    found = []
    for budget in asked:
        cut = exact_cut(threshold_at_count(log_odds, budget.count(len(log_odds))), curve)
        plain = OperatingSummary("alert_rate", None, cut, curve_counts(curve, cut))
        found.append(SpentBudget(budget, decision.expected_at(plain, curve)))
    return found
