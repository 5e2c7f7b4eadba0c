"""The Arrow function in DuckDB and Polars beside ``qmedoid score``: 284,807 rows from Parquet file to Parquet file.

Run as ``QMEDOID_DATA=... python benchmarks/speed_engines.py`` (three minutes; needs creditcard.parquet, DuckDB and
Polars). The models are one of evidence about heart disease, whose table is repeated, and one of rare events about card
payments, fitted to a tenth of them. Each way runs in this process after a first, untimed call; times are medians.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from _timing import RESULTS, core_seconds, write_table
from qmedoid import ArrowScorer, MedoidClassifier, arrow_scorer, load
from qmedoid.datasets import locate
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import score_file

N_ROWS = 284_807
REPEATS = 5


def fitted(table: pa.Table, target: str, method: str, path: Path) -> Path:
    """The file of a model of a table."""
    model = MedoidClassifier(method=method, random_state=0)
    return model.fit(table.drop_columns([target]), table[target].to_pylist()).save(path)


def in_duckdb(scorer: ArrowScorer, given: Path, out: Path) -> None:
    database = duckdb.connect()
    rows = database.cursor().sql(f"FROM '{given}'")
    decisions = scorer.reader(rows.to_arrow_reader(65_536))  # noqa: F841 - the query names it
    database.sql(f"COPY (FROM decisions) TO '{out}'")


def in_polars(scorer: ArrowScorer, given: Path, out: Path) -> None:
    pl.from_arrow(scorer.reader(pl.read_parquet(given))).write_parquet(out)


def in_pyarrow(scorer: ArrowScorer, given: Path, out: Path) -> None:
    with pq.ParquetFile(given) as rows, pq.ParquetWriter(out, scorer.schema(rows.schema_arrow)) as file:
        for batch in scorer(rows.iter_batches(65_536)):
            file.write_batch(batch)


def measured(name: str, model: Path, given: Path, folder: Path) -> list[dict[str, object]]:
    """Seconds of each way, whose decisions must be the same."""
    scorer, saved = arrow_scorer(model), load(model)
    ways: dict[str, Callable[[Path], Any]] = {
        "qmedoid score": lambda out: score_file(saved.model, str(given), str(out), ScoreSettings()),
        "PyArrow": lambda out: in_pyarrow(scorer, given, out),
        "DuckDB": lambda out: in_duckdb(scorer, given, out),
        "Polars": lambda out: in_polars(scorer, given, out),
    }
    expected, rows = saved.score_table(pq.read_table(given)), []
    for way, run in ways.items():
        out = folder / f"{name} {way}.parquet"
        run(out)
        taken = core_seconds(lambda run=run, out=out: run(out), REPEATS)
        assert pq.read_table(out).cast(expected.schema).equals(expected), way
        rows.append({"model": name, "rows": N_ROWS, "way": way, "seconds": taken.wall, "core-seconds": taken.core})
    return rows


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        heart = pyarrow.csv.read_csv(locate("heart"))
        many = heart.take(np.arange(N_ROWS) % len(heart))
        pq.write_table(many, folder / "heart.parquet")
        card = pq.read_table(locate("creditcard"))
        pq.write_table(card, folder / "card.parquet")
        some = card.take(np.arange(0, len(card), 10))
        models = {
            "heart": fitted(heart, "HeartDisease", "evidence", folder / "heart.qmedoid"),
            "card": fitted(some, "Class", "rare", folder / "card.qmedoid"),
        }
        rows = [row for one, path in models.items() for row in measured(one, path, folder / f"{one}.parquet", folder)]
    packages = ("numpy", "pyarrow", "duckdb", "polars")
    write_table(RESULTS / "speed_engines.csv", "python benchmarks/speed_engines.py", rows, packages)


if __name__ == "__main__":
    main()
