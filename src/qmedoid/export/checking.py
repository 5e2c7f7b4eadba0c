"""An export beside the model itself: both score one file, in the engine that the export is for."""

import json
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, row_slices
from qmedoid.exceptions import DataError, MissingExtraError, ParameterError
from qmedoid.export.documents import EngineCheckDict, OddRowDict
from qmedoid.model.model import Model
from qmedoid.spelling import printable
from qmedoid.tables import cells
from qmedoid.tables.arrow import first_line, plain_records
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import TableReading, read_through
from qmedoid.tables.source import open_table

EXACT = 1e-9
"""What probabilities and margins may differ by."""
_ROW, _TABLE = "row of the check", "records"
_AT_ONCE = 500  # rows that onnxruntime is given
_NODE = """
const [model, records] = [require(process.argv[1]), require(process.argv[2])];
console.log(JSON.stringify(records.map((record) => {
  const { code, margin, probabilities, issues } = model.score(record);
  return { code, margin, probabilities, issues: issues.map((one) => `${one.column}: ${one.problem}`).join("; ") };
})));
"""


class Found(NamedTuple):
    """What an engine found: predictions, values (n, m), issues, and its cells by column, with its names for types."""

    engine: str
    predictions: list[Any]
    values: Array
    issues: list[str]
    cells: dict[str, list[Any]]
    types: dict[str, str]


Run = Callable[[Model, bytes, Path, pa.Table], Iterator[Found]]


def check_export(model: Model, content: bytes, engine: str, where: str | Path) -> list[EngineCheckDict]:
    """Score a file with an export and with the model; an entry for each way in which the engine reads the file.

    Parameters
    ----------
    model : Model
    content : bytes
        The export; SQL selects from the table ``records``.
    engine : {"js", "onnx", "duckdb", "sqlite"}
    where : path-like
        The table, one file.

    Raises
    ------
    DataError
        The model refuses the table, or the engine the export.
    MissingExtraError
        The engine is not installed.
    """
    _require(engine)
    path = Path(where)
    if not path.is_file():
        raise ParameterError(
            f"The 'check' parameter must be the name of a file with a table. Got {str(where)!r} instead."
        )

    def look(reading: TableReading) -> tuple[pa.Table, list[npt.NDArray[Any]]]:
        parts = [(rows.records, rows.decided) for rows, _ in reading.decided(for_what="check")]
        decided = [np.concatenate([getattr(one, name) for _, one in parts]) for name in ("codes", "scores", "margins")]
        return pa.Table.from_batches([batch for batch, _ in parts]), decided

    (table, (codes, scores, margins)), _ = read_through(model, str(where), ScoreSettings(), look)
    labels = [model.decision.classes[code] for code in codes]
    expected = model.decision.probabilities(scores) if model.decision.probabilistic else margins[:, None]
    return [_compared(found, table, labels, expected, margins) for found in _RUNS[engine](model, content, path, table)]


def _require(engine: str) -> None:
    """Raise unless the engine of an export is installed."""
    if engine == "postgres":
        raise ParameterError("PostgreSQL is not run: check an export for DuckDB, which reads tables as it does.")
    module = {"duckdb": "duckdb", "onnx": "onnxruntime"}.get(engine)
    if module is not None and find_spec(module) is None:
        raise MissingExtraError(f"To check the export, install {module}: pip install {module}.")
    if engine == "js" and shutil.which("node") is None:
        raise MissingExtraError("To check the export, install Node.js 18 or later.")


def sentence(check: EngineCheckDict) -> str:
    """What a check found, in one sentence."""
    rows, agree, refused, first = check["rows"], check["agree"], check["refused"], check["first"]
    largest = check["largest_difference"]
    end = "" if largest is None else f"; the largest difference is {largest:.2g}"
    if first is None:
        return f"{check['engine']}: all {rows:,} rows agree{end}."
    others = {"differ": rows - agree - refused, "have no result": refused}
    parts = [f"{agree:,} of {rows:,} rows agree", *(f"{count:,} {what}" for what, count in others.items() if count)]
    given, why = first["found"] or "nothing", f" ({first['why']})" if first["why"] else ""
    shown = f"the first is row {first['row']:,}, {given} for {first['prediction']}{why}"
    return f"{check['engine']}: {', '.join(parts)}{end}; {shown}."


def is_sound(checks: list[EngineCheckDict]) -> bool:
    """Whether no row has another result, and all rows have theirs in at least one way of reading."""
    none_differs = all(one["agree"] + one["refused"] == one["rows"] for one in checks)
    return none_differs and any(one["agree"] == one["rows"] for one in checks)


def _compared(found: Found, table: pa.Table, labels: list[Any], expected: Array, margins: Array) -> EngineCheckDict:
    count, n_found = len(labels), len(found.predictions)
    if n_found != count:
        said = [f"the engine reads {n_found:,} rows"] * count
        found = Found(found.engine, [None] * count, np.full((count, 1), np.nan), said, {}, {})
    difference = np.abs(found.values - expected[:, -found.values.shape[1] :]).max(axis=1)
    refused = np.isnan(difference)
    same = np.array([str(one) == str(other) for one, other in zip(found.predictions, labels, strict=True)])
    agrees = ~refused & (difference <= EXACT) & (same | (np.abs(margins) <= EXACT))
    odd: OddRowDict | None = None
    if not agrees.all():
        row = int(np.argmin(agrees))
        given = None if refused[row] else str(found.predictions[row])
        odd = {"row": row, "prediction": str(labels[row]), "found": given, "why": _why(found, table, row)}
    return {
        "engine": found.engine,
        "rows": count,
        "agree": int(agrees.sum()),
        "refused": int(refused.sum()),
        "largest_difference": None if refused.all() else float(difference[~refused].max()),
        "first": odd,
    }


def _why(found: Found, table: pa.Table, row: int) -> str:
    """The issues of a row, or else its cells that the engine holds otherwise."""
    if found.issues[row]:
        return found.issues[row]
    record = plain_records(table.slice(row, 1))[0]
    others = []
    for name, cell in record.items():
        if name in found.cells and not _is_same(held := found.cells[name][row], cell):
            others.append(f"{printable(name)} of type {found.types.get(name, 'unknown')} is {held!r} for {cell!r}")
    return "; ".join(others[:3])


def _is_same(held: Any, cell: Any) -> bool:
    one, other = ("" if it is None else str(it).strip().replace("T", " ") for it in (held, cell))
    try:
        return one.removesuffix(" 00:00:00") == other.removesuffix(" 00:00:00") or float(one) == float(other)
    except ValueError:
        return False


def _of_sql(engine: str, model: Model, cursor: Any, types: dict[str, str]) -> Found:
    """What a statement selects, in the order of the rows."""
    names = [one[0] for one in cursor.description]
    rows = sorted(cursor.fetchall(), key=lambda row: row[names.index(_ROW)])
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    results = names[names.index(_ROW) + 1 :]
    chosen = [one for one in results if one.removeprefix("qmedoid_").startswith("probability")]
    if not model.decision.probabilistic:
        chosen = [one for one in results if one.removeprefix("qmedoid_") == "margin"]
    values = np.array([columns[name] for name in chosen], dtype=np.float64).T.reshape(len(rows), -1)
    issues = [issue or "" for issue in columns[results[-1]]]
    return Found(engine, columns[results[0]], values, issues, columns, types)


def _stored(path: Path) -> pa.Table:
    """The cells of a file as they are stored, those of a text as texts."""
    with open_table(path) as source:
        types = dict.fromkeys(source.names, pa.string()) if source.is_text else None
        return pa.Table.from_batches(source.batches(types=types, verbatim=source.is_text))


def _in_duckdb(model: Model, content: bytes, path: Path, _: pa.Table) -> Iterator[Found]:
    """By its own readers, as a user would."""
    duckdb, name = import_module("duckdb"), "'" + str(path).replace("'", "''") + "'"
    with open_table(path) as source:
        readers = [f"read_csv({name})", f"read_csv({name}, all_varchar=true)"] if source.is_text else ["stored"]
    with path.open("rb") as file:
        readers = [f"read_parquet({name})"] if file.read(4) == b"PAR1" else readers
    for reader in readers:
        with duckdb.connect() as connection:
            if reader == "stored":
                connection.register("stored", _stored(path))
            try:
                numbered = f'SELECT *, ROW_NUMBER() OVER () AS "{_ROW}" FROM {reader}'
                connection.execute(f"CREATE TABLE {_TABLE} AS {numbered}")
                types = {one[0]: one[1] for one in connection.execute(f"DESCRIBE {_TABLE}").fetchall()}
                yield _of_sql(f"DuckDB, {reader}", model, connection.execute(content.decode()), types)
            except duckdb.Error as error:
                raise DataError(f"DuckDB, {reader}, cannot run the export: {first_line(error)}.") from error


def _in_sqlite(model: Model, content: bytes, path: Path, _: pa.Table) -> Iterator[Found]:
    """In a table whose columns have no types; cells of a text file are texts, as ``.import`` of the shell has them."""
    table = _stored(path)
    table = table.append_column(_ROW, pa.array(range(table.num_rows)))
    quoted = ",".join('"' + one.replace('"', '""') + '"' for one in table.column_names)
    columns = [
        [str(cell) if isinstance(cell, date | Decimal) else cell for cell in column.to_pylist()]
        for column in table.columns
    ]
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f"CREATE TABLE {_TABLE} ({quoted})")
        marks = ",".join("?" * table.num_columns)
        connection.executemany(f"INSERT INTO {_TABLE} VALUES ({marks})", zip(*columns, strict=True))
        types = dict(zip(table.column_names, map(str, table.schema.types), strict=True))
        yield _of_sql("SQLite", model, connection.execute(content.decode()), types)
    except sqlite3.Error as error:
        raise DataError(f"SQLite cannot run the export: {first_line(error)}.") from error
    finally:
        connection.close()


def _in_onnxruntime(model: Model, content: bytes, _: Path, table: pa.Table) -> Iterator[Found]:
    """By the CPU; inputs are made of the cells as the model's inputs say."""
    session = import_module("onnxruntime").InferenceSession(content, providers=["CPUExecutionProvider"])
    given, names = dict[str, Any](), [one.name for one in session.get_outputs()]
    for place in model.layout.used:
        column = model.contract.columns[place]
        cell = table.column(column.name)
        if column.kind == "category":
            texts = cells.texts(cells.without_missing_values(cell, column)).to_pylist()
            given[column.name] = np.array(["" if one is None else one for one in texts], dtype=object)
        else:
            values = cells.read(cell, column).values
            given[column.name] = values.astype(np.int64 if column.kind == "date" else np.float64)
    parts = [
        session.run(None, {name: one[rows] for name, one in given.items()}) for rows in row_slices(len(table), _AT_ONCE)
    ]
    found = dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))
    named = {name.removeprefix("qmedoid_"): values for name, values in found.items()}
    values = named["probabilities"] if "probabilities" in named else named["margin"][:, None]
    issues = ["cells that are not as in the training table" if count else "" for count in named["issues"].tolist()]
    yield Found("onnxruntime", named["label"].tolist(), values, issues, {}, {})


def _in_node(model: Model, content: bytes, _: Path, table: pa.Table) -> Iterator[Found]:
    """In Node, record by record."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "model.js", Path(folder) / "records.json"]
        files[0].write_bytes(content)
        files[1].write_text(json.dumps(plain_records(table)), encoding="utf-8")
        done = subprocess.run(
            [str(shutil.which("node")), "-e", _NODE, *map(str, files)],
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
        )
    if done.returncode:
        raise DataError(f"Node cannot run the export: {done.stderr.strip()[-200:]}")
    found = json.loads(done.stdout)
    values = [one["probabilities"] or [one["margin"]] for one in found]
    labels = [model.decision.classes[one["code"]] for one in found]
    yield Found("Node", labels, np.array(values, dtype=np.float64), [one["issues"] for one in found], {}, {})


_RUNS: dict[str, Run] = {"duckdb": _in_duckdb, "sqlite": _in_sqlite, "onnx": _in_onnxruntime, "js": _in_node}
