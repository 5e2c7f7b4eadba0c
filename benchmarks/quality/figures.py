"""Figures of the cells by set, method and split; the rows of ``cells.csv`` and back."""

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.quality.baselines import FAMILIES
from benchmarks.quality.tables import KEEL, TUNED

from qmedoid.arrays import Array

BEST = "best by CV"
"""On each split the baseline with the best macro-F1 of held-out fit rows: what a careful user would have taken."""
_WORDS = ("data", "source", "method", "setting")
_ALWAYS = ("data", "source", "rows", "columns", "classes", "seed", "method")
_FIGURES = (
    *("macro_f1", "roc_auc", "pr_auc", "ece", "chance_ece", "cv_macro_f1"),
    *("tune_s", "fit_s", "predict_s", "medoids"),
)
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Figures:
    """Everything that was measured on the tables.

    Attributes
    ----------
    rows : sequence of dict
        One for each cell.
    """

    rows: Sequence[Row]

    @cached_property
    def sets(self) -> list[str]:
        """Sets in the order of the rows."""
        return list(dict.fromkeys(row["data"] for row in self.rows))

    @cached_property
    def methods(self) -> list[str]:
        """Methods in the order of the rows."""
        return list(dict.fromkeys(row["method"] for row in self.rows))

    def values(self, data: str, method: str, figure: str = "macro_f1") -> Array | None:
        """A figure split by split, in the order of the seeds; None where some split of the set lacks it."""
        found = self._by_cell.get((data, method), {})
        seeds = self._seeds[data]
        if any(found.get(seed, {}).get(figure) is None for seed in seeds):
            return None
        return np.array([found[seed][figure] for seed in seeds], dtype=np.float64)

    def shared(self, data: str, first: str, second: str, figure: str = "macro_f1") -> tuple[Array, Array] | None:
        """A figure of two methods on the splits that both were run on, in the same order; None where there are none."""
        found = [self._by_cell.get((data, method), {}) for method in (first, second)]
        seeds = [seed for seed in self._seeds[data] if all(own.get(seed, {}).get(figure) is not None for own in found)]
        if not seeds:
            return None
        one, other = (np.array([own[seed][figure] for seed in seeds], dtype=np.float64) for own in found)
        return one, other

    def mean(self, data: str, method: str, figure: str = "macro_f1") -> float | None:
        """The mean over splits, or None."""
        values = self.values(data, method, figure)
        return None if values is None else float(values.mean())

    def about(self, data: str) -> Row:
        """A row of a set, for what all its rows share."""
        return next(row for row in self.rows if row["data"] == data)

    @cached_property
    def _by_cell(self) -> dict[tuple[str, str], dict[int, Row]]:
        found: dict[tuple[str, str], dict[int, Row]] = {}
        for row in self.rows:
            found.setdefault((row["data"], row["method"]), {})[row["seed"]] = row
        for data in self.sets:
            found[data, BEST] = {}
            for seed in self._seeds[data]:
                own = [found[data, name].get(seed) for name in FAMILIES if (data, name) in found]
                if own and all(own):
                    found[data, BEST][seed] = max(own, key=lambda row: row["cv_macro_f1"])  # type: ignore[index]
        return found

    @cached_property
    def _seeds(self) -> dict[str, list[int]]:
        return {data: sorted({row["seed"] for row in self.rows if row["data"] == data}) for data in self.sets}


def groups(sets: Iterable[str]) -> dict[str, list[str]]:
    """Sets by whether the recipe was looked for on other splits of theirs; the main ones are in all such studies."""
    sets = list(sets)
    extra = (*KEEL, "iris", "digits")
    found = {
        "tuned": [name for name in sets if name in TUNED],
        "never seen": [name for name in sets if name not in TUNED],
        "main": [name for name in sets if name not in extra],
        "all": sets,
    }
    return {name: members for name, members in found.items() if members}


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
