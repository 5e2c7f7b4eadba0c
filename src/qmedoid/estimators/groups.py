"""Correlation groups: how a table is grouped, and the groups as a transformer (algorithms 1 to 3)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.estimators._inputs import (
    check_size,
    check_table,
    check_target,
    check_weights,
    column_label,
    one_blas_thread,
)
from qmedoid.estimators._parameters import FLAG, NONE, Constraint, check_parameters, choice, whole
from qmedoid.exceptions import ConstantColumnWarning, DataError, warn
from qmedoid.geometry.groups import (
    FEATURE_KINDS,
    FeatureKind,
    Groups,
    build_groups,
    constant_columns,
    correlation_matrix,
    correlation_ratio,
    correlation_with_numbers,
    feature_matrix,
)
from qmedoid.geometry.scaling import SCALING_KINDS, ScalingKind, fit_scaling

DEFAULT_GROUP_SIZE = 8
AnchorOrder = Literal["association", "codes", "columns"]
ANCHOR_ORDERS: tuple[AnchorOrder, ...] = ("association", "codes", "columns")
DEFAULT_SIZES = (2, 5)
GROUPING_CONSTRAINTS: Mapping[str, Constraint] = {
    "kind": choice(FEATURE_KINDS),
    "input_scaling": choice(SCALING_KINDS),
    "group_size": NONE | whole(1),
    "n_anchors": NONE | whole(1),
    "anchor_order": choice(ANCHOR_ORDERS),
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
    quiet: bool = False,
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
    quiet : bool
        Whether constant columns are dropped without a warning.
    """
    usable = _usable_columns(X, names, quiet)
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


def _usable_columns(X: Array, names: Any, quiet: bool) -> Flags:
    constant = constant_columns(X)
    if constant.all():
        raise DataError(
            f"All {X.shape[1]} columns of X are constant: no column distinguishes records. "
            "Pass at least one column that varies."
        )
    if constant.any() and not quiet:
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


class CorrelationGroups(TransformerMixin, BaseEstimator):
    """Turn columns into one feature per anchor: a weighted norm over the columns it is correlated with.

    Parameters
    ----------
    kind : {"signed", "weighted", "unweighted", "multiplicative"}, default="signed"
        ``"signed"`` keeps the sign of the weighted sum, which a plain norm loses.
    input_scaling : {"standard", "minmax", "none"}, default="standard"
        Scaling of the columns before anything else.
    group_size : int or None, default=None
        Columns per group, the anchor among them. None takes 8, or all where there are fewer.
    n_anchors : int or None, default=None
        Maximum number of anchors, those most related to the target. None keeps all.
    subset_size : int or None, default=None
        Columns of each group that enter its feature. None takes the whole group.
    anchor_order : {"association", "codes", "columns"}, default="association"
        By the correlation ratio with the classes (or |r| with a numeric target), by |r| with label codes as printed,
        or as the columns stand. Without a target the column order stands.
    standardize : bool, default=True
        Bring every feature to mean 0 and deviation 1 on the training rows.

    Attributes
    ----------
    groups_ : Groups
        Anchors, members and correlations.
    configuration_ : tuple of tuple of int
        The columns used for each anchor, the anchor first.
    input_scaling_, feature_scaling_ : Scaling
        Fitted on the training rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
    """

    def __init__(
        self,
        *,
        kind: FeatureKind = "signed",
        input_scaling: ScalingKind = "standard",
        group_size: int | None = None,
        n_anchors: int | None = None,
        subset_size: int | None = None,
        anchor_order: AnchorOrder = "association",
        standardize: bool = True,
    ) -> None:
        self.kind = kind
        self.input_scaling = input_scaling
        self.group_size = group_size
        self.n_anchors = n_anchors
        self.subset_size = subset_size
        self.anchor_order = anchor_order
        self.standardize = standardize

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        **GROUPING_CONSTRAINTS,
        "subset_size": NONE | whole(1),
        "standardize": FLAG,
    }

    @one_blas_thread
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the groups of a table.

        Parameters
        ----------
        X : array-like or data frame of shape (n, M)
        y : array-like of shape (n,), optional
            Classes or numbers that the anchors are ordered by.
        sample_weight : array-like of shape (n,), optional
            A weight of k counts a row k times.
        """
        check_parameters("CorrelationGroups", self.get_params(deep=False), self._constraints)
        table = np.ascontiguousarray(check_table(self, X, reset=True, ensure_min_samples=2))
        if self.input_scaling == "none":
            check_size(table, getattr(self, "feature_names_in_", None))
        target = _target(y, len(table))
        weights = check_weights(sample_weight, table)
        if weights is not None:  # rows that count for nothing must not decide which columns are constant
            counted = weights > 0
            table, weights = table[counted], weights[counted]
            target = None if target is None else target[counted]
        self.input_scaling_ = fit_scaling(table, self.input_scaling, weights=weights)
        scaled = self.input_scaling_.apply(table)
        self.groups_ = make_groups(
            scaled,
            target,
            order=self.anchor_order,
            group_size=self.group_size,
            n_anchors=self.n_anchors,
            names=getattr(self, "feature_names_in_", None),
            weights=weights,
        )
        self.configuration_ = self.groups_.first(self.subset_size or len(table[0]))
        features = self._features(scaled)
        self.feature_scaling_ = fit_scaling(features, "standard" if self.standardize else "none", weights=weights)
        return self

    def transform(self, X: Any) -> Array:
        """Features of every anchor, shape (n, A)."""
        check_is_fitted(self)
        # Data frames arrive column by column; one layout in memory means one order of sums, and the same bits.
        table = np.ascontiguousarray(check_table(self, X, reset=False))
        return self.feature_scaling_.apply(self._features(self.input_scaling_.apply(table)))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the features: the anchor's column with ``_group`` after it."""
        check_is_fitted(self)
        names = self._column_names(input_features)
        return np.array([f"{names[a]}_group" for a in self.groups_.anchors], dtype=object)

    def _column_names(self, input_features: Any) -> list[str]:
        fitted = getattr(self, "feature_names_in_", None)
        if input_features is None:
            return [f"x{i}" for i in range(self.n_features_in_)] if fitted is None else list(fitted)
        given = list(input_features)
        if fitted is not None and given != list(fitted):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(given) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features ({self.n_features_in_}), "
                f"got {len(given)}"
            )
        return given

    def _features(self, scaled: Array) -> Array:
        return feature_matrix(scaled, self.configuration_, self.groups_.correlation, self.kind)


def _target(y: Any, n_rows: int) -> Array | Codes | None:
    """Class codes for classes, floats for numbers."""
    if y is None:
        return None
    values = check_target(y, n_rows)
    if type_of_target(values) in ("binary", "multiclass"):
        return np.unique(values, return_inverse=True)[1].astype(np.intp)
    return np.asarray(values, dtype=np.float64)
