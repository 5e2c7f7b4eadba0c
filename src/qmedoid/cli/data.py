"""``qmedoid data``: the data sets of the paper."""

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, cast

import pyarrow as pa

from qmedoid.cli._output import grid, note, plain_console, print_json, tell
from qmedoid.cli.documents import DataFetchDict, DataListDict, DataSetDict, DataWhereDict
from qmedoid.cli.options import OUTPUT, Force, Options, Text, argument, option
from qmedoid.datasets import CATALOG, entry, locate, status, table_of
from qmedoid.exceptions import DataError
from qmedoid.model.storage.atomic import check_unchanged
from qmedoid.tables.writing import check_output, open_sink

_Name = Annotated[str, argument("NAME", "Name of the data set.")]


@dataclass(frozen=True, kw_only=True)
class DataListOptions(Options):
    """List the data sets, and where each comes from."""

    examples = ("qmedoid data list",)


@dataclass(frozen=True, kw_only=True)
class DataWhereOptions(Options):
    """Print the path of a data set's file on this machine."""

    examples = ("qmedoid data where heart",)

    name: _Name


@dataclass(frozen=True, kw_only=True)
class DataFetchOptions(Options):
    """Write a data set to a file.

    One that is not on this machine is downloaded and checked first.
    """

    most_used = ("output", "force", "json")
    examples = ("qmedoid data fetch heart -o heart.csv",)

    name: _Name
    output: Annotated[
        Text,
        option(
            OUTPUT,
            "FILE",
            "File to write, CSV or Parquet. Default: NAME.csv, or NAME.parquet for a large one.",
            "--output",
            "-o",
        ),
    ] = None
    force: Force = False


def list_sets(options: DataListOptions) -> None:
    """Print a line for every data set."""
    found = [(name, known, *status(name)) for name, known in CATALOG.items()]
    if options.json:
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
    console = plain_console()
    console.print(grid(names, rows, left=(0, 3, 4, 5)))
    for name, known, word, problem in found:
        hint = f"; to get it: qmedoid data fetch {name}" if word == "absent" else ""
        console.print(f"{name}: {known.source}, {known.licence}; checked by {known.check}{hint}")
        if problem:
            note(problem)


def where(options: DataWhereOptions) -> None:
    """Print the path of a data set's file."""
    name = options.name
    path, known = locate(name), entry(name)
    if path is None:
        hint = f"'qmedoid data fetch {name}' writes it to a file"
        if known.source != "ships with scikit-learn":
            hint += ", after a download; or set QMEDOID_DATA to the folder that holds it"
        raise DataError(f"The data set {name!r} ({known.source}) has no file on this machine: {hint}.")
    document: DataWhereDict = {"name": name, "path": str(path)}
    print_json(document) if options.json else print(path)


def fetch(options: DataFetchOptions) -> None:
    """Write a data set to a file, by default NAME.csv (NAME.parquet for the large ones) in the current folder.

    A file that is there already and holds something else is left as it is, and refused.
    """
    name, known = options.name, entry(options.name)
    out = options.output or (f"{name}.csv" if known.rows < 10_000 else f"{name}.parquet")
    check_output(out)
    table = table_of(name)
    if not options.force and Path(out).is_file():
        with tempfile.TemporaryDirectory() as folder:
            again = Path(folder) / Path(out).name
            _write(table, str(again))
            check_unchanged(out, again.read_bytes())
    _write(table, out)
    if options.json:
        document: DataFetchDict = {"name": name, "path": str(Path(out)), "rows": len(table), "target": known.target}
        print_json(document)
    else:
        tell(f"{len(table):,} rows written to {out}; the classes are in the column {known.target!r}.")


def _write(table: pa.Table, out: str) -> None:
    with open_sink(out, table.schema, safe_csv=False) as write:
        for batch in table.to_batches():
            write(batch)
