"""What a report costs: CPU-seconds beyond scoring, size with its live model, and both for very many columns.

Run as ``QMEDOID_DATA=… python benchmarks/report.py`` with ``creditcard.parquet`` (284,807 rows) in that folder; its
model is fitted first unless ``--model`` names the file of one. The wide table has random numbers, 20 columns of which
tell the classes apart. The figures are written to ``results/report.csv``.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from _timing import RESULTS, write_table
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.model.model import Model
from qmedoid.model.storage.model_file import load_file, save_model
from qmedoid.report.reading import look_at_file
from qmedoid.report.summary import summarize, write_report
from qmedoid.tables.encode import row_hashes
from qmedoid.tables.evaluating import joined, labeled_report
from qmedoid.tables.scoring import TableReading, decide_batch
from qmedoid.tables.targets import label_codes

WIDE_ROWS, WIDE_COLUMNS, TELLING = 1_000, 5_000, 20
REPEATS = 3


def cpu(run: Callable[[], Any]) -> tuple[float, Any]:
    """CPU-seconds of all threads, and the result."""
    began = time.process_time()
    result = run()
    return time.process_time() - began, result


def scored(model: Model, where: str, target: str) -> dict[str, Any]:
    """What ``qmedoid evaluate`` does: decisions about every row, and its report."""
    with TableReading(model, where) as reading:
        parts = [
            (label_codes(extra.column(target), model.decision.classes),
             decide_batch(model, batch, reading.issues, reading.novelty)[0]._replace(nearest=None),
             row_hashes(model, batch))
            for batch, extra in reading.batches([target], as_text=True)
        ]  # fmt: skip
    codes, decided, hashes = zip(*parts, strict=True)
    known = None if model.seen is None else np.concatenate([one for one in hashes if one is not None])
    return labeled_report(model, np.concatenate(codes), joined(decided), known)


def wide_table() -> pa.Table:
    rng = np.random.default_rng(0)
    code = np.arange(WIDE_ROWS) % 2
    X = rng.normal(size=(WIDE_ROWS, WIDE_COLUMNS))
    X[:, :TELLING] += 0.5 * code[:, None]
    columns = {f"column {place}": X[:, place] for place in range(WIDE_COLUMNS)}
    return pa.table(columns | {"y": code})


def fitted(table: pa.Table, target: str, path: Path) -> Path:
    made = MedoidClassifier(random_state=0)
    made.fit(table.drop_columns([target]), table.column(target).to_pandas())
    save_model(made.model_, path)
    return path


def measure(name: str, model: Path, table: Path, target: str, folder: Path) -> dict[str, Any]:
    """One line of the results; of CPU-seconds the least of some runs."""
    loaded = load_file(model)
    page = folder / "page.html"
    names = {"model": model.name, "sha256": loaded.sha256, "table": table.name}

    def report() -> Any:
        looked = look_at_file(loaded.model, str(table), target=target)
        return write_report(summarize(loaded.model, looked, names=names), page)

    scoring = min(cpu(lambda: scored(loaded.model, str(table), target))[0] for _ in range(REPEATS))
    runs = [cpu(report) for _ in range(REPEATS)]
    seconds, written = min(one[0] for one in runs), runs[0][1]
    alone, without = cpu(lambda: write_report(summarize(loaded.model, names=names), page))
    return {
        "table": name, "rows": pq.read_metadata(table).num_rows, "columns": len(loaded.model.contract.columns),
        "evaluate_cpu_s": f"{scoring:.2f}", "report_cpu_s": f"{seconds:.2f}",
        "beyond_cpu_s": f"{seconds - scoring:.2f}", "page_mb": f"{written.bytes / 1e6:.2f}",
        "live": "document" in written.summary["live"],
        "without_table_cpu_s": f"{alone:.2f}", "without_table_mb": f"{without.bytes / 1e6:.2f}",
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, help="file of a model of creditcard.parquet")
    asked = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "QMEDOID_DATA" in os.environ:
            table = Path(os.environ["QMEDOID_DATA"]) / "creditcard.parquet"
            model = asked.model or fitted(pq.read_table(table), "Class", folder / "creditcard.qmedoid")
            lines.append(measure("credit card", model, table, "Class", folder))
        else:
            print("Set QMEDOID_DATA to the folder of creditcard.parquet to measure it.")
        wide = wide_table()
        pq.write_table(wide, folder / "wide.parquet")
        model = fitted(wide, "y", folder / "wide.qmedoid")
        lines.append(measure("wide", model, folder / "wide.parquet", "y", folder))
    write_table(RESULTS / "report.csv", "python benchmarks/report.py", lines)


if __name__ == "__main__":
    main()
