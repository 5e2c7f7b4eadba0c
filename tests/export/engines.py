"""Runs exports where they are at home: DuckDB, SQLite, onnxruntime."""

import io
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from qmedoid.export.javascript import javascript_file
from qmedoid.export.onnx.model import MISSING_MOMENT
from qmedoid.export.sql.script import sql_file

ROW = "number of the row"
"""A column that no model reads: databases give rows in any order."""
Columns = dict[str, list[Any]]
SESSION_ROWS = 500
"""Records that onnxruntime is given at a time."""


def as_sql(*model: Any, **how: Any) -> str:
    """A model as SQL."""
    return sql_file(*model, **how).decode()


def as_javascript(*model: Any) -> str:
    """A model as JavaScript."""
    return javascript_file(*model).decode()


def numbered(table: pa.Table) -> pa.Table:
    """A table with a number for every row."""
    return table.append_column(ROW, pa.array(range(len(table))))


def in_duckdb(sql: str, table: pa.Table, name: str = "records") -> Columns:
    """What a statement selects from a table, by column, in the order of the rows."""
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install duckdb")
    with duckdb.connect() as connection:
        connection.execute("SET threads=1")
        connection.register(name, numbered(table))
        return _columns(connection.execute(sql))


def in_sqlite(sql: str, table: pa.Table, name: str = "records", collation: str = "BINARY") -> Columns:
    """The same in SQLite, which has dates as texts."""
    connection = sqlite3.connect(":memory:")
    fill_sqlite(connection, numbered(table), name, collation)
    return _columns(connection.execute(sql))


def fill_sqlite(connection: sqlite3.Connection, table: pa.Table, name: str, collation: str = "BINARY") -> None:
    """Make a table of a database."""
    quoted = ",".join(f'"{one.replace(chr(34), chr(34) * 2)}" COLLATE {collation}' for one in table.column_names)
    connection.execute(f'CREATE TABLE "{name}" ({quoted})')
    cells = zip(*([_plain(cell) for cell in column.to_pylist()] for column in table.columns), strict=True)
    connection.executemany(f'INSERT INTO "{name}" VALUES ({",".join("?" * table.num_columns)})', cells)


def in_postgres(sql: str, table: pa.Table, name: str = "records") -> Columns:
    """The same in PostgreSQL, by its command ``psql``."""
    database, psql = os.environ.get("QMEDOID_POSTGRES"), shutil.which("psql")
    if not database or psql is None:
        pytest.skip("set QMEDOID_POSTGRES to the address of a database for tests, and install psql")
    table = numbered(table)
    columns = ",".join(f'"{one.name.replace(chr(34), chr(34) * 2)}" {_kind(one.type)}' for one in table.schema)
    cells = io.BytesIO()
    pa.csv.write_csv(table, cells, pa.csv.WriteOptions(include_header=False))
    selected = f"SELECT row_to_json(one) FROM ({sql.rstrip().rstrip(';')}) AS one;"
    script = f'CREATE TEMPORARY TABLE "{name}" ({columns});\n\\copy "{name}" FROM STDIN CSV\n'.encode()
    script += cells.getvalue() + b"\\.\n" + selected.encode()
    call = [psql, database, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-f", "-"]
    done = subprocess.run(call, input=script, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[:2000]
    rows = [json.loads(line) for line in done.stdout.decode().splitlines()]
    rows.sort(key=lambda row: row[ROW])
    return {column: [row[column] for row in rows] for column in rows[0]}


def _kind(kind: pa.DataType) -> str:
    """A type of PostgreSQL."""
    named = {"double": "float8", "int64": "bigint", "bool": "boolean", "date32[day]": "date", "string": "text"}
    return named.get(str(kind), "timestamp")


def _plain(cell: Any) -> Any:
    return cell.isoformat() if isinstance(cell, date | datetime) else cell


def _columns(cursor: Any) -> Columns:
    names = [one[0] for one in cursor.description]
    rows = sorted(cursor.fetchall(), key=lambda row: row[names.index(ROW)])
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


DATABASES: dict[str, Callable[..., Columns]] = {"duckdb": in_duckdb, "sqlite": in_sqlite, "postgres": in_postgres}
"""What runs each dialect in the tests."""


def onnx_session(content: bytes) -> Any:
    """A session of one thread."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def onnx_inputs(session: Any, table: pa.Table) -> dict[str, np.ndarray]:
    """The columns of a table as the model says that it takes them."""
    inputs = json.loads(session.get_modelmeta().custom_metadata_map["inputs"])
    return {one["name"]: _input(one["kind"], table.column(one["name"])) for one in inputs}


def _input(kind: str, column: pa.ChunkedArray) -> np.ndarray:
    cells = column.to_pylist()
    if kind == "category":
        return np.array(["" if cell is None else cell for cell in cells], dtype=object)
    if kind == "date":
        moments = column.cast(pa.timestamp("us")).to_numpy()
        assert np.array(["NaT"], "M8[us]").astype(np.int64)[0] == MISSING_MOMENT
        return moments.astype("M8[us]").astype(np.int64)
    return np.array([np.nan if cell is None else float(cell) for cell in cells])


def in_onnxruntime(content: bytes, table: pa.Table) -> dict[str, np.ndarray]:
    """The outputs of a model by name."""
    session = onnx_session(content)
    given = onnx_inputs(session, table)
    return run_onnx(session, given)


def run_onnx(session: Any, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs for inputs, some records at a time."""
    count = len(next(iter(given.values())))
    parts = [
        session.run(None, {name: values[start : start + SESSION_ROWS] for name, values in given.items()})
        for start in range(0, max(count, 1), SESSION_ROWS)
    ]
    names = [output.name for output in session.get_outputs()]
    return {name: np.concatenate(values) for name, values in zip(names, zip(*parts, strict=True), strict=True)}
