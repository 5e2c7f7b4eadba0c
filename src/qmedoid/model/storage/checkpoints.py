"""Trainings kept in a folder, so that one that was cut off goes on where it was."""

import contextlib
import hashlib
import json
import tempfile
from pathlib import Path

from qmedoid.exceptions import DataError, warn
from qmedoid.model.storage.atomic import remove_leftovers, write_atomic
from qmedoid.optimize.minimizers import TrainingState

FORMAT = 2
"""Number of the file format; a file of another number is not read."""
SUFFIX = ".training"
# A state of a few hundred parameters takes kilobytes; anything near this is not one.
_LARGEST = 2**28
# All that a file can make its reading raise, whatever it holds.
_UNREADABLE = (ValueError, LookupError, TypeError, OverflowError, RecursionError, OSError)


class CheckpointFolder:
    """A folder with one small file per training, named by what the training depends on.

    Files are written atomically. They hold a checksum and JSON: reading one runs no code.

    Parameters
    ----------
    path : Path
        Made when it is not there.
    every : int
        Steps between two states that are written; the last is always written.
    """

    def __init__(self, path: Path, every: int = 25) -> None:
        self.path, self.every = path, every
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise DataError(
                f"The checkpoint folder {str(self.path)!r} cannot be used: {error.strerror}. Give another path."
            ) from error

    def load(self, name: str) -> TrainingState | None:
        """The last state written under this name; None where there is none, or where its file is damaged."""
        file = self._file(name)
        with contextlib.suppress(OSError):
            remove_leftovers(file.parent, file)
        try:
            size = file.stat().st_size
        except FileNotFoundError:
            return None
        try:
            if size > _LARGEST:
                raise ValueError(f"it has {size} bytes")
            return _read(name, file.read_bytes())
        except _UNREADABLE as error:
            warn(f"The checkpoint {file.name} cannot be read ({error}): its training starts anew.")
            return None

    def note(self, name: str, state: TrainingState, *, finished: bool) -> None:
        """Write the state if its step is due; where it cannot be written, say so and let the training go on."""
        if finished or state.step % self.every == 0:
            try:
                write_atomic(self._file(name), _written(name, state))
            except OSError as error:
                warn(
                    f"A checkpoint could not be written to {str(self.path)!r} ({error.strerror}): the training goes on."
                )

    def _file(self, name: str) -> Path:
        return self.path / (name + SUFFIX)


def _written(name: str, state: TrainingState) -> bytes:
    content = json.dumps({"format": FORMAT, "name": name, "state": state.as_dict()}).encode()
    return hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def _read(name: str, content: bytes) -> TrainingState:
    digest, _, body = content.partition(b"\n")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("its contents do not match its checksum")
    document = json.loads(body)
    if document["format"] != FORMAT:
        raise ValueError(f"it has format {document['format']}, and this version reads {FORMAT}")
    if document["name"] != name:
        raise ValueError("it belongs to another training")
    return TrainingState.restore(document["state"])
