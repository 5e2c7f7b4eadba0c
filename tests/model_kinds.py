"""Small models of every kind, with tables to score: what an export must reproduce."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from few_trees import few_trees
from qmedoid import EvidenceClassifier, MedoidClassifier, NearestMedoidClassifier, RareEventClassifier, SavedModel
from qmedoid.geometry.scaling import Scaling
from qmedoid.kernels.nearest import cell_centers, cells_of
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.methods.evidence.part import Neighbors
from qmedoid.methods.neighbors.part import NeighborsPart, RowCells
from qmedoid.tables.arrow import plain_records


class Exported(NamedTuple):
    """A model and a table of n records, with their cells as plain values."""

    saved: SavedModel
    table: pa.Table

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows as JSON knows them."""
        return plain_records(self.table)


def _numbers(rng: np.random.Generator, n: int, n_classes: int = 2) -> tuple[dict[str, Any], Any]:
    X = rng.normal(size=(n, 4))
    X[:, 2] = np.round(X[:, 2], 1)
    score = np.column_stack([np.sin(k + X[:, 0]) + k * X[:, 1] * X[:, 2] / 2 for k in range(n_classes)])
    y = (score + rng.gumbel(size=score.shape) / 2).argmax(axis=1)
    return {name: X[:, place] * 10.0**place for place, name in enumerate(("first", "second", "third", "fourth"))}, y


def _mixed(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], Any]:
    """Categories with few and many levels, truth values, dates with and without a time, missing cells."""
    numbers, y = _numbers(rng, n)
    day = np.datetime64("2024-02-27") + rng.integers(0, 400, n)
    moment = np.datetime64("1969-12-30T22:15:07.25", "us") + (rng.integers(0, 10**14, n)).astype("m8[us]")
    kinds = np.array(["red", "blue's", 'say "x"', "ü — ñ", "1.50"])[(rng.integers(0, 4, n) + y) % 5]
    city = np.array([f"town {i:03d}" for i in range(60)])[rng.integers(0, 60, n)]
    absent = rng.random((4, n)) < 0.1
    numbers["third"] = [None if hole else float(x) for hole, x in zip(absent[0], numbers["third"], strict=True)]
    table = numbers | {
        "kind of": pa.array(kinds.tolist(), mask=absent[1]),
        "city": pa.array(city.tolist()),
        "flag": pa.array((rng.random(n) < 0.3 + 0.4 * y).tolist(), mask=absent[2]),
        "day": pa.array(day.astype("M8[D]"), pa.date32()),
        "moment": pa.array(moment, pa.timestamp("us"), mask=absent[3]),
    }
    return table, y


def _saved(estimator: Any, columns: dict[str, Any], y: Any) -> SavedModel:
    with few_trees():
        return SavedModel(estimator.fit(pa.table(columns), y).model_)


def _fitted(make: Callable[..., Any], estimator: Any, n: int, n_scored: int, **options: Any) -> Exported:
    rng = np.random.default_rng(5)
    saved = _saved(estimator, *make(rng, n, **options))
    return Exported(saved, pa.table(make(rng, n_scored, **options)[0]))


def _evidence(n: int) -> Exported:
    return _fitted(_numbers, EvidenceClassifier(random_state=0), 150, n)


def _more(n: int) -> Exported:
    return _fitted(_numbers, EvidenceClassifier(random_state=0), 200, n, n_classes=4)


def _with(found: Exported, *parts: Any, **sum_of: Any) -> Exported:
    """The same with other parts and weights."""
    return found._replace(saved=SavedModel(replace(found.saved.model, parts=parts, records=None, **sum_of)))


def _neighbor_term(n: int) -> Exported:
    """Evidence with a neighbor term of all training rows."""
    found, rng = _evidence(n), np.random.default_rng(8)
    rows = np.column_stack(list(_numbers(rng, 90)[0].values()))
    neighbors = Neighbors(rows, np.arange(90) % 2, np.arange(90), rng.normal(size=(90, 1)), 5, 0.7, True)
    return _with(found, replace(found.saved.model.parts[0], neighbors=neighbors))


def _sum(n: int, n_classes: int = 2) -> Exported:
    """Evidence, trees of comparisons, and neighbors that are looked for in cells."""
    found = _evidence(n) if n_classes == 2 else _more(n)
    rng, base = np.random.default_rng(9), found.saved.model.parts[0]
    columns, y = _numbers(rng, 400, n_classes)
    X = np.column_stack(list(columns.values()))
    trees = random_trees(X, n_classes)
    votes = np.eye(n_classes)[y] - rng.dirichlet(np.ones(n_classes), 400)
    plain = NeighborsPart(X, np.arange(400), y, votes, base.rank_scaling, np.array([1.0, 0.5, 0.0, 2.0]), 0.3, 7)
    centers = cell_centers(plain.points(X), rng)
    cells = RowCells(centers, cells_of(plain.points(X), centers))
    weights, biases = np.array([0.7, 0.4, 1.3]), rng.normal(size=n_classes)
    return _with(found, base, trees, replace(plain, cells=cells), weights=weights, biases=biases)


def random_trees(X: Any, n_classes: int) -> ComparisonsPart:
    """Trees of random comparisons between values of the rows, some of which end early."""
    rng, n_outputs = np.random.default_rng(1), 1 if n_classes == 2 else n_classes
    n_trees = 24
    columns = rng.integers(0, X.shape[1], (n_trees, 15))
    ends = rng.random((n_trees, 15)) < 0.15
    for node in range(1, 15):
        ends[:, node] |= ends[:, (node - 1) // 2]
    pairs = np.sort(
        np.array([[rng.choice(np.unique(X[:, f]), 2, replace=False) for f in of] for of in columns]), axis=2
    )
    values = rng.normal(size=(n_trees, 31)) / 4
    for node in range(15):
        for child in (2 * node + 1, 2 * node + 2):
            values[:, child] = np.where(ends[:, node], values[:, node], values[:, child])
    return ComparisonsPart(
        np.where(ends, -1, columns), np.arange(3), np.zeros(3, dtype=int), np.zeros((n_trees, 15), dtype=int),
        np.ones((n_trees, 15), dtype=int), pairs[..., 0], pairs[..., 1], values, np.arange(n_trees) % n_outputs,
        rng.normal(size=n_outputs), Scaling(X.mean(axis=0), X.std(axis=0)), n_classes,
    )  # fmt: skip


def _shifted(n: int) -> Exported:
    found = _evidence(n)
    return found._replace(saved=found.saved.prior_shift(0.2).at_operating_point(0.35))


def _biased(n: int) -> Exported:
    estimator = EvidenceClassifier(operating_point="macro_f1", random_state=0)
    return _fitted(_numbers, estimator, 220, n, n_classes=3)


def _categories(n: int) -> Exported:
    return _fitted(_mixed, MedoidClassifier(random_state=0), 310, n)


SENTINELS = {"third": -999.0, "kind of": "unknown", "moment": "1900-01-01T00:00:00"}
"""Cells of the mixed table that stand for missing ones, by column."""


def _with_sentinels(rng: np.random.Generator, n: int) -> tuple[dict[str, Any], Any]:
    """The mixed table with a value in place of every missing number, category and date."""
    columns, y = _mixed(rng, n)
    for name, value in SENTINELS.items():
        cells = pa.array(columns[name])
        columns[name] = cells.fill_null(pa.scalar(value).cast(cells.type))
    return columns, y


def _sentinels(n: int) -> Exported:
    missing = {name: [value] for name, value in SENTINELS.items()}
    return _fitted(_with_sentinels, MedoidClassifier(missing=missing, random_state=0), 310, n)


def _rare(n: int) -> Exported:
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(1500, 5)), np.zeros(1500, dtype=int)
    y[:30] = 1
    X[:30, :2] += 2.0
    names = [f"V{i}" for i in range(5)]
    saved = _saved(RareEventClassifier(random_state=0), dict(zip(names, X.T, strict=True)), y)
    scored = rng.normal(size=(n, 5)) * 1.5
    return Exported(saved, pa.table(dict(zip(names, scored.T, strict=True))))


def _nearest(n: int) -> Exported:
    return _fitted(_numbers, NearestMedoidClassifier(random_state=0), 150, n, n_classes=3)


MODEL_KINDS = {
    "evidence": _evidence,
    "more classes": _more,
    "neighbor term": _neighbor_term,
    "sum": _sum,
    "sum of more classes": partial(_sum, n_classes=4),
    "shifted priors and a cut": _shifted,
    "biases": _biased,
    "categories, dates and missing cells": _categories,
    "values that stand for missing cells": _sentinels,
    "rare events": _rare,
    "nearest medoid": _nearest,
}
"""By name, a function of the number of records to score."""


@cache
def exported(kind: str, n: int) -> Exported:
    """The model of a kind and n records; fitted once."""
    return MODEL_KINDS[kind](n)
