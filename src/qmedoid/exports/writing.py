"""The formats that a model can be exported in, and the file that is written."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from qmedoid.exceptions import ParameterError
from qmedoid.exports.flat import FlatModel, flattened
from qmedoid.model.table import TableModel
from qmedoid.storage.atomic import atomic_file

Format = Literal["js"]
FORMATS: tuple[Format, ...] = get_args(Format)
_WRITERS: dict[Format, str] = {"js": "qmedoid.exports.javascript:javascript_file"}


class Export(NamedTuple):
    """A file that was written: where, in which format, and its size in bytes."""

    path: Path
    format: Format
    bytes: int


def export_model(table: TableModel, path: str | Path, *, format: Format, sha256: str | None = None) -> Export:
    """Write a model in another language; the file appears whole or not at all.

    Parameters
    ----------
    table : TableModel
    path : path-like
    format : {"js"}
    sha256 : str or None
        Of the model file, which the export names.

    Raises
    ------
    ModelError
        The format cannot express the model.
    """
    if format not in FORMATS:
        raise ParameterError(f"The 'format' parameter must be one of {list(FORMATS)}. Got {format!r} instead.")
    content = _writer(format)(flattened(table, sha256))
    with atomic_file(path) as file:
        file.write(content)
    return Export(Path(path), format, len(content))


def _writer(format: Format) -> Callable[[FlatModel], bytes]:
    module, _, name = _WRITERS[format].partition(":")
    writer: Callable[[FlatModel], bytes] = getattr(import_module(module), name)
    return writer
