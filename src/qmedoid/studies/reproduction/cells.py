"""A cell: one method fitted on one split of one data set. What it depends on is its key in the store."""

import hashlib
import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Literal

from qmedoid._version import __version__
from qmedoid.kernels._backend import compiled

Result = dict[str, Any]
"""Plain numbers, strings, lists and dictionaries: what JSON can hold."""
SplitKind = Literal["random", "time", "apart"]
Study = Literal["small", "fraud"]

_SOURCES = (".py", ".pyx", ".c", ".h")
# Every cell is made by these: the splits, the judging and its metrics.
_COMMON = (
    *("studies/splits.py", "studies/datasets.py", "studies/reproduction/judging.py"),
    *("metrics/classification.py", "metrics/ranking.py"),
)
_OF_STUDY: dict[Study, tuple[str, ...]] = {
    "small": ("studies/reproduction/small.py", "studies/baselines.py"),
    "fraud": (
        *("studies/reproduction/fraud.py", "studies/rare_baselines.py", "studies/baselines.py"),
        *("metrics/operating_points.py", "metrics/thresholds.py"),
    ),
}
_OF_OURS = (
    *("kernels", "geometry", "optimize", "variational", "methods", "model", "calibration", "estimators", "metrics"),
    *("studies/reproduction/own.py", "studies/reproduction/fraud_printed.py"),
)


@dataclass(frozen=True, order=True)
class Cell:
    """One fit and what it shows.

    Attributes
    ----------
    study : {"small", "fraud"}
        Which protocol it follows.
    data : str
        Name of the data set.
    split : {"random", "time", "apart"}
        Stratified by chance, in the order of time, or with equal rows kept on one side.
    seed : int
        Of the split and of the method.
    method : str
    is_ours : bool
        Whether the package itself is what is fitted.
    """

    study: Study
    data: str
    split: SplitKind
    seed: int
    method: str
    is_ours: bool

    def __str__(self) -> str:
        return f"{self.data}, {self.method}, {self.split} split {self.seed}"


def cell_key(cell: Cell, data_digest: str) -> str:
    """SHA-256 of all that a cell's result depends on: itself, the data, the sources that make it, and versions."""
    sources = _COMMON + _OF_STUDY[cell.study] + (_OF_OURS if cell.is_ours else ())
    depends_on = {"cell": asdict(cell), "data": data_digest, "sources": source_digest(sources), "versions": versions()}
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of the interpreter and of the packages that fit and judge, and which kernels are used."""
    kernels = "numpy" if compiled("search") is None else "compiled"
    found = {"qmedoid": __version__, "kernels": kernels, "python": platform.python_version()}
    found["machine"] = platform.machine()
    for package in ("numpy", "scipy", "scikit-learn", "lightgbm", "imbalanced-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


@cache
def source_digest(parts: tuple[str, ...]) -> str:
    """SHA-256 of the package's source files and folders of these names."""
    digest = hashlib.sha256()
    for part in parts:
        for file in _files_of(files("qmedoid").joinpath(part)):
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _files_of(node: Traversable) -> Iterable[Traversable]:
    if node.is_file():
        if node.name.endswith(_SOURCES):
            yield node
        return
    for child in sorted(node.iterdir(), key=lambda entry: entry.name):
        yield from _files_of(child)
