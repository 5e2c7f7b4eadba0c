"""The credit-card frauds: the whole table as files hold it, its counts, and the sample that ships with the package.

``QMEDOID_DATA=<folder with creditcard.parquet> python -m qmedoid.evaluation.creditcard`` draws and writes the sample
again.
"""

import os
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from qmedoid.evaluation.shipped import read_shipped, shipped_path
from qmedoid.exceptions import DataError, some_of

TARGET, TIME = "Class", "Time"
FEATURES = (*(f"V{i}" for i in range(1, 29)), "Amount")
N_ROWS, N_FRAUDS, AMOUNTS = 284_807, 492, 25_162_590.01
"""Rows and frauds of the whole table, and the sum of its amounts."""
HOW_TO_GET = (
    "Get the file creditcard.csv (Kaggle, mlg-ulb/creditcardfraud), and set QMEDOID_DATA to the folder that holds it, "
    "or creditcard.parquet made of it"
)
ONE_IN = 20
"""One in so many normal rows is kept, and every fraud."""
SEED = 0
FILE = "creditcard_sample.parquet"


def read_whole(path: Path) -> Any:
    """The whole table of a Parquet file, or of a CSV file as Kaggle has it, a pyarrow.Table, checked by its counts."""
    try:
        table = _read_csv(path) if path.suffix == ".csv" else pq.read_table(path, memory_map=True, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as the credit-card table ({error}). {HOW_TO_GET}.") from error
    check_whole(table, str(path))
    return table


def check_whole(table: Any, source: str) -> None:
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


def numbers_of(table: Any) -> npt.NDArray[np.float64]:
    """The 29 columns V1 to V28 and Amount of a table, as rows of numbers."""
    values, start = np.empty((len(table), len(FEATURES))), 0
    for batch in table.select(FEATURES).to_batches(max_chunksize=8192):  # a block of rows fits into the cache
        values[start : start + len(batch)] = np.stack([column.to_numpy() for column in batch.columns], axis=1)
        start += len(batch)
    return values


def times_of(table: Any) -> npt.NDArray[np.float64]:
    """Seconds since the first payment; where a table has none, the numbers of its rows, which are in that order."""
    if TIME not in table.column_names:
        return np.arange(len(table), dtype=np.float64)
    seconds: npt.NDArray[np.float64] = table[TIME].to_numpy().astype(np.float64)
    return seconds


def draw_sample(table: Any) -> Any:
    """All frauds and a random part of the normal rows, in the order of the table and in single precision.

    Parameters
    ----------
    table : pyarrow.Table
        The whole table, with columns Time, V1 to V28, Amount and Class.

    Returns
    -------
    pyarrow.Table
        Seconds as 32-bit integers, the class as an 8-bit one, all else as 32-bit floats.
    """
    labels = table[TARGET].to_numpy()
    frauds, normal = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    if (len(labels), len(frauds)) != (N_ROWS, N_FRAUDS):
        raise DataError(
            f"The credit-card table has {N_ROWS:,} rows and {N_FRAUDS} frauds. Got {len(labels):,} rows and "
            f"{len(frauds)} frauds: take the file as published (Kaggle, mlg-ulb/creditcardfraud)."
        )
    kept = np.random.default_rng(SEED).choice(normal, len(normal) // ONE_IN, replace=False)
    part = table.take(np.sort(np.concatenate([frauds, kept])))
    types = {TIME: np.int32, TARGET: np.int8}
    return pa.table({name: part[name].to_numpy().astype(types.get(name, np.float32)) for name in part.column_names})


def write_sample(sample: Any, path: Path) -> None:
    """Write as Parquet, small: the bytes of a number are stored apart, as those of its exponent repeat."""
    numbers = [field.name for field in sample.schema if field.type == pa.float32()]
    pq.write_table(
        sample, path, compression="zstd", compression_level=19, use_dictionary=False, use_byte_stream_split=numbers
    )


def read_sample() -> Any:
    """The shipped sample, a pyarrow.Table."""
    # Arrow that still reads ahead when the process ends may abort it.
    return pq.read_table(BytesIO(read_shipped(FILE)), pre_buffer=False, use_threads=False)


def main() -> None:
    """Draw the sample from the table in the folder ``QMEDOID_DATA`` and write it where the package keeps it."""
    source = Path(os.environ.get("QMEDOID_DATA", "")) / "creditcard.parquet"
    if not source.is_file():
        raise SystemExit(
            "This needs creditcard.parquet (the Kaggle set mlg-ulb/creditcardfraud as Parquet): set QMEDOID_DATA to "
            "the folder that holds it."
        )
    path = shipped_path(FILE)
    write_sample(draw_sample(read_whole(source)), path)
    print(f"{path} is written; its SHA-256, which qmedoid.evaluation.shipped keeps, is")
    print(sha256(path.read_bytes()).hexdigest())


def _read_csv(path: Path) -> Any:
    from pyarrow.csv import ConvertOptions, read_csv

    # Kaggle's file has quotes around the classes, and R may have written a second as 1e+05: nothing is left to guesses.
    types = dict.fromkeys((TIME, *FEATURES, TARGET), pa.float64())
    table = read_csv(path, convert_options=ConvertOptions(column_types=types))
    if TARGET in table.column_names:
        at = table.column_names.index(TARGET)
        table = table.set_column(at, TARGET, table[TARGET].cast(pa.int64()))
    return table


if __name__ == "__main__":
    main()
