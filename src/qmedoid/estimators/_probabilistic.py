"""What classifiers with class scores share: the checks of a fit, probabilities, and where they are cut."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from qmedoid.estimators._operating_point import check_two_classes, cut_at, cut_at_rate, probability
from qmedoid.estimators._parameters import Constraint, check_parameters
from qmedoid.estimators._tables import check_table
from qmedoid.estimators._targets import check_target, class_codes
from qmedoid.fitting.variational_selection import OutOfFold, two_class_margin
from qmedoid.variational.loss import log_softmax

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


class ProbabilisticClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose class scores have a softmax that is a probability, with an operating point if asked for."""

    _constraints: ClassVar[Mapping[str, Constraint]]
    operating_point: str | float | None
    alert_rate: float | None = None
    classes_: npt.NDArray[Any]

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n, C)."""
        probabilities: Array = np.exp(log_softmax(self._scores(X)))
        return probabilities

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second of two classes against the threshold, above 0 means the second; else scores (n, C)."""
        scores = self._scores(X)
        if len(self.classes_) > 2:
            return scores
        return two_class_margin(scores) - (self._cut or 0.0)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of every row, shape (n,): the likeliest, or by the operating point where one was asked for."""
        scores = self._scores(X)
        if self._cut is None:
            codes = np.argmax(np.exp(log_softmax(scores)), axis=1)
        else:
            codes = (two_class_margin(scores) - self._cut > 0).astype(np.intp)
        predicted: npt.NDArray[Any] = self.classes_[codes]
        return predicted

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Class scores of every row, shape (n, C)."""

    def _checked(self, X: Any, y: Any) -> tuple[Array, Codes]:
        """The table and the class codes of a fit, once parameters and data are found to be in order."""
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        # Data frames arrive column by column; one layout in memory means one order of sums, and the same bits.
        table = np.ascontiguousarray(check_table(self, X, reset=True, ensure_min_samples=2))
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        self.classes_, codes = class_codes(check_target(y, len(table)))
        check_two_classes(self.operating_point, self.classes_, self.alert_rate)
        return table, codes

    def _set_cut(self, codes: Codes, held_out: OutOfFold | None) -> None:
        """Turn the operating point into log-odds, by held-out rows where it names a metric or a share of them."""
        if self.alert_rate is not None:
            self._cut: float | None = cut_at_rate(self.alert_rate, held_out)
        else:
            self._cut = None if self.operating_point is None else cut_at(self.operating_point, codes, held_out)
        self.threshold_ = probability(self._cut or 0.0)
