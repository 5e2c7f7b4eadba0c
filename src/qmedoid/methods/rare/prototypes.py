r"""Settings of the rare-event method, its prototypes, and the metrics of distances to them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import rankdata

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.geometry.row_groups import draw_rows
from qmedoid.kernels.ties import stable_order


def column_contrast(values: Array, is_rare: Flags) -> Array:
    """Contrast of every column, shape (M,), from the middle ranks of its values; a constant column has 0.

    Parameters
    ----------
    values : ndarray of shape (n, M)
    is_rare : ndarray of shape (n,)
        Which rows belong to one of the classes; both need at least one.
    """
    n_rare = int(is_rare.sum())
    pairs = n_rare * (len(values) - n_rare)
    ranks = np.column_stack([rankdata(column) for column in values.T])
    wins = ranks[is_rare].sum(axis=0) - n_rare * (n_rare + 1) / 2
    contrast: Array = np.abs(2.0 * wins / pairs - 1.0)
    return contrast


MetricName = Literal["plain", "contrast"]
METRICS: tuple[MetricName, ...] = ("plain", "contrast")
"""Metrics by name: all columns alike, or by how well each separates the classes."""


@dataclass(frozen=True)
class RareSettings:
    """Prototypes, evidence and fusion.

    Attributes
    ----------
    n_rare : most rare prototypes; all rare rows where there are no more
    n_common : common prototypes drawn at random
    n_hard : common prototypes chosen for their likeness to rare rows; 0 for none
    metrics : what the deltas are measured in, the main one first
    counts : numbers of nearest prototypes that a delta averages over, at most 16
    signed_log : whether columns are compressed before they are compared
    leave_one_out : whether a training row is not compared with itself
    length, floor : of the nearness on a column, in deviations and as a share
    deltas_strength, nearness_strength, position_strength, middle_strength : variance that the weights of each kind of
        feature have beforehand (C of an L2 logistic regression); 0 leaves the kind out
    n_folds : folds of the cross-fitted scores
    n_circuit_features : features that are handed to a circuit
    """

    n_rare: int = 2000
    n_common: int = 3000
    n_hard: int = 1000
    metrics: tuple[MetricName, ...] = ("plain", "contrast")
    counts: tuple[int, ...] = (1, 3, 8)
    signed_log: bool = True
    leave_one_out: bool = True
    length: float = 0.2
    floor: float = 0.005
    deltas_strength: float = 0.01
    nearness_strength: float = 0.03
    position_strength: float = 0.1
    middle_strength: float = 0.03
    n_folds: int = 3
    n_circuit_features: int = 8


# Common rows that the contrast of columns is measured on: the number of rare rows limits it long before.
_CONTRAST_ROWS = 20_000


def own_places(rare: Codes, common: Codes, n_rows: int, groups: Codes | None = None) -> Codes:
    """Places of all training rows, or of a row of their group, among rare and common prototypes, shape (2, n)."""
    group = np.arange(n_rows) if groups is None else groups
    places = np.full((2, n_rows), -1, dtype=np.intp)
    for own, rows in zip(places, (rare, common), strict=True):
        own[group[rows]] = np.arange(len(rows))
    return places[:, group]


def draw_prototypes(
    is_rare: Flags, settings: RareSettings, rng: np.random.Generator, heads: Codes | None = None
) -> tuple[Codes, Codes]:
    """Rare and common rows at random, in the order of the table; of `heads` alone, if given."""
    rows = np.arange(len(is_rare)) if heads is None else np.sort(heads)
    rare = draw_rows(rows[is_rare[rows]], settings.n_rare, rng)
    return rare, draw_rows(rows[~is_rare[rows]], settings.n_common, rng)


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
    """Weights of the columns, shape (M,), at least one above 0."""
    if name == "plain":
        return np.ones(scaled.shape[1])
    rows = np.concatenate([np.flatnonzero(is_rare), draw_rows(np.flatnonzero(~is_rare), _CONTRAST_ROWS, rng)])
    contrast = column_contrast(scaled[rows], is_rare[rows])
    return contrast if contrast.any() else np.ones(scaled.shape[1])
