"""A cell: one method on one split of one data set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from qmedoid.studies.splits import SplitKind

Result = dict[str, Any]
"""Plain numbers, strings, lists and dictionaries: what JSON can hold."""


@dataclass(frozen=True, order=True)
class Cell:
    """One fit and its metrics.

    Attributes
    ----------
    part : str
        Part of a study, with methods and a protocol for all its data sets.
    data : str
        Name of the data set.
    split : {"random", "time", "grouped"}
        Kind of the split, see `qmedoid.studies.splits`.
    seed : int
        Seed of the split and of the method.
    method : str
    """

    part: str
    data: str
    split: SplitKind
    seed: int
    method: str

    def __str__(self) -> str:
        return f"{self.data}, {self.method}, {self.split} split {self.seed}"


@dataclass(frozen=True)
class StudyMethod:
    """How a method is fitted on a split, and which metrics are kept.

    Attributes
    ----------
    run : callable (data, Cell, **settings) -> Result
        A function of a module, so that other processes find it. What its module imports is part of the key: plain
        classifiers are run by modules that do not import ours, and keep their results while ours change.
    settings : mapping
        Arguments of `run` that JSON can hold; part of the key.
    seconds : float
        Rough time of a cell on one core.
    is_ours : bool
    splits : tuple of {"random", "time", "grouped"}
        Kinds of splits that it is run on.
    """

    run: Callable[..., Result]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 1.0
    is_ours: bool = False
    splits: tuple[SplitKind, ...] = ("random",)
