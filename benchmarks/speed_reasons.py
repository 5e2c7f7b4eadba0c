"""Reasons for every decision: records per core-second, scored alone, with reasons, and explained one by one.

Run ``python benchmarks/speed_reasons.py`` (about a minute). The tables are those that ship with the package: heart
disease with a sum of evidence and trees, and the sample of card frauds with rare-event prototypes and trees.
"""

import pyarrow as pa
from threadpoolctl import threadpool_limits

from _timing import RESULTS, core_seconds, write_table
from qmedoid import MedoidClassifier
from qmedoid.datasets import table_of
from qmedoid.saved import SavedModel

TABLES = {"heart": "HeartDisease", "creditcard-sample": "Class"}
N_ROWS, N_ALONE = 10_000, 20


def measure(name, target):
    table = table_of(name)
    classifier = MedoidClassifier(refine="never", random_state=0)
    model = SavedModel(classifier.fit(table.drop_columns([target]), table[target].to_pylist()).model_)
    rows = pa.concat_tables([table] * (N_ROWS // len(table) + 1)).slice(0, N_ROWS)
    runs = {
        "scored": (N_ROWS, lambda: model.score_table(rows)),
        "with reasons": (N_ROWS, lambda: model.score_table(rows, add=["reasons"])),
        "explained one by one": (N_ALONE, lambda: [model.explain(rows, row) for row in range(N_ALONE)]),
    }
    seconds = {run: core_seconds(call, 3).core / n for run, (n, call) in runs.items()}
    method = model.model.facts["numbers"].get("weights", {})
    return {"table": name, "method": " + ".join(method) or classifier.method_} | {
        f"rows per core-second, {run}": round(1.0 / each) for run, each in seconds.items()
    }


if __name__ == "__main__":
    with threadpool_limits(1):
        rows = [measure(*one) for one in TABLES.items()]
    write_table(RESULTS / "speed_reasons.csv", "python benchmarks/speed_reasons.py", rows, ("numpy", "pyarrow"))
