"""Correlation groups: anchors, their members and the weights between them (algorithm 1)."""

from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ParameterError
from qmedoid.kernels.ties import stable_order

Subset = tuple[int, ...]
"""Columns of one anchor, the anchor first."""
Configuration = tuple[Subset, ...]
"""A subset for every anchor, in the order of the anchors."""


@dataclass(frozen=True)
class Groups:
    """Anchors in order, each with its group of columns.

    Attributes
    ----------
    anchors : tuple of int
        Columns that anchor a group, the one most related to the target first.
    members : tuple of tuple of int
        For each anchor its group: the anchor, then the columns most correlated with it.
    correlation : ndarray of shape (M, M)
        R, whose entry (a, f) is the weight ρ of member f in the group of anchor a.
    """

    anchors: tuple[int, ...]
    members: tuple[Subset, ...]
    correlation: Array

    def first(self, size: int) -> Configuration:
        """The configuration that takes the first `size` members of every group (fewer where a group is smaller)."""
        return tuple(group[:size] for group in self.members)


def build_groups(
    correlation: Array,
    *,
    group_size: int,
    association: Array | None = None,
    usable: Flags | None = None,
    n_anchors: int | None = None,
) -> Groups:
    """Order the anchors and collect the members of each (algorithm 1).

    Parameters
    ----------
    correlation : ndarray of shape (M, M)
        Correlation of the columns on training rows.
    group_size : int
        m: the anchor and the m − 1 columns most correlated with it in absolute value.
    association : ndarray of shape (M,) or None
        Strength of the relation of each column to the target; anchors come in falling order of it. None keeps the
        order of the columns.
    usable : boolean ndarray of shape (M,) or None
        Columns that may appear at all; constant ones should not.
    n_anchors : int or None
        Keep only the first so many anchors. Every usable column may still be a member.
    """
    if group_size < 1:
        raise ParameterError(f"The 'group_size' parameter must be an int >= 1. Got {group_size!r} instead.")
    allowed = np.arange(len(correlation)) if usable is None else np.flatnonzero(usable)
    order = allowed if association is None else allowed[_falling(association[allowed])]
    anchors = [int(a) for a in order[:n_anchors]]
    members = tuple(_members(correlation[a], a, allowed, group_size) for a in anchors)
    return Groups(tuple(anchors), members, correlation)


def _members(row: Array, anchor: int, allowed: Codes, size: int) -> Subset:
    others = allowed[allowed != anchor]
    nearest = others[_falling(np.abs(row[others]))][: size - 1]
    return (anchor, *(int(f) for f in nearest))


def _falling(strength: Array) -> Codes:
    # Correlations that differ by rounding alone keep the order of the columns.
    return stable_order(-strength, 1.0)
