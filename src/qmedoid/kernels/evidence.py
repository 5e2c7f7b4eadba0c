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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Flags, Table, column_slices
from qmedoid.kernels.backend import Measured, in_chunks
from qmedoid.schema import MODERATE, Values

FOLDS = 4
"""Terms w·|v − m| of a line that the compiled kernel takes together."""
_CHUNK_ROWS = 4096
_ROWS_PER_THREAD = 1000
_SQUARE, _DISTANCE = 0, 1
_LOG2_E = 1.4426950408889634


class Group(NamedTuple):
    """Columns that one distance looks at.

    Attributes
    ----------
    columns : tuple of int
    weights : ndarray of shape (g,)
        u, above 0: what a squared difference in each column counts.
    by_rank : bool
        Whether columns are scaled by rank; else they are standardized.
    """

    columns: Annotated[tuple[int, ...], Values("g", below="M")]
    weights: Annotated[Array, Values("g", least=1 / MODERATE, most=MODERATE)]
    by_rank: bool


class Columns(NamedTuple):
    """The U columns that are read, and their two scalings."""

    used: Codes  # (U,): which ones of the table they are
    center: Array  # (U,)
    scale: Array  # (U,)
    clip: float  # what a standardized value may be at most
    knot_offsets: Codes  # (U + 1,): knots of column u are `knot_offsets[u]` and on
    knots: Array
    marks: Array  # what knots are mapped to
    rises: Array  # slopes from each knot to the next


@dataclass(frozen=True, eq=False)
class EvidencePlan:
    """What an evidence model needs to decide, as contiguous arrays.

    U used columns, L lines, G groups of lines, N pairs of a group and a medoid, K outputs, P medoids, C classes. A
    *line* is a scaled column times the root of its weight. Group 0 has the nearest medoids, class by class.
    """

    n_columns: int  # of the tables it can score
    largest: float  # what a raw value may be at most
    columns: Columns
    line_offsets: Codes  # (U + 1,): lines of column u are `line_offsets[u]` and on
    line_by_rank: Codes  # (L,): which scaling
    line_root: Array  # (L,): what it is multiplied by
    intercepts: Array  # (K,)
    quadratic: Array  # (L, K): factors of v²
    linear: Array  # (L, K): factors of v
    fold_offsets: Codes  # (L + 1,): terms w·|v − m| of each line
    folds: Array  # (F,): m
    fold_weights: Array  # (F, K)
    member_offsets: Codes  # (G + 1,): lines of each group
    members: Codes
    pair_offsets: Codes  # (G + 1,): pairs of each group
    value_offsets: Codes  # (G + 1,): values of their medoids on its lines, pair by pair
    values: Array
    has_distance: Codes  # (N,)
    distance_weights: Array  # (N, K)
    near_offsets: Codes  # (N + 1,): terms w·2^(rate·D) of each pair
    near_rates: Array  # (R,)
    near_weights: Array  # (R, K)
    medoid_indices: Codes  # (P,): medoids of group 0 by the index each is reported by
    class_offsets: Codes  # (C + 1,): where each class starts among them


Key = tuple[int, bool, float]
"""A line: its column, whether it is scaled by rank, and the root of its weight."""
Pairs = dict[tuple[int, ...], dict[int, dict[float, Array]]]
"""Weights of the terms of each group of lines and medoid, by the rate of their nearness; 0 is the distance."""


def knot_places(X: Array, first: Codes, last: Codes, knots: Array) -> Codes:
    """Index of the last knot that is not above each cell of X (n, M), or of the first knot of its column.

    Knots of a column are those from `first` up to `last`, each of shape (M,), and rise. The cells of all columns are
    searched for together, by halving.
    """
    low, high = np.broadcast_to(first, X.shape).copy(), np.broadcast_to(last, X.shape).copy()
    for _ in range(int((last - first + 1).max(initial=1)).bit_length()):
        middle = (low + high + 1) // 2
        is_reached = knots[middle] <= X
        low = np.where(is_reached, middle, low)
        high = np.maximum(np.where(is_reached, high, middle - 1), low)
    return low


def make_plan(
    *,
    rank_offsets: Codes,
    rank_values: Array,
    rank_scores: Array,
    center: Array,
    scale: Array,
    clip: float,
    largest: float,
    medoids: Array,
    medoid_classes: Codes,
    n_classes: int,
    column_weights: Array,
    groups: Sequence[Group],
    term_group: Codes,
    term_medoid: Codes,
    term_channel: Codes,
    term_length: Array,
    term_center: Array,
    weights: Array,
    intercepts: Array,
) -> EvidencePlan:
    """A plan from the parts of a model over M raw columns: scalings, medoids (P, M), groups and T terms.

    Channels are 0 for the square, 1 for the distance and 2 for the nearness; `weights` has shape (T, K). The nearest
    medoid of each class is found by the distance over all columns, scaled by rank, with `column_weights`.
    """
    compared = np.flatnonzero(column_weights > 0)
    keys_of = [_keys(group) for group in (Group(tuple(compared), column_weights[compared], True), *groups)]
    keys: list[Key] = sorted({key for of_group in keys_of for key in of_group})
    number = {key: line for line, key in enumerate(keys)}
    of_line = np.array([column for column, _, _ in keys], dtype=np.intp)
    line_by_rank, line_root = _codes([by_rank for _, by_rank, _ in keys]), _numbers([root for _, _, root in keys])
    used, of_used = np.unique(of_line, return_inverse=True)
    is_kept = np.isin(np.repeat(np.arange(len(rank_offsets) - 1), np.diff(rank_offsets)), used)
    knots, marks, knot_offsets = rank_values[is_kept], rank_scores[is_kept], _offsets(np.diff(rank_offsets)[used])
    # Slopes from each knot to the next of its column; 0 from the last, and where no number lies between two.
    rises = np.zeros(len(knots))
    with np.errstate(all="ignore"):
        rises[:-1] = np.diff(marks) / np.diff(knots)
    rises[knot_offsets[1:] - 1] = 0.0
    rises[~np.isfinite(rises)] = 0.0
    scaling = _numbers(center[used]), _numbers(scale[used]), float(clip)
    columns = Columns(_codes(used), *scaling, knot_offsets, _numbers(knots), _numbers(marks), rises)
    on_lines = np.empty((len(keys), len(medoids)))
    for block in column_slices(len(medoids), len(keys)):
        scaled = _scaled_lines(columns, medoids[:, of_line[block]], of_used[block], line_by_rank[block] > 0)
        on_lines[block] = (scaled * line_root[block]).T
    lines = [tuple(number[key] for key in of_group) for of_group in keys_of]
    quadratic, linear, constant, folds, pairs = _gather(
        lines[1:], on_lines, term_group, term_medoid, term_channel, term_length, weights
    )
    nothing = _filled_up({}, weights.shape[1])
    filled = [_filled_up(line, weights.shape[1]) if line else nothing for line in folds]
    by_class = np.argsort(medoid_classes, kind="stable")
    return EvidencePlan(
        n_columns=medoids.shape[1],
        largest=float(largest),
        columns=columns,
        line_offsets=_offsets(np.bincount(of_used, minlength=len(used))),
        line_by_rank=line_by_rank,
        line_root=line_root,
        intercepts=_numbers(constant + (intercepts - term_center @ weights)),
        quadratic=_numbers(quadratic),
        linear=_numbers(linear),
        fold_offsets=_offsets([len(values) for values, _ in filled]),
        folds=_end_to_end([values for values, _ in filled], np.float64),
        fold_weights=_numbers(np.concatenate([of_line for _, of_line in filled])),
        **_pair_arrays(pairs, lines[0], on_lines, by_class, weights.shape[1]),
        medoid_indices=_codes(by_class),
        class_offsets=_offsets(np.bincount(medoid_classes, minlength=n_classes)),
    )


def _scaled_lines(columns: Columns, x: Array, u: Codes, by_rank: Flags) -> Array:
    """Columns x (n, L), the l-th one scaled as the ``u[l]``-th column; the compiled kernel rounds them likewise."""
    scaled: Array = np.clip((x - columns.center[u]) / columns.scale[u], -columns.clip, columns.clip)
    ranked = u[by_rank]
    first, last = columns.knot_offsets[ranked], columns.knot_offsets[ranked + 1] - 1
    held = np.clip(x[:, by_rank], columns.knots[first], columns.knots[last])
    knot = knot_places(held, first, last, columns.knots)
    scaled[:, by_rank] = columns.rises[knot] * (held - columns.knots[knot]) + columns.marks[knot]
    return scaled


def _keys(group: Group) -> list[Key]:
    """The lines of a group: column, scaling and root of the weight."""
    columns, roots = np.asarray(group.columns, dtype=np.intp).tolist(), np.sqrt(group.weights).tolist()
    return sorted(zip(columns, [bool(group.by_rank)] * len(columns), roots, strict=True))


def _gather(
    groups: Sequence[tuple[int, ...]],
    own: Array,
    group: Codes,
    medoid: Codes,
    channel: Codes,
    length: Array,
    weights: Array,
) -> tuple[Array, Array, Array, list[dict[float, Array]], Pairs]:
    """Factors of v² and v of each line and a constant, folds of each line, and pairs; terms without weight are nowhere.

    `own` has the medoids' values on each line, shape (L, P). Medoids that are equal on the lines of a group are one
    there: the first of them that has a term.
    """
    quadratic, linear = np.zeros((2, len(own), weights.shape[1]))
    folds: list[dict[float, Array]] = [{} for _ in own]
    constant, pairs = np.zeros(weights.shape[1]), Pairs()
    first_like: dict[tuple[tuple[int, ...], tuple[float, ...]], int] = {}
    for term in np.flatnonzero(weights.any(axis=1)):
        lines, place, weight = groups[group[term]], int(medoid[term]), weights[term]
        if channel[term] == _SQUARE:  # w (v − m)² = w v² − 2 w m v + w m²
            for line in lines:
                value = own[line, place]
                quadratic[line] += weight
                linear[line] -= 2.0 * value * weight
                constant += value * value * weight
            continue
        rate = 0.0 if channel[term] == _DISTANCE else float(-_LOG2_E / length[term])
        if rate == 0.0 and len(lines) == 1:
            found, key = folds[lines[0]], float(own[lines[0], place])
        else:
            place = first_like.setdefault((lines, tuple(own[list(lines), place].tolist())), place)
            found, key = pairs.setdefault(lines, {}).setdefault(place, {}), rate
        found[key] = found.get(key, 0.0) + weight
    return quadratic, linear, constant, folds, pairs


def _filled_up(folds: dict[float, Array], n_outputs: int) -> tuple[Array, Array]:
    """Values and weights of the folds of one line, filled up with folds of weight 0 to a multiple of `FOLDS`."""
    count = -(-len(folds) // FOLDS) * FOLDS
    values, weights = np.zeros(count), np.zeros((count, n_outputs))
    for place, (value, weight) in enumerate(folds.items()):
        values[place], weights[place] = value, weight
    return values, weights


def _pair_arrays(pairs: Pairs, nearest: tuple[int, ...], own: Array, by_class: Codes, n_outputs: int) -> dict[str, Any]:
    """Pairs group by group, all medoids with the lines of the nearest first."""
    first = pairs.pop(nearest, {})
    groups = [(nearest, {int(place): first.get(int(place), {}) for place in by_class}), *pairs.items()]
    members = [np.array(lines, dtype=np.intp) for lines, _ in groups]
    values = [own[np.ix_(lines, list(of_medoid))].T.ravel() for lines, of_medoid in groups]
    every = [pair for _, of_medoid in groups for pair in of_medoid.values()]
    near = [[(rate, weight) for rate, weight in pair.items() if rate] for pair in every]
    near_weights = [weight for of_pair in near for _, weight in of_pair]
    return {
        "member_offsets": _offsets([len(part) for part in members]),
        "members": _end_to_end(members, np.intp),
        "pair_offsets": _offsets([len(of_medoid) for _, of_medoid in groups]),
        "value_offsets": _offsets([len(part) for part in values]),
        "values": _end_to_end(values, np.float64),
        "has_distance": _codes([0.0 in pair for pair in every]),
        "distance_weights": _numbers([pair.get(0.0, np.zeros(n_outputs)) for pair in every]),
        "near_offsets": _offsets([len(of_pair) for of_pair in near]),
        "near_rates": _numbers([rate for of_pair in near for rate, _ in of_pair]),
        "near_weights": _numbers(near_weights).reshape(len(near_weights), n_outputs),
    }


def _end_to_end(parts: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=kind), *parts]).astype(kind)


def _offsets(lengths: Sequence[int] | NDArray[Any]) -> Codes:
    """Where each of several parts of these lengths starts, and where the last one ends."""
    return _codes(np.concatenate([[0], np.cumsum(lengths)]))


def _numbers(values: Sequence[Any] | Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _codes(values: Sequence[Any] | NDArray[Any]) -> Codes:
    return np.ascontiguousarray(values, dtype=np.intp)


def measure(table: Table, plan: EvidencePlan, *, channels: bool = True, threads: int | None = None) -> Measured:
    """Outputs and nearest medoids of every row, and distance and angle to them if `channels` are wanted.

    The table has rows (n, M), or is a sequence of M columns (n,), of raw numbers. float64 and float32 are read in
    place, other types are converted piece by piece; arithmetic is in double precision for all of them.
    """
    n, n_classes = len(table if isinstance(table, np.ndarray) else table[0]), len(plan.class_offsets) - 1
    distance, angle = np.empty((2, n if channels else 0, n_classes))
    found = Measured(np.empty((n, len(plan.intercepts))), np.empty((n, n_classes), dtype=np.intp), distance, angle)
    results: dict[str, NDArray[Any] | None] = {"outputs": found.scores, "nearest": found.nearest}
    results |= {"distance": distance, "angle": angle} if channels else {"distance": None, "angle": None}
    sizes, plans = (_CHUNK_ROWS, _ROWS_PER_THREAD), {"plan": plan}
    in_chunks("evidence.judge", numpy_judge, table, sizes, threads, plans, results, n_columns=plan.n_columns)
    return found


def numpy_judge(
    columns: Table, plan: EvidencePlan, outputs: Array, distance: Array | None, angle: Array | None, nearest: Codes
) -> None:
    """Fill the results, as the compiled kernel does."""
    lines, undecided = _lines(columns, plan)
    total = np.zeros((lines.shape[1], len(plan.intercepts)))
    for line, v in enumerate(lines):
        of_line = slice(plan.fold_offsets[line], plan.fold_offsets[line + 1])
        total += v[:, None] * (v[:, None] * plan.quadratic[line] + plan.linear[line])
        total += _weighted(np.abs(v[:, None] - plan.folds[of_line]), plan.fold_weights[of_line])
    total = plan.intercepts + total
    for group in range(len(plan.member_offsets) - 1):
        pairs = np.arange(plan.pair_offsets[group], plan.pair_offsets[group + 1])
        members = plan.members[plan.member_offsets[group] : plan.member_offsets[group + 1]]
        values = plan.values[plan.value_offsets[group] : plan.value_offsets[group + 1]].reshape(len(pairs), -1)
        squares = np.zeros((lines.shape[1], len(pairs)))
        for v, m in zip(lines[members], values.T, strict=True):
            squares += (v[:, None] - m) ** 2
        distances = np.sqrt(squares)
        measured = np.flatnonzero(plan.has_distance[pairs])
        added = _weighted(distances[:, measured], plan.distance_weights[pairs[measured]])
        near = slice(plan.near_offsets[pairs[0]], plan.near_offsets[pairs[-1] + 1])
        of_term = np.repeat(np.arange(len(pairs)), np.diff(plan.near_offsets[pairs[0] : pairs[-1] + 2]))
        nearness = np.exp2(plan.near_rates[near] * distances[:, of_term])
        total += added + _weighted(nearness, plan.near_weights[near])
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


def _lines(table: Table, plan: EvidencePlan) -> tuple[Array, Flags]:
    """Scaled columns times the roots of their weights, shape (L, n), and which rows hold a bad value."""
    raw = table.T if isinstance(table, np.ndarray) else table
    x = np.column_stack([np.asarray(raw[column], dtype=np.float64) for column in plan.columns.used])
    bad = ~(np.abs(x) <= plan.largest)
    x[bad] = 0.0
    u = np.repeat(np.arange(x.shape[1]), np.diff(plan.line_offsets))
    lines = _scaled_lines(plan.columns, x[:, u], u, plan.line_by_rank > 0) * plan.line_root
    return np.ascontiguousarray(lines.T), np.asarray(bad.any(axis=1))


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
