"""What commands print: notes, JSON, tables of figures, and progress bars that a pipe does not see."""

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from qmedoid.metrics.texts import interval_text
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
# Signs of a word that is not broken in a column of texts.
_FIGURE = 10


def tell(message: str) -> None:
    """A line (or more) on standard error, safe in a terminal whatever names and cells it holds.

    In a terminal, lines are wrapped at blanks.
    """
    lines = [printable(line) for line in message.split("\n")]
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        lines = [textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False) for line in lines]
    print("\n".join(lines), file=sys.stderr)


class Said:
    """What a command has said so far that its end needs: notes for JSON, and what a stop leaves behind."""

    notes: ClassVar[list[str]] = []
    kept = "nothing was written"


def note(message: str) -> None:
    """A note on standard error, once; the JSON document of the command has it as well."""
    if _plain(message) not in map(_plain, Said.notes):
        Said.notes.append(message)
        tell(f"note: {message}")


def _plain(message: str) -> str:
    """A note as it is compared: a warning begins with a capital, and the same note elsewhere does not."""
    return message[:1].lower() + message[1:]


def print_json(document: Mapping[str, Any], *, with_notes: bool = True) -> None:
    """One JSON document on standard output; numbers that JSON lacks become null.

    It has all notes of the command, unless its keys are names that are not ours.
    """
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    if with_notes:
        notes = {_plain(one): one for one in (*Said.notes, *document.get("notes", ()))}
        document = {**document, "notes": list(notes.values())}
    text = json.dumps(_finite(document), indent=1, ensure_ascii=not is_unicode)
    print("".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value


def show(*parts: Any) -> None:
    """Print lines and tables, with names and cells as they are; a line stays whole for a program that looks for it.

    Lines are wrapped in a terminal alone, and nothing is cut off where there is none.
    """
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDE
    console = Console(markup=False, highlight=False, emoji=False, width=width)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, str) and not console.is_terminal, crop=False)


def grid(names: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[int] = (0,)) -> Any:
    """A table; without any name it has no header. Columns are aligned to the right but for those in `left`.

    Figures are wrapped at blanks alone, also where a table is wider than the terminal: a figure without its end is a
    wrong one.
    """
    from rich.table import Table

    class WholeWords(Table):
        """As wide as its words, in whatever terminal."""

        def __rich_console__(self, console: Any, options: Any) -> Any:
            needed = 1 + sum(3 + (column.min_width or 0) for column in self.columns)
            if needed >= options.max_width:
                options = options.update(max_width=needed)
                for column in self.columns:
                    column.width = column.min_width
            yield from super().__rich_console__(console, options)

    rows = [list(map(str, row)) for row in rows]
    made = WholeWords(show_header=any(names))
    for place, name in enumerate(names):
        words = " ".join([name, *(row[place] for row in rows if place < len(row))]).split()
        longest = min(max(map(len, words), default=0), _FIGURE if place in left else _WIDE)
        made.add_column(name, justify="left" if place in left else "right", min_width=longest, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def facts(texts: Mapping[str, str | None], *, left: Collection[int] = (0,)) -> Any:
    """A table of names and what is known of each."""
    return grid(("", ""), [(name, text) for name, text in texts.items() if text is not None], left=left)


def tell_cut(model: "Model", rows: int | None = None) -> None:
    """Say where a model cuts, and which precision and recall so many next rows will show."""
    from qmedoid.model.operating_point import cut_in_words

    summary = model.decision.operating
    if summary is not None:
        tell(f"Threshold: {cut_in_words(summary, printable(model.decision.classes[1]))}.")
        tell_expected(summary, rows)


def tell_expected(summary: "OperatingSummary", rows: int | None = None) -> None:
    """Say what the next rows will show above a cut, from rows that were held out."""
    if summary.counts is None:
        return
    forecast = summary.forecast(rows)
    names = {"precision": "precision", "recall": "recall", "alert_rate": "alert rate"}
    at = "" if summary.prevalence is None else f", at a prevalence of {summary.prevalence:.4g}"
    parts = ", ".join(f"{name} {interval_text(forecast.get(key))}" for key, name in names.items())
    tell(f"Expected of the next {rows or summary.n_rows:,} rows: {parts}.")
    seen = f"{summary.n_rows:,} rows, each scored by a model that had not seen it"
    tell(f"In 19 of 20 tables of this size figures will lie between the bounds; they come from {seen}{at}.")


def print_budgets(spent: "Sequence[tuple[str, OperatingSummary]]", about: str) -> None:
    """Print what budgets of alerts mean on some rows."""
    from qmedoid.model.operating_point import budget_of
    from qmedoid.model.training_summary import MOST_CUTS

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
    # A curve of held-out rows keeps so many thresholds that it misses fewer alerts than this.
    exact = 2.0 * n_rows / (MOST_CUTS - 1)
    short = [one for one, point in spent if min(budget_of(one, n_rows)[1], n_rows) - point.alerts > exact]
    names = ("budget", "probability above", "alerts", "precision (95 %)", "recall (95 %)")
    show(f"budgets of alerts, {n_rows:,} {about}", grid(names, rows))
    if short:
        show(f"Rows of one score are all alerts or none is: there are fewer alerts than {' and '.join(short)} allows.")


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
