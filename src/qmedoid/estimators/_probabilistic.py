"""What classifiers with probabilities share: the decision at an operating point, and prior shift."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._fitted import FittedClassifier
from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.inputs import class_codes
from qmedoid.estimators.number_columns import fit_numbers
from qmedoid.estimators.parameters import check_parameters
from qmedoid.estimators.weights import WeightedRows, classes_of, weighted_rows
from qmedoid.exceptions import MajorityAlertWarning, warn
from qmedoid.geometry.row_groups import part_of
from qmedoid.large.lazy_scoring import takes_collections
from qmedoid.methods.variational.selection import OutOfFold
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.decision import Decision, asked_priors
from qmedoid.model.operating_point import OperatingSummary, asked_rule, probability
from qmedoid.model.training_summary import HeldOutCurve


class ProbabilisticClassifier(FittedClassifier):
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

    operating_point: Any

    @property
    def expected_(self) -> OperatingSummary | None:
        """The operating point, with what to expect of it."""
        return self.model_.decision.operating

    @property
    def threshold_(self) -> float:
        """Probability of the positive one of two classes above which a record is called so."""
        return probability(self.model_.decision.cut or 0.0)

    @property
    def class_priors_(self) -> Array:
        """Class frequencies that the probabilities are made for, in the order of `classes_`."""
        priors = self.model_.decision.priors
        assert priors is not None, "a fit counts its classes"
        return self._in_order(priors)

    @takes_collections
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n, C), in the order of `classes_`."""
        scores = self._scores(X)
        return self._in_order(self.model_.decision.probabilities(scores))

    @takes_collections
    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second of two classes against the threshold, above 0 means the second; else scores (n, C)."""
        scores = self._scores(X)
        if len(self.classes_) > 2:
            return scores
        margins = self.model_.decision.margins(scores)
        return -margins if self._is_reversed else margins

    @takes_collections
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of every row, shape (n,): the likeliest, or by the operating point where one was asked for."""
        scores = self._scores(X)
        codes = self.model_.decision.codes(scores)
        predicted: npt.NDArray[Any] = self._in_order(self.classes_)[codes]
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
        shifted.model_ = self.model_.at_priors(new_prevalence)
        return shifted

    def at_operating_point(self, operating_point: Any) -> Self:
        """A copy that cuts elsewhere, chosen on the held-out rows of the fit; two classes only.

        Parameters
        ----------
        operating_point : None, float, str or mapping
            As the parameter of this name. `expected_` of the copy says what to expect of it.

        Notes
        -----
        It is what a fit with this operating point gives; of more than 2,048 held-out rows it is chosen among as many
        thresholds.
        """
        check_is_fitted(self)
        moved = copy.copy(self)
        moved.operating_point = operating_point
        moved.model_ = self.model_.at_operating_point(operating_point)
        return moved

    def estimate_prevalence(self, X: Any) -> PrevalenceEstimate:
        """How frequent the classes are among unlabeled rows, by EM (Saerens et al., 2002), with 95 % intervals.

        Right where the classes look as they did in training and are only more or less frequent. Pass its `priors`, in
        the order of `classes_`, to `prior_shift`.

        Parameters
        ----------
        X : array-like or data frame of shape (n, M)
            The more rows, the narrower the interval.
        """
        check_is_fitted(self)
        found = self.model_.decision.estimated_priors(self._scores(X))
        priors, low, high = (self._in_order(part) for part in (found.priors, found.low, found.high))
        return replace(found, priors=priors, low=low, high=high)

    @property
    def _is_reversed(self) -> bool:
        """Of two classes, whether the first in order is the positive one, whose code is 1."""
        return len(self.classes_) == 2 and bool(self.classes_[0] != self.model_.decision.classes[0])

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
        table = fit_numbers(self, X)
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

    def _chosen_decision(
        self, data: TrainingTable, held_out: OutOfFold | None, class_weights: Array | None = None
    ) -> tuple[Decision, HeldOutCurve | None]:
        """The decision at the operating point, which held-out rows turn into log-odds, and their curve.

        Rows of one group count as one draw, and each as much as its weight. Probabilities are for classes that are more
        frequent by `class_weights` than the rows are.
        """
        rows = np.zeros(0, dtype=np.intp) if held_out is None else held_out.judged
        scores = np.zeros((0, len(data.classes))) if held_out is None else held_out.scores[rows]
        together = part_of(data.groups, rows) if len(rows) else None
        weights, codes = None if data.weights is None else data.weights[rows], data.codes[rows]
        how = self.operating_point, data.classes.tolist(), scores, codes, together, weights
        decision, curve = Decision.chosen(*how)
        return replace(decision, priors=_priors(data, rows, class_weights)), curve


def _priors(data: TrainingTable, held_out: Codes, class_weights: Array | None) -> Array:
    """Class frequencies of the rows that made the probabilities what they are: held-out ones where there are any.

    A loss in which classes have weights makes probabilities for classes that are more frequent by these weights.
    """
    n_classes = len(data.classes)
    has_all = np.bincount(data.codes[held_out], minlength=n_classes).all()
    rows = held_out if has_all else np.arange(len(data.codes))
    counts = np.bincount(data.codes[rows], None if data.weights is None else data.weights[rows], n_classes)
    weighted = counts.astype(np.float64) * (1.0 if class_weights is None else class_weights)
    priors: Array = weighted / weighted.sum()
    return priors
