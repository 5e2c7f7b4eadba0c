"""Evidence and nearest prototypes: compiled kernels against their NumPy twins and what one would use instead.

Run as ``python benchmarks/speed_evidence.py``. With ``QMEDOID_DATA`` set, rows are those of ``creditcard.parquet`` in
that folder; otherwise random numbers of the same shape. ``--rows`` takes fewer of them.

The evidence model has the size of the compact recipe: two medoids for each standardized column, eight for each
column scaled by rank, 16 for each of 16 pairs and 10 triples of columns with both channels, and 32 over all
columns. Its weights are random, which changes nothing about its speed. Its rivals are LightGBM models of 100 and 400
trees with 31 leaves. Nearest prototypes are the 8 nearest of 4,400, as often as rare events need them, three times
for each row; the rivals are scikit-learn's. Rates are of wall time with two threads, ratios of core-seconds with one.
"""

import argparse
import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from _timing import RESULTS, Timing, core_seconds, write_table
from qmedoid.geometry.scaling import fit_standard
from qmedoid.kernels import backend, evidence, nearest
from qmedoid.methods.evidence.design import EvidenceSettings, fit_rank_scaling
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.evidence.part import Neighbors

Array = npt.NDArray[np.float64]

N_ROWS, N_COLUMNS = 284_807, 29
N_MEDOIDS, N_PROTOTYPES, N_NEAREST, N_METRICS = 64, 4400, 8, 3
N_KNOWN = 4000
SQUARE, DISTANCE, NEAR = 0, 1, 2
THREADS = 2
# Rows that the slow ones are given, so that a run takes minutes.
TWIN_ROWS, RIVAL_ROWS = 20_000, 4_000


def load_table(n_rows: int) -> tuple[Array, str]:
    """Rows, and where they come from."""
    folder = os.environ.get("QMEDOID_DATA")
    rng = np.random.default_rng(0)
    if folder is None:
        return rng.standard_normal((n_rows, N_COLUMNS)), "random (QMEDOID_DATA is unset)"
    import pyarrow.parquet as pq

    table = pq.read_table(Path(folder) / "creditcard.parquet")
    columns = [table[name].to_numpy() for name in table.column_names if name not in ("Class", "Time")]
    X = np.column_stack(columns).astype(np.float64)
    return np.ascontiguousarray(X[rng.permutation(len(X))[:n_rows]]), "credit card"


def compact_plan(X: Array, n_classes: int) -> tuple[evidence.EvidencePlan, int]:
    """A model of the size of the compact recipe, and its number of terms."""
    rng = np.random.default_rng(1)
    n_columns = X.shape[1]
    groups: list[evidence.Group] = []
    terms: list[tuple[int, int, int, float]] = []

    def add(columns: list[int], by_rank: bool, medoids: Any, channels: dict[int, float]) -> None:
        groups.append(evidence.Group(columns, np.ones(len(columns)), by_rank))
        terms.extend((len(groups) - 1, int(m), code, length) for m in medoids for code, length in channels.items())

    for column in range(n_columns):
        add([column], False, (0, 1), {SQUARE: 1.0})
        add([column], True, rng.choice(N_MEDOIDS, 8, replace=False), {DISTANCE: 1.0})
    for size in [2] * 16 + [3] * 10:
        columns = rng.choice(n_columns, size, replace=False).tolist()
        add(columns, True, rng.choice(N_MEDOIDS, 16, replace=False), {DISTANCE: 1.0, NEAR: 1.0 / 3.0})
    add(list(range(n_columns)), True, range(32), {NEAR: 5.0})
    group, medoid, channel, length = (np.array(part) for part in zip(*terms, strict=True))
    sample = X[rng.choice(len(X), 4000)]
    ranks, linear = fit_rank_scaling(sample), fit_standard(sample)
    n_outputs = 1 if n_classes == 2 else n_classes
    plan = evidence.make_plan(
        rank_offsets=ranks.offsets,
        rank_values=ranks.values,
        rank_scores=ranks.scores,
        center=linear.center,
        scale=linear.scale,
        clip=8.0,
        largest=1e150,
        medoids=sample[:N_MEDOIDS],
        medoid_classes=np.arange(N_MEDOIDS) % n_classes,
        n_classes=n_classes,
        column_weights=np.ones(n_columns),
        groups=groups,
        term_group=group,
        term_medoid=medoid,
        term_channel=channel,
        term_length=length,
        term_center=np.zeros(len(terms)),
        weights=rng.normal(size=(len(terms), n_outputs)),
        intercepts=np.zeros(n_outputs),
    )
    return plan, len(terms)


class Report:
    """Rows of the table, each with its ratio to the compiled kernel of the same work."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def add(self, task: str, n: int, one: Timing, two: Timing | None, ours: float | None = None) -> float:
        """Note what n rows took on one thread and on two; returns the core-seconds of a row."""
        each = one.core / n
        self.rows.append(
            {
                "task": task,
                "rows": n,
                "core us a row, 1 thread": 1e6 * each,
                f"rows/s, {THREADS} threads": "" if two is None else n / two.wall,
                "ours is faster by (core)": "" if ours is None else each / ours,
            }
        )
        return each


def both(fn: Callable[[int], Any], repeats: int) -> tuple[Timing, Timing]:
    """Timings on one thread and on two."""
    fn(1)
    return core_seconds(lambda: fn(1), repeats), core_seconds(lambda: fn(THREADS), repeats)


def time_neighbors(report: Report, X: Array, repeats: int) -> None:
    """A fitted model, with and without a neighbor term over the nearest four of the kept rows."""
    from sklearn.neighbors import KNeighborsClassifier

    rng = np.random.default_rng(2)
    known = X[rng.choice(len(X), N_KNOWN)]
    codes = (known[:, 0] + rng.normal(size=N_KNOWN) > 0).astype(np.intp)
    plain = fit_evidence(known, codes, 2, EvidenceSettings(n_neighbors=0), 0).model
    records = Neighbors(known, codes, np.arange(N_KNOWN), rng.normal(size=(N_KNOWN, 1)), 4, 1.0, True)
    model = replace(plain, neighbors=records)
    times = both(lambda t: model.score(X, threads=t).scores, repeats)
    ours = report.add(f"evidence, a fitted model with {N_KNOWN} known records, rows", len(X), *times)
    times = both(lambda t: plain.score(X, threads=t).scores, repeats)
    report.add("the same model without known records, rows", len(X), *times, ours)
    rival = KNeighborsClassifier(4, weights="distance").fit(plain.rank_scaling.apply(known), codes)
    part = X[:RIVAL_ROWS]
    times = both(lambda _: rival.predict_proba(plain.rank_scaling.apply(part)), repeats)
    report.add(f"scikit-learn KNeighborsClassifier, {N_KNOWN} rows", len(part), times[0], None, ours)


def time_evidence(report: Report, X: Array, repeats: int) -> None:
    columns = [np.ascontiguousarray(column) for column in X.T]
    for n_classes in (2, 3):
        plan, n_terms = compact_plan(X, n_classes)
        what = f"evidence, {n_terms} terms, {n_classes} classes"
        times = both(lambda t, p=plan: evidence.measure(columns, p, channels=False, threads=t), repeats)
        ours = report.add(f"{what}: outputs and nearest medoids, columns", len(X), *times)
        times = both(lambda t, p=plan: evidence.measure(X, p, channels=False, threads=t), repeats)
        report.add(f"{what}: outputs and nearest medoids, rows", len(X), *times, ours)
        times = both(lambda t, p=plan: evidence.measure(columns, p, threads=t), repeats)
        report.add(f"{what}: also distances and angles, columns", len(X), *times, ours)
        part = X[:TWIN_ROWS]
        with mock.patch.object(backend, "compiled", return_value=None):
            times = both(lambda t, p=plan, x=part: evidence.measure(x, p, channels=False, threads=t), 3)
        report.add(f"{what}: NumPy twin, rows", len(part), *times, ours)
        time_lightgbm(report, X, n_classes, ours, repeats)


def time_lightgbm(report: Report, X: Array, n_classes: int, ours: float, repeats: int) -> None:
    import lightgbm

    rng = np.random.default_rng(2)
    train = X[rng.choice(len(X), 4000)]
    directions = rng.normal(size=(X.shape[1], n_classes))
    y = np.argmax(np.tanh(train) @ directions + rng.normal(size=(len(train), n_classes)), axis=1)
    for n_trees in (100, 400):
        model = lightgbm.LGBMClassifier(n_estimators=n_trees, num_leaves=31, verbose=-1, n_jobs=1).fit(train, y)
        times = both(lambda t, b=model.booster_: b.predict(X, num_threads=t), repeats)
        report.add(f"LightGBM predict, {n_trees} trees, {n_classes} classes, rows", len(X), *times, ours)


def time_nearest(report: Report, X: Array, repeats: int) -> None:
    from sklearn.neighbors import NearestNeighbors

    rng = np.random.default_rng(3)
    scaled = fit_standard(X).apply(X)
    logs = np.ascontiguousarray(np.sign(scaled) * np.log1p(np.abs(scaled)))
    roots = rng.uniform(0.2, 1.0, size=(N_METRICS, X.shape[1]))
    prototypes = logs[rng.choice(len(X), N_PROTOTYPES, replace=len(X) < N_PROTOTYPES)]

    def search(rows: Array, threads: int) -> None:
        for root in roots:
            nearest.nearest_squared(rows * root, prototypes * root, k=N_NEAREST, threads=threads)

    what = f"{N_NEAREST} nearest of {N_PROTOTYPES} in {N_METRICS} metrics"
    ours = report.add(what, len(X), *both(lambda t: search(logs, t), repeats))
    part = logs[:RIVAL_ROWS]
    with mock.patch.object(backend, "compiled", return_value=None):
        report.add(f"{what}: NumPy twin", len(part), *both(lambda t: search(part, t), 3), ours)
    for algorithm in ("brute", "kd_tree"):
        fitted = [NearestNeighbors(n_neighbors=N_NEAREST, algorithm=algorithm).fit(prototypes * r) for r in roots]

        def neighbors(threads: int, fitted: list[Any] = fitted) -> None:
            for model, root in zip(fitted, roots, strict=True):
                model.set_params(n_jobs=threads).kneighbors(part * root)

        report.add(f"{what}: scikit-learn kneighbors, {algorithm}", len(part), *both(neighbors, 3), ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=N_ROWS, help="rows to score, at least 4,400")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--output", type=Path, default=RESULTS / "speed_evidence.csv")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    X, source = load_table(arguments.rows)
    print(f"{source}: {X.shape[0]:,} rows, {X.shape[1]} columns")
    report = Report()
    time_evidence(report, X, arguments.repeats)
    time_neighbors(report, X, arguments.repeats)
    time_nearest(report, X, max(1, arguments.repeats // 2))
    command = f"python benchmarks/speed_evidence.py ({source})"
    write_table(arguments.output, command, report.rows, ("numpy", "scipy", "scikit-learn", "lightgbm"))


if __name__ == "__main__":
    main()
