"""``qmedoid check``: how the columns of a table are read and why, and what is odd about it, before any fit."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from qmedoid.cli.fitting import MOST_ROWS, dataset_settings
from qmedoid.cli.options import LEARNED, OUTPUT, TableOptions, Text, command, flag, option
from qmedoid.cli.output import DATA, OK, grid, print_json, show
from qmedoid.exceptions import some_of
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.checking import check_rows, too_good
from qmedoid.tables.dataset import read_rows
from qmedoid.tables.source import open_table

# Columns, classes, and signs of an example that are printed.
_COLUMNS, _CLASSES, _SIGNS = 200, 10, 12


@dataclass(frozen=True, kw_only=True)
class CheckOptions(TableOptions):
    """A table that is checked."""

    target: Annotated[Text, option(LEARNED, "COLUMN", "Column that holds the classes.")] = None
    strict: Annotated[bool, flag(OUTPUT, "End with exit code 3 if there are problems.", "--strict")] = False


@command(
    "qmedoid check patients.csv --target outcome",
    most_used=("target", "ignore", "missing", "category", "number", "strict", "json"),
)
def run(options: CheckOptions) -> int:
    """Show how each column would be read, and what is odd about it.

    Run it before a fit: it names columns that give the target away, identifiers, texts among numbers, and rows that
    occur twice. It writes nothing.
    """
    keep_pandas_away()
    with open_table(options.table, delimiter=options.delimiter, decimal=options.decimal) as source:
        settings, rng = dataset_settings(options, source.names), np.random.default_rng(options.seed)
        table, _, notes = read_rows(source, settings, options.max_rows or MOST_ROWS, rng, tuple(settings.all_roles))
    checked = check_rows(
        table,
        options.target,
        settings.all_roles,
        date_order=options.date_order,
        missing=settings.missing,
    )
    if too_good(checked):
        from qmedoid.estimators.checking import with_quick_fits

        checked = with_quick_fits(checked, table, settings)
    report = {"table": Path(options.table).name, "notes": notes, **checked}
    if options.json:
        print_json(report)
    else:
        _print(report)
    return DATA if options.strict and report["problems"] else OK


def _print(report: Mapping[str, Any]) -> None:
    columns, rows, judged = report["columns"], report["rows"], report["judged_rows"]
    used = sum(column["used"] for column in columns)
    target = "" if report["target"] is None else f", target {report['target']!r}"
    show(printable(f"{report['table']}: {rows:,} rows, {used} of {len(columns)} columns are used{target}"))
    for note in report["notes"]:
        show(printable(f"note: {note}"))
    names = ("column", "read as", "why", "different", "missing", *(["alone"] if judged else []), "examples")
    cells = [_cells(column, rows, bool(judged)) for column in columns[:_COLUMNS]]
    show(grid(names, cells, left=(0, 1, 2, len(names) - 1)))
    if len(columns) > _COLUMNS:
        show(f"{len(columns) - _COLUMNS:,} more columns: --json lists all.")
    if judged:
        figure = "ROC-AUC" if len(report["classes"]) == 2 else "mean recall"
        on = f"{judged:,} rows" if judged == rows else f"{judged:,} of the {rows:,} rows"
        show(f"alone: how well the column alone separates the classes, out-of-fold {figure} on {on}")
    if report["classes"]:
        total = sum(one["rows"] for one in report["classes"])
        texts = [f"{one['class']}: {one['rows']:,} rows ({one['rows'] / total:.1%})" for one in report["classes"]]
        show(printable(f"classes: {some_of(texts, _CLASSES)}"))
    for severity in ("problem", "note"):
        messages = [finding["message"] for finding in report["findings"] if finding["severity"] == severity]
        if messages:
            show(f"{severity}s: {len(messages):,}")
        for message in messages:
            show(printable(f"- {message}"))
    if not report["findings"]:
        show("nothing odd was found.")


def _cells(column: Mapping[str, Any], rows: int, judged: bool) -> list[str]:
    missing = f"{column['missing']:,}" + (f" ({column['missing'] / rows:.0%})" if column["missing"] else "")
    alone = [] if not judged else ["" if column["alone"] is None else f"{column['alone']:.3f}"]
    levels = "" if column["levels"] is None else f"{column['levels']:,}"
    examples = [text if len(text) <= _SIGNS else f"{text[: _SIGNS - 1]}…" for text in column["examples"]]
    kind = column["kind"] or "left out"
    return [
        printable(text) for text in (column["name"], kind, column["why"], levels, missing, *alone, ", ".join(examples))
    ]
