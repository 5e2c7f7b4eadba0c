"""Models saved to one file each, and loaded from it; nothing in a file is executed.

::

    heart.qmedoid             a zip of stored entries, see `qmedoid.model.storage.archive`
      manifest.json           format, versions, contract, parameters, metrics; size and SHA-256 of the other entries
      arrays.safetensors      all numbers
      rows.json               medoids as rows of the training table, where they are kept
      card.md                 the model card
      circuit.qpy, .qasm      the trained circuit for other tools, on request; never read
      swap_test.qpy, .qasm    the compact SWAP test of the features, likewise
"""

import hashlib
import os
import platform
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from qmedoid._version import __version__
from qmedoid.exceptions import ModelError
from qmedoid.methods.part import CLOSED_FORM
from qmedoid.model.model import Model, Record
from qmedoid.model.storage.archive import (
    ARRAYS,
    CARD,
    FORMAT,
    LARGEST_FILE,
    MANIFEST,
    ROWS,
    FormatError,
    archive_bytes,
    archive_entries,
)
from qmedoid.model.storage.atomic import atomic_file, cannot_write, check_target
from qmedoid.model.storage.card import model_card
from qmedoid.model.storage.forms import Arrays, read, write
from qmedoid.model.storage.strict import arrays_bytes, compact, parsed, plain, read_arrays, written
from qmedoid.schema import RefusedError

SUFFIX = ".qmedoid"
"""How the names of model files end by convention; any name can be saved and loaded."""
_LIBRARIES = ("numpy", "pyarrow", "safetensors", "scikit-learn")
_CELLS = {type(None), bool, int, float, str}


class ModelFile(NamedTuple):
    """What a model file holds.

    Attributes
    ----------
    model : Model
    sha256 : str
        Of the file.
    versions : mapping of str to str or None
        Versions of qmedoid, Python and libraries that the model was saved with; None for one that was not installed.
    card : str
        The model card as it was saved.
    """

    model: Model
    sha256: str
    versions: Mapping[str, str | None]
    card: str


def save_model(
    model: Model, path: str | Path, *, circuits: Mapping[str, bytes] | None = None, raw_rows: bool = True
) -> Path:
    """Save a model to a file.

    The file is written atomically: whatever happens, it is the old one or the new one, complete.

    Parameters
    ----------
    model : Model
    path : str or Path
        A new file, or a model file that is replaced. Folders that are missing are made.
    circuits : mapping of str to bytes, optional
        Files to store too, by name, for other tools: `qmedoid.quantum.export.circuit_files` makes them.
    raw_rows : bool
        Whether medoids are kept as rows of the training table. Without, only their coordinates and row numbers are.

    Raises
    ------
    ModelError
        The model cannot be stored; for the path see `check_target`.
    """
    path = Path(path)
    content = model_bytes(model, circuits=circuits, raw_rows=raw_rows)
    check_target(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from error
    with atomic_file(path) as file:
        file.write(content)
    return path


def load_model(path: str | Path) -> Model:
    """Load a model that `save_model` wrote; it decides as the saved one did, bit for bit.

    Raises
    ------
    ModelError
        The file is not a saved model, is damaged, or has a format that this version does not know.
    """
    return load_file(path).model


def load_file(path: str | Path) -> ModelFile:
    """Load a model with the hash of its file, its versions and its card; see `load_model`."""
    path = Path(path)
    if path.is_dir():
        raise ModelError(f"{str(path)!r} is a folder, and a saved model is a file, such as heart{SUFFIX}: pass that.")
    subject = f"The saved model {str(path)!r}"
    try:
        return read_model(_file_bytes(path))
    except FormatError as error:
        raise ModelError(
            f"{subject} has format {error}, and this version of qmedoid reads format {FORMAT}. Fit and save it again, "
            "or update with: pip install --upgrade qmedoid"
        ) from None
    except RefusedError as refused:
        where = f"{refused.role}: " if refused.role else ""
        raise ModelError(
            f"{subject} cannot be read: {where}{refused}. Save it again, or restore the file from a copy."
        ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise ModelError(f"There is no saved model at {str(path)!r}: nothing is there. Check the path.") from None
    except OSError as error:
        raise ModelError(f"{subject} cannot be opened: {error.strerror}. Check the path and its permissions.") from None


def model_bytes(model: Model, *, circuits: Mapping[str, bytes] | None = None, raw_rows: bool = True) -> bytes:
    """The file of a model; what could not be loaded again is refused."""
    if model.backends != CLOSED_FORM:
        what = "SWAP test" if model.backends.swap_test is not None else "circuit"
        raise ModelError(
            f"The {what} of this model is run by a backend, which is not saved: save the fitted classifier itself, and "
            "call measured_by again after loading."
        )
    from importlib import metadata  # slow, and needed to save only

    versions = {name: next((one.version for one in metadata.distributions(name=name)), None) for name in _LIBRARIES}
    arrays: Arrays = {}
    # A hash shows whether a row that somebody has was a training row: they are left out with the rows.
    description = write(model if raw_rows else replace(model, seen=None), arrays)
    others = {ARRAYS: arrays_bytes(arrays)}
    if raw_rows and model.records is not None:
        others[ROWS] = compact(_written_rows(model.records))
    others[CARD] = model_card(model, raw_rows=ROWS in others).encode()
    others |= circuits or {}
    manifest = {
        "format": FORMAT,
        "versions": {"qmedoid": __version__, "python": platform.python_version(), **versions},
        "model": description,
        "entries": {
            name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in others.items()
        },
    }
    content = archive_bytes({MANIFEST: written(manifest), **others})
    try:
        if len(content) > LARGEST_FILE:
            raise RefusedError(f"it has {len(content)} bytes, and at most {LARGEST_FILE} are read")
        read_model(content)
    except RefusedError as refused:
        hint = " Pass raw_rows=False." if refused.role == ROWS else ""
        where = f" {refused.role}:" if refused.role else ""
        raise ModelError(f"The model cannot be stored:{where} {refused}.{hint}") from None
    return content


def read_model(content: bytes) -> ModelFile:
    """What a file holds whose bytes may be anything; everything is checked."""
    entries = archive_entries(content)
    with _inside(MANIFEST):
        manifest = _checked_manifest(parsed(bytes(entries[MANIFEST])), entries)
    with _inside(ARRAYS):
        arrays = read_arrays(entries[ARRAYS])
    model = read(Model, manifest["model"], arrays)
    if ROWS in entries:
        with _inside(ROWS):
            model = replace(model, records=_read_rows(parsed(bytes(entries[ROWS])), model))
    with _inside(CARD):
        try:
            card = bytes(entries[CARD]).decode()
        except UnicodeDecodeError:
            raise RefusedError("it is not UTF-8") from None
    return ModelFile(model, hashlib.sha256(content).hexdigest(), manifest["versions"], card)


def _file_bytes(path: Path) -> bytes:
    """The bytes of a regular file of bounded size. Links are followed; a pipe does not keep the reader waiting."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise RefusedError("it is not a regular file")
        if found.st_size > LARGEST_FILE:
            raise RefusedError(f"it has {found.st_size} bytes, and at most {LARGEST_FILE} are read")
        content = file.read(LARGEST_FILE + 1)
    if len(content) != found.st_size:
        raise RefusedError("it changed while it was read")
    return content


@contextmanager
def _inside(role: str) -> Iterator[None]:
    """Name the entry whose contents are refused."""
    try:
        yield
    except RefusedError as refused:
        raise refused if refused.role else RefusedError(str(refused), role) from None


def _checked_manifest(manifest: Any, entries: Mapping[str, memoryview]) -> dict[str, Any]:
    """The manifest, if every other entry has the size and the hash that it says."""
    fields = {"format", "versions", "model", "entries"}
    if not isinstance(manifest, dict) or manifest.keys() != fields:
        raise RefusedError(f"it must be an object with the fields {sorted(fields)}")
    if type(manifest["format"]) is not int or manifest["format"] != FORMAT:
        raise RefusedError(f"format must be {FORMAT}")
    versions, listed = manifest["versions"], manifest["entries"]
    names = {"qmedoid", "python", *_LIBRARIES}
    if (
        not isinstance(versions, dict)
        or versions.keys() != names
        or not {*map(type, versions.values())} <= {str, type(None)}
    ):
        raise RefusedError(f"versions must give a text or null for each of {sorted(names)}")
    others = [name for name in entries if name != MANIFEST]
    if not isinstance(listed, dict) or listed.keys() != set(others):
        raise RefusedError(f"entries must list {others}")
    for name in others:
        content = entries[name]
        if listed[name] != {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}:
            raise RefusedError("its contents do not match its size and SHA-256 in the manifest", name)
    return manifest


def _written_rows(records: Sequence[Record]) -> dict[str, Any]:
    """The medoids of a model as rows."""
    columns = list(records[0]) if records else []
    if any(list(record) != columns for record in records):
        raise ModelError("The medoids kept as rows must all have the same columns in the same order.")
    cells = [plain(list(record.values()), "a medoid's row") for record in records]
    return {"columns": plain(columns, "columns of the medoids"), "rows": cells}


def _read_rows(value: Any, model: Model) -> tuple[Record, ...]:
    """The medoids as rows."""
    count = 0 if model.medoids is None else len(model.medoids.numbers)
    columns, rows = (value.get("columns"), value.get("rows")) if isinstance(value, dict) else (None, None)
    if not isinstance(columns, list) or not isinstance(rows, list) or len(value) > 2:
        raise RefusedError("it must be an object with the lists columns and rows")
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) != len(columns):
        raise RefusedError("columns must be different texts")
    if len(rows) != count:
        raise RefusedError(f"it must hold {count} rows, one for each medoid, and holds {len(rows)}")
    for row in rows:
        if not isinstance(row, list) or not {*map(type, row)} <= _CELLS:
            raise RefusedError("rows must be lists of texts, numbers, truth values and null")
        if len(row) != len(columns):
            raise RefusedError(f"rows must have a cell for each of the {len(columns)} columns")
    return tuple(dict(zip(columns, row, strict=True)) for row in rows)
