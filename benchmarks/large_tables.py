"""Fits of large tables: seconds, peak memory and figures on fresh rows, ours by number of rows and LightGBM beside.

``QMEDOID_DATA=... PYTHONPATH=. python benchmarks/large_tables.py DIR [RUN ...]`` writes
``benchmarks/results/large_tables.csv`` and, for the run ``score``, ``large_scoring.csv``. DIR has the tables that
`benchmarks.large_data` makes::

    python -m benchmarks.large_data --rows 100_000_000 --out DIR/train
    python -m benchmarks.large_data --rows 2_000_000 --seed 1 --out DIR/fresh
    python -m benchmarks.large_data --rows 2_000_000 --seed 2 --from held-out --out DIR/fresh_held_out

``fresh`` is of the distribution of the training rows; ``fresh_held_out`` is made from card rows that no training row
was made from. Runs of up to 5 million rows read the first files only, which are equal in distribution to all. Ours
holds out a quarter of its rows, as it does by default. LightGBM has all of them, a tenth for early stopping. Every fit
has a process of its own, whose peak counts the interpreter, the packages, the table and child processes; ours is
stopped beyond MOST_MB, and has no figures then. Where runs are named, their rows alone are measured, and replace those
of the file.
"""

import argparse
import csv
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from _peaks import TooLargeError, measured
from _timing import RESULTS, write_table

MOST_MB = 16_000
"""Memory of a fit at most, so that the machine has some left."""
FRESH = ("fresh", "fresh_held_out")
TARGET = "Class"


class Fit(NamedTuple):
    """Files that are read, the rows that are used at most, and what else the command is given."""

    files: str
    rows: int
    options: tuple[str, ...] = ()


FITS = {
    "200k": Fit("part-00000.parquet", 200_000),
    "1M": Fit("part-00000.parquet", 1_000_000),
    "2M": Fit("part-0000[01].parquet", 2_000_000),
    "5M": Fit("part-0000[0-4].parquet", 5_000_000),
    "5M of all": Fit("*.parquet", 5_000_000),
}
LIGHTGBM = {"LightGBM 200k": FITS["200k"], "LightGBM 1M": FITS["1M"], "LightGBM 5M": FITS["5M"]}
SCORED_BY = "1M"


def fit_row(folder: Path, name: str, fit: Fit) -> dict[str, object]:
    """Fit a model with the command, and judge it on both fresh tables."""
    model = folder / f"{name.replace(' ', '_')}.qmedoid"
    asked = ["--target", TARGET, "--max-rows", str(fit.rows), "--json", "-o", str(model), *fit.options]
    try:
        run = measured([sys.executable, "-m", "qmedoid", "fit", str(folder / "train" / fit.files), *asked], MOST_MB)
    except TooLargeError:
        empty = [column for table in FRESH for column in figures(table, 0.0, 0.0, 0.0, 0.0)]
        return {
            "run": name, "method": "stopped", "rows read": fit.rows, "rows fitted": "", "wall s": "", "core s": "",
            "peak MB": f"> {MOST_MB}", **dict.fromkeys(empty, ""),
        }  # fmt: skip
    document = json.loads(run.output)
    found: dict[str, object] = {
        "run": name, "method": document["method"], "rows read": fit.rows, "rows fitted": document["training_rows"],
        "wall s": round(run.wall), "core s": round(run.core), "peak MB": round(run.peak),
    }  # fmt: skip
    for table in FRESH:
        found |= judged(model, folder, table)
    return found


def judged(model: Path, folder: Path, table: str) -> dict[str, object]:
    """Figures of a saved model on one fresh table."""
    asked = ["--budgets", "1%", "--json"]
    run = measured([sys.executable, "-m", "qmedoid", "evaluate", str(model), str(folder / table), *asked])
    document = json.loads(run.output)
    recall = document["budgets"][0]["recall"]
    return figures(table, document["pr_auc"], document["roc_auc"], document["log_loss"], recall)


def figures(table: str, pr_auc: float, roc_auc: float, log_loss: float, recall: float) -> dict[str, object]:
    """The columns of one fresh table."""
    return {
        f"{table} PR-AUC": f"{pr_auc:.4f}", f"{table} ROC-AUC": f"{roc_auc:.4f}",
        f"{table} log-loss": f"{log_loss:.5f}", f"{table} recall at 1 % alerts": f"{recall:.4f}",
    }  # fmt: skip


def read_files(folder: Path, pattern: str, n_rows: int | None = None) -> tuple[Any, Any]:
    """Cells as float32, shape ``(n, d)``, and labels of files, held once; the first rows if there are more."""
    paths = sorted(folder.glob(pattern))
    n = min(sum(pq.read_metadata(path).num_rows for path in paths), n_rows or sys.maxsize)
    names = [name for name in pq.read_schema(paths[0]).names if name != TARGET]
    X, y, start = np.empty((n, len(names)), dtype=np.float32), np.empty(n, dtype=np.int8), 0
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches():
            part = batch.slice(0, n - start)
            stop = start + len(part)
            y[start:stop] = part.column(TARGET)
            for k, name in enumerate(names):
                X[start:stop, k] = part.column(name)
            start = stop
    return X, y


def lightgbm(folder: Path, name: str, fit: Fit) -> dict[str, object]:
    """Fit LightGBM in this process: as a user does who knows that its defaults are unsteady at 0.17 % positives."""
    from lightgbm import LGBMClassifier, early_stopping
    from sklearn.metrics import average_precision_score, log_loss, roc_auc_score

    began, core = time.perf_counter(), time.process_time()
    X, y = read_files(folder / "train", fit.files, fit.rows)
    n = len(y) * 9 // 10
    model = LGBMClassifier(
        n_estimators=500, learning_rate=0.05, min_child_weight=1.0, reg_lambda=5.0, subsample=0.8, subsample_freq=1,
        colsample_bytree=0.7, n_jobs=2, random_state=0, verbose=-1,
    )  # fmt: skip
    stop = early_stopping(50, first_metric_only=True, verbose=False)
    model.fit(X[:n], y[:n], eval_set=[(X[n:], y[n:])], eval_metric="average_precision", callbacks=[stop])
    found: dict[str, object] = {
        "run": name, "method": f"{model.best_iteration_} trees", "rows read": fit.rows, "rows fitted": n,
        "wall s": round(time.perf_counter() - began), "core s": round(time.process_time() - core),
        "peak MB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }  # fmt: skip
    del X
    for table in FRESH:
        X, y = read_files(folder / table, "*.parquet")
        p = model.predict_proba(X)[:, 1]
        alerts = np.argsort(-p, kind="stable")[: len(y) // 100]
        recall = float(y[alerts].sum() / y.sum())
        found |= figures(table, average_precision_score(y, p), roc_auc_score(y, p), log_loss(y, p), recall)
    return found


def scoring_row(folder: Path) -> dict[str, object]:
    """Score fresh rows from Parquet to Parquet."""
    model, out = folder / f"{SCORED_BY}.qmedoid", folder / "scored.parquet"
    run = measured([sys.executable, "-m", "qmedoid", "score", str(model), str(folder / "fresh"), "-o", str(out)])
    n_rows = pq.read_metadata(out).num_rows
    return {
        "model": SCORED_BY, "rows": n_rows, "wall s": round(run.wall, 1), "core s": round(run.core, 1),
        "rows per wall s": round(n_rows / run.wall), "rows per core s": round(n_rows / run.core),
        "peak MB": round(run.peak), "hours of 100 M rows": round(1e8 / n_rows * run.wall / 3600, 2),
    }  # fmt: skip


def known_results(file: Path) -> dict[str, dict[str, object]]:
    """What the file has of each run."""
    if not file.is_file():
        return {}
    with file.open(newline="") as lines:
        next(lines)  # the command
        return {row["run"]: dict[str, object](row) for row in csv.DictReader(lines)}


def measure(folder: Path, names: list[str]) -> None:
    """Measure the named runs, and write the table after each."""
    into = RESULTS / "large_tables.csv"
    command, packages = "python benchmarks/large_tables.py DIR", ("numpy", "pyarrow", "scikit-learn", "lightgbm")
    for name in names:
        if name == "score":
            write_table(RESULTS / "large_scoring.csv", f"{command} score", [scoring_row(folder)], packages[:2])
            continue
        if name in FITS:
            row = fit_row(folder, name, FITS[name])
        else:
            run = measured([sys.executable, __file__, str(folder), "--one", name])
            row = json.loads(run.output.splitlines()[-1])
        known = known_results(into) | {name: row}
        write_table(into, command, [known[run] for run in (*FITS, *LIGHTGBM) if run in known], packages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder of the three tables")
    parser.add_argument("runs", nargs="*", help=f"of {', '.join((*FITS, *LIGHTGBM, 'score'))}; by default, all")
    parser.add_argument("--one", choices=LIGHTGBM, help="fit one LightGBM and print its figures")
    asked = parser.parse_args()
    if asked.folder is None:
        parser.print_help()
    elif asked.one:
        print(json.dumps(lightgbm(asked.folder, asked.one, LIGHTGBM[asked.one])))
    elif unknown := set(asked.runs) - {*FITS, *LIGHTGBM, "score"}:
        parser.error(f"There are no runs {', '.join(unknown)}.")
    else:
        measure(asked.folder, asked.runs or [*FITS, *LIGHTGBM, "score"])


if __name__ == "__main__":
    main()
