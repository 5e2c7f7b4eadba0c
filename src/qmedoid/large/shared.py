"""Objects that travel to a worker once, and are made there once: known by the hash of their bytes."""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

import cloudpickle

_KEPT = 4
_MADE: "OrderedDict[str, Any]" = OrderedDict()
_LOCK = Lock()


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
        data = cloudpickle.dumps(value)
        return cls(hashlib.sha256(data).hexdigest(), data)

    @property
    def key(self) -> str:
        """The name of its task."""
        return f"qmedoid-{self.sha256}"

    def value(self) -> Any:
        """The object; all threads of a process have the same one."""
        with _LOCK:
            if self.sha256 not in _MADE:
                _MADE[self.sha256] = cloudpickle.loads(self.data)
                while len(_MADE) > _KEPT:
                    _MADE.popitem(last=False)
            _MADE.move_to_end(self.sha256)
            return _MADE[self.sha256]
