"""Errors of margins and probabilities: the model decides again and again with overlaps drawn within their errors."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.quantum.measurement.recorder import Decided

UNDECIDED_WITHIN = 2.0
"""A record is undecided where its margin is less than so many errors from the cut."""


class Errors(NamedTuple):
    """How far margins and probabilities may be off, for n records.

    Attributes
    ----------
    margins : root mean square change of the margin between the class decided for and the other, or the runner-up
    probabilities : of the probability of the class decided for; None where there are no probabilities
    distances : how many errors the class decided for is ahead of any other of three or more; ∞ for two
    """

    margins: Array
    probabilities: Array | None
    distances: Array

    def undecided(self, decided: Decided) -> Flags:
        """Which records are not settled: their margin, or a class that is further behind but less surely so."""
        return self.settled_by(decided) < UNDECIDED_WITHIN

    def settled_by(self, decided: Decided) -> Array:
        """How many errors each record is from another decision, shape (n,); none where that is no number."""
        by_margin = _in_errors(np.abs(decided.margins), self.margins)
        return np.nan_to_num(np.minimum(by_margin, self.distances), nan=0.0, posinf=np.inf)


def decided_errors(decided: Decided, again: Callable[[], Decided], n_draws: int) -> Errors:
    """Errors by deciding `n_draws` times again; `again` draws the overlaps anew.

    Changes are taken about the decision itself and not about their mean, so that what noise does on average, such as to
    make short distances longer, counts as well.
    """
    rows, n_classes = np.arange(len(decided.codes)), decided.scores.shape[1]
    gaps, chosen = _gaps(decided, decided.codes), _chosen(decided, decided.codes)
    of_gaps, of_probability = np.zeros_like(gaps), np.zeros(len(rows))
    for _ in range(n_draws):
        drawn = again()
        of_gaps += (_gaps(drawn, decided.codes) - gaps) ** 2
        share = _chosen(drawn, decided.codes)
        if chosen is not None and share is not None:
            of_probability += (share - chosen) ** 2
    errors = np.sqrt(of_gaps / n_draws)
    others = np.arange(n_classes) != decided.codes[:, None]
    second = np.where(others, gaps, np.inf).argmin(axis=1)
    ahead = np.where(others, _in_errors(gaps, errors), np.inf)
    distances = ahead.min(axis=1) if n_classes > 2 else np.full(len(rows), np.inf)
    probabilities = None if chosen is None else np.sqrt(of_probability / n_draws)
    return Errors(errors[rows, second], probabilities, distances)


def _in_errors(values: Array, errors: Array) -> Array:
    """Values in units of their errors: ∞ without an error, NaN where the error is no number."""
    return np.divide(values, errors, out=np.full_like(values, np.inf), where=errors != 0)


def _gaps(decided: Decided, codes: Codes) -> Array:
    """How far a class of each record is ahead of all, shape (n, C)."""
    gaps: Array = decided.scores[np.arange(len(codes)), codes][:, None] - decided.scores
    return gaps


def _chosen(decided: Decided, codes: Codes) -> Array | None:
    """Probability of a class of each record, shape (n,)."""
    return None if decided.probabilities is None else decided.probabilities[np.arange(len(codes)), codes]


LEAST_SHOTS, MOST_SHOTS = 256, 16_384
"""Fewest and most shots of a circuit that are chosen for a record; a smaller budget is the fewest itself."""

# Probability to settle a record that a shot must add at least; 1.6 % for the most shots.
_LEAST_GAIN = 1e-6


def shots_for(distances: Array, at_shots: int, budget: float) -> Codes:
    """Shots for every record, so that as many as possible are settled and the mean is within a budget.

    A margin of d errors, `distances` at `at_shots`, is settled with the probability that it is measured more than two
    errors from the cut, and d grows with the root of the shots. Records whose probability grows most for each shot get
    theirs first. Shots are powers of two between `LEAST_SHOTS` and `MOST_SHOTS`. Margins that no affordable number of
    shots settles get the fewest: shots would be wasted on them.
    """
    least = min(LEAST_SHOTS, int(2 ** max(0, int(np.log2(max(budget, 1.0))))))
    levels = least * 2 ** np.arange(int(np.log2(MOST_SHOTS // least)) + 1)
    near = np.clip(np.nan_to_num(distances, nan=0.0), 0.0, 1e6)[:, None] * np.sqrt(levels / at_shots)
    settled = ndtr(near - UNDECIDED_WITHIN)
    records, steps, rates = _hull_steps(settled, levels)
    order = np.argsort(-rates, kind="stable")
    spent = np.cumsum((levels[steps[:, 1]] - levels[steps[:, 0]])[order])
    taken = order[: np.searchsorted(spent, (budget - least) * len(distances), side="right")]
    place = np.zeros(len(distances), dtype=np.intp)
    np.maximum.at(place, records[taken], steps[taken, 1])
    return levels[place].astype(np.int64)


def _hull_steps(settled: Array, levels: Codes) -> tuple[Codes, Codes, Array]:
    """Steps from level to level of each record, each with a lower gain for every shot than the one before.

    The record of each step, from which level to which, (steps, 2), and the gain for every shot.
    """
    at = np.zeros(len(settled), dtype=np.intp)
    rows, found = np.arange(len(settled)), list[tuple[Codes, Codes, Array]]()
    for _ in range(len(levels) - 1):
        more = levels[None] - levels[at][:, None]
        gain = settled - settled[rows, at][:, None]
        rates = np.divide(gain, more, out=np.full(gain.shape, -np.inf), where=more > 0)
        best = rates.argmax(axis=1)
        useful = rows[rates[rows, best] > _LEAST_GAIN]
        found.append((useful, np.stack([at[useful], best[useful]], axis=1), rates[useful, best[useful]]))
        at[useful] = best[useful]
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))  # type: ignore[return-value]
