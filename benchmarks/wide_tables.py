"""Time, memory and held-out ROC-AUC of fits of tables with many columns, ours beside plain rivals.

Writes ``benchmarks/results/wide_tables.csv``. Cells are drawn from a normal distribution. Five columns and a product of
two others decide the class. LightGBM has the defaults of its package and one thread, the logistic regression (L2) those
of scikit-learn on standardized columns. Each fit has a process of its own, whose peak memory counts the interpreter,
the packages and the table. Seconds are core-seconds of the fit alone; wall seconds depend on what else is running.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier
from qmedoid.arrays import Array, Codes

SIZES = ((225, 2_000), (225, 20_000), (10, 100_000), (5_000, 2_000))
MODELS = ("ours", "LightGBM", "logistic regression")
MOST_CELLS = 20_000_000
"""Cells of the held-out rows at most; there are 2,000 rows where these are fewer."""


def made(n_rows: int, n_columns: int, seed: int) -> tuple[Array, Codes]:
    """Rows of a table, drawn with a seed of their own, and their classes."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    signal = 1.5 * X[:, :5].sum(axis=1) + X[:, 5] * X[:, 6] + rng.standard_normal(n_rows)
    return X, (signal > np.median(signal)).astype(np.intp)


def fresh(name: str) -> Any:
    """A classifier that is not fitted."""
    if name == "ours":
        return MedoidClassifier(random_state=0)
    if name == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def run(name: str, n_rows: int, n_columns: int) -> dict[str, object]:
    """Fit one classifier and measure it."""
    warnings.simplefilter("ignore")
    X, y = made(n_rows, n_columns, 0)
    core, wall = time.process_time(), time.perf_counter()
    model = fresh(name).fit(X, y)
    seconds, wall = time.process_time() - core, time.perf_counter() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    X_test, y_test = made(min(2_000, MOST_CELLS // n_columns), n_columns, 1)
    area = float(roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]))
    return {
        "rows": n_rows, "columns": n_columns, "model": name, "core seconds": round(seconds, 2),
        "wall seconds": round(wall, 1), "peak MB": round(peak), "held-out ROC-AUC": round(area, 3),
    }  # fmt: skip


def main() -> None:
    """Run every fit in a process of its own, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=3, metavar=("MODEL", "ROWS", "COLUMNS"), help="run one fit and print it")
    asked = parser.parse_args().one
    if asked is not None:
        print(json.dumps(run(asked[0], int(asked[1]), int(asked[2]))))
        return
    rows = []
    for n_rows, n_columns in SIZES:
        for name in MODELS:
            command = [sys.executable, __file__, "--one", name, str(n_rows), str(n_columns)]
            found = subprocess.run(command, check=True, capture_output=True, text=True)
            rows.append(json.loads(found.stdout.splitlines()[-1]))
            print(rows[-1], file=sys.stderr)
    write_table(
        RESULTS / "wide_tables.csv", "python benchmarks/wide_tables.py", rows,
        ("numpy", "scipy", "scikit-learn", "lightgbm"),
    )  # fmt: skip


if __name__ == "__main__":
    main()
