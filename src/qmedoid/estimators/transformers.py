"""Deltas as a transformer (algorithm 13)."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array
from qmedoid.estimators import parameters as allowed
from qmedoid.estimators.inputs import check_table
from qmedoid.estimators.nearest import NearestMedoidClassifier
from qmedoid.estimators.number_columns import read_numbers
from qmedoid.geometry.channels import DeltaKind
from qmedoid.geometry.scaling import fit_standard
from qmedoid.model.refinement import CircuitInputs


@allowed.with_parameters
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

    _constraints: ClassVar[Mapping[str, allowed.Constraint]]
    method: Annotated[NearestMedoidClassifier | None, allowed.NONE | allowed.instance(NearestMedoidClassifier)] = field(
        default=None, kw_only=False
    )
    kind: DeltaKind = "pairs"
    fused: bool = False
    standardize: bool = True
    random_state: Annotated[Any, allowed.SEED] = None

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
        allowed.check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        check_table(self, X, reset=True, allow_nan=True)
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
