"""The data sets of cells by name, their digests, and how the shipped sample of the credit-card frauds was drawn.

``QMEDOID_DATA=<folder with creditcard.parquet> python -m benchmarks.studies.data`` draws and writes the sample again.
"""

import json
import os
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qmedoid.datasets import (
    FILE,
    HOW_TO_GET,
    TARGET,
    TIME,
    Dataset,
    cache_folder,
    check_whole,
    load_creditcard,
    load_creditcard_sample,
    load_dataset,
    load_heart,
    numbers_digest,
    read_whole,
    shipped_path,
    table_of,
)

HEART_ORDINAL = "heart-ordinal"
"""The heart data with categories numbered in alphabetical order: one reading of what the paper leaves open."""
FULL_FRAUD, FRAUD_SAMPLE = "creditcard", "creditcard-sample"
ONE_IN, SEED = 20, 0
"""One in 20 normal rows is kept in the sample, and every fraud."""


def cell_folder() -> Path:
    """Folder of the results of all studies by default."""
    return cache_folder() / "cells"


@cache
def load_data(name: str) -> Dataset:
    """The data set of a cell, read and checked once in a process."""
    others = {HEART_ORDINAL: load_numbered_heart, FULL_FRAUD: load_creditcard, FRAUD_SAMPLE: load_creditcard_sample}
    return others[name]() if name in others else load_dataset(name)


def load_numbered_heart() -> Dataset:
    """Heart disease with the categories of a column numbered in alphabetical order."""
    table = table_of("heart")
    names = table.column_names[:-1]
    columns = (np.array(table[name].to_pylist()) for name in names)
    numbers = [np.unique(one, return_inverse=True)[1] if one.dtype.kind == "U" else one for one in columns]
    return replace(load_heart(), X=np.column_stack(numbers).astype(np.float64), feature_names=tuple(names))


@cache
def data_digest(name: str) -> str:
    """`digest` of the data set of a cell."""
    return digest(load_data(name))


def digest(data: Dataset) -> str:
    """SHA-256 of all that a result can depend on: numbers, labels, times, and the names of columns and classes."""
    times = None if data.times is None else numbers_digest(data.times[:, None], np.empty(0, dtype=np.intp))
    parts = [numbers_digest(data.X, data.y), times, data.feature_names, data.class_names]
    return sha256(json.dumps(parts).encode()).hexdigest()


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
