"""Expected precision, recall and alert rate against those of new rows, and whether their intervals hold.

Run as ``QMEDOID_DATA=... python benchmarks/expected_figures.py`` (some minutes). Every run fits a sample of a table,
and holds what the fit expects against rows that it has not seen. Equal rows are on one side: a row whose copy was
fitted is not new. The exception are rows that make up more than a hundredth of a table: such a place is part of what
the table is like, and both sides have their share of it. Each table is fitted as it is, and with every training row
twice, which must change nothing.

A figure is inside if its 95 % interval overlaps that of the new rows' own figure, and a run if all three are. Odd seeds
cut where macro-F1 was best on out-of-fold rows, even ones decide for the likelier class.

A table is added by a line of `TABLES`: a function that gives a data frame and its labels.
"""

import argparse
import json
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier
from qmedoid.geometry.row_groups import equal_rows, numbered
from qmedoid.metrics.intervals import share_interval

Raw = tuple[pd.DataFrame, npt.NDArray[Any]]
FIGURES = ("precision", "recall", "alert_rate")
SEEDS = 4
TRAINING_ROWS, NEW_ROWS = 1500, 20_000
FREQUENT = 0.01


def of_folder(name: str, positive: str | None = None) -> Raw:
    """A table of the folder; of more than two classes, one against all others."""
    folder = Path(os.environ["QMEDOID_DATA"])
    about = json.loads((folder / "MANIFEST.json").read_text())[name]
    file = folder / about["file"]
    table = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
    labels = table.pop(about["target"]).astype(str).to_numpy()
    return table, labels if positive is None else np.where(labels == positive, "yes", "no")


TABLES: dict[str, Callable[[], Raw]] = {
    "mammography": partial(of_folder, "mammography"),
    "spambase": partial(of_folder, "spambase"),
    "letter": partial(of_folder, "letter", "1"),
    "hypothyroid": partial(of_folder, "hypothyroid"),
    "page_blocks0": partial(of_folder, "page_blocks0"),
}


def row_groups(table: pd.DataFrame) -> npt.NDArray[np.intp]:
    """Group of every row: equal rows are one, but for those of a place where many are."""
    groups = equal_rows(np.column_stack([pd.factorize(table[name])[0] for name in table.columns]))
    frequent = np.bincount(groups)[groups] > FREQUENT * len(groups)
    return numbered(np.where(frequent, len(groups) + np.arange(len(groups)), groups))


def run(name: str, raw: Raw, groups: npt.NDArray[np.intp], copies: int, seed: int) -> list[dict[str, Any]]:
    """One fit: a line for each figure."""
    table, labels = raw
    order = np.random.default_rng(seed).permutation(groups.max() + 1)
    n_groups = round(min(TRAINING_ROWS, len(labels) / 2) * len(order) / len(labels))
    train, new = (np.flatnonzero(np.isin(groups, part)) for part in (order[:n_groups], order[n_groups:]))
    new = np.random.default_rng(seed).permutation(new)[:NEW_ROWS]
    rule = "macro_f1" if seed % 2 else None
    model = MedoidClassifier(operating_point=rule, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = np.tile(train, copies)
        model.fit(table.iloc[rows], labels[rows])
        alerts = model.predict(table.iloc[new]) == model.positive_
    positive, expected = labels[new] == model.positive_, model.expected_
    assert expected is not None
    counts = {
        "precision": (alerts & positive, alerts),
        "recall": (alerts & positive, positive),
        "alert_rate": (alerts, np.ones(len(new))),
    }
    share = len(np.unique(groups[new])) / len(new)
    lines = []
    for figure in FIGURES:
        ours, (hits, among) = getattr(expected, figure), counts[figure]
        theirs = share_interval(share * hits.sum(), share * among.sum())
        inside = ours.low <= theirs.high and theirs.low <= ours.high
        lines.append(
            {"table": name, "copies": copies, "seed": seed, "cut": rule or "likelier", "rows": len(rows),
             "draws_per_row": round(expected.draws_per_row, 4), "new_rows": len(new), "figure": figure,
             "expected": round(ours.value, 4), "low": round(ours.low, 4), "high": round(ours.high, 4),
             "new": round(theirs.value, 4), "inside": int(inside)}
        )  # fmt: skip
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES), help="Some of the tables.")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="How many samples of each.")
    asked = parser.parse_args()
    lines: list[dict[str, Any]] = []
    for name in asked.tables:
        raw = TABLES[name]()
        groups = row_groups(raw[0])
        for copies in (1, 2):
            found = [run(name, raw, groups, copies, seed) for seed in range(asked.seeds)]
            inside = sum(all(line["inside"] for line in one) for one in found)
            print(f"{name}, {copies} of each row: {inside} of {len(found)} runs inside", flush=True)
            lines += [line for one in found for line in one]
    runs = [lines[start : start + len(FIGURES)] for start in range(0, len(lines), len(FIGURES))]
    inside = sum(all(line["inside"] for line in one) for one in runs)
    figures = sum(line["inside"] for line in lines)
    print(f"{inside} of {len(runs)} runs, {figures} of {len(lines)} figures inside")
    if asked.tables == list(TABLES):
        write_table(RESULTS / "expected_figures.csv", "python benchmarks/expected_figures.py", lines)


if __name__ == "__main__":
    main()
