"""Saved models of this process, by the hash of their files: each is loaded once, whoever asks for it.

Work that is spread over processes (Dask, Spark, Ray) names a model by the SHA-256 of its file. The hash decides which
model it is: another file under the same path is refused, and never used in its place.
"""

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from qmedoid.exceptions import ModelError
from qmedoid.model.storage.model_file import ModelFile, load_bytes, load_file

MOST_MODELS = 8
"""Models that a process keeps: those that were asked for last."""


class _Models:
    """The models that were asked for last; several threads that ask for one wait for one load."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, ModelFile] = OrderedDict()
        self._loading: dict[str, threading.Lock] = {}

    def get(self, sha256: str, load: Callable[[], ModelFile]) -> ModelFile:
        """The model with this hash; `load` is called where it is not kept, and refuses another one."""
        with self._lock:
            alone = self._loading.setdefault(sha256, threading.Lock())
        # One lock for each model: while a large one is loaded, others can be had.
        with alone:
            with self._lock:
                if sha256 in self._kept:
                    self._kept.move_to_end(sha256)
                    return self._kept[sha256]
            return self.keep(load())

    def keep(self, model: ModelFile) -> ModelFile:
        """Keep a model, and forget the one that was not asked for longest where there are too many."""
        with self._lock:
            self._kept[model.sha256] = model
            self._kept.move_to_end(model.sha256)
            while len(self._kept) > MOST_MODELS:
                forgotten, _ = self._kept.popitem(last=False)
                self._loading.pop(forgotten, None)
        return model


_models = _Models()


def cached_model(path: str | Path, sha256: str) -> ModelFile:
    """The saved model whose file has this hash, loaded from the path once per process.

    A model that is kept is the right one by its hash, whatever lies at the path by now; the file is not read again. It
    is shared: callers must not change it. Safe to call from several threads.

    Parameters
    ----------
    path : str or Path
        Its file.
    sha256 : str
        SHA-256 of the file, as `SavedModel.sha256` has it.

    Raises
    ------
    ModelError
        The file has another hash, or cannot be read.
    """

    def load() -> ModelFile:
        loaded = load_file(path)
        if loaded.sha256 != sha256:
            raise ModelError(
                f"The saved model {str(path)!r} is not the one that was meant: its SHA-256 is {loaded.sha256}, and "
                f"{sha256} is expected. Restore that file, or start again with the new one."
            )
        return loaded

    return _models.get(sha256, load)


def model_of_bytes(data: bytes, sha256: str) -> ModelFile:
    """The saved model whose file has this hash, loaded from the bytes of the file once per process; see `cached_model`.

    For processes that cannot reach the file.
    """

    def load() -> ModelFile:
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise ModelError(
                f"The {len(data):,} bytes are not those of the saved model that was meant: their SHA-256 is {found}, "
                f"and {sha256} is expected. Send the bytes of that file."
            )
        return load_bytes(data)

    return _models.get(sha256, load)


def load_cached(path: str | Path) -> ModelFile:
    """The saved model that lies at the path now, and is kept for `cached_model` from then on."""
    loaded = load_file(path)
    return _models.get(loaded.sha256, lambda: loaded)


def _forget() -> None:
    """Begin anew, as in a forked process: a lock may have been held by a thread that is not there."""
    global _models
    _models = _Models()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
