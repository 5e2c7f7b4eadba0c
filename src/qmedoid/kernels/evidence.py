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

from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.kernels._backend import compiled
from qmedoid.kernels._evidence_plan import ColumnGroup, EvidencePlan, make_plan
from qmedoid.kernels._tables import NearestMedoids, in_chunks, result_part, row_count

__all__ = ["ColumnGroup", "EvidencePlan", "make_plan", "measure", "outputs", "outputs_and_medoids"]
# Rows per call of a kernel: small enough to share between threads and to convert other types a piece at a time.
_CHUNK_ROWS = 4096
# Below this many rows a second thread costs more than it brings.
_ROWS_WORTH_A_THREAD = 1000


class EvidenceResults(NamedTuple):
    """Arrays to be filled, row by row; None where a result is not wanted."""

    outputs: Array | None = None
    distance: Array | None = None
    angle: Array | None = None
    nearest: Codes | None = None

    def part(self, rows: slice) -> "EvidenceResults":
        """The same results for some of the rows."""
        return EvidenceResults(
            result_part(self.outputs, rows),
            result_part(self.distance, rows),
            result_part(self.angle, rows),
            result_part(self.nearest, rows),
        )


def outputs(table: Table, plan: EvidencePlan, *, threads: int | None = None) -> Array:
    """Outputs t of every row, shape (n, K); NaN for undecided rows.

    Parameters
    ----------
    table : ndarray of shape (n, M), or sequence of M arrays of shape (n,)
        Raw rows, or raw columns. float64 and float32 are read in place; other types are converted piece by piece.
        Arithmetic is in double precision for all of them.
    plan : EvidencePlan
    threads : int or None
        None uses ``QMEDOID_THREADS`` if set, else the cores this process may run on; short tables take one.
    """
    out = np.empty((row_count(table, plan.n_columns), len(plan.intercepts)))
    _run(table, plan, EvidenceResults(out), threads)
    return out


def outputs_and_medoids(table: Table, plan: EvidencePlan, *, threads: int | None = None) -> tuple[Array, Codes]:
    """Outputs, shape (n, K), and the index of the nearest medoid of each class, shape (n, C); NaN and −1 undecided."""
    n = row_count(table, plan.n_columns)
    out, nearest = np.empty((n, len(plan.intercepts))), np.empty((n, len(plan.class_offsets) - 1), dtype=np.intp)
    _run(table, plan, EvidenceResults(out, nearest=nearest), threads)
    return out, nearest


def measure(table: Table, plan: EvidencePlan, *, threads: int | None = None) -> tuple[Array, NearestMedoids]:
    """Outputs, and distance and angle to the nearest medoid of each class with its index; NaN and −1 undecided."""
    n = row_count(table, plan.n_columns)
    out, shape = np.empty((n, len(plan.intercepts))), (n, len(plan.class_offsets) - 1)
    found = NearestMedoids(np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.intp))
    _run(table, plan, EvidenceResults(out, found.distance, found.angle, found.medoid), threads)
    return out, found


def _run(table: Table, plan: EvidencePlan, out: EvidenceResults, threads: int | None) -> None:
    """Judge a table chunk by chunk, on several threads where that pays."""
    kernel = compiled("evidence")

    def judge_chunk(part: Table, rows: slice) -> None:
        if kernel is None:
            numpy_judge(part, plan, out.part(rows))
        else:
            kernel.judge(part, plan, *out.part(rows))

    in_chunks(
        judge_chunk, table, compiled=kernel is not None, chunk_rows=_CHUNK_ROWS,
        rows_worth_a_thread=_ROWS_WORTH_A_THREAD, threads=threads,
    )  # fmt: skip


def numpy_judge(columns: Table, plan: EvidencePlan, out: EvidenceResults) -> int:
    """Fill the results that are asked for; return how many rows were left undecided, as the compiled kernel does."""
    lines, undecided = _lines(columns, plan)
    total = plan.intercepts + _line_terms(lines, plan)
    for group in range(len(plan.member_offsets) - 1):
        pairs = np.arange(plan.pair_offsets[group], plan.pair_offsets[group + 1])
        members = plan.members[plan.member_offsets[group] : plan.member_offsets[group + 1]]
        values = plan.values[plan.value_offsets[group] : plan.value_offsets[group + 1]].reshape(len(pairs), -1)
        distance = _distances(lines[members], values)
        total += _pair_terms(distance, pairs, plan)
        if group == 0 and not (out.distance is None and out.angle is None and out.nearest is None):
            _write_nearest(lines[members], values, distance, undecided, plan, out)
    if out.outputs is not None:
        out.outputs[...] = total
        out.outputs[undecided] = np.nan
    return int(np.count_nonzero(undecided))


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


def _write_nearest(
    lines: Array, values: Array, distance: Array, undecided: Flags, plan: EvidencePlan, out: EvidenceResults
) -> None:
    """Nearest medoid of each class, of equals the first, and distance and angle to it."""
    rows = np.arange(distance.shape[0])
    for c, (first, last) in enumerate(zip(plan.class_offsets[:-1], plan.class_offsets[1:], strict=True)):
        place = first + np.argmin(distance[:, first:last], axis=1)
        if out.nearest is not None:
            out.nearest[:, c] = np.where(undecided, -1, plan.medoid_indices[place])
        if out.distance is not None:
            out.distance[:, c] = np.where(undecided, np.nan, distance[rows, place])
        if out.angle is not None:
            out.angle[:, c] = np.where(undecided, np.nan, _angles(lines, values[place].T))


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
