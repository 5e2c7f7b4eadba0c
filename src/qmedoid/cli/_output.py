"""A command from its call to its exit code: notes, errors, JSON, and a progress bar that a pipe does not see."""

import errno
import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer

from qmedoid.exceptions import DataError, ModelError, OutputError, ParameterError, QMedoidError, QMedoidWarning

OK, FAILED, USAGE, DATA, MODEL, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes: all well, the machine failed (a full disk, say), a wrong call, data that cannot be used or that break
the contract, a model that cannot be read, Ctrl-C."""
# Columns of text that a file or a pipe takes.
_WIDE = 200
OnProgress = Callable[[int, int, int | None], None]


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
def reading_bar(description: str) -> Iterator[OnProgress | None]:
    """A bar over the bytes of a file with rows per second and time left; None where there is no terminal."""
    if not sys.stderr.isatty():
        yield None
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


# The base of all errors about a wrong call; where it is at home differs from one version of Typer to the next.
_WRONG_CALL: Any = typer.BadParameter.__mro__[2]


def run(app: Callable[..., Any]) -> int:
    """Run the command that was called, and give its exit code."""
    as_json = "--json" in sys.argv
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A sign that the terminal's encoding lacks is spelt out; it is no reason to stop.
            stream.reconfigure(errors="backslashreplace")
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminated)
    try:
        with notes_on_stderr():
            code = app(standalone_mode=False)
        # Now, while there is somebody to tell that the disk is full.
        sys.stdout.flush()
        code = code if isinstance(code, int) else OK
    except _WRONG_CALL as error:
        return _wrong_call(error, as_json)
    except QMedoidError as error:
        code, difference = exit_code(error), getattr(error, "difference", None)
        # The message speaks of Python's parameter; here it is an option.
        message = str(error).replace("on_mismatch='warn'", "--on-mismatch warn")
        return _failed(message, code, as_json, None if difference is None else {"difference": difference})
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:
        return _system_error(error, as_json)
    except MemoryError:
        return _failed("There is not enough memory. Fit on fewer rows with --max-rows.", FAILED, as_json)
    if code == INTERRUPTED and as_json:
        return _failed("Interrupted.", code, as_json)
    return code


def _terminated(number: int, _: object) -> None:
    """Leave as after Ctrl-C, so that what was half written is removed."""
    sys.exit(128 + number)


def _wrong_call(error: Any, as_json: bool) -> int:
    if as_json:
        return _failed(error.format_message(), error.exit_code, as_json)
    error.show()
    return int(error.exit_code)


def _system_error(error: OSError, as_json: bool) -> int:
    reason = error.strerror or str(error)
    if _can_print():
        return _failed(f"{error.filename}: {reason}" if error.filename else reason, FAILED, as_json)
    if error.errno != errno.EPIPE:  # whoever closed a pipe has read enough
        tell(f"error: standard output cannot be written: {reason}.")
    return FAILED


def _failed(message: str, code: int, as_json: bool, details: Mapping[str, Any] | None = None) -> int:
    try:
        report_error(message, code, as_json=as_json, details=details)
        # Now, while the message can still go elsewhere.
        sys.stdout.flush()
    except OSError:
        _can_print()
        tell(f"error: {message}")
    return code


def _can_print() -> bool:
    """Whether standard output takes what was printed; where not, it is turned off, lest Python complain on leaving."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return False
    return True
