"""Tables in the terminal: metrics, the tables of a report, and what the parts of the demo share."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from qmedoid.cli._output import plain_console, shown
from qmedoid.model.operating_point import OperatingSummary, rule_in_words

if TYPE_CHECKING:
    from rich.progress import Progress

    from qmedoid.reporting.document import Table

_NAMES = {
    "accuracy": "accuracy",
    "macro_f1": "macro-F1",
    "weighted_f1": "weighted F1",
    "log_loss": "log-loss",
    "prevalence": "prevalence",
    "alert_rate": "alert rate",
    "precision": "precision",
    "recall": "recall",
    "f1": "F1",
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "by_circuit": "decided by the circuit",
}
UNDEFINED = "–"
"""What stands for a figure that is not defined, such as the precision without an alert."""
_FIGURES = {"alert_rate": "alert rate", "precision": "precision", "recall": "recall"}


def grid(
    names: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, left: Collection[int] = (0,)
) -> Any:
    """A table; without any name it has no header. Columns are aligned to the right but for those in `left`."""
    from rich.table import Table as Grid

    made = Grid(show_header=any(names), title=title, title_justify="left")
    for place, name in enumerate(names):
        # Folded where even one column is too wide: a figure that is cut off is a wrong one.
        made.add_column(name, justify="left" if place in left else "right", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def print_metrics(report: Mapping[str, Any], title: str) -> None:
    """Print a report of `qmedoid.tables.evaluating`."""
    console = plain_console()
    console.print(shown(title))
    rows = []
    for key, name in _NAMES.items():
        if key in report:
            of = f" ({shown(report['positive'])})" if key in ("precision", "recall", "f1", "prevalence") else ""
            rows.append((name + of, _figure(report[key])))
    if "calibration" in report:
        figures = report["calibration"]
        rows.append(("calibration error", f"{figures['error']:.4f}"))
        rows.append(("by chance, on average", f"{figures['by_chance']:.4f}"))
        rows.append(("by chance, once in 20", f"{figures['by_chance_high']:.4f}"))
    console.print(grid(("", ""), rows))
    classes = report["classes"]
    if len(classes) > 20:
        return
    names = ("class", "rows", "precision", "recall", "F1", *(f"→ {shown(label)}" for label in classes))
    by_class = [
        (shown(label), f"{of_class['rows']:,}", *(_figure(of_class[name]) for name in ("precision", "recall", "f1")),
         *(f"{n:,}" for n in counts))
        for (label, of_class), counts in zip(classes.items(), report["confusion"], strict=True)
    ]  # fmt: skip
    console.print("by class: true in rows, predicted in columns")
    console.print(grid(names, by_class))


def print_operating(summary: OperatingSummary, positive: Any) -> None:
    """Print the operating point of two classes, and what held-out rows say is to be expected of it."""
    console = plain_console()
    console.print(f"called {shown(positive)} above a probability of {summary.threshold:.4g}: {rule_in_words(summary)}")
    if summary.counts is None:
        return
    rows = [(name, *map(_figure, getattr(summary, key) or (None, None, None))) for key, name in _FIGURES.items()]
    console.print(grid((f"expected, from {summary.n_rows:,} held-out rows", "value", "95 % from", "to"), rows))


def _figure(value: float | None) -> str:
    """Four digits, or a dash for what is not defined."""
    return UNDEFINED if value is None else f"{value:.4f}"


# What a frame adds to the width of a cell.
_FRAME = 3


@dataclass(frozen=True)
class _Strip:
    """A column as it is printed: its headings and its cells."""

    group: str
    name: str
    texts: tuple[str, ...]
    is_label: bool


def print_table(console: Any, table: "Table") -> None:
    """Print a table; means and their errors share a column."""
    strips = list(_strips(table))
    labels, figures = [one for one in strips if one.is_label], [one for one in strips if not one.is_label]
    console.print(table.title)
    for part in _pages(figures, console.width - 1 - _width(labels)):
        names, above = [], ""
        for strip in (*labels, *part):
            names.append(f"{'' if strip.group == above else strip.group}\n{strip.name}")
            above = strip.group
        rows = zip(*(strip.texts for strip in (*labels, *part)), strict=True)
        console.print(grid(names, rows, left=range(len(labels))))
    if table.note:
        console.print(table.note)
    console.print()


def _strips(table: "Table") -> Iterator[_Strip]:
    rows = range(len(table.rows))
    for place, column in enumerate(table.columns):
        if column.is_error:
            continue
        texts = [table.cell_text(row, place) for row in rows]
        if place + 1 < len(table.columns) and table.columns[place + 1].is_error:
            errors = [table.cell_text(row, place + 1) for row in rows]
            texts = [f"{text} ± {error}" if error else text for text, error in zip(texts, errors, strict=True)]
        is_label = not column.group and all(isinstance(row[place], str) for row in table.rows)
        yield _Strip(column.group, column.name, tuple(texts), is_label)


def _pages(strips: Sequence[_Strip], width: int) -> Iterator[list[_Strip]]:
    """Strips that fit side by side; those of one group stay together where they can."""
    page: list[_Strip] = []
    for _, members in groupby(strips, key=lambda strip: strip.group or strip.name):
        group = list(members)
        fits = _width(group) <= width
        for part in [group] if fits else [[strip] for strip in group]:
            if page and _width([*page, *part]) > width:
                yield page
                page = []
            page += part
    if page:
        yield page


def _width(strips: Sequence[_Strip]) -> int:
    """Columns of text that strips take side by side; the heading of a group stands over its first one alone."""
    above = ["", *(strip.group for strip in strips)]
    headings = [strip.group if strip.group != before else "" for strip, before in zip(strips, above, strict=False)]
    texts = [(heading, strip.name, *strip.texts) for heading, strip in zip(headings, strips, strict=True)]
    return sum(_FRAME + max(map(len, own)) for own in texts)


def progress_bar() -> "Progress":
    """A bar on standard error that leaves nothing behind; none where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip


def with_error(mean: float, error: float | None) -> str:
    """A mean and, where there is one, its standard error."""
    return f"{mean:.3f}" if error is None else f"{mean:.3f} ± {error:.3f}"


def over_splits(splits: int) -> str:
    """What a table's figures are means of."""
    return "one stratified split" if splits == 1 else f"{splits} stratified splits (mean ± standard error)"


def verdict(ahead: float) -> str:
    """Whether another method is ahead of ours, from the difference of their scores."""
    by = f"{abs(ahead):.3f}"
    if float(by) == 0:
        return "is level with ours"
    return f"is ahead by {by}" if ahead > 0 else f"is behind by {by}"
