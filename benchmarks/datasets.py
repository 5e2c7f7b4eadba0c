"""The data sets of the paper as numbers with labels, for studies."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.datasets import FEATURES, TARGET, TIME, entry, table_of
from qmedoid.exceptions import ParameterError


@dataclass(frozen=True)
class Dataset:
    """A table of numbers with its labels.

    `X` has shape (n, M). Names of classes are in the order of the sorted labels; `times`, where the table has them, are
    seconds from the first row.
    """

    name: str
    X: Array
    y: npt.NDArray[Any]
    feature_names: tuple[str, ...]
    class_names: tuple[str, ...]
    times: Array | None = None

    @property
    def n_columns(self) -> int:
        """Columns of the table: those that one category is split into (``"Sex=M"``) count as one."""
        return len({name.partition("=")[0] for name in self.feature_names})


def load_heart() -> Dataset:
    """Heart disease: 918 patients, 11 columns of which 5 are categories (shipped with the package).

    Every category has a column of its own; two-valued ones have one.
    """
    table, columns = table_of("heart"), dict[str, Any]()
    *names, target = table.column_names
    for name in names:
        values = np.array(table[name].to_pylist())
        if values.dtype.kind == "U":
            levels = np.unique(values)
            kept = levels[1:] if len(levels) == 2 else levels
            columns |= {f"{name}={level}": values == level for level in kept}
        else:
            columns[name] = values
    numbers = np.column_stack(list(columns.values())).astype(np.float64)
    return Dataset("Heart disease", numbers, np.array(table[target].to_pylist()), tuple(columns), ("no", "yes"))


def load_breast_cancer() -> Dataset:
    """Breast cancer (Wisconsin): 569 biopsies, 30 columns. Label 1 is malignant, as in the paper."""
    return _of_numbers("breast-cancer", "Breast cancer", ("benign", "malignant"))


def load_wine() -> Dataset:
    """Wine cultivars: 178 wines, 13 columns, 3 classes."""
    return _of_numbers("wine", "Wine", ("1", "2", "3"))


def _of_numbers(name: str, title: str, classes: tuple[str, ...]) -> Dataset:
    table, target = table_of(name), entry(name).target
    labels = np.array([classes.index(label) for label in table[target].to_pylist()])
    *columns, _ = table.column_names
    return Dataset(title, np.column_stack([table[one].to_numpy() for one in columns]), labels, tuple(columns), classes)


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


def numbers_digest(X: Array, y: npt.NDArray[Any]) -> str:
    """SHA-256 of numbers and labels, the same on every machine: 64 bits each, the lowest byte first, row by row."""
    shape = json.dumps([*X.shape, *y.shape])
    is_number = np.issubdtype(y.dtype, np.integer) or y.dtype == np.bool_
    labels = (
        np.ascontiguousarray(y, dtype="<i8").data if is_number else json.dumps([str(label) for label in y]).encode()
    )
    whole = sha256(shape.encode())
    whole.update(np.ascontiguousarray(X, dtype="<f8").data)
    whole.update(labels)
    return whole.hexdigest()


def load_creditcard_sample() -> Dataset:
    """Credit-card frauds, a sample: all 492 frauds and 14,215 of 284,315 normal payments (shipped with the package).

    29 columns, V1 to V28 and Amount; Time, the seconds since the first payment, is not one of them but in `times`. One
    row in 30 is a fraud here, and one in 579 in the whole table.
    """
    return _of_payments("Credit-card fraud (sample)", table_of("creditcard-sample"))


def load_creditcard() -> Dataset:
    """Credit-card frauds: 284,807 payments over two days, 492 of them frauds; downloaded where they are not here."""
    return _of_payments("Credit-card fraud", table_of("creditcard"))


def _of_payments(name: str, table: pa.Table) -> Dataset:
    """The credit-card table, or some of its rows, as a data set of that name."""
    values, start = np.empty((len(table), len(FEATURES))), 0
    for batch in table.select(FEATURES).to_batches(max_chunksize=8192):  # a block of rows fits into the cache
        values[start : start + len(batch)] = np.stack([column.to_numpy() for column in batch.columns], axis=1)
        start += len(batch)
    # A table without seconds is in the order of time all the same.
    times = table[TIME].to_numpy() if TIME in table.column_names else np.arange(len(table))
    labels = table[TARGET].to_numpy().astype(np.intp)
    return Dataset(name, values, labels, FEATURES, ("normal", "fraud"), times.astype(np.float64))
