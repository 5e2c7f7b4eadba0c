"""Tables that nobody prepared: ``qmedoid fit``, ``score`` and ``evaluate`` on every file of ``QMEDOID_DATA``.

Run as ``QMEDOID_DATA=... python benchmarks/raw_tables.py`` (some minutes). The folder's MANIFEST.json names the files
and their target columns; the commands get no other option but the positive class of one. Two tables are made from
them: adult with 20 % of its cells removed at random, and bank_marketing with a category of 5,000 levels, each of which
has another rate of the positive class.

Figures are of the 25 % of the rows that ``fit`` held out (seed 0).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from _timing import RESULTS, write_table

POSITIVE = {"german_credit": "2"}
LEVELS = 5000


def qmedoid(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "qmedoid", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"qmedoid {' '.join(arguments)}: {done.stdout}{done.stderr}")
    return done.stdout


def with_missing(table: pa.Table, target: str, share: float) -> pa.Table:
    """The table with a share of the cells of all columns but the target gone."""
    rng = np.random.default_rng(0)
    columns = {}
    for name in table.column_names:
        gone = pa.array(rng.random(len(table)) < share)
        column = table[name].combine_chunks()
        columns[name] = column if name == target else pa.compute.if_else(gone, pa.scalar(None, column.type), column)
    return pa.table(columns)


def with_levels(table: pa.Table, target: str, positive: str) -> pa.Table:
    """The table with a category of many levels: of each record one of those whose rate is near its class's."""
    rng = np.random.default_rng(0)
    rates = rng.beta(0.5, 4.0, size=LEVELS)
    among_positive, among_others = (
        rng.choice(LEVELS, size=len(table), p=share / share.sum()) for share in (rates, 1.0 - rates)
    )
    places = np.where(np.array(table[target].to_pylist()) == positive, among_positive, among_others)
    return table.append_column("merchant", pa.array([f"merchant {place}" for place in places]))


def tables(folder: Path, scratch: Path) -> list[tuple[str, Path, str, str]]:
    """Name, file, target and positive class of every table."""
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    listed = [
        (name, folder / about["file"], about["target"], POSITIVE.get(name, "")) for name, about in manifest.items()
    ]
    adult, bank = manifest["adult"], manifest["bank_marketing"]
    holes = with_missing(pq.read_table(folder / adult["file"]), adult["target"], 0.2)
    pq.write_table(holes, scratch / "holes.parquet")
    many = with_levels(pq.read_table(folder / bank["file"]), bank["target"], "yes")
    pq.write_table(many, scratch / "levels.parquet")
    return [
        *listed,
        ("adult, 20 % of the cells missing", scratch / "holes.parquet", adult["target"], ""),
        ("bank_marketing, 5,000 levels", scratch / "levels.parquet", bank["target"], ""),
    ]


def run(name: str, file: Path, target: str, positive: str, scratch: Path) -> dict[str, object]:
    model = str(scratch / "model")
    began = time.perf_counter()
    extra = ["--positive", positive] if positive else []
    fitted: dict[str, Any] = json.loads(qmedoid("fit", str(file), "--target", target, "-o", model, "--json", *extra))
    fit_seconds = time.perf_counter() - began
    began = time.perf_counter()
    qmedoid("score", model, str(file), "-o", str(scratch / "scores.parquet"))
    score_seconds = time.perf_counter() - began
    everything = json.loads(qmedoid("evaluate", model, str(file), "--json"))
    held_out = fitted["held_out"]
    print(f"{name}: {held_out['macro_f1']:.4f}, {fit_seconds:.0f} s", flush=True)
    return {
        "table": name,
        "rows": everything["rows"],
        "columns": fitted["columns"],
        "left out": " ".join(fitted["left_out"]),
        "stage": fitted["refinement"],
        "accuracy": held_out["accuracy"],
        "macro-F1": held_out["macro_f1"],
        "PR-AUC": held_out.get("pr_auc", ""),
        "ROC-AUC": held_out.get("roc_auc", ""),
        "log-loss": held_out["log_loss"],
        "fit s": fit_seconds,
        "score s": score_seconds,
    }


def main() -> None:
    folder = Path(os.environ.get("QMEDOID_DATA", ""))
    if not (folder / "MANIFEST.json").is_file():
        raise SystemExit("This needs the folder of data sets with its MANIFEST.json: set QMEDOID_DATA to it.")
    with tempfile.TemporaryDirectory() as name:
        rows = [run(*table, Path(name)) for table in tables(folder, Path(name))]
    write_table(
        RESULTS / "raw_tables.csv", "python benchmarks/raw_tables.py", rows, ("numpy", "pyarrow", "scikit-learn")
    )


if __name__ == "__main__":
    main()
