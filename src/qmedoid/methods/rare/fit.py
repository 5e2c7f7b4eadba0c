"""Fit of the rare-event method: scaling, prototypes, hard prototypes, features, and a cross-fitted logistic regression.

Out-of-fold logits are brought to the scale of the final model. A model of some folds knows fewer rare rows, so its
logits are on another scale, and a cut that calls one in a hundred of them positive calls more or fewer of the final
model's. Common rows that are no prototypes of the final model have both logits. A monotone function, the same for both
classes, maps the quantiles of the one to those of the other: no order changes, and of the labels only that these rows
are common is used.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.stats import rankdata

from qmedoid.arrays import Array, Codes, Flags, row_slices
from qmedoid.exceptions import DataError, warn
from qmedoid.geometry.row_groups import draw_rows, draws_per_row, equal_rows, first_rows, group_folds, numbered, part_of
from qmedoid.geometry.scaling import Scaling, SignedLog, fit_standard, signed_log
from qmedoid.kernels.backend import thread_count
from qmedoid.kernels.ties import order_by_content, stable_order
from qmedoid.methods.rare.geometry import RareGeometry
from qmedoid.methods.rare.part import CLIP, RarePart
from qmedoid.optimize.newton import logistic_weights

# Common rows that the contrast of columns is measured on: the number of rare rows limits it long before.
_CONTRAST_ROWS = 20_000
# Quantiles that are matched. Beyond the first and the last, logits are moved as there.
_LEVELS = np.linspace(0.005, 0.995, 199)
# Rows that show quantiles so far out, at least.
_FEWEST_ROWS = 2000


MetricName = Literal["plain", "contrast"]
METRICS: tuple[MetricName, ...] = ("plain", "contrast")
"""Metrics by name: all columns alike, or by how well each separates the classes."""


@dataclass(frozen=True)
class RareSettings:
    """Prototypes, evidence and fusion."""

    n_rare: int = 2000  # most rare prototypes; all rare rows where there are no more
    n_common: int = 3000  # common prototypes drawn at random
    n_hard: int = 1000  # common prototypes chosen for their likeness to rare rows; 0 for none
    metrics: tuple[MetricName, ...] = ("plain", "contrast")  # what the deltas are measured in, the main one first
    counts: tuple[int, ...] = (1, 3, 8)  # numbers of nearest prototypes that a delta averages over, at most 16
    length: float = 0.2  # of the nearness on a column, in deviations and as a share
    floor: float = 0.005
    # Variance that the weights of each kind of feature have beforehand (C of an L2 logistic regression).
    deltas_strength: float = 0.01
    nearness_strength: float = 0.03
    position_strength: float = 0.1
    middle_strength: float = 0.03
    n_folds: int = 3  # folds of the cross-fitted scores
    n_circuit_features: int = 8  # features that are handed to a circuit


def on_final_scale(out_of_fold: Array, final: Array, shared: Flags) -> Array:
    """Out-of-fold logits (n,) as the final model would give them, by its logits of the training rows.

    `shared` are common rows that are no prototypes of the final model. Too few of them leave the logits as they are.
    """
    if np.count_nonzero(shared) < _FEWEST_ROWS:
        return out_of_fold
    places, targets = np.quantile(out_of_fold[shared], _LEVELS), np.quantile(final[shared], _LEVELS)
    places, first = np.unique(places, return_index=True)
    targets = targets[first]
    inside = np.interp(out_of_fold, places, targets)
    below = out_of_fold - places[0] + targets[0]
    above = out_of_fold - places[-1] + targets[-1]
    moved: Array = np.where(out_of_fold < places[0], below, np.where(out_of_fold > places[-1], above, inside))
    return moved


_BLOCK_ROWS = 8192
# Common rows of the first, coarse fit that finds hard ones, each with the weight of several.
_COARSE_ROWS = 20_000


@dataclass(frozen=True)
class FittedRare:
    """A rare-event model with its out-of-fold scores."""

    model: RarePart
    # Out-of-fold dissimilarities of every training row: scaling, prototypes and weights are those of the other
    # folds. A row that is compared with all but itself would find one prototype of its class less than a new row
    # does, (n, 2).
    out_of_fold: Array
    circuit_features: Array  # features for a circuit of every training row, by the same models, (n, m)
    fold: Codes  # test fold of every row, (n,)


def fit_rare(
    X: Array,
    codes: Codes,
    settings: RareSettings,
    seed: int,
    progress: Callable[[float], None] | None = None,
    groups: Codes | None = None,
    row_weights: Array | None = None,
) -> FittedRare:
    """Fit a rare-event model; the class with fewer rows is the rare one, of equal ones the second.

    It is the same model whatever the order of the columns. There are at least two rows of both classes, 0 and 1. Rows
    of one group are in one fold; without `groups` every row is a group. Rows count by `row_weights` in the regressions;
    scaling and prototypes take rows as they are.
    """
    report = progress or (lambda _: None)
    rng = np.random.default_rng(seed)
    order = order_by_content(X)
    X = np.ascontiguousarray(X[:, order])
    counts = np.bincount(codes, minlength=2)
    if len(counts) != 2 or counts.min() < 2:
        raise DataError(
            f"A rare-event model needs two classes with at least two rows of each. Got classes of "
            f"{counts.tolist()} rows: use another method for such a table."
        )
    rare_class = 0 if counts[0] < counts[1] else 1
    is_rare = codes == rare_class
    if groups is not None and min(len(np.unique(groups[rows])) for rows in (is_rare, ~is_rare)) < 2:
        raise DataError(
            "All rows of a class belong together or are equal: a rare-event model needs rows of at least two groups of "
            "each class. Use another method for such a table."
        )
    model, features = _fit_model(X, is_rare, rare_class, settings, rng, groups, row_weights)
    fold = _folds(is_rare, settings.n_folds, rng, groups)
    if fold is None:
        warn(
            "The rare class has rows of two groups only, and none of them can be held out: what is expected of new "
            "rows comes from rows that the weights have seen."
        )
        seen = model.logit(features)
        circuit_features = features[:, model.circuit_features]
        fold = np.zeros(len(X), dtype=np.intp)
        return FittedRare(_in_order(model, order), model.class_scores(seen), circuit_features, fold)
    n_fits = fold.max() + 2
    report(1 / n_fits)
    logits, circuit_features = np.empty(len(X)), features[:, model.circuit_features]
    for number in range(fold.max() + 1):
        rest, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        u = None if row_weights is None else row_weights[rest] / row_weights[rest].mean()
        draws = rng, part_of(groups, rest), u, model.circuit_features
        part, _ = _fit_model(X[rest], is_rare[rest], rare_class, settings, *draws)
        measured = part.score(X[test], channels=True)
        logits[test] = measured.scores[:, 1 - rare_class] - measured.scores[:, rare_class]
        if measured.features is not None:
            circuit_features[test] = measured.features
        report((number + 2) / n_fits)
    shared = ~is_rare
    shared[model.medoid_rows] = False
    logits = on_final_scale(logits, model.logit(features), shared)
    return FittedRare(_in_order(model, order), model.class_scores(logits), circuit_features, fold)


def _fit_model(
    X: Array,
    is_rare: Flags,
    rare_class: int,
    settings: RareSettings,
    rng: np.random.Generator,
    groups: Codes | None,
    row_weights: Array | None = None,
    chosen: Codes | None = None,
) -> tuple[RarePart, Array]:
    """The model of some rows, and their features, none compared with itself.

    `chosen` features are for a circuit, where they are chosen already.
    """
    outer = fit_standard(X)
    scaling = SignedLog(outer, fit_standard(signed_log(outer.apply(X))))
    scaled = np.ascontiguousarray(scaling.apply(X))
    metrics = np.array([make_metric(name, scaled, is_rare, rng) for name in settings.metrics])
    # At most one prototype of a group and class.
    heads = None if groups is None else first_rows(numbered(2 * groups + is_rare))
    rows = np.arange(len(is_rare)) if heads is None else np.sort(heads)
    rare = draw_rows(rows[is_rare[rows]], settings.n_rare, rng)
    common = draw_rows(rows[~is_rare[rows]], settings.n_common, rng)
    n_typical = len(common)
    geometry = _geometry(scaling, scaled[rare], scaled[common], n_typical, metrics, settings)
    kinds = settings.deltas_strength, settings.nearness_strength, settings.position_strength, settings.middle_strength
    strengths, share = np.repeat(np.array(kinds), geometry.n_features), draws_per_row(groups)
    equal_groups = None if groups is None else equal_rows(scaled)
    own = own_places(rare, common, len(X), equal_groups)
    by_column = _in_blocks(scaled, own, geometry.by_column)
    if settings.n_hard:
        of_columns = strengths[geometry.n_features[0] :]
        coarse = _coarse_logits(by_column, is_rare, of_columns, rng, share, row_weights)
        common = np.concatenate([common, hardest(coarse, is_rare, common, settings.n_hard, heads)])
        # Features of single columns do not change: hard rows do not enter them.
        geometry = _geometry(scaling, scaled[rare], scaled[common], n_typical, metrics, settings)
    own = own_places(rare, common, len(X), groups)
    deltas = _in_blocks(scaled, own, lambda *rows: geometry.deltas(*rows)[0])
    features = np.hstack([deltas, by_column])
    del deltas, by_column  # of long tables these are most of the memory
    standard = fit_standard(features)
    standardized = standard.apply(features)
    np.clip(standardized, -CLIP, CLIP, out=standardized)
    intercept, weights = fit_logistic(standardized, is_rare, share * strengths, row_weights=row_weights)
    if chosen is None:
        chosen = _circuit_features(geometry, standardized, weights, is_rare, settings)
    model = RarePart(
        geometry=geometry,
        medoid_rows=np.concatenate([rare, common]),
        center=standard.center,
        scale=standard.scale,
        weights=weights,
        intercept=intercept,
        circuit_features=chosen,
        rare_class=rare_class,
    )
    return model, features


def own_places(rare: Codes, common: Codes, n_rows: int, groups: Codes | None = None) -> Codes:
    """Places of all training rows, or of a row of their group, among rare and common prototypes, shape (2, n)."""
    group = np.arange(n_rows) if groups is None else groups
    places = np.full((2, n_rows), -1, dtype=np.intp)
    for own, rows in zip(places, (rare, common), strict=True):
        own[group[rows]] = np.arange(len(rows))
    return places[:, group]


def hardest(logits: Array, is_rare: Flags, common: Codes, count: int, heads: Codes | None = None) -> Codes:
    """Common rows with the highest logits that are not `common` yet, in the order of the table; of `heads` alone."""
    candidates = ~is_rare
    if heads is not None:
        candidates &= np.isin(np.arange(len(is_rare)), heads)
    candidates[common] = False
    rows = np.flatnonzero(candidates)
    highest = rows[stable_order(-logits[rows])[:count]]
    return np.sort(highest)


def make_metric(name: MetricName, scaled: Array, is_rare: Flags, rng: np.random.Generator) -> Array:
    """Weights of the columns, shape (M,), at least one above 0: 1, or the contrasts from middle ranks of their values.

    Rows belong to one of two classes, rare or not, which both need at least one. A constant column has no contrast.
    """
    if name == "plain":
        return np.ones(scaled.shape[1])
    rows = np.concatenate([np.flatnonzero(is_rare), draw_rows(np.flatnonzero(~is_rare), _CONTRAST_ROWS, rng)])
    values, is_rare = scaled[rows], is_rare[rows]
    n_rare = int(is_rare.sum())
    ranks = np.column_stack([rankdata(column) for column in values.T])
    wins = ranks[is_rare].sum(axis=0) - n_rare * (n_rare + 1) / 2
    contrast: Array = np.abs(2.0 * wins / (n_rare * (len(values) - n_rare)) - 1.0)
    return contrast if contrast.any() else np.ones(scaled.shape[1])


def _geometry(
    scaling: SignedLog, rare: Array, common: Array, n_typical: int, metrics: Array, settings: RareSettings
) -> RareGeometry:
    """The geometry of prototypes; common ones behind the typical ones are hard."""
    rows = rare, common, np.arange(len(common)) >= n_typical
    return RareGeometry(scaling, *rows, metrics, settings.metrics, settings.counts, settings.length, settings.floor)


def _in_blocks(scaled: Array, own: Codes, measure: Callable[[Array, Codes], Array]) -> Array:
    """Features of all rows, a block at a time, on all cores."""

    def part(rows: slice) -> Array:
        return measure(scaled[rows], own[:, rows])

    places = list(row_slices(scaled, _BLOCK_ROWS))
    first = part(places[0])
    found = np.empty((len(scaled), first.shape[1]))
    found[places[0]] = first

    def put(rows: slice) -> None:
        found[rows] = part(rows)

    with ThreadPoolExecutor(thread_count(None)) as pool:
        list(pool.map(put, places[1:]))
    return found


def _coarse_logits(
    by_column: Array,
    is_rare: Flags,
    strengths: Array,
    rng: np.random.Generator,
    share: float,
    row_weights: Array | None,
) -> Array:
    """Logits of all rows from the columns alone, fitted on the rare rows and some of the others."""
    common = np.flatnonzero(~is_rare)
    taken = draw_rows(common, _COARSE_ROWS, rng)
    rows = np.concatenate([np.flatnonzero(is_rare), taken])
    u = np.where(is_rare[rows], 1.0, len(common) / len(taken))
    u = u if row_weights is None else u * row_weights[rows]
    standard = fit_standard(by_column[rows], weights=u)
    sample = np.clip(standard.apply(by_column[rows]), -CLIP, CLIP)
    intercept, weights = fit_logistic(sample, is_rare[rows], share * strengths, row_weights=u)
    scaled = standard.apply(by_column)
    logits: Array = intercept + np.clip(scaled, -CLIP, CLIP, out=scaled) @ weights
    return logits


def fit_logistic(Z: Array, target: Flags, strengths: Array, *, row_weights: Array | None = None) -> tuple[float, Array]:
    """Intercept and weights (F,) of standardized features (n, F); both values of the target must occur.

    `strengths` (F,) are C, the inverse of the ridge penalty of every weight; where it is 0, the weight is. The
    intercept has none.
    """
    y, kept = target.astype(np.float64), strengths > 0
    penalties = np.concatenate([[0.0], 1.0 / strengths[kept]])
    share = float(np.average(y, weights=row_weights))
    start = np.append(np.log(share / (1.0 - share)), np.zeros(len(penalties) - 1))
    found = logistic_weights(Z if kept.all() else Z[:, kept], y, penalties, start, row_weights)
    weights = np.zeros(len(strengths))
    weights[kept] = found[1:]
    return float(found[0]), weights


def _folds(is_rare: Flags, n_folds: int, rng: np.random.Generator, groups: Codes | None) -> Codes | None:
    """Fold of every row, with equal shares of both classes in each; groups are kept together.

    Rows of two groups of each class are left for the other folds; None where that cannot be.
    """
    together = np.arange(len(is_rare)) if groups is None else groups
    n_draws = min(len(np.unique(together[rows])) for rows in (is_rare, ~is_rare))
    fold = group_folds(together, is_rare.astype(np.intp), max(2, min(n_folds, n_draws)), rng)
    for number in range(fold.max() + 1):
        rest = fold != number
        if min(len(np.unique(together[rest & rows])) for rows in (is_rare, ~is_rare)) < 2:
            return None
    return fold


def _circuit_features(
    geometry: RareGeometry, standardized: Array, weights: Array, is_rare: Flags, settings: RareSettings
) -> Codes:
    """Features that a circuit is fed: the deltas, then those with the widest weighted gap of class means."""
    n_deltas = geometry.n_features[0]
    gap = standardized[is_rare].mean(axis=0) - standardized[~is_rare].mean(axis=0)
    farthest = stable_order(-np.abs(gap * weights)[n_deltas:]) + n_deltas
    return np.concatenate([np.arange(n_deltas), farthest])[: settings.n_circuit_features]


def _in_order(model: RarePart, order: Codes) -> RarePart:
    """The model for X, from one that was fitted to ``X[:, order]``."""
    back, geometry = np.argsort(order), model.geometry
    n_deltas = geometry.n_features[0]
    # Deltas come first, then the features of single columns, kind by kind.
    starts = n_deltas + len(order) * np.arange(4)[:, None]
    features, to = (np.append(np.arange(n_deltas), (starts + places).ravel()) for places in (back, order))
    outer, inner = (
        Scaling(one.center[back], one.scale[back]) for one in (geometry.scaling.outer, geometry.scaling.inner)
    )
    rare, common, metrics = (
        np.ascontiguousarray(rows[:, back]) for rows in (geometry.rare, geometry.common, geometry.metrics)
    )
    return replace(
        model,
        geometry=replace(geometry, scaling=SignedLog(outer, inner), rare=rare, common=common, metrics=metrics),
        center=model.center[features],
        scale=model.scale[features],
        weights=model.weights[features],
        circuit_features=to[model.circuit_features].astype(np.intp),
    )
