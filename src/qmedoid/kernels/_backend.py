"""Which kernels to use: the compiled ones where they were built, else their NumPy twins."""

import importlib
import os
from functools import cache
from types import ModuleType

from qmedoid.exceptions import warn


@cache
def compiled(name: str) -> ModuleType | None:
    """The compiled kernel ``qmedoid.kernels._<name>``, or None where its NumPy twin is to be used.

    ``QMEDOID_KERNELS=numpy`` asks for the twins. The answer is kept from the first call on.
    """
    if os.environ.get("QMEDOID_KERNELS") == "numpy":
        return None
    try:
        return importlib.import_module(f"{__package__}._{name}")
    except ImportError:
        _warn_not_built()
        return None


@cache
def _warn_not_built() -> None:
    """Say once that results are the same but slower, and how to change that."""
    warn(
        "The compiled kernels of qmedoid were not built, so their NumPy twins are used: same results, but slower. "
        "To get them, install a C compiler and reinstall qmedoid. "
        "Set QMEDOID_KERNELS=numpy to use the twins without this warning."
    )
