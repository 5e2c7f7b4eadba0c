"""How many shots records get: as many for all, or more where they settle more records."""

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ParameterError
from qmedoid.quantum.measurement.chances import chance_below
from qmedoid.quantum.measurement.errors import UNDECIDED_WITHIN

LEAST_SHOTS, MOST_SHOTS = 256, 16_384
"""Fewest and most shots of a circuit that are chosen for a record; a smaller budget is the fewest itself."""

MOST_ALLOWED = 1_000_000
"""Shots of a circuit that are taken at most: a job of a simulator has a bit of every shot and qubit in memory."""

# Probability to settle a record that a shot must add at least; 1.6 % for the most shots.
_LEAST_GAIN = 1e-6


def check_shots(shots: int | str) -> None:
    """Raise unless `shots` is a number of shots or ``"auto"``."""
    if shots == "auto":
        return
    if isinstance(shots, bool) or not isinstance(shots, int | np.integer) or not 1 <= shots <= MOST_ALLOWED:
        raise ParameterError(
            f"The 'shots' parameter must be an int from 1 to {MOST_ALLOWED:,}, or 'auto'. Got {shots!r} instead."
        )


def flat_shots(budget: float) -> int:
    """The most shots for all alike that a budget allows, a power of two."""
    return int(2 ** max(0, int(np.log2(max(budget, 1.0)))))


def shots_for(distances: Array, at_shots: int, budget: float) -> Codes:
    """Shots for every record, so that as many as possible are settled and the mean is within a budget.

    A margin of d errors is settled with the probability that it is measured more than two errors from the cut, and d
    grows with the root of the shots. Records whose probability grows most for each shot get theirs first.

    Parameters
    ----------
    distances : ndarray of shape (n,)
        Margins in units of their expected errors at `at_shots`.
    at_shots : int
    budget : float
        Mean shots of a record.

    Returns
    -------
    ndarray of shape (n,)
        Powers of two between `LEAST_SHOTS` and `MOST_SHOTS`. Margins that no affordable number of shots settles get
        the fewest: shots would be wasted on them.
    """
    least = min(LEAST_SHOTS, flat_shots(budget))
    levels = least * 2 ** np.arange(int(np.log2(MOST_SHOTS // least)) + 1)
    near = np.clip(np.nan_to_num(distances, nan=0.0), 0.0, 1e6)[:, None] * np.sqrt(levels / at_shots)
    settled = chance_below(near - UNDECIDED_WITHIN)
    records, steps, rates = _hull_steps(settled, levels)
    order = np.argsort(-rates, kind="stable")
    spent = np.cumsum((levels[steps[:, 1]] - levels[steps[:, 0]])[order])
    taken = order[: np.searchsorted(spent, (budget - least) * len(distances), side="right")]
    place = np.zeros(len(distances), dtype=np.intp)
    np.maximum.at(place, records[taken], steps[taken, 1])
    return levels[place].astype(np.int64)


def _hull_steps(settled: Array, levels: Codes) -> tuple[Codes, Codes, Array]:
    """Steps from level to level of each record, each with a lower gain for every shot than the one before.

    Returns
    -------
    records : ndarray of shape (steps,)
    steps : ndarray of shape (steps, 2)
        From which level to which.
    rates : ndarray of shape (steps,)
        Gain for every shot.
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
