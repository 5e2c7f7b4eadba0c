"""Figures of the cells by table, size, method and split; the rows of ``cells.csv`` and back."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality.ours import OURS
from benchmarks.quality.protocol import SIZES
from benchmarks.quality.rivals import RIVALS
from benchmarks.quality.tables import LOOKED_AT
from qmedoid.arrays import Array

METHODS = (OURS, *RIVALS)
STRONG = ("CatBoost", "LightGBM")
"""The rivals that goals are set against."""
MEASURES = {
    "log_loss": "log-loss",
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "brier": "Brier score",
    "macro_f1": "macro-F1, likeliest class",
    "macro_f1_tuned": "macro-F1, tuned thresholds",
}
"""What is ranked, by the name of its column."""
SMALLER = ("log_loss", "brier")
"""Measures of which less is better."""
_WORDS = ("data", "source", "method", "setting")
_ALWAYS = ("data", "source", "rows", "columns", "classes", "size", "fit_rows", "seed", "method")
_FIGURES = (
    *("log_loss", "roc_auc", "pr_auc", "brier", "macro_f1", "macro_f1_tuned", "ece", "chance_ece", "cv_log_loss"),
    *("tune_s", "fit_s", "predict_s", "seconds", "medoids"),
)
Row = dict[str, Any]


class Place(NamedTuple):
    """A table at a size."""

    data: str
    size: int

    @property
    def group(self) -> str:
        """Whether other splits of the table were looked at while recipes were made."""
        return "looked at" if self.data in LOOKED_AT else "never seen"

    def __str__(self) -> str:
        return f"{self.data} ({self.size:,})"


@dataclass(frozen=True, eq=False)
class Figures:
    """Everything that was measured on the tables; `rows` has one for each cell."""

    rows: Sequence[Row]

    @cached_property
    def places(self) -> list[Place]:
        """Tables at their sizes, in the order of the sizes and then of the rows."""
        found = dict.fromkeys(Place(row["data"], row["size"]) for row in self.rows)
        return sorted(found, key=lambda place: place.size)

    @cached_property
    def methods(self) -> list[str]:
        """Methods in the order of the study, and changes of ours after them."""
        found = dict.fromkeys(row["method"] for row in self.rows)
        return [*(name for name in METHODS if name in found), *(name for name in found if name not in METHODS)]

    def about(self, place: Place) -> Row:
        """A row of a place, for what all its rows share."""
        return next(row for row in self.rows if (row["data"], row["size"]) == place)

    def of(self, place: Place, method: str) -> dict[int, Row]:
        """Rows of a method by seed."""
        return self._by_cell.get((place, method), {})

    def at(self, place: Place) -> list[str]:
        """Methods of the study that were run at a place."""
        return [name for name in METHODS if self.of(place, name)]

    def seeds(self, place: Place, methods: Iterable[str]) -> list[int]:
        """Splits on which all of some methods were run."""
        own = [set(self.of(place, method)) for method in methods]
        return sorted(set.intersection(*own)) if own else []

    def values(self, place: Place, methods: Sequence[str], figure: str) -> Array | None:
        """A figure of some methods on the splits that all of them were run on, shape (methods, splits), or None."""
        seeds = self.seeds(place, methods)
        found = [[self.of(place, method)[seed][figure] for seed in seeds] for method in methods]
        return np.array(found, dtype=np.float64) if seeds and not any(None in own for own in found) else None

    def mean(self, place: Place, method: str, figure: str) -> float | None:
        """The mean over a method's own splits, or None where it was not run."""
        values = self.values(place, [method], figure)
        return None if values is None else float(values.mean())

    @cached_property
    def _by_cell(self) -> dict[tuple[Place, str], dict[int, Row]]:
        found: dict[tuple[Place, str], dict[int, Row]] = {}
        for row in self.rows:
            found.setdefault((Place(row["data"], row["size"]), row["method"]), {})[row["seed"]] = row
        return found


def by_size(places: Iterable[Place]) -> dict[str, list[Place]]:
    """Places by what is averaged over.

    Up to 4,000 rows a table counts once, at the larger of its sizes; from 20,000 rows on it counts at every size.
    """
    places = list(places)
    largest = {place.data: place for place in sorted(places, key=lambda own: own.size) if place.size <= 4_000}
    found = {f"{size:,}": [place for place in places if place.size == size] for size in SIZES}
    found["≤ 4,000"] = [place for place in places if largest.get(place.data) == place]
    found["≥ 20,000"] = [place for place in places if place.size >= 20_000]
    return {name: members for name, members in found.items() if members}


def by_group(places: Iterable[Place]) -> dict[str, list[Place]]:
    """All places, and those of tables that were looked at and never seen, where there are both."""
    places = list(places)
    parts = {group: [place for place in places if place.group == group] for group in ("looked at", "never seen")}
    return ({"all": places} if places else {}) | (parts if all(parts.values()) else {})


def write_cells(path: Path, comment: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the cells with enough digits to make every table again."""
    names = (*_ALWAYS, *_FIGURES, "setting")
    with path.open("w", newline="") as file:
        file.write(f"# {comment}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_text(row.get(name)) for name in names] for row in rows)


def read_cells(path: Path) -> list[Row]:
    """The cells of a file that `write_cells` wrote."""
    with path.open(newline="") as file:
        next(file)
        return [{name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict):
        return json.dumps(value)
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _value(name: str, text: str) -> Any:
    if name in _WORDS:
        return text
    return int(text) if name in _ALWAYS else float(text) if text else None
