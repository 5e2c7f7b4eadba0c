"""What fitted classifiers share: probabilities, the decision at an operating point, and prior shift."""

import copy
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._inputs import check_table, class_codes
from qmedoid.estimators._operating import asked_rule, chosen_cut
from qmedoid.estimators._parameters import Constraint, check_parameters
from qmedoid.estimators._weights import WeightedRows, classes_of, copies_for, weighted_rows
from qmedoid.exceptions import MajorityAlertWarning, warn
from qmedoid.geometry.row_groups import draws_per_row, part_of
from qmedoid.kernels.ties import merged
from qmedoid.metrics.class_biases import cost_matrix, fit_class_biases
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.metrics.thresholds import counts_at
from qmedoid.model.decision import Decision, PriorShift, asked_priors
from qmedoid.model.operating_point import Counts, OperatingSummary, probability
from qmedoid.model.training_summary import HeldOutCurve, TrainingSummary
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
        The class frequencies for which the probabilities were made, in the order of `classes_`.
    """

    _constraints: ClassVar[Mapping[str, Constraint]]
    operating_point: Any
    classes_: npt.NDArray[Any]
    # Of two classes, whether the first in order is the positive one, whose code is 1.
    _is_reversed: bool = False

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n, C), in the order of `classes_`."""
        scores = self._shifted_scores(X)
        return self._in_order(self.decision_.probabilities(scores))

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second of two classes against the threshold, above 0 means the second; else scores (n, C)."""
        scores = self._shifted_scores(X)
        if len(self.classes_) > 2:
            return scores
        margins = self.decision_.margins(scores)
        return -margins if self._is_reversed else margins

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of every row, shape (n,): the likeliest, or by the operating point where one was asked for."""
        scores = self._shifted_scores(X)
        predicted: npt.NDArray[Any] = self._in_order(self.classes_)[self.decision_.codes(scores)]
        return predicted

    def prior_shift(self, new_prevalence: Any) -> Self:
        """A copy adjusted to new class priors (label shift).

        Parameters
        ----------
        new_prevalence : float, mapping or array-like of shape (C,)
            How frequent the class of interest of two is (`positive` of a `MedoidClassifier`, else the second), or every
            class, by label or in the order of `classes_`.

        Notes
        -----
        Scores get log(new/old) added, class by class. Where the likelier class, a given probability or a cost decides,
        the threshold stays the same probability, and other records may be called positive. A threshold that was chosen
        on held-out rows by alert rate, precision, recall or a metric moves along: the same records are called
        positive, and with another prevalence they are so with another precision and at another rate. Shifting the copy
        again starts from the training priors.
        """
        check_is_fitted(self)
        if not isinstance(new_prevalence, Mapping | float | int):
            new_prevalence = self._in_order(asked_priors(new_prevalence, self.classes_.tolist()))
        shifted = copy.copy(self)
        shifted._set_decision(self.decision_.at_priors(new_prevalence))
        return shifted

    def estimate_prevalence(self, X: Any) -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled rows, by EM (Saerens et al., 2002), with 95 % intervals.

        Right where the classes look as they did in training and are only more or less frequent. Pass its `priors`, in
        the order of `classes_`, to `prior_shift`.

        Parameters
        ----------
        X : array-like or data frame of shape (n, M)
            The more rows, the narrower the interval.
        """
        scores = self._scores(X)
        found = PriorShift.estimated(self.decision_.known_priors(), scores)
        priors, low, high = (self._in_order(part) for part in (found.priors, found.low, found.high))
        return replace(found, priors=priors, low=low, high=high)

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Class scores of every row at the training priors, by code, shape (n, C); raise where it is not fitted."""

    def _shifted_scores(self, X: Any) -> Array:
        scores = self._scores(X)
        return self.decision_.shifted_scores(scores)

    def _in_order(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Values of the classes (..., C) in the order of `classes_` from that of their codes, or the other way."""
        return values[..., ::-1] if self._is_reversed else values

    def _checked(
        self, X: Any, y: Any, sample_weight: Any = None, class_weight: Any = None
    ) -> tuple[Array, Codes, WeightedRows]:
        """The table of a fit, once parameters and data are found to be in order; its weighted rows, and their classes.

        Rows without weight are left out before classes are counted.
        """
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)
        # Data frames arrive column by column; one layout in memory means one order of sums, and the same bits.
        table = np.ascontiguousarray(check_table(self, X, reset=True, ensure_min_samples=2))
        classes, given = class_codes(y, len(table))
        weighted = weighted_rows(sample_weight, class_weight, given, classes)
        self.classes_, codes = classes_of(classes, given, weighted.rows)
        rule, _ = asked_rule(self.operating_point, self.classes_.tolist())
        share = float((codes == 1).mean())
        if rule == "alert_rate" and share > 0.5:  # few mean the more frequent class
            first, second = self.classes_.tolist()
            warn(
                f"The alert rate is spent on {second!r}, the second class in order, which {100 * share:.3g} % of the "
                f"rows are of. If alerts are to be of {first!r}, pass a y in which it is the second in order, such as "
                f"y == {first!r}, or use a MedoidClassifier, which takes the positive class.",
                MajorityAlertWarning,
            )
        return table, codes, weighted

    def _set_cut(
        self,
        codes: Codes,
        held_out: OutOfFold | None,
        groups: Codes | None = None,
        weights: Array | None = None,
        *,
        class_weights: Array | None = None,
    ) -> None:
        """Turn the operating point into log-odds by held-out rows, and keep what it did to them.

        Rows of one group count as one draw, and each as much as its weight. Probabilities are for classes that are more
        frequent by `class_weights` than the rows are.
        """
        rows = np.zeros(0, dtype=np.intp) if held_out is None else held_out.judged
        curve, cut, expected, biases = None, None, None, None
        if len(self.classes_) == 2:
            rule, asked = asked_rule(self.operating_point, self.classes_.tolist())
            positive, margins, own = codes[rows] == 1, np.zeros(0), None if weights is None else weights[rows]
            if held_out is not None and len(rows):
                margins = merged(held_out.scores[rows, 1] - held_out.scores[rows, 0])
                curve = HeldOutCurve.of(positive, margins) if own is None else None
            if rule == "probability" and asked is not None:
                cut = math.log(asked) - math.log1p(-asked)
            elif rule != "likeliest":
                again = slice(None) if own is None else copies_for(own)
                cut = chosen_cut(rule, asked or 0.0, positive[again], margins[again])
            log_odds = cut or 0.0
            counts = Counts(**counts_at(positive, margins, log_odds, own)) if len(rows) else None
            share = draws_per_row(part_of(groups, rows), own) if len(rows) else 1.0
            expected = OperatingSummary(rule, asked, log_odds, counts, draws_per_row=share)
        elif self.operating_point is not None:
            biases = self._class_biases(codes, held_out, rows, weights)
        self._training = TrainingSummary.of_numbers(len(codes), self.n_features_in_, curve)
        labels = tuple(self._in_order(self.classes_).tolist())
        decision = Decision(
            labels, cut, priors=self._priors(codes, rows, class_weights, weights), operating=expected, biases=biases
        )
        self._set_decision(decision)

    def _class_biases(
        self, codes: Codes, held_out: OutOfFold | None, rows: Codes, weights: Array | None
    ) -> Array | None:
        """Biases of three or more classes by held-out rows."""
        labels = self.classes_.tolist()
        rule, _ = asked_rule(self.operating_point, labels)
        if held_out is None or not len(rows):
            warn("No row was held out to choose class biases by: the likeliest class is called.")
            return None
        cost = cost_matrix(self.operating_point["cost"], labels) if rule == "cost" else None
        rows = rows if weights is None else rows[copies_for(weights[rows])]
        return fit_class_biases(held_out.scores[rows], codes[rows], rule, cost)

    def _set_decision(self, decision: Decision) -> None:
        """Keep a decision, and what users read of it."""
        assert decision.priors is not None, "a fit counts its classes"
        self.decision_, self.class_priors_ = decision, self._in_order(decision.priors)
        self.expected_ = decision.operating
        self.threshold_ = probability(decision.cut or 0.0)

    def _priors(self, codes: Codes, held_out: Codes, class_weights: Array | None, weights: Array | None) -> Array:
        """Class frequencies of the rows that made the probabilities what they are: held-out ones where there are any.

        A loss in which classes have weights makes probabilities for classes that are more frequent by these weights.
        """
        counts, judged = (np.bincount(rows, minlength=len(self.classes_)) for rows in (codes, codes[held_out]))
        weighted = np.asarray(judged if judged.all() else counts, dtype=np.float64)
        if weights is not None:
            rows = held_out if judged.all() else np.arange(len(codes))
            weighted = np.bincount(codes[rows], weights[rows], len(self.classes_)).astype(np.float64)
        if class_weights is not None:
            weighted = weighted * class_weights
        priors: Array = weighted / weighted.sum()
        return priors
