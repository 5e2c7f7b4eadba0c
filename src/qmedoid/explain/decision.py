"""Explanation of one decision: contributions that add up to the margin (fact 20).

With w the class that won and o the one it is compared with, the margin is a difference of calibrated scores, b_w − b_o
+ β·(s_o − s_w), where s are the dissimilarities of the method, which has the contributions of columns, of groups of
columns and of training rows to s_o − s_w. Calibration, circuit, prevalence and operating point are other terms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.methods.contributions import GroupContribution, RowContribution
from qmedoid.methods.part import CLOSED_FORM, refuse_overflow
from qmedoid.model.importance import check_explained
from qmedoid.model.model import Model

# Parts of terms up to this size are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class DecisionParts:
    """What the decision about one record is made of.

    Attributes
    ----------
    winner, other : int
        Codes of the class that won and of the one it is compared with: the other of two, else the next best.
    margin : float
        By how much the winner is ahead, in the units of the class scores.
    columns : ndarray of shape (M,)
        Contribution of each encoded column to the margin; above 0 is for the winner.
    groups : tuple of GroupContribution
        The same by group of columns: they add up to what `columns` add up to.
    terms : mapping of str to float
        The other terms; with the columns, or with the groups, they add up to the margin.
    start : float
        The part of the terms that is the same for every record: the intercept, the biases of the calibrations and the
        expected prevalence, without the operating point.
    varying : mapping of str to float
        What is left of the terms, where it is not 0: what they say of this record. The start, the columns, these and
        the operating point add up to the margin.
    neighbors : tuple of RowContribution
        The neighbors that the term ``"neighbors"`` is the sum of, where the model has one.
    by_circuit : bool
        Whether the circuit decided.
    nearest : ndarray of shape (C,)
        Place of the nearest medoid of each class.
    distances, angles : ndarray of shape (C,)
        To that medoid.
    """

    winner: int
    other: int
    margin: float
    columns: Array
    groups: tuple[GroupContribution, ...]
    terms: Mapping[str, float]
    start: float
    varying: Mapping[str, float]
    neighbors: tuple[RowContribution, ...]
    by_circuit: bool
    nearest: Codes
    distances: Array
    angles: Array


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def explain(model: Model, columns: Sequence[npt.NDArray[Any]], pair: tuple[int, int] | None = None) -> DecisionParts:
    """Explain the decision about one record from its encoded columns, each of shape (1,).

    With a `pair` of class codes the first is explained against the second, whichever won: the margin may be below 0.
    """
    check_explained(model)
    decided = model.decide(columns)
    found = replace(model, backends=CLOSED_FORM).score(columns, channels=True)
    assert found.nearest is not None, "there are medoids"
    scores, winner = decided.scores[0], int(decided.codes[0])
    winner, other = pair or (winner, int(model.decision.runners_up(decided.scores, decided.codes)[0]))
    calibration, refinement = model.calibration, model.refinement
    calibrated = calibration.apply(found.scores)[0]
    row = np.column_stack(list(columns)).astype(np.float64)
    last = None if refinement is None else refinement.recalibration
    # In units of the last scores: a calibration after the circuit stretches all that comes before it.
    stretch = 1.0 if last is None else last.slope
    shares = model.contributions(row, winner, other, unit=model.slope)
    shift = model.decision.shift
    prevalence = 0.0 if shift is None else float(shift.log_ratios[winner] - shift.log_ratios[other])
    # For two classes the cut is taken off the score of the second.
    cut, biases = model.decision.cut or 0.0, model.decision.biases
    cut = cut * (1.0 if winner == 0 else -1.0) if biases is None else float(biases[winner] - biases[other])
    added = calibration.biases + calibration.curve_part(found.scores)[0]
    constant = {"prevalence": prevalence, "calibration": stretch * _ahead(calibration.biases, winner, other)}
    moved = 0.0
    if refinement is not None and last is not None:
        before = replace(model, refinement=replace(refinement, recalibration=None))
        refined = -before.class_scores(model.score(columns, channels=True))[0]
        moved = float(np.diff((last.biases + last.curve_part(refined))[0, [other, winner]])[0])
        constant["recalibration"] = _ahead(last.biases, winner, other)
    circuit = (scores[winner] - scores[other]) - stretch * (calibrated[winner] - calibrated[other]) - prevalence - moved
    terms = dict(shares.terms) | {
        "calibration": float(stretch * (added[winner] - added[other])),
        "circuit": float(circuit),
        **({} if last is None else {"recalibration": moved}),
        "prevalence": prevalence,
        "operating point": cut,
    }
    constant["intercept"] = terms.get("intercept", 0.0)
    # Differences of equal numbers leave rounding behind.
    varying = {name: value - constant.get(name, 0.0) for name, value in terms.items() if name != "operating point"}
    contributions = [share.contribution for share in shares.groups]
    channels = found.channels
    refuse_overflow(contributions, list(terms.values()), channels.distance[0], channels.angle[0])
    return DecisionParts(
        winner=winner,
        other=other,
        margin=float(scores[winner] - scores[other] + cut),
        columns=shares.columns,
        groups=shares.groups,
        terms=terms,
        start=sum(constant.values()),
        varying={name: value for name, value in varying.items() if abs(value) > _ROUNDING},
        neighbors=shares.neighbors,
        by_circuit=bool(decided.by_circuit[0]),
        nearest=found.nearest[0],
        distances=channels.distance[0],
        angles=channels.angle[0],
    )


def _ahead(scores: Array, winner: int, other: int) -> float:
    """By how much one class is ahead of the other in these scores, shape (C,)."""
    return float(scores[winner] - scores[other])
