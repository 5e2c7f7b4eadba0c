"""``qmedoid export``: a model in another language."""

from pathlib import Path
from typing import Annotated, Literal

from qmedoid.cli.documents import ExportDict
from qmedoid.cli.options import OUTPUT, Force, Json, ModelPath, Text, command, option
from qmedoid.cli.output import print_json
from qmedoid.exceptions import ParameterError
from qmedoid.export.writing import export_model
from qmedoid.saved import load
from qmedoid.spelling import printable


@command(
    "qmedoid export patients.qmedoid --format sql --dialect postgres",
    "qmedoid export patients.qmedoid --format sql --check patients.csv",
    most_used=("format", "output", "dialect", "table", "check", "force", "json"),
)
def run(
    model: ModelPath,
    *,
    json: Json = False,
    format: Annotated[
        Literal["js", "sql", "onnx"],
        option(OUTPUT, "FORMAT", "What to write: js (JavaScript), sql (one SELECT) or onnx (a graph)."),
    ],
    dialect: Annotated[
        Literal["duckdb", "sqlite", "postgres"] | None,
        option(OUTPUT, "NAME", "Database that the SQL is for: duckdb, sqlite or postgres. Default: duckdb."),
    ] = None,
    table: Annotated[Text, option(OUTPUT, "NAME", "Table that the SQL selects from. Default: records.")] = None,
    check: Annotated[
        Path | None,
        option(OUTPUT, "FILE", "Run the export on this table, in its engine, and compare it with the model."),
    ] = None,
    force: Force = False,
    output: Annotated[
        Path | None,
        option(OUTPUT, "FILE", "File to write. Default: the model's name with the format's ending.", "--output", "-o"),
    ] = None,
) -> int | None:
    """Write a model as JavaScript, SQL or ONNX, to deploy it.

    What is written scores records without Python. With --check the exit code is 1 if it scores them otherwise.
    """
    path = output or model.with_suffix(f".{format}")
    if str(path) == "-":
        raise ParameterError("The output of an export must be a file: give -o FILE.")
    saved = load(model)
    written = export_model(
        saved.model, path, format=format, dialect=dialect, table=table, force=force, check=check, sha256=saved.sha256
    )
    from qmedoid.export.checking import is_sound, sentence

    if json:
        document: ExportDict = {
            "output": str(written.path),
            "format": written.format,
            "dialect": written.dialect,
            "bytes": written.bytes,
            "model": saved.sha256,
        }
        if check is not None:
            document["checks"] = written.checks
        print_json(document)
    else:
        print(f"exported to {printable(str(written.path))} ({written.bytes:,} bytes).")
        for one in written.checks:
            print(sentence(one))
    return None if check is None or is_sound(written.checks) else 1
