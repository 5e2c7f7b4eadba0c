r"""Contrastive margins: how much nearer a record lies to one class than to another (algorithm 13).

For a pair of classes (b, a), from channels normalized within the record,

.. math:: \Delta_D = \tilde D_b - \tilde D_a, \qquad \Delta_\Theta = \tilde\Theta_b - \tilde\Theta_a,
          \qquad \Delta_s = s_b - s_a

Two classes have the one pair (1, 0): negative means nearer class 1. More have either all pairs, or the pair of the
runner-up and the best by fusion score, which says how sure the score is but not between which classes (fact 14).
"""

from itertools import combinations
from typing import Literal

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.fusion import Channels, normalize_channel
from qmedoid.kernels.ties import first_smallest_of_rows

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
    """Deltas of every record, pair by pair: distance, then angle, then fusion score where asked for.

    Parameters
    ----------
    channels : Channels of shape (n, C)
    scores : ndarray of shape (n, C)
        Fusion scores.
    kind : {"pairs", "nearest"}
        All pairs, or (runner-up, best); two classes have one pair either way.
    angular, fused : bool
        Whether there are deltas of the angle and of the fusion score.
    ranking : ndarray of shape (n, C) or None
        The two smallest in a row are the best and the runner-up. None takes the fusion scores.

    Returns
    -------
    ndarray of shape (n, m)
    """
    if kind not in DELTA_KINDS:
        raise ParameterError(f"The kind of deltas must be one of {list(DELTA_KINDS)}. Got {kind!r} instead.")
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
