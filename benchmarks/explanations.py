"""Explanations of single decisions: core-milliseconds, sizes, and whether flips flip.

Run ``QMEDOID_DATA=... python benchmarks/explanations.py`` (a few minutes): default fits on three quarters of a table,
and records of the last quarter. A flip counts as verified if the record with its changed cells, scored anew, is of the
class that was promised.
"""

import json
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from threadpoolctl import threadpool_limits

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier
from qmedoid.datasets import table_of
from qmedoid.saved import SavedModel
from qmedoid.tables.arrow import as_table

TABLES = {"heart": "HeartDisease", "german_credit": "target", "car": "class", "stroke": "stroke",
          "electricity": "target", "creditcard-sample": "Class"}  # fmt: skip
MOST_ROWS, N_RECORDS = 12_000, 100


def read(name):
    if name in ("heart", "creditcard-sample"):
        return table_of(name)
    folder = Path(os.environ["QMEDOID_DATA"])
    manifest = json.loads((folder / "MANIFEST.json").read_text())[name]
    TABLES[name] = manifest["target"]
    frame = pd.read_parquet(folder / manifest["file"])
    return as_table(frame.sample(min(len(frame), MOST_ROWS), random_state=0))


def measure(name):
    table = read(name)
    rows = np.random.default_rng(0).permutation(len(table))
    cut = 3 * len(table) // 4
    fitted, held_out = (table.take(pa.array(part)) for part in (rows[:cut], rows[cut:]))
    target = TABLES[name]
    model = MedoidClassifier(refine="never", random_state=0)
    saved = SavedModel(model.fit(fitted.drop_columns([target]), fitted[target].to_pylist()).model_)
    records = held_out.drop_columns([target]).slice(0, N_RECORDS)
    figures = {"dict, KB": [], "SVG, KB": [], "explain, ms": [], "with flips, ms": []}
    flips, verified, with_flip = 0, 0, 0
    for row in range(len(records)):
        start = time.process_time()
        why = saved.explain(records.slice(row, 1))
        middle = time.process_time()
        made = why.to_dict(top=10)
        end = time.process_time()
        figures["explain, ms"].append(1e3 * (middle - start))
        figures["with flips, ms"].append(1e3 * (end - start))
        figures["dict, KB"].append(len(json.dumps(made)) / 1024)
        figures["SVG, KB"].append(len(why.to_svg()) / 1024)
        with_flip += bool(made["flips"])
        for flip in made["flips"]:
            changed = records.slice(row, 1).to_pylist()[0]
            changed[flip["column"]] = flip["to"]
            flips += 1
            verified += saved.predict(pa.Table.from_pylist([changed]))[0] == flip["prediction"]
    assert verified == flips, (name, verified, flips)
    found = {"table": name, "rows fitted": cut, "columns": records.num_columns, "records": len(records)}
    found |= {f"{key}, median": f"{np.median(values):.1f}" for key, values in figures.items()}
    found |= {f"{key}, largest": f"{max(values):.1f}" for key, values in figures.items()}
    return found | {"records with a flip": with_flip, "flips": flips, "verified": verified}


if __name__ == "__main__":
    with threadpool_limits(1):
        results = [measure(name) for name in TABLES]
    write_table(RESULTS / "explanations.csv", "python benchmarks/explanations.py", results, ("numpy", "pyarrow"))
