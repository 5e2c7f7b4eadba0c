"""Real records that stand for the two classes, and metrics to compare with them."""

from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.fitting.rare.settings import MetricName, RareSettings
from qmedoid.geometry.contrast import column_contrast
from qmedoid.kernels.ties import stable_order
from qmedoid.models.rare_geometry import Own

# Common rows that the columns' contrast is told from: its error falls with the rare rows long before.
_CONTRAST_ROWS = 20_000
# Added to the variance of the rare rows in a column, so that no column rules a metric alone.
_LEAST_VARIANCE = 0.3


class Prototypes(NamedTuple):
    """Training rows of the prototypes: rare ones, and common ones with those that were chosen as hard."""

    rare: Codes
    common: Codes
    hard: Flags

    def own(self, n_rows: int, groups: Codes | None = None) -> Own:
        """For all training rows their places among the prototypes, or those of a row of their group."""
        group = np.arange(n_rows) if groups is None else groups
        rare, common = np.full(n_rows, -1, dtype=np.intp), np.full(n_rows, -1, dtype=np.intp)
        rare[group[self.rare]] = np.arange(len(self.rare))
        common[group[self.common]] = np.arange(len(self.common))
        return Own(rare[group], common[group])

    def with_hard(self, rows: Codes) -> "Prototypes":
        """The same with more common rows, which are hard."""
        return Prototypes(
            self.rare, np.concatenate([self.common, rows]), np.repeat([False, True], [len(self.common), len(rows)])
        )


def draw_prototypes(
    is_rare: Flags, settings: RareSettings, rng: np.random.Generator, heads: Codes | None = None
) -> Prototypes:
    """Rare and common rows at random, in the order of the table; of `heads` alone, if given."""
    rows = np.arange(len(is_rare)) if heads is None else np.sort(heads)
    rare = _draw(rows[is_rare[rows]], settings.n_rare, rng)
    common = _draw(rows[~is_rare[rows]], settings.n_common, rng)
    return Prototypes(rare, common, np.zeros(len(common), dtype=np.bool_))


def hardest(logits: Array, is_rare: Flags, prototypes: Prototypes, count: int, heads: Codes | None = None) -> Codes:
    """Common rows with the highest logits that are no prototypes yet, in the order of the table; of `heads` alone."""
    candidates = ~is_rare
    if heads is not None:
        candidates &= np.isin(np.arange(len(is_rare)), heads)
    candidates[prototypes.common] = False
    rows = np.flatnonzero(candidates)
    highest = rows[stable_order(-logits[rows])[:count]]
    return np.sort(highest)


def make_metric(name: MetricName, scaled: Array, is_rare: Flags, rng: np.random.Generator) -> Array:
    """Weights of the columns, shape (M,), at least one above 0."""
    if name == "plain":
        return np.ones(scaled.shape[1])
    rare = np.flatnonzero(is_rare)
    if name == "tight":
        weights: Array = 1.0 / (scaled[rare].var(axis=0) + _LEAST_VARIANCE)
        return weights
    rows = np.concatenate([rare, _draw(np.flatnonzero(~is_rare), _CONTRAST_ROWS, rng)])
    contrast = column_contrast(scaled[rows], is_rare[rows])
    return contrast if contrast.any() else np.ones(scaled.shape[1])


def _draw(rows: Codes, most: int, rng: np.random.Generator) -> Codes:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
