"""Expected figures against those of new rows, where new rows have new levels of a large category.

Run as ``QMEDOID_DATA=... python benchmarks/new_levels.py`` (two minutes). Five tables each get a category whose level
is what several of their columns hold together, such as ``"25/Private/Sales/40"``: of 2,000 rows that a model is
fitted on, most have a level that occurs once. Each table is fitted on eight samples. The expected figures (alert rate,
precision, recall: out-of-fold) are compared with up to 8,000 further rows, the errors of both samples counted.
``figures inside`` of the three are within 1.96 standard errors (95 % each); ``inside`` says whether all three are
within 2.39 (95 % together), and ``standard errors`` is the largest of the differences. ``new`` is the share of the
further rows with a new level, and ``estimated`` the share of the fitted rows that look as if they had one.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier
from qmedoid.metrics.intervals import share_change

MADE_OF = {
    "adult": ("age", "workclass", "occupation", "hours_per_week"),
    "bank_marketing": ("age", "job", "education", "month", "day_of_week"),
    "churn_mlc": ("state", "area code", "number customer service calls", "total intl calls"),
    "covertype": ("Elevation", "Slope"),
    "electricity": ("feat_1", "feat_2"),
}
DROPPED = {"adult": ("split",), "churn_mlc": ("phone number",)}
POSITIVE = {"covertype": "2"}
RUNS, FITTED, NEW = 8, 2000, 8000
ONE, ALL = 1.96, 2.394


def made(name: str, table: pa.Table, target: str) -> tuple[pa.Table, np.ndarray]:
    """The table with its large category, and the classes."""
    parts = [np.array(table[part].to_pylist(), dtype=object).astype(str) for part in MADE_OF[name]]
    levels = ["/".join(cells) for cells in zip(*parts, strict=True)]
    y = np.array(table[target].to_pylist()).astype(str)
    return table.drop_columns([target, *DROPPED.get(name, ())]).append_column("large", pa.array(levels)), y


def run(name: str, X: pa.Table, y: np.ndarray, seed: int) -> dict[str, object]:
    """Expected figures and those of new rows."""
    order = np.random.default_rng(seed).permutation(len(y))
    fitted, new = order[:FITTED], order[FITTED : FITTED + NEW]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of new levels
        model = MedoidClassifier(positive=POSITIVE.get(name), random_state=seed).fit(X.take(fitted), y[fitted])
        predicted = model.predict(X.take(new))
    expected = model.expected_.counts
    positive = model.model_.decision.classes[1]
    alert, hit = predicted == positive, y[new] == positive
    pairs = [
        ((alert.sum(), len(new)), (expected.tp + expected.fp, sum(expected))),
        (((alert & hit).sum(), alert.sum()), (expected.tp, expected.tp + expected.fp)),
        (((alert & hit).sum(), hit.sum()), (expected.tp, expected.tp + expected.fn)),
    ]
    differences = [share_change(*now, *before, width=ONE).standard_errors for now, before in pairs]
    levels = np.array(X["large"].to_pylist(), dtype=object)
    counts = dict(zip(*np.unique(levels[fitted].astype(str), return_counts=True), strict=True))
    return {
        "table": name,
        "seed": seed,
        "levels": len(counts),
        "estimated": float(np.mean([counts[level] == 1 for level in levels[fitted]])),
        "new": float(np.mean([level not in counts for level in levels[new]])),
        **{
            f"{figure} {when}": float(hits / max(n, 1))
            for figure, pair in zip(("alert rate", "precision", "recall"), pairs, strict=True)
            for when, (hits, n) in zip(("new", "expected"), pair, strict=True)
        },
        "standard errors": float(max(differences, key=abs)),
        "figures inside": int(np.sum(np.abs(differences) <= ONE)),
        "inside": bool(np.max(np.abs(differences)) <= ALL),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "new_levels.csv")
    asked = parser.parse_args()
    folder = Path(os.environ["QMEDOID_DATA"])
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    rows = []
    for name in MADE_OF:
        X, y = made(name, pq.read_table(folder / manifest[name]["file"]), manifest[name]["target"])
        rows += [run(name, X, y, seed) for seed in range(RUNS)]
    command = "python benchmarks/new_levels.py"
    write_table(asked.output, command, rows, ("numpy", "scikit-learn", "pyarrow"))
    print(f"{sum(int(row['figures inside']) for row in rows)} of {3 * len(rows)} figures inside,", end=" ")
    print(f"all three in {sum(bool(row['inside']) for row in rows)} of {len(rows)} runs")


if __name__ == "__main__":
    main()
