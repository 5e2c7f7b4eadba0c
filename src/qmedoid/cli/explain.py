"""``qmedoid explain``: one decision, by example and by group of columns."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid.artifacts.loading import load_model
from qmedoid.cli._output import plain_console, print_json, shown
from qmedoid.exceptions import DataError
from qmedoid.models.table import TableModel
from qmedoid.tables.arrow_alone import keep_pandas_away
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.explaining import explain_record
from qmedoid.tables.files import Reading

_GROUPS = 8
_COLUMNS = 4


def run(model: Path, table: str, row: int, *, on_mismatch: OnMismatch, as_json: bool, **dialect: Any) -> None:
    """Find the row, decide about it, and print why."""
    keep_pandas_away()
    loaded = load_model(model)
    with Reading(loaded, table, on_mismatch, all_columns=True, **dialect) as reading:
        record = reading.in_kind(lambda lenient: _find(reading, row, lenient))
        report = {"row": row, **explain_record(loaded, record, reading.found)}
        reading.check()
    if as_json:
        print_json(report)
    else:
        _print(loaded, report)


def _find(reading: Reading, row: int, lenient: bool) -> pa.Table:
    passed = 0
    for batch, _ in reading.batches(as_text=False, lenient=lenient):
        if row < passed + len(batch):
            return pa.Table.from_batches([batch.slice(row - passed, 1)])
        passed += len(batch)
    raise DataError(f"There is no row {row}: the table has {passed:,} rows, counted from 0.")


def _print(model: TableModel, report: dict[str, Any]) -> None:
    from rich.table import Table

    console = plain_console()
    console.print(_sentence(report))
    console.print()
    console.print(_records(model, report, Table))
    console.print()
    console.print(_terms(report, Table))


def _sentence(report: dict[str, Any]) -> str:
    """The decision in words: whom the record resembles, and because of which columns."""
    nearest = {medoid["class"]: medoid for medoid in report["medoids"]}
    winner, other = nearest[report["prediction"]], nearest[report["against"]]
    speaking = [group for group in report["groups"] if group["contribution"] > 0][:3]
    because = ", ".join(dict.fromkeys(shown(group["columns"][0]) for group in speaking))
    lines = [
        f"Row {report['row']} is called {shown(report['prediction'])}, by {report['margin']:.4g} over "
        f"{shown(report['against'])}"
        + (
            f" (probability {report['probabilities'][str(report['prediction'])]:.4f})."
            if "probabilities" in report
            else "."
        )
    ]
    is_nearer = winner["distance"] <= other["distance"]
    nearer, to = ("nearer", "to") if is_nearer else ("farther", "from")
    reason = f", because of {because}" if is_nearer else f"; what speaks for {shown(winner['class'])} is {because}"
    lines.append(
        f"It lies {nearer} {to} training row {winner['training_row']} ({shown(winner['class'])}, distance "
        f"{winner['distance']:.4g}) than {to} row {other['training_row']} ({shown(other['class'])}, "
        f"{other['distance']:.4g}){reason if because else ''}."
    )
    loudest = max(report["terms"].items(), key=lambda term: term[1], default=("", 0.0))
    if loudest[0] in ("operating point", "prevalence") and loudest[1] > report["margin"]:
        lines.append(f"Without the term {loudest[0]!r} it would be called {shown(report['against'])}.")
    if report["decided_by"] == "variational":
        lines.append("The circuit took the decision; its part is the term 'circuit'.")
    return "\n".join(lines)


def _records(model: TableModel, report: dict[str, Any], make: Any) -> Any:
    """The record beside the nearest medoids, cell by cell; the columns that contributed most come first."""
    medoids = report["medoids"]
    table = make(title="the record and the nearest known ones", title_justify="left")
    table.add_column("")
    table.add_column("this record", justify="right")
    for medoid in medoids:
        table.add_column(f"row {medoid['training_row']}: {shown(medoid['class'])}", justify="right")
    table.add_row("distance", "", *(f"{medoid['distance']:.4g}" for medoid in medoids))
    table.add_row("angle", "", *(f"{medoid['angle']:.4g}" for medoid in medoids), end_section=True)
    for name in model.contract.names:
        cells = [(medoid["record"] or {}).get(name, "·") for medoid in medoids]
        table.add_row(shown(name), _cell(report["record"].get(name)), *map(_cell, cells))
    return table


def _terms(report: dict[str, Any], make: Any) -> Any:
    table = make(title="what the margin is made of", title_justify="left")
    table.add_column("term")
    table.add_column("contribution", justify="right")
    groups = report["groups"]
    by_record = any("records" in group for group in groups)
    if by_record:
        table.add_column("most of it by distance to")
    for group in groups[:_GROUPS]:
        strongest = [_strongest(group)] if by_record else []
        table.add_row(_title(group), f"{group['contribution']:+.6f}", *strongest)
    if len(groups) > _GROUPS:
        rest = sum(group["contribution"] for group in groups[_GROUPS:])
        table.add_row(f"{len(groups) - _GROUPS} more groups", f"{rest:+.6f}")
    for name, value in report["terms"].items():
        if value:
            table.add_row(name, f"{value:+.6f}")
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


def _strongest(group: dict[str, Any]) -> str:
    """The records that speak loudest within a group."""
    strongest = group.get("records", [])[:2]
    return ", ".join(
        f"row {one['training_row']} ({shown(one['class'])}): {one['contribution']:+.4f}" for one in strongest
    )


def _cell(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.6g}" if isinstance(value, float) else shown(value)
