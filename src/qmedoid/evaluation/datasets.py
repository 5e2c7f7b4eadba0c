"""The small data sets of the paper and a sample of its large one, as arrays of numbers."""

import csv
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import ParameterError

Array = npt.NDArray[np.float64]
Encoding = Literal["onehot", "ordinal"]
ENCODINGS: tuple[Encoding, ...] = ("onehot", "ordinal")


@dataclass(frozen=True)
class Dataset:
    """A table of numbers with its labels.

    Attributes
    ----------
    name : str
        As it is called in tables.
    X : ndarray of shape (n, M)
    y : ndarray of shape (n,)
    feature_names : tuple of str
    class_names : tuple of str
        Names of the classes in the order of the sorted labels.
    """

    name: str
    X: Array
    y: npt.NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]


def load_heart(encoding: Encoding = "onehot") -> Dataset:
    """Heart disease: 918 patients, 11 columns of which 5 are categories (shipped with the package).

    ``"onehot"`` gives every category a column of its own (two-valued ones get one); ``"ordinal"`` numbers the
    categories of a column in alphabetical order.
    """
    if encoding not in ENCODINGS:
        raise ParameterError(f"The 'encoding' must be one of {list(ENCODINGS)}. Got {encoding!r} instead.")
    text = (files("qmedoid.evaluation") / "data" / "heart.csv").read_text(encoding="utf-8")
    header, *rows = csv.reader(text.splitlines())
    table = dict(zip(header, zip(*rows, strict=True), strict=True))
    labels = np.array([int(value) for value in table.pop("HeartDisease")])
    columns: dict[str, Array] = {}
    for name, values in table.items():
        columns |= _encoded(name, values, encoding)
    return Dataset("Heart disease", np.column_stack(list(columns.values())), labels, tuple(columns), ("no", "yes"))


def load_breast_cancer() -> Dataset:
    """Breast cancer (Wisconsin): 569 biopsies, 30 columns. Label 1 is malignant, as in the paper."""
    from sklearn.datasets import load_breast_cancer as load

    bunch = load()
    names = tuple(str(name) for name in bunch.feature_names)
    return Dataset("Breast cancer", bunch.data, 1 - bunch.target, names, ("benign", "malignant"))


def load_wine() -> Dataset:
    """Wine cultivars: 178 wines, 13 columns, 3 classes."""
    from sklearn.datasets import load_wine as load

    bunch = load()
    return Dataset("Wine", bunch.data, bunch.target, tuple(bunch.feature_names), ("1", "2", "3"))


def load_creditcard_sample() -> Dataset:
    """Credit-card frauds, a sample: all 492 frauds and 14,215 of 284,315 normal payments (shipped with the package).

    29 columns, V1 to V28 and Amount; Time, the seconds since the first payment, is left out. One row in 30 is a fraud
    here, and one in 579 in the whole table.
    """
    from qmedoid.evaluation.creditcard import TARGET, read_sample

    table = read_sample()
    names = tuple(name for name in table.column_names if name not in ("Time", TARGET))
    values = np.column_stack([table[name].to_numpy() for name in names]).astype(np.float64)
    labels = table[TARGET].to_numpy().astype(np.intp)
    return Dataset("Credit-card fraud (sample)", values, labels, names, ("normal", "fraud"))


LOADERS: dict[str, Callable[[], Dataset]] = {
    "heart": load_heart,
    "breast-cancer": load_breast_cancer,
    "wine": load_wine,
}
"""The three small data sets, for which the paper prints figures of one split."""


def load_dataset(name: str) -> Dataset:
    """One of the data sets ``heart``, ``breast-cancer`` and ``wine``."""
    if name not in LOADERS:
        raise ParameterError(f"There is no data set {name!r}. The data sets are {', '.join(LOADERS)}.")
    return LOADERS[name]()


def _encoded(name: str, values: tuple[str, ...], encoding: Encoding) -> dict[str, Array]:
    try:
        return {name: np.array([float(value) for value in values])}
    except ValueError:
        levels = sorted(set(values))
    if encoding == "ordinal":
        return {name: np.array([float(levels.index(value)) for value in values])}
    kept = levels[1:] if len(levels) == 2 else levels
    return {f"{name}={level}": np.array([float(value == level) for value in values]) for level in kept}
