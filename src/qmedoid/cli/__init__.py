"""The command line: ``qmedoid``, from a call to its exit code."""

import errno
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from qmedoid.cli.output import (
    DATA,
    FAILED,
    INTERRUPTED,
    MODEL,
    OK,
    USAGE,
    Said,
    note,
    print_json,
    tell,
)
from qmedoid.exceptions import DataError, ModelError, OutputError, ParameterError, QMedoidError, QMedoidWarning

__all__ = ["main"]

_EXIT_CODES = {ModelError: MODEL, OutputError: FAILED, DataError: DATA, ParameterError: USAGE}
"""The first class that an error is an instance of decides; an error of output is one of data, too."""


def main() -> None:
    """Entry point of the console script: runs a command, and turns errors into one line and an exit code."""
    try:
        sys.exit(_run())
    finally:
        Said.notes, Said.kept = [], "nothing was written"  # what comes after in this process starts anew


def _run() -> int:
    from qmedoid.cli.app import PROGRAM, WRONG_CALL, explain_call

    as_json = "--json" in sys.argv
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # A character that the terminal's encoding lacks is escaped; it is no reason to stop.
            stream.reconfigure(errors="backslashreplace")
    try:
        with _terminated_as_by_ctrl_c(), warnings.catch_warnings():
            if not sys.warnoptions:  # those of other packages are for whoever asks for them, by python -W
                warnings.simplefilter("ignore")
            warnings.simplefilter("always", QMedoidWarning)
            warnings.showwarning = _show_warning
            code = _call(PROGRAM)
        # Now, while an error can still be reported, such as a full disk.
        sys.stdout.flush()
        code = code if isinstance(code, int) else OK
    except WRONG_CALL as error:
        explain_call(error)
        if as_json:
            return _failed(error.format_message(), error.exit_code, as_json)
        error.show()
        return int(error.exit_code)
    except QMedoidError as error:
        code = next((code for kind, code in _EXIT_CODES.items() if isinstance(error, kind)), FAILED)
        difference = getattr(error, "difference", None)
        # The message names Python's parameter; here it is an option.
        message = str(error).replace("on_mismatch='warn'", "--on-mismatch warn")
        return _failed(message, code, as_json, {} if difference is None else {"difference": difference})
    except KeyboardInterrupt:
        code = INTERRUPTED
    except OSError as error:
        if error.errno == errno.EPIPE:  # whoever closed the pipe of standard output has read enough
            _turn_output_off()
            return OK
        reason = error.strerror or str(error)
        if _can_print():
            return _failed(f"{error.filename}: {reason}" if error.filename else reason, FAILED, as_json)
        tell(f"error: standard output cannot be written: {reason}.")
        return FAILED
    except MemoryError:
        return _failed("There is not enough memory. Fit on fewer rows with --max-rows.", FAILED, as_json)
    return _failed(f"Interrupted: {Said.kept}.", code, as_json) if code == INTERRUPTED else code


def _call(app: Any) -> Any:
    """What a command returns; a closed pipe is an error here, not the exit that the parser of calls makes of it."""
    streams = sys.stdout, sys.stderr
    try:
        return app(standalone_mode=False)
    except SystemExit as stop:
        cause = stop.__context__
        if isinstance(cause, OSError) and cause.errno == errno.EPIPE:
            sys.stdout, sys.stderr = streams
            raise cause from None
        raise


@contextmanager
def _terminated_as_by_ctrl_c() -> Iterator[None]:
    """Leave on SIGTERM as after Ctrl-C, so that what was half written is removed.

    A process that is forked meanwhile just ends: a worker would take the exit for an error of its task, and go on.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = os.getpid()

    def leave(number: int, _: Any) -> None:
        if os.getpid() == ours:
            sys.exit(128 + number)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if os.getpid() == ours:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
) -> None:
    ours = issubclass(category, QMedoidWarning)
    note(str(message)) if ours else tell(f"{filename}:{lineno}: {category.__name__}: {message}")


def _failed(message: str, code: int, as_json: bool, details: Mapping[str, Any] | None = None) -> int:
    """Print an error for the reader or, with ``--json``, for a program; returns its exit code."""
    try:
        if as_json:
            print_json({"error": message, "exit_code": code, **(details or {})})
        else:
            tell(f"error: {message}")
        # Now, while the message can still go elsewhere.
        sys.stdout.flush()
    except OSError:
        _can_print()
        tell(f"error: {message}")
    return code


def _can_print() -> bool:
    """Whether standard output takes what was printed; if not, it is turned off."""
    try:
        sys.stdout.flush()
    except OSError:
        _turn_output_off()
        return False
    return True


def _turn_output_off() -> None:
    """Send what is left of standard output nowhere, or Python complains at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
