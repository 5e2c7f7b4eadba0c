"""What commands print: notes, JSON, tables of figures, and progress bars that a pipe does not see."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from qmedoid.metrics.texts import CALIBRATION_NAMES, FIGURE_NAMES, count_text, figure_text, interval_text
from qmedoid.spelling import printable

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from qmedoid.model.model import Model
    from qmedoid.model.operating_point import OperatingSummary
    from qmedoid.tables.scoring import OnProgress

OK, FAILED, USAGE, DATA, MODEL, DIFFERENT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130
"""Exit codes: all well, the program or the machine failed (a full disk, say), a wrong call, data that cannot be used
or that break the contract, a model that cannot be read, two models that differ (where that was asked), Ctrl-C."""
# Columns of text in a file or a pipe.
_WIDE = 200
# Classes up to which the confusion matrix is printed.
_MOST_CLASSES = 20


def tell(message: str) -> None:
    """A line (or more) on standard error, safe in a terminal whatever names and cells it holds.

    In a terminal, lines are wrapped at blanks.
    """
    lines = [printable(line) for line in message.split("\n")]
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines]
    print("\n".join(lines), file=sys.stderr)


class _Said:
    """What a command has said so far that its end needs: notes for JSON, and what a stop leaves behind."""

    notes: ClassVar[list[str]] = []
    kept = ""
    is_quiet = False


def begin_command() -> None:
    """Forget what the command before said, where one process runs several."""
    _Said.notes.clear()
    _Said.kept = "nothing was written"
    _Said.is_quiet = False


def be_quiet() -> None:
    """Keep notes of this command for its JSON document only."""
    _Said.is_quiet = True


def note(message: str) -> None:
    """A note on standard error, once; the JSON document of the command has it as well."""
    if _plain(message) not in map(_plain, _Said.notes):
        _Said.notes.append(message)
        if not _Said.is_quiet:
            tell(f"note: {message}")


def keeps(what: str) -> None:
    """Say what there is if the command is stopped from now on, such as a file that is complete."""
    _Said.kept = what


def interrupted() -> str:
    """What is said of a command that was stopped."""
    return f"Interrupted: {_Said.kept}."


def _plain(message: str) -> str:
    """A note as it is compared: a warning begins with a capital, and the same note elsewhere does not."""
    return message[:1].lower() + message[1:]


def print_json(document: Mapping[str, Any], *, with_notes: bool = True) -> None:
    """One JSON document on standard output; numbers that JSON lacks become null.

    It has all notes of the command, unless its keys are names that are not ours.
    """
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    if with_notes:
        notes = {_plain(one): one for one in (*_Said.notes, *document.get("notes", ()))}
        document = {**document, "notes": list(notes.values())}
    text = json.dumps(_finite(document), indent=1, ensure_ascii=not is_unicode)
    print("".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def plain_console(*, wide: bool = True) -> Any:
    """A console that prints names and cells as they are, and cuts nothing off where there is no terminal."""
    from rich.console import Console

    class PipedConsole(Console):
        """A console that leaves it to the command what a closed pipe means."""

        def print(self, *objects: Any, soft_wrap: bool | None = None, **how: Any) -> None:
            # A line stays whole for a program that looks for it; in a terminal it is wrapped at blanks.
            super().print(*objects, soft_wrap=soft_wrap and not self.is_terminal, **how)

        def on_broken_pipe(self) -> None:
            raise  # it is called where the error is handled

    width = None if not wide or sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDE
    return PipedConsole(markup=False, highlight=False, emoji=False, width=width)


def grid(
    names: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, left: Collection[int] = (0,)
) -> Any:
    """A table; without any name it has no header. Columns are aligned to the right but for those in `left`.

    Cells are wrapped at blanks alone. Where the terminal is too narrow for the longest word of each column, every row
    is a paragraph instead. Nothing is cut off: a figure without its end is a wrong one.
    """
    from rich.table import Table

    class WordTable(Table):
        """A table that breaks no word."""

        def __rich_console__(self, console: Any, options: Any) -> Any:
            if title is not None:
                yield title
            texts = [[str(text) for text in (column.header, *column.cells)] for column in self.columns]
            widths = column_widths(texts, options.max_width - 3 * len(texts) - 1)
            if widths is None:
                yield "\n".join(_paragraphs(texts))
                return
            for column, width in zip(self.columns, widths, strict=True):
                column.width = width
            yield from super().__rich_console__(console, options)

    made = WordTable(show_header=any(names))
    for place, name in enumerate(names):
        made.add_column(name, justify="left" if place in left else "right", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def facts(texts: Mapping[str, str | None], *, left: Collection[int] = (0,)) -> Any:
    """A table of names and what is known of each."""
    return grid(("", ""), [(name, text) for name, text in texts.items() if text is not None], left=left)


def column_widths(texts: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Widths of columns that share a room: each has its longest word at least; None if there is no room for that.

    The rest goes to whoever wants least first, and nobody gets more than an equal part of what is left.
    """
    from rich.cells import cell_len

    widths = [max(cell_len(word) for text in column for word in text.split() or [""]) for column in texts]
    wanted = [max(cell_len(line) for text in column for line in text.split("\n")) for column in texts]
    rest = room - sum(widths)
    if rest < 0:
        return None
    in_turn = sorted(range(len(texts)), key=lambda place: wanted[place] - widths[place])
    for done, place in enumerate(in_turn):
        more = min(wanted[place] - widths[place], rest // (len(texts) - done))
        widths[place] += more
        rest -= more
    return widths


def _paragraphs(texts: Sequence[Sequence[str]]) -> Iterator[str]:
    """The rows of a table, each as its first cell, and the others with the names of their columns."""
    (_, *names), *rows = zip(*texts, strict=True)
    for first, *cells in rows:
        parts = [f"{name} {cell}".strip() for name, cell in zip(names, cells, strict=True) if cell]
        yield f"{first}: {'; '.join(parts)}" if first else "; ".join(parts)


def with_error(mean: float, error: float | None) -> str:
    """A mean and, if there is one, its standard error."""
    return f"{mean:.3f}" if error is None else f"{mean:.3f} ± {error:.3f}"


def print_metrics(report: Mapping[str, Any], title: str) -> None:
    """Print a report of `qmedoid.tables.evaluating`."""
    console = plain_console()
    console.print(printable(title))
    rows = []
    for key, name in FIGURE_NAMES.items():
        if key in report and (key != "by_circuit" or report[key]):
            of = f" ({printable(report['positive'])})" if key in ("precision", "recall", "f1", "prevalence") else ""
            rows.append((name + of, figure_text(report[key])))
    if "calibration" in report:
        rows += [(name, figure_text(report["calibration"][key])) for key, name in CALIBRATION_NAMES.items()]
    console.print(grid(("", ""), rows))
    classes = report["classes"]
    if len(classes) > _MOST_CLASSES:
        return
    names = ("class", "rows", "precision", "recall", "F1", *(f"→ {printable(label)}" for label in classes))
    by_class = [
        (
            printable(label),
            count_text(of_class["rows"]),
            *(figure_text(of_class[name]) for name in ("precision", "recall", "f1")),
            *map(count_text, counts),
        )
        for (label, of_class), counts in zip(classes.items(), report["confusion"], strict=True)
    ]
    console.print("by class: true in rows, predicted in columns")
    console.print(grid(names, by_class))


def print_operating(summary: "OperatingSummary", positive: Any) -> None:
    """Print the operating point of two classes, and what held-out rows say is to be expected of it."""
    from qmedoid.model.operating_point import cut_in_words

    console = plain_console()
    console.print(f"Threshold: {cut_in_words(summary, printable(positive))}.", soft_wrap=True)
    if summary.counts is None:
        return
    keys = ("alert_rate", "precision", "recall")
    rows = [(FIGURE_NAMES[key], *map(figure_text, getattr(summary, key) or (None, None, None))) for key in keys]
    console.print(grid((f"{summary.n_rows:,} rows out of fold", "value", "95 % from", "to"), rows))


def tell_cut(model: "Model") -> None:
    """Say where a model cuts, and with which precision and recall on held-out rows."""
    from qmedoid.model.operating_point import cut_in_words

    summary = model.decision.operating
    if summary is None:
        return
    positive = printable(model.decision.classes[1])
    tell(f"Threshold: {cut_in_words(summary, positive)}.")
    if summary.counts is not None:
        figures = [("precision", summary.precision), ("recall", summary.recall), ("alert rate", summary.alert_rate)]
        at = "" if summary.prevalence is None else f", at a prevalence of {summary.prevalence:.4g}"
        parts = ", ".join(f"{name} {interval_text(figure)}" for name, figure in figures)
        tell(f"Expected of new rows (95 % intervals from {_unseen(summary.n_rows)}{at}): {parts}.")


def tell_top(positive: Any, asked: int, threshold: float, expected: "tuple[str, OperatingSummary] | None") -> None:
    """Say where the highest scores of a table begin, and what held-out rows show at this alert rate."""
    tell(
        f"Called {printable(positive)} are the {asked:,} highest scores of this table "
        f"(probability above {threshold:.4g})."
    )
    if expected is None:
        tell("the model holds no curve of held-out rows: nothing is known of the precision at this alert rate.")
        return
    budget, operating = expected
    parts = ", ".join(f"{name} {interval_text(getattr(operating, name))}" for name in ("precision", "recall"))
    tell(
        f"Expected at this alert rate of {budget.removesuffix('%')} % (95 % intervals from "
        f"{_unseen(operating.n_rows)}): {parts}."
    )


def _unseen(n_rows: int) -> str:
    """The rows behind a curve: test rows of a fit in passes, else training rows that folds were scored on."""
    return f"{n_rows:,} rows, each scored by a model that had not seen it"


def print_budgets(spent: "Sequence[tuple[str, OperatingSummary]]", about: str) -> None:
    """Print what budgets of alerts mean on some rows."""
    rows = [
        (
            budget,
            f"{operating.threshold:.4g}",
            f"{operating.alerts:,}",
            *(interval_text(figure) for figure in (operating.precision, operating.recall)),
        )
        for budget, operating in spent
    ]
    n_rows = spent[0][1].n_rows if spent else 0
    names = ("budget", "probability above", "alerts", "precision (95 %)", "recall (95 %)")
    plain_console().print(grid(names, rows, title=f"budgets of alerts, {n_rows:,} {about}"))


def progress_bar(*columns: "ProgressColumn") -> "Progress":
    """A bar on standard error that leaves nothing behind; none where that is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *(columns or [MofNCompleteColumn()]),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def reading_bar(description: str) -> Iterator["OnProgress | None"]:
    """A bar over the bytes of a file with rows per second and time left; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import DownloadColumn, TextColumn

    with progress_bar(DownloadColumn(), TextColumn("{task.fields[rate]}")) as bar:
        task = bar.add_task(description, total=None, rate="")

        def advance(rows: int, n_read: int, n_bytes: int | None) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f"{rows:,} rows, {rows / elapsed:,.0f}/s" if elapsed > 0 else f"{rows:,} rows"
            bar.update(task, completed=n_read, total=n_bytes, rate=rate)

        yield advance
