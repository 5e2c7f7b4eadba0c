"""Atomic file writes: after an error, a kill or a power cut the old file is there, or the new one, complete."""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from qmedoid.exceptions import OutputError, ParameterError
from qmedoid.model.storage.strict import is_model_file

try:
    import fcntl
except ModuleNotFoundError:  # Windows: a leftover is recognized by its age, not by its lock
    fcntl = None  # type: ignore[assignment]

PART = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part")
"""Names of temporary files: being written, or left by a killed process."""
# Seconds after which a temporary file counts as abandoned, where there are no locks.
_ABANDONED = 3600
# File systems allow names of 255 bytes; the prefix and the suffix must fit too.
_LONGEST_NAME = 200
# Errors of the place that is written to, not of the data.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


@contextlib.contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends without an error, and is removed otherwise.

    The temporary file is hidden, lies in the folder of the target and is locked while it is written; leftovers of
    killed writers are removed first. A link is followed, so that its target is replaced; devices and pipes are written
    to directly. Where the file cannot be written, there is an `OutputError`, and the old one is unchanged.
    """
    path = Path(path)
    try:
        target, is_stream = _target(path)
        if not is_stream:
            remove_leftovers(target.parent, target)
    except OSError as error:
        raise cannot_write(path, error) from error
    with contextlib.ExitStack() as stack:
        try:
            out = stack.enter_context(target.open("wb") if is_stream else _replacing(target))
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            yield out
        except OSError as error:
            # Other errors come from the block, such as from reading an input.
            if error.errno in (*_NO_ROOM, *([errno.EPIPE] if is_stream else [])) and error.filename is None:
                raise cannot_write(path, error) from error
            raise
        try:
            stack.close()
        except OSError as error:
            raise cannot_write(path, error) from error
    with contextlib.suppress(OSError):  # renames survive a power cut, where the system supports it
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def check_unchanged(path: str | Path, content: bytes) -> None:
    """Raise a `ParameterError` if a file exists and holds other content, which would be lost."""
    path = Path(path)
    try:
        is_other = path.is_file() and path.stat().st_size > 0 and path.read_bytes() != content
    except OSError as error:
        raise cannot_write(path, error) from error
    if is_other:
        raise would_be_lost(path)


def would_be_lost(path: str | Path) -> ParameterError:
    """The error for a file that exists and that this command did not write."""
    return ParameterError(
        f"{str(path)!r} is there already and holds something else, which would be lost. Give another path, or --force "
        "to overwrite it."
    )


def write_atomic(file: Path, content: bytes) -> None:
    """Write a file atomically: a temporary file in the same folder, then one rename."""
    with _replacing(file) as out:
        out.write(content)


def check_target(path: str | Path, replaces: Callable[[bytes], bool] | None = None, what: str = "saved model") -> None:
    """Raise where a model, or another file, cannot be saved to this path: to ask before long work.

    `replaces` says whether a file that begins with these bytes may be replaced, which is called `what`; a saved model
    may by default. Of any other file there is a `ParameterError`, and where none can be written an `OutputError`.
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
                start = file.read(4096)
        if start and not (replaces or is_model_file)(start):
            raise ParameterError(
                f"{str(path)!r} is there already and is no {what}, so it is not replaced. Give another path."
            )
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> OutputError:
    """The error for a file that cannot be written, with what to do about it."""
    remedies = {
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG): "Free some space or give another path.",
        (errno.EROFS, errno.EACCES, errno.EPERM): "Change the permissions of its folder or give another path.",
        (errno.EISDIR, errno.ENOTDIR, errno.EEXIST): "Give another path.",
        (errno.ENOENT,): f"Make the folder {str(path.parent)!r} first or give another path.",
    }
    remedy = next((one for codes, one in remedies.items() if error.errno in codes), "Try again or give another path.")
    reason = error.strerror or str(error)
    return OutputError(f"{str(path)!r} cannot be written: {reason}. What was there is unchanged. {remedy}")


def _target(path: Path) -> tuple[Path, bool]:
    """The file that a path points to, and whether it is a device or a pipe, which cannot be replaced."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        return path, True
    return (Path(os.path.realpath(path)) if path.is_symlink() else path), False


@contextlib.contextmanager
def _replacing(target: Path) -> Iterator[BinaryIO]:
    """A new hidden file that replaces the target at the end, and is removed on any exception."""
    part, handle = _new_part(target)
    try:
        try:
            with contextlib.suppress(OSError):  # an old file keeps its permissions
                os.chmod(part, stat.S_IMODE(target.stat().st_mode))  # noqa: PTH101
            # A second handle, because some writers close the file they are given, and a closed file has no lock.
            with os.fdopen(os.dup(handle), "wb") as out:
                yield out
            os.fsync(handle)
            if fcntl is not None:
                # The lock is held until here, or another writer might take the file for a leftover.
                part.replace(target)
        finally:
            os.close(handle)
        if fcntl is None:
            part.replace(target)  # Windows renames no open file
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _new_part(target: Path) -> tuple[Path, int]:
    while True:
        part = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.part")
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        if fcntl is None:
            return part, handle
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return part, handle
        os.close(handle)  # removed by another writer before it was locked


def _prefix(target: Path) -> str:
    name = target.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return f".{name}."


def remove_leftovers(folder: Path, target: Path | None = None) -> None:
    """Remove what killed writers left in a folder, of one target or of all."""
    prefix = None if target is None else _prefix(target)
    for name in os.listdir(folder):  # noqa: PTH208
        part = PART.fullmatch(name)
        if part is not None and prefix in (None, f".{part[1]}."):
            with contextlib.suppress(OSError):
                _remove_abandoned(folder / name)


def _remove_abandoned(part: Path) -> None:
    if fcntl is None:
        if time.time() - part.stat().st_mtime > _ABANDONED:
            part.unlink()
        return
    handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while its writer is alive
        part.unlink()
    finally:
        os.close(handle)
