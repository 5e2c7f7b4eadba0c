r"""Anchor features of a configuration (algorithms 2, 3 and 2b).

Every kind is a weighted norm over the columns of a subset,

.. math:: u_a(x) = \sigma_a(x)\,\sqrt{\textstyle\sum_{f\in\kappa(a)} (w_{af}\,x_f)^2},

and differs only in the weights w and in whether there is a sign σ.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.groups import Configuration

FeatureKind = Literal["signed", "weighted", "unweighted", "multiplicative"]
FEATURE_KINDS: tuple[FeatureKind, ...] = ("signed", "weighted", "unweighted", "multiplicative")


def subset_weights(correlation: Array, subset: Sequence[int], kind: FeatureKind) -> Array:
    r"""Weight w of each column of a subset whose first column is the anchor, shape (k,).

    ``"weighted"`` and ``"signed"`` take the correlation ρ with the anchor; ``"unweighted"`` takes 1;
    ``"multiplicative"`` takes the strength :math:`g_a = \sqrt{\sum_f \rho_{af}^2}` of the subset for every column.
    """
    rho: Array = correlation[subset[0], list(subset)]
    match kind:
        case "weighted" | "signed":
            return rho
        case "unweighted":
            return np.ones(len(subset))
        case "multiplicative":
            return np.full(len(subset), np.sqrt(np.sum(rho**2)))
    raise ParameterError(f"The 'kind' parameter must be one of {list(FEATURE_KINDS)}. Got {kind!r} instead.")


def anchor_feature(X: Array, subset: Sequence[int], weights: Array, *, signed: bool) -> Array:
    """Feature of one anchor for every row, shape (n,) (algorithm 2).

    With `signed`, the norm carries the sign of Σ w·x, so that x and −x stay apart; a sum of 0 counts as positive.
    """
    terms = X[:, list(subset)] * weights
    norm: Array = np.sqrt(np.sum(terms**2, axis=1))
    if not signed:
        return norm
    return np.where(np.sum(terms, axis=1) < 0, -norm, norm)


def feature_matrix(X: Array, configuration: Configuration, correlation: Array, kind: FeatureKind) -> Array:
    """Features of every anchor of a configuration, shape (n, A) (algorithm 3)."""
    features = np.empty((len(X), len(configuration)))
    for j, subset in enumerate(configuration):
        weights = subset_weights(correlation, subset, kind)
        features[:, j] = anchor_feature(X, subset, weights, signed=kind == "signed")
    return features
