"""A rare-event model whose distances are measured one by one, such as by circuits: slow, and what it claims to be."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.protocols import SwapTestFunction
from qmedoid.models.rare import RareEventModel
from qmedoid.models.stage import Measured, Table, measured_distances, row_slices

# Distances of a block of rows, so that a table of any length is judged in bounded memory.
_BLOCK_NUMBERS = 2**21


@dataclass(frozen=True, eq=False)
class MeasuredRare:
    """A rare-event model with another SWAP test than the closed form; all prototypes are measured, not the nearest."""

    model: RareEventModel
    swap_test: SwapTestFunction

    use_angular = False

    @property
    def rare_class(self) -> int:
        """The class that is looked for."""
        return self.model.rare_class

    @property
    def plain(self) -> RareEventModel:
        """The model without the backend."""
        return self.model

    def measure(self, X: Table, *, threads: int | None = None) -> Measured:
        """Scores from measured distances; the nearest prototypes are told by the closed form."""
        told = self.model.measure(X, threads=threads)
        features = self.features(X)
        scores = self.model.class_scores(self.model.logit(features))
        return told._replace(scores=scores, deltas=features[:, self.model.circuit_features])

    def scores_and_medoids(self, X: Table, *, threads: int | None = None) -> tuple[Array, Codes]:
        """Dissimilarities, and the place of the nearest prototype of each class, each of shape (n, 2)."""
        measured = self.measure(X, threads=threads)
        return measured.scores, measured.nearest

    def features(self, X: Table) -> Array:
        """All features of raw rows, shape (n, F), each from the distances in its definition."""
        step = max(1, _BLOCK_NUMBERS // len(self.model.medoid_rows))
        blocks = (self.model.scaled(X, rows) for rows in row_slices(X, step))
        distances = partial(measured_distances, self.swap_test)
        return np.concatenate([self.model.geometry.measured_features(scaled, distances) for scaled in blocks])
