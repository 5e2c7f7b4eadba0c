"""The one-standard-error rule: of the candidates that cannot be told from the best, the simplest."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array


def one_se_order(scores: npt.ArrayLike, error: float, simplicity: Sequence[tuple[float, ...]]) -> list[int]:
    """Places of candidates in the order in which the rule prefers them.

    First those whose score is at most one standard error below the best, the simplest of them first; then the others,
    the best of them first.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Larger is better.
    error : float
        Standard error of the best score, at least 0. With 0 only the best ones are told apart by simplicity.
    simplicity : sequence of tuples
        One for each candidate, the smaller the simpler. Of equally simple ones the better is preferred, and of equally
        good ones the first.
    """
    values: Array = np.asarray(scores, dtype=np.float64)
    within = values >= values.max() - error

    def preference(place: int) -> tuple[float, ...]:
        own, loss = simplicity[place], -float(values[place])
        return (0.0, *own, loss) if within[place] else (1.0, loss, *own)

    return sorted(range(len(values)), key=preference)
