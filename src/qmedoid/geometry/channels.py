r"""Distance and angle to every class: the fusion score of both (algorithm 8) and contrastive deltas (algorithm 13).

The smallest fusion score decides. A delta says how much nearer a record lies to one class than to another. For a pair
of classes (b, a), from channels normalized within the record,

.. math:: \Delta_D = \tilde D_b - \tilde D_a, \qquad \Delta_\Theta = \tilde\Theta_b - \tilde\Theta_a,
          \qquad \Delta_s = s_b - s_a

Two classes have the one pair (1, 0): negative means nearer class 1. More have either all pairs, or the pair of the
runner-up and the best by fusion score, which says how sure the score is but not between which classes (fact 14).
"""

from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.ties import first_smallest_of_rows

EPSILON = 1e-12
"""Guard of the denominators of the normalized channels."""


class Channels(NamedTuple):
    """Distance and angle of every record to every class, each of shape (n, C)."""

    distance: Array
    angle: Array


def class_channels(distance: Array, angle: Array, medoid_classes: Codes, n_classes: int) -> tuple[Channels, Codes]:
    """Channels of each class: those of its nearest medoid, one training row that represents the class (fact 13).

    From distance and angle to all medoids, of shape (n, n_medoids), of which every class has one at least. Returns
    channels (n, C), and which medoid was nearest in each class, shape (n, C).
    """
    nearest = np.empty((len(distance), n_classes), dtype=np.intp)
    for c in range(n_classes):
        places = np.flatnonzero(medoid_classes == c)
        nearest[:, c] = places[np.argmin(distance[:, places], axis=1)]
    return Channels(np.take_along_axis(distance, nearest, axis=1), np.take_along_axis(angle, nearest, axis=1)), nearest


def normalize_channel(channel: Array) -> Array:
    """Share of each class in a record's channel, C_c / (Σ C + ε), shape (n, C)."""
    total: Array = channel.sum(axis=1, keepdims=True)
    return channel / (total + EPSILON)


def fusion_scores(channels: Channels, alpha: float, *, use_angular: bool, multipliers: Array | None = None) -> Array:
    r"""Score of every class for every record, shape (n, C).

    .. math:: s_c = w_c\,\bigl(\alpha\,\tilde D_c + (1-\alpha)\,\tilde\Theta_c\bigr)

    Scores are dissimilarities: a multiplier w above 1 pushes a class away, one below 1 draws it nearer.
    """
    scores = normalize_channel(channels.distance)
    if use_angular:
        scores = alpha * scores + (1.0 - alpha) * normalize_channel(channels.angle)
    return scores if multipliers is None else scores * multipliers


def prior_multipliers(priors: Array, exponent: float) -> Array:
    """Multipliers (π_c / max π)^γ: with γ > 0 the scores of rare classes shrink, so rare classes gain."""
    multipliers: Array = (priors / priors.max()) ** exponent
    return multipliers


def printed_multipliers(priors: Array) -> Array:
    """The printed class weights 1/√π_c, which push rare classes *away* because the smallest score wins (fact 4)."""
    return 1.0 / np.sqrt(priors)


DeltaKind = Literal["pairs", "nearest"]
DELTA_KINDS: tuple[DeltaKind, ...] = ("pairs", "nearest")


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Every pair (b, a) of class codes with b above a."""
    return [(b, a) for a, b in combinations(range(n_classes), 2)]


def nearest_two(scores: Array) -> tuple[Codes, Codes]:
    """The best class and the runner-up of every record, by the smallest scores; of equal ones the first."""
    best = first_smallest_of_rows(scores)
    rest = scores.copy()
    rest[np.arange(len(scores)), best] = np.inf
    return best, first_smallest_of_rows(rest)


def delta_features(
    channels: Channels,
    scores: Array,
    *,
    kind: DeltaKind = "pairs",
    angular: bool = True,
    fused: bool = False,
    ranking: Array | None = None,
) -> Array:
    """Deltas of every record, pair by pair: distance, then angle, then fusion score where wanted, shape (n, m).

    Of all pairs, or of the runner-up and the best: those of the two smallest in each row of `ranking`, by default of
    the fusion scores (n, C). Two classes have one pair either way.
    """
    values = [normalize_channel(channels.distance)]
    if angular:
        values.append(normalize_channel(channels.angle))
    if fused:
        values.append(scores)
    n, n_classes = scores.shape
    if kind == "nearest" and n_classes > 2:
        best, second = nearest_two(scores if ranking is None else ranking)
        rows = np.arange(n)
        return np.column_stack([value[rows, second] - value[rows, best] for value in values])
    return np.column_stack([value[:, b] - value[:, a] for b, a in class_pairs(n_classes) for value in values])


def delta_names(
    classes: list[str], *, kind: DeltaKind = "pairs", angular: bool = True, fused: bool = False
) -> list[str]:
    """Names of the columns of :func:`delta_features`, such as ``delta_distance[b-a]``."""
    quantities = ["distance", *(["angle"] if angular else []), *(["score"] if fused else [])]
    if kind == "nearest" and len(classes) > 2:
        pairs = [("second", "best")]
    else:
        pairs = [(classes[b], classes[a]) for b, a in class_pairs(len(classes))]
    return [f"delta_{quantity}[{b}-{a}]" for b, a in pairs for quantity in quantities]
