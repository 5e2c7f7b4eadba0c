"""Class scores for classes that are more or less frequent than they were in training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.metrics.prevalence import PrevalenceEstimate, estimate_prevalence, estimate_priors


@dataclass(frozen=True, eq=False)
class PriorShift:
    """What is added to class scores, log(new/old) of each class.

    Attributes
    ----------
    priors : ndarray of shape (C,)
        The new priors; they add up to 1.
    log_ratios : ndarray of shape (C,)
    """

    priors: Array
    log_ratios: Array

    @classmethod
    def to(cls, training: Array, priors: Array) -> "PriorShift":
        """The shift from the training priors to others."""
        return cls(priors, np.log(priors) - np.log(training))

    @staticmethod
    def estimated(training: Array, scores: Array) -> PrevalenceEstimate:
        """The most likely priors of records by their class scores at the training priors."""
        if len(training) == 2:
            return estimate_prevalence(scores[:, 1] - scores[:, 0], float(training[1]))
        return estimate_priors(log_softmax(scores), training)

    @property
    def prevalence(self) -> float:
        """The new prior of the last class: of two, the second."""
        return float(self.priors[-1])

    @property
    def of_log_odds(self) -> float:
        """What is added to the log-odds of the second of two classes."""
        return float(self.log_ratios[1] - self.log_ratios[0])

    def apply(self, scores: Array) -> Array:
        """Class scores at the new priors, shape (n, C)."""
        shifted: Array = scores + self.log_ratios
        return shifted


def asked_priors(asked: Any, classes: Sequence[Any]) -> Array:
    """Priors of all classes, from what a user gives: one number of two classes, a mapping, or one of each class.

    Raises
    ------
    ParameterError
        They are not above 0, do not add up to 1, or are not one for each class.
    """
    if isinstance(asked, np.ndarray) and asked.ndim == 0:
        asked = asked.item()
    if isinstance(asked, Real) and not isinstance(asked, bool):
        if len(classes) != 2:
            raise ParameterError(
                f"One prevalence says how frequent the second of two classes is, and there are {len(classes)}. Pass a "
                "dict of class to prior, or a list with one for each class."
            )
        given = [1.0 - float(asked), float(asked)]
    elif isinstance(asked, Mapping):
        unknown = [label for label in asked if label not in classes]
        missing = [label for label in classes if label not in asked]
        if unknown or missing:
            what = f"names {unknown[0]!r}, which is no class" if unknown else f"lacks the class {missing[0]!r}"
            raise ParameterError(f"The new prevalence {what}. The classes are {list(classes)[:10]}.")
        given = [_number(asked[label], asked) for label in classes]
    else:
        given = [_number(value, asked) for value in np.ravel(np.asarray(asked, dtype=object)).tolist()]
        if len(given) != len(classes):
            raise ParameterError(
                f"The new prevalence must be a number, a dict of class to prior, or one prior for each of the "
                f"{len(classes)} classes. Got {asked!r} instead."
            )
    priors = np.array(given)
    if not ((priors > 0) & (priors <= 1)).all() or abs(priors.sum() - 1.0) > 1e-6:
        raise ParameterError(
            f"Priors of classes must be above 0 and below 1 and add up to 1. Got {asked!r} instead: a class that does "
            "not occur at all has no odds to shift to."
        )
    # Beside a class that hardly occurs, as an estimate may have it, another rounds to 1: it stays a little below.
    return np.asarray(np.minimum(priors / priors.sum(), 1.0 - np.finfo(np.float64).epsneg))


def _number(value: Any, asked: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(f"Priors of classes must be numbers. Got {asked!r} instead.")
    return float(value)
