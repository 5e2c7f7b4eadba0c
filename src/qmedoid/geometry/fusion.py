"""Fusion of distance and angle into one score per class; the smallest decides (algorithm 8)."""

from typing import NamedTuple

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
    """Channels of each class: those of its nearest medoid, one real record that stands for the class (fact 13).

    Parameters
    ----------
    distance, angle : ndarray of shape (n, n_medoids)
    medoid_classes : ndarray of shape (n_medoids,)
        Class code of each medoid; every class has at least one.
    n_classes : int

    Returns
    -------
    Channels of shape (n, C), and which medoid was nearest in each class, shape (n, C).
    """
    nearest = np.empty((len(distance), n_classes), dtype=np.intp)
    for c in range(n_classes):
        own = np.flatnonzero(medoid_classes == c)
        nearest[:, c] = own[np.argmin(distance[:, own], axis=1)]
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


def predict_codes(scores: Array) -> Codes:
    """Class of the smallest score; of those that are equal up to rounding the first."""
    return first_smallest_of_rows(scores)


def margins(scores: Array) -> Array:
    """Decision values: s_0 − s_1 of shape (n,) for two classes, else −s of shape (n, C); larger means likelier."""
    margin: Array = scores[:, 0] - scores[:, 1] if scores.shape[1] == 2 else -scores
    return margin


def prior_multipliers(priors: Array, exponent: float) -> Array:
    """Multipliers (π_c / max π)^γ: with γ > 0 the scores of rare classes shrink, so rare classes gain."""
    multipliers: Array = (priors / priors.max()) ** exponent
    return multipliers


def printed_multipliers(priors: Array) -> Array:
    """The printed class weights 1/√π_c, which push rare classes *away* because the smallest score wins (fact 4)."""
    return 1.0 / np.sqrt(priors)
