"""The search for a configuration: coordinate descent (algorithm 7), the sweep of α (algorithm 10), and a choice.

The descent is progressive in the subset size. The choice is by the one-standard-error rule, which takes the simplest
candidate whose score is within a standard error of the best.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError

Subset = tuple[int, ...]
Configuration = tuple[Subset, ...]


class ConfigurationObjective(Protocol):
    """What the descent asks: how good a configuration is, and how good it would be with one subset replaced.

    The objective keeps the current configuration, so that it can reuse everything a replacement leaves alone.
    """

    def start(self, configuration: Configuration) -> float:
        """Make `configuration` the current one and return its score."""

    def scores(self, anchor: int, subsets: Sequence[Subset]) -> Array:
        """Scores of the current configuration with the subset of this anchor replaced by each of these."""

    def commit(self, anchor: int, subset: Subset) -> None:
        """Replace the subset of this anchor for good."""


class DescentStep(NamedTuple):
    """One evaluation: the start of a size (`anchor` is None) or one candidate subset of one anchor."""

    size: int
    sweep: int
    anchor: int | None
    subset: Subset | None
    score: float
    accepted: bool


@dataclass(frozen=True)
class Record:
    """The best configuration found for one subset size."""

    size: int
    configuration: Configuration
    score: float

    @property
    def n_columns(self) -> int:
        """Columns of all subsets together, each as often as it is used."""
        return sum(map(len, self.configuration))


@dataclass
class DescentResult:
    """Records by rising subset size, every evaluation in order, and whether the search was cut short."""

    records: list[Record] = field(default_factory=list)
    trace: list[DescentStep] = field(default_factory=list)
    interrupted: bool = False

    def ranked(self) -> list[Record]:
        """Records from best to worst; of equal scores the smaller size comes first."""
        return sorted(self.records, key=lambda record: (-record.score, record.size))


def coordinate_descent(
    objective: ConfigurationObjective,
    members: Sequence[Sequence[int]],
    sizes: Sequence[int],
    *,
    max_passes: int = 2,
    candidate_budget: int | None = None,
    rng: np.random.Generator,
    progress: Callable[[int, int, float], bool | None] | None = None,
) -> DescentResult:
    """Improve one anchor's subset at a time until a pass over all anchors changes nothing.

    Parameters
    ----------
    objective : ConfigurationObjective
        Scores configurations; larger is better.
    members : sequence of sequences of int
        The group of each anchor, the anchor first.
    sizes : sequence of int
        Subset sizes k in rising order. The best configuration of one size, padded, starts the next.
    max_passes : int
        Passes over the anchors for each size. 0 only scores the starting configuration.
    candidate_budget : int or None
        Maximum number of candidate subsets per anchor visit, drawn at random where there are more.
    rng : numpy.random.Generator
        Source of the draws; unused without a budget.
    progress : callable or None
        Called after every anchor visit with the size, the pass and the best score of the size. A true answer ends the
        search with the best so far.

    Returns
    -------
    DescentResult
        An interruption (Ctrl-C, or a true answer from `progress`) is not lost work: what was found is returned
        with `interrupted` set.
    """
    if not sizes:
        raise ParameterError("The range of subset sizes is empty: give at least one size k >= 1.")
    result = DescentResult()
    current = [tuple(group[:1]) for group in members]
    for size in sizes:
        for anchor, group in enumerate(members):
            # The first members at the start; later the subset before, padded with the next ones.
            kept = list(current[anchor][:size] if result.records else group[:size])
            current[anchor] = tuple([*kept, *(f for f in group if f not in kept)][:size])
        try:
            best = objective.start(tuple(current))
        except KeyboardInterrupt:
            if not result.records:  # nothing has been scored yet, so there is nothing to keep
                raise
            result.interrupted = True
            break
        result.trace.append(DescentStep(size, 0, None, None, best, True))
        try:
            for sweep in range(1, max_passes + 1):
                before = best
                for anchor, group in enumerate(members):
                    candidates = candidate_subsets(group, size, budget=candidate_budget, rng=rng)
                    candidates = [subset for subset in candidates if set(subset) != set(current[anchor])]
                    scores = objective.scores(anchor, candidates) if candidates else np.zeros(0)
                    top = int(np.argmax(scores)) if candidates else -1
                    accepted = bool(candidates) and bool(scores[top] > best)
                    result.trace += [
                        DescentStep(size, sweep, anchor, subset, float(score), accepted and i == top)
                        for i, (subset, score) in enumerate(zip(candidates, scores, strict=True))
                    ]
                    if accepted:
                        # Kept before it is committed: an interrupt during the commit must not lose it.
                        current[anchor], best = candidates[top], float(scores[top])
                        objective.commit(anchor, candidates[top])
                    if progress is not None and progress(size, sweep, best):
                        raise KeyboardInterrupt
                if best == before:
                    break
        except KeyboardInterrupt:
            result.interrupted = True
        result.records.append(Record(size, tuple(current), best))
        if result.interrupted:
            break
    return result


def candidate_subsets(
    members: Sequence[int], size: int, *, budget: int | None, rng: np.random.Generator
) -> list[Subset]:
    """Distinct subsets of a group that hold the anchor, in lexicographic order of the members.

    All of them, or `budget` drawn without replacement; the many that are not drawn are never listed.
    """
    anchor, *others = dict.fromkeys(members)
    chosen = min(size, len(others) + 1) - 1
    count = math.comb(len(others), chosen)
    if budget is None or count <= budget:
        combinations: Iterator[tuple[int, ...]] = itertools.combinations(others, chosen)
    else:
        combinations = (_combination(others, chosen, rank) for rank in _distinct_ranks(count, budget, rng))
    return [(anchor, *combination) for combination in combinations]


def _distinct_ranks(count: int, budget: int, rng: np.random.Generator) -> list[int]:
    """`budget` distinct whole numbers below `count`, rising; `count` may be larger than any machine integer."""
    if count <= np.iinfo(np.int64).max:
        return sorted(int(rank) for rank in rng.choice(count, size=budget, replace=False, shuffle=False))
    ranks: set[int] = set()
    while len(ranks) < budget:
        ranks.add(int.from_bytes(rng.bytes(count.bit_length() // 8 + 8)) % count)
    return sorted(ranks)


def _combination(items: Sequence[int], chosen: int, rank: int) -> tuple[int, ...]:
    """Combination number `rank` in lexicographic order."""
    picked: list[int] = []
    for index, item in enumerate(items):
        below = math.comb(len(items) - index - 1, chosen - len(picked) - 1) if len(picked) < chosen else 0
        if rank < below:
            picked.append(item)
        else:
            rank -= below
    return tuple(picked)


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
    """Score every α of a rising grid and take the middle of the longest run of best scores.

    A point well inside a plateau is the safest choice among equals. Of equal runs the last is taken, of two middles the
    later one: they lean on the distance channel, which is the one that is measured directly.
    """
    points = np.asarray(grid, dtype=np.float64)
    scores = np.array([objective(float(alpha)) for alpha in points])
    best = np.flatnonzero(scores == scores.max())
    runs = np.split(best, np.flatnonzero(np.diff(best) > 1) + 1)
    longest = max(runs, key=lambda run: (len(run), run[-1]))
    return Sweep(points, scores, int(longest[len(longest) // 2]))
