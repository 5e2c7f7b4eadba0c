"""``qmedoid data``: the data sets of the paper."""

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, cast

import pyarrow as pa

from qmedoid.cli.documents import DataFetchDict, DataListDict, DataSetDict
from qmedoid.cli.options import OUTPUT, Force, Json, Text, argument, command, option
from qmedoid.cli.output import grid, note, print_json, show, tell
from qmedoid.datasets import CATALOG, entry, status, table_of
from qmedoid.model.storage.atomic import check_unchanged
from qmedoid.tables.writing import check_output, open_sink


@command("qmedoid data list")
def list_sets(*, json: Json = False) -> None:
    """List the data sets, and where each comes from."""
    found = [(name, known, *status(name)) for name, known in CATALOG.items()]
    if json:
        sets = {
            name: cast("DataSetDict", {**asdict(known), "here": word != "absent", "status": word, "problem": problem})
            for name, known, word, problem in found
        }
        document: DataListDict = {"sets": sets, "notes": [problem for *_, problem in found if problem]}
        print_json(document)
        return
    names = ("name", "rows", "columns", "target", "positive", "status")
    rows = [
        (name, f"{known.rows:,}", str(known.columns), known.target, known.positive, word)
        for name, known, word, _ in found
    ]
    show(grid(names, rows, left=(0, 3, 4, 5)))
    for name, known, word, problem in found:
        hint = f"; to get it: qmedoid data fetch {name}" if word == "absent" else ""
        show(f"{name}: {known.source}, {known.licence}{hint}")
        if problem:
            note(problem)


@command("qmedoid data fetch heart -o heart.csv", most_used=("output", "force", "json"))
def fetch(
    name: Annotated[str, argument("NAME", "Name of the data set.")],
    *,
    json: Json = False,
    output: Annotated[
        Text,
        option(
            OUTPUT,
            "FILE",
            "File to write, CSV or Parquet. Default: NAME.csv, or NAME.parquet for a large one.",
            "--output",
            "-o",
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Write a data set to a file.

    One that is not on this machine is downloaded and checked first.
    """
    known = entry(name)
    out = output or (f"{name}.csv" if known.rows < 10_000 else f"{name}.parquet")
    check_output(out)
    table = table_of(name)
    if not force and Path(out).is_file():
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder) / Path(out).name
            _write(table, str(again))
            check_unchanged(out, again.read_bytes())
    _write(table, out)
    if json:
        document: DataFetchDict = {"name": name, "path": str(Path(out)), "rows": len(table), "target": known.target}
        print_json(document)
    else:
        tell(f"{len(table):,} rows written to {out}; the classes are in the column {known.target!r}.")


def _write(table: pa.Table, out: str) -> None:
    with open_sink(out, table.schema, safe_csv=False) as write:
        for batch in table.to_batches():
            write(batch)
