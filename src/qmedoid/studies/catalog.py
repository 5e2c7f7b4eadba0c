"""The data sets that the package knows: what they are, where they lie, and how to get those that are not here.

Each is checked whenever it is read: the shipped files and the numbers of other packages by their SHA-256, the whole
credit-card table, which goes round in several forms, by its counts.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.model.storage.atomic import atomic_file
from qmedoid.spelling import did_you_mean
from qmedoid.studies.datasets import (
    FILE,
    HOW_TO_GET,
    N_ROWS,
    TARGET,
    Dataset,
    check_whole,
    load_breast_cancer,
    load_creditcard_sample,
    load_dataset,
    load_heart,
    load_wine,
    numbers_digest,
    of_payments,
    read_sample,
    read_shipped,
    read_whole,
    shipped_path,
)

HEART_ORDINAL = "heart-ordinal"
"""The heart data with categories numbered in alphabetical order: one reading of what the paper leaves open."""
FULL_FRAUD, FRAUD_SAMPLE = "creditcard", "creditcard-sample"
_OPENML = 1597
_ENDINGS = (".parquet", ".csv")


@dataclass(frozen=True)
class Entry:
    """A data set: size of its table, the target among the columns; the class to look for, if there is one.

    `check` says what is compared when it is read, `file` is its name in the package, if it ships with it.
    """

    rows: int
    columns: int
    target: str
    positive: str
    source: str
    licence: str
    check: str
    file: str | None = None


class Status(NamedTuple):
    """Whether a data set is on this machine, and what is wrong with it: nothing, if the text is empty."""

    here: bool
    problem: str = ""

    @property
    def word(self) -> str:
        """``"checked"``, ``"absent"`` or ``"refused"``."""
        return "refused" if self.problem else "checked" if self.here else "absent"


_FILE, _NUMBERS, _COUNTS = "SHA-256 of the file", "SHA-256 of the numbers", "rows, frauds and sum of the amounts"
_KAGGLE, _UCI = "DbCL 1.0 (Kaggle)", "CC BY 4.0 (UCI)"

CATALOG: dict[str, Entry] = {
    "heart": Entry(918, 12, "HeartDisease", "1", "ships with qmedoid", "ODbL 1.0", _FILE, "heart.csv"),
    "breast-cancer": Entry(569, 31, "target", "malignant", "ships with scikit-learn", _UCI, _NUMBERS),
    "wine": Entry(178, 14, "target", "", "ships with scikit-learn", _UCI, _NUMBERS),
    "creditcard-sample": Entry(14_707, 31, TARGET, "1", "ships with qmedoid", _KAGGLE, _FILE, FILE),
    "creditcard": Entry(N_ROWS, 31, TARGET, "1", "QMEDOID_DATA, or OpenML", _KAGGLE, _COUNTS),
}
_GENERATED: dict[str, Callable[[], Dataset]] = {"breast-cancer": load_breast_cancer, "wine": load_wine}


def entry(name: str) -> Entry:
    """The data set of that name."""
    if name not in CATALOG:
        hint = did_you_mean(name, CATALOG)
        raise ParameterError(f"There is no data set {name!r}.{hint} The data sets are {', '.join(CATALOG)}.")
    return CATALOG[name]


def locate(name: str) -> Path | None:
    """The file of a data set on this machine, or None where there is none.

    The whole credit-card table is ``creditcard.parquet`` or ``creditcard.csv`` in the folder ``QMEDOID_DATA``, else in
    the cache.
    """
    known = entry(name)
    if known.file is not None:
        return shipped_path(known.file)
    folders = [Path(folder) for folder in (os.environ.get("QMEDOID_DATA"), cache_folder()) if folder]
    paths = (folder / f"{name}{ending}" for folder in folders for ending in _ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def cache_folder() -> Path:
    """Where downloads are kept: ``QMEDOID_CACHE``, else the user's cache folder."""
    own = os.environ.get("QMEDOID_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qmedoid"


def cell_folder() -> Path:
    """Folder of the results of all studies by default."""
    return cache_folder() / "cells"


def status(name: str) -> Status:
    """Look for a data set and check it; nothing is downloaded."""
    if name not in _GENERATED and locate(name) is None:
        return Status(here=False)
    try:
        table_of(name)
    except DataError as error:
        return Status(here=True, problem=str(error))
    return Status(here=True)


def table_of(name: str) -> pa.Table:
    """A data set as a table, the target as its last column, checked; what is not here is downloaded and kept."""
    known = entry(name)
    if name == "creditcard":
        return _whole_creditcard()
    if name == "creditcard-sample":
        return read_sample()
    if known.file is not None:
        from pyarrow.csv import ReadOptions, read_csv

        return read_csv(pa.BufferReader(read_shipped(known.file)), ReadOptions(use_threads=False))
    data = _GENERATED[name]()
    columns: dict[str, Any] = dict(zip(data.feature_names, data.X.T, strict=True))
    return pa.table({**columns, "target": [data.class_names[code] for code in data.y]})


def load_creditcard() -> Dataset:
    """Credit-card frauds: 284,807 payments over two days, 492 of them frauds; downloaded where they are not here."""
    return of_payments("Credit-card fraud", _whole_creditcard())


@cache
def load_data(name: str) -> Dataset:
    """The data set of a cell, read and checked once in a process."""
    others = {
        HEART_ORDINAL: lambda: load_heart("ordinal"),
        FULL_FRAUD: load_creditcard,
        FRAUD_SAMPLE: load_creditcard_sample,
    }
    return others[name]() if name in others else load_dataset(name)


@cache
def data_digest(name: str) -> str:
    """`digest` of the data set of a cell."""
    return digest(load_data(name))


def digest(data: Dataset) -> str:
    """SHA-256 of all that a result can depend on: numbers, labels, times, and the names of columns and classes."""
    times = None if data.times is None else numbers_digest(data.times[:, None], np.empty(0, dtype=np.intp))
    parts = [numbers_digest(data.X, data.y), times, data.feature_names, data.class_names]
    return sha256(json.dumps(parts).encode()).hexdigest()


def _whole_creditcard() -> pa.Table:
    path = locate("creditcard")
    if path is None:
        return _downloaded()
    try:
        return read_whole(path)
    except DataError as error:
        if path.parent != cache_folder():
            raise
        raise DataError(f"{error} It is a copy in the cache: delete it and it is downloaded again.") from error


def _downloaded() -> pa.Table:
    """Fetch the credit-card table from OpenML, check it, and keep it in the cache."""
    from pyarrow.parquet import write_table
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(data_id=_OPENML, as_frame=False, parser="liac-arff")
    except Exception as error:  # scikit-learn lets through whatever the network and the parser raise
        raise DataError(
            f"The data set 'creditcard' is not here and could not be downloaded from OpenML ({error}). {HOW_TO_GET}."
        ) from error
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    table = pa.table({**columns, TARGET: bunch.target.astype(float).astype(int)})
    check_whole(table, "OpenML")
    path = cache_folder() / "creditcard.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        write_table(table, file)
    return table
