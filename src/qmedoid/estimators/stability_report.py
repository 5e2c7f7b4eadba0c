"""The stability report: how decisions, groups of columns and medoids change on other rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.documents import (
    DecisionStabilityDict,
    GroupStabilityDict,
    MedoidStabilityDict,
    StabilityDict,
)
from qmedoid.markup.page import render
from qmedoid.metrics.agreement import (
    best_matches,
    flip_rates,
    group_agreement,
    mean_and_error,
    pair_frequencies,
    rates_by_margin,
)

NO_GROUPS = "Groups: nothing can be said, as the classifier has no groups of 2 or more, but not all, columns."
NO_MEDOIDS = "Medoids: nothing can be said, as the classifier compares records with no real ones."
NO_MARGINS = "Margins: nothing can be said, as the classifier has neither decision values nor probabilities."
NO_SPREAD = "Spread of probabilities: nothing can be said, as the classifier has no probabilities."
NO_VOTES = "Decisions: nothing can be said, as every row was in the sample of every refit."
LISTED_ROWS = 10
"""Maximum number of the least stable rows that are named."""


@dataclass(frozen=True, eq=False)
class StabilityReport:
    """Everything that `stability` found; what cannot be said is None, and has a sentence in `notes`.

    Attributes
    ----------
    n_rows, n_bootstraps : int
    classes : tuple
    decisions : dict
        ``flip_rate``, the expected share of decisions about unseen rows that differ from the fit of all rows, with its
        standard error ``flip_error``; ``never_flipped``, the share of the rows that no refit decides otherwise;
        ``rows_without_votes``; ``by_margin``, flip rates in fifths of the rows from the smallest margins to the
        largest; ``mean_spread``, the mean standard deviation of probabilities over refits; and ``least_stable``, the
        rows of the highest flip rates.
    groups : dict or None
        Agreement of the groups of columns: ``with_full_fit`` and ``between_refits`` (1 is the same groups, 0 no column
        in common), ``pairs_kept`` and ``pairs_by_chance``, and each of the ``groups`` of the fit of all rows.
    medoids : dict or None
        How many ``medoids`` there are, how often they are ``kept``, how far the nearest one is ``moved`` if not, and
        how far it would be ``by_chance``; and each of them, unless they are many.
    flip_rates : ndarray of shape (n,)
        Of every row, the share of the refits without it that decide otherwise; NaN where all had it.
    notes : tuple of str

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> from qmedoid import NearestMedoidClassifier, stability
    >>> model = NearestMedoidClassifier(max_passes=1, random_state=0)
    >>> report = stability(model, X, y, n_bootstraps=2, random_state=0)
    >>> report.n_rows, report.decisions["flip_rate"] < 0.2
    (150, True)
    """

    n_rows: int
    n_bootstraps: int
    classes: tuple[Any, ...]
    decisions: DecisionStabilityDict
    groups: GroupStabilityDict | None
    medoids: MedoidStabilityDict | None
    flip_rates: Array
    notes: tuple[str, ...]

    def as_dict(self) -> StabilityDict:
        """The report as plain values, fit for JSON."""
        return {
            "rows": self.n_rows,
            "bootstraps": self.n_bootstraps,
            "classes": list(self.classes),
            "groups": self.groups,
            "medoids": self.medoids,
            "decisions": self.decisions,
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        return render("notebook/stability.html", title="Stability", found=self.as_dict())


def number(value: float) -> float | None:
    """A number for JSON, which has no NaN and no infinity."""
    return float(value) if np.isfinite(value) else None


def group_stability(
    found: Sequence[frozenset[frozenset[int]] | None], columns: Sequence[str]
) -> GroupStabilityDict | None:
    """The groups of the fit of all rows, which come first, compared with those of the refits."""
    sets = [groups for groups in found if groups is not None]
    if len(sets) < len(found) or not any(sets):
        return None
    full, refits = sets[0], sets[1:]
    groups, pairs = sorted(full, key=sorted), pair_frequencies(refits)
    best = np.array([best_matches(groups, others) for others in refits]).mean(axis=0).tolist()
    own = {pair for group in groups for pair in combinations(sorted(group), 2)}
    return {
        "with_full_fit": float(np.mean([group_agreement(full, others) for others in refits])),
        "between_refits": float(np.mean([group_agreement(*pair) for pair in combinations(refits, 2)] or [1.0])),
        "pairs_kept": float(np.mean([pairs.get(pair, 0.0) for pair in own])) if own else None,
        "pairs_by_chance": sum(pairs.values()) / comb(len(columns), 2),
        "groups": [
            {
                "columns": [columns[column] for column in sorted(group)],
                "kept": float(np.mean([group in others for others in refits])),
                "best_match": match,
            }
            for group, match in zip(groups, best, strict=True)
        ],
    }


def decision_stability(
    votes: npt.NDArray[np.int64],
    flips: Sequence[float],
    decided: Codes,
    classes: Sequence[Any],
    labels: npt.NDArray[Any],
    rows: Codes,
    margins: Array | None,
    spread: Array | None,
) -> tuple[DecisionStabilityDict, Array]:
    """What votes of refits about each row and class say, with the flip rate of every row.

    Parameters
    ----------
    votes : ndarray of shape (n, C)
    flips : sequence of float
        Share of the decisions of each refit that flipped.
    decided : ndarray of shape (n,)
        Class codes that the fit of all rows decides for.
    classes : sequence
    labels, rows : ndarray of shape (n,)
    margins : ndarray of shape (n,) or None
        How far the fit of all rows was from another decision.
    spread : ndarray of shape (n,) or None
        Standard deviation, over refits, of the probability of the class decided for; NaN for fewer than two.
    """
    rates, n_votes = flip_rates(votes, decided), votes.sum(axis=1)
    mean, error = mean_and_error(flips) if len(flips) else (float("nan"), None)
    known = rates[np.isfinite(rates)]
    # The rows of the highest flip rates; of equal ones those of more votes, then of smaller margins.
    near = np.zeros(len(rates)) if margins is None else margins
    order = np.lexsort((near, -n_votes, -np.nan_to_num(rates)))[:LISTED_ROWS]
    others = np.where(np.arange(votes.shape[1]) == decided[:, None], -1, votes).argmax(axis=1)
    spreads = np.full(len(rates), np.nan) if spread is None else spread
    known_spreads = spreads[np.isfinite(spreads)]
    return {
        "flip_rate": number(mean),
        "flip_error": error,
        "never_flipped": float(np.mean(known == 0)) if len(known) else None,
        "rows_without_votes": int((n_votes == 0).sum()),
        "by_margin": None if margins is None else rates_by_margin(margins, rates),
        "mean_spread": float(known_spreads.mean()) if len(known_spreads) else None,
        "least_stable": [
            {
                "row": int(rows[place]),
                "label": labels[place : place + 1].tolist()[0],
                "decided": classes[decided[place]],
                "otherwise": classes[others[place]],
                "flip_rate": float(rates[place]),
                "n_votes": int(n_votes[place]),
                "margin": None if margins is None else float(margins[place]),
                "spread": number(spreads[place]),
            }
            for place in order[np.nan_to_num(rates[order]) > 0].tolist()
        ],
    }, rates
