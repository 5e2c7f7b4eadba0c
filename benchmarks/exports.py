"""Exports beside our own scorer: sizes, differences and records per core-second in DuckDB, SQLite, onnxruntime, Node.

Run ``python benchmarks/exports.py`` (about five minutes). The models are those of the tests, one of every kind, and two
of the heart disease data: one of 64 medoids, and a tiny one of 6. Every export scores 10,000 records. What a database
or a runtime needs before its first record (to plan a statement, to load a graph) is measured with one record, and is no
part of the rate. A difference is of class scores, or of log-odds in SQL.
"""

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from _timing import RESULTS, core_seconds, write_table

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS), str(TESTS / "export")]

import engines  # noqa: E402

from model_kinds import MODEL_KINDS, exported  # noqa: E402
from qmedoid import EvidenceClassifier, MedoidClassifier, SavedModel  # noqa: E402
from qmedoid.datasets import table_of  # noqa: E402
from qmedoid.exceptions import ModelError  # noqa: E402
from qmedoid.export.javascript import javascript_file  # noqa: E402
from qmedoid.export.onnx.model import onnx_file  # noqa: E402
from qmedoid.export.sql.script import sql_file  # noqa: E402
from qmedoid.tables.arrow import plain_records  # noqa: E402

N_ROWS = 10_000
CLEAR = 1e-9
"""Margins above this are no ties."""
_NODE = """
const model = require(process.argv[1]), records = require(process.argv[2]);
records.slice(0, 500).forEach((one) => model.score(one));
const start = process.cpuUsage(), found = records.map((one) => model.score(one)), used = process.cpuUsage(start);
console.log(JSON.stringify({ seconds: (used.user + used.system) / 1e6, scores: found.map((one) => one.scores),
  codes: found.map((one) => one.code), rows: found.map((one) => one.nearest.map((near) => near.row)) }));
"""


class Found(NamedTuple):
    """What an export said of the records, and what it took."""

    bytes: int
    scores: Any
    labels: Any
    rows: Any
    before: float
    seconds: float


def in_database(dialect: str) -> Callable[[SavedModel, pa.Table], Found]:
    """A function that scores a table in a database."""

    def run(saved: SavedModel, table: pa.Table) -> Found:
        sql = sql_file(saved.model, dialect=dialect).decode()
        if dialect == "sqlite":
            connection: Any = sqlite3.connect(":memory:")
            engines.fill_sqlite(connection, engines.numbered(table), "records")
            connection.execute("CREATE TABLE alone AS SELECT * FROM records LIMIT 1")
        else:
            import duckdb

            connection = duckdb.connect()
            connection.execute("SET threads=1")
            connection.register("given", engines.numbered(table))
            connection.execute("CREATE TABLE records AS SELECT * FROM given")
            connection.execute("CREATE TABLE alone AS SELECT * FROM records LIMIT 1")
        of_one = sql_file(saved.model, dialect=dialect, table="alone").decode()
        before = core_seconds(lambda: connection.execute(of_one).fetchall(), 3).core
        every = core_seconds(lambda: connection.execute(sql).fetchall(), 3).core
        found = engines._columns(connection.execute(sql))
        if len(saved.classes_) == 2:
            scores = np.array(found["margin"])
        else:
            scores = np.column_stack([values for name, values in found.items() if name.startswith("score_")])
        rows = np.column_stack([values for name, values in found.items() if name.startswith("nearest_")])
        return Found(len(sql.encode()), scores, np.array(found["prediction"]), rows, before, every - before)

    return run


def in_onnxruntime(saved: SavedModel, table: pa.Table) -> Found:
    """Scores of a table in onnxruntime."""
    content = onnx_file(saved.model)
    before = core_seconds(lambda: engines.onnx_session(content), 3)
    given = engines.onnx_inputs(before.result, table)
    found = core_seconds(lambda: engines.run_onnx(before.result, given), 3)
    got = found.result
    return Found(len(content), got["scores"], got["label"], got["nearest"], before.core, found.core)


def in_node(saved: SavedModel, table: pa.Table) -> Found:
    """Scores of a table in Node."""
    node = shutil.which("node")
    assert node is not None, "install Node.js 18 or later"
    script = javascript_file(saved.model).decode()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "model.js", Path(folder) / "records.json"]
        files[0].write_text(script, encoding="utf-8")
        files[1].write_text(json.dumps(plain_records(table)), encoding="utf-8")
        done = subprocess.run([node, "-e", _NODE, *map(str, files)], capture_output=True, text=True, check=True)
        start = time.perf_counter()
        subprocess.run([node, "-e", "require(process.argv[1])", str(files[0])], check=True)
        loaded = time.perf_counter() - start
    got = json.loads(done.stdout)
    labels = saved.classes_[np.array(got["codes"])]
    return Found(len(script.encode()), np.array(got["scores"]), labels, np.array(got["rows"]), loaded, got["seconds"])


RUNS: dict[str, Callable[[SavedModel, pa.Table], Found]] = {
    "DuckDB": in_database("duckdb"),
    "SQLite": in_database("sqlite"),
    "onnxruntime": in_onnxruntime,
    "Node": in_node,
}


def heart(method: EvidenceClassifier) -> tuple[SavedModel, pa.Table]:
    """A model of the heart disease data, and its rows again and again."""
    table = table_of("heart")
    X, y = table.drop_columns(["HeartDisease"]), table["HeartDisease"].to_pylist()
    model = MedoidClassifier(method=method, refine="never", random_state=0).fit(X, y).model_
    return SavedModel(model), pa.concat_tables([X] * (N_ROWS // len(X) + 1)).slice(0, N_ROWS).combine_chunks()


def without_neighbors(saved: SavedModel) -> SavedModel:
    """A sum of evidence and trees alone."""
    model = saved.model
    return SavedModel(replace(model, parts=model.parts[:2], weights=model.weights[:2]))


def models() -> dict[str, tuple[SavedModel, pa.Table]]:
    """Every model with its records."""
    found = {
        "heart, 6 medoids": heart(EvidenceClassifier(n_medoids=6, n_neighbors=0, n_pairs=2, n_triples=1)),
        "heart, 64 medoids": heart(EvidenceClassifier(n_medoids=64, n_neighbors=0)),
    }
    for kind in MODEL_KINDS:
        found[kind] = tuple(exported(kind, N_ROWS))
        if kind.startswith("sum"):
            found[f"{kind} without neighbors"] = without_neighbors(found[kind][0]), found[kind][1]
    return found


def measured(name: str, saved: SavedModel, table: pa.Table) -> list[dict[str, object]]:
    """Our own scorer and every export of one model."""
    own = core_seconds(lambda: saved.decide(table), 5)
    decided = own.result
    clear = np.abs(decided.margins) > CLEAR
    labels = saved.classes_[decided.codes]
    medoids = saved.model.medoids.numbers[decided.nearest]
    rows = [line(name, "qmedoid", rate=len(table) / own.core)]
    for engine, run in RUNS.items():
        try:
            found = run(saved, table)
        except ModelError as error:
            rows.append(line(name, engine, refused=str(error)))
            continue
        expected = decided.margins if found.scores.ndim == 1 else decided.scores
        rows.append(
            line(
                name, engine, bytes=found.bytes, difference=f"{np.abs(found.scores - expected).max():.1e}",
                other_classes=int((found.labels != labels)[clear].sum()),
                other_medoids=int((found.rows != medoids).any(axis=1).sum()),
                before=found.before, rate=len(table) / found.seconds,
            )
        )  # fmt: skip
        assert np.abs(found.scores - expected).max() <= CLEAR, (name, engine)
        assert not (found.labels != labels)[clear].any(), (name, engine)
    return rows


def line(
    name: str,
    engine: str,
    *,
    bytes: object = "",
    difference: object = "",
    other_classes: object = "",
    other_medoids: object = "",
    before: float | None = None,
    rate: float | None = None,
    refused: str = "",
) -> dict[str, object]:
    """A row of the table."""
    return {
        "model": name, "engine": engine, "bytes": bytes, "largest difference": difference,
        "other classes": other_classes, "other nearest medoids": other_medoids,
        "seconds before the first record": "" if before is None else f"{before:.2f}",
        "records per core-second": "" if rate is None else round(rate), "refused": refused,
    }  # fmt: skip


if __name__ == "__main__":
    with threadpool_limits(1):
        rows = [row for name, (saved, table) in models().items() for row in measured(name, saved, table)]
    packages = ("numpy", "duckdb", "onnx", "onnxruntime")
    write_table(RESULTS / "exports.csv", "python benchmarks/exports.py", rows, packages)
