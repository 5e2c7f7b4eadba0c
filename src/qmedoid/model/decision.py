"""The decision: class scores to classes, margins and probabilities, by priors, operating point and cut.

The only place where scores become decisions: estimators, saved models and services all ask it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ModelError, ParameterError, warn
from qmedoid.geometry.row_groups import draws_per_row
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.kernels.ties import TIE, first_largest_of_rows, merged
from qmedoid.metrics.prevalence import PrevalenceEstimate, estimate_priors, log_odds_histogram, prevalence_of
from qmedoid.metrics.thresholds import cost_matrix, counts_at, fit_class_biases, is_number
from qmedoid.model.contract import Label
from qmedoid.model.operating_point import (
    Counts,
    OperatingSummary,
    asked_rule,
    budgets_on_rows,
    chosen_cut,
    curve_counts,
    curve_rows,
    cut_on_curve,
    probability,
)
from qmedoid.model.training_summary import HeldOutCurve
from qmedoid.schema import MODERATE, Values
from qmedoid.spelling import did_you_mean


@dataclass(frozen=True, eq=False)
class PriorShift:
    """What is added to class scores, log(new/old) of each class.

    Attributes
    ----------
    priors : ndarray of shape (C,)
        The new priors; they add up to 1.
    log_ratios : ndarray of shape (C,)
    """

    priors: Annotated[Array, Values("classes", above=0, below=1)]
    log_ratios: Annotated[Array, Values("classes")]

    @classmethod
    def to(cls, training: Array, priors: Array) -> "PriorShift":
        """The shift from the training priors to others."""
        return cls(priors, np.log(priors) - np.log(training))

    @property
    def prevalence(self) -> float:
        """The new prior of the last class: of two, the second."""
        return float(self.priors[-1])

    @property
    def of_log_odds(self) -> float:
        """What is added to the log-odds of the second of two classes."""
        return float(self.log_ratios[1] - self.log_ratios[0])


@dataclass(frozen=True, eq=False)
class Decision:
    """How class scores become decisions.

    Attributes
    ----------
    classes : tuple
        Class labels in the order of their codes; of two, the second is the positive one.
    cut : float or None
        Log-odds above which a record is called the second of two classes; None decides for the highest score.
    probabilistic : bool
        Whether the softmax of the scores is a probability.
    priors : ndarray of shape (C,) or None
        The class frequencies for which the probabilities were made; None where they are not known.
    shift : PriorShift or None
        What is added to the scores where other priors are expected.
    operating : OperatingSummary or None
        The operating point of two classes, with its expected figures.
    biases : ndarray of shape (C,) or None
        Added to the scores of three or more classes before the highest decides; probabilities stay as they are.
    """

    classes: tuple[Label, ...]
    cut: float | None = None
    probabilistic: bool = True
    priors: Annotated[Array | None, Values("classes", above=0, below=1)] = None
    shift: PriorShift | None = None
    operating: OperatingSummary | None = None
    biases: Annotated[Array | None, Values("classes", largest=MODERATE)] = None

    @classmethod
    def chosen(
        cls,
        operating_point: Any,
        classes: Sequence[Any],
        scores: Array,
        codes: Codes,
        groups: Codes | None = None,
        weights: Array | None = None,
    ) -> tuple["Decision", HeldOutCurve | None]:
        """The decision by an operating point on held-out rows, without priors, and their curve.

        Rows, of which there may be none, have scores (n, C). Those of one group count as one draw, and each as much as
        its weight; rows that have weights have no curve.
        """
        rule, asked = asked_rule(operating_point, classes)
        again = slice(None) if weights is None else _copies(weights)
        if len(classes) > 2:
            biases = None
            if rule != "likeliest" and not len(scores):
                warn("No row was held out to choose class biases by: the likeliest class is called.")
            elif rule != "likeliest":
                cost = cost_matrix(operating_point["cost"], list(classes)) if rule == "cost" else None
                biases = fit_class_biases(scores[again], codes[again], rule, cost)
            return cls(tuple(classes), biases=biases), None
        positive, margins, curve, counts, share = codes == 1, np.zeros(0), None, None, 1.0
        if len(scores):
            margins = merged(scores[:, 1] - scores[:, 0])
            curve = HeldOutCurve.of(positive, margins) if weights is None else None
        cut = chosen_cut(rule, asked, positive[again], margins[again])
        if len(scores):
            counts = Counts(**counts_at(positive, margins, cut, weights))
            share = draws_per_row(groups, weights)
        operating = OperatingSummary(rule, asked, cut, counts, draws_per_row=share)
        return cls(tuple(classes), None if rule == "likeliest" else cut, operating=operating), curve

    @property
    def expected_priors(self) -> Array | None:
        """The class frequencies for which `shifted_scores` are made."""
        return self.priors if self.shift is None else self.shift.priors

    def decide(self, scores: Array) -> tuple[Codes, Array, Array]:
        """Class codes (n,), shifted scores (n, C) and margins (n,) from scores at the training priors."""
        scores = self.shifted_scores(scores)
        margins = self.margins(scores)
        return self.codes(scores, margins), scores, margins

    def shifted_scores(self, scores: Array) -> Array:
        """Class scores at the expected priors, from those at the training priors, shape (n, C)."""
        return scores if self.shift is None else scores + self.shift.log_ratios

    def margins(self, scores: Array) -> Array:
        """Decision margins of shifted scores, shape (n,).

        For two classes the log-odds of the second minus the cut, above 0 for the second; for more the best score minus
        the next, biases included.
        """
        if len(self.classes) == 2:
            margins: Array = scores[:, 1] - scores[:, 0]
            return margins if self.cut is None else margins - self.cut
        ranked = np.sort(self.biased(scores), axis=1)
        return np.asarray(ranked[:, -1] - ranked[:, -2])

    def biased(self, scores: Array) -> Array:
        """Shifted scores with the biases of the classes, the highest of which decides, shape (n, C)."""
        return scores if self.biases is None else scores + self.biases

    def codes(self, scores: Array, margins: Array | None = None) -> Codes:
        """Class code of every row of shifted scores, shape (n,); of classes that are equal up to rounding the first."""
        if len(self.classes) == 2:
            margins = self.margins(scores) if margins is None else margins
            even = TIE if self.cut is None and self.probabilistic else 0.0
            return (margins > even).astype(np.intp)
        if not self.probabilistic:
            return first_largest_of_rows(scores)
        scores = self.biased(scores)
        # Probabilities within a share TIE of the largest are scores within TIE of the largest.
        return np.asarray((scores >= scores.max(axis=1, keepdims=True) - TIE).argmax(axis=1))

    def runners_up(self, scores: Array, codes: Codes) -> Codes:
        """The class that each decided one is compared with, shape (n,): the other of two, else the next best."""
        others = np.where(np.arange(len(self.classes)) == codes[:, None], -np.inf, self.biased(scores))
        return np.asarray(others.argmax(axis=1))

    def probabilities(self, scores: Array) -> Array:
        """Class probabilities of shifted scores, shape (n, C)."""
        probabilities: Array = np.exp(log_softmax(scores))
        return probabilities

    def probabilities_of_second(self, scores: Array) -> Array:
        """The second column of `probabilities` of two classes, bit for bit, in half the time."""
        first, second = scores[:, 0], scores[:, 1]
        highest = np.maximum(first, second)
        first, second = first - highest, second - highest
        probabilities: Array = np.exp(second - np.log(np.exp(first) + np.exp(second)))
        return probabilities

    def at_priors(self, new_prevalence: Any) -> "Decision":
        """A copy adjusted to new class priors (label shift).

        A cut that was chosen on out-of-fold rows by alert rate, precision, recall or a metric moves along, so that the
        same records are picked; the likelier class, a given probability and a cost stay at their probability.

        Parameters
        ----------
        new_prevalence : float, mapping or array-like of shape (C,)
            The prior of the second of two classes, or of every class, by label or in the order of their codes.
        """
        shift = PriorShift.to(self.known_priors(), asked_priors(new_prevalence, self.classes))
        if self.operating is None:
            before = 0.0 if self.shift is None else self.shift.log_ratios
            # Biases move along, so that the same records are called each class.
            biases = None if self.biases is None else self.biases - (shift.log_ratios - before)
            return replace(self, shift=shift, biases=biases)
        before = 0.0 if self.shift is None else self.shift.of_log_odds
        operating = self.operating.at_prevalence(shift.prevalence, shift.of_log_odds - before)
        return replace(self, shift=shift, operating=operating, cut=None if self.cut is None else operating.log_odds)

    def at_operating_point(self, operating_point: Any, curve: HeldOutCurve | None) -> "Decision":
        """A copy that cuts elsewhere, by the curve of held-out rows; expected priors stay as they are.

        Parameters
        ----------
        operating_point : None, float, str or mapping
            The likelier class, a probability, a metric to maximize, or one of ``{"alert_rate": …}``,
            ``{"min_precision": …}``, ``{"min_recall": …}`` and ``{"cost": …}``.
        curve : HeldOutCurve or None
            At the training priors.
        """
        self.check_cuttable()
        return self._at(cut_on_curve(*asked_rule(operating_point, self.classes), curve), curve)

    def at_log_odds(self, log_odds: float, curve: HeldOutCurve | None) -> "Decision":
        """A copy that cuts at log-odds of the expected priors, with what the curve of held-out rows says of it."""
        self.check_cuttable()
        plain = OperatingSummary("probability", probability(log_odds), log_odds)
        if self.shift is None and curve is not None:
            plain = replace(plain, counts=curve_counts(curve, log_odds))
        return self._at(plain, curve)

    def expected_at(self, operating: OperatingSummary, curve: HeldOutCurve | None) -> OperatingSummary:
        """An operating point at the training priors, as it is at the expected ones, with its draws per row."""
        if self.operating is not None:
            operating = replace(operating, draws_per_row=self.operating.draws_per_row)
        if self.shift is not None:
            operating = operating.at_prevalence(self.shift.prevalence, self.shift.of_log_odds)
            if operating.counts is None and curve is not None:
                operating = replace(operating, counts=curve_counts(curve, operating.log_odds - self.shift.of_log_odds))
        return operating

    def budgets(self, budgets: Iterable[Any], curve: HeldOutCurve | None) -> list[tuple[str, OperatingSummary]]:
        """Budgets of alerts as texts, with what each means on the held-out rows of a fit, at the expected priors."""
        self.check_cuttable()
        if curve is None:
            raise DataError("This model holds no curve of held-out rows to spend a budget on: give labeled rows.")
        spent = budgets_on_rows(budgets, *curve_rows(curve), curve)
        return [(text, self.expected_at(plain, curve)) for text, plain in spent]

    def _at(self, plain: OperatingSummary, curve: HeldOutCurve | None) -> "Decision":
        operating = self.expected_at(plain, curve)
        return replace(self, operating=operating, cut=None if operating.rule == "likeliest" else operating.log_odds)

    def check_cuttable(self) -> None:
        """Raise where there are no two classes with probabilities to cut at."""
        if not self.probabilistic:
            raise ModelError("This model has no probabilities to cut at: fit a MedoidClassifier.")
        if len(self.classes) != 2:
            raise ModelError(
                f"The cut of {len(self.classes)} classes is chosen on out-of-fold scores, which a model does not keep: "
                "fit it again with the operating point."
            )

    def estimated_priors(self, scores: Array) -> PrevalenceEstimate:
        """The class priors among unlabeled records, by EM on their shifted scores."""
        at_training = scores if self.shift is None else scores - self.shift.log_ratios
        training = self.known_priors()
        if len(training) == 2:
            return prevalence_of(log_odds_histogram(at_training[:, 1] - at_training[:, 0]), float(training[1]))
        return estimate_priors(log_softmax(at_training), training)

    def known_priors(self) -> Array:
        """The training priors; raise where there are none."""
        if not self.probabilistic:
            raise ModelError(
                "This model has no probabilities that another prevalence could change: fit a MedoidClassifier."
            )
        if self.priors is None:
            raise ModelError(
                "This model was saved without the class frequencies it was made for, so that nothing is known of "
                "another prevalence: fit and save it again."
            )
        return self.priors


# Copies of a row of mean weight where held-out rows are repeated in proportion to their weights, and rows in all.
_COPIES, _MOST_ROWS = 20, 2_000_000


def _copies(weights: Array) -> Codes:
    """Indices of rows, repeated in proportion to their weights: a row of weight 1 about 20 times."""
    total = max(len(weights), min(_COPIES * len(weights), _MOST_ROWS))
    ends = np.round(np.cumsum(weights) * (total / weights.sum())).astype(np.intp)
    return np.repeat(np.arange(len(weights)), np.diff(ends, prepend=0))


def asked_priors(asked: Any, classes: Sequence[Any]) -> Array:
    """Priors of all classes, from what a user gives: one number of two classes, a mapping, or one of each class.

    Raises
    ------
    ParameterError
        They are not above 0, do not add up to 1, or are not one for each class.
    """
    if isinstance(asked, Mapping):
        unknown = [label for label in asked if label not in classes]
        missing = [label for label in classes if label not in asked]
        if unknown or missing:
            what = f"names {unknown[0]!r}, which is no class" if unknown else f"lacks the class {missing[0]!r}"
            hint = did_you_mean(unknown[0], classes) if unknown else ""
            raise ParameterError(f"The new prevalence {what}.{hint} The classes are {list(classes)[:10]}.")
        given = [asked[label] for label in classes]
    else:
        values = np.asarray(asked, dtype=object)
        given = np.ravel(values).tolist()
        if values.ndim == 0 and len(classes) == 2 and is_number(given[0]):
            given = [1.0 - float(given[0]), *given]
    if len(given) != len(classes) or not all(map(is_number, given)):
        raise ParameterError(
            "The new prevalence must be how frequent the second of two classes is, a dict of class to prior, or one "
            f"prior for each of the {len(classes)} classes, all of them numbers. Got {asked!r} instead."
        )
    priors = np.array(given, dtype=np.float64)
    if not ((priors > 0) & (priors <= 1)).all() or abs(priors.sum() - 1.0) > 1e-6:
        raise ParameterError(
            f"Priors of classes must be above 0 and below 1 and add up to 1. Got {asked!r} instead: a class that does "
            "not occur at all has no odds to shift to."
        )
    # If an estimate gives one class next to nothing, another rounds to 1: it stays a little below.
    return np.asarray(np.minimum(priors / priors.sum(), 1.0 - np.finfo(np.float64).epsneg))
