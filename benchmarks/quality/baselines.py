"""Families of classifiers that are tuned by scores: what the payments need."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.studies.cells import scores_of
from qmedoid.arrays import Array, Codes

FOLDS = 3
Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """One kind of classifier and the settings it is tuned over.

    Attributes
    ----------
    make : callable (seed, **setting) -> classifier
    settings : tuple of dict
    trees : tuple of int
        For boosted trees: the numbers of trees that are tried of each fit, whose first trees are a smaller model.
    trials : dict
        What differs while settings are compared: a forest of half the trees ranks them as well.
    """

    make: Callable[..., Any]
    settings: tuple[dict[str, Any], ...]
    trees: tuple[int, ...] = ()
    trials: Setting = field(default_factory=dict)

    def scored(self, setting: Setting, X: Array, y: Codes, X_new: Array, seed: int) -> Iterator[tuple[Setting, Array]]:
        """Fit once, and give the scores of other rows for each setting that the fit holds."""
        if not self.trees:
            yield setting, scores_of(self.make(seed, **{**setting, **self.trials}).fit(X, y), X_new)
            return
        grown = self.make(seed, **setting, n_estimators=max(self.trees)).fit(X, y)
        for trees in self.trees:
            yield {**setting, "n_estimators": trees}, boosted_scores(grown, X_new, trees)


def boosted_scores(grown: Any, X: Array, trees: int | None = None) -> Array:
    """Log-odds, or one score per class, of boosted trees or of the first of them."""
    return np.asarray(grown.predict(X, raw_score=True, num_iteration=trees), dtype=np.float64)
