"""The errors and warnings of the package, each also a ``ValueError`` or ``TypeError`` (or a ``UserWarning``)."""


class QMedoidError(Exception):
    """Base of every error the package raises on purpose."""


class DataError(QMedoidError, ValueError):
    """The data cannot be used as they are; the message names the column or row and the way out."""


class ParameterError(QMedoidError, ValueError):
    """A parameter has a value that is not allowed; the message says which are."""


class MissingExtraError(QMedoidError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


class QMedoidWarning(UserWarning):
    """Something was adjusted so that work could go on; the message says what was done."""
