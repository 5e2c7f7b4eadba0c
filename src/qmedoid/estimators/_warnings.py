"""Warnings that point at the line of the user, however deep the check that gives them."""

import sys
import warnings

from qmedoid.exceptions import QMedoidWarning

_INSIDE = ("qmedoid", "sklearn")


def warn(message: str) -> None:
    """Give a `QMedoidWarning` at the first caller outside this package and scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INSIDE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, QMedoidWarning, stacklevel=level)
