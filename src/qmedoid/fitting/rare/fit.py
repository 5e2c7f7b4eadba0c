"""The fit of a rare-event model: scale, prototypes, hard counterparts, deltas, cross-fitted logistic sum."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import DataError
from qmedoid.fitting.rare.logistic import Logistic, fit_logistic
from qmedoid.fitting.rare.prototypes import Prototypes, draw_prototypes, hardest, make_metric
from qmedoid.fitting.rare.settings import RareSettings
from qmedoid.fitting.row_groups import draws_per_row, equal_rows, first_rows, group_folds, numbered
from qmedoid.geometry.scaling import fit_standard
from qmedoid.geometry.signed_log import SignedLog, fit_signed_log
from qmedoid.kernels._threads import thread_count
from qmedoid.models.rare import CLIP, RareEventModel
from qmedoid.models.rare_geometry import Own, RareGeometry

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

_BLOCK_ROWS = 8192
# Common rows of the first, coarse fit that finds hard ones; each stands for several.
_COARSE_ROWS = 20_000


@dataclass(frozen=True)
class FittedRare:
    """A model with what it says of its training rows.

    Attributes
    ----------
    model : RareEventModel
    held_out : ndarray of shape (n, 2)
        Dissimilarities of every training row by weights that were not fitted on it, compared with others alone.
    circuit_features : ndarray of shape (n, m)
        What a circuit is fed for every training row, compared with others alone.
    fold : ndarray of shape (n,)
        The fold that held each row out.
    """

    model: RareEventModel
    held_out: Array
    circuit_features: Array
    fold: Codes


def fit_rare(
    X: Array,
    codes: Codes,
    settings: RareSettings,
    seed: int,
    progress: Callable[[float], None] | None = None,
    groups: Codes | None = None,
) -> FittedRare:
    """Fit a rare-event model; the class with fewer rows is the rare one, of equal ones the second.

    Parameters
    ----------
    X : ndarray of shape (n, M)
        Encoded rows.
    codes : ndarray of shape (n,)
        Classes 0 and 1, at least two rows of each.
    settings : RareSettings
    seed : int
        Of the prototypes and folds.
    progress : callable or None
        Told the share of the work that is done.
    groups : ndarray of shape (n,), optional
        Group of every row: rows of one group are left out together. None where every row is a group.
    """
    tell = progress or (lambda _: None)
    rng = np.random.default_rng(seed)
    rare_class = _rare_class(codes)
    is_rare = codes == rare_class
    scaling = fit_signed_log(X, compress=settings.signed_log)
    scaled = np.ascontiguousarray(scaling.apply(X))
    metrics = np.array([make_metric(name, scaled, is_rare, rng) for name in settings.metrics])
    # A row that belongs to others stands for none of them: one prototype of a group and class at most.
    heads = None if groups is None else first_rows(numbered(2 * groups + is_rare))
    _check_heads(is_rare, heads)
    prototypes = draw_prototypes(is_rare, settings, rng, heads)
    tell(0.1)

    geometry = _geometry(scaling, scaled, prototypes, metrics, settings)
    strengths, share = _strengths(geometry, settings), draws_per_row(groups)
    own_twins = groups if groups is None else equal_rows(scaled)
    by_column = _in_blocks(scaled, _own(prototypes, len(X), settings, own_twins), geometry.by_column)
    tell(0.3)
    if settings.n_hard:
        coarse = _coarse_logits(by_column, is_rare, strengths[geometry.n_features[0] :], rng, share)
        prototypes = prototypes.with_hard(hardest(coarse, is_rare, prototypes, settings.n_hard, heads))
        # Hard rows change no feature of a column alone: they stand for nobody but themselves.
        geometry = _geometry(scaling, scaled, prototypes, metrics, settings)
    tell(0.4)
    deltas = _in_blocks(
        scaled, _own(prototypes, len(X), settings, groups), lambda *rows: geometry.deltas(*rows).features
    )
    features = np.hstack([deltas, by_column])
    tell(0.7)

    standard = fit_standard(features)
    standardised = np.clip(standard.apply(features), -CLIP, CLIP)
    fusion = fit_logistic(standardised, is_rare, share * strengths)
    tell(0.8)
    fold = _folds(is_rare, settings.n_folds, rng, groups)
    held_out = np.empty(len(X))
    for number in range(fold.max() + 1):
        rest = fold != number
        apart = fit_logistic(standardised[rest], is_rare[rest], share * strengths, start=fusion)
        held_out[~rest] = apart.logits(standardised[~rest])
        tell(0.8 + 0.2 * (number + 1) / (fold.max() + 1))
    chosen = _circuit_features(geometry, standardised, fusion, is_rare, settings)
    model = RareEventModel(
        geometry=geometry,
        medoid_rows=np.concatenate([prototypes.rare, prototypes.common]),
        center=standard.center,
        scale=standard.scale,
        weights=fusion.weights,
        intercept=fusion.intercept,
        circuit_features=chosen,
        rare_class=rare_class,
    )
    return FittedRare(model, model.class_scores(held_out), features[:, chosen], fold)


def _rare_class(codes: Codes) -> int:
    counts = np.bincount(codes, minlength=2)
    if len(counts) != 2 or counts.min() < 2:
        raise DataError(
            f"A rare-event model tells two classes apart, with at least two rows of each. Got classes of "
            f"{counts.tolist()} rows: use another fusion for such a table."
        )
    return 0 if counts[0] < counts[1] else 1


def _check_heads(is_rare: Mask, heads: Codes | None) -> None:
    n_rare = 2 if heads is None else int(is_rare[heads].sum())
    if heads is not None and min(n_rare, len(heads) - n_rare) < 2:
        raise DataError(
            "All rows of a class belong together: a rare-event model needs rows of two groups of each class. Use "
            "another fusion for such a table."
        )


def _geometry(
    scaling: SignedLog, scaled: Array, prototypes: Prototypes, metrics: Array, settings: RareSettings
) -> RareGeometry:
    return RareGeometry(
        scaling=scaling,
        rare=scaled[prototypes.rare],
        common=scaled[prototypes.common],
        hard=prototypes.hard,
        metrics=metrics,
        metric_names=settings.metrics,
        counts=settings.counts,
        length=settings.length,
        floor=settings.floor,
    )


def _own(prototypes: Prototypes, n_rows: int, settings: RareSettings, groups: Codes | None) -> Own | None:
    return prototypes.own(n_rows, groups) if settings.leave_one_out else None


def _in_blocks(scaled: Array, own: Own | None, measure: Callable[[Array, Own | None], Array]) -> Array:
    """Features of all rows, a block at a time, on all cores."""

    def part(start: int) -> Array:
        rows = slice(start, start + _BLOCK_ROWS)
        return measure(scaled[rows], None if own is None else own.part(rows))

    with ThreadPoolExecutor(thread_count(None)) as pool:
        return np.concatenate(list(pool.map(part, range(0, len(scaled), _BLOCK_ROWS))))


def _strengths(geometry: RareGeometry, settings: RareSettings) -> Array:
    kinds = (
        settings.deltas_strength,
        settings.nearness_strength,
        settings.position_strength,
        settings.middle_strength,
    )
    return np.repeat(np.array(kinds), geometry.n_features)


def _coarse_logits(by_column: Array, is_rare: Mask, strengths: Array, rng: np.random.Generator, share: float) -> Array:
    """Logits of all rows from the columns alone, fitted on the rare rows and some of the others."""
    common = np.flatnonzero(~is_rare)
    taken = common if len(common) <= _COARSE_ROWS else np.sort(rng.choice(common, _COARSE_ROWS, replace=False))
    rows = np.concatenate([np.flatnonzero(is_rare), taken])
    u = np.where(is_rare[rows], 1.0, len(common) / len(taken))
    standard = fit_standard(by_column[rows], weights=u)
    sample = np.clip(standard.apply(by_column[rows]), -CLIP, CLIP)
    fusion = fit_logistic(sample, is_rare[rows], share * strengths, row_weights=u)
    return fusion.logits(np.clip(standard.apply(by_column), -CLIP, CLIP))


def _folds(is_rare: Mask, n_folds: int, rng: np.random.Generator, groups: Codes | None) -> Codes:
    """Fold of every row, with equal shares of both classes in each, and groups kept together."""
    if groups is not None:
        n_draws = min(len(np.unique(groups[own])) for own in (is_rare, ~is_rare))
        return group_folds(groups, is_rare.astype(np.intp), max(2, min(n_folds, n_draws)), rng)
    count = min(n_folds, int(is_rare.sum()), int((~is_rare).sum()))
    fold = np.empty(len(is_rare), dtype=np.intp)
    for rows in (np.flatnonzero(is_rare), np.flatnonzero(~is_rare)):
        fold[rng.permutation(rows)] = np.arange(len(rows)) % count
    return fold


def _circuit_features(
    geometry: RareGeometry, standardised: Array, fusion: Logistic, is_rare: Mask, settings: RareSettings
) -> Codes:
    """Features that a circuit is fed: the deltas, then those whose weighted means lie farthest apart by class."""
    n_deltas = geometry.n_features[0]
    gap = standardised[is_rare].mean(axis=0) - standardised[~is_rare].mean(axis=0)
    farthest = np.argsort(-np.abs(gap * fusion.weights)[n_deltas:], kind="stable") + n_deltas
    return np.concatenate([np.arange(n_deltas), farthest])[: settings.n_circuit_features]
