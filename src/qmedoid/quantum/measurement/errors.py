"""Errors of margins and probabilities: the model decides again and again with overlaps drawn within their errors."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.quantum.measurement.asking import Decided

UNDECIDED_WITHIN = 2.0
"""A record is undecided where its margin is less than so many errors from the cut."""


class Errors(NamedTuple):
    """How far margins and probabilities may be off, for n records.

    Attributes
    ----------
    margins : ndarray of shape (n,)
        Root mean square change of the margin between the class decided for and the other, or the runner-up.
    probabilities : ndarray of shape (n,) or None
        Of the probability of the class decided for; None where there are no probabilities.
    distances : ndarray of shape (n,)
        How many errors the class decided for is ahead of any other of three or more; ∞ for two.
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
