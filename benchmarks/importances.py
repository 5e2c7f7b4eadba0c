"""How far importances of training rows are from those of new rows and of rows that folds held out, and what they cost.

Run as ``QMEDOID_DATA=... python benchmarks/importances.py`` (some minutes). Of each table 2,000 rows, or half of fewer,
are fitted, and as many others are new, with a column of noise added. ``feature_importances_`` of the fit are compared
with ``importances`` of the new rows by the same model, and with those of held-out rows by models of five folds.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.model_selection import StratifiedKFold

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier
from qmedoid.model.importance import ImportanceTally

TABLES = ("heart", "pima", "german_credit", "adult", "churn_mlc", "phoneme", "waveform_40", "optdigits", "mammography")
ROWS, N_FOLDS, NOISE = 2000, 5, "noise"


def drawn(folder: Path, about: dict[str, Any]) -> tuple[pa.Table, Any]:
    """Twice as many rows as are fitted, in a random order, with a column of noise, and their classes."""
    file = folder / about["file"]
    table = pa.csv.read_csv(file) if file.suffix == ".csv" else pq.read_table(file)
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(table))[: 2 * min(ROWS, len(table) // 2)]
    table = table.take(pa.array(rows))
    y = np.array([str(label) for label in table[about["target"]].to_pylist()])
    return table.drop_columns([about["target"]]).append_column(NOISE, pa.array(rng.normal(size=len(rows)))), y


def of_rows(model: Any, table: pa.Table) -> dict[str, float]:
    found: dict[str, float] = model.importances(table)
    return found


def by_folds(table: pa.Table, y: Any) -> dict[str, float]:
    """Means over the held-out rows of folds, by models that have not seen them."""
    sums: dict[str, float] = dict.fromkeys(table.column_names, 0.0)
    for train, held in StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(y, y):
        model = MedoidClassifier(random_state=0).fit(table.take(pa.array(train)), y[train])
        for name, value in of_rows(model, table.take(pa.array(held))).items():
            sums[name] += value * len(held) / len(y)
    return sums


def compared(name: str, folder: Path, about: dict[str, Any]) -> dict[str, object]:
    table, y = drawn(folder, about)
    half = len(y) // 2
    fitted, new = table.slice(0, half), table.slice(half)
    began = time.process_time()
    model = MedoidClassifier(random_state=0).fit(fitted, y[:half])
    seconds = time.process_time() - began
    own = np.array(
        [dict(zip(table.column_names, model.feature_importances_, strict=True))[c] for c in table.column_names]
    )
    tally, columns = ImportanceTally(model.model_), list(model._encoded(fitted.slice(0, 1000)).T)
    decided = model.model_.decide(columns)
    began = time.process_time()
    tally.add(columns, decided)
    cost = time.process_time() - began
    row: dict[str, object] = {"table": name, "rows": half, "columns": len(own), "classes": len(model.classes_)}
    row["method"] = model.method_
    for words, found in (("new rows", of_rows(model, new)), ("folds", by_folds(fitted, y[:half]))):
        other = np.array([found.get(column, 0.0) for column in table.column_names])
        row[f"sum against {words}"] = f"{own.sum() / other.sum():.3f}"
        row[f"largest difference to {words}"] = f"{np.abs(own - other).max() / other.max():.3f}"
    row["noise against the largest"] = f"{own[table.column_names.index(NOISE)] / own.max():.3f}"
    row["share of the fit's time"] = f"{cost / seconds:.4f}"
    return row


def main() -> None:
    folder = Path(os.environ["QMEDOID_DATA"])
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    rows = []
    for name in TABLES:
        rows.append(compared(name, folder, manifest[name]))
        print(rows[-1], flush=True)
    write_table(RESULTS / "importances.csv", "python benchmarks/importances.py", rows)


if __name__ == "__main__":
    main()
