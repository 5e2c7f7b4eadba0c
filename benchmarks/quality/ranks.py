"""Ranks of the methods over tables: averages, the critical difference after Nemenyi, and Friedman's test."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range

from benchmarks.quality.figures import MEASURES, METHODS, SMALLER, STRONG, Figures, Place, by_group, by_size
from benchmarks.quality.ours import OURS
from benchmarks.quality.rivals import RIVALS
from qmedoid.arrays import Array

Line = dict[str, object]
LEVEL = 0.05
THREE = (OURS, *STRONG)


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks by the mean of a measure over the splits that all methods share; 1 is best, and ties share.

    Attributes
    ----------
    measure : str
    methods : tuple of str
    places : list of Place
        Where all of them were run.
    ranks : ndarray of shape (places, methods)
    """

    measure: str
    methods: tuple[str, ...]
    places: list[Place]
    ranks: Array

    @classmethod
    def of(cls, figures: Figures, measure: str, places: Sequence[Place], methods: Sequence[str]) -> "Ranks":
        """Ranks over some places; those where one of the methods is missing are left out."""
        sign = 1.0 if measure in SMALLER else -1.0
        found = {place: figures.values(place, methods, measure) for place in places}
        # Means that differ in rounding alone are the same.
        ranks = [rankdata(np.round(sign * own.mean(axis=1), 9)) for own in found.values() if own is not None]
        complete = [place for place, own in found.items() if own is not None]
        return cls(measure, tuple(methods), complete, np.array(ranks).reshape(len(complete), len(methods)))

    @property
    def average(self) -> dict[str, float]:
        """Average rank of each method."""
        return dict(zip(self.methods, self.ranks.mean(axis=0).tolist(), strict=True))

    @property
    def critical(self) -> float:
        """Average ranks of two methods that differ by less than this are level, after Nemenyi, at the 5 % level."""
        k, n = len(self.methods), len(self.places)
        return float(studentized_range.ppf(1 - LEVEL, k, np.inf) / math.sqrt(2) * math.sqrt(k * (k + 1) / (6 * n)))

    @property
    def friedman(self) -> float | None:
        """Chance of ranks as different as these where no method is better than another."""
        if len(self.places) < 2 or len(self.methods) < 3 or (self.ranks == self.ranks[:, :1]).all():
            return None
        return float(friedmanchisquare(*self.ranks.T).pvalue)


def run_at(figures: Figures, places: Sequence[Place]) -> tuple[str, ...]:
    """Methods of all sizes of some places that were run at most of them: an unfinished run leaves out methods."""
    largest = max(place.size for place in places)
    allowed = [name for name in METHODS if name == OURS or RIVALS[name].most >= largest]
    return tuple(name for name in allowed if sum(bool(figures.of(place, name)) for place in places) > len(places) / 2)


def rank_table(figures: Figures) -> list[Line]:
    """Average ranks by measure, size and group of tables: among all methods, and among ours and the strong rivals."""
    lines: list[Line] = []
    for measure, title in MEASURES.items():
        for size, places in by_size(figures.places).items():
            for group, members in by_group(places).items():
                for among, methods in (("all", run_at(figures, places)), ("three", THREE)):
                    found = Ranks.of(figures, measure, members, methods)
                    if OURS not in methods or not found.places:
                        continue
                    lines.append(
                        {
                            "measure": title,
                            "size": size,
                            "group": group,
                            "among": among,
                            "tables": len(found.places),
                            **{name: found.average.get(name, "") for name in METHODS},
                            "critical difference": found.critical,
                            "Friedman p": "" if found.friedman is None else found.friedman,
                        }
                    )
    return lines
