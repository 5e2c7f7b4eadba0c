"""A bundle's folder as it is written: locked, replaced by one rename, and swept of what killed savings left."""

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from qmedoid.exceptions import ParameterError
from qmedoid.fields import LARGEST_JSON, RefusedError, parsed, written
from qmedoid.storage._files import CONTENT_NAME, MANIFEST, file_entries, parse_manifest
from qmedoid.storage.atomic import PART, cannot_write, sync_folder, write_atomic

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]


def check_target_folder(path: str | Path) -> None:
    """Raise where a model cannot be saved to this folder: ask before a long fit, not after it.

    Raises
    ------
    ParameterError
        The folder holds something else than a saved model.
    OutputError
        It cannot be made or written.
    """
    path = Path(path)
    try:
        existing = path
        while not existing.exists() and existing != existing.parent:
            existing = existing.parent
        if not existing.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(existing, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if existing == path:
            _check_place(path)
    except OSError as error:
        raise cannot_write(path, error) from error


def replace_bundle(path: Path, manifest: Mapping[str, Any], contents: Mapping[str, bytes]) -> None:
    """Write the files and then, by one rename, the manifest that names them; then remove those of the old one."""
    try:
        with _locked_folder(path):
            _check_place(path)
            _sweep(path, keep=_referenced(path))
            try:
                for role, entry in file_entries(manifest).items():
                    write_atomic(path / entry.name, contents[role])
                sync_folder(path)
                write_atomic(path / MANIFEST, written(manifest))
                sync_folder(path)
            finally:
                # After a failure the old manifest stands, and what was written for the new one goes.
                _sweep(path, keep=_referenced(path))
    except OSError as error:
        raise cannot_write(path, error) from error


@contextlib.contextmanager
def _locked_folder(path: Path) -> Iterator[None]:
    """The folder, made where it is not there, and kept from other savers while a model is saved."""
    made = not path.exists()
    path.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.ExitStack() as stack:
            if fcntl is not None:
                # The folder itself is locked: a file made for the purpose would stay behind.
                handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                stack.callback(os.close, handle)
                with contextlib.suppress(OSError):  # a file system without locks
                    fcntl.flock(handle, fcntl.LOCK_EX)
            yield
    except BaseException:
        if made:
            with contextlib.suppress(OSError):  # not empty: somebody else's by now
                path.rmdir()
        raise


def _check_place(path: Path) -> None:
    """Raise unless the folder is empty, holds a saved model, or the remains of one."""
    names = [entry.name for entry in path.iterdir()]
    ours = [name for name in names if CONTENT_NAME.fullmatch(name) or _is_part(name)]
    foreign = set(names) - set(ours) - {MANIFEST}
    # A damaged manifest is ours where files named by their content lie beside it and nothing else.
    is_ours = not foreign and (bool(ours) or MANIFEST not in names)
    if not is_ours and not (MANIFEST in names and _is_manifest(path / MANIFEST)):
        example = sorted(foreign or {MANIFEST})[0]
        raise ParameterError(
            f"The folder {str(path)!r} holds other things than a saved model, such as {example!r}: give a new or an "
            "empty folder."
        )


def _is_part(name: str) -> bool:
    """Whether a file is one of ours that was not finished."""
    part = PART.fullmatch(name)
    return part is not None and (part[1] == MANIFEST or CONTENT_NAME.fullmatch(part[1]) is not None)


def _is_manifest(file: Path) -> bool:
    try:
        if file.stat().st_size > LARGEST_JSON:
            return False
        value = parsed(file.read_bytes())
    except (OSError, RefusedError):
        return False
    return isinstance(value, dict) and {"format", "files", "sha256"} <= set(value)


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
        if is_old or _is_part(entry.name):
            with contextlib.suppress(OSError):
                entry.unlink()
