"""Files that are there whole or not at all, however the process that writes them ends."""

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from qmedoid.exceptions import OutputError, ParameterError

try:
    import fcntl
except ModuleNotFoundError:  # Windows: leftovers are told by their age instead of by their lock
    fcntl = None  # type: ignore[assignment]

PART = re.compile(r"\.(.+)\.[0-9a-f]{16}\.part")
"""Names of files that are being written, or that a killed process left."""
# Seconds after which nobody writes a temporary file any more, where there are no locks.
_ABANDONED = 3600
# File systems take names of 255 bytes; what is added to a name must fit too.
_LONGEST_NAME = 200
# What says of a write that the place, not the data, is the trouble.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


@contextlib.contextmanager
def whole_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` when the block ends without an error, and vanishes otherwise.

    What is written goes to a hidden file beside the target, which is locked meanwhile; leftovers of writers that were
    killed are removed first. A link is written through to where it points; a device or a pipe is written to as it is.

    Parameters
    ----------
    path : str or Path

    Raises
    ------
    OutputError
        The file cannot be written: what was there is as it was.
    """
    path = Path(path)
    try:
        target, is_stream = _target(path)
        if not is_stream:
            _sweep(target)
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
            # Others, such as those of reading something in the block, are none of ours.
            if error.errno in _NO_ROOM and error.filename is None:
                raise cannot_write(path, error) from error
            raise
        try:
            stack.close()
        except OSError as error:
            raise cannot_write(path, error) from error
    sync_folder(target.parent)


def check_unchanged(path: str | Path, content: bytes) -> None:
    """Raise where a file is there already and holds something else than what is to be written.

    Raises
    ------
    ParameterError
        What is there would be lost.
    """
    path = Path(path)
    try:
        is_other = path.is_file() and path.stat().st_size > 0 and path.read_bytes() != content
    except OSError as error:
        raise cannot_write(path, error) from error
    if is_other:
        raise would_be_lost(path)


def would_be_lost(path: str | Path) -> ParameterError:
    """The error of a file that is there already and that this command did not write."""
    return ParameterError(
        f"{str(path)!r} is there already and holds something else, which would be lost. Give another path, or --force "
        "to overwrite it."
    )


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all: a temporary file beside it, then one rename."""
    with _replacing(file) as out:
        out.write(content)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder last through a power cut, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def cannot_write(path: Path, error: OSError) -> OutputError:
    """The error of a file that cannot be written, with what to do about it."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            remedy = "Free some space or give another path."
        case errno.EROFS | errno.EACCES | errno.EPERM:
            remedy = "Change the permissions of its folder or give another path."
        case errno.EISDIR | errno.ENOTDIR | errno.EEXIST:
            remedy = "Give another path."
        case errno.ENOENT:
            remedy = f"Make the folder {str(path.parent)!r} first or give another path."
        case _:
            remedy = "Try again or give another path."
    reason = error.strerror or str(error)
    return OutputError(f"{str(path)!r} cannot be written: {reason}. What was there is unchanged. {remedy}")


def _target(path: Path) -> tuple[Path, bool]:
    """The file that a path stands for, and whether it is a device or a pipe, which cannot be replaced."""
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
    """A new hidden file beside the target, which takes its place at the end; it is removed on any exception."""
    part, handle = _new_part(target)
    try:
        try:
            with contextlib.suppress(OSError):  # an old file keeps its permissions
                os.chmod(part, stat.S_IMODE(target.stat().st_mode))  # noqa: PTH101
            # A handle of its own, because some writers close the file they are given, and a closed file has no lock.
            with os.fdopen(os.dup(handle), "wb") as out:
                yield out
            os.fsync(handle)
            if fcntl is not None:
                # The lock is held until here: released earlier, another writer might take the file for a leftover.
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
        os.close(handle)  # swept by another writer between its making and its lock


def _prefix(target: Path) -> str:
    name = target.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = hashlib.sha256(os.fsencode(name)).hexdigest()
    return f".{name}."


def _sweep(target: Path) -> None:
    """Remove what writers of this target left that were killed."""
    prefix = _prefix(target)
    for name in os.listdir(target.parent):  # noqa: PTH208
        part = PART.fullmatch(name)
        if part is not None and f".{part[1]}." == prefix:
            with contextlib.suppress(OSError):
                _remove_abandoned(target.with_name(name))


def _remove_abandoned(part: Path) -> None:
    if fcntl is None:
        if time.time() - part.stat().st_mtime > _ABANDONED:
            part.unlink()
        return
    handle = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where its writer lives
        part.unlink()
    finally:
        os.close(handle)
