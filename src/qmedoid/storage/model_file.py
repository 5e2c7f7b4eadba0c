"""Models saved to one file each, and loaded from it; nothing in a file is executed.

::

    heart.qmedoid             a zip of stored entries, see `qmedoid.storage.archive`
      manifest.json           format, versions, contract, parameters, metrics; size and SHA-256 of the other entries
      arrays.safetensors      all numbers
      rows.json               medoids as rows of the training table, where they are kept
      card.md                 the model card
      circuit.qpy, .qasm      the trained circuit for other tools, on request; never read
      swap_test.qpy, .qasm    the compact SWAP test of the features, likewise
"""

import errno
import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from qmedoid.exceptions import ModelError, ParameterError
from qmedoid.fields import Arrays, RefusedError, compact, inside, parsed
from qmedoid.model.table import TableModel
from qmedoid.storage.archive import (
    ARRAYS,
    CARD,
    FORMAT,
    LARGEST_FILE,
    MANIFEST,
    ROWS,
    FormatError,
    archive_bytes,
    archive_entries,
    is_model_file,
    read_file,
)
from qmedoid.storage.arrays import arrays_bytes, read_arrays
from qmedoid.storage.atomic import atomic_file, cannot_write
from qmedoid.storage.card import model_card
from qmedoid.storage.columns import write_rows
from qmedoid.storage.hybrid import exact_circuit
from qmedoid.storage.manifest import manifest_bytes, read_manifest
from qmedoid.storage.table import DESCRIPTION, read_records, read_table, write_table

SUFFIX = ".qmedoid"
"""How the names of model files end by convention; any name can be saved and loaded."""


class ModelFile(NamedTuple):
    """What a model file holds.

    Attributes
    ----------
    model : TableModel
    sha256 : str
        Of the file.
    versions : mapping of str to str or None
        Versions of qmedoid, Python and libraries that the model was saved with; None for one that was not installed.
    card : str
        The model card as it was saved.
    """

    model: TableModel
    sha256: str
    versions: Mapping[str, str | None]
    card: str


def save_model(model: TableModel, path: str | Path, *, circuits: bool = False, raw_rows: bool = True) -> Path:
    """Save a model to a file.

    The file is written atomically: whatever happens, it is the old one or the new one, complete.

    Parameters
    ----------
    model : TableModel
    path : str or Path
        A new file, or a model file that is replaced. Folders that are missing are made.
    circuits : bool
        Whether to write the circuits as QPY and OpenQASM 3 too, for other tools (extra ``quantum``).
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


def load_model(path: str | Path) -> TableModel:
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
    try:
        return read_model(read_file(path))
    except FormatError as error:
        raise ModelError(
            f"The saved model {str(path)!r} has format {error}, and this version of qmedoid reads format {FORMAT}. Fit "
            "and save it again, or update with: pip install --upgrade qmedoid"
        ) from None
    except RefusedError as refused:
        where = f"{refused.role}: " if refused.role else ""
        raise ModelError(
            f"The saved model {str(path)!r} cannot be read: {where}{refused}. Save it again, or restore the file from "
            "a copy."
        ) from None
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise ModelError(f"There is no saved model at {str(path)!r}: nothing is there. Check the path.") from None
        raise ModelError(
            f"The saved model {str(path)!r} cannot be opened: {error.strerror}. Check the path and its permissions."
        ) from None


def model_bytes(model: TableModel, *, circuits: bool = False, raw_rows: bool = True) -> bytes:
    """The file of a model; what could not be loaded again is refused."""
    arrays: Arrays = {}
    description = write_table(model, arrays, raw_rows=raw_rows)
    records = [write_rows(one) for one in model.records] if raw_rows and model.records is not None else None
    others = {ARRAYS: arrays_bytes(arrays)}
    if records is not None:
        others[ROWS] = compact(records)
    others[CARD] = model_card(model, raw_rows=records is not None).encode()
    if circuits:
        others |= _exported(model)
    content = archive_bytes({MANIFEST: manifest_bytes(description, others), **others})
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
    """What a file holds whose bytes may be anything; nothing is built before everything was checked."""
    entries = archive_entries(content)
    with inside(MANIFEST):
        manifest = read_manifest(entries, DESCRIPTION)
    with inside(ARRAYS):
        shelf = read_arrays(entries[ARRAYS])
    model = read_table(manifest, shelf)
    if ROWS in entries:
        with inside(ROWS):
            model = replace(model, records=read_records(parsed(bytes(entries[ROWS])), model.models))
    with inside(CARD):
        try:
            card = bytes(entries[CARD]).decode()
        except UnicodeDecodeError:
            raise RefusedError("it is not UTF-8") from None
    return ModelFile(model, hashlib.sha256(content).hexdigest(), manifest.raw("versions"), card)


def check_target(path: str | Path) -> None:
    """Raise where a model cannot be saved to this path: to ask before a long fit.

    Raises
    ------
    ParameterError
        The path is a file that is no saved model.
    OutputError
        The file cannot be written.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        target = Path(os.path.realpath(path))
        folder = next(parent for parent in target.parents if parent.exists())
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(folder, os.W_OK | os.X_OK) and (target.is_file() or not target.exists()):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        start = b""
        if target.is_file():
            with target.open("rb") as file:
                start = file.read(64)
        if start and not is_model_file(start):
            raise ParameterError(
                f"{str(path)!r} is there already and is no saved model, so it is not replaced. Give another path."
            )
    except OSError as error:
        raise cannot_write(path, error) from error


def _exported(model: TableModel) -> dict[str, bytes]:
    """The circuits for other tools."""
    from qmedoid.circuits import export

    contents: dict[str, bytes] = {}
    circuit, method = exact_circuit(model.best), model.method
    if circuit is not None:
        trained = export.trained_circuit(circuit)
        contents["circuit.qpy"] = export.qpy_bytes(trained)
        contents["circuit.qasm"] = export.qasm_text(trained).encode()
    if method is not None:
        swap_test = export.swap_test_circuit(method.n_measured)
        contents["swap_test.qpy"] = export.qpy_bytes(swap_test)
        contents["swap_test.qasm"] = export.qasm_text(swap_test).encode()
    return contents
