"""Findings by code, and what they are judged by: a summary, and facts that it does not show."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ParameterError
from qmedoid.kernels.ties import stable_order
from qmedoid.metrics.classification import roc_auc
from qmedoid.model.contract import Column, Levels
from qmedoid.model.table import TableModel
from qmedoid.model_report.reading import Looked, Sample
from qmedoid.spelling import did_you_mean
from qmedoid.tables import cells
from qmedoid.tables.sentinels import find_sentinels

MOST_COLUMNS = 60
"""Columns that are looked at one by one: the most important ones."""
_BINS = 20
_TABLE = "the rows of the table"


class ColumnFacts(NamedTuple):
    """Facts about a column of the table, from its sampled rows.

    Attributes
    ----------
    alone : float or None
        ROC-AUC of the class by this column alone, on rows that its bins were not made of; of more than two classes the
        mean of one against the rest. None without classes.
    missing : tuple of (int, int)
        Missing cells and rows of each class.
    n_values : int
        Different values of cells that are not missing; 2 stands for more.
    moved : float or None
        Largest difference of the cumulative shares of the first and the last third of the rows.
    missing_rows, rows : int
        Missing cells of all rows.
    sentinels : str
        A note on values that may stand for missing cells; empty where there are none.
    """

    alone: float | None
    missing: tuple[tuple[int, int], ...]
    n_values: int
    moved: float | None
    missing_rows: int
    rows: int
    sentinels: str = ""


class OrderFacts(NamedTuple):
    """The first and the last third of the sampled rows, in the order of `by`: rows, and rows of each class, of both."""

    by: str
    first: int
    last: int
    first_classes: tuple[int, ...]
    last_classes: tuple[int, ...]
    is_time: bool = False


@dataclass(frozen=True)
class Facts:
    """A summary, and what else findings look at.

    Attributes
    ----------
    summary : mapping
    class_counts : sequence of float or None
        Training rows of each class.
    levels : mapping
        Training rows of each level of the categories.
    columns : mapping of str to ColumnFacts
    order : OrderFacts or None
    conflicting, repeated : int or None
        Rows that equal a row of another class; rows that equal another row.
    saturated : float or None
        Share of the rows whose likeliest class has a probability of more than 1 − 1e-6.
    """

    summary: Mapping[str, Any]
    class_counts: Sequence[float] | None = None
    levels: Mapping[str, Sequence[int]] = field(default_factory=dict)
    columns: Mapping[str, ColumnFacts] = field(default_factory=dict)
    order: OrderFacts | None = None
    conflicting: int | None = None
    repeated: int | None = None
    saturated: float | None = None

    @property
    def table(self) -> Mapping[str, Any] | None:
        """What the summary says of the table."""
        found: Mapping[str, Any] | None = self.summary["table"]
        return found

    @property
    def is_judged_by_table(self) -> bool:
        """Whether the figures are of rows of the table."""
        return (self.summary["figures"] or {}).get("source") == "table"

    def figure(self, key: str) -> Mapping[str, Any] | None:
        """A figure of the summary that has a value."""
        figures = (self.summary["figures"] or {}).get("figures", ())
        return next((one for one in figures if one["key"] == key and one["value"] is not None), None)


def gather(model: TableModel, looked: Looked | None, summary: Mapping[str, Any], importance: Array | None) -> Facts:
    """The facts about a model and, if one was looked at, a table."""
    training, priors = model.training, model.decision.priors
    counts = None if training is None or priors is None else [training.n_rows * float(share) for share in priors]
    levels = {} if training is None else {
        column.name: training.levels[place].tolist()
        for place, (column, encoding) in enumerate(zip(model.contract.columns, model.encodings, strict=True))
        if isinstance(encoding, Levels)
    }  # fmt: skip
    if looked is None:
        return Facts(summary, counts, levels)
    sample = looked.sample
    order, by = _row_order(model, sample)
    places = _looked_at(model, importance)
    columns = {model.contract.columns[place].name: _column(model, sample, place, order) for place in places}
    conflicting, repeated = _equal_rows(looked)
    return Facts(
        summary, counts, levels, columns, _thirds(model, sample, order, by), conflicting, repeated,
        _saturated(model, looked),
    )  # fmt: skip


def _looked_at(model: TableModel, importance: Array | None) -> list[int]:
    used = list(model.layout.used)
    if importance is None or len(used) <= MOST_COLUMNS:
        return used[:MOST_COLUMNS]
    return [used[place] for place in stable_order(-importance[used])[:MOST_COLUMNS]]


def _values(model: TableModel, sample: Sample, place: int) -> Array:
    """The cells of a column as numbers: themselves, days, or the places of levels; NaN where one is missing."""
    column, encoding = model.contract.columns[place], model.encodings[place]
    if column.name not in sample.table.column_names:
        return np.full(len(sample.codes), np.nan)
    given = cells.one_chunk(cells.without_missing_values(sample.table.column(column.name), column))
    if isinstance(encoding, Levels):
        codes = cells.level_codes(given, encoding.levels)[0].astype(np.float64)
        return np.where(codes == len(encoding.levels), np.nan, codes)
    values = cells.read(given, column.kind, column.spelling).values
    if values.dtype.kind == "M":
        return np.where(np.isnat(values), np.nan, values.astype("M8[us]").astype(np.int64) / 86_400e6)
    numbers = np.asarray(values, dtype=np.float64)
    return np.where(np.abs(numbers) <= cells.LARGEST, numbers, np.nan)


def _column(model: TableModel, sample: Sample, place: int, order: Codes) -> ColumnFacts:
    values, codes, n_classes = _values(model, sample, place), sample.codes, len(model.decision.classes)
    absent = np.isnan(values)
    known = values[~absent]
    by_class = tuple((int(absent[codes == code].sum()), int((codes == code).sum())) for code in range(n_classes))
    labeled = codes >= 0
    return ColumnFacts(
        told_alone(values[labeled], codes[labeled], n_classes), by_class,
        0 if not len(known) else 1 + int((known != known[0]).any()), moved(values[order]), int(absent.sum()),
        len(values), _sentinels(model.contract.columns[place], sample),
    )  # fmt: skip


def _sentinels(column: Column, sample: Sample) -> str:
    """A note on values of a column that may stand for missing cells."""
    if column.kind not in ("number", "date") or column.name not in sample.table.column_names:
        return ""
    found = find_sentinels(cells.read_as(sample.table.column(column.name), column).values, column.kind)
    return "" if found is None else found.message(column.name)


def told_alone(values: Array, codes: Codes, n_classes: int) -> float | None:
    """How well one column tells the classes apart: bins of every other row, judged on the rows between them."""
    if len(values) < 4 or len(np.unique(codes)) < 2:
        return None
    bins = _binned(values)
    fit, judged = np.arange(len(values)) % 2 == 0, np.arange(len(values)) % 2 == 1
    areas = []
    for code in [1] if n_classes == 2 else range(n_classes):
        hit = codes == code
        share = float(hit[fit].mean())
        rows = np.bincount(bins[fit], minlength=int(bins.max()) + 1)
        hits = np.bincount(bins[fit], weights=hit[fit], minlength=len(rows))
        # A bin without rows says what all rows say.
        area = roc_auc(hit[judged], ((hits + share) / (rows + 1.0))[bins[judged]])
        if not math.isnan(area):
            areas.append(area)
    return float(np.mean(areas)) if areas else None


def _binned(values: Array) -> Codes:
    """Bins of about equally many rows, those of missing cells the first; few different values are a bin each."""
    known = values[~np.isnan(values)]
    found = np.unique(known)
    edges = found if len(found) <= 4 * _BINS else np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[:-1]))
    return np.where(np.isnan(values), 0, 1 + np.searchsorted(edges, np.nan_to_num(values), side="right"))


def moved(values: Array) -> float | None:
    """Largest difference of the cumulative shares of values, missing ones the lowest, of the first and last third."""
    third = len(values) // 3
    if third < 2:
        return None
    placed = np.where(np.isnan(values), -np.inf, values)
    first, last = np.sort(placed[:third]), np.sort(placed[-third:])
    at = np.unique(placed)
    shares = [np.searchsorted(one, at, side="right") / third for one in (first, last)]
    return float(np.abs(shares[0] - shares[1]).max())


def _row_order(model: TableModel, sample: Sample) -> tuple[Codes, str]:
    """The sampled rows in the order of the first date that the model reads, else in that of the table."""
    for place in model.layout.used:
        if model.contract.columns[place].kind == "date":
            values = _values(model, sample, place)
            if not np.isnan(values).any():
                return np.argsort(values, kind="stable"), repr(model.contract.columns[place].name)
    return np.argsort(sample.rows, kind="stable"), _TABLE


def _thirds(model: TableModel, sample: Sample, order: Codes, by: str) -> OrderFacts | None:
    third = len(order) // 3
    if third < 2:
        return None
    first, last = sample.codes[order[:third]], sample.codes[order[-third:]]
    labels = range(len(model.decision.classes))
    counts = [tuple(int((codes == code).sum()) for code in labels) for codes in (first, last)]
    return OrderFacts(by, third, third, counts[0], counts[1], is_time=by != _TABLE)


def _equal_rows(looked: Looked) -> tuple[int | None, int | None]:
    if looked.hashes is None:
        return None, None
    _, inverse, counts = np.unique(looked.hashes, return_inverse=True, return_counts=True)
    repeated = counts[inverse] > 1
    known: Flags = looked.codes >= 0
    low, high = np.full(len(counts), np.iinfo(np.intp).max), np.full(len(counts), -1)
    np.minimum.at(low, inverse[known], looked.codes[known])
    np.maximum.at(high, inverse[known], looked.codes[known])
    return int((known & (low < high)[inverse]).sum()), int(repeated.sum())


def _saturated(model: TableModel, looked: Looked) -> float | None:
    if not model.decision.probabilistic:
        return None
    best = model.decision.probabilities(looked.decided.scores).max(axis=1)
    return float((best > 1.0 - 1e-6).mean())


Status = Literal["problem", "tip", "passed", "not applicable", "ignored"]
STATUSES: tuple[Status, ...] = ("problem", "tip", "passed", "not applicable", "ignored")
"""In the order of the page."""


class Verdict(NamedTuple):
    """What a finding comes to: status, why in a sentence, and what to do; nothing where there is nothing to do."""

    status: Status
    why: str
    do: str = ""


def passed(why: str) -> Verdict:
    """Nothing was found."""
    return Verdict("passed", why)


def not_applicable(why: str) -> Verdict:
    """It cannot be judged."""
    return Verdict("not applicable", why)


@dataclass(frozen=True)
class Finding:
    """A coded finding: what it is called where it is found, and what holds where it is not."""

    code: str
    title: str
    holds: str
    judge: Callable[[Facts], Verdict]


FINDINGS: dict[str, Finding] = {}


def finding(code: str, title: str, holds: str) -> Callable[[Callable[[Facts], Verdict]], Callable[[Facts], Verdict]]:
    """Register a function of the facts under a code."""

    def register(judge: Callable[[Facts], Verdict]) -> Callable[[Facts], Verdict]:
        assert code not in FINDINGS, code
        FINDINGS[code] = Finding(code, title, holds, judge)
        return judge

    return register


def check_codes(codes: Iterable[str]) -> None:
    """Refuse codes that no finding has."""
    for code in codes:
        if code not in FINDINGS:
            raise ParameterError(
                f"There is no finding {code!r}.{did_you_mean(code, FINDINGS)} There are {', '.join(sorted(FINDINGS))}."
            )


def judged(facts: Facts, ignore: Collection[str] = ()) -> list[dict[str, Any]]:
    """All findings, problems first; those of equal status by their code."""
    check_codes(ignore)
    found = []
    for code in sorted(FINDINGS):
        one = FINDINGS[code]
        verdict = Verdict("ignored", "It was not judged, as asked for.") if code in ignore else one.judge(facts)
        title = one.title if verdict.status in ("problem", "tip") else one.holds
        found.append({"code": code, "status": verdict.status, "title": title, "why": verdict.why, "do": verdict.do})
    return sorted(found, key=lambda one: (STATUSES.index(one["status"]), one["code"]))
