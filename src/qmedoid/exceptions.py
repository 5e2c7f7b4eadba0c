"""The errors and warnings of the package, each also a ``ValueError`` or ``TypeError`` (or a ``UserWarning``)."""

import sys
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from inspect import signature
from numbers import Integral


class QMedoidError(Exception):
    """Base of every error the package raises on purpose."""


class DataError(QMedoidError, ValueError):
    """The data cannot be used as they are; the message names the column or row and the way out."""


class OutputError(DataError):
    """A file or folder cannot be written; what was there before is unchanged."""


class ContractError(DataError):
    """A table does not look like the one a model was fitted on; the message is a diff."""


class ModelError(QMedoidError, ValueError):
    """A saved model cannot be read, or a model cannot be saved; the message says why and what to do."""


class ParameterError(QMedoidError, ValueError):
    """A parameter has a value that is not allowed; the message says which are."""


class MissingExtraError(QMedoidError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


class ClusterError(QMedoidError, RuntimeError):
    """Workers of a cluster are not there, or die again and again; the message says what was being done."""


class JobError(QMedoidError, RuntimeError):
    """Jobs of a quantum device failed again and again; the message says how to go on."""


class QMedoidWarning(UserWarning):
    """Something was adjusted so that work could go on; the message says what was done."""


class ConstantColumnWarning(QMedoidWarning):
    """Columns of the training rows hold one value only."""


class MajorityAlertWarning(QMedoidWarning):
    """A share of alerts goes to the more frequent of two classes."""


class InterruptedWarning(QMedoidWarning):
    """A search or a training was interrupted or stopped; the best so far is used."""


# A context manager that decorates a fit has a frame of contextlib.
_INSIDE = ("qmedoid", "sklearn", "contextlib")


def some_of(names: Sequence[str], limit: int = 20) -> str:
    """The first names of a list, and how many more there are: for messages."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def check_int(parameter: str, value: object, least: int, most: int | None = None) -> None:
    """Raise unless a parameter is an int from `least` to `most`; True and False are none."""
    is_int = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_int or value < least or (most is not None and value > most):  # type: ignore[operator]
        limit = f">= {least}" if most is None else f"from {least} to {most:,}"
        raise ParameterError(f"The {parameter} must be an int {limit}. Got {value!r} instead.")


def check_callable(parameter: str, value: object, arguments: tuple[str, ...], example: str, of_device: str) -> None:
    """Raise unless a backend that was passed can be called with some arguments; a class of backends is none yet.

    Parameters
    ----------
    parameter : str
        Its name, and what it is a parameter of.
    value : object
    arguments : tuple of str
        What it is called with.
    example : str
        A backend that can be called.
    of_device : str
        What to write for a device or its name.
    """
    if not callable(value) or isinstance(value, type):
        raise ParameterError(
            f"The {parameter} must be callable, such as {example}. Got {value!r} instead. For a device or its name, "
            f"use {of_device}."
        )
    try:
        signature(value).bind(*arguments)
    except ValueError:  # a callable that does not say
        return
    except TypeError as error:
        raise ParameterError(
            f"The {parameter} is called with ({', '.join(arguments)}), such as {example}. Got {value!r} instead, which "
            f"cannot be: {error}. SWAP tests go to 'swap_test', backends of expectation values to 'expectations'."
        ) from None


def warn(message: str, category: type[QMedoidWarning] = QMedoidWarning) -> None:
    """Give a warning at the first caller outside this package and scikit-learn: the line of the user."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def require_dask(what: str) -> None:
    """Raise an error that names the extra, if Dask is not installed."""
    if any(find_spec(name) is None for name in ("dask", "distributed")):
        raise MissingExtraError(f"{what} needs Dask: pip install 'qmedoid[dask]'.")
