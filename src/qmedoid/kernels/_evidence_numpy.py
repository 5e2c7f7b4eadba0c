"""The NumPy twin of the evidence kernel: the same numbers up to rounding, one block of rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from qmedoid.kernels._evidence_plan import EvidencePlan
    from qmedoid.kernels._tables import Table
    from qmedoid.kernels.evidence import Results

Array = NDArray[np.float64]
Codes = NDArray[np.intp]


def judge(columns: Table, plan: EvidencePlan, out: Results) -> int:
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


def _lines(columns: Table, plan: EvidencePlan) -> tuple[Array, NDArray[np.bool_]]:
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
    lines: Array, values: Array, distance: Array, undecided: NDArray[np.bool_], plan: EvidencePlan, out: Results
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
