"""A command from its call to its exit code: whatever goes wrong becomes one line, or one JSON document."""

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import typer

from qmedoid.cli._output import FAILED, INTERRUPTED, OK, exit_code, notes_on_stderr, report_error, tell
from qmedoid.exceptions import QMedoidError

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
