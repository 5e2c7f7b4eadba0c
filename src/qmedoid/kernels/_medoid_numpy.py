"""NumPy twin of the compiled sums of distances and their bounds (same names and arguments as ``_medoid``)."""

import numpy as np

from qmedoid.arrays import Array, Codes, row_slices

# Rows of a block of distances are chosen so that the block stays in cache.
BLOCK_NUMBERS = 1 << 16
# Pairs of rows above which a matrix product is used to find out which totals must be exact.
PRODUCT_ABOVE = 1 << 21


def spread(X: Array) -> float:
    """Return the largest range of a column of X, or NaN when X holds NaN or infinity."""
    if not np.isfinite(X).all():
        return float("nan")
    with np.errstate(over="ignore"):
        return float(np.ptp(X, axis=0).max())


def distances(X: Array, rows: Codes) -> Array:
    """Return the distances |x_r - x_j| of the given rows r to all rows j, shape (len(rows), n).

    Differences are taken before squaring, so that a table far from the origin loses no digits.
    """
    n, d = X.shape
    out = np.zeros((len(rows), n))
    columns = np.ascontiguousarray(X.T)
    step = max(1, BLOCK_NUMBERS // max(1, n))
    for part in row_slices(rows, step):
        block, mine = out[part], columns[:, rows[part]]
        for k in range(d):
            difference = mine[k][:, None] - columns[k]
            difference *= difference
            block += difference
        np.sqrt(block, out=block)
    return out


def totals(X: Array, w: Array, rows: Codes, out: Array) -> None:
    """Write sum_j w_j |x_j - x_r| for the r in ``rows`` to ``out``."""
    step = max(1, 16 * BLOCK_NUMBERS // max(1, len(X)))
    for part in row_slices(rows, step):
        out[part] = (distances(X, rows[part]) * w).sum(axis=1)


def all_totals(X: Array, w: Array, out: Array) -> None:
    """Write sum_j w_j |x_j - x_i| for every row i to ``out``.

    Large tables take the distances from a matrix product, |a|^2 + |b|^2 - 2 ab, which is quick but not exact. Only the
    totals that its rounding leaves open as the smallest are then summed exactly; the others keep about 7 digits.
    """
    everything = np.arange(len(X), dtype=np.intp)
    if len(X) ** 2 <= PRODUCT_ABOVE:
        totals(X, w, everything, out)
        return
    error = _product_totals(X, w, out)
    unsure = everything[out - error <= (out + error).min()]
    exact = np.empty(len(unsure))
    totals(X, w, unsure, exact)
    out[unsure] = exact


def _product_totals(X: Array, w: Array, out: Array) -> Array:
    """Write totals from a matrix product to ``out`` and return a bound of the error of each.

    A squared distance is off by at most g (|a| + |b|)^2, g being a few d roundings, hence a distance by at most the
    root of that, and a total by sqrt(g) (|a| sum_j w_j + sum_j w_j |b_j|).
    """
    n, d = X.shape
    Z = X - (w @ X) / w.sum()
    squares = np.einsum("ij,ij->i", Z, Z)
    step = max(1, 16 * BLOCK_NUMBERS // n)
    for part in row_slices(Z, step):
        block = Z[part] @ Z.T
        block *= -2.0
        block += squares
        block += squares[part, None]
        np.maximum(block, 0.0, out=block)
        np.sqrt(block, out=block)
        out[part] = block @ w
    norms = np.sqrt(squares)
    error: Array = np.sqrt((4 * d + 32) * 2.0**-52) * (norms * w.sum() + norms @ w) + n * 2.0**-52 * out
    return error


def centre(X: Array, pivot: Array, Z: Array, norms: Array) -> None:
    """Write z_j = x_j - pivot to ``Z`` and |z_j| to ``norms``."""
    np.subtract(X, pivot, out=Z)
    np.sqrt(np.einsum("ij,ij->i", Z, Z), out=norms)


def moments(Z: Array, norms: Array, w: Array, low: float, high: float, r0: float, out: Array) -> None:
    """Write the 3 + 2 d + d * d moments of a shell of candidates to ``out``.

    With A_j = |z_j|^2 + r0, s_j = dist(|z_j|, [low, high]) / sqrt(A_j), a_j = w_j / sqrt(A_j) and
    b_j = w_j / (A_j^(3/2) (1 + s_j)^2) these are sum w sqrt(A), sum a, sum b, sum a z, sum b z and the lower triangle
    of sum b z z'.
    """
    d = Z.shape[1]
    root = np.sqrt(norms * norms + r0)
    a = w / root
    b = a / np.square(root + np.maximum(np.maximum(low - norms, norms - high), 0.0))
    out[:3] = w @ root, a.sum(), b.sum()
    out[3 : 3 + d] = a @ Z
    out[3 + d : 3 + 2 * d] = b @ Z
    out[3 + 2 * d :] = np.tril((Z * b[:, None]).T @ Z).ravel()


def bounds(Z: Array, norms: Array, rows: Codes, moments: Array, r0: float, out: Array) -> None:
    """Write lower bounds of sum_j w_j |z_j - z_r| for the r in ``rows``, which lie in the shell, to ``out``.

    With t = r0 - |h|^2 for the candidate h = z_r, the bound is

        sum w sqrt(A) - <sum a z, h> - t/2 sum a - 2 h'(sum b z z')h - 2 t <sum b z, h> - t^2/2 sum b.
    """
    d = Z.shape[1]
    zeroth, first, last = moments[:3]
    lower = moments[3 + 2 * d :].reshape(d, d)
    H, t = Z[rows], r0 - np.square(norms[rows])
    form = np.einsum("ij,ij->i", H @ (lower + np.tril(lower, -1).T), H)
    along, skew = H @ moments[3 : 3 + d], H @ moments[3 + d : 3 + 2 * d]
    out[:] = zeroth - along - 0.5 * t * first - 2.0 * form - 2.0 * t * skew - 0.5 * t * t * last
