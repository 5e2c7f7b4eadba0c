"""The formats that a model can be exported in, and the file that is written."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.export.documents import EngineCheckDict
from qmedoid.export.sql.dialects import DialectName
from qmedoid.methods.part import Part
from qmedoid.model.model import Model
from qmedoid.model.storage.atomic import atomic_file, cannot_write, would_be_lost

Format = Literal["js", "sql", "onnx"]
FORMATS: tuple[Format, ...] = get_args(Format)
_WRITERS: dict[Format, str] = {
    "js": "qmedoid.export.javascript:javascript_file",
    "sql": "qmedoid.export.sql.script:sql_file",
    "onnx": "qmedoid.export.onnx.model:onnx_file",
}
_PARTS: dict[Format, str] = {
    "js": "qmedoid.export.javascript",
    "sql": "qmedoid.export.sql.parts",
    "onnx": "qmedoid.export.onnx.parts",
}
_LANGUAGES = {"js": "JavaScript", "sql": "SQL", "onnx": "ONNX"}
# How files that exports wrote begin.
_STARTS = (b"// A model of qmedoid ", b"-- A model of qmedoid ", b"\x08\x09\x12\x07qmedoid")


class Export(NamedTuple):
    """A file that was written: where, in which format, for which database, its size, and what checks found."""

    path: Path
    format: Format
    dialect: DialectName | None
    bytes: int
    checks: list[EngineCheckDict]


def export_model(
    model: Model,
    path: str | Path,
    *,
    format: Format,
    dialect: DialectName | None = None,
    table: str | None = None,
    force: bool = False,
    check: str | Path | None = None,
    sha256: str | None = None,
) -> Export:
    """Write a model in another language; the file appears whole or not at all.

    Parameters
    ----------
    model : Model
    path : path-like
    format : {"js", "sql", "onnx"}
    dialect : {"duckdb", "sqlite", "postgres"}, optional
        The database that the SQL is for; DuckDB by default.
    table : str, optional
        The table that the SQL selects from; ``records`` by default.
    force : bool
        Whether to overwrite a file that is no export; one that is an export is replaced.
    check : path-like, optional
        A table that the export is run on, in its engine; `checks` of the result compares it with the model.
    sha256 : str or None
        Of the model file, which the export names.

    Raises
    ------
    ParameterError
        The path is a file that is no export.
    ModelError
        The format cannot express the model.
    MissingExtraError
        The package that writes the format, or the engine that checks it, is not installed.
    """
    if format not in FORMATS:
        raise ParameterError(f"The 'format' parameter must be one of {list(FORMATS)}. Got {format!r} instead.")
    given = {name: value for name, value in (("dialect", dialect), ("table", table)) if value is not None}
    if format == "sql":
        given = {"dialect": "duckdb", **given}
    elif given:
        raise ParameterError(
            f"The {next(iter(given))!r} parameter belongs to the format 'sql'. Got {format!r} instead."
        )
    path, start = Path(path), b""
    try:
        if path.is_file() and not force:
            with path.open("rb") as file:
                start = file.read(64)
    except OSError as error:
        raise cannot_write(path, error) from error
    if start and not start.startswith(_STARTS):
        raise would_be_lost(path)
    module, _, name = _WRITERS[format].partition(":")
    write: Callable[..., bytes] = getattr(import_module(module), name)
    content, checks = write(model, sha256, **given), list[EngineCheckDict]()
    if check is not None:
        from qmedoid.export.checking import check_export  # databases and processes, which scoring has no use for

        checked = content if given.get("table") is None else write(model, sha256, dialect=given["dialect"])
        checks = check_export(model, checked, given.get("dialect", format), check)
    with atomic_file(path) as file:
        file.write(content)
    return Export(path, format, given.get("dialect"), len(content), checks)  # type: ignore[arg-type]


def check_exported(model: Model) -> None:
    """Raise for a model with a circuit, which no format can run."""
    if model.circuit is not None:
        raise ModelError(
            "A quantum circuit takes part in the decisions of this model, and no export can run it: fit a model "
            "without one (refine='never'), or export its circuits with 'qmedoid circuit export'."
        )


def part_writer(format: Format, part: Part) -> Callable[..., Any]:
    """The function of a format that writes a part, which is called as the part is.

    Raises
    ------
    ModelError
        There is none: the format cannot express the part.
    """
    writer: Callable[..., Any] | None = getattr(import_module(_PARTS[format]), part.name, None)
    if writer is None:
        others = " or ".join(one for one in FORMATS if hasattr(import_module(_PARTS[one]), part.name))
        way_out = f"export the model as {others}" if others else "fit the model with another method"
        raise ModelError(f"{_LANGUAGES[format]} cannot express the part {part.name!r} of this model: {way_out}.")
    return writer
