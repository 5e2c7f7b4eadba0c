"""What a process keeps by its hash, made once: saved models, and objects that travel to a worker once.

Work that is spread over processes (Dask, Spark, Ray) names a model by the SHA-256 of its file. The hash decides which
model it is: another file under the same path is refused, and never used in its place.
"""

import hashlib
import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from qmedoid.exceptions import ModelError
from qmedoid.model.storage.model_file import ModelFile, load_file

T = TypeVar("T")


class Kept(Generic[T]):
    """The values that were requested last, by key; several threads that request one wait for one call of `make`."""

    def __init__(self, most: int) -> None:
        self.most, self._values = most, OrderedDict[str, T]()
        self._begin()
        if hasattr(os, "register_at_fork"):
            # In a forked process, a lock may have been held by a thread that is not there.
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = Lock()
        self._values.clear()

    def get(self, key: str, make: Callable[[], T]) -> T:
        """The value of a key; made where it is not kept."""
        with self._lock:
            if key not in self._values:
                self._values[key] = make()
            self._values.move_to_end(key)
            while len(self._values) > self.most:
                self._values.popitem(last=False)
            return self._values[key]


_models = Kept[ModelFile](most=8)
_objects = Kept[Any](most=4)


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


def load_cached(path: str | Path) -> ModelFile:
    """The saved model that lies at the path now, and is kept for `cached_model` from then on."""
    loaded = load_file(path)
    return _models.get(loaded.sha256, lambda: loaded)


@dataclass(frozen=True)
class Shared:
    """An object as bytes, and their hash; the last few that a process has made of them are kept.

    In a graph of tasks it is one task that others depend on: the scheduler holds its bytes once, every worker gets
    them once, and what is lost with a worker is made again from the task.
    """

    sha256: str
    data: bytes

    @classmethod
    def of(cls, value: Any) -> "Shared":
        """An object that can be sent."""
        import cloudpickle  # comes with Dask

        data = cloudpickle.dumps(value)
        return cls(hashlib.sha256(data).hexdigest(), data)

    @property
    def key(self) -> str:
        """The name of its task."""
        return f"qmedoid-{self.sha256}"

    def value(self) -> Any:
        """The object; all threads of a process have the same one."""
        import cloudpickle

        return _objects.get(self.sha256, lambda: cloudpickle.loads(self.data))
