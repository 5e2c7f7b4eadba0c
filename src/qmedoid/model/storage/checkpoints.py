"""Trainings kept in a folder, so that one that was cut off goes on where it was."""

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.numpy

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, warn
from qmedoid.model.storage.atomic import remove_leftovers, write_atomic
from qmedoid.optimize.minimizers import TrainingState

FORMAT = 1
"""Number of the file format; a file of another number is not read."""
SUFFIX = ".training"
# A state of a few hundred parameters takes kilobytes; anything near this is not one.
_LARGEST = 2**28
# All that a file can make its reading raise, whatever it holds.
_UNREADABLE = (
    ValueError,
    KeyError,
    TypeError,
    OverflowError,
    RecursionError,
    OSError,
    safetensors.SafetensorError,
)


class CheckpointFolder:
    """A folder with one small file per training, named by what the training depends on.

    Files are written atomically. They hold arrays and JSON: reading one runs no code.

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
    arrays = state.arrays()
    metadata = {"format": str(FORMAT), "name": name, "counts": json.dumps(state.counts())}
    content = safetensors.numpy.save(arrays, metadata)
    return hashlib.sha256(content).digest() + content  # the array format has no checksum


def _read(name: str, content: bytes) -> TrainingState:
    digest, body = content[:32], content[32:]
    if hashlib.sha256(body).digest() != digest:
        raise ValueError("its contents do not match its checksum")
    header = json.loads(body[8 : 8 + int.from_bytes(body[:8], "little")])
    metadata: Mapping[str, str] = header["__metadata__"]
    if metadata["format"] != str(FORMAT):
        raise ValueError(f"it has format {metadata['format']}, and this version reads {FORMAT}")
    if metadata["name"] != name:
        raise ValueError("it belongs to another training")
    arrays: dict[str, Array] = safetensors.numpy.load(body)
    counts: dict[str, Any] = json.loads(metadata["counts"])
    return TrainingState.restore(arrays, counts)
