"""``qmedoid explain``: one decision in words, by column, and beside the most similar real rows."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa

from qmedoid.cli.options import (
    OUTPUT,
    RESULTS,
    Json,
    ModelPath,
    Names,
    ReadingOptions,
    Row,
    Table,
    Text,
    command,
    flag,
    listed,
    option,
)
from qmedoid.cli.output import grid, note, print_json, show
from qmedoid.exceptions import ParameterError
from qmedoid.explain.explaining import NearestRows, explain_record
from qmedoid.explain.explanation import PAGE_TITLE, PICTURE_TITLE, Explanation
from qmedoid.explain.sentences import term_text
from qmedoid.metrics.texts import cell_text, chance_texts, class_name, effect_text
from qmedoid.model.operating_point import probability
from qmedoid.model.storage.atomic import atomic_file, check_target
from qmedoid.model.storage.model_file import load_file
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import TableReading, read_row, read_through

# Groups, and columns of a group, that are named.
_GROUPS, _COLUMNS = 8, 4
# A table with its title.
Titled = tuple[str, Any]
# Effects up to this size are rounding.
_NOTHING = 1e-9


@command(
    "qmedoid explain patients.qmedoid new.csv --row 3",
    "qmedoid explain patients.qmedoid new.csv --row 3 --html why.html",
    most_used=("row", "top", "html", "svg", "known", "fixed", "json"),
)
def run(
    model: ModelPath,
    table: Table,
    *,
    reading: ReadingOptions,
    json: Json = False,
    row: Row,
    top: Annotated[int, option(RESULTS, "N", "Columns, groups and rows that are listed; 0 lists all.", min=0)] = 10,
    fixed: Annotated[
        Names, option(RESULTS, "COLUMNS", "Columns that cannot change, such as age (with commas between).")
    ] = None,
    html: Annotated[Path | None, option(OUTPUT, "FILE", "Page to write, without scripts.")] = None,
    svg: Annotated[Path | None, option(OUTPUT, "FILE", "Picture of the contributions to write.")] = None,
    known: Annotated[
        Text, option(RESULTS, "TABLE", "Table, such as the fitted one, of which the rows most like this one are shown.")
    ] = None,
    verbose: Annotated[bool, flag(RESULTS, "Show the exact sum by groups of columns.", "--verbose", "-v")] = False,
) -> None:
    """Say why a row got its class: what each column contributes.

    The contributions add up exactly to the decision. Also shows similar real rows, and the smallest change that
    would lead to another class.
    """
    keep_pandas_away()
    if known == table == "-":
        raise ParameterError("Standard input can be read once: give the table or --known as a file.")
    if html is not None and svg is not None and html.resolve() == svg.resolve():
        raise ParameterError(f"--html and --svg are two files. Got {str(svg)!r} for both.")
    _check_output(html, PAGE_TITLE)
    _check_output(svg, PICTURE_TITLE)
    loaded = load_file(model)
    settings = ScoreSettings(**vars(reading))
    look = partial(explain_record, loaded.model)
    record, found, difference = read_row(loaded.model, table, settings, row, look)
    report = {"row": row, **found}
    if known is not None:
        # In the table of the record it would find itself.
        skip = row if table != "-" and Path(known).resolve() == Path(table).resolve() else None
        nearest = partial(_nearest, record=record, report=report, skip=skip)
        rows, opened = read_through(loaded.model, known, settings, nearest, all_columns=True)
        report |= rows.found()
        if (target := loaded.model.contract.target) not in opened.source.names:
            where = opened.source.description
            note(f"{where} has no column with the classes ({target!r}): those of its rows are not shown.")
    how: dict[str, Any] = {"top": top, "fixed": listed(fixed), "sha256": loaded.sha256, "difference": difference}
    why = Explanation(report, loaded.model, record, **how)
    for file, content in ((html, why.to_html), (svg, why.to_svg)):
        if file is not None:
            with atomic_file(file) as out:
                out.write(content().encode())
    made = why.to_dict()
    if json:
        print_json(made)
    else:
        _print(made, table, verbose=verbose)


def _check_output(file: Path | None, start: str) -> None:
    """Refuse a file that cannot be written, and one that this command did not write: a model, a table."""
    if file is not None and str(file) == "-":
        raise ParameterError("Pages and pictures are written to files: give a path instead of -, or use --json.")
    if file is not None:
        check_target(file, lambda content: f"<title>{start}".encode() in content, "explanation of a decision")


def _nearest(reading: TableReading, record: pa.Table, report: dict[str, Any], skip: int | None) -> NearestRows:
    """The rows of another table that are nearest and most similar to the record."""
    target = reading.model.contract.target
    labeled = [] if target is None or target not in reading.source.names else [target]
    nearest = NearestRows(reading.model, record, report, skip=skip)
    for batch, extra in reading.batches(labeled, as_text=True):
        nearest.add(batch, extra.column(labeled[0]) if labeled else None, reading.issues)
    return nearest


def _print(made: Mapping[str, Any], source: Any, *, verbose: bool) -> None:
    lines = [
        f"Row {made['row']} of {'standard input' if source == '-' else printable(source)}",
        "",
        *made["sentences"],
        "",
    ]
    lines += [one["sentence"] for one in made["similar"]]
    tables, flips = [_columns(made)], [_flip(one) for one in made["flips"]]
    if flips:
        grid_of_flips = grid(("change", "called", "its probability"), flips, left=(0, 1))
        tables.append(("Smallest changes that turn the decision", grid_of_flips))
    if verbose:
        tables.append(_sum(made))
    if "known" in made:
        known = made["known"]
        classes = [one["class"] for one in known["nearest"]]
        of_class = f"{classes.count(made['prediction'])} are {class_name(made['prediction'], made['target'])}"
        unknown = f", {classes.count(None)} of no known class" if None in classes else ""
        said = f"{of_class}{unknown}." if {*classes} - {None} else "the classes are not known."
        lines.append(f"Of the {len(classes)} most similar of {known['rows']:,} known rows {said}")
    show(*lines, *(part for title, table in tables for part in ("", title, table)))


def _flip(flip: Mapping[str, Any]) -> tuple[str, str, str]:
    chance = "" if flip["probability"] is None else chance_texts(flip["probability"])[0]
    return flip["text"], cell_text(flip["prediction"]), chance


def _columns(made: Mapping[str, Any]) -> Titled:
    """What each column does, the largest first, between where every record starts and where this one ends."""
    odds, is_pair = "probabilities" in made, made["threshold"] is not None
    cut = made["terms"].get("operating point", 0.0)
    title = (
        f"What decides: effects on the {'odds' if odds else 'score'} of {class_name(made['toward'], made['target'])}"
    )
    title += "" if is_pair else f" against {class_name(made['against'], made['target'])}"
    rest = made["rest"]["columns"]
    parts = [(cell_text(one["name"]), cell_text(one["cell"]), one["contribution"]) for one in made["columns"]]
    if rest["count"]:
        parts.append((f"{rest['count']:,} other column{'' if rest['count'] == 1 else 's'}", "", rest["contribution"]))
    terms = made["varying"] if is_pair else {**made["varying"], "operating point": cut}
    parts += [(term_text(name), "", value) for name, value in terms.items()]
    table = grid(("", "cell", "effect", ""), (), left=(0, 1, 3))
    table.add_row("every record starts at", "", _level(made["start"], odds=odds), end_section=True)
    for name, cell, value in parts:
        if abs(value) > _NOTHING:
            table.add_row(name, cell, effect_text(value, odds=odds), "raises" if value > 0 else "lowers")
    table.add_section()
    table.add_row("this record ends at", "", _level(made["margin"] - cut * is_pair, odds=odds))
    return title, table


def _level(value: float, *, odds: bool) -> str:
    """A probability, or a score where there is none."""
    return chance_texts(probability(value))[0] if odds else f"{value:+.3g}".replace("-", "−")


def _sum(made: Mapping[str, Any]) -> Titled:
    """The exact sum: groups of encoded columns and terms add up to the margin."""
    groups, rest = made["groups"], made["rest"]["groups"]
    unit = "log-odds" if "probabilities" in made else "score"
    toward = class_name(made["toward"], made["target"])
    title = f"The exact sum for {toward}, in {unit}: columns that are measured together, then the rest"
    table = grid(("part", unit), ())
    for group in groups[:_GROUPS]:
        table.add_row(_group(group), f"{group['contribution']:+.6f}")
    count = len(groups[_GROUPS:]) + rest["count"]
    if count:
        added = sum(group["contribution"] for group in groups[_GROUPS:]) + rest["contribution"]
        table.add_row(f"{count} more groups", f"{added:+.6f}")
    for name, value in made["terms"].items():
        if value:
            table.add_row(name, f"{value:+.6f}")
    table.add_section()
    table.add_row("margin: what is above the threshold", f"{made['margin']:+.6f}")
    return title, table


def _group(group: Mapping[str, Any]) -> str:
    """What a group is called: its name, or its columns, of which the first few will do."""
    columns = [printable(name) for name in group["columns"]]
    if "name" in group:
        return (f"{columns[0]}: " if len(columns) == 1 else "") + printable(group["name"])
    more = len(columns) - _COLUMNS
    return ", ".join(columns[:_COLUMNS]) + (f" and {more} more" if more > 0 else "")
