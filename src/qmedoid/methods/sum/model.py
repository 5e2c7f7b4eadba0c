r"""A weighted sum: a method with medoids, and parts that are added to it.

.. math:: S_c(x) = w_0\,S^{(0)}_c(x) + \sum_j w_j\,S^{(j)}_c(x) - b_c, \qquad w \ge 0

Every score is a sum of statements about real rows, and so is their sum: contributions add up exactly.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, Table
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.methods.base import Measured, MeasuredMethod, Method, Part
from qmedoid.methods.contributions import Contributions, Grouped
from qmedoid.methods.registry import PARTS, model_class, part_class
from qmedoid.schema import MODERATE, RefusedError, Tagged, Values


@dataclass(frozen=True, eq=False)
class SumModel:
    """A method, J parts and their weights, with C classes.

    Attributes
    ----------
    base : Method
        Has the medoids, and the distances and angles to them.
    parts : tuple of Part
    weights : ndarray of shape (1 + J,)
        w, of the base first.
    biases : ndarray of shape (C,)
        b.
    """

    base: Annotated[Method, Tagged(model_class, ("evidence", "rare"))]
    parts: tuple[Annotated[Part, Tagged(part_class, tuple(PARTS))], ...]
    weights: Annotated[Array, Values("W", least=0, most=MODERATE)]
    biases: Annotated[Array, Values("C", largest=MODERATE)]

    name: ClassVar[str] = "sum"
    description: ClassVar[str] = "a weighted sum of the parts named below: statements about medoids and other rows"

    @property
    def decider(self) -> str:
        """What decides, in one word: rare events have a method of this name."""
        return self.name if self.rare_class is None else self.base.decider

    def validate(self) -> None:
        """Refuse stored sums that have not one weight for the base and for each part."""
        if len(self.weights) != 1 + len(self.parts):
            raise RefusedError(f"weights must be {1 + len(self.parts)}, one for the base and each part")

    @property
    def plain(self) -> Self:
        """Itself: the closed form."""
        return self

    @property
    def rare_class(self) -> int | None:
        """The rare class, where the base is a method of rare events."""
        return self.base.rare_class

    @property
    def use_angular(self) -> bool:
        """Whether the angle is one of the channels for a circuit."""
        return self.base.use_angular

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return self.base.n_classes

    @property
    def medoid_rows(self) -> Codes:
        """Training row of each medoid."""
        return self.base.medoid_rows

    @property
    def medoid_classes(self) -> Codes:
        """Class code of each medoid."""
        return self.base.medoid_classes

    @property
    def n_neighbors(self) -> int:
        """Number of training rows kept in addition to the medoids."""
        return self.base.n_neighbors + sum(part.n_neighbors for part in self.parts)

    @property
    def kept_rows(self) -> tuple[str, ...]:
        """What is kept of training rows in addition to the medoids, in sentences for the card."""
        weights = ", ".join(f"{name} {weight:.3g}" for name, weight in self.facts["weights"].items())
        sentences = (f"The parts of the sum and their weights: {weights}.", *self.base.kept_rows)
        return sentences + tuple(one for part in self.parts for one in part.kept_rows)

    @property
    def column_groups(self) -> tuple[tuple[int, ...], ...]:
        """The groups of columns that distances are made of."""
        return self.base.column_groups

    @property
    def n_deltas(self) -> int | None:
        """Number of deltas for a circuit; None where they are made from the channels."""
        return self.base.n_deltas

    @property
    def n_measured(self) -> int:
        """Maximum length of the vectors that the SWAP test compares."""
        return max(self.base.n_measured, *(part.n_measured for part in self.parts), 1)

    @cached_property
    def used(self) -> Codes:
        """Columns that are read."""
        return np.unique(np.concatenate([self.base.used, *(part.used for part in self.parts)]))

    @property
    def notices_bad_values(self) -> Flags:
        """For every column of the table, whether scoring a row with a bad value there is sure to raise."""
        return self.base.notices_bad_values

    @property
    def facts(self) -> Mapping[str, Any]:
        """Weights by the name of what they weigh, and facts about the base and the parts."""
        names = [self.base.name, *(part.name for part in self.parts)]
        parts = {part.name: part.facts for part in self.parts}
        return {**self.base.facts, **parts, "weights": dict(zip(names, self.weights.tolist(), strict=True))}

    @property
    def distance_name(self) -> str:
        """What the distance to medoids is, in words."""
        return self.base.distance_name

    def coordinates(self, rows: Array) -> Array:
        """Raw rows in the space where Euclidean distances are those to the medoids."""
        return self.base.coordinates(rows)

    @property
    def medoid_coordinates(self) -> Array:
        """The medoids in that space."""
        return self.base.medoid_coordinates

    def measure(self, X: Table, *, threads: int | None = None) -> Measured:
        """Scores, nearest medoids, and distance and angle to them."""
        found = self.base.measure(X, threads=threads)
        return found._replace(scores=self._sum(found.scores, [part.scores(X, threads=threads) for part in self.parts]))

    def scores_and_medoids(self, X: Table, *, threads: int | None = None) -> tuple[Array, Codes]:
        """Dissimilarities, and the place of the nearest medoid of each class, each of shape (n, C)."""
        scores, nearest = self.base.scores_and_medoids(X, threads=threads)
        return self._sum(scores, [part.scores(X, threads=threads) for part in self.parts]), nearest

    def contributions(self, row: Array, measured: Measured, winner: int, other: int) -> Contributions:
        """Contributions to the difference of two classes' scores, for one row of shape (1, M)."""
        of_base = self.base.measure(row)._replace(nearest=measured.nearest)
        total = self.base.contributions(row, of_base, winner, other).times(float(self.weights[0]))
        for part, weight in zip(self.parts, self.weights[1:].tolist(), strict=True):
            total = total.plus(part.contributions(row, winner, other).times(weight))
        bias = float(self.biases[winner] - self.biases[other])
        return replace(total, terms={**total.terms, "intercept": total.terms.get("intercept", 0.0) + bias})

    def column_contributions(self, rows: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        total: Array = self.weights[0] * self.base.column_contributions(rows, winners, others)
        for part, weight in zip(self.parts, self.weights[1:], strict=True):
            total += weight * part.column_contributions(rows, winners, others)
        return total

    def group_contributions(
        self, rows: Array, winners: Codes, others: Codes
    ) -> tuple[tuple[tuple[int, ...], ...], Array]:
        """What groups of columns add, of the base and of the parts that have some, shape (n, G)."""
        groups, added = list[tuple[int, ...]](), [np.zeros((len(rows), 0))]
        for one, weight in zip((self.base, *self.parts), self.weights.tolist(), strict=True):
            if isinstance(one, Grouped):
                columns, amounts = one.group_contributions(rows, winners, others)
                groups += columns
                added.append(weight * amounts)
        return tuple(groups), np.hstack(added)

    def with_swap_test(self, swap_test: SwapTestFunction) -> MeasuredMethod:
        """A copy whose distances a SWAP test measures."""
        return MeasuredMethod(self, swap_test)

    def measure_with(self, X: Table, swap_test: SwapTestFunction) -> Measured:
        """`measure` by its definition, with distances that a SWAP test measures; none for what weighs nothing."""
        measures_base = self.weights[0] > 0 or self.base.n_deltas is not None
        found = self.base.measure_with(X, swap_test) if measures_base else self.base.measure(X)
        parts = [
            part.scores_with(X, swap_test) if weight > 0 else part.scores(X)
            for part, weight in zip(self.parts, self.weights[1:], strict=True)
        ]
        return found._replace(scores=self._sum(found.scores, parts))

    def with_row_numbers(self, rows: Codes) -> Self:
        """A copy where training row i is row ``rows[i]`` of a larger table."""
        parts = tuple(part.with_row_numbers(rows) for part in self.parts)
        return replace(self, base=self.base.with_row_numbers(rows), parts=parts)

    def _sum(self, base: Array, parts: list[Array]) -> Array:
        total: Array = self.weights[0] * base - self.biases
        for weight, scores in zip(self.weights[1:], parts, strict=True):
            total += weight * scores
        return total
