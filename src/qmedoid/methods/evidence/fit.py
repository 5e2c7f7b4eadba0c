"""Fit of the evidence method: scalings, medoids, groups and weights of every bag, and the mean of the bags."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.groups import MOST_COLUMNS
from qmedoid.geometry.row_groups import draw_rows, equal_rows, first_rows, is_clear_gain, part_of
from qmedoid.geometry.scaling import RankScaling, Scaling, fit_standard
from qmedoid.kernels.cross_entropy import log_softmax, row_losses
from qmedoid.kernels.nearest import nearest_squared
from qmedoid.kernels.ties import SAME_PLACE, TIE, first_largest, order_by_content, stable_order
from qmedoid.methods.calibration import fit_calibration, slope_and_gain
from qmedoid.methods.evidence.bag import Bag, MayBegin, fit_bags
from qmedoid.methods.evidence.design import Blocks, EvidenceSettings, Scaled, fit_rank_scaling
from qmedoid.methods.evidence.part import CLIP, EvidencePart, Group, Neighbors, Terms, added
from qmedoid.methods.evidence.ridge import RidgePath, RowGroups

# Rows of a class among which its medoids are sought, and steps of the search.
_MAX_CLASS_ROWS = 3000
_N_STEPS = 12
# Medoids of a class in a bag at least; with fewer, there are fewer bags.
_FEWEST_PER_CLASS = 4
# Numbers of neighbors that are tried.
_NUMBERS = (1, 4, 16)
# The length ℓ is the median distance to the neighbor of this number.
_MIDDLE = 5
_MORE_MEDOIDS_FROM = 2000
# Minimum number of rows.
_FEWEST_ROWS = 20
_CONFIDENCE = 0.25
# Minimum gain in out-of-fold log-likelihood, in standard errors and absolute: where classes are separated almost
# perfectly, standard errors say little.
_WORTH_IT = 1.5
_LEAST_GAIN = 4.0


def class_rows(codes: Codes, n_classes: int) -> list[Codes]:
    """Rows of every class that has any."""
    return [rows for rows in (np.flatnonzero(codes == code) for code in range(n_classes)) if len(rows)]


def stratified_sample(
    codes: Codes, n_classes: int, max_rows: int, rng: np.random.Generator, groups: Codes | None = None
) -> Codes:
    """About `max_rows` rows, ascending, stratified by class, with at least one row of every class.

    Groups are drawn together, by the class of their first row.
    """
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    if groups is not None:
        first = first_rows(groups)
        drawn_groups = stratified_sample(
            codes[first], n_classes, max(1, round(max_rows * len(first) / len(codes))), rng
        )
        missing = np.setdiff1d(codes, codes[taken := np.isin(groups, drawn_groups)])
        return np.flatnonzero(taken | np.isin(codes, missing))
    share = max_rows / len(codes)
    drawn = [rng.choice(rows, max(1, round(share * len(rows))), replace=False) for rows in class_rows(codes, n_classes)]
    return np.sort(np.concatenate(drawn))


def medoids_of_classes(
    Z: Array,
    codes: Codes,
    n_classes: int,
    n_medoids: int,
    rng: np.random.Generator,
    taken: Codes | None = None,
    counts: Codes | None = None,
) -> Codes:
    """Medoids of each class: rows nearest to the centers of k clusters, classes in turn, large clusters first.

    Any number of leading rows is thus spread over the classes. k is the same for all classes, but at most half of the
    rows of a class and at least 1. Rows that are `taken` are passed over in classes that have enough others. With
    `counts` a row counts so many times, and one that counts 0 times is equal to another, and not looked at.
    """
    per_class = max(1, n_medoids // n_classes)
    found = []
    for rows in class_rows(codes, n_classes):
        rows = rows if counts is None else rows[counts[rows] > 0]
        k = min(per_class, max(1, len(rows) // 2))
        free = rows if taken is None else np.setdiff1d(rows, taken)
        rows = free if len(free) >= k else rows
        rows = draw_rows(rows, _MAX_CLASS_ROWS, rng)
        found.append(rows[_cluster_rows(Z[rows], k, rng, None if counts is None else counts[rows])])
    turns = range(max(len(rows) for rows in found))
    return np.array([rows[turn] for turn in turns for rows in found if turn < len(rows)], dtype=np.intp)


def _cluster_rows(Z: Array, k: int, rng: np.random.Generator, counts: Codes | None = None) -> Codes:
    """Lloyd's k-means from k random rows; each centre is then replaced by the nearest row that is still free."""
    each = np.ones(len(Z)) if counts is None else counts.astype(np.float64)
    centers = Z[rng.choice(len(Z), k, replace=False)] if k > 1 else np.average(Z, axis=0, weights=each)[None]
    before = None
    for _ in range(_N_STEPS):
        squared = cdist(Z, centers, "sqeuclidean")
        # Of centers that are equally near up to rounding the first.
        nearest = (squared <= squared.min(axis=1, keepdims=True) * (1.0 + TIE) + SAME_PLACE).argmax(axis=1)
        if before is not None and np.array_equal(nearest, before):
            break
        sizes = np.bincount(nearest, weights=each, minlength=k)
        members = np.zeros((k, len(Z)))
        members[nearest, np.arange(len(Z))] = each
        # A centre that no row is nearest to stays where it is.
        centers = np.where(sizes[:, None] > 0, members @ Z / np.maximum(sizes, 1)[:, None], centers)
        before = nearest
    distances = cdist(centers, Z)
    taken: list[int] = []
    for cluster in np.argsort(-sizes, kind="stable"):
        order = stable_order(distances[cluster])[: k + 1]
        taken.append(next(int(row) for row in order if int(row) not in taken))
    return np.array(taken, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class FittedEvidence:
    """An evidence model with its out-of-fold scores."""

    model: EvidencePart
    # Out-of-fold dissimilarities of every training row, its group left out: in closed form, with the intercept of
    # all rows, (n, C).
    out_of_fold: Array
    without_neighbors: Array  # the same without the neighbor term, (n, C)
    regularization: float  # the λ that was chosen, geometric mean of the bags
    path: RidgePath
    note: str | None = None  # what was limited, of a wide table


def fit_evidence(
    X: Array,
    codes: Codes,
    n_classes: int,
    settings: EvidenceSettings,
    seed: int,
    progress: Callable[[float], None] | None = None,
    groups: Codes | None = None,
    may_begin: MayBegin = lambda *_: True,
    row_weights: Array | None = None,
) -> FittedEvidence:
    """Fit an evidence model; it is the same model whatever the order of the columns.

    X (n, M) holds encoded columns, finite; the same seed gives the same model. Rows of one group are left out together;
    without `groups` every row is a group. `may_begin` is asked before bags behind the first and before the neighbor
    term, which are left out if they may not begin. Rows count by `row_weights` in the losses; scalings, medoids and
    groups of columns take rows as they are, and there is no neighbor term then.
    """
    report = progress or (lambda _: None)
    if settings.grows and len(codes) >= _MORE_MEDOIDS_FROM:
        settings = replace(settings, n_medoids=2 * settings.n_medoids)
    rng = np.random.default_rng(seed)
    order = order_by_content(X)
    X = np.ascontiguousarray(X[:, order])
    kept = stratified_sample(codes, n_classes, settings.max_rows, rng, groups)
    known, labels, row_groups = X[kept], codes[kept], part_of(groups, kept)
    weights = None if row_weights is None else row_weights[kept] / row_weights[kept].mean()
    rank_scaling, linear_scaling = fit_rank_scaling(known), fit_standard(known)
    # Equal rows that count differently are not left out alike.
    compared = known if weights is None else np.column_stack([known, weights])
    together = None if row_groups is None else RowGroups(row_groups, compared)
    counts = None
    if row_groups is not None:  # how often every row occurs in its class, 0 where it has occurred before
        cells, counts = equal_rows(np.column_stack([known, labels])), np.zeros(len(known), dtype=np.intp)
        counts[first_rows(cells)] = np.bincount(cells)
    rows = Scaled(rank_scaling.apply(known), np.clip(linear_scaling.apply(known), -CLIP, CLIP))
    n_bags = int(np.clip(settings.n_medoids // (_FEWEST_PER_CLASS * n_classes), 1, settings.n_bags))
    chosen: list[Codes] = []
    for _ in range(n_bags):
        taken = np.concatenate([*chosen, np.empty(0, dtype=np.intp)])
        chosen.append(
            medoids_of_classes(rows.ranks, labels, n_classes, settings.n_medoids // n_bags, rng, taken, counts)
        )
    every, of_bag = np.unique(np.concatenate(chosen), return_inverse=True)
    places = np.split(of_bag.astype(np.intp), np.cumsum([len(part) for part in chosen])[:-1])
    n_values = np.diff(rank_scaling.offsets)
    varying = tuple(np.flatnonzero(n_values > 1).tolist())
    many_valued = tuple(np.flatnonzero(n_values > 2).tolist())
    medoids = Scaled(rows.ranks[every], rows.plain[every])
    blocks = Blocks(settings, rows, medoids, varying, many_valued, n_bags, weights)
    report(0.1)
    # ±1 for the second of two classes, or for each of more.
    of_output = np.arange(1, 2) if n_classes == 2 else np.arange(n_classes)
    targets = np.where(labels[:, None] == of_output, 1.0, -1.0)
    bags, outputs = fit_bags(blocks, targets, places, together, rng, report, may_begin)
    model = _joined(bags, rank_scaling, linear_scaling, known[every], labels[every], kept[every], varying, n_classes)
    if n_classes == 2:
        # A ridge predicts ±1: as log-odds its outputs go together with those of other parts.
        slope = fit_calibration(model.class_scores(outputs), labels, "logistic", row_groups, weights).slope
        terms = replace(model.terms, weights=slope * model.terms.weights)
        model, outputs = replace(model, terms=terms, intercepts=slope * model.intercepts), slope * outputs
    scores = alone = _of_all_rows(model, outputs, X, kept)
    if settings.n_neighbors and row_weights is None and may_begin("neighbors of the evidence", 0.0):
        # One row of a group is enough, and so a row has one neighbor at most that is not to be compared with.
        heads = np.arange(len(labels)) if row_groups is None else first_rows(row_groups)
        kept_rows = heads[stratified_sample(labels[heads], n_classes, settings.n_neighbors, rng)]
        near = Scaled(*(values[:, list(varying)] for values in rows))
        nearest = choose_neighbors(model.class_scores(outputs), outputs.shape[1], labels, near, kept_rows, together)
        if nearest is not None:
            amounts, n_nearest, length, by_rank, out_of_fold = nearest
            records = known[kept_rows], labels[kept_rows], kept[kept_rows]
            model = replace(model, neighbors=Neighbors(*records, amounts, n_nearest, length, by_rank))
            scores = _of_all_rows(model, outputs + out_of_fold, X, kept)
    report(1.0)
    path = RidgePath(*(np.mean([bag.path[part] for bag in bags], axis=0) for part in range(2)))
    penalty = float(np.exp(np.mean([np.log(bag.penalty) for bag in bags])))
    note = None
    if len(varying) > MOST_COLUMNS:
        count = sum(part.block == "linear" for part in bags[0].design.parts)
        note = (
            f"of {len(varying):,} columns that vary, each of the {len(bags)} models of the evidence has terms of the "
            f"{count:,} that are worth most to rows that do not judge it; the others count in the distances to medoids "
            "and neighbors"
        )
    return FittedEvidence(_in_order(model, order), scores, alone, penalty, path, note)


def choose_neighbors(
    dissimilarities: Array, n_outputs: int, codes: Codes, rows: Scaled, kept: Codes, together: RowGroups | None = None
) -> tuple[Array, int, float, bool, Array] | None:
    """Choose neighbors by out-of-fold likelihood; None where they are not clearly better than evidence alone.

    Neighbor i adds its class minus the probabilities of the evidence at a quarter of its confidence: at full
    confidence, the weights have learned from the very rows around it. From out-of-fold scores (n, C) by evidence alone,
    the rows of the columns that distances look at, and the N rows that may be kept, no two of one group. Rows of one
    group are no neighbors of each other, and count as one in what is gained.

    Returned are the amounts (N, K), the number of nearest ones, their length ℓ, whether distances are by rank, and what
    the neighbors add to each row, (n, K).
    """
    if len(kept) < _FEWEST_ROWS or rows.ranks.shape[1] == 0:
        return None
    groups = None if together is None else together.groups
    calibration = fit_calibration(dissimilarities, codes, "logistic", groups)
    scores = calibration.apply(dissimilarities)
    scores -= scores.mean(axis=1, keepdims=True)
    surprise = np.eye(scores.shape[1])[codes] - np.exp(log_softmax(_CONFIDENCE * scores))
    surprise = (surprise if together is None else together.means(surprise))[kept]
    # Place among the neighbors of every row, or of a row of its group, which is not compared with; −1 for none.
    itself = np.full(len(codes), -1, dtype=np.intp)
    itself[kept if groups is None else groups[kept]] = np.arange(len(kept))
    itself = itself if groups is None else itself[groups]
    losses, tried = list[Array](), list[tuple[float, Array, Codes, float, bool]]()
    for by_rank in (True, False):
        values = np.ascontiguousarray(rows.ranks if by_rank else rows.plain)
        squared, places = nearest_squared(values, values[kept], k=min(_NUMBERS[-1], len(kept) - 1), own=itself)
        distances = np.sqrt(squared)
        length = float(np.median(distances[:, min(_MIDDLE, distances.shape[1]) - 1]))
        if not length > 0:
            continue  # most rows have an equal one: distances say nothing
        for number in _NUMBERS:
            nearest = distances[:, :number], places[:, :number]
            moved = added(*nearest, length, surprise)
            slope, gain = slope_and_gain(scores, moved, codes, groups)
            losses.append(row_losses(slope * scores + gain * moved, codes))
            tried.append((gain / slope, *nearest, length, by_rank))
    if not tried:
        return None
    best = first_largest([-float(one.mean()) for one in losses])
    alone, _ = slope_and_gain(scores, np.zeros_like(scores), codes, groups)
    if not is_clear_gain(row_losses(alone * scores, codes) - losses[best], groups, _WORTH_IT, _LEAST_GAIN):
        return None
    gain, distances, places, length, by_rank = tried[best]
    # A single output is the difference of two scores.
    of_class = 2.0 * surprise[:, 1:] if n_outputs == 1 else surprise
    amounts = gain / calibration.slope * of_class
    return amounts, places.shape[1], length, by_rank, added(distances, places, length, amounts)


def _of_all_rows(model: EvidencePart, outputs: Array, X: Array, kept: Codes) -> Array:
    """Dissimilarities of all rows, by the out-of-fold outputs of those that the weights were fitted on."""
    scores = model.class_scores(outputs)
    if len(kept) == len(X):
        return scores
    # Rows outside of the sample were not seen by any weight.
    of_all = model.score(X).scores
    of_all[kept] = scores
    return of_all


def _joined(
    bags: list[Bag],
    rank_scaling: RankScaling,
    linear_scaling: Scaling,
    medoids: Array,
    medoid_classes: Codes,
    medoid_rows: Codes,
    varying: tuple[int, ...],
    n_classes: int,
) -> EvidencePart:
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
    intercepts = np.mean([bag.intercepts for bag in bags], axis=0)
    joined = Terms(group, medoid, channel, keys[:, 3], center, weight)
    of_medoids = medoids, medoid_classes, medoid_rows, column_weights
    return EvidencePart(rank_scaling, linear_scaling, *of_medoids, tuple(of_groups), joined, intercepts, n_classes)


def _in_order(model: EvidencePart, order: Codes) -> EvidencePart:
    """The model for X, from one that was fitted to ``X[:, order]``."""
    back, linear = np.argsort(order), model.linear_scaling
    groups = []
    for group in model.groups:
        columns = order[list(group.columns)]
        ascending = np.argsort(columns)
        groups.append(Group(tuple(columns[ascending].tolist()), group.weights[ascending], group.by_rank))
    neighbors = model.neighbors
    return replace(
        model,
        rank_scaling=model.rank_scaling.take(back),
        linear_scaling=Scaling(linear.center[back], linear.scale[back]),
        medoids=np.ascontiguousarray(model.medoids[:, back]),
        column_weights=model.column_weights[back],
        groups=tuple(groups),
        neighbors=neighbors and replace(neighbors, records=np.ascontiguousarray(neighbors.records[:, back])),
    )
