"""Findings by code, and what they look at: a summary, and the model and the table that it is of."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ParameterError, some_of
from qmedoid.explain.effect import column_values
from qmedoid.kernels.ties import stable_order
from qmedoid.metrics.classification import roc_auc
from qmedoid.model.contract import Levels
from qmedoid.model.model import Model
from qmedoid.report.documents import ReportFindingDict
from qmedoid.report.reading import Looked, Sample
from qmedoid.spelling import did_you_mean

MOST_COLUMNS = 60
"""Columns that are looked at one by one: the most important ones."""
TABLE_ORDER = "the rows of the table"
"""The order of rows that no date gives."""
MOST_NAMED = 5
"""Columns or classes that a sentence names."""
_BINS = 20


@dataclass(frozen=True)
class ReportFacts:
    """What findings look at: a summary, the model and the table that it is of, and the importances of columns."""

    summary: Mapping[str, Any]
    model: Model | None = None
    looked: Looked | None = None
    importance: Array | None = None

    @property
    def table(self) -> Mapping[str, Any] | None:
        """What the summary says of the table."""
        found: Mapping[str, Any] | None = self.summary["table"]
        return found

    @property
    def is_evaluated_on_table(self) -> bool:
        """Whether the figures are of rows of the table."""
        return (self.summary["figures"] or {}).get("source") == "table"

    @property
    def levels(self) -> dict[str, list[int]]:
        """Training rows of each level of the categories."""
        if self.model is None or self.model.training is None:
            return {}
        columns = zip(self.model.contract.columns, self.model.encodings, self.model.training.levels, strict=True)
        return {column.name: counts.tolist() for column, encoding, counts in columns if isinstance(encoding, Levels)}

    @cached_property
    def columns(self) -> dict[str, dict[str, Any]]:
        """Facts about the columns of the table from its sampled rows, of many about the most important ones.

        ``"alone"`` is the ROC-AUC of the class by this column alone (see `told_alone`), ``"missing"`` the missing cells
        and rows of each class, ``"is_constant"`` whether all cells that are not missing are the same, ``"moved"`` the
        largest difference of the cumulative shares of the first and the last third of the rows; ``"missing_rows"`` and
        ``"rows"`` count cells.
        """
        if self.model is None or self.looked is None:
            return {}
        places = list(self.model.layout.used)
        if self.importance is not None and len(places) > MOST_COLUMNS:
            places = [places[rank] for rank in stable_order(-self.importance[places])]
        names, order = self.model.contract.names, self.row_order[0]
        return {names[place]: _column(self.model, self.looked.sample, place, order) for place in places[:MOST_COLUMNS]}

    @cached_property
    def row_order(self) -> tuple[Codes, str]:
        """The sampled rows in the order of the first date that the model reads, else in that of the table."""
        if self.model is None or self.looked is None:
            return np.zeros(0, dtype=np.intp), TABLE_ORDER
        for place in self.model.layout.used:
            if self.model.contract.columns[place].kind == "date":
                values = _values(self.model, self.looked.sample, place)
                if not np.isnan(values).any():
                    return np.argsort(values, kind="stable"), repr(self.model.contract.columns[place].name)
        return np.argsort(self.looked.sample.rows, kind="stable"), TABLE_ORDER

    @cached_property
    def equal_rows(self) -> tuple[int, int] | None:
        """Rows that equal a row of another class, and rows that equal another row; None where that is not known."""
        if self.looked is None or self.looked.hashes is None:
            return None
        _, inverse, counts = np.unique(self.looked.hashes, return_inverse=True, return_counts=True)
        known = self.looked.codes >= 0
        low, high = np.full(len(counts), np.iinfo(np.intp).max), np.full(len(counts), -1)
        np.minimum.at(low, inverse[known], self.looked.codes[known])
        np.maximum.at(high, inverse[known], self.looked.codes[known])
        return int((known & (low < high)[inverse]).sum()), int((counts[inverse] > 1).sum())


def _values(model: Model, sample: Sample, place: int) -> Array:
    """The cells of a column as numbers: themselves, days, or the places of levels; NaN where one is missing."""
    column = model.contract.columns[place]
    values = column_values(sample.table, column, model.encodings[place])
    return values / 86_400e6 if column.kind == "date" else values


def _column(model: Model, sample: Sample, place: int, order: Codes) -> dict[str, Any]:
    values, codes, n_classes = _values(model, sample, place), sample.codes, len(model.decision.classes)
    absent, labeled = np.isnan(values), codes >= 0
    known = values[~absent]
    return {
        "alone": told_alone(values[labeled], codes[labeled], n_classes),
        "missing": [(int(absent[codes == code].sum()), int((codes == code).sum())) for code in range(n_classes)],
        "is_constant": len(known) > 0 and bool((known == known[0]).all()),
        "moved": moved(values[order]),
        "missing_rows": int(absent.sum()),
        "rows": len(values),
    }


def told_alone(values: Array, codes: Codes, n_classes: int) -> float | None:
    """How well one column tells the classes apart: bins of every other row, evaluated on the rows between them."""
    if len(values) < 4 or len(np.unique(codes)) < 2:
        return None
    # Bins of about equally many rows, those of missing cells the first; few different values are a bin each.
    absent = np.isnan(values)
    known = values[~absent]
    edges = np.unique(known)
    if len(edges) > 4 * _BINS:
        edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[:-1]))
    bins = np.where(absent, 0, 1 + np.searchsorted(edges, np.nan_to_num(values), side="right"))
    fit, held_out = np.arange(len(values)) % 2 == 0, np.arange(len(values)) % 2 == 1
    areas = []
    for code in [1] if n_classes == 2 else range(n_classes):
        hit = codes == code
        share = float(hit[fit].mean())
        rows = np.bincount(bins[fit], minlength=int(bins.max()) + 1)
        hits = np.bincount(bins[fit], weights=hit[fit], minlength=len(rows))
        # A bin without rows says what all rows say.
        area = roc_auc(hit[held_out], ((hits + share) / (rows + 1.0))[bins[held_out]])
        if not math.isnan(area):
            areas.append(area)
    return float(np.mean(areas)) if areas else None


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


Status = Literal["problem", "tip", "passed", "not applicable", "ignored"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""In the order of the page."""
Verdict = tuple[Status, str] | tuple[Status, str, str]
"""What a finding comes to: status, why in a sentence, and what to do, where it is not what `TO_DO` says."""
TO_DO = {
    "QM101": "Collect more rows of this class, or join it with another one.",
    "QM102": "Fit with --keep NAME if a column says something about new records as well.",
    "QM103": "Join rare levels into one before the fit, or collect more rows.",
    "QM104": "Group its levels, or leave the column out with --ignore NAME.",
    "QM106": "Fit with --ignore NAME to need fewer columns.",
    "QM202": "Look what happens where this column is missing or wrong.",
    "QM203": "Look for a column that gives the class away, or for equal rows.",
    "QM204": "Choose another operating point, such as --min-recall 0.5 or --alert-rate 1%, "
    "or collect rows of this class.",
    "QM205": "Judge by more rows before you compare figures.",
    "QM206": "Use more rows, or a budget of at least 30 alerts.",
    "QM301": "Look at drift and novelty below; qmedoid recalibrate fits probabilities and cut to new labels.",
    "QM302": "qmedoid recalibrate fits the probabilities to new labels.",
    "QM303": "Use the baseline, or fit ours with other settings and compare.",
    "QM304": "Leave out --all-rows: figures look better than those of new rows will.",
    "QM305": "Look for a column that tells them apart, or for wrong labels.",
    "QM306": "Where classes are rare, look at ROC-AUC, precision and recall instead.",
    "QM401": "Make the table as that of the fit, or fit again with rows like these.",
    "QM402": "Look at these columns: probabilities of such records are guesses.",
    "QM403": "qmedoid score --prevalence adjusts probabilities; qmedoid recalibrate fits them anew.",
    "QM404": "Look at novelty and class frequencies; choose the cut anew by --top or --alert-rate.",
    "QM405": "If the rows are in the order of time, fit with --time-column: the last rows are the test then.",
    "QM406": "Make sure that cells are missing for the same reasons when the model is used.",
    "QM407": "Name the column of the classes by --target, or add it to evaluate these rows.",
    "QM408": "Look why: the model fills them in as it learned to from other cells.",
    "QM409": "Leave repeated rows out, or fit with --group-column if they belong together.",
    "QM410": "Ask what these values mean; --missing reads them as missing cells in a fit.",
}
"""What to do about a finding, by its code."""


def named(names: Iterable[object]) -> str:
    """The first names of columns or classes."""
    return some_of([repr(name) for name in names], MOST_NAMED)


Evaluate = Callable[[ReportFacts], Verdict]
FINDINGS: dict[str, tuple[str, str, Evaluate]] = {}
"""By code: what a finding is called where it is found, what holds where it is not, and the function that decides."""


def finding(code: str, title: str, holds: str) -> Callable[[Evaluate], Evaluate]:
    """Register a function of the facts under a code."""

    def register(evaluate: Evaluate) -> Evaluate:
        FINDINGS[code] = title, holds, evaluate
        return evaluate

    return register


def check_codes(codes: Iterable[str]) -> None:
    """Refuse codes that no finding has."""
    for code in codes:
        if code not in FINDINGS:
            raise ParameterError(
                f"There is no finding {code!r}.{did_you_mean(code, FINDINGS)} There are {', '.join(sorted(FINDINGS))}."
            )


def evaluate_findings(facts: ReportFacts, ignore: Collection[str] = ()) -> list[ReportFindingDict]:
    """All findings, problems first; those of equal status by their code."""
    check_codes(ignore)
    found = list[ReportFindingDict]()
    for code in sorted(FINDINGS):
        title, holds, evaluate = FINDINGS[code]
        status, why, *do = evaluate(facts)
        if code in ignore:
            status, why = "ignored", "It was ignored, as requested (--ignore)."
        is_found = status in ("problem", "tip")
        advice = (do[0] if do else TO_DO[code]) if is_found else ""
        found.append({"code": code, "status": status, "title": title if is_found else holds, "why": why, "do": advice})
    return sorted(found, key=lambda one: (STATUSES.index(one["status"]), one["code"]))
