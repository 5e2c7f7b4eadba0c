"""The fit of an evidence model: medoids, groups, weights, and the mean of the bags as one model."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.fitting.evidence.bag import Bag, class_targets, fit_bag
from qmedoid.fitting.evidence.blocks import Blocks
from qmedoid.fitting.evidence.design import Scaled, evidence_design
from qmedoid.fitting.evidence.left_out import Together
from qmedoid.fitting.evidence.neighbours import choose_neighbours
from qmedoid.fitting.evidence.ridge import fit_ridge
from qmedoid.fitting.evidence.rows import counted_rows, medoids_of_classes, stratified_sample
from qmedoid.fitting.evidence.settings import EvidenceSettings, FittedEvidence, RidgePath
from qmedoid.fitting.rank_scaling import fit_rank_scaling
from qmedoid.fitting.row_groups import first_rows, part_of
from qmedoid.geometry.rank_scaling import RankScaling
from qmedoid.geometry.scaling import Scaling, fit_standard
from qmedoid.models.evidence import CLIP, EvidenceModel, Group, Terms
from qmedoid.models.neighbours import Neighbours

# Medoids of a class in a bag at least; with fewer, there are fewer bags.
_FEWEST_PER_CLASS = 4


def fit_evidence(
    X: Array,
    codes: Codes,
    n_classes: int,
    settings: EvidenceSettings,
    seed: int,
    progress: Callable[[float], None] | None = None,
    groups: Codes | None = None,
) -> FittedEvidence:
    """Fit an evidence model.

    Parameters
    ----------
    X : ndarray of shape (n, M)
        Encoded columns, finite.
    codes : ndarray of shape (n,)
        Class codes, 0 up to and without `n_classes`.
    settings : EvidenceSettings
    seed : int
        The same seed gives the same model.
    progress : callable, optional
        Told the share of the work that is done.
    groups : ndarray of shape (n,), optional
        Group of every row: rows of one group are left out together. None where every row is a group.
    """
    told = progress or (lambda _: None)
    rng = np.random.default_rng(seed)
    kept = stratified_sample(codes, n_classes, settings.max_rows, rng, groups)
    table, own, own_groups = X[kept], codes[kept], part_of(groups, kept)
    together = None if own_groups is None else Together.of(own_groups, table)
    counts = None if own_groups is None else counted_rows(table, own)
    rank_scaling, linear_scaling = fit_rank_scaling(table), fit_standard(table)
    rows = Scaled(rank_scaling.apply(table), np.clip(linear_scaling.apply(table), -CLIP, CLIP))
    n_bags = int(np.clip(settings.n_medoids // (_FEWEST_PER_CLASS * n_classes), 1, settings.n_bags))
    space = rows.ranks if settings.scaling == "rank" else rows.plain
    chosen: list[Codes] = []
    for _ in range(n_bags):
        taken = np.concatenate([*chosen, np.empty(0, dtype=np.intp)])
        chosen.append(medoids_of_classes(space, own, n_classes, settings.n_medoids // n_bags, rng, taken, counts))
    every, of_bag = np.unique(np.concatenate(chosen), return_inverse=True)
    places = np.split(of_bag.astype(np.intp), np.cumsum([len(part) for part in chosen])[:-1])
    n_values = np.diff(rank_scaling.offsets)
    varying = tuple(np.flatnonzero(n_values > 1).tolist())
    many_valued = tuple(np.flatnonzero(n_values > 2).tolist())
    blocks = Blocks(settings, rows, rows.take(every), varying, many_valued, n_bags, own_groups)
    told(0.1)
    bags = _fit_bags(blocks, class_targets(own, n_classes), places, together, rng, told)
    model = _joined(bags, rank_scaling, linear_scaling, table[every], own[every], kept[every], varying, n_classes)
    outputs = np.mean([bag.left_out for bag in bags], axis=0)
    if settings.n_neighbours:
        # One row of a group is enough, and so a row has one neighbour at most that is not to be compared with.
        heads = np.arange(len(own)) if own_groups is None else first_rows(own_groups)
        known = heads[stratified_sample(own[heads], n_classes, settings.n_neighbours, rng)]
        compared = Scaled(*(values[:, list(varying)] for values in rows))
        asked = choose_neighbours(model.class_scores(outputs), outputs.shape[1], own, compared, known, together)
        if asked is not None:
            outputs = outputs + asked.left_out
            records = table[known], own[known], kept[known]
            neighbours = Neighbours(*records, asked.amounts, asked.n_nearest, asked.length, asked.by_rank)
            model = replace(model, neighbours=neighbours)
    held_out = model.class_scores(outputs)
    if len(kept) < len(X):
        # Rows outside of the sample were not seen by any weight.
        held_out, left_out = model.scores(X), held_out
        held_out[kept] = left_out
    told(1.0)
    first = bags[0].path.penalties
    path = RidgePath(first, *(np.mean([bag.path[part] for bag in bags], axis=0) for part in (1, 2)))
    return FittedEvidence(
        model, held_out, float(np.exp(np.mean([np.log(bag.penalty) for bag in bags]))),
        float(np.mean([bag.error for bag in bags])), path,
    )  # fmt: skip


def _fit_bags(
    blocks: Blocks,
    targets: Array,
    places: Sequence[Codes],
    together: Together | None,
    rng: np.random.Generator,
    told: Callable[[float], None],
) -> list[Bag]:
    settings = blocks.settings
    residuals = targets - targets.mean(axis=0)
    # What single columns leave unsaid: groups are chosen to say that.
    plain = blocks.columns_alone(places[0]) if settings.targeted and "group" in settings.blocks else []
    if plain:
        alone = evidence_design(plain, blocks.rows, blocks.medoids)
        residuals = targets - fit_ridge(alone.features, targets, settings.selection, together=together).left_out
    told(0.25)
    bags = []
    for number, own in enumerate(places):
        parts = blocks.columns_alone(own)
        groups, judged = blocks.groups(residuals, rng)
        parts += blocks.columns_together(own, parts, groups)
        design = evidence_design(parts, blocks.rows, blocks.medoids)
        bags.append(fit_bag(design, targets, settings.logistic, settings.selection, judged, together))
        told(0.25 + 0.7 * (number + 1) / len(places))
    return bags


def _joined(
    bags: list[Bag],
    rank_scaling: RankScaling,
    linear_scaling: Scaling,
    medoids: Array,
    medoid_classes: Codes,
    medoid_rows: Codes,
    varying: tuple[int, ...],
    n_classes: int,
) -> EvidenceModel:
    """The mean of the bags; terms that several bags have in common are one, with the sum of their weights."""
    groups: dict[tuple[tuple[int, ...], bool], int] = {}
    terms: dict[tuple[int, int, int, float], tuple[float, Array]] = {}
    of_groups: list[Group] = []
    for bag in bags:
        for part, centers, weights in zip(bag.design.parts, bag.design.centers, bag.weights, strict=True):
            key = part.group.columns, part.group.by_rank
            if key not in groups:
                groups[key] = len(of_groups)
                of_groups.append(part.group)
            for place, center, weight in zip(part.medoids, centers, weights / len(bags), strict=True):
                term = groups[key], int(place), part.channel, part.length
                before = terms[term][1] if term in terms else 0.0
                terms[term] = float(center), before + weight
    keys = np.array(list(terms))
    group, medoid, channel = keys[:, :3].astype(np.intp).T
    center, weight = (np.array(values) for values in zip(*terms.values(), strict=True))
    column_weights = np.ones(medoids.shape[1])
    if varying:
        column_weights[np.setdiff1d(np.arange(medoids.shape[1]), varying)] = 0.0
    return EvidenceModel(
        rank_scaling, linear_scaling, medoids, medoid_classes, medoid_rows, column_weights, tuple(of_groups),
        Terms(group, medoid, channel, keys[:, 3], center, weight),
        np.mean([bag.intercepts for bag in bags], axis=0), n_classes,
    )  # fmt: skip
