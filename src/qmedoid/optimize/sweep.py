"""The sweep of α with the center of its plateau (algorithm 10), and the one-standard-error rule.

The rule takes the simplest candidate whose score is within a standard error of the best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array

ALPHA_GRID: tuple[float, ...] = tuple(i / 20 for i in range(21))


@dataclass(frozen=True)
class Sweep:
    """Scores along a grid and the point chosen: `best` is the index of `value` in `grid`."""

    grid: Array
    scores: Array
    best: int

    @property
    def value(self) -> float:
        """The chosen grid point."""
        return float(self.grid[self.best])

    @property
    def score(self) -> float:
        """The score at the chosen grid point."""
        return float(self.scores[self.best])


def alpha_sweep(objective: Callable[[float], float], grid: Sequence[float] = ALPHA_GRID) -> Sweep:
    """Score every α of a rising grid and take the centre of the plateau of best scores."""
    points = np.asarray(grid, dtype=np.float64)
    scores = np.array([objective(float(alpha)) for alpha in points])
    return Sweep(points, scores, plateau_centre(scores))


def plateau_centre(scores: Array) -> int:
    """Index in the middle of the longest run of best scores; of equal runs the last, of two middles the later one.

    A point well inside a plateau is the safest choice among equals. Later points lean on the distance channel,
    which is the one that is measured directly.
    """
    best = np.flatnonzero(scores == scores.max())
    runs = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    longest = max(runs, key=lambda run: (len(run), run[-1]))
    return int(longest[len(longest) // 2])


def one_se_order(scores: npt.ArrayLike, error: float, simplicity: Sequence[tuple[float, ...]]) -> list[int]:
    """Places of candidates in the order in which the rule prefers them.

    First those whose score is at most one standard error below the best, the simplest of them first; then the others,
    the best of them first.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Larger is better.
    error : float
        Standard error of the best score, at least 0. With 0, simplicity decides among the best ones only.
    simplicity : sequence of tuples
        One for each candidate, the smaller the simpler. Of equally simple ones the better is preferred, and of equally
        good ones the first.
    """
    values: Array = np.asarray(scores, dtype=np.float64)
    within = values >= values.max() - error

    def preference(place: int) -> tuple[float, ...]:
        simple, loss = simplicity[place], -float(values[place])
        return (0.0, *simple, loss) if within[place] else (1.0, loss, *simple)

    return sorted(range(len(values)), key=preference)
