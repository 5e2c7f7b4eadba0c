"""The small data sets of the paper and a sample of its large one, as arrays of numbers."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError

Encoding = Literal["onehot", "ordinal"]
ENCODINGS: tuple[Encoding, ...] = ("onehot", "ordinal")

SHIPPED: dict[str, str] = {
    "heart.csv": "948420b084d8a3a0ca42b8419fce9aee175879e43f8aedf712377899a67aa49b",
    "creditcard_sample.parquet": "00a08a96b117e89c5050e7bbd44eb2c0a2670bb5e2d0bd7736f40f2b1085fda5",
}
"""SHA-256 of the files that ship with the package, by name."""
NUMBERS: dict[str, str] = {
    "Breast cancer": "6dc969dcb24899e654bee75e2dfdcdb0a40f851da772fb11c0ccfe335f590c69",
    "Wine": "9a22e7b8003cbcf91057add6ca9bdb2db2db76442ffc8c7db7c298371aa643d7",
}
"""SHA-256 of the numbers of the data sets that other packages ship, see `numbers_digest`."""


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
    times : ndarray of shape (n,), optional
        Time of each row, in seconds from the first, where the table has times.
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


def shipped_path(file: str) -> Path:
    """Where a file of the package lies."""
    return Path(str(files("qmedoid.studies") / "data" / file))


def read_shipped(file: str) -> bytes:
    """What a file of the package holds; one that is not as it was shipped is refused."""
    path = shipped_path(file)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"The file {path} ships with qmedoid and cannot be read ({error.strerror}). Install qmedoid again."
        ) from error
    found = sha256(content).hexdigest()
    if found != SHIPPED[file]:
        raise DataError(
            f"The file {path} is not the one that ships with qmedoid: its SHA-256 is {found[:16]}…, and "
            f"{SHIPPED[file][:16]}… was shipped. Install qmedoid again."
        )
    return content


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


def load_heart(encoding: Encoding = "onehot") -> Dataset:
    """Heart disease: 918 patients, 11 columns of which 5 are categories (shipped with the package).

    ``"onehot"`` gives every category a column of its own (two-valued ones get one); ``"ordinal"`` numbers the
    categories of a column in alphabetical order.
    """
    if encoding not in ENCODINGS:
        raise ParameterError(f"The 'encoding' must be one of {list(ENCODINGS)}. Got {encoding!r} instead.")
    header, *rows = csv.reader(read_shipped("heart.csv").decode().splitlines())
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
    return _checked(Dataset("Breast cancer", bunch.data, 1 - bunch.target, names, ("benign", "malignant")))


def load_wine() -> Dataset:
    """Wine cultivars: 178 wines, 13 columns, 3 classes."""
    from sklearn.datasets import load_wine as load

    bunch = load()
    return _checked(Dataset("Wine", bunch.data, bunch.target, tuple(bunch.feature_names), ("1", "2", "3")))


def load_creditcard_sample() -> Dataset:
    """Credit-card frauds, a sample: all 492 frauds and 14,215 of 284,315 normal payments (shipped with the package).

    29 columns, V1 to V28 and Amount; Time, the seconds since the first payment, is not one of them but in `times`. One
    row in 30 is a fraud here, and one in 579 in the whole table.
    """
    from qmedoid.studies.creditcard import read_sample

    return of_payments("Credit-card fraud (sample)", read_sample())


def of_payments(name: str, table: Any) -> Dataset:
    """The credit-card table, or some of its rows (a pyarrow.Table), as a data set of that name."""
    from qmedoid.studies.creditcard import FEATURES, TARGET, numbers_of, times_of

    labels = table[TARGET].to_numpy().astype(np.intp)
    return Dataset(name, numbers_of(table), labels, FEATURES, ("normal", "fraud"), times_of(table))


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


def _checked(data: Dataset) -> Dataset:
    found = numbers_digest(data.X, data.y)
    if found != NUMBERS[data.name]:
        raise DataError(
            f"The data set {data.name!r} of the installed scikit-learn is not the one that the figures are about: the "
            f"SHA-256 of its {data.X.shape[0]} × {data.X.shape[1]} numbers is {found[:16]}…, and "
            f"{NUMBERS[data.name][:16]}… is known. Install a released scikit-learn."
        )
    return data


def _encoded(name: str, values: tuple[str, ...], encoding: Encoding) -> dict[str, Array]:
    try:
        return {name: np.array([float(value) for value in values])}
    except ValueError:
        levels = sorted(set(values))
    if encoding == "ordinal":
        return {name: np.array([float(levels.index(value)) for value in values])}
    kept = levels[1:] if len(levels) == 2 else levels
    return {f"{name}={level}": np.array([float(value == level) for value in values]) for level in kept}
