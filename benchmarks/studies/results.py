"""Results of cells gathered: figures of one method over its splits, and differences of two on the same splits."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.studies.cells import Cell, Result, SplitKind
from benchmarks.studies.document import Heading, Value
from qmedoid.arrays import Array
from qmedoid.metrics.classification import ClassMetrics

Measure = Callable[[Result], float]


@dataclass(frozen=True)
class Spread:
    """Values of one figure over repeated splits, in the order of the seeds; empty, and false, where there are none."""

    values: Array

    def __bool__(self) -> bool:
        return len(self.values) > 0

    @property
    def mean(self) -> float:
        """Mean over splits."""
        return float(self.values.mean())

    @property
    def deviation(self) -> float | None:
        """Standard deviation from split to split; None for a single one."""
        return float(self.values.std(ddof=1)) if len(self.values) > 1 else None

    @property
    def error(self) -> float | None:
        """Standard error of the mean; None for a single split."""
        return None if self.deviation is None else self.deviation / math.sqrt(len(self.values))

    @property
    def low(self) -> float:
        """The smallest value."""
        return float(self.values.min())

    @property
    def high(self) -> float:
        """The largest value."""
        return float(self.values.max())

    @property
    def cells(self) -> tuple[Value, Value]:
        """Mean and standard error, for the columns of `headings`."""
        return (self.mean, self.error) if self else (None, None)

    @property
    def range_cells(self) -> tuple[Value, Value, Value, Value]:
        """Mean, standard error, the smallest and the largest value."""
        return (*self.cells, self.low, self.high) if self else (None, None, None, None)

    def holds(self, printed: float | None) -> Literal["yes", "no"] | None:
        """Whether a figure printed with four digits could be one of these splits; None where one of both is missing.

        It lies in their range, or within two standard deviations of their mean, as the range of few splits is narrow.
        """
        if printed is None or not self:
            return None
        reach, slack = 2.0 * (self.deviation or 0.0), 0.5e-4
        low, high = min(self.low, self.mean - reach), max(self.high, self.mean + reach)
        return "yes" if low - slack <= printed <= high + slack else "no"


@dataclass(frozen=True)
class Paired:
    """Our method against one other on the same splits; `test_share` is the number of test rows per fitted row."""

    data: str
    split: SplitKind
    figure: str
    rival: str
    ours: Spread
    theirs: Spread
    test_share: float

    @property
    def difference(self) -> Spread:
        """Metric of the other minus ours, split by split: above 0 the other wins."""
        return Spread(self.theirs.values - self.ours.values)

    @property
    def error(self) -> float | None:
        """Standard error of the mean difference, corrected for splits that share most of their rows.

        Nadeau and Bengio: the variance is multiplied by 1/n + n_test/n_train instead of 1/n.
        """
        deviation = self.difference.deviation
        return None if deviation is None else deviation * math.sqrt(1 / len(self.difference.values) + self.test_share)

    @property
    def wins(self) -> int:
        """Number of splits on which the other is ahead."""
        return int((self.difference.values > 0).sum())


@dataclass(frozen=True)
class StudyResults:
    """All results of a run, by cell."""

    by_cell: Mapping[Cell, Result]

    def of(self, data: str, method: str, split: SplitKind = "random") -> list[Result]:
        """Results of a method on the splits of a data set, in the order of the seeds; empty where it was not run."""
        found = [cell for cell in self.by_cell if (cell.data, cell.method, cell.split) == (data, method, split)]
        return [self.by_cell[cell] for cell in sorted(found)]

    def spread(self, data: str, method: str, measure: Measure, split: SplitKind = "random") -> Spread:
        """A figure of a method over its splits; empty where it was not run, or where a split lacks the figure."""
        values = np.array([measure(result) for result in self.of(data, method, split)], dtype=np.float64)
        return Spread(values[:0] if np.isnan(values).any() else values)

    def means(self, data: str, method: str, measures: Iterable[Measure], split: SplitKind = "random") -> list[Value]:
        """Means and standard errors of several figures, for the columns of `headings`."""
        return [cell for measure in measures for cell in self.spread(data, method, measure, split).cells]

    def methods(self, data: str, split: SplitKind = "random") -> list[str]:
        """Methods that were run on a data set."""
        return list(dict.fromkeys(cell.method for cell in self.by_cell if (cell.data, cell.split) == (data, split)))


def confusion(part: str) -> Callable[[Result], ClassMetrics]:
    """Metrics of a result's confusion matrix on the rows of a part, ``"test"`` or ``"val"``."""
    return lambda result: ClassMetrics(np.array(result[part]["confusion"], dtype=np.float64))


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold and what it did to the rows it was judged on; a 0/0 counts as 0.

    Attributes
    ----------
    threshold : float
        Records with a score above it are alerts.
    tp, fp, fn, tn : int
        Positive records among the alerts, the other alerts, positive records without an alert, and the rest.
    """

    threshold: float
    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.tp + self.fp + self.fn + self.tn

    @property
    def prevalence(self) -> float:
        """Share of the rows that are positive."""
        return (self.tp + self.fn) / self.n

    @property
    def alert_rate(self) -> float:
        """Share of the rows that are alerts."""
        return (self.tp + self.fp) / self.n

    @property
    def precision(self) -> float:
        """TP / (TP + FP): share of the alerts that are positive."""
        return self.tp / (self.tp + self.fp) if self.tp else 0.0

    @property
    def recall(self) -> float:
        """TP / (TP + FN): share of the positive records that are alerts."""
        return self.tp / (self.tp + self.fn) if self.tp else 0.0

    @property
    def accuracy(self) -> float:
        """Share of the rows that are decided rightly."""
        return (self.tp + self.tn) / self.n

    @property
    def f1(self) -> float:
        """2·TP / (2·TP + FP + FN), the harmonic mean of precision and recall."""
        return self.tp / (self.tp + 0.5 * self.fn + 0.5 * self.fp) if self.tp else 0.0

    @property
    def macro_f1(self) -> float:
        """Mean of the F1 of both classes."""
        return (self.f1 + (2 * self.tn / (2 * self.tn + self.fn + self.fp) if self.tn else 0.0)) / 2


def point(result: Result, part: str, name: str) -> OperatingPoint | None:
    """A result's counts at an operating point on the rows of a part; None where validation rows could not reach it."""
    counts: Sequence[int] | None = result[part]["counts"].get(name)
    return None if counts is None else OperatingPoint(result["thresholds"][name], *counts)


def headings(*labels: str) -> list[Heading]:
    """Columns by ``"group: name"``, or by name alone; ``" ±"`` at the end adds a column of standard errors."""
    columns = []
    for label in labels:
        group, _, name = label.removesuffix(" ±").rpartition(": ")
        columns += [Heading(name, group)]
        columns += [Heading("±", group, is_error=True)] if label.endswith(" ±") else []
    return columns
