"""A folder of Parquet files of any number of rows, made from the credit-card table with noise.

``QMEDOID_DATA=... python -m benchmarks.large_data --rows 100_000_000 --out DIR`` (needs creditcard.parquet; about
120 bytes a row). A made row is a random row of the card table (with replacement), its class kept, with noise:

- ``V1`` to ``V28``: s · sinh(asinh(x / s) + NOISE · n), where s is the interquartile range / 1.35 of the column and n a
  standard normal number: noise of NOISE · s near zero, and in proportion to the value in the tails;
- ``Amount``: times exp(0.2 · n), in cents;
- ``Time``: n hours later, modulo the two days.

The card rows are split once, by a hash of their values, into 75 % base rows and 25 % held-out rows; equal rows lie in
the same part. Fresh rows of the distribution that a model was fitted to are base rows with another seed; rows made from
held-out card rows are of other transactions. A file depends on the seed, its number and its rows alone: files that are
there are left as they are, and a run that was ended is continued by the same command.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from qmedoid.model.storage.atomic import atomic_file

NOISE = 0.7
"""Noise in robust scales; chosen so that the average precision of LightGBM on 200,000 rows is between 0.7 and 0.85."""
AMOUNT_NOISE, HOURS = 0.2, 1.0
TWO_DAYS = 172_800
ROW_GROUP = 131_072
PARTS = ("base", "held-out")
VALUES = tuple(f"V{number}" for number in range(1, 29))


class Cards(NamedTuple):
    """Card rows of one part: ``asinh(V / scale)``, with the scales, and the other columns."""

    values: np.ndarray
    scales: np.ndarray
    amount: np.ndarray
    time: np.ndarray
    label: np.ndarray


def is_base(rows: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Whether rows, shape ``(n, d)``, are base rows: three quarters of every class, by a hash that equal rows share."""
    state = np.zeros(len(rows), dtype=np.uint64)
    for column in np.ascontiguousarray(rows.T, dtype=np.float64) + 0.0:  # -0 is 0
        state = (state ^ column.view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
        state ^= state >> np.uint64(31)
    bound = np.array([np.sort(state[label == k])[int(0.75 * np.sum(label == k))] for k in range(2)])
    return state < bound[label]


@cache
def cards(part: str) -> Cards:
    """Card rows of a part. The scales are those of all rows."""
    source = Path(os.environ.get("QMEDOID_DATA", "")) / "creditcard.parquet"
    if not source.is_file():
        raise SystemExit("This needs creditcard.parquet: set QMEDOID_DATA to the folder that holds it.")
    table = pq.read_table(source)
    column = {name: table[name].to_numpy() for name in table.column_names}
    values = np.stack([column[name] for name in VALUES], axis=1)
    low, high = np.quantile(values, (0.25, 0.75), axis=0)
    scales = (high - low) / 1.35
    mine = is_base(np.column_stack([values, column["Amount"]]), column["Class"]) == (part == "base")
    return Cards(
        np.arcsinh(values[mine] / scales).astype(np.float32), scales.astype(np.float32), column["Amount"][mine],
        column["Time"][mine], column["Class"][mine].astype(np.int8),
    )  # fmt: skip


def made(part: str, n_rows: int, seed: int, number: int) -> pa.Table:
    """The rows of one file."""
    source, rng = cards(part), np.random.default_rng((seed, number, PARTS.index(part)))
    drawn = rng.integers(len(source.label), size=n_rows)
    later = HOURS * 3600 * rng.standard_normal(n_rows)
    columns = {"Time": np.floor((source.time[drawn] + later) % TWO_DAYS)}
    for k, name in enumerate(VALUES):
        z = source.values[drawn, k] + np.float32(NOISE) * rng.standard_normal(n_rows, dtype=np.float32)
        grown = np.exp(z)
        columns[name] = source.scales[k] * np.float32(0.5) * (grown - np.float32(1.0) / grown)
    columns["Amount"] = np.round(source.amount[drawn] * np.exp(AMOUNT_NOISE * rng.standard_normal(n_rows)), 2)
    arrays = {name: pa.array(column.astype(np.float32)) for name, column in columns.items()}
    return pa.table({**arrays, "Class": pa.array(source.label[drawn])})


def write(out: Path, part: str, seed: int, number: int, n_rows: int) -> int:
    """Write one file, unless it is there; return its rows if it was written."""
    path = out / f"part-{number:05d}.parquet"
    if path.exists():
        return 0
    table = made(part, n_rows, seed, number)
    with atomic_file(path) as file:
        # No dictionaries: the numbers are all different. Their bits do not compress.
        pq.write_table(table, file, row_group_size=ROW_GROUP, use_dictionary=["Class"], compression="none")
    return n_rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="rows of all files")
    parser.add_argument("--out", type=Path, help="folder of the files")
    parser.add_argument("--files", type=int, help="number of files; by default, 1,000,000 rows a file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="part", choices=PARTS, default="base", help="card rows that are drawn")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    if asked.rows is None or asked.out is None:
        parser.print_help()
        return
    n_files = asked.files or -(-asked.rows // 1_000_000)
    bounds = [asked.rows * k // n_files for k in range(n_files + 1)]
    asked.out.mkdir(parents=True, exist_ok=True)
    began, n_written = time.perf_counter(), 0
    with ProcessPoolExecutor(asked.processes) as pool:
        task = partial(write, asked.out, asked.part, asked.seed)
        for n in pool.map(task, range(n_files), np.diff(bounds).tolist()):
            n_written += n
    size = sum(path.stat().st_size for path in asked.out.glob("*.parquet"))
    print(json.dumps({
        "rows": asked.rows, "files": n_files, "rows written": n_written, "GB": round(size / 1e9, 2),
        "seconds": round(time.perf_counter() - began, 1),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
