"""An evidence model as the kernel takes it: terms gathered by what they look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qmedoid.arrays import Array, Codes, Flags, column_slices
from qmedoid.kernels.knots import knot_places, knots_of
from qmedoid.schema import MODERATE, Values

Key = tuple[int, bool, float]

FOLDS = 4
"""Terms w·|v − m| of a line that the compiled kernel takes together."""

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


@dataclass(frozen=True, eq=False)
class Columns:
    """The U columns that are read, and their two scalings.

    Attributes
    ----------
    used : ndarray of shape (U,)
        Which ones of the table they are.
    center, scale : ndarray of shape (U,)
        How they are standardized.
    clip : float
        What a standardized value may be at most.
    knot_offsets : ndarray of shape (U + 1,)
    knots, marks, rises : ndarray
        Where the knots of column u, ``knot_offsets[u]`` and on, lie, what they are mapped to, and the slope from there.
    """

    used: Codes
    center: Array
    scale: Array
    clip: float
    knot_offsets: Codes
    knots: Array
    marks: Array
    rises: Array

    def scaled(self, x: Array, u: int, by_rank: bool) -> Array:
        """Values of the u-th column scaled by rank, or standardized; the compiled kernel rounds them likewise."""
        if not by_rank:
            standardized: Array = np.clip((x - self.center[u]) / self.scale[u], -self.clip, self.clip)
            return standardized
        first, last = self.knot_offsets[u], self.knot_offsets[u + 1]
        held = np.clip(x, self.knots[first], self.knots[last - 1])
        place = first - 1 + np.searchsorted(self.knots[first:last], held, side="right")
        scaled: Array = self.rises[place] * (held - self.knots[place])
        scaled += self.marks[place]
        return scaled

    def scaled_lines(self, x: Array, u: Codes, by_rank: Flags) -> Array:
        """The same, bit by bit, of several columns x (n, L), the l-th one scaled as the ``u[l]``-th column."""
        scaled: Array = np.clip((x - self.center[u]) / self.scale[u], -self.clip, self.clip)
        ranked, of_column = np.flatnonzero(by_rank), u[by_rank]
        knots, offsets = knots_of(of_column, self.knot_offsets)
        last = self.knots[self.knot_offsets[of_column + 1] - 1]
        held = np.clip(x[:, ranked], self.knots[self.knot_offsets[of_column]], last)
        place = knots[knot_places(held, offsets, self.knots[knots])]
        scaled[:, ranked] = self.rises[place] * (held - self.knots[place]) + self.marks[place]
        return scaled


@dataclass(frozen=True, eq=False)
class EvidencePlan:
    """What an evidence model needs to decide, as contiguous arrays.

    U used columns, L lines, G groups of lines, N pairs of a group and a medoid, K outputs, P medoids, C classes. A
    *line* is a scaled column times the root of its weight. Group 0 tells the nearest medoids, class by class.

    Attributes
    ----------
    n_columns : int
        Columns of the tables it can score.
    largest : float
        What a raw value may be at most.
    columns : Columns
        Those it reads, and how they are scaled.
    line_offsets : ndarray of shape (U + 1,)
    line_by_rank, line_root : ndarray of shape (L,)
        Lines of column u are ``line_offsets[u]`` and on: which scaling, and what it is multiplied by.
    intercepts : ndarray of shape (K,)
    quadratic, linear : ndarray of shape (L, K)
        Factors of v² and v of each line.
    fold_offsets, folds, fold_weights : ndarray of shape (L + 1,), (F,) and (F, K)
        Terms w·|v − m| of each line.
    member_offsets, members : ndarray of shape (G + 1,) and (S,)
        Lines of each group.
    pair_offsets, value_offsets, values : ndarray of shape (G + 1,), (G + 1,) and (V,)
        Pairs of each group, and the values of their medoids on its lines, pair by pair.
    has_distance, distance_weights : ndarray of shape (N,) and (N, K)
    near_offsets, near_rates, near_weights : ndarray of shape (N + 1,), (R,) and (R, K)
        Terms w·2^(rate·D) of each pair.
    medoid_indices, class_offsets : ndarray of shape (P,) and (C + 1,)
        Medoids of group 0 by the index each is reported by, and where each class starts among them.
    """

    n_columns: int
    largest: float
    columns: Columns
    line_offsets: Codes
    line_by_rank: Codes
    line_root: Array
    intercepts: Array
    quadratic: Array
    linear: Array
    fold_offsets: Codes
    folds: Array
    fold_weights: Array
    member_offsets: Codes
    members: Codes
    pair_offsets: Codes
    value_offsets: Codes
    values: Array
    has_distance: Codes
    distance_weights: Array
    near_offsets: Codes
    near_rates: Array
    near_weights: Array
    medoid_indices: Codes
    class_offsets: Codes


Pairs = dict[tuple[int, ...], dict[int, dict[float, Array]]]
"""Weights of the terms of each group of lines and medoid, by the rate of their nearness; 0 stands for the distance."""


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
    all_columns = np.flatnonzero(column_weights > 0)
    lines_of = [_keys(group) for group in (Group(tuple(all_columns), column_weights[all_columns], True), *groups)]
    keys: list[Key] = sorted({key for of_group in lines_of for key in of_group})
    number = {key: place for place, key in enumerate(keys)}
    used = np.unique(np.array([column for column, _, _ in keys], dtype=np.intp))
    kept, knot_offsets = knots_of(used, rank_offsets)
    knots, marks = rank_values[kept], rank_scores[kept]
    columns = Columns(
        used=_codes(used),
        center=_numbers(center[used]),
        scale=_numbers(scale[used]),
        clip=float(clip),
        knot_offsets=knot_offsets,
        knots=_numbers(knots),
        marks=_numbers(marks),
        rises=_rises(knots, marks, knot_offsets),
    )
    of_line = np.array([column for column, _, _ in keys], dtype=np.intp)
    line_by_rank, line_root = _codes([by_rank for _, by_rank, _ in keys]), _numbers([root for _, _, root in keys])
    of_used = np.searchsorted(used, of_line)
    own = np.empty((len(keys), len(medoids)))
    for block in column_slices(len(medoids), len(keys)):
        by_rank = line_by_rank[block] > 0
        scaled = columns.scaled_lines(medoids[:, of_line[block]], of_used[block], by_rank)
        own[block] = (scaled * line_root[block]).T
    lines = [tuple(number[key] for key in of_group) for of_group in lines_of]
    quadratic, linear, constant, folds, pairs = _gather(
        lines[1:], own, term_group, term_medoid, term_channel, term_length, weights
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
        **_pair_arrays(pairs, lines[0], own, by_class, weights.shape[1]),
        medoid_indices=_codes(by_class),
        class_offsets=_offsets(np.bincount(medoid_classes, minlength=n_classes)),
    )


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
    """Pairs group by group, all medoids with the lines that tell the nearest first."""
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


def _rises(knots: Array, marks: Array, offsets: Codes) -> Array:
    """Slope from each knot to the next of its column; 0 from the last one, and where no number lies between two."""
    rises = np.zeros(len(knots))
    with np.errstate(all="ignore"):
        rises[:-1] = np.diff(marks) / np.diff(knots)
    rises[offsets[1:] - 1] = 0.0
    return np.where(np.isfinite(rises), rises, 0.0)


def _end_to_end(parts: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype=kind), *parts]).astype(kind)


def _offsets(lengths: Sequence[int] | NDArray[Any]) -> Codes:
    """Where each of several parts of these lengths starts, and where the last one ends."""
    return _codes(np.concatenate([[0], np.cumsum(lengths)]))


def _numbers(values: Sequence[Any] | Array) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)


def _codes(values: Sequence[Any] | NDArray[Any]) -> Codes:
    return np.ascontiguousarray(values, dtype=np.intp)
