"""``qmedoid explain``: one decision, by column, by medoid and by the nearest known rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid.cli._output import plain_console, print_json, shown, tell
from qmedoid.cli._reasons import cell_text, sentences
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.model.table import TableModel
from qmedoid.storage.model_file import load_model
from qmedoid.tables.arrow_alone import keep_pandas_away
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.explaining import explain_record
from qmedoid.tables.files import Reading
from qmedoid.tables.known import NearestRows

_GROUPS = 8
_COLUMNS = 4


def run(
    model: Path, table: str, row: int, *, known: str | None, on_mismatch: OnMismatch, as_json: bool, **dialect: Any
) -> None:
    """Find the row, decide about it, and print why."""
    keep_pandas_away()
    if known == table == "-":
        raise ParameterError("Standard input can be read once: give the table or --known as a file.")
    loaded = load_model(model)
    with Reading(loaded, table, on_mismatch, all_columns=True, **dialect) as reading:
        record = reading.in_kind(lambda lenient: _find(reading, row, lenient))
        report = {"row": row, **explain_record(loaded, record, reading.found)}
        reading.check()
    if known is not None:
        report["known"] = _nearest(loaded, record, known, on_mismatch, dialect)
    if as_json:
        print_json(report)
    else:
        _print(report)


def _find(reading: Reading, row: int, lenient: bool) -> pa.Table:
    passed = 0
    for batch, _ in reading.batches(as_text=False, lenient=lenient):
        if row < passed + len(batch):
            return pa.Table.from_batches([batch.slice(row - passed, 1)])
        passed += len(batch)
    raise DataError(f"There is no row {row}: the table has {passed:,} rows, counted from 0.")


def _nearest(
    model: TableModel, record: pa.Table, known: str, on_mismatch: OnMismatch, dialect: dict[str, Any]
) -> dict[str, Any]:
    """The rows of another table that lie nearest to the record."""
    target = model.contract.target
    with Reading(model, known, on_mismatch, all_columns=True, **dialect) as reading:
        labeled = [] if target is None or target not in reading.source.names else [target]
        if not labeled:
            tell(f"note: {known} has no column with the classes ({target!r}): those of its rows are not shown.")

        def look(lenient: bool) -> NearestRows:
            nearest = NearestRows(model, record)
            for batch, extra in reading.batches(labeled, as_text=True, lenient=lenient):
                nearest.add(batch, extra.column(labeled[0]) if labeled else None, reading.found)
            return nearest

        found: NearestRows = reading.in_kind(look)
        reading.check()
    return found.report()


def _print(report: dict[str, Any]) -> None:
    from rich.table import Table

    console = plain_console()
    console.print("\n".join(sentences(report)))
    console.print()
    console.print(_medoids(report, Table))
    console.print()
    console.print(_terms(report, Table))
    if "known" in report:
        console.print()
        console.print(_known(report, Table))


def _medoids(report: dict[str, Any], make: Any) -> Any:
    """What each column contributed, the largest first, beside the cells of the nearest medoids."""
    medoids = report["medoids"]
    table = make(title="the record and the nearest medoid of each class", title_justify="left")
    table.add_column("")
    table.add_column("contribution", justify="right")
    table.add_column("this record", justify="right")
    for medoid in medoids:
        table.add_column(f"row {medoid['training_row']}: {shown(medoid['class'])}", justify="right")
    table.add_row("distance", "", "", *(f"{medoid['distance']:.4g}" for medoid in medoids))
    table.add_row("angle", "", "", *(f"{medoid['angle']:.4g}" for medoid in medoids), end_section=True)
    _add_cells(table, report, [medoid["record"] for medoid in medoids])
    return table


def _known(report: dict[str, Any], make: Any) -> Any:
    """The record beside the nearest known rows, cell by cell; the columns that contributed most come first."""
    nearest = report["known"]["nearest"]
    table = make(title=f"the nearest of {report['known']['rows']:,} known rows", title_justify="left")
    table.add_column("")
    table.add_column("this record", justify="right")
    for one in nearest:
        table.add_column(f"row {one['row']}", justify="right")
    table.add_row("class", "", *("?" if one["class"] is None else shown(one["class"]) for one in nearest))
    table.add_row("distance", "", *(f"{one['distance']:.4g}" for one in nearest), end_section=True)
    for column in report["columns"]:
        cells = [column["cell"], *(one["record"].get(column["name"]) for one in nearest)]
        table.add_row(shown(column["name"]), *(cell_text(cell, digits=4) for cell in cells))
    return table


def _add_cells(table: Any, report: dict[str, Any], records: Sequence[dict[str, Any] | None]) -> None:
    for column in report["columns"]:
        name = column["name"]
        cells = ["·" if record is None else cell_text(record.get(name)) for record in records]
        table.add_row(shown(name), f"{column['contribution']:+.4f}", cell_text(column["cell"]), *cells)


def _terms(report: dict[str, Any], make: Any) -> Any:
    table = make(title="what the margin is made of, by group of encoded columns", title_justify="left")
    table.add_column("term")
    table.add_column("contribution", justify="right")
    groups, neighbors = report["groups"], report.get("neighbors", [])
    by_record = bool(neighbors) or any("records" in group for group in groups)
    if by_record:
        table.add_column("most of it by distance to")
    for group in groups[:_GROUPS]:
        strongest = [_strongest(group.get("records", []))] if by_record else []
        table.add_row(_title(group), f"{group['contribution']:+.6f}", *strongest)
    if len(groups) > _GROUPS:
        rest = sum(group["contribution"] for group in groups[_GROUPS:])
        table.add_row(f"{len(groups) - _GROUPS} more groups", f"{rest:+.6f}")
    for name, value in report["terms"].items():
        if value:
            strongest = [_strongest(neighbors)] if name == "neighbors" else []
            table.add_row(name, f"{value:+.6f}", *strongest)
    table.add_section()
    table.add_row("margin", f"{report['margin']:+.6f}")
    return table


def _title(group: dict[str, Any]) -> str:
    """What a group is called: its name, or its columns, of which the first few will do."""
    if "name" in group:
        of_column = f"{shown(group['columns'][0])}: " if len(group["columns"]) == 1 else ""
        return of_column + shown(group["name"])
    columns = [shown(name) for name in group["columns"][:_COLUMNS]]
    more = len(group["columns"]) - len(columns)
    return "group of " + ", ".join(columns) + (f" and {more} more" if more > 0 else "")


def _strongest(records: list[dict[str, Any]]) -> str:
    """The records that speak loudest within a term."""
    return ", ".join(
        f"row {one['training_row']} ({shown(one['class'])}): {one['contribution']:+.4f}" for one in records[:2]
    )
