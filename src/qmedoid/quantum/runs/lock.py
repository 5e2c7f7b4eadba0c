"""A lock on a folder that ends with its process, however that ends."""

import os
from pathlib import Path

from qmedoid.exceptions import OutputError, ParameterError

try:
    import fcntl
except ModuleNotFoundError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"
"""The file that is locked."""


class FolderLock:
    """Held by one process at a time; taken when it is made.

    Raises
    ------
    ParameterError
        Another process holds it.
    OutputError
        The file of the lock cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / NAME
        while True:
            try:
                handle = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                raise OutputError(f"The folder {str(folder)!r} cannot be written to: {error.strerror}.") from error
            try:
                _take(handle)
                if _is_same(handle, self.file):
                    break
            except OSError as error:
                os.close(handle)
                raise ParameterError(
                    f"Another process is at work in {str(folder)!r}: wait for its end, stop it, or give another folder."
                ) from error
            except BaseException:
                os.close(handle)
                raise
            os.close(handle)  # removed by its holder before it was taken
        self._handle: int | None = handle

    def release(self, *, remove: bool = False) -> None:
        """Give the lock back, and remove its file if asked."""
        if self._handle is None:
            return
        if remove and fcntl is not None:
            self.file.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = None
        if remove:
            self.file.unlink(missing_ok=True)


def _take(handle: int) -> None:
    """Lock a file or raise an OSError at once."""
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    else:
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)


def _is_same(handle: int, file: Path) -> bool:
    """Whether a path still is the file that was opened."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return False
    mine = os.fstat(handle)
    return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)
