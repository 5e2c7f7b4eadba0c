"""The data sets that the package knows: what they are, where they lie, and how to get those that are not here."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid.artifacts.whole import whole_file
from qmedoid.evaluation.creditcard import N_FRAUDS, N_ROWS, TARGET, read_sample
from qmedoid.evaluation.datasets import Dataset, load_breast_cancer, load_wine
from qmedoid.exceptions import DataError, ParameterError

AMOUNTS = 25_162_590.01
"""Sum of the amounts of all payments in the credit-card table."""
_OPENML = 1597


@dataclass(frozen=True)
class Entry:
    """A data set.

    Attributes
    ----------
    rows, columns : int
        Of the table, the target among the columns.
    target, positive : str
        The column of the classes, and the class to look for; empty where there is none.
    source, licence : str
    file : str or None
        Its name in the package, where it ships with it.
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
    "creditcard-sample": Entry(
        14_707, 31, TARGET, "1", "ships with qmedoid", "DbCL 1.0 (Kaggle)", "creditcard_sample.parquet"
    ),
    "creditcard": Entry(N_ROWS, 31, TARGET, "1", "QMEDOID_DATA, or OpenML", "DbCL 1.0 (Kaggle)"),
}
_GENERATED: dict[str, Callable[[], Dataset]] = {"breast-cancer": load_breast_cancer, "wine": load_wine}


def entry(name: str) -> Entry:
    """The data set of that name."""
    if name not in CATALOG:
        raise ParameterError(f"There is no data set {name!r}. The data sets are {', '.join(CATALOG)}.")
    return CATALOG[name]


def locate(name: str) -> Path | None:
    """The file of a data set on this machine, or None where there is none."""
    known = entry(name)
    if known.file is not None:
        return Path(str(files("qmedoid.evaluation") / "data" / known.file))
    folders = [Path(folder) for folder in (os.environ.get("QMEDOID_DATA"),) if folder]
    for path in (folder / f"{name}.parquet" for folder in [*folders, cache_folder()]):
        if path.is_file():
            return path
    return None


def cache_folder() -> Path:
    """Where downloads are kept: ``QMEDOID_CACHE``, else the user's cache folder."""
    own = os.environ.get("QMEDOID_CACHE")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qmedoid"


def table_of(name: str) -> pa.Table:
    """A data set as a table, the target as its last column; what is not here is downloaded and kept."""
    if name == "creditcard-sample":
        return read_sample()
    if name in _GENERATED:
        data = _GENERATED[name]()
        columns: dict[str, Any] = dict(zip(data.feature_names, data.X.T, strict=True))
        return pa.table({**columns, "target": [data.class_names[code] for code in data.y]})
    path = locate(name) or _downloaded(name)
    if path.suffix == ".csv":
        from pyarrow.csv import read_csv

        return read_csv(path)
    from pyarrow.parquet import read_table

    return read_table(path)


def check_creditcard(table: pa.Table) -> None:
    """Refuse a credit-card table that is not the published one, by its counts."""
    import pyarrow.compute as pc

    frauds = pc.sum(pc.cast(table[TARGET], pa.int64())).as_py()
    amounts = pc.sum(table["Amount"]).as_py()
    if (len(table), frauds) != (N_ROWS, N_FRAUDS) or abs(amounts - AMOUNTS) > 0.01:
        raise DataError(
            f"The credit-card table has {N_ROWS:,} rows, {N_FRAUDS} frauds and amounts of {AMOUNTS:,.2f} in all. Got "
            f"{len(table):,}, {frauds} and {amounts:,.2f}: take the published file (Kaggle, mlg-ulb/creditcardfraud)."
        )


def _downloaded(name: str) -> Path:
    """Fetch the credit-card table from OpenML into the cache, checked."""
    from pyarrow.parquet import write_table
    from sklearn.datasets import fetch_openml

    try:
        bunch = fetch_openml(data_id=_OPENML, as_frame=False, parser="liac-arff")
    except Exception as error:  # scikit-learn lets through whatever the network and the parser raise
        raise DataError(
            f"The data set {name!r} is not here and could not be downloaded from OpenML ({error}). Get the file "
            "creditcard.csv (Kaggle, mlg-ulb/creditcardfraud), save it as creditcard.parquet, and set QMEDOID_DATA to "
            "its folder."
        ) from error
    columns = dict(zip(bunch.feature_names, bunch.data.T, strict=True))
    table = pa.table({**columns, TARGET: bunch.target.astype(float).astype(int)})
    check_creditcard(table)
    path = cache_folder() / f"{name}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        write_table(table, file)
    return path
