"""Models saved to a folder: files named by their content, and one rename of the manifest that commits them all.

::

    manifest.json                  format, versions, contract, parameters, metrics, files with their SHA-256
    arrays-<hash>.safetensors      all numbers
    circuits-<hash>.json           circuits, rebuilt on loading
    rows-<hash>.json               medoids as rows of the training table, where they are kept
    card-<hash>.md                 the model card
    circuit-<hash>.qpy, .qasm      the trained circuit for other tools, on request; never read
    swap_test-<hash>.qpy, .qasm    the compact SWAP test of the features, likewise
"""

import contextlib
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qmedoid._version import __version__
from qmedoid.artifacts._folder import CONTENT_NAME, MANIFEST, content_entry, file_entries, parse_manifest, signed
from qmedoid.artifacts._json import LARGEST_JSON, RefusedError, compact, parsed, written
from qmedoid.artifacts._packing import packed, plain_circuit
from qmedoid.artifacts.card import model_card
from qmedoid.artifacts.loading import read_checked
from qmedoid.artifacts.whole import PART, cannot_write, sync_folder, write_whole
from qmedoid.exceptions import ModelError
from qmedoid.models.table import TableModel

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
"""Number of the format that is written. A change of what is written takes the next one, and a reader beside the old."""


def save_model(model: TableModel, path: str | Path, *, circuits: bool = False, raw_rows: bool = True) -> Path:
    """Save a model to a folder.

    However it ends, the folder holds the model that was there before or the new one, whole.

    Parameters
    ----------
    model : TableModel
    path : str or Path
        A folder: a new one, an empty one, or one with a saved model, which is replaced.
    circuits : bool
        Whether to write the circuits as QPY and OpenQASM 3 too, for other tools (extra ``quantum``).
    raw_rows : bool
        Whether medoids are kept as rows of the training table. Without, only their coordinates and row numbers are.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    ModelError
        The model cannot be stored, or the folder holds something else.
    DataError
        The folder cannot be written.
    """
    path = Path(path)
    manifest, contents = bundle_contents(model, circuits=circuits, raw_rows=raw_rows)
    try:
        with _locked_folder(path):
            _check_place(path)
            _replace(path, manifest, contents)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path


def bundle_contents(
    model: TableModel, *, circuits: bool = False, raw_rows: bool = True
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest of a model, and its files by what they are for."""
    import safetensors.numpy

    parts = packed(model, raw_rows=raw_rows)
    contents = {"arrays": bytes(safetensors.numpy.save(parts.arrays)), "circuits": written(parts.circuits)}
    if parts.rows is not None:
        contents["rows"] = compact(parts.rows)
    contents["card"] = model_card(model, raw_rows=parts.rows is not None).encode()
    if circuits:
        contents |= _exported(model)
    entries = {role: content_entry(role, content) for role, content in contents.items()}
    manifest = signed(
        {
            "format": FORMAT,
            "versions": {"qmedoid": __version__, "numpy": np.__version__, "python": platform.python_version()},
            **parts.manifest,
            "files": {
                role: {"name": entry.name, "bytes": entry.size, "sha256": entry.sha256}
                for role, entry in entries.items()
            },
        }
    )
    _check_readable(manifest, contents)
    return manifest, contents


def _check_readable(manifest: Mapping[str, Any], contents: Mapping[str, bytes]) -> None:
    """Raise now, while the model is at hand, rather than when it is loaded."""
    try:
        file_entries(manifest)
        parse_manifest(written(manifest))
        read_checked(manifest, contents)
    except RefusedError as refused:
        hint = " Pass raw_rows=False." if refused.role == "rows" else ""
        where = f" {refused.role}:" if refused.role else ""
        raise ModelError(f"The model cannot be stored:{where} {refused}.{hint}") from None


def _exported(model: TableModel) -> dict[str, bytes]:
    """The circuits for other tools."""
    from qmedoid.circuits import export

    contents: dict[str, bytes] = {}
    circuit, fusion = plain_circuit(model.best), model.fusion
    if circuit is not None:
        trained = export.trained_circuit(circuit)
        contents["circuit.qpy"] = export.qpy_bytes(trained)
        contents["circuit.qasm"] = export.qasm_text(trained).encode()
    if fusion is not None:
        swap_test = export.swap_test_circuit(fusion.medoids.shape[1])
        contents["swap_test.qpy"] = export.qpy_bytes(swap_test)
        contents["swap_test.qasm"] = export.qasm_text(swap_test).encode()
    return contents


@contextlib.contextmanager
def _locked_folder(path: Path) -> Iterator[None]:
    """The folder, made where it is not there, and kept from other savers while a model is saved."""
    made = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        if fcntl is None:
            yield
            return
        # The folder itself is locked: a file made for the purpose would stay behind.
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
    except BaseException:
        if made:
            with contextlib.suppress(OSError):  # not empty: somebody else's by now
                path.rmdir()
        raise


def _check_place(path: Path) -> None:
    """Raise unless the folder is empty, holds a saved model, or the remains of one."""
    names = [entry.name for entry in path.iterdir()]
    ours = [name for name in names if CONTENT_NAME.fullmatch(name) or PART.fullmatch(name)]
    foreign = set(names) - set(ours) - {MANIFEST}
    # A damaged manifest is ours where files named by their content lie beside it and nothing else.
    is_ours = not foreign and (bool(ours) or MANIFEST not in names)
    if not is_ours and not (MANIFEST in names and _is_manifest(path / MANIFEST)):
        example = sorted(foreign or {MANIFEST})[0]
        raise ModelError(
            f"The folder {str(path)!r} holds other things than a saved model, such as {example!r}: give a new or an "
            "empty folder."
        )


def _is_manifest(file: Path) -> bool:
    try:
        if file.stat().st_size > LARGEST_JSON:
            return False
        value = parsed(file.read_bytes())
    except (OSError, RefusedError):
        return False
    return isinstance(value, dict) and {"format", "files", "sha256"} <= set(value)


def _replace(path: Path, manifest: Mapping[str, Any], contents: Mapping[str, bytes]) -> None:
    _sweep(path, keep=_referenced(path))
    entries = file_entries(manifest)
    try:
        for role, entry in entries.items():
            write_whole(path / entry.name, contents[role])
        sync_folder(path)
        write_whole(path / MANIFEST, written(manifest))
        sync_folder(path)
    finally:
        # After a failure the old manifest stands, and what was written for the new one goes.
        _sweep(path, keep=_referenced(path))


def _referenced(path: Path) -> set[str] | None:
    """Names of the files that the manifest in the folder names; None where it cannot be read."""
    try:
        entries = file_entries(parse_manifest((path / MANIFEST).read_bytes()))
    except FileNotFoundError:
        return set()
    except (OSError, RefusedError):
        return None
    return {entry.name for entry in entries.values()}


def _sweep(path: Path, keep: set[str] | None) -> None:
    """Remove files of other savings: those that were killed, and the one that was replaced."""
    for entry in path.iterdir():
        is_old = keep is not None and CONTENT_NAME.fullmatch(entry.name) and entry.name not in keep
        if is_old or PART.fullmatch(entry.name):
            with contextlib.suppress(OSError):
                entry.unlink()
