"""How both estimators turn a scaled table into correlation groups (algorithm 1)."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.estimators._parameters import Choice, Constraint, Optional, Whole
from qmedoid.estimators._tables import column_label
from qmedoid.exceptions import ConstantColumnWarning, DataError, warn
from qmedoid.geometry.groups import (
    FEATURE_KINDS,
    Groups,
    build_groups,
    constant_columns,
    correlation_matrix,
    correlation_ratio,
    correlation_with_numbers,
)
from qmedoid.geometry.scaling import SCALING_KINDS

DEFAULT_GROUP_SIZE = 8
AnchorOrder = Literal["association", "codes", "columns"]
ANCHOR_ORDERS: tuple[AnchorOrder, ...] = ("association", "codes", "columns")

DEFAULT_SIZES = (2, 5)

GROUPING_CONSTRAINTS: Mapping[str, Constraint] = {
    "kind": Choice(FEATURE_KINDS),
    "input_scaling": Choice(SCALING_KINDS),
    "group_size": Optional(Whole(1)),
    "n_anchors": Optional(Whole(1)),
    "anchor_order": Choice(ANCHOR_ORDERS),
}
"""Of the parameters that both estimators have."""


def make_groups(
    X: Array,
    target: Array | Codes | None,
    *,
    order: AnchorOrder,
    group_size: int | None,
    n_anchors: int | None,
    names: Any = None,
    weights: Array | None = None,
) -> Groups:
    """Groups over the columns that vary, with a warning for every adjustment that was made.

    Parameters
    ----------
    X : ndarray of shape (n, M)
    target : class codes (integers), numbers, or None for the order of the columns
    order : {"association", "codes", "columns"}
        ``"association"`` is the correlation ratio with classes, or |r| with numbers; ``"codes"`` the printed rule.
    group_size : int or None
        None takes 8, or all columns where there are fewer.
    n_anchors : int or None
    names : sequence of str or None
        Column names, for messages.
    weights : ndarray of shape (n,) or None
    """
    usable = _usable_columns(X, names)
    return build_groups(
        correlation_matrix(X, weights=weights),
        group_size=_group_size(group_size, int(usable.sum())),
        association=_association(X, target, order, weights),
        usable=usable,
        n_anchors=n_anchors,
    )


def sizes_within(groups: Groups, asked: tuple[int, int] | None) -> tuple[int, ...]:
    """Subset sizes k, held to the size of the groups; a warning says so where larger ones were asked for."""
    largest = len(groups.members[0])
    first, last = (min(size, largest) for size in asked or DEFAULT_SIZES)
    if asked is not None and last < asked[1]:
        warn(f"subset_sizes={asked} goes beyond the groups of {largest} columns: ({first}, {last}) was used.")
    return tuple(range(first, last + 1))


def _association(X: Array, target: Array | Codes | None, order: AnchorOrder, weights: Array | None) -> Array | None:
    if target is None or order == "columns":
        return None
    if order == "association" and np.issubdtype(target.dtype, np.integer):
        return correlation_ratio(X, target.astype(np.intp), weights=weights)
    return correlation_with_numbers(X, target.astype(np.float64), weights=weights)


def _usable_columns(X: Array, names: Any) -> Flags:
    constant = constant_columns(X)
    if constant.all():
        raise DataError(
            f"All {X.shape[1]} columns of X are constant: there is nothing to tell records apart by. "
            "Pass at least one column that varies."
        )
    if constant.any():
        labels = ", ".join(column_label(int(c), names) for c in np.flatnonzero(constant)[:10])
        more = f" and {constant.sum() - 10} more" if constant.sum() > 10 else ""
        dropped = "was dropped: it correlates" if constant.sum() == 1 else "were dropped: they correlate"
        warn(f"{labels}{more} held one value only and {dropped} with nothing.", ConstantColumnWarning)
    return ~constant


def _group_size(asked: int | None, n_columns: int) -> int:
    if asked is None:
        return min(DEFAULT_GROUP_SIZE, n_columns)
    if asked > n_columns:
        warn(f"group_size={asked} is more than the {n_columns} columns that vary: {n_columns} was used.")
    return min(asked, n_columns)
