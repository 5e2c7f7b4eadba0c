"""Saved models read back: no code is run, and nothing is built before everything was checked."""

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from qmedoid.exceptions import ModelError
from qmedoid.fields import RefusedError, inside, shown
from qmedoid.model.table import TableModel
from qmedoid.storage._files import (
    MANIFEST,
    FileEntry,
    file_entries,
    opened_folder,
    parse_manifest,
    read_content,
    read_manifest,
)
from qmedoid.storage._reading import read

FORMAT = 5
"""Number of the format that is written and read. Before the first release there is only one."""
# How often the manifest is read again because a file it names is gone: somebody saves over the bundle meanwhile.
_TRIES = 5


def load_model(path: str | Path) -> TableModel:
    """Load a model that `save_model` wrote.

    Parameters
    ----------
    path : str or Path
        The folder.

    Returns
    -------
    TableModel
        It decides as the saved one did, bit for bit.

    Raises
    ------
    ModelError
        The folder is not a saved model, is damaged, or has a format that this version does not know.
    """
    path = Path(path)
    try:
        with opened_folder(path) as folder:
            return _loaded(path, folder)
    except RefusedError as refused:
        where = f"{refused.role}: " if refused.role else ""
        raise ModelError(
            f"The saved model {str(path)!r} cannot be read: {where}{refused}. Save it again, or restore the folder "
            "from a copy."
        ) from None
    except OSError as error:
        raise _no_model(path, error) from None


def read_checked(manifest: Mapping[str, Any], contents: Mapping[str, bytes]) -> TableModel:
    """The model of a manifest and the files it names, by their roles."""
    return read(manifest, contents)


def _loaded(path: Path, folder: int | None) -> TableModel:
    gone = ""
    for _ in range(_TRIES):
        manifest, entries = _manifest(path, folder)
        try:
            contents = {role: _content(path, folder, entry) for role, entry in entries.items()}
        except _GoneError as error:
            gone = str(error)
            continue
        try:
            return read_checked(manifest, contents)
        except RefusedError as refused:
            entry = entries.get(refused.role)
            raise RefusedError(str(refused), entry.name if entry else refused.role) from None
    raise RefusedError("it is not there, and the manifest names it", gone)


class _GoneError(Exception):
    """A file that the manifest names is not there."""


def _manifest(path: Path, folder: int | None) -> tuple[dict[str, Any], dict[str, FileEntry]]:
    with inside(MANIFEST):
        try:
            manifest = parse_manifest(read_manifest(path, folder))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise _unopened(error) from None
        number = manifest["format"]
        if isinstance(number, bool) or not isinstance(number, int) or number != FORMAT:
            raise ModelError(
                f"The saved model {str(path)!r} has format {shown(number)}, and this version of qmedoid reads format "
                f"{FORMAT}. Fit and save it again, or update with: pip install --upgrade qmedoid"
            )
        return manifest, file_entries(manifest)


def _content(path: Path, folder: int | None, entry: FileEntry) -> bytes:
    with inside(entry.name):
        try:
            return read_content(path, folder, entry)
        except FileNotFoundError:
            raise _GoneError(entry.name) from None
        except OSError as error:
            raise _unopened(error) from None


def _unopened(error: OSError) -> RefusedError:
    # What O_NOFOLLOW says of a link differs from system to system.
    if error.errno in (errno.ELOOP, errno.EMLINK, getattr(errno, "EFTYPE", errno.ELOOP)):
        return RefusedError("it is a link, and links are not followed")
    return RefusedError(f"it cannot be opened ({error.strerror})")


def _no_model(path: Path, error: OSError) -> ModelError:
    if not os.path.lexists(path):
        return ModelError(f"There is no saved model at {str(path)!r}: nothing is there. Check the path.")
    if not path.is_dir():
        return ModelError(f"{str(path)!r} is not a folder: pass the folder that holds the model's {MANIFEST}.")
    if isinstance(error, FileNotFoundError):
        return ModelError(
            f"The folder {str(path)!r} holds no {MANIFEST}, so it is not a saved model: check the path, or save the "
            "model again if its saving was cut off."
        )
    return ModelError(f"The saved model {str(path)!r} cannot be opened: {error.strerror}. Check its permissions.")
