"""Checks of the vectors that circuits compare."""

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ParameterError


def check_n_features(n_features: int) -> int:
    """The number of entries of the vectors, an int of at least 1."""
    if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer) or n_features < 1:
        raise ParameterError(f"The 'n_features' parameter must be an int >= 1. Got {n_features!r} instead.")
    return int(n_features)


def check_one_pair(x: npt.ArrayLike, y: npt.ArrayLike) -> None:
    """Raise unless x and y are one vector each."""
    for values, name in ((x, "x"), (y, "y")):
        if np.ndim(values) != 1:
            raise DataError(f"{name} has shape {np.shape(values)}: pass one vector of at least one entry, shape (d,).")


def pairs_of_rows(X: npt.ArrayLike, Y: npt.ArrayLike) -> tuple[Array, Array]:
    """Rows of vectors that are compared one by one: finite, of one shape (pairs, d), and none of them zero."""
    a, b = _rows(X, "x"), _rows(Y, "y")
    if a.shape[1] != b.shape[1]:
        raise DataError(f"x has {a.shape[1]} entries and y has {b.shape[1]}: both need the same number.")
    if len(a) != len(b):
        raise DataError(
            f"There are {len(a)} rows of x and {len(b)} of y: row i of one is compared with that of the other."
        )
    return a, b


def directions(rows: Array) -> Array:
    """Rows divided by their norms, by way of their largest entries so that no square leaves the range."""
    scaled: Array = rows / np.abs(rows).max(axis=1, keepdims=True)
    unit: Array = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return unit


def _rows(values: npt.ArrayLike, name: str) -> Array:
    given = np.asarray(values, dtype=np.float64)
    rows = given[None] if given.ndim == 1 else given
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise DataError(f"{name} has shape {given.shape}: pass one vector of at least one entry, shape (d,), or rows.")
    if not np.isfinite(rows).all():
        row, position = (int(place) for place in np.argwhere(~np.isfinite(rows))[0])
        where = f"position {position}" if given.ndim == 1 else f"row {row}, position {position}"
        raise DataError(f"{name} holds {rows[row, position]} at {where}: pass finite numbers only.")
    if not rows.any(axis=1).all():
        raise DataError(
            f"{name} is a zero vector, which cannot be prepared as a state: use compact_swap_test, which handles zero "
            "vectors, or a backend of qmedoid.quantum.circuits, which sends them there."
        )
    return rows
