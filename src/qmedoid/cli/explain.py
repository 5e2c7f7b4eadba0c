"""``qmedoid explain``: one decision in words, by column, by medoid and by the nearest known rows."""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid.cli._cut import listed
from qmedoid.cli._output import grid, note, plain_console, print_json, shown
from qmedoid.cli.options import ExplainOptions
from qmedoid.exceptions import ParameterError
from qmedoid.explanations.explanation import Explanation
from qmedoid.explanations.flips import check_fixed
from qmedoid.explanations.picture import PICTURE_TITLE
from qmedoid.explanations.sentences import change_texts
from qmedoid.explanations.view import PAGE_TITLE
from qmedoid.model.table import TableModel
from qmedoid.storage.atomic import atomic_file, check_target
from qmedoid.storage.model_file import load_file
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.explaining import NearestRows, explain_record
from qmedoid.tables.scoring import TableReading

# Groups, and columns of a group, that are named.
_GROUPS, _COLUMNS = 8, 4
# Terms without which a decision can be thought of; an intercept is part of every one.
_OPTIONAL = ("operating point", "prevalence", "neighbors", "circuit")


def run(options: ExplainOptions) -> None:
    """Find the row, decide about it, and print or draw why."""
    keep_pandas_away()
    if options.known == options.table == "-":
        raise ParameterError("Standard input can be read once: give the table or --known as a file.")
    check_outputs(options)
    loaded = load_file(options.model)
    model = loaded.model
    dialect: dict[str, Any] = {"delimiter": options.delimiter, "decimal": options.decimal}
    fixed = listed(options.fixed)
    check_fixed(model, fixed)
    with TableReading(model, options.table, options.on_mismatch, all_columns=True, **dialect) as reading:
        record = reading.row(options.row)
        report = {"row": options.row, **explain_record(model, record, reading.issues)}
        difference = reading.check().deviations()
    if options.known is not None:
        report["known"] = _nearest(model, record, options.known, options.on_mismatch, dialect)
    why = Explanation(report, model, record, top=options.top, fixed=fixed, sha256=loaded.sha256, difference=difference)
    for file, content in ((options.html, why.to_html), (options.svg, why.to_svg)):
        if file is not None:
            with atomic_file(file) as opened:
                opened.write(content().encode())
    made = why.to_dict()
    if options.json:
        print_json(made)
    else:
        _print(made)


def check_outputs(options: ExplainOptions) -> None:
    """Refuse files that cannot be written, and those that this command did not write: a model, a table."""
    for file, start in ((options.html, PAGE_TITLE), (options.svg, PICTURE_TITLE)):
        if file is not None and str(file) == "-":
            raise ParameterError("Pages and pictures are written to files: give a path instead of -, or use --json.")
        if file is not None:
            check_target(file, partial(_holds, f"<title>{start}".encode()), "explanation of a decision")
    files = [Path(file).resolve() for file in (options.html, options.svg) if file is not None]
    if len(files) > len(set(files)):
        raise ParameterError(f"--html and --svg are two files. Got {str(options.svg)!r} for both.")


def _holds(begins: bytes, content: bytes) -> bool:
    return begins in content


def _nearest(
    model: TableModel, record: pa.Table, known: str, on_mismatch: OnMismatch, dialect: dict[str, Any]
) -> dict[str, Any]:
    """The rows of another table that lie nearest to the record."""
    target = model.contract.target
    with TableReading(model, known, on_mismatch, all_columns=True, **dialect) as reading:
        labeled = [] if target is None or target not in reading.source.names else [target]
        if not labeled:
            note(f"{known} has no column with the classes ({target!r}): those of its rows are not shown.")

        def look(lenient: bool) -> NearestRows:
            nearest = NearestRows(model, record)
            for batch, extra in reading.batches(lenient, labeled, as_text=True):
                nearest.add(batch, extra.column(labeled[0]) if labeled else None, reading.issues)
            return nearest

        found: NearestRows = reading.in_kind(look)
        reading.check()
    return found.report()


def _print(made: dict[str, Any]) -> None:
    console = plain_console()
    console.print("\n".join(sentences(made)))
    tables = [_medoid_table, _term_table, *([_flip_table] if made["flips"] else [])]
    for table in (*tables, *([_nearest_table] if "known" in made else [])):
        console.print()
        console.print(table(made))


def _flip_table(made: dict[str, Any]) -> Any:
    """The smallest changes that lead to another class."""
    table = grid(
        ("change", "called", "probability"), (), title="the smallest changes that lead to another class", left=(0,)
    )
    for flip in made["flips"]:
        changes = [f"{shown(one['column'])}: {' → '.join(change_texts(one))}" for one in flip["changes"]]
        probability = "" if flip["probability"] is None else f"{flip['probability']:.4f}"
        table.add_row(", ".join(changes), shown(flip["prediction"]), probability)
    return table


def _medoid_table(report: dict[str, Any]) -> Any:
    """What each column contributed, the largest first, with the cells of the nearest medoids."""
    medoids = report["medoids"]
    names = ("", "contribution", "this record", *(f"row {m['training_row']}: {shown(m['class'])}" for m in medoids))
    table = grid(names, (), title="the record and the nearest medoid of each class")
    table.add_row("distance", "", "", *(f"{medoid['distance']:.4g}" for medoid in medoids))
    table.add_row("angle", "", "", *(f"{medoid['angle']:.4g}" for medoid in medoids), end_section=True)
    for column in report["columns"]:
        name = column["name"]
        cells = ["·" if m["record"] is None else cell_text(m["record"].get(name)) for m in medoids]
        table.add_row(shown(name), f"{column['contribution']:+.4f}", cell_text(column["cell"]), *cells)
    rest = report["rest"]["columns"]
    if rest["count"]:
        table.add_row(f"{rest['count']:,} more", f"{rest['contribution']:+.4f}")
    return table


def _nearest_table(report: dict[str, Any]) -> Any:
    """The record and the nearest known rows, cell by cell; the columns that contributed most come first."""
    nearest = report["known"]["nearest"]
    names = ("", "this record", *(f"row {one['row']}" for one in nearest))
    table = grid(names, (), title=f"the nearest of {report['known']['rows']:,} known rows")
    table.add_row("class", "", *("?" if one["class"] is None else shown(one["class"]) for one in nearest))
    table.add_row("distance", "", *(f"{one['distance']:.4g}" for one in nearest), end_section=True)
    for column in report["columns"]:
        cells = [column["cell"], *(one["record"].get(column["name"]) for one in nearest)]
        table.add_row(shown(column["name"]), *(cell_text(cell, digits=4) for cell in cells))
    return table


def _term_table(report: dict[str, Any]) -> Any:
    groups, neighbors = report["groups"], report.get("neighbors", [])
    by_record = bool(neighbors) or any("records" in group for group in groups)
    names = ("term", "contribution", *(["most of it by distance to"] if by_record else []))
    table = grid(names, (), title="what the margin is made of, by group of encoded columns", left=(0, 2))
    for group in groups[:_GROUPS]:
        strongest = [_strongest(group.get("records", []))] if by_record else []
        table.add_row(_title(group), f"{group['contribution']:+.6f}", *strongest)
    rest = report["rest"]["groups"]
    count = len(groups[_GROUPS:]) + rest["count"]
    if count:
        added = sum(group["contribution"] for group in groups[_GROUPS:]) + rest["contribution"]
        table.add_row(f"{count} more groups", f"{added:+.6f}")
    for name, value in report["terms"].items():
        if value:
            table.add_row(name, f"{value:+.6f}", *([_strongest(neighbors)] if name == "neighbors" else []))
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


def sentences(report: dict[str, Any]) -> list[str]:
    """The decision in two sentences, what decides against the nearer medoid, and the nearest known rows if any."""
    against = shown(report["against"])
    lines = [*report["sentences"], *_against_the_nearer(report)]
    optional = [(value, name) for name, value in report["terms"].items() if name in _OPTIONAL]
    value, name = max(optional, default=(0.0, ""))
    if value > report["margin"]:
        lines.append(f"Without the term {name!r} it would be called {against}.")
    if report["decided_by"] == "circuit":
        lines.append("The circuit took the decision; its part is the term 'circuit'.")
    return [*lines, _nearest_rows(report)] if "known" in report else lines


def cell_text(value: Any, digits: int = 6) -> str:
    """A cell for the reader, numbers with this many significant digits."""
    if value is None:
        return "missing"
    return f"{value:.{digits}g}" if isinstance(value, float) else shown(value)


def _reason(column: dict[str, Any]) -> str:
    return f"{shown(column['name'])} is {cell_text(column['cell'])} ({column['contribution']:+.3g})"


def _against_the_nearer(report: dict[str, Any]) -> list[str]:
    """What decides most, where the decision goes against the nearer medoid."""
    nearest = min(report["medoids"], key=lambda medoid: medoid["distance"])
    if report["medoids"][0]["distance"] <= nearest["distance"]:
        return []
    # Of those that are listed the largest may be against the decision.
    parts = [(column["contribution"], _reason(column)) for column in report["reasons"]]
    parts += [(value, f"the term {name!r} ({value:+.3g})") for name, value in report["terms"].items()]
    largest = max(parts, key=lambda part: part[0])[1]
    return [f"The decision goes against the nearer medoid. Most of all decides: {largest}."]


def _nearest_rows(report: dict[str, Any]) -> str:
    known = report["known"]
    nearest = known["nearest"]
    classes = [one["class"] for one in nearest]
    of_class = f"{classes.count(report['prediction'])} are {shown(report['prediction'])}"
    if None in classes:
        unknown = classes.count(None)
        of_class = "their classes are not known" if unknown == len(classes) else f"{of_class}, {unknown} of no class"
    return (
        f"Of the {known['rows']:,} known rows the nearest {len(nearest)} lie at {nearest[0]['distance']:.4g} to "
        f"{nearest[-1]['distance']:.4g} ({known['distance']}); {of_class}."
    )
