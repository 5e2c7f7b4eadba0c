"""Correlation groups and deltas as transformers (algorithms 1 to 3, and 13)."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (  # type: ignore[attr-defined]
    _check_feature_names_in,
    check_is_fitted,
)

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._search import GROUPING_CONSTRAINTS, AnchorOrder, make_groups
from qmedoid.estimators.inputs import check_size, check_table, check_target, one_blas_thread
from qmedoid.estimators.nearest import NearestMedoidClassifier
from qmedoid.estimators.number_columns import read_numbers
from qmedoid.estimators.parameters import FLAG, NONE, SEED, Constraint, check_parameters, choice, instance, whole
from qmedoid.geometry.channels import DELTA_KINDS, DeltaKind
from qmedoid.geometry.groups import FeatureKind, feature_matrix
from qmedoid.geometry.scaling import ScalingKind, fit_scaling, fit_standard
from qmedoid.model.refinement import CircuitInputs


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
        By the correlation ratio with the classes (or ``|r|`` with a numeric target), by ``|r|`` with label codes as
        printed, or as the columns stand. Without a target the column order stands.
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

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> from qmedoid import CorrelationGroups
    >>> groups = CorrelationGroups(group_size=2).fit(X, y)
    >>> groups.configuration_[0], groups.transform(X).shape
    ((2, 3), (150, 4))
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @one_blas_thread
    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the groups of a table; y, where it is given, are classes or numbers that the anchors are ordered by."""
        check_parameters("CorrelationGroups", self.get_params(deep=False), self._constraints)
        table = np.ascontiguousarray(check_table(self, X, reset=True, ensure_min_samples=2))
        if self.input_scaling == "none":
            check_size(table, getattr(self, "feature_names_in_", None))
        target = _target(y, len(table))
        self.input_scaling_ = fit_scaling(table, self.input_scaling)
        scaled = self.input_scaling_.apply(table)
        names = getattr(self, "feature_names_in_", None)
        self.groups_ = make_groups(self, scaled, target, names)
        self.configuration_ = self.groups_.first(self.subset_size or len(table[0]))
        features = self._features(scaled)
        self.feature_scaling_ = fit_scaling(features, "standard" if self.standardize else "none")
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
        names = _check_feature_names_in(self, input_features)
        return np.array([f"{names[a]}_group" for a in self.groups_.anchors], dtype=object)

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


class DeltaFeatures(TransformerMixin, BaseEstimator):
    """How much nearer each record lies to one class than to another, by distance, by angle and by fusion score.

    Parameters
    ----------
    method : NearestMedoidClassifier or None, default=None
        Whose medoids the records are compared with. None takes `NearestMedoidClassifier()`.
    kind : {"pairs", "nearest"}, default="pairs"
        For more than two classes: every pair of classes, or the two nearest by fusion score.
    fused : bool, default=False
        Whether the fusion score is one of the deltas.
    standardize : bool, default=True
        Bring the deltas to mean 0 and deviation 1 over the training rows.
    random_state : int, RandomState or None, default=None
        Seed of the method, where that has none.

    Attributes
    ----------
    estimator_ : NearestMedoidClassifier
    scaling_ : Scaling of shape (m,)
        Training mean and deviation of the deltas.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> from qmedoid import DeltaFeatures
    >>> DeltaFeatures(random_state=0).fit_transform(X[:100], y[:100]).shape
    (100, 2)
    """

    def __init__(
        self,
        method: NearestMedoidClassifier | None = None,
        *,
        kind: DeltaKind = "pairs",
        fused: bool = False,
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.kind = kind
        self.fused = fused
        self.standardize = standardize
        self.random_state = random_state

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "method": NONE | instance(NearestMedoidClassifier),
        "kind": choice(DELTA_KINDS),
        "fused": FLAG,
        "standardize": FLAG,
        "random_state": SEED,
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the method classifier by two underscores, such as ``method__random_state``."""
        inner = any(name.startswith("method__") for name in params)
        if inner and params.get("method", self.method) is None:
            params = {**params, "method": NearestMedoidClassifier()}
        return super().set_params(**params)

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the method classifier, and the mean and deviation of its deltas."""
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        check_table(self, X, reset=True, ensure_min_samples=2, allow_nan=True)
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        method: NearestMedoidClassifier = NearestMedoidClassifier() if self.method is None else clone(self.method)
        if method.random_state is None:
            method.set_params(random_state=int(check_random_state(self.random_state).randint(2**31)))
        self.estimator_ = method.fit(X, y)
        self._inputs = CircuitInputs(self.kind, bool(self.fused), bool(method.use_angular))
        self.scaling_ = fit_standard(self._deltas(X))
        return self

    def transform(self, X: Any) -> Array:
        """Deltas of every row, shape (n, m)."""
        check_is_fitted(self)
        check_table(self, X, reset=False, allow_nan=True)
        deltas = self._deltas(X)
        return self.scaling_.apply(deltas) if self.standardize else deltas

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[Any]:
        """Names of the deltas, such as ``delta_distance[1-0]``."""
        check_is_fitted(self)
        del input_features  # the deltas are named after classes, not after columns
        classes = [str(label) for label in self.estimator_.classes_.tolist()]
        return np.array(self._inputs.names(classes, 0), dtype=object)

    def _deltas(self, X: Any) -> Array:
        return self._inputs.features(self.estimator_.model_.score(read_numbers(self.estimator_, X), channels=True))
