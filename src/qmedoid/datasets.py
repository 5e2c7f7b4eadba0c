"""The data sets of the paper as tables: what they are, where they lie, how to get those that are not here.

Shipped files are checked by their SHA-256 whenever they are read, and the whole credit-card table, which goes round in
several forms, by its counts.
"""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.model.storage.atomic import atomic_file
from qmedoid.spelling import did_you_mean

FILE = "creditcard_sample.parquet"
SHIPPED: dict[str, str] = {
    "heart.csv": "948420b084d8a3a0ca42b8419fce9aee175879e43f8aedf712377899a67aa49b",
    FILE: "00a08a96b117e89c5050e7bbd44eb2c0a2670bb5e2d0bd7736f40f2b1085fda5",
}
"""SHA-256 of the files that ship with the package, by name."""
TARGET, TIME = "Class", "Time"
FEATURES = (*(f"V{i}" for i in range(1, 29)), "Amount")
N_ROWS, N_FRAUDS, AMOUNTS = 284_807, 492, 25_162_590.01
"""Rows and frauds of the whole credit-card table, and the sum of its amounts."""
HOW_TO_GET = (
    "Get the file creditcard.csv (Kaggle, mlg-ulb/creditcardfraud), and set QMEDOID_DATA to the folder that holds it, "
    "or creditcard.parquet made of it"
)
_OPENML = 1597
_ENDINGS = (".parquet", ".csv")


@dataclass(frozen=True)
class Entry:
    """A data set: size of its table, the target among the columns; the class to look for, if there is one.

    `file` is its name in the package, if it ships with it.
    """

    rows: int
    columns: int
    target: str
    positive: str
    source: str
    licence: str
    file: str | None = None


CATALOG: dict[str, Entry] = {
    "heart": Entry(918, 12, "HeartDisease", "1", "ships with qmedoid", "ODbL 1.0", "heart.csv"),
    "breast-cancer": Entry(569, 31, "target", "malignant", "ships with scikit-learn", "CC BY 4.0 (UCI)"),
    "wine": Entry(178, 14, "target", "", "ships with scikit-learn", "CC BY 4.0 (UCI)"),
    "creditcard-sample": Entry(14_707, 31, TARGET, "1", "ships with qmedoid", "DbCL 1.0 (Kaggle)", FILE),
    "creditcard": Entry(N_ROWS, 31, TARGET, "1", "QMEDOID_DATA, or OpenML", "DbCL 1.0 (Kaggle)"),
}


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
    named = os.environ.get("QMEDOID_CACHE")
    return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qmedoid"


def status(name: str) -> tuple[Literal["checked", "absent", "refused"], str]:
    """Look for a data set and check it, and say what is wrong with it; nothing is downloaded."""
    if name == "creditcard" and locate(name) is None:
        return "absent", ""
    try:
        table_of(name)
    except DataError as error:
        return "refused", str(error)
    return "checked", ""


def table_of(name: str) -> pa.Table:
    """A data set as a table, the target as its last column, checked; what is not here is downloaded and kept."""
    known = entry(name)
    if name == "creditcard":
        path = locate(name)
        if path is None:
            return _downloaded()
        try:
            return read_whole(path)
        except DataError as error:
            if path.parent != cache_folder():
                raise
            raise DataError(f"{error} It is a copy in the cache: delete it and it is downloaded again.") from error
    if known.file is None:
        return _of_scikit_learn(name)
    content = pa.BufferReader(read_shipped(known.file))
    # By no thread: one that lets go of a Python object while the process ends aborts it, and `read_table` starts some.
    if known.file.endswith(".parquet"):
        with pq.ParquetFile(content) as file:
            return file.read(use_threads=False)
    from pyarrow.csv import ReadOptions, read_csv

    return read_csv(content, ReadOptions(use_threads=False))


def shipped_path(file: str) -> Path:
    """Where a file of the package lies."""
    return Path(__file__).parent / "data" / file


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


def _of_scikit_learn(name: str) -> pa.Table:
    """A data set that scikit-learn ships."""
    from sklearn import datasets

    is_wine = name == "wine"
    bunch = datasets.load_wine() if is_wine else datasets.load_breast_cancer()
    codes = bunch.target if is_wine else 1 - bunch.target  # as in the paper, malignant is 1
    names = ("1", "2", "3") if is_wine else ("benign", "malignant")
    columns = dict(zip(map(str, bunch.feature_names), bunch.data.T, strict=True))
    return pa.table({**columns, "target": [names[code] for code in codes]})


def _downloaded() -> pa.Table:
    """Fetch the credit-card table from OpenML, check it, and keep it in the cache."""
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
        pq.write_table(table, file)
    return table


def read_whole(path: Path) -> pa.Table:
    """The whole credit-card table of a Parquet file, or of a CSV file as Kaggle has it, checked by its counts."""
    from pyarrow.csv import ConvertOptions, read_csv

    # Kaggle's file has quotes around the classes, and R may have written a second as 1e+05: nothing is left to guesses.
    types = dict.fromkeys((TIME, *FEATURES, TARGET), pa.float64())
    try:
        if path.suffix == ".csv":
            table = read_csv(path, convert_options=ConvertOptions(column_types=types))
            if TARGET in table.column_names:
                index = table.column_names.index(TARGET)
                table = table.set_column(index, TARGET, table[TARGET].cast(pa.int64()))
        else:
            table = pq.read_table(path, memory_map=True, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as the credit-card table ({error}). {HOW_TO_GET}.") from error
    check_whole(table, str(path))
    return table


def check_whole(table: pa.Table, source: str) -> None:
    """Refuse a table that is not the published one, by its columns, rows, frauds and amounts.

    The seconds may be missing: a copy on OpenML marks them as no feature. The rows are in their order all the same.
    """
    numbers = {
        field.name for field in table.schema if pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
    }
    missing = [name for name in (*FEATURES, TARGET) if name not in numbers]
    if missing:
        raise DataError(f"The credit-card table in {source} lacks the numbers {some_of(missing)}. {HOW_TO_GET}.")
    frauds = int(np.count_nonzero(table[TARGET].to_numpy() == 1))
    amounts = float(table["Amount"].to_numpy().sum())
    if (len(table), frauds) != (N_ROWS, N_FRAUDS) or not abs(amounts - AMOUNTS) < 0.01:
        raise DataError(
            f"The credit-card table has {N_ROWS:,} rows, {N_FRAUDS} frauds and amounts of {AMOUNTS:,.2f} in all. Got "
            f"{len(table):,}, {frauds} and {amounts:,.2f} from {source}. {HOW_TO_GET}."
        )
