"""``qmedoid check``: how the columns of a table are read and why, and what is odd about it, before any fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qmedoid.cli._output import DATA, OK, plain_console, print_json, shown
from qmedoid.cli.fit import read_rows
from qmedoid.exceptions import some_of
from qmedoid.tables.arrow_alone import keep_pandas_away
from qmedoid.tables.checking import check_rows
from qmedoid.tables.roles import Role, check_role_names

# Columns, classes, and signs of an example that are printed.
_COLUMNS, _CLASSES, _SIGNS = 200, 10, 12


@dataclass(frozen=True)
class Options:
    """What was asked for, as the options of the command are called."""

    table: str
    target: str | None
    seed: int
    max_rows: int
    delimiter: str | None
    decimal: str | None
    date_order: str | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)


def run(options: Options, *, strict: bool, as_json: bool) -> int:
    """Print the report, and give the exit code: with `strict`, that of unusable data if there are problems."""
    keep_pandas_away()
    check_role_names(options.roles, list(options.roles), options.target)
    needed = [*([] if options.target is None else [options.target]), *options.roles]
    table, _, notes = read_rows(options.table, options, needed)
    checked = check_rows(table, options.target, options.roles, date_order=options.date_order)
    report = {"table": Path(options.table).name, "notes": notes, **checked}
    if as_json:
        print_json(report)
    else:
        _print(report)
    return DATA if strict and report["problems"] else OK


def _print(report: Mapping[str, Any]) -> None:
    from rich.table import Table

    console = plain_console()
    columns = report["columns"]
    used = sum(column["used"] for column in columns)
    target = "" if report["target"] is None else f", target {report['target']!r}"
    console.print(
        shown(f"{report['table']}: {report['rows']:,} rows, {used} of {len(columns)} columns are used{target}")
    )
    for note in report["notes"]:
        console.print(shown(f"note: {note}"))
    grid = Table()
    judged = bool(report["judged_rows"])
    for name in ("column", "read as", "why", "different", "missing", *(["alone"] if judged else []), "examples"):
        grid.add_column(name, justify="right" if name in ("different", "missing", "alone") else "left", overflow="fold")
    for column in columns[:_COLUMNS]:
        grid.add_row(*_cells(column, report["rows"], judged))
    console.print(grid)
    if len(columns) > _COLUMNS:
        console.print(f"{len(columns) - _COLUMNS:,} more columns: --json lists all.")
    if judged:
        figure = "ROC-AUC" if len(report["classes"]) == 2 else "mean recall"
        on = f"on {report['judged_rows']:,} rows" if report["judged_rows"] == report["rows"] else (
            f"on {report['judged_rows']:,} of the {report['rows']:,} rows"
        )  # fmt: skip
        console.print(f"alone: how well the column alone separates the classes, out-of-fold {figure} {on}")
    if report["classes"]:
        total = sum(one["rows"] for one in report["classes"])
        texts = [f"{one['class']} {one['rows']:,} ({one['rows'] / total:.1%})" for one in report["classes"]]
        console.print(shown(f"classes: {some_of(texts, _CLASSES)}"))
    _print_findings(console, report["findings"])


def _cells(column: Mapping[str, Any], rows: int, judged: bool) -> list[str]:
    missing = f"{column['missing']:,}" if column["missing"] == 0 else _with_share(column["missing"], rows)
    alone = [] if not judged else ["" if column["alone"] is None else f"{column['alone']:.3f}"]
    levels = "" if column["levels"] is None else f"{column['levels']:,}"
    examples = [text if len(text) <= _SIGNS else f"{text[: _SIGNS - 1]}…" for text in column["examples"]]
    kind = column["kind"] or "left out"
    return [shown(text) for text in (column["name"], kind, column["why"], levels, missing, *alone, ", ".join(examples))]


def _with_share(count: int, rows: int) -> str:
    return f"{count:,} ({count / rows:.0%})"


def _print_findings(console: Any, findings: Sequence[Mapping[str, Any]]) -> None:
    for severity, title in (("problem", "problems"), ("note", "notes")):
        own = [finding for finding in findings if finding["severity"] == severity]
        if own:
            console.print(f"{title}: {len(own):,}")
        for finding in own:
            console.print(shown(f"- {finding['message']}"), soft_wrap=True)
    if not findings:
        console.print("nothing odd was found.")
