"""The exact medoid, the row with the smallest sum of distances to all rows, in near-linear time.

Rows that cannot be the medoid are ruled out by lower bounds on their sums of distances; where the compiled kernel is
not built, all distances are summed.

Let E(y) = sum_j w_j |x_j - y|. Around a pivot p write z_j = x_j - p; a candidate is h = z_i. For any r0 > 0, with
A_j = |z_j|^2 + r0 and t_j = 2 <z_j, h> + r0 - |h|^2,

    |z_j - h| = sqrt(A_j - t_j) >= sqrt(A_j) (1 - u/2 - u^2 / (2 (1 + s)^2)),    u = t_j / A_j,

for every s <= sqrt(1 - u) = |z_j - h| / sqrt(A_j): the difference of the two sides is a square times a positive
number. Candidates are taken in shells low <= |h| <= high, where | |z_j| - |h| | <= |z_j - h| gives an s_j that does not
depend on h. The sum over j is then a quadratic in h whose coefficients are moments of the z_j: O(n d^2) once for a
shell, O(d^2) for each candidate. Three more facts do the rest:

- E(p + h) >= W |h| - E(p) rules out candidates far away, W being the sum of the weights;
- E is convex: when the bound exceeds E(p) and the best total so far on the whole sphere |h| = low, nothing beyond
  that sphere can win;
- any pivot will do. Near the geometric median one or two shells suffice for data with one centre. What survives (the
  other case: several clusters) is split in two, each part scanned around its own mean, and so on while it pays.

Rounding is bounded too: each bound is lowered by more than the error it can carry, so no row is ruled out wrongly.
Thin products are written as ``einsum``: BLAS would wake threads for them that cost more than they bring.
"""

from collections import deque
from types import ModuleType

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, row_slices
from qmedoid.exceptions import DataError
from qmedoid.kernels.backend import compiled

#: Two totals whose relative difference is at most this count as equal, and the lower index wins. Rounding moves a
#: total by about 1e-15 of itself, so every way of computing it agrees on what is equal.
TIE_TOLERANCE = 1e-12
# Powers of a distance neither overflow nor vanish while the widest column range lies between these bounds;
# outside them the rows are rescaled.
_SAFE_SPREAD = (2.0**-100, 2.0**100)
# Rows of a block of distances are chosen so that the block stays in cache.
BLOCK_NUMBERS = 1 << 16
# Ratio of the outer to the inner radius of a shell. Wider: fewer passes over the rows, weaker bounds.
SHELL = 1.12
# Rows sampled where only the speed of the search depends on it (pivots and splits).
SAMPLE = 512
# Share of the work of summing all pairs that may be spent on bounds before giving up.
BUDGET = 0.2
# Work, n * n * (d + 8), below which summing all pairs takes no longer than preparing the search.
ALL_PAIRS_BELOW = 2**26
# What the calls of one shell take, in the same unit.
CALLS = 2**21
# Passes that must be left for another split to be worth a try: a part has several shells.
PASSES_TO_SPLIT = 8
# Totals are summed for this many rows at once at the price of one.
TOGETHER = 8
# Shells smaller than this (in a table of spread about 1) are not worth the risk of overflow in A^(-3/2).
TINY = 1e-60


def medoid(X: Array, *, weights: Array | None = None) -> int:
    """The row i of X (n, d), of one row at least, that minimizes sum_j w_j |x_j - x_i|.

    The lowest index among the rows within ``TIE_TOLERANCE`` of the smallest total. Weights are non-negative, with a
    positive one; a row of weight k counts as k equal rows, and a row of weight 0 is never the medoid.
    """
    if weights is None:
        return _medoid(X, np.ones(len(X)))
    require_finite(X)
    kept = np.flatnonzero(weights)
    # A power of two brings the largest weight into [0.5, 1) and changes no digit.
    w = np.ldexp(weights[kept], -np.frexp(weights[kept].max())[1])
    return int(kept[_medoid(X[kept], w)])


def _medoid(X: Array, w: Array) -> int:
    """The medoid of rows that all have a positive weight."""
    n, d = X.shape
    if d == 0:
        return 0
    kernel = compiled("medoid")
    X = safe_scale(X, None if kernel is None else kernel.spread(X))
    rows = None if kernel is None else candidates(kernel, X, w)
    totals = np.empty(n if rows is None else len(rows))
    if kernel is None:
        _totals(X, w, totals)
    elif rows is None:
        kernel.all_totals(X, w, totals)
    else:
        kernel.totals(X, w, rows, totals)
        return int(rows[_first_minimum(totals)])
    return _first_minimum(totals)


def _first_minimum(totals: Array) -> int:
    least = totals.min()
    return int(np.argmax(totals <= least + TIE_TOLERANCE * least))


def require_finite(X: Array) -> None:
    """Raise a DataError that names the first entry of X that is NaN or infinite."""
    finite = np.isfinite(X)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise DataError(
            f"X holds {X[row, column]} in row {row}, column {column}. A medoid needs finite numbers: "
            "fill or drop the missing values first."
        )


def safe_scale(X: Array, spread: float | None = None) -> Array:
    """Multiply X by a power of two, where that is needed, so that squared differences stay in range.

    The medoid does not change. ``spread`` is the largest column range, NaN for a table that is not finite.
    """
    with np.errstate(over="ignore"):
        widest = (float(np.ptp(X, axis=0).max()) if np.isfinite(X).all() else np.nan) if spread is None else spread
    if _SAFE_SPREAD[0] < widest < _SAFE_SPREAD[1] or widest == 0.0:
        return X
    require_finite(X)
    # A constant column adds nothing to a distance but could overflow when tiny columns are scaled up.
    moving = np.where(X.min(axis=0) < X.max(axis=0), X, 0.0)
    return np.ascontiguousarray(np.ldexp(moving, -np.frexp(min(widest, np.finfo(float).max))[1] - 2))


def distances(X: Array, rows: Codes | None = None) -> Array:
    """Return the distances |x_r - x_j| of some or all rows r of a table that ``safe_scale`` has seen to all rows j.

    Differences are taken before squaring, so that a table far from the origin loses no digits.
    """
    n, d = X.shape
    rows = np.arange(n) if rows is None else rows
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


def _totals(X: Array, w: Array, out: Array) -> None:
    """Write sum_j w_j |x_j - x_i| for every row i to ``out``."""
    step = max(1, 16 * BLOCK_NUMBERS // max(1, len(X)))
    for part in row_slices(X, step):
        out[part] = (distances(X, np.arange(part.start, part.stop)) * w).sum(axis=1)


def candidates(kernel: ModuleType, X: Array, w: Array) -> Codes | None:
    """Ascending rows of X (n, d) among which the medoid is, or None when summing all pairs is quicker.

    Every row whose total is within ``TIE_TOLERANCE`` of the smallest is among them, or is equal to a row of lower index
    that is. Weights w are positive.
    """
    n, d = X.shape
    if n * n * (d + 8) < ALL_PAIRS_BELOW:
        return None
    if d == 1:
        return first_of_equal(X, on_a_line(X[:, 0], w))
    search = Search(kernel, X, w)
    if search.passes < 2:
        return None
    rows = search.run()
    return None if 2 * len(rows) > n else rows


def on_a_line(x: Array, w: Array) -> Codes:
    """The rows of a single column that can be the medoid: prefix sums give every total up to rounding."""
    order = np.argsort(x, kind="stable")
    mass = np.cumsum(w[order])
    y = x[order] - x[order[np.searchsorted(mass, mass[-1] / 2)]]
    moment = np.cumsum(w[order] * y)
    total = y * (2.0 * mass - mass[-1]) + (moment[-1] - 2.0 * moment)
    error = 8.0 * len(x) * 2.0**-53 * (np.abs(y) * mass[-1] + w[order] @ np.abs(y))
    return np.sort(order[total - error <= (total + error).min() * (1.0 + 2.0 * TIE_TOLERANCE)])


class Search:
    """One elimination of rows that are not the medoid; see the module for the mathematics."""

    def __init__(self, kernel: ModuleType, X: Array, w: Array) -> None:
        n, d = X.shape
        self.kernel, self.X, self.w = kernel, X, w
        self.mass = float(w.sum())
        self.limit = np.inf  # totals above it lose; it comes down as totals are summed
        self.rounding = (n + 8 * d + 64) * 2.0**-52
        # The moments of a shell, and the calls around them, cost about as much as the totals of this many rows.
        self.price = 8 + d + CALLS // (n * (d + 8))
        self.passes = int(BUDGET * n / 2) // self.price
        self.Z, self.norms, self.moments = np.empty((n, d)), np.empty(n), np.empty(3 + 2 * d + d * d)

    def run(self) -> Codes:
        """The rows that no bound rules out, ascending, one of each set of equal rows."""
        everything = np.arange(len(self.X), dtype=np.intp)
        open_sets = deque([self.scan(everything, geometric_median(self.X, self.w))])
        kept: list[Codes] = []
        while open_sets:
            rows = first_of_equal(self.X, np.sort(open_sets.popleft()))
            worth_it = len(rows) > 2 * self.price and self.passes >= PASSES_TO_SPLIT
            parts = halves(self.X, rows) if worth_it else []
            if not parts:
                kept.append(rows)
            for part, pivot in parts:
                open_sets.append(self.scan(part, pivot))
        return np.sort(np.concatenate(kept))

    def scan(self, rows: Codes, pivot: Array) -> Codes:
        """Those of ``rows`` that bounds around ``pivot`` do not rule out."""
        self.kernel.centre(self.X, pivot, self.Z, self.norms)
        at_pivot = float((self.w * self.norms).sum()) * (1.0 + self.rounding)
        order = rows[np.argsort(self.norms[rows], kind="stable")]
        radii = self.norms[order]
        self.sum_some(order[:TOGETHER])
        reach = (self.limit + at_pivot) / self.mass * (1.0 + self.rounding)
        stop = int(np.searchsorted(radii, reach, side="right"))
        kept: list[Codes] = [order[:0]]
        start = 0
        while start < stop:
            low = float(radii[start])
            end = max(int(np.searchsorted(radii, low * SHELL, side="right")), start + self.price)
            end = min(end, stop) if self.passes > 0 else stop
            shell, high = order[start:end], float(radii[end - 1])
            if self.passes > 0 and high > TINY:
                r0 = 0.5 * (low * low + high * high)
                slack = self.rounding * (at_pivot + 20.0 * self.mass * high)
                self.passes -= 1
                self.kernel.moments(self.Z, self.norms, self.w, low, high, r0, self.moments)
                if self.sphere_bound(low, r0) - slack > max(self.limit, at_pivot):
                    break
                shell = self.drop(shell, r0, slack)
            kept.append(shell)
            start = end
        return np.concatenate(kept)

    def drop(self, shell: Codes, r0: float, slack: float) -> Codes:
        """The rows of a shell whose bound, lowered by ``slack``, does not exceed the limit."""
        lower = np.empty(len(shell))
        self.kernel.bounds(self.Z, self.norms, shell, self.moments, r0, lower)
        alive = lower - slack <= self.limit
        if alive.sum() > TOGETHER:
            self.sum_some(shell[np.argsort(lower, kind="stable")[:TOGETHER]])
            alive = lower - slack <= self.limit
        return shell[alive]

    def sphere_bound(self, radius: float, r0: float) -> float:
        """The smallest bound that any direction can have on the sphere of a radius within the shell."""
        d = self.X.shape[1]
        zeroth, first, last = self.moments[:3]
        along = float(np.linalg.norm(self.moments[3 : 3 + d]))
        skew = float(np.linalg.norm(self.moments[3 + d : 3 + 2 * d]))
        form = float(np.linalg.eigvalsh(self.moments[3 + 2 * d :].reshape(d, d))[-1])
        t = r0 - radius * radius
        return float(
            zeroth
            - radius * along
            - 0.5 * t * first
            - 2.0 * radius * radius * form
            - 2.0 * abs(t) * radius * skew
            - 0.5 * t * t * last
        )

    def sum_some(self, rows: Codes) -> None:
        """Sum the totals of a few promising rows to bring the limit down."""
        totals = np.empty(len(rows))
        self.kernel.totals(self.X, self.w, rows, totals)
        self.limit = min(self.limit, float(totals.min()) * (1.0 + 2.0 * TIE_TOLERANCE))


def geometric_median(X: Array, w: Array) -> Array:
    """A point with about the smallest sum of distances to a sample of the rows (Weiszfeld's iteration)."""
    some = slice(None, None, -(-len(X) // SAMPLE))  # evenly spread rows
    S, v = X[some], w[some]
    y: Array = np.median(S, axis=0)
    for _ in range(8):
        radius = np.sqrt(np.square(S - y).sum(axis=1))
        pull = v / np.maximum(radius, 1e-9 * radius.max() + TINY)
        y = np.einsum("i,ij->j", pull, S) / pull.sum()
    return y


def halves(X: Array, rows: Codes) -> list[tuple[Codes, Array]]:
    """Split rows in two by a few steps of 2-means on a sample; each half comes with its mean. [] if that fails."""
    S = X[rows[:: -(-len(rows) // SAMPLE)]]
    a = S[np.argmax(np.square(S - S[0]).sum(axis=1))]
    b = S[np.argmax(np.square(S - a).sum(axis=1))]
    for _ in range(4):
        left = nearer(S, a, b)
        if left.all() or not left.any():
            return []
        a, b = S[left].mean(axis=0), S[~left].mean(axis=0)
    left = nearer(X[rows], a, b)
    return [(part, mean) for part, mean in ((rows[left], a), (rows[~left], b)) if len(part)]


def nearer(Y: Array, a: Array, b: Array) -> Flags:
    """Which rows of Y are nearer to a than to b."""
    side: Array = np.einsum("ij,j->i", Y - 0.5 * (a + b), b - a)
    return side < 0.0


def first_of_equal(X: Array, rows: Codes) -> Codes:
    """Ascending ``rows`` without (nearly all of) those that equal an earlier one.

    Equal rows have equal keys, which are quicker to sort than rows. Of several rows that share a key only those equal
    to the first are left out: a duplicate too many costs time, never a wrong answer.
    """
    if len(rows) < 2:
        return rows
    keys = np.einsum("ij,j->i", X[rows], np.sin(np.arange(1.0, X.shape[1] + 1.0)))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    earlier = rows[first[inverse]]
    shared = np.flatnonzero(earlier != rows)
    equal = shared[(X[rows[shared]] == X[earlier[shared]]).all(axis=1)]
    return np.delete(rows, equal)
