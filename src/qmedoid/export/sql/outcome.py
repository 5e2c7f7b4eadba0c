"""From outputs to a decision: calibration, priors, cut, probabilities, the class."""

from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array
from qmedoid.export.flat import FlatModel
from qmedoid.export.sql.expressions import curve, largest, times, total
from qmedoid.export.sql.stages import Stages
from qmedoid.kernels.ties import TIE
from qmedoid.methods.calibration_curve import Calibration

_LOWEST = -1e300


class Outcome(NamedTuple):
    """Names of the columns of a decision, and the class as an expression.

    Attributes
    ----------
    probabilities : list of str
        Of the second of two classes, or of every one of more; empty where there are none.
    scores : list of str
        Of every one of more than two classes.
    margin, prediction : str
    """

    probabilities: list[str]
    scores: list[str]
    margin: str
    prediction: str


def outcome(flat: FlatModel, stages: Stages, outputs: list[list[str]]) -> Outcome:
    """The decision by the outputs of the base and of every part; those without weight are empty."""
    return _of_two(flat, stages, outputs) if len(flat.biases) == 2 else _of_more(flat, stages, outputs)


def _weighted(flat: FlatModel, stages: Stages, outputs: list[list[str]], k: int) -> list[str]:
    weights = flat.weights.tolist()
    return [
        times(stages.dialect, weight, names[k])
        for weight, names in zip(weights, outputs, strict=True)
        if weight and names
    ]


def _curve(stages: Stages, calibration: Calibration, x: str) -> str:
    rises = np.append(np.diff(calibration.heights) / np.diff(calibration.knots), 0.0)
    return f"{x}+{curve(stages.dialect, x, calibration.knots, calibration.heights, rises)}"


def _straightened(flat: FlatModel, stages: Stages, straight: list[str], shift: Array | None) -> list[str]:
    """Scores after the calibration curve and at the expected priors."""
    stages.next()
    number = stages.dialect.number
    if len(flat.calibration.knots):
        straight = [stages.add("f", _curve(stages, flat.calibration, x)) for x in straight]
        stages.next()
    if shift is None:
        return straight
    moved = [stages.add("f", f"{x}+{number(one)}") for x, one in zip(straight, shift.tolist(), strict=True)]
    stages.next()
    return moved


def _of_two(flat: FlatModel, stages: Stages, outputs: list[list[str]]) -> Outcome:
    """The log-odds of the second class, and what follows from them."""
    dialect, decision, calibration = stages.dialect, flat.table.decision, flat.calibration
    number, slope = dialect.number, float(calibration.slope)
    bias = flat.biases[1] - flat.biases[0]
    terms = [number(bias), *_weighted(flat, stages, outputs, 0)]
    constant = number(calibration.biases[1] - calibration.biases[0])
    straight = [stages.add("f", f"{constant}+{times(dialect, slope, total(terms, ''))}")]
    shift = None if decision.shift is None else np.array([decision.shift.of_log_odds])
    (log_odds,) = _straightened(flat, stages, straight, shift)
    margin = stages.add("f", log_odds if decision.cut is None else f"{log_odds}-{number(decision.cut)}")
    probabilities = list[str]()
    if decision.probabilistic:
        # Of an exponent that is not positive, so that nothing overflows.
        power = dialect.exp(f"(-ABS({log_odds}))")
        name = stages.add("p", power)
        stages.next()
        one, zero = number(1.0), number(0.0)
        share = f"CASE WHEN {log_odds}<{zero} THEN {name} ELSE {one} END/({one}+{name})"
        probabilities = [stages.add("p", share)]
    even = number(TIE if decision.cut is None and decision.probabilistic else 0.0)
    first, second = (dialect.label(label) for label in decision.classes)
    return Outcome(probabilities, [], margin, f"CASE WHEN {margin}>{even} THEN {second} ELSE {first} END")


def _of_more(flat: FlatModel, stages: Stages, outputs: list[list[str]]) -> Outcome:
    """The score of every class, and what follows from them."""
    dialect, decision, calibration = stages.dialect, flat.table.decision, flat.calibration
    number, slope = dialect.number, float(calibration.slope)
    straight = list[str]()
    for c, (bias, constant) in enumerate(zip(flat.biases.tolist(), calibration.biases.tolist(), strict=True)):
        terms = [number(bias), *_weighted(flat, stages, outputs, c)]
        straight.append(stages.add("f", f"{number(constant)}+{times(dialect, slope, total(terms, ''))}"))
    shift = None if decision.shift is None else decision.shift.log_ratios
    scores = biased = _straightened(flat, stages, straight, shift)
    if decision.biases is not None:
        biased = [
            stages.add("f", f"{x}+{number(one)}") for x, one in zip(scores, decision.biases.tolist(), strict=True)
        ]
        stages.next()
    best = stages.add("l", largest(dialect, biased))
    highest = best if biased is scores else stages.add("l", largest(dialect, scores))
    stages.next()
    slack = number(TIE) if decision.probabilistic else f"{number(TIE)}*ABS({best})"
    code = _first_place(stages, biased, f"{best}-{slack}")
    place = _first_place(stages, biased, best)
    powers = [stages.add("p", dialect.exp(f"{x}-{highest}")) for x in scores] if decision.probabilistic else []
    stages.next()
    lowest = number(_LOWEST)
    rest = [f"CASE WHEN {place}={c} THEN {lowest} ELSE {x} END" for c, x in enumerate(biased)]
    margin = stages.add("f", f"{best}-{largest(dialect, rest)}")
    sum_of_powers = stages.add("p", total(powers, number(0.0)))
    stages.next()
    probabilities = [stages.add("p", f"{power}/{sum_of_powers}") for power in powers]
    cases = " ".join(f"WHEN {c} THEN {dialect.label(label)}" for c, label in enumerate(decision.classes))
    return Outcome(probabilities, scores, margin, f"CASE {code} {cases} END")


def _first_place(stages: Stages, values: list[str], least: str) -> str:
    """The number of the first value that is no smaller than another."""
    cases = " ".join(f"WHEN {x}>={least} THEN {c}" for c, x in enumerate(values))
    return stages.add("j", f"CASE {cases} END")
