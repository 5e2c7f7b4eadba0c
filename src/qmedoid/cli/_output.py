"""What the commands share: notes, errors and exit codes, JSON, and bars that a pipe does not see."""

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from qmedoid.exceptions import DataError, ModelError, OutputError, ParameterError, QMedoidError, QMedoidWarning

OK, FAILED, USAGE, DATA, MODEL, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes: all well, the machine failed (a full disk, say), a wrong call, data that cannot be used or that break
the contract, a model that cannot be read, Ctrl-C."""

# Columns of text that a file or a pipe takes.
_WIDE = 200

Advance = Callable[[int, int, int | None], None]


def exit_code(error: QMedoidError) -> int:
    """The exit code of an error."""
    if isinstance(error, ModelError):
        return MODEL
    if isinstance(error, OutputError):
        return FAILED
    if isinstance(error, DataError):
        return DATA
    return USAGE if isinstance(error, ParameterError) else FAILED


def tell(message: str) -> None:
    """A line (or more) on standard error, safe in a terminal whatever names and cells it holds."""
    print("\n".join(shown(line) for line in message.split("\n")), file=sys.stderr)


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document on standard output; numbers that JSON does not have become null."""
    is_unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    text = json.dumps(_finite(document), indent=1, ensure_ascii=not is_unicode)
    print("".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text))


def report_error(message: str, code: int, *, as_json: bool, details: Mapping[str, Any] | None = None) -> None:
    """An error for the reader or, with ``--json``, for a machine."""
    if as_json:
        print_json({"error": message, "exit_code": code, **(details or {})})
    else:
        tell(f"error: {message}")


@contextmanager
def notes_on_stderr() -> Iterator[None]:
    """Warnings of the package as plain notes; those of other packages are not for the user of a command."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, QMedoidWarning):
            tell(f"note: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", QMedoidWarning)
        warnings.showwarning = show
        yield


@contextmanager
def reading_bar(description: str) -> Iterator[Advance]:
    """A bar over the bytes of a file with rows per second and time left; nothing where there is no terminal."""
    if not sys.stderr.isatty():
        yield lambda _rows, _bytes, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=None, rate="")

        def advance(rows: int, n_read: int, n_bytes: int | None) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f"{rows:,} rows, {rows / elapsed:,.0f}/s" if elapsed > 0 else f"{rows:,} rows"
            bar.update(task, completed=n_read, total=n_bytes, rate=rate)

        yield advance


def plain_console() -> Any:
    """A console that prints names and cells as they stand, and cuts nothing off where no terminal has an edge."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDE
    return Console(markup=False, highlight=False, emoji=False, width=width)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not (-float("inf") < value < float("inf")):
        return None
    return value


def shown(value: Any) -> str:
    """A cell or name of a table as text that is safe in a terminal: what does not print is spelt out."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in str(value))
