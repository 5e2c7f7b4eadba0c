r"""Raw columns to the outputs of an evidence model and to nearest medoids, in one pass over the rows.

.. math::

   t_k(x) = b_k + \sum_j w_{jk}\,\bigl(\varphi_j(D_j(x)) - c_j\bigr), \qquad
   D_j^2(x) = \sum_{f\in g_j} u_f\,(v_f(x) - v_f(m_j))^2

with v a column scaled by rank (interpolated between knots) or standardized and clipped, and φ the square, the distance
or the nearness exp(−D/ℓ). A plan gathers what can be: squares are a polynomial of degree two of each scaled column;
terms of one column and of equal values are one term; a distance that several terms look at is measured once.

The table is read where it lies, as by :mod:`qmedoid.kernels.scoring`, and a row's result depends on that row alone,
bit for bit. A row is left *undecided* (medoid −1, numbers NaN) when a column that is read holds NaN, an infinity or a
number beyond the largest that is allowed.

The NumPy twin gives the same numbers up to rounding, one block of rows at a time.
"""

from functools import partial

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.kernels._evidence_plan import EvidencePlan, Group, make_plan
from qmedoid.kernels.backend import Measured, compiled, in_chunks, row_count

__all__ = ["EvidencePlan", "Group", "make_plan", "measure"]
_CHUNK_ROWS = 4096
_ROWS_PER_THREAD = 1000


def measure(table: Table, plan: EvidencePlan, *, channels: bool = True, threads: int | None = None) -> Measured:
    """Outputs and nearest medoids of every row, and distance and angle to them if `channels` are wanted.

    Parameters
    ----------
    table : ndarray of shape (n, M), or sequence of M arrays of shape (n,)
        Raw rows, or raw columns. float64 and float32 are read in place; other types are converted piece by piece.
        Arithmetic is in double precision for all of them.
    plan : EvidencePlan
    channels : bool
    threads : int or None
        None uses ``QMEDOID_THREADS`` if set, else the cores this process may run on; short tables take one.
    """
    n, n_classes = row_count(table, plan.n_columns), len(plan.class_offsets) - 1
    distance, angle = np.empty((2, n if channels else 0, n_classes))
    found = Measured(np.empty((n, len(plan.intercepts))), np.empty((n, n_classes), dtype=np.intp), distance, angle)
    kernel = compiled("evidence")
    in_chunks(
        partial(numpy_judge if kernel is None else kernel.judge, plan=plan),
        table,
        chunk_rows=_CHUNK_ROWS,
        rows_per_thread=_ROWS_PER_THREAD,
        threads=threads,
        outputs=found.scores,
        nearest=found.nearest,
        distance=distance if channels else None,
        angle=angle if channels else None,
    )
    return found


def numpy_judge(
    columns: Table, plan: EvidencePlan, outputs: Array, distance: Array | None, angle: Array | None, nearest: Codes
) -> None:
    """Fill the results, as the compiled kernel does."""
    lines, undecided = _lines(columns, plan)
    total = plan.intercepts + _line_terms(lines, plan)
    for group in range(len(plan.member_offsets) - 1):
        pairs = np.arange(plan.pair_offsets[group], plan.pair_offsets[group + 1])
        members = plan.members[plan.member_offsets[group] : plan.member_offsets[group + 1]]
        values = plan.values[plan.value_offsets[group] : plan.value_offsets[group + 1]].reshape(len(pairs), -1)
        distances = _distances(lines[members], values)
        total += _pair_terms(distances, pairs, plan)
        if group > 0:
            continue
        for c, (first, last) in enumerate(zip(plan.class_offsets[:-1], plan.class_offsets[1:], strict=True)):
            place = first + np.argmin(distances[:, first:last], axis=1)
            nearest[:, c] = np.where(undecided, -1, plan.medoid_indices[place])
            if distance is not None:
                distance[:, c] = np.where(undecided, np.nan, distances[np.arange(len(place)), place])
            if angle is not None:
                angle[:, c] = np.where(undecided, np.nan, _angles(lines[members], values[place].T))
    outputs[...] = np.where(undecided[:, None], np.nan, total)


def _lines(columns: Table, plan: EvidencePlan) -> tuple[Array, Flags]:
    """Scaled columns times the roots of their weights, shape (L, n), and which rows hold a bad value."""
    raw = columns.T if isinstance(columns, np.ndarray) else columns
    n = len(columns) if isinstance(columns, np.ndarray) else len(columns[0])
    lines, undecided = np.empty((len(plan.line_root), n)), np.zeros(n, dtype=np.bool_)
    for u, column in enumerate(plan.columns.used):
        x = np.array(raw[column], dtype=np.float64)
        bad = ~(np.abs(x) <= plan.largest)
        undecided |= bad
        x[bad] = 0.0
        for line in range(plan.line_offsets[u], plan.line_offsets[u + 1]):
            lines[line] = plan.columns.scaled(x, u, bool(plan.line_by_rank[line])) * plan.line_root[line]
    return lines, undecided


def _line_terms(lines: Array, plan: EvidencePlan) -> Array:
    """What terms of one line add to the outputs, shape (n, K)."""
    total = np.zeros((lines.shape[1], len(plan.intercepts)))
    for line, v in enumerate(lines):
        own = slice(plan.fold_offsets[line], plan.fold_offsets[line + 1])
        total += v[:, None] * (v[:, None] * plan.quadratic[line] + plan.linear[line])
        total += _weighted(np.abs(v[:, None] - plan.folds[own]), plan.fold_weights[own])
    return total


def _distances(lines: Array, values: Array) -> Array:
    """Distances of n rows to q medoids, (s, n) and (q, s) to (n, q)."""
    squares = np.zeros((lines.shape[1], len(values)))
    for v, m in zip(lines, values.T, strict=True):
        squares += (v[:, None] - m) ** 2
    return np.sqrt(squares)


def _pair_terms(distance: Array, pairs: Codes, plan: EvidencePlan) -> Array:
    """What the pairs of one group add to the outputs, shape (n, K)."""
    first, last = plan.near_offsets[pairs[0]], plan.near_offsets[pairs[-1] + 1]
    of_term = np.repeat(np.arange(len(pairs)), np.diff(plan.near_offsets[pairs[0] : pairs[-1] + 2]))
    total = np.zeros((len(distance), len(plan.intercepts)))
    measured = np.flatnonzero(plan.has_distance[pairs])
    total += _weighted(distance[:, measured], plan.distance_weights[pairs[measured]])
    nearness = np.exp2(plan.near_rates[first:last] * distance[:, of_term])
    total += _weighted(nearness, plan.near_weights[first:last])
    return total


def _weighted(values: Array, weights: Array) -> Array:
    """Weighted sums of every row, (n, q) and (q, K) to (n, K).

    Along contiguous rows, and not as a product of matrices, whose last bits depend on the rows beside one.
    """
    own = np.ascontiguousarray(values)
    return np.stack([(own * weight).sum(axis=1) for weight in weights.T], axis=1)


def _angles(x: Array, m: Array) -> Array:
    """Angle by Kahan's formula 2·atan2(‖u − v‖, ‖u + v‖) on unit vectors; a zero vector is at π/2 to all but zero."""
    x_norm, m_norm = _norms(x), _norms(m)
    unit, own = x / np.where(x_norm > 0, x_norm, 1.0), m / np.where(m_norm > 0, m_norm, 1.0)
    theta = 2.0 * np.arctan2(_norms(unit - own), _norms(unit + own))
    zeros = (x_norm == 0).astype(np.intp) + (m_norm == 0)
    theta = np.where(zeros == 1, np.pi / 2.0, theta)
    return np.where((zeros == 2) | (x == m).all(axis=0), 0.0, theta)


def _norms(vectors: Array) -> Array:
    """Norms of columns, (s, n) to (n,), line by line: a sum along the axis has another order for a single column."""
    squares = np.zeros(vectors.shape[1])
    for line in vectors:
        squares += line * line
    return np.sqrt(squares)
