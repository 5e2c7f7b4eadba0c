"""Peak memory of fits in memory against the rows and columns of the table: what `qmedoid.large.split` counts with.

Writes ``benchmarks/results/fit_memory.csv``: ``QMEDOID_DATA=... PYTHONPATH=. python benchmarks/fit_memory.py`` (needs
creditcard.parquet; about 20 minutes). Every fit is ``qmedoid fit TABLE.parquet --test 0`` in a process of its own,
whose peak counts the interpreter, the packages and the table.

- ``rare``: noisy card rows (`benchmarks.large_data`), 0.17 % of them frauds; columns beyond these 30 are noise.
- ``balanced``: cells of a normal distribution, a class that five columns and a product decide.

The last lines are the plane, base + rows · (row bytes + cell bytes · columns), that has no measured point above it and
the least sum of what it counts too much.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.optimize import linprog

from _peaks import measured
from _timing import RESULTS, write_table
from benchmarks.large_data import VALUES
from benchmarks.large_data import made as made_cards

SIZES = ((50_000, 10), (50_000, 100), (100_000, 30), (200_000, 10), (200_000, 30), (100_000, 100))
KINDS = ("rare", "balanced")
POINTS = (*((kind, *size) for size in SIZES for kind in KINDS), ("rare", 400_000, 30))
TARGET = "Class"


def table_of(kind: str, n_rows: int, n_columns: int) -> pa.Table:
    """A table of two classes, all other columns numbers."""
    rng = np.random.default_rng(0)
    if kind == "rare":
        cards = made_cards("base", n_rows, 0, 0)
        names = [*VALUES[9:18], "Amount"] if n_columns == 10 else cards.column_names[:-1]
        cells = [cards[name].to_numpy().astype(np.float64) for name in names]
        label = cards["Class"].to_numpy()
    else:
        cells = list(rng.standard_normal((n_columns, n_rows)))
        signal = 1.5 * sum(cells[:5]) + cells[5] * cells[6] + rng.standard_normal(n_rows)
        label = (signal > np.median(signal)).astype(np.int8)
    cells += list(rng.standard_normal((n_columns - len(cells), n_rows)))
    return pa.table({**{f"x{k}": column for k, column in enumerate(cells)}, TARGET: label})


def peak_row(kind: str, n_rows: int, n_columns: int) -> dict[str, object]:
    """Measure one fit."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "table.parquet"
        pq.write_table(table_of(kind, n_rows, n_columns), source)
        asked = ["--target", TARGET, "--test", "0", "--json", "-o", f"{folder}/model.qmedoid"]
        run = measured([sys.executable, "-m", "qmedoid", "fit", str(source), *asked])
    method = json.loads(run.output)["method"]
    return {
        "table": kind, "method": method, "rows": n_rows, "columns": n_columns, "core seconds": round(run.core),
        "peak MB": round(run.peak),
    }  # fmt: skip


def plane(rows: list[dict[str, object]]) -> np.ndarray:
    """Base, bytes per row and bytes per cell: the least plane above all points."""
    n = np.array([[float(str(row[name])) for name in ("rows", "columns", "peak MB")] for row in rows])
    design = np.column_stack([np.ones(len(n)), n[:, 0] / 2**20, n[:, 0] * n[:, 1] / 2**20])
    return np.asarray(linprog(design.sum(axis=0), A_ub=-design, b_ub=-n[:, 2], bounds=(0, None)).x)


def plane_rows(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The planes above the points of each kind of table, and above all; the base is in the column of the peaks."""
    found: list[dict[str, object]] = []
    for kind in (*KINDS, "both"):
        base, row_bytes, cell_bytes = plane([row for row in rows if kind in (row["table"], "both")])
        found.append({
            "table": f"plane, {kind}", "method": f"{row_bytes:.0f} bytes a row, {cell_bytes:.0f} bytes a cell",
            "rows": "", "columns": "", "core seconds": "", "peak MB": round(base),
        })  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=RESULTS / "fit_memory.csv")
    into = parser.parse_args().into
    rows: list[dict[str, object]] = []
    for point in POINTS:
        rows.append(peak_row(*point))
        print(rows[-1], file=sys.stderr, flush=True)
    command, packages = "python benchmarks/fit_memory.py", ("numpy", "scikit-learn", "pyarrow")
    write_table(into, command, rows + plane_rows(rows), packages)


if __name__ == "__main__":
    main()
