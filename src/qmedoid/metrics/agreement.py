"""Agreement between fits: groups of columns, medoids and decisions."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from typing import Annotated, TypedDict

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes

Group = frozenset[int]
Groups = Collection[Group]


class MarginBinDict(TypedDict):
    """Records whose margin lies within bounds, both included."""

    low: Annotated[float, "Smallest margin."]
    high: Annotated[float, "Largest margin."]
    n_rows: Annotated[int, "Rows."]
    flip_rate: Annotated[float | None, "Their mean flip rate."]


def best_matches(groups: Groups, others: Groups) -> Array:
    """For each group the largest Jaccard index |g ∩ h| / |g ∪ h| with any of the others, shape (G,); 0 without any."""
    if not groups or not others:
        return np.zeros(len(groups))
    columns = np.array(sorted(frozenset().union(*groups, *others)))
    first, second = (np.array([np.isin(columns, list(one)) for one in of], dtype=float) for of in (groups, others))
    shared = first @ second.T
    union = first.sum(axis=1)[:, None] + second.sum(axis=1)[None, :] - shared
    best: Array = (shared / union).max(axis=1)
    return best


def group_agreement(groups: Groups, others: Groups) -> float:
    """Mean Jaccard index of every group of two sets with its best match in the other set.

    1 if and only if the sets are equal (two empty ones, too), 0 if they have no column in common.
    """
    if not groups and not others:
        return 1.0
    return float(np.concatenate([best_matches(groups, others), best_matches(others, groups)]).mean())


def pair_frequencies(group_sets: Sequence[Groups]) -> dict[tuple[int, int], float]:
    """In which share of the sets two columns stand in one group, the most frequent pairs first; others have 0."""
    counts: Counter[tuple[int, int]] = Counter()
    for groups in group_sets:
        counts.update({pair for group in groups for pair in combinations(sorted(group), 2)})
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return {pair: count / len(group_sets) for pair, count in ranked}


def flip_rates(votes: npt.NDArray[np.int64], decided: Codes) -> Array:
    """Share of the votes about each record that differ from a decision, shape (n,); NaN where there are no votes.

    Parameters
    ----------
    votes : ndarray of shape (n, C)
        How many fits decided for each class.
    decided : ndarray of shape (n,)
        The class code that they are compared with.
    """
    total = votes.sum(axis=1)
    same = votes[np.arange(len(votes)), decided]
    rates = np.full(len(votes), np.nan)
    np.divide(total - same, total, out=rates, where=total > 0)
    return rates


def rates_by_margin(margins: Array, rates: Array, n_bins: int = 5) -> list[MarginBinDict]:
    """Mean flip rate in parts of equal size, from the smallest margins to the largest.

    Records of equal margin stay together, so parts may be fewer and of unequal size. Records without a rate, which is
    NaN, are left out.
    """
    rated = np.flatnonzero(np.isfinite(rates))
    if len(rated) == 0:
        return []
    margins, rates = margins[rated], rates[rated]
    edges = np.quantile(margins, np.arange(1, n_bins) / n_bins)
    part = np.searchsorted(edges, margins, side="left")
    return [
        {
            "low": float(margins[rows].min()),
            "high": float(margins[rows].max()),
            "n_rows": int(rows.sum()),
            "flip_rate": float(rates[rows].mean()),
        }
        for rows in (part == number for number in np.unique(part))
    ]


def mean_and_error(values: Iterable[float]) -> tuple[float, float | None]:
    """Mean of independent draws with its standard error s/√n; None for the error of a single draw."""
    drawn = np.array(list(values), dtype=np.float64)
    error = None if len(drawn) < 2 else float(drawn.std(ddof=1) / np.sqrt(len(drawn)))
    return float(drawn.mean()), error


def typical_distance(rows: Array, rng: np.random.Generator, n_pairs: int = 2000) -> float:
    """Median distance between two different rows, over `n_pairs` random pairs; 0 where there is one row."""
    if len(rows) < 2:
        return 0.0
    first = rng.integers(len(rows), size=n_pairs)
    second = (first + rng.integers(1, len(rows), size=n_pairs)) % len(rows)
    return float(np.median(np.sqrt(((rows[first] - rows[second]) ** 2).sum(axis=1))))
