r"""Overlap, distance and angle: what the compact SWAP test measures (algorithm 6), in closed form.

The circuit swaps the single qubit of :math:`|\phi\rangle` with the qubit that tells the amplitudes of *x* from
those of *y*. Its ancilla then reads 0 with probability :math:`p_0 = (1 + s)/2`, where

.. math:: s = \frac{\lVert x - y\rVert^2}{2Z}, \qquad Z = \lVert x\rVert^2 + \lVert y\rVert^2 .

So :math:`D = \sqrt{2Zs}` is the Euclidean distance itself, and the closed form is the exact expectation of the
circuit. A finite number of shots is a binomial draw on top of it.
"""

from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Flags, row_slices
from qmedoid.exceptions import DataError, ModelError, ParameterError

AngleKind = Literal["true", "printed"]
ANGLE_KINDS: tuple[AngleKind, ...] = ("true", "printed")
# Rows are taken in blocks of this many so that the temporaries of a large table stay within a few megabytes.
_BLOCK_ROWS = 8192
# Squares of entries between these bounds neither overflow nor lose digits, whatever the number of columns.
_SMALLEST, _LARGEST = 2.0**-480, 2.0**480
# How far an exact overlap of a backend may lie beyond what is possible.
_ROUNDING = 1e-9


class SwapTest(NamedTuple):
    """What one compact SWAP test measures of each pair of rows, arrays of shape (n_X, n_Y).

    Attributes
    ----------
    overlap : ndarray
        s = 2·p0 − 1, between 0 (equal vectors) and 1 (opposite vectors of equal norm); a measured one may lie outside.
    distance : ndarray
        D = √(2Zs), the Euclidean distance.
    angle : ndarray
        Θ in radians: the angle between the vectors (``"true"``) or arccos √s (``"printed"``).

    Examples
    --------
    >>> from qmedoid import compact_swap_test
    >>> compact_swap_test([[3.0, 0.0]], [[0.0, 4.0]]).distance
    array([[5.]])
    """

    overlap: Array
    distance: Array
    angle: Array


def compact_swap_test(
    X: npt.ArrayLike,
    Y: npt.ArrayLike,
    *,
    angle: AngleKind = "true",
    shots: int | None = None,
    rng: np.random.Generator | None = None,
) -> SwapTest:
    """Distance and angle between every row of X and every row of Y (algorithm 6).

    Parameters
    ----------
    X, Y : array-like of shape (n_X, d) and (n_Y, d)
        Real vectors. A single vector of shape (d,) counts as one row.
    angle : {"true", "printed"}
        ``"true"`` is the angle between the vectors; ``"printed"`` is arccos √s, which falls as vectors part.
    shots : int or None
        None computes the exact expectation. A number draws that many measurements of the ancilla per pair.
    rng : numpy.random.Generator or None
        Source of the draws; required when `shots` is given.

    Returns
    -------
    SwapTest
        `overlap`, `distance` and `angle`, each of shape (n_X, n_Y).

    Notes
    -----
    A pair with a zero vector cannot be prepared as a state and is never drawn: its distance is exact, its overlap
    is ½ (0 if both are zero), and its true angle is π/2 (0 if both are zero). The printed angle is 0 for both.

    Examples
    --------
    >>> from qmedoid import compact_swap_test
    >>> measured = compact_swap_test([[1.0, 0.0]], [[1.0, 1.0]])
    >>> measured.distance, measured.angle.round(4)
    (array([[1.]]), array([[0.7854]]))
    """
    left, right = _rows(X, "X"), _rows(Y, "Y")
    if left.shape[1] != right.shape[1]:
        raise DataError(
            f"X has {left.shape[1]} columns and Y has {right.shape[1]}: both need the same number. "
            "Pass the same feature columns for the records and the medoids."
        )
    check_angle_kind(angle)
    exact = _exact(left, right, angle)
    if shots is None:
        return exact
    if isinstance(shots, bool) or not isinstance(shots, int | np.integer) or shots < 1:
        raise ParameterError(f"The 'shots' parameter must be None or an int >= 1. Got {shots!r} instead.")
    if rng is None:
        raise ParameterError("'shots' needs a generator: pass rng=numpy.random.default_rng(seed).")
    overlap = sample_overlap(exact.overlap, shots, rng)
    x_norms, y_norms = row_norms(left), row_norms(right)
    drawn = from_overlap(overlap, x_norms, y_norms, angle=angle)
    zero = (x_norms == 0)[:, None] | (y_norms == 0)[None, :]
    return SwapTest(*(np.where(zero, e, d) for e, d in zip(exact, drawn, strict=True)))


def sample_overlap(overlap: Array, shots: int, rng: np.random.Generator) -> Array:
    """Overlap as estimated from `shots` measurements: 2·B/shots − 1 with B ~ Binomial(shots, (1+s)/2).

    It may lie below 0, and is left there: cut off, it would be too large on average.
    """
    zeros = rng.binomial(shots, np.clip((1.0 + overlap) / 2.0, 0.0, 1.0))
    return 2.0 * zeros / shots - 1.0


def from_overlap(overlap: Array, x_norms: Array, y_norms: Array, *, angle: AngleKind = "true") -> SwapTest:
    r"""Distance and angle from a measured overlap and the known norms.

    .. math:: D = \sqrt{2Zs}, \qquad \cos\angle(x, y) = \frac{Z (1 - 2s)}{2\lVert x\rVert\lVert y\rVert},
              \qquad \Theta_{\text{printed}} = \arccos\sqrt{s}.

    Overlaps are of shape (n_X, n_Y). An error of s reaches the cosine multiplied by Z/(‖x‖·‖y‖), so the cosine is
    clipped to [−1, 1]. A measured s may lie outside of 0 to 1; distance and printed angle take the nearest possible.
    """
    check_angle_kind(angle)
    nx, ny = x_norms[:, None], y_norms[None, :]
    root_z, distance = np.hypot(nx, ny), overlap_distance(overlap, nx, ny)
    if angle == "printed":
        theta = np.arccos(np.sqrt(np.clip(overlap, 0.0, 1.0)))
        return SwapTest(overlap, distance, np.where((nx == 0) | (ny == 0), 0.0, theta))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Norms may be so unequal that their ratio overflows; s = 1/2 means a right angle even then.
        cosine = np.where(overlap == 0.5, 0.0, (root_z / nx) * (root_z / ny) * (0.5 - overlap))
    theta = np.arccos(np.clip(cosine, -1.0, 1.0))
    return SwapTest(overlap, distance, _with_zero_rule(theta, nx == 0, ny == 0))


def pair_overlaps(X: Array, Y: Array) -> Array:
    """Exact overlap of each row of X with the same row of Y, shape (n,); ½ where one is zero, 0 where both are."""
    scale = np.maximum(_power_of_two(X), _power_of_two(Y))[:, None]
    a, b = X / scale, Y / scale
    z = row_dots(a, a) + row_dots(b, b)
    return np.minimum(row_dots(a - b, a - b) / np.where(z > 0, 2.0 * z, 1.0), 1.0)


def overlap_distance(overlap: Array, x_norms: Array, y_norms: Array) -> Array:
    """Distance √(2Zs) of vectors with these overlaps and norms, of shapes that NumPy broadcasts.

    A measured s may lie outside of 0 to 1, and the nearest that is possible is taken.
    """
    return np.asarray(np.hypot(x_norms, y_norms) * np.sqrt(2.0 * np.clip(overlap, 0.0, 1.0)))


def row_dots(X: Array, Y: Array) -> Array:
    """Inner product of each row of X with the same row of Y (or with the only one), shape (n,)."""
    dots: Array = np.einsum("ij,ij->i", X, Y)
    return dots


def row_norms(X: Array) -> Array:
    """Euclidean norm of every row, shape (n,), safe from overflow and underflow of the squares."""
    return _unit(X)[1]


def check_angle_kind(angle: str) -> None:
    """Raise unless `angle` is one of the kinds of angle."""
    if angle not in ANGLE_KINDS:
        raise ParameterError(f"The 'angle' parameter must be 'true' or 'printed'. Got {angle!r} instead.")


def _exact(X: Array, Y: Array, angle: AngleKind) -> SwapTest:
    if len(X) < len(Y):  # the same bits, with fewer calls of NumPy
        return SwapTest(*(np.ascontiguousarray(field.T) for field in _exact(Y, X, angle)))
    out = SwapTest(*(np.empty((len(X), len(Y))) for _ in range(3)))
    for rows in row_slices(X, _BLOCK_ROWS):
        for j, y in enumerate(Y):
            x = X[rows]
            # Pairs are scaled by a power of two first, so that squares stay in range; it changes no digit.
            scale = np.maximum(_power_of_two(x), _power_of_two(y[None, :]))
            a, b = x / scale[:, None], y[None, :] / scale[:, None]
            squared, z = row_dots(a - b, a - b), row_dots(a, a) + row_dots(b, b)
            out.distance[rows, j] = np.sqrt(squared) * scale
            with np.errstate(divide="ignore", invalid="ignore"):
                overlap = np.where(z > 0, np.minimum(squared / (2.0 * z), 1.0), 0.0)
            out.overlap[rows, j] = overlap
            if angle == "true":
                out.angle[rows, j] = row_angles(x, y[None, :])
            else:
                # A vector may be far smaller than its partner: the vector as given says whether it is zero.
                zero = ~np.any(x, axis=1) | (not np.any(y))
                out.angle[rows, j] = np.where(zero, 0.0, np.arccos(np.sqrt(overlap)))
    return out


def row_angles(X: Array, Y: Array) -> Array:
    """Angle of each row of X with the same row of Y (or with the only one), shape (n,).

    By Kahan's formula 2·atan2(‖u − v‖, ‖u + v‖) on unit vectors, exact near 0 and π. A zero vector is at π/2 to all
    but zero vectors.
    """
    (u, x_norms), (v, y_norms) = _unit(X), _unit(Y)
    difference, total = u - v, u + v
    theta = 2.0 * np.arctan2(np.sqrt(row_dots(difference, difference)), np.sqrt(row_dots(total, total)))
    return _with_zero_rule(theta, x_norms == 0, y_norms == 0)


def _with_zero_rule(theta: Array, x_zero: Flags, y_zero: Flags) -> Array:
    """The true angle where a vector is zero: π/2 when exactly one is, 0 when both are."""
    return np.where(x_zero | y_zero, np.where(x_zero & y_zero, 0.0, np.pi / 2.0), theta)


def _unit(X: Array) -> tuple[Array, Array]:
    """Rows divided by their norms (zero rows stay zero), and the norms."""
    scale = _power_of_two(X)
    scaled = X / scale[:, None]
    norms = np.sqrt(row_dots(scaled, scaled))
    return scaled / np.where(norms > 0, norms, 1.0)[:, None], norms * scale


def _power_of_two(X: Array) -> Array:
    """A power of two near the largest entry of each row where squares would leave the range, else 1."""
    if X.shape[1] == 0:
        return np.ones(len(X))
    largest = np.abs(X).max(axis=1)
    in_range = (largest >= _SMALLEST) & (largest <= _LARGEST)
    if in_range.all():
        return np.ones(len(X))
    # The scale of a pair is the larger of the two: a zero row asks for the smallest, and so leaves it to its partner.
    exponent = np.where(in_range, 0, np.where(largest > 0, np.frexp(largest)[1], -1021))
    power: Array = np.ldexp(1.0, np.clip(exponent, -1021, 1022))
    return power


def _rows(values: npt.ArrayLike, name: str) -> Array:
    rows = np.atleast_2d(real_array(values, name))
    if rows.ndim != 2:
        raise DataError(f"{name} has {rows.ndim} dimensions: pass one vector (d,) or rows of vectors (n, d).")
    return rows


class SwapTestFunction(Protocol):
    """A SWAP test of every row of X with every row of Y: closed form, simulator or quantum computer.

    :func:`qmedoid.geometry.overlap.compact_swap_test` is one; the backends of :mod:`qmedoid.quantum` are others.
    """

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        ...


def measured_overlap(swap_test: SwapTestFunction, X: Array, Y: Array) -> Array:
    """Overlap of every pair of rows, shape (n_X, n_Y), by a SWAP test that may be anybody's.

    Something else than a number for every pair, which would decide about records all the same, is refused.
    """
    returned = swap_test(X, Y)
    if not hasattr(returned, "overlap"):
        raise ModelError(
            f"The SWAP test returned {type(returned).__name__} without an overlap: return a SwapTest, as "
            "compact_swap_test and the backends of qmedoid.quantum do."
        )
    overlap = real_array(returned.overlap, "What the SWAP test returned as overlap", returned=True)
    if overlap.shape != (len(X), len(Y)):
        raise ModelError(f"The SWAP test returned overlaps of shape {overlap.shape} instead of {(len(X), len(Y))}.")
    if not np.isfinite(overlap).all():
        raise ModelError(
            f"The SWAP test returned {np.count_nonzero(~np.isfinite(overlap))} of {overlap.size} overlaps that are no "
            "numbers: nothing is decided by them."
        )
    # Those of a plan are calibrated, and drawn within their errors.
    beyond = overlap[np.abs(overlap) > 1.0 + _ROUNDING]
    if beyond.size and getattr(swap_test, "bounded", True):
        raise ModelError(
            f"The SWAP test returned {beyond.size} of {overlap.size} overlaps beyond -1 to 1, such as {beyond[0]:g}: "
            "an overlap s = ‖x − y‖²/(2(‖x‖² + ‖y‖²)) lies between 0 and 1, and shots read no less than -1. Nothing "
            "is decided by them."
        )
    return overlap


def real_array(values: npt.ArrayLike, name: str, *, returned: bool = False) -> Array:
    """Values as doubles; complex ones and what is no number are refused, and those passed in that are not finite."""
    if np.iscomplexobj(values):
        then = "return real ones" if returned else "numpy.hstack([x.real, x.imag]) keeps distances, in real numbers"
        raise DataError(f"{name} holds complex numbers, and imaginary parts would be lost: {then}.")
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} is no array of real numbers ({error}): pass numbers, as many in every row.") from None
    if not returned and not np.isfinite(found).all():
        position = tuple(np.argwhere(~np.isfinite(found))[0].tolist())
        where = ", ".join(map(str, position))
        raise DataError(f"{name} holds {found[position]} at position {where}: pass finite numbers only.")
    return found
