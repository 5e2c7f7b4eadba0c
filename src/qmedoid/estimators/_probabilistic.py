"""Probabilities and operating points: what classifiers with class scores share."""

import copy
import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.estimators._inputs import check_table, check_target, class_codes, loss_weights
from qmedoid.estimators._parameters import Constraint, check_parameters
from qmedoid.exceptions import DataError, MajorityAlertWarning, ParameterError, warn
from qmedoid.geometry.row_groups import draws_per_row, part_of
from qmedoid.kernels.ties import merged
from qmedoid.metrics.operating_points import at_cost, at_precision, at_recall, most_precise
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.metrics.thresholds import counts_at, steady_threshold, threshold_at_rate
from qmedoid.model.decision import Decision, PriorShift
from qmedoid.model.operating_point import Counts, OperatingSummary, probability
from qmedoid.model.training_summary import HeldOutCurve, TrainingSummary
from qmedoid.variational.selection import OutOfFold, two_class_margin

# Rules that cut where labels of both classes say.
_NEED_BOTH = ("min_precision", "min_recall", "cost")


@dataclass(frozen=True)
class Rule:
    """A rule of `qmedoid.model.operating_point.RULES`, and the number that was asked for."""

    name: str
    asked: float | None = None

    def cut(self, positive: Flags, margins: Array) -> float:
        """The log-odds above which a record is called the second class, by rows whose class is known."""
        asked = 0.5 if self.asked is None else self.asked
        match self.name:
            case "likeliest":
                return 0.0
            case "probability":
                return math.log(asked) - math.log1p(-asked)
            case "alert_rate":
                return threshold_at_rate(margins, asked)
            case "min_recall":
                return at_recall(positive, margins, asked).threshold
            case "cost":
                return at_cost(positive, margins, asked).threshold
            case "min_precision":
                try:
                    return at_precision(positive, margins, asked).threshold
                except DataError:
                    return most_precise(positive, margins).threshold
        return steady_threshold(positive.astype(np.intp), margins, self.name)

    @property
    def needs_rows(self) -> bool:
        """Whether held-out rows say where to cut."""
        return self.name not in ("likeliest", "probability")

    def can_cut(self, positive: Flags) -> bool:
        """Whether these rows say where."""
        return not self.needs_rows or (len(positive) > 0 and (self.name not in _NEED_BOTH or len(set(positive)) == 2))


def asked_rule(operating_point: Any, n_classes: int) -> Rule:
    """The rule that an operating point asks for; raise where there are more than two classes."""
    if operating_point is None:
        return Rule("likeliest")
    if n_classes > 2:
        raise ParameterError(
            f"'operating_point' cuts the probability of one of two classes, and there are {n_classes}. "
            "Use operating_point=None."
        )
    if isinstance(operating_point, Mapping):
        ((name, asked),) = operating_point.items()
        return Rule(name, float(asked))
    return Rule(operating_point) if isinstance(operating_point, str) else Rule("probability", float(operating_point))


def warn_on_majority(rule: Rule, codes: Codes, classes: npt.NDArray[Any]) -> None:
    """Warn where a share of alerts goes to the more frequent of two classes, which few mean."""
    share = float((codes == 1).mean())
    if rule.name == "alert_rate" and share > 0.5:
        first, second = classes.tolist()
        warn(
            f"The alert rate is spent on {second!r}, the second class in order, which {100 * share:.3g} % of the rows "
            f"are of. If alerts are to be of {first!r}, pass a y in which it is the second in order, such as "
            f"y == {first!r}, or use a MedoidClassifier, which takes the positive class.",
            MajorityAlertWarning,
        )


def held_out_curve(codes: Codes, held_out: OutOfFold | None) -> HeldOutCurve | None:
    """True and false positives of held-out rows by threshold; None for more than two classes or without such rows."""
    rows = np.zeros(0, dtype=np.intp) if held_out is None else held_out.judged
    if held_out is None or len(rows) == 0 or held_out.scores.shape[1] != 2:
        return None
    return HeldOutCurve.of(codes[rows] == 1, merged(two_class_margin(held_out.scores[rows])))


def operating_summary(
    rule: Rule, codes: Codes, held_out: OutOfFold | None, groups: Codes | None = None
) -> OperatingSummary:
    """Where a rule cuts, and what it did to held-out rows; rows of one group count as one draw.

    Where no rows were held out that could say, the cut is at even odds; a floor that is out of reach is replaced by the
    nearest that is not.
    """
    rows = np.zeros(0, dtype=np.intp) if held_out is None else held_out.judged
    if held_out is None or len(rows) == 0:
        if rule.needs_rows:
            warn("No row was held out to choose the threshold by: it stays at even odds.")
            return OperatingSummary(rule.name, rule.asked, 0.0)
        return OperatingSummary(rule.name, rule.asked, rule.cut(np.zeros(0, dtype=np.bool_), np.zeros(0)))
    positive, margins = codes[rows] == 1, merged(two_class_margin(held_out.scores[rows]))
    if rule.can_cut(positive):
        cut = rule.cut(positive, margins)
        _warn_out_of_reach(rule, positive, margins, cut)
    else:
        warn(f"All {len(rows):,} held-out rows are of one class: the threshold stays at even odds.")
        cut = 0.0
    share = draws_per_row(part_of(groups, rows))
    return OperatingSummary(
        rule.name, rule.asked, cut, Counts(**counts_at(positive, margins, cut)), draws_per_row=share
    )


def _warn_out_of_reach(rule: Rule, positive: Flags, margins: Array, cut: float) -> None:
    """Say what can be reached where the rule asks for more than held-out rows have."""
    if rule.name == "min_precision" and rule.asked is not None:
        try:
            at_precision(positive, margins, rule.asked)
        except DataError as error:
            warn(f"{error} The threshold of this best precision is used.")
    if rule.name == "alert_rate" and not (margins > cut).any():
        warn(
            f"An alert rate of {rule.asked:g} is less than one of the {len(margins):,} held-out rows, or their highest "
            "scores are equal: the threshold is their highest score, and alerts will be rarer than asked for."
        )


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
    operating_point: Any
    classes_: npt.NDArray[Any]
    class_priors_: Array
    threshold_: float
    expected_: OperatingSummary | None
    decision_: Decision

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n, C)."""
        scores = self._shifted_scores(X)
        return self.decision_.probabilities(scores)

    def decision_function(self, X: Any) -> Array:
        """Log-odds of the second of two classes against the threshold, above 0 means the second; else scores (n, C)."""
        scores = self._shifted_scores(X)
        return scores if len(self.classes_) > 2 else self.decision_.margins(scores)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Class of every row, shape (n,): the likeliest, or by the operating point where one was asked for."""
        scores = self._shifted_scores(X)
        predicted: npt.NDArray[Any] = self._classes_by_code[self.decision_.codes(scores)]
        return predicted

    @property
    def _classes_by_code(self) -> npt.NDArray[Any]:
        """The labels in the order of their codes; of two, the second is the positive one."""
        return self.classes_

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
        # Data frames arrive column by column; one layout in memory means one order of sums, and the same bits.
        table = np.ascontiguousarray(check_table(self, X, reset=True, ensure_min_samples=2))
        self.classes_, codes = class_codes(check_target(y, len(table)))
        warn_on_majority(asked_rule(self.operating_point, len(self.classes_)), codes, self.classes_)
        return table, codes

    def _set_cut(self, codes: Codes, held_out: OutOfFold | None, groups: Codes | None = None) -> None:
        """Turn the operating point into log-odds by held-out rows, and keep what it did to them."""
        self._training = TrainingSummary.of_numbers(len(codes), self.n_features_in_, held_out_curve(codes, held_out))
        priors, cut, expected = self._probability_priors(codes, held_out), None, None
        if len(self.classes_) == 2:
            rule = asked_rule(self.operating_point, 2)
            expected = operating_summary(rule, codes, held_out, groups)
            cut = None if rule.name == "likeliest" else expected.log_odds
        self._set_decision(Decision(tuple(self._classes_by_code.tolist()), cut, priors=priors, operating=expected))

    def _set_decision(self, decision: Decision) -> None:
        """Keep a decision, and what users read of it."""
        assert decision.priors is not None, "a fit knows its priors"
        self.decision_, self.class_priors_ = decision, decision.priors
        self.expected_ = decision.operating
        self.threshold_ = probability(decision.cut or 0.0)

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
