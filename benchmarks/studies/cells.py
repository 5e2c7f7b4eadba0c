"""What a cell is and what it starts from: data sets by name, splits of their rows, and metrics of scores.

``QMEDOID_DATA=<folder with creditcard.parquet> python -m benchmarks.studies.cells`` draws and writes the sample of the
credit-card frauds that ships with the package again.
"""

import contextlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.datasets import (
    Dataset,
    load_creditcard,
    load_creditcard_sample,
    load_dataset,
    load_heart,
    numbers_digest,
)
from qmedoid.arrays import Array, Codes, Flags
from qmedoid.datasets import (
    FILE,
    HOW_TO_GET,
    TARGET,
    TIME,
    cache_folder,
    check_whole,
    read_whole,
    shipped_path,
    table_of,
)
from qmedoid.exceptions import DataError, QMedoidWarning
from qmedoid.metrics.classification import confusion_matrix, pr_auc, roc_auc
from qmedoid.metrics.thresholds import all_cuts, chosen_threshold, counts_at

SplitKind = Literal["random", "time", "grouped"]
CODE = 1
"""Number of the splits and metrics that all cells share: a change of their figures takes the next one."""
TEST_SHARE = 0.25
"""Share of the test rows, and of the validation rows among the others."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that multiplying by it modulo 2⁶⁴ loses nothing; its bits are those of the golden ratio."""


Result = dict[str, Any]
"""Plain numbers, strings, lists and dictionaries: what JSON can hold."""


@dataclass(frozen=True, order=True)
class Cell:
    """One fit and its metrics: a method on the split of a kind and seed, which is the seed of the method, too.

    `part` is the part of a study, with methods and a protocol for all its data sets.
    """

    part: str
    data: str
    split: SplitKind
    seed: int
    method: str

    def __str__(self) -> str:
        return f"{self.data}, {self.method}, {self.split} split {self.seed}"


@dataclass(frozen=True)
class StudyMethod:
    """How a method is fitted on the kinds of splits that it is for, and its rough time on one core.

    `run` (data, cell, **settings) is a function of a module, so that other processes find it, and its settings are what
    JSON can hold. The key has the settings and the number ``CODE`` of the module: plain classifiers are run by modules
    of their own, and keep their results while ours change.
    """

    run: Callable[..., Result]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 1.0
    splits: tuple[SplitKind, ...] = ("random",)


class Split(NamedTuple):
    """Row numbers of the three parts of a table."""

    train: Codes
    val: Codes
    test: Codes

    @property
    def fit(self) -> Codes:
        """Training and validation rows together, for methods that need no validation split."""
        return np.concatenate([self.train, self.val])


def split_of(data: Dataset, kind: SplitKind, seed: int) -> Split:
    """A split of a kind."""
    if kind == "time":
        if data.times is None:
            raise DataError(f"The data set {data.name!r} has no times to split it by.")
        return time_split(data.times)
    return grouped_split(data.X, data.y, seed) if kind == "grouped" else paper_split(data.y, seed)


def hold_out(y: npt.NDArray[Any], seed: int) -> tuple[Codes, Codes]:
    """Row numbers of a stratified split into rows to fit on and test rows."""
    from sklearn.model_selection import train_test_split  # a process that loads results alone need not wait for it

    rest, test = train_test_split(np.arange(len(y)), test_size=TEST_SHARE, stratify=y, random_state=seed)
    return rest, test


def paper_split(y: npt.NDArray[Any], seed: int) -> Split:
    """A stratified split for one seed."""
    rest, test = hold_out(y, seed)
    train, val = hold_out(y[rest], seed)
    return Split(rest[train], rest[val], test)


def time_split(times: npt.ArrayLike) -> Split:
    """The latest rows for the test, the latest of the rest for validation: what a model meets once it is in use.

    The parts are as large as those of `paper_split`, and in the order of time; rows of one time stay in the order of
    the table.
    """
    seconds = np.asarray(times, dtype=np.float64)
    if seconds.ndim != 1 or len(seconds) < 3 or not np.isfinite(seconds).all():
        raise DataError(
            f"A split by time needs one finite time per row, of three rows or more. Got an array of shape "
            f"{seconds.shape} with {np.count_nonzero(~np.isfinite(seconds)):,} values that are not finite."
        )
    order = np.argsort(seconds, kind="stable")
    n_rest = len(order) - ceil(TEST_SHARE * len(order))
    n_train = n_rest - ceil(TEST_SHARE * n_rest)
    return Split(order[:n_train], order[n_train:n_rest], order[n_rest:])


def grouped_split(X: npt.ArrayLike, y: npt.NDArray[Any], seed: int) -> Split:
    """A stratified split in which equal rows are always in one part, so that no test row was seen in training.

    Within a class the groups of equal rows are put in random order and cut where their rows reach the shares of
    `paper_split`: a cut is off by at most half of the group it falls on, and without equal rows the sizes are the
    same. A group with labels of several classes counts to the rarest of them. The rows of a part are in the order of
    the table, and which rows they are does not depend on that order.
    """
    groups = duplicate_groups(X)
    if len(groups) != len(y):
        raise DataError(f"A split needs a label for each row. Got {len(groups):,} rows and {len(y):,} labels.")
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    rarity = np.argsort(np.argsort(-counts, kind="stable"))  # 0 for the most frequent class
    classes = np.zeros(groups.max() + 1, dtype=np.intp)
    np.maximum.at(classes, groups, rarity[codes])
    sizes = np.bincount(groups)
    shares = [np.bincount(classes[groups[rows]], minlength=len(counts)) for rows in paper_split(classes[groups], seed)]
    generator = np.random.default_rng(seed)
    part_of = np.empty(len(sizes), dtype=np.intp)
    for code in range(len(counts)):
        order = generator.permutation(np.flatnonzero(classes == code))
        middles = np.cumsum(sizes[order]) - sizes[order] / 2
        cuts = np.cumsum([share[code] for share in shares[:2]])
        part_of[order] = np.searchsorted(cuts, middles, side="right")
    parts = part_of[groups]
    return Split(*(np.flatnonzero(parts == part) for part in range(3)))


def duplicate_groups(X: npt.ArrayLike) -> Codes:
    """Numbers 0, 1, … such that rows have the same number if and only if all their columns are equal.

    Zeros are equal whatever their sign, and so are missing values. A row's number depends on what is in the table, not
    on the order of its rows.
    """
    values = np.ascontiguousarray(X, dtype=np.float64) + 0.0  # −0 + 0 is 0
    if values.ndim != 2 or values.size == 0:
        raise DataError(f"Equal rows are looked for in a table of numbers that is not empty. Got shape {values.shape}.")
    values[np.isnan(values)] = np.nan  # one pattern of bits for all of them
    bits = values.view(np.uint64)
    _, first, groups = np.unique(_mixed(bits), return_index=True, return_inverse=True)
    if not np.array_equal(bits, bits[first[groups]]):  # two rows of one hash: compare the rows themselves
        whole = bits.view(np.dtype((np.void, bits.shape[1] * bits.itemsize))).ravel()
        _, groups = np.unique(whole, return_inverse=True)
    return groups.astype(np.intp, copy=False)


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """A hash of every row: round numbers differ in their high bits alone, which the shift brings to the low ones."""
    hashes = np.full(len(bits), _ODD)
    for column in bits.T:
        hashes ^= column
        hashes *= _ODD
        hashes ^= hashes >> np.uint64(32)
    return hashes


HEART_ORDINAL = "heart-ordinal"
"""The heart data with categories numbered in alphabetical order: one reading of what the paper leaves open."""
FULL_FRAUD, FRAUD_SAMPLE = "creditcard", "creditcard-sample"
ONE_IN, SEED = 20, 0
"""One in 20 normal rows is kept in the sample, and every fraud."""


def cell_folder() -> Path:
    """Folder of the results of all studies by default."""
    return cache_folder() / "cells"


@cache
def load_data(name: str) -> Dataset:
    """The data set of a cell, read and checked once in a process."""
    others = {HEART_ORDINAL: load_numbered_heart, FULL_FRAUD: load_creditcard, FRAUD_SAMPLE: load_creditcard_sample}
    return others[name]() if name in others else load_dataset(name)


def load_numbered_heart() -> Dataset:
    """Heart disease with the categories of a column numbered in alphabetical order."""
    table = table_of("heart")
    names = table.column_names[:-1]
    columns = (np.array(table[name].to_pylist()) for name in names)
    numbers = [np.unique(one, return_inverse=True)[1] if one.dtype.kind == "U" else one for one in columns]
    return replace(load_heart(), X=np.column_stack(numbers).astype(np.float64), feature_names=tuple(names))


@cache
def data_digest(name: str) -> str:
    """`digest` of the data set of a cell."""
    return digest(load_data(name))


def digest(data: Dataset) -> str:
    """SHA-256 of all that a result can depend on: numbers, labels, times, and the names of columns and classes."""
    times = None if data.times is None else numbers_digest(data.times[:, None], np.empty(0, dtype=np.intp))
    parts = [numbers_digest(data.X, data.y), times, data.feature_names, data.class_names]
    return sha256(json.dumps(parts).encode()).hexdigest()


def draw_sample(table: pa.Table) -> pa.Table:
    """All frauds and a random part of the normal rows of the whole table, in its order.

    Seconds become 32-bit integers, the class an 8-bit one, all else 32-bit floats.
    """
    check_whole(table, "the table to draw from")
    labels = table[TARGET].to_numpy()
    frauds, normal = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    kept = np.random.default_rng(SEED).choice(normal, len(normal) // ONE_IN, replace=False)
    part = table.take(np.sort(np.concatenate([frauds, kept])))
    types = {TIME: np.int32, TARGET: np.int8}
    return pa.table({name: part[name].to_numpy().astype(types.get(name, np.float32)) for name in part.column_names})


def write_sample(sample: pa.Table, path: Path) -> None:
    """Write as Parquet, small: equal bytes of numbers are stored together, as those of exponents repeat."""
    numbers = [field.name for field in sample.schema if field.type == pa.float32()]
    pq.write_table(
        sample, path, compression="zstd", compression_level=19, use_dictionary=False, use_byte_stream_split=numbers
    )


def main() -> None:
    """Draw the sample from the table in the folder ``QMEDOID_DATA`` and write it where the package keeps it."""
    source = Path(os.environ.get("QMEDOID_DATA", "")) / "creditcard.parquet"
    if not source.is_file():
        raise SystemExit(f"There is no file {source}. {HOW_TO_GET}.")
    path = shipped_path(FILE)
    write_sample(draw_sample(read_whole(source)), path)
    print(f"{path} is written; its SHA-256, which belongs in SHIPPED, is")
    print(sha256(path.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()


RATES = tuple(i / 100 for i in range(101))
"""False positive rates of a ROC curve, and recalls of a PR curve."""
BUDGETS = tuple(float(f"{10 ** (-4 + i / 20):.6g}") for i in range(81))
"""Alert rates, 0.01 % to 100 %, at which recall is kept."""
PAPER_ALERT_RATE = 0.0131
"""Alert rate of the paper's model on the frauds; the baselines are cut to match it."""
CHOICES: dict[str, Callable[[Flags, Array], float]] = {
    "alert rate 1.31 %": partial(chosen_threshold, "alert_rate", PAPER_ALERT_RATE),
    "precision at least 0.5": partial(chosen_threshold, "min_precision", 0.5),
    "recall at least 0.8": partial(chosen_threshold, "min_recall", 0.8),
    "a missed fraud costs 100 false alerts": partial(chosen_threshold, "cost", 100.0),
    "best F1": lambda positive, scores: all_cuts(positive, scores).best("f1"),
    "best F2": lambda positive, scores: all_cuts(positive, scores).best("f2"),
}
"""How thresholds are chosen on validation rows."""
MATCHED, FIXED = "alert rate 1.31 %", "fixed"


def scores_of(model: Any, X: Array) -> Array:
    """Scores of a fitted classifier: of class 1 where there are two, else one per class."""
    scores = model.decision_function if hasattr(model, "decision_function") else model.predict_proba
    values = np.asarray(scores(X), dtype=np.float64)
    return values[:, 1] if values.ndim == 2 and values.shape[1] == 2 else values


def classifier_metrics(model: Any, data: Dataset, rows: Codes) -> dict[str, Any]:
    """`class_metrics` of a fitted classifier on some rows."""
    classes, codes = np.unique(data.y, return_inverse=True)
    decisions = np.searchsorted(classes, model.predict(data.X[rows]))
    return class_metrics(codes[rows], decisions, scores_of(model, data.X[rows]))


def class_metrics(codes: Codes, decisions: Codes, scores: Array) -> dict[str, Any]:
    """Confusion matrix, areas and, for two classes, curves.

    Scores have shape (n,), larger where class 1 is likelier, or (n, C). Areas of more than two classes are means of one
    class against all others.
    """
    n_classes = 2 if scores.ndim == 1 else scores.shape[1]
    found: dict[str, Any] = {"confusion": confusion_matrix(codes, decisions, n_classes).astype(int).tolist()}
    if scores.ndim == 1:
        return found | areas(codes == 1, scores) | {"curves": curves(codes == 1, scores)}
    by_class = [areas(codes == code, scores[:, code]) for code in range(n_classes)]
    return found | {name: float(np.mean([one[name] for one in by_class])) for name in by_class[0]}


def areas(positive: Flags, scores: Array) -> dict[str, float]:
    """Areas under the ROC and the precision-recall curve."""
    return {"roc_auc": roc_auc(positive, scores), "pr_auc": pr_auc(positive, scores)}


def curves(positive: Flags, scores: Array) -> dict[str, list[float]]:
    """Recall by false positive rate, precision by recall, and recall by alert rate, on grids that all cells share.

    Between thresholds the first and the last are straight lines, as of a random choice among equal scores; precision
    is the best of all thresholds with at least this recall.
    """
    alerts, hits = _ranked(positive, scores)
    recall, false = hits / hits[-1], (alerts - hits) / (alerts[-1] - hits[-1])
    precision = hits[1:] / alerts[1:]
    best_from = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.minimum(np.searchsorted(recall[1:], np.array(RATES) - 1e-12), len(precision) - 1)
    found = {
        "roc": np.interp(RATES, false, recall),
        "pr": best_from[at],
        "recall_by_rate": np.interp(BUDGETS, alerts / alerts[-1], recall),
    }
    return {name: np.round(values, 6).tolist() for name, values in found.items()}


def recall_at(positive: Flags, scores: Array, alerts: int) -> float:
    """Recall where the rows with the highest scores are alerts; rows that tie at the cut count in proportion."""
    numbers, hits = _ranked(positive, scores)
    return float(np.interp(alerts, numbers, hits) / hits[-1])


def _ranked(positive: Flags, scores: Array) -> tuple[Array, Array]:
    """Numbers of alerts and of positives among them at every cut, the highest threshold first."""
    counts = all_cuts(positive, scores).counts
    return (counts["tp"] + counts["fp"])[::-1], counts["tp"][::-1]


def fraud_metrics(data: Dataset, split: Split, scores: Array, fixed: float, fitted_on: Codes) -> dict[str, Any]:
    """Counts at every operating point, areas and curves, on all rows, as in the paper, and on each part of them.

    `scores` are of all rows, larger where a fraud is likelier: log-odds or margins where a method has them, because
    probabilities near 1 are equal to the last digit. `fixed` is the usual threshold.
    """
    positive = data.y == 1
    thresholds = {FIXED: fixed}
    for name, choose in CHOICES.items():
        with warnings.catch_warnings(), contextlib.suppress(QMedoidWarning):
            warnings.simplefilter("error", QMedoidWarning)  # a floor that no threshold reaches
            thresholds[name] = choose(positive[split.val], scores[split.val])
    parts = {"all": np.arange(len(data.y)), "train": fitted_on, "val": split.val, "test": split.test}
    found: dict[str, Any] = {"thresholds": thresholds}
    for part, rows in parts.items():
        found_at = {name: counts_at(positive[rows], scores[rows], cut) for name, cut in thresholds.items()}
        counts = {name: [one[kind] for kind in ("tp", "fp", "fn", "tn")] for name, one in found_at.items()}
        found[part] = areas(positive[rows], scores[rows]) | {"rows": len(rows), "counts": counts}
        if part in ("all", "test"):
            found[part]["curves"] = curves(positive[rows], scores[rows])
    return found
