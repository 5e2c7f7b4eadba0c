"""What classifiers with class scores share: the checks of a fit, probabilities, and where they are cut."""

import copy
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._class_weights import loss_weights
from qmedoid.estimators._operating_point import (
    OPERATING_CONSTRAINTS,
    asked_rule,
    held_out_curve,
    operating_summary,
    warn_on_majority,
)
from qmedoid.estimators._parameters import Constraint, check_parameters
from qmedoid.estimators._tables import check_table
from qmedoid.estimators._targets import check_target, class_codes
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.decision import Decision, PriorShift
from qmedoid.model.operating_point import OperatingSummary, probability
from qmedoid.model.training_summary import TrainingSummary
from qmedoid.variational.selection import OutOfFold


class ProbabilisticClassifier(ClassifierMixin, BaseEstimator):
    """A classifier whose class scores have a softmax that is a probability, with an operating point if asked for.

    Attributes
    ----------
    threshold_ : float
        Probability of the second of two classes above which a record is called so.
    expected_ : OperatingSummary or None
        The operating point with precision, recall and alert rate on held-out rows; None for more than two classes.
    class_priors_ : ndarray of shape (C,)
        The class frequencies for which the probabilities were made.
    """

    _constraints: ClassVar[Mapping[str, Constraint]]
    classes_: npt.NDArray[Any]
    class_priors_: Array
    threshold_: float
    expected_: OperatingSummary | None
    decision_: Decision

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n, C)."""
        return self.decision_.probabilities(self._shifted_scores(X))

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second of two classes against the threshold, above 0 means the second; else scores (n, C)."""
        scores = self._shifted_scores(X)
        return scores if len(self.classes_) > 2 else self.decision_.margins(scores)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of every row, shape (n,): the likeliest, or by the operating point where one was asked for."""
        predicted: npt.NDArray[Any] = self.classes_[self.decision_.codes(self._shifted_scores(X))]
        return predicted

    def prior_shift(self, new_prevalence: Any) -> Self:
        """The same classifier where the classes are as frequent as said, and look the same otherwise.

        Parameters
        ----------
        new_prevalence : float, mapping or array-like of shape (C,)
            How frequent the second of two classes is, or every class, by label or in the order of `classes_`.

        Returns
        -------
        A copy; this one is left as it is. Shifting it again starts from the training priors.

        Notes
        -----
        Scores get log(new/old) added, class by class. Where the likelier class, a given probability or a cost decides,
        the threshold stays the same probability, and other records may be called positive. A threshold that was chosen
        on held-out rows by alert rate, precision, recall or a metric moves along: the same records are called
        positive, and with another prevalence they are so with another precision and at another rate.
        """
        check_is_fitted(self)
        shifted = copy.copy(self)
        shifted._set_decision(self.decision_.at_priors(new_prevalence))
        return shifted

    def estimate_prevalence(self, X: Any) -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled rows, by EM (Saerens et al., 2002), with 95 % intervals.

        Right where the classes look as they did in training and are only more or less frequent. Pass its `priors` to
        `prior_shift`.

        Parameters
        ----------
        X : array-like or data frame of shape (n, M)
            The more rows, the narrower the interval.
        """
        check_is_fitted(self)
        return PriorShift.estimated(self.class_priors_, self._scores(X))

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Class scores of every row at the training priors, shape (n, C)."""

    def _shifted_scores(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.decision_.shifted_scores(self._scores(X))

    def _checked(self, X: Any, y: Any) -> tuple[Array, Codes]:
        """The table and the class codes of a fit, once parameters and data are found to be in order."""
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        check_parameters(type(self).__name__, self._operating_parameters(), OPERATING_CONSTRAINTS)
        # Data frames arrive column by column; one layout in memory means one order of sums, and the same bits.
        table = np.ascontiguousarray(check_table(self, X, reset=True, ensure_min_samples=2))
        if y is None:
            raise ValueError(f"This {type(self).__name__} estimator requires y to be passed, but the target y is None.")
        self.classes_, codes = class_codes(check_target(y, len(table)))
        warn_on_majority(asked_rule(self._operating_parameters(), self.classes_), codes, self.classes_)
        return table, codes

    def _set_cut(self, codes: Codes, held_out: OutOfFold | None, groups: Codes | None = None) -> None:
        """Turn the operating point into log-odds by held-out rows, and keep what it did to them."""
        self._training = TrainingSummary.of_numbers(len(codes), self.n_features_in_, held_out_curve(codes, held_out))
        priors, cut, expected = self._probability_priors(codes, held_out), None, None
        if len(self.classes_) == 2:
            rule = asked_rule(self._operating_parameters(), self.classes_)
            expected = operating_summary(rule, codes, held_out, groups)
            cut = None if rule.name == "likeliest" else expected.log_odds
        self._set_decision(Decision(tuple(self.classes_.tolist()), cut, priors=priors, operating=expected))

    def _set_decision(self, decision: Decision) -> None:
        """Keep a decision, and what users read of it."""
        assert decision.priors is not None, "a fit knows its priors"
        self.decision_, self.class_priors_ = decision, decision.priors
        self.expected_ = decision.operating
        self.threshold_ = probability(decision.cut or 0.0)

    def _operating_parameters(self) -> dict[str, Any]:
        """What says where to cut; not every classifier has all of these parameters."""
        return {name: getattr(self, name, None) for name in OPERATING_CONSTRAINTS}

    def _probability_priors(self, codes: Codes, held_out: OutOfFold | None) -> Array:
        """Class frequencies of the rows that made the probabilities what they are: held-out ones where there are any.

        A loss in which classes have weights makes probabilities for classes that are more frequent by these weights.
        """
        n_classes = len(self.classes_)
        counts = np.bincount(codes, minlength=n_classes)
        if held_out is not None:
            judged = np.bincount(codes[held_out.judged], minlength=n_classes)
            counts = judged if judged.all() else counts
        class_weight = getattr(self, "class_weight", None)
        weighted = counts * loss_weights(class_weight, codes, self.classes_)
        priors: Array = weighted / weighted.sum()
        return priors
