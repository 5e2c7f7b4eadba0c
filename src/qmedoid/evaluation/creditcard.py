"""The sample of the credit-card frauds that ships with the package, and how it was drawn from the whole table.

``QMEDOID_DATA=<folder with creditcard.parquet> python -m qmedoid.evaluation.creditcard`` draws and writes it again.
"""

import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qmedoid.exceptions import DataError

TARGET = "Class"
N_ROWS, N_FRAUDS = 284_807, 492
"""Rows and frauds of the whole table."""
ONE_IN = 20
"""One in so many normal rows is kept, and every fraud."""
SEED = 0
FILE = "creditcard_sample.parquet"


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
    types = {"Time": np.int32, TARGET: np.int8}
    return pa.table({name: part[name].to_numpy().astype(types.get(name, np.float32)) for name in part.column_names})


def write_sample(sample: Any, path: Path) -> None:
    """Write as Parquet, small: the bytes of a number are stored apart, as those of its exponent repeat."""
    numbers = [field.name for field in sample.schema if field.type == pa.float32()]
    pq.write_table(
        sample, path, compression="zstd", compression_level=19, use_dictionary=False, use_byte_stream_split=numbers
    )


def read_sample() -> Any:
    """The shipped sample, a pyarrow.Table."""
    with (files("qmedoid.evaluation") / "data" / FILE).open("rb") as file:
        return pq.read_table(file)


def main() -> None:
    """Draw the sample from the table in the folder ``QMEDOID_DATA`` and write it where the package keeps it."""
    source = Path(os.environ.get("QMEDOID_DATA", "")) / "creditcard.parquet"
    if not source.is_file():
        raise SystemExit(
            "This needs creditcard.parquet (the Kaggle set mlg-ulb/creditcardfraud as Parquet): set QMEDOID_DATA to "
            "the folder that holds it."
        )
    write_sample(draw_sample(pq.read_table(source)), Path(__file__).parent / "data" / FILE)


if __name__ == "__main__":
    main()
