"""The operating point that a user asks for in a fit, as a rule."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from qmedoid.exceptions import ParameterError
from qmedoid.metrics.class_biases import CLASS_METRICS, cost_matrix
from qmedoid.schema import shown


def asked_rule(operating_point: Any, classes: Sequence[Any]) -> tuple[str, float | None]:
    """The rule of `qmedoid.model.operating_point.RULES` that is asked for, and its number.

    Three or more classes have "macro_f1", "balanced_accuracy" and "cost", whose matrix `cost_matrix` reads.
    """
    if operating_point is None:
        return "likeliest", None
    is_rule = isinstance(operating_point, Mapping)
    name, asked = next(iter(operating_point.items())) if is_rule else (operating_point, None)
    if len(classes) > 2:
        if name == "cost" and cost_matrix(asked, list(classes)) is not None:
            return "cost", None
        if name not in CLASS_METRICS:
            raise ParameterError(
                f"'operating_point' of {len(classes)} classes is None, 'macro_f1', 'balanced_accuracy', or "
                f"{{'cost': matrix}} with a number from 0 up for each of {len(classes)} x {len(classes)} pairs of true "
                f"and called class. Got {shown(operating_point)} instead."
            )
        return name, None
    if is_rule:
        if not isinstance(asked, Real):
            raise ParameterError("'cost' of two classes is one number: a missed alert costs as many false ones.")
        return name, float(asked)
    return (operating_point, None) if isinstance(operating_point, str) else ("probability", float(operating_point))
