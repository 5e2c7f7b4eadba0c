"""Class weights as users give them, turned into factors on fusion scores (the smallest wins) or on losses."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.channels import printed_multipliers, prior_multipliers

AUTO_EXPONENTS = (0.0, 0.25, 0.5)
CLASS_WEIGHTS = ("auto", "balanced", "printed")


@dataclass(frozen=True)
class ClassWeight:
    """A way to give class weights; whether a dict fits the classes is asked when they are known."""

    words: tuple[str, ...] = CLASS_WEIGHTS

    def allows(self, value: Any) -> bool:
        """Whether the value is such a way."""
        return value is None or isinstance(value, Mapping) or (isinstance(value, str) and value in self.words)

    def __str__(self) -> str:
        return "None, a dict of class to weight, or one of " + ", ".join(map(repr, self.words))


def multiplier_options(class_weight: Any, codes: Codes, classes: npt.NDArray[Any]) -> list[Array]:
    """Multipliers to choose from, the first being the one that the search uses; the way must be allowed."""
    priors = np.bincount(codes, minlength=len(classes)) / len(codes)
    if class_weight is None:
        return [np.ones(len(classes))]
    if isinstance(class_weight, Mapping):
        return [_from_mapping(class_weight, classes)]
    if class_weight == "auto":
        return [prior_multipliers(priors, exponent) for exponent in AUTO_EXPONENTS]
    if class_weight == "balanced":
        return [prior_multipliers(priors, 1.0)]
    return [printed_multipliers(priors)]


def loss_weights(class_weight: Any, codes: Codes, classes: npt.NDArray[Any]) -> Array:
    """Weight of every class in a loss: equal for all rows, the same total for every class, or as given."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, Mapping):
        return 1.0 / _from_mapping(class_weight, classes)
    counts = np.bincount(codes, minlength=len(classes))
    return np.asarray(len(codes) / (len(classes) * counts))


def _from_mapping(weights: Mapping[Any, float], classes: npt.NDArray[Any]) -> Array:
    unknown = [label for label in weights if label not in classes.tolist()]
    if unknown:
        raise ParameterError(
            f"'class_weight' names {unknown[0]!r}, which is not a class. The classes are {classes.tolist()[:10]}."
        )
    for label, weight in weights.items():
        if not (isinstance(weight, Real) and 1e-300 < float(weight) < 1e300):
            raise ParameterError(
                f"Every weight in 'class_weight' must be a number between 1e-300 and 1e300. "
                f"Got {weight!r} for class {label!r} instead."
            )
    return 1.0 / np.array([float(weights.get(label, 1.0)) for label in classes.tolist()])
