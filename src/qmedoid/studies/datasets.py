"""The data sets of the paper as arrays of numbers: three small ones, and the credit-card frauds or a sample of them.

``QMEDOID_DATA=<folder with creditcard.parquet> python -m qmedoid.studies.datasets`` draws and writes the sample again.
"""

import csv
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError, some_of

Encoding = Literal["onehot", "ordinal"]
ENCODINGS: tuple[Encoding, ...] = ("onehot", "ordinal")
FILE = "creditcard_sample.parquet"

SHIPPED: dict[str, str] = {
    "heart.csv": "948420b084d8a3a0ca42b8419fce9aee175879e43f8aedf712377899a67aa49b",
    FILE: "00a08a96b117e89c5050e7bbd44eb2c0a2670bb5e2d0bd7736f40f2b1085fda5",
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


TARGET, TIME = "Class", "Time"
FEATURES = (*(f"V{i}" for i in range(1, 29)), "Amount")
N_ROWS, N_FRAUDS, AMOUNTS = 284_807, 492, 25_162_590.01
"""Rows and frauds of the whole table, and the sum of its amounts."""
HOW_TO_GET = (
    "Get the file creditcard.csv (Kaggle, mlg-ulb/creditcardfraud), and set QMEDOID_DATA to the folder that holds it, "
    "or creditcard.parquet made of it"
)
ONE_IN = 20
"""One in 20 normal rows is kept in the sample, and every fraud."""
SEED = 0


def load_creditcard_sample() -> Dataset:
    """Credit-card frauds, a sample: all 492 frauds and 14,215 of 284,315 normal payments (shipped with the package).

    29 columns, V1 to V28 and Amount; Time, the seconds since the first payment, is not one of them but in `times`. One
    row in 30 is a fraud here, and one in 579 in the whole table.
    """
    return of_payments("Credit-card fraud (sample)", read_sample())


def of_payments(name: str, table: pa.Table) -> Dataset:
    """The credit-card table, or some of its rows, as a data set of that name."""
    values, start = np.empty((len(table), len(FEATURES))), 0
    for batch in table.select(FEATURES).to_batches(max_chunksize=8192):  # a block of rows fits into the cache
        values[start : start + len(batch)] = np.stack([column.to_numpy() for column in batch.columns], axis=1)
        start += len(batch)
    # A table without seconds is in the order of time all the same.
    times = table[TIME].to_numpy() if TIME in table.column_names else np.arange(len(table))
    labels = table[TARGET].to_numpy().astype(np.intp)
    return Dataset(name, values, labels, FEATURES, ("normal", "fraud"), times.astype(np.float64))


def read_whole(path: Path) -> pa.Table:
    """The whole credit-card table of a Parquet file, or of a CSV file as Kaggle has it, checked by its counts."""
    try:
        table = _read_csv(path) if path.suffix == ".csv" else pq.read_table(path, memory_map=True, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as the credit-card table ({error}). {HOW_TO_GET}.") from error
    check_whole(table, str(path))
    return table


def _read_csv(path: Path) -> pa.Table:
    from pyarrow.csv import ConvertOptions, read_csv

    # Kaggle's file has quotes around the classes, and R may have written a second as 1e+05: nothing is left to guesses.
    types = dict.fromkeys((TIME, *FEATURES, TARGET), pa.float64())
    table = read_csv(path, convert_options=ConvertOptions(column_types=types))
    if TARGET in table.column_names:
        at = table.column_names.index(TARGET)
        table = table.set_column(at, TARGET, table[TARGET].cast(pa.int64()))
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


def draw_sample(table: pa.Table) -> pa.Table:
    """All frauds and a random part of the normal rows of the whole table, in its order.

    Seconds become 32-bit integers, the class an 8-bit one, all else 32-bit floats.
    """
    check_whole(table, "the table to draw from")
    labels = table[TARGET].to_numpy()
    frauds, normal = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    kept = np.random.default_rng(SEED).choice(normal, len(normal) // ONE_IN, replace=False)
    part = table.take(np.sort(np.concatenate([frauds, kept])))
    types = {TIME: np.int32, TARGET: np.int8}
    return pa.table({name: part[name].to_numpy().astype(types.get(name, np.float32)) for name in part.column_names})


def write_sample(sample: pa.Table, path: Path) -> None:
    """Write as Parquet, small: equal bytes of numbers are stored together, as those of exponents repeat."""
    numbers = [field.name for field in sample.schema if field.type == pa.float32()]
    pq.write_table(
        sample, path, compression="zstd", compression_level=19, use_dictionary=False, use_byte_stream_split=numbers
    )


def read_sample() -> pa.Table:
    """The shipped sample."""
    # By no thread: one that lets go of a Python object while the process ends aborts it, and `read_table` starts some.
    with pq.ParquetFile(pa.BufferReader(read_shipped(FILE))) as file:
        return file.read(use_threads=False)


def main() -> None:
    """Draw the sample from the table in the folder ``QMEDOID_DATA`` and write it where the package keeps it."""
    source = Path(os.environ.get("QMEDOID_DATA", "")) / "creditcard.parquet"
    if not source.is_file():
        raise SystemExit(f"There is no file {source}. {HOW_TO_GET}.")
    path = shipped_path(FILE)
    write_sample(draw_sample(read_whole(source)), path)
    print(f"{path} is written; its SHA-256, which belongs in SHIPPED, is")
    print(sha256(path.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
