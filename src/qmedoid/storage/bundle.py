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

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qmedoid._version import __version__
from qmedoid.exceptions import ModelError
from qmedoid.fields import RefusedError, compact, written
from qmedoid.model.table import TableModel
from qmedoid.storage._files import content_entry, file_entries, parse_manifest, signed
from qmedoid.storage._packing import packed, plain_circuit
from qmedoid.storage.card import model_card
from qmedoid.storage.folders import replace_bundle
from qmedoid.storage.loading import FORMAT, read_checked


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
    replace_bundle(path, manifest, contents)
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
    circuit, method = plain_circuit(model.best), model.method
    if circuit is not None:
        trained = export.trained_circuit(circuit)
        contents["circuit.qpy"] = export.qpy_bytes(trained)
        contents["circuit.qasm"] = export.qasm_text(trained).encode()
    if method is not None:
        swap_test = export.swap_test_circuit(method.n_measured)
        contents["swap_test.qpy"] = export.qpy_bytes(swap_test)
        contents["swap_test.qasm"] = export.qasm_text(swap_test).encode()
    return contents
