"""``qmedoid explain``: one decision in words, by column, and beside the most similar real rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from qmedoid.cli._output import grid, note, plain_console, print_json, shown
from qmedoid.cli.options import (
    OUTPUT,
    RESULTS,
    ModelPath,
    Names,
    ReadingOptions,
    Row,
    Table,
    Text,
    flag,
    listed,
    option,
)
from qmedoid.exceptions import ParameterError
from qmedoid.explain.documents import KnownRowsDict
from qmedoid.explain.explaining import NearestRows, explain_record
from qmedoid.explain.explanation import Explanation
from qmedoid.explain.flips import check_fixed
from qmedoid.explain.view import PAGE_TITLE, PICTURE_TITLE, change_texts, term_text, toward_text
from qmedoid.metrics.texts import cell_text as shown_text
from qmedoid.metrics.texts import chance_texts, class_name, effect_text
from qmedoid.model.model import Model
from qmedoid.model.operating_point import probability
from qmedoid.model.storage.atomic import atomic_file, check_target
from qmedoid.model.storage.model_file import load_file
from qmedoid.tables.arrow import keep_pandas_away

# Groups, and columns of a group, that are named.
_GROUPS, _COLUMNS = 8, 4
# A table with its title.
Titled = tuple[str, Any]
# Effects up to this size are rounding.
_NOTHING = 1e-9


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ReadingOptions):
    """Say why a row got its class: what each column contributes.

    The contributions add up exactly to the decision. Also shows similar real rows, and the smallest change that
    would lead to another class.
    """

    most_used = ("row", "top", "html", "svg", "known", "fixed", "json")
    examples = (
        "qmedoid explain patients.qmedoid new.csv --row 3",
        "qmedoid explain patients.qmedoid new.csv --row 3 --html why.html",
    )

    model: ModelPath
    table: Table
    row: Row
    top: Annotated[int, option(RESULTS, "N", "Columns, groups and rows that are listed; 0 lists all.", min=0)] = 10
    fixed: Annotated[
        Names, option(RESULTS, "COLUMNS", "Columns that cannot change, such as age (with commas between).")
    ] = None
    html: Annotated[Path | None, option(OUTPUT, "FILE", "Page to write, without scripts.")] = None
    svg: Annotated[Path | None, option(OUTPUT, "FILE", "Picture of the contributions to write.")] = None
    known: Annotated[
        Text, option(RESULTS, "TABLE", "Table, such as the fitted one, of which the rows most like this one are shown.")
    ] = None
    verbose: Annotated[bool, flag(RESULTS, "Show distances, angles and the exact sum.", "--verbose", "-v")] = False


def run(options: ExplainOptions) -> None:
    """Find the row, decide about it, and print or draw why."""
    keep_pandas_away()
    if options.known == options.table == "-":
        raise ParameterError("Standard input can be read once: give the table or --known as a file.")
    check_outputs(options)
    loaded = load_file(options.model)
    model = loaded.model
    fixed = listed(options.fixed)
    check_fixed(model, fixed)
    with options.reading(model, options.table, all_columns=True) as reading:
        record = reading.row(options.row)
        report = {"row": options.row, **explain_record(model, record, reading.issues)}
        difference = reading.check().deviations()
    if options.known is not None:
        report["known"] = _nearest(model, record, report, options)
    why = Explanation(report, model, record, top=options.top, fixed=fixed, sha256=loaded.sha256, difference=difference)
    for file, content in ((options.html, why.to_html), (options.svg, why.to_svg)):
        if file is not None:
            with atomic_file(file) as opened:
                opened.write(content().encode())
    made = why.to_dict()
    if options.json:
        print_json(made)
    else:
        _print(made, options.table, verbose=options.verbose)


def check_outputs(options: ExplainOptions) -> None:
    """Refuse files that cannot be written, and those that this command did not write: a model, a table."""
    files = [Path(file).resolve() for file in (options.html, options.svg) if file is not None]
    if len(files) > len(set(files)):
        raise ParameterError(f"--html and --svg are two files. Got {str(options.svg)!r} for both.")
    for file, start in ((options.html, PAGE_TITLE), (options.svg, PICTURE_TITLE)):
        if file is not None and str(file) == "-":
            raise ParameterError("Pages and pictures are written to files: give a path instead of -, or use --json.")
        if file is not None:
            check_target(file, partial(_holds, f"<title>{start}".encode()), "explanation of a decision")


def _holds(begins: bytes, content: bytes) -> bool:
    return begins in content


def _nearest(model: Model, record: pa.Table, report: dict[str, Any], options: ExplainOptions) -> KnownRowsDict:
    """The rows of another table that are nearest and most similar to the record."""
    known = str(options.known)
    contributions = {one["name"]: one["contribution"] for one in report["columns"]}
    # In the table of the record it would find itself.
    skip = options.row if options.table != "-" and Path(known).resolve() == Path(options.table).resolve() else None
    target = model.contract.target
    with options.reading(model, known, all_columns=True) as reading:
        labeled = [] if target is None or target not in reading.source.names else [target]
        if not labeled:
            note(f"{known} has no column with the classes ({target!r}): those of its rows are not shown.")

        def look() -> NearestRows:
            nearest = NearestRows(model, record, contributions, skip=skip)
            for batch, extra in reading.batches(labeled, as_text=True):
                nearest.add(batch, extra.column(labeled[0]) if labeled else None, reading.issues)
            return nearest

        found: NearestRows = reading.in_kind(look)
        reading.check()
    return found.report()


def _print(made: Mapping[str, Any], source: Any, *, verbose: bool) -> None:
    console = plain_console()
    lines = [f"Row {made['row']} of {'standard input' if source == '-' else shown(source)}", "", *made["sentences"], ""]
    lines += [one["sentence"] for one in made["similar"]]
    if "known" in made:
        lines.append(_nearest_classes(made))
    console.print("\n".join(lines))
    tables: list[Titled] = [_column_table(made), *([_flip_table(made)] if made["flips"] else [])]
    if verbose:
        tables += [_medoid_table(made), _sum_table(made), *([_nearest_table(made)] if "known" in made else [])]
    for title, table in tables:
        # A title of a table is broken at the width of the table.
        console.print(f"\n{title}")
        console.print(table)


def _column_table(made: Mapping[str, Any]) -> Titled:
    """What each column does, the largest first, between where every record starts and where this one ends."""
    odds = "probabilities" in made
    title = f"What decides: effects on the {'odds' if odds else 'score'} of {toward_text(made)}"
    if made["threshold"] is None:
        title += f" against {class_name(made['against'], made['target'])}"
    table = grid(("", "cell", "effect", ""), (), left=(0, 1, 3))

    def add(name: str, cell: str, value: float) -> None:
        if abs(value) > _NOTHING:
            table.add_row(name, cell, effect_text(value, odds=odds), "raises" if value > 0 else "lowers")

    end = made["margin"] - made["terms"].get("operating point", 0.0) * (made["threshold"] is not None)
    table.add_row("every record starts at", "", _level(made["start"], odds=odds), end_section=True)
    for one in made["columns"]:
        add(shown_text(one["name"]), shown_text(one["cell"]), one["contribution"])
    rest = made["rest"]["columns"]
    if rest["count"]:
        add(f"{rest['count']:,} other column{'' if rest['count'] == 1 else 's'}", "", rest["contribution"])
    terms = dict(made["varying"])
    if made["threshold"] is None:
        terms["operating point"] = made["terms"].get("operating point", 0.0)
    for name, value in terms.items():
        add(term_text(name), "", value)
    table.add_section()
    table.add_row("this record ends at", "", _level(end, odds=odds))
    return title, table


def _level(value: float, *, odds: bool) -> str:
    """A probability, or a score where there is none."""
    return chance_texts(probability(value))[0] if odds else f"{value:+.3g}".replace("-", "−")


def _flip_table(made: Mapping[str, Any]) -> Titled:
    """The smallest changes that lead to another class."""
    table = grid(("change", "called", "its probability"), (), left=(0, 1))
    for flip in made["flips"]:
        changes = [f"{shown_text(one['column'])}: {' → '.join(change_texts(one))}" for one in flip["changes"]]
        probability_of = "" if flip["probability"] is None else chance_texts(flip["probability"])[0]
        table.add_row(", ".join(changes), shown_text(flip["prediction"]), probability_of)
    return "Smallest changes that turn the decision", table


def _medoid_table(made: Mapping[str, Any]) -> Titled:
    """The record beside the nearest medoid of each class, with distances and angles."""
    medoids = made["medoids"]
    names = ("", "this record", *(f"row {one['training_row']}: {shown_text(one['class'])}" for one in medoids))
    table = grid(names, ())
    table.add_row("distance", "", *(f"{medoid['distance']:.4g}" for medoid in medoids))
    table.add_row("angle", "", *(f"{medoid['angle']:.4g}" for medoid in medoids), end_section=True)
    for column in made["columns"]:
        name = column["name"]
        cells = ["·" if one["record"] is None else shown_text(one["record"].get(name)) for one in medoids]
        table.add_row(shown_text(name), shown_text(column["cell"]), *cells)
    return "The record and the nearest medoid of each class", table


def _nearest_table(made: Mapping[str, Any]) -> Titled:
    """The record and the nearest known rows, cell by cell; the columns that contributed most come first."""
    known, nearest = made["known"], made["known"]["nearest"]
    names = ("", "this record", *(f"row {one['row']}" for one in nearest))
    table = grid(names, ())
    table.add_row("class", "", *("?" if one["class"] is None else shown_text(one["class"]) for one in nearest))
    table.add_row("distance", "", *(f"{one['distance']:.4g}" for one in nearest), end_section=True)
    for column in made["columns"]:
        cells = [column["cell"], *(one["record"].get(column["name"]) for one in nearest)]
        table.add_row(shown_text(column["name"]), *map(shown_text, cells))
    return f"The nearest of {known['rows']:,} known rows, by the distance {known['distance']}", table


def _sum_table(made: Mapping[str, Any]) -> Titled:
    """The exact sum: groups of encoded columns and terms add up to the margin."""
    groups, neighbors = made["groups"], made.get("neighbors", [])
    by_record = bool(neighbors) or any("records" in group for group in groups)
    unit = "log-odds" if "probabilities" in made else "score"
    names = ("part", unit, *(["most of it from"] if by_record else []))
    title = f"The exact sum for {toward_text(made)}, in {unit}: columns that are measured together, then the rest"
    table = grid(names, (), left=(0, 2))
    for group in groups[:_GROUPS]:
        strongest = [_strongest(group.get("records", []))] if by_record else []
        table.add_row(_title(group), f"{group['contribution']:+.6f}", *strongest)
    rest = made["rest"]["groups"]
    count = len(groups[_GROUPS:]) + rest["count"]
    if count:
        added = sum(group["contribution"] for group in groups[_GROUPS:]) + rest["contribution"]
        table.add_row(f"{count} more groups", f"{added:+.6f}")
    for name, value in made["terms"].items():
        if value:
            table.add_row(name, f"{value:+.6f}", *([_strongest(neighbors)] if name == "neighbors" else []))
    table.add_section()
    table.add_row("margin: what is above the threshold", f"{made['margin']:+.6f}")
    return title, table


def _title(group: Mapping[str, Any]) -> str:
    """What a group is called: its name, or its columns, of which the first few will do."""
    if "name" in group:
        of_column = f"{shown(group['columns'][0])}: " if len(group["columns"]) == 1 else ""
        return of_column + shown(group["name"])
    columns = [shown(name) for name in group["columns"][:_COLUMNS]]
    more = len(group["columns"]) - len(columns)
    return ", ".join(columns) + (f" and {more} more" if more > 0 else "")


def _strongest(records: Sequence[Mapping[str, Any]]) -> str:
    """The training rows that contribute most to a part."""
    return ", ".join(
        f"row {one['training_row']} ({shown(one['class'])}): {one['contribution']:+.4f}" for one in records[:2]
    )


def _nearest_classes(made: Mapping[str, Any]) -> str:
    """How many of the nearest known rows are of the class that was decided for."""
    known = made["known"]
    classes = [one["class"] for one in known["nearest"]]
    text = f"Of the {len(classes)} nearest of {known['rows']:,} known rows"
    absent = classes.count(None)
    if absent == len(classes):
        return f"{text} the classes are not known."
    unknown = f", {absent} of no known class" if absent else ""
    of_class = class_name(made["prediction"], made["target"])
    return f"{text} {classes.count(made['prediction'])} are {of_class}{unknown}."
