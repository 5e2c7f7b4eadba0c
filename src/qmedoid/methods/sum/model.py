r"""A weighted sum: a method with medoids, and parts that are added to it.

.. math:: S_c(x) = w_0\,S^{(0)}_c(x) + \sum_j w_j\,S^{(j)}_c(x) - b_c, \qquad w \ge 0

Every score is a sum of statements about real rows, and so is their sum: contributions add up exactly.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np

from qmedoid.arrays import Array, Codes, Table
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.methods.contributions import Contributions
from qmedoid.methods.part import KeptRows, Part, PartFacts, Scored
from qmedoid.methods.registry import PARTS, model_class, part_class
from qmedoid.schema import MODERATE, RefusedError, Tagged, Values


@dataclass(frozen=True, eq=False)
class SumModel(Part):
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

    base: Annotated[Part, Tagged(model_class, ("evidence", "rare"))]
    parts: tuple[Annotated[Part, Tagged(part_class, tuple(PARTS))], ...]
    weights: Annotated[Array, Values("W", least=0, most=MODERATE)]
    biases: Annotated[Array, Values("C", largest=MODERATE)]

    name: ClassVar[str] = "sum"
    description: ClassVar[str] = "a weighted sum of the parts named below: statements about medoids and other rows"

    @property
    def decider(self) -> str:
        """What decides, in one word: rare events have a method of this name."""
        return self.name if self.rare_class is None else self.base.name

    def validate(self) -> None:
        """Refuse stored sums that have not one weight for the base and for each part."""
        if len(self.weights) != 1 + len(self.parts):
            raise RefusedError(f"weights must be {1 + len(self.parts)}, one for the base and each part")

    @property
    def rare_class(self) -> int | None:
        """The rare class, where the base is a method of rare events."""
        return getattr(self.base, "rare_class", None)

    @property
    def all_parts(self) -> tuple[Part, ...]:
        """The base and the parts."""
        return (self.base, *self.parts)

    @cached_property
    def columns(self) -> Codes:
        """Encoded columns that are read, rising."""
        return np.unique(np.concatenate([part.columns for part in self.all_parts]))

    @property
    def rows(self) -> KeptRows:
        """The medoids of the base, and the neighbors of all parts."""
        neighbors = max((part.rows.neighbors for part in self.all_parts), key=len)
        return self.base.rows._replace(neighbors=neighbors)

    @property
    def facts(self) -> PartFacts:
        """Weights by the name of what they weigh, and facts about the base and the parts."""
        facts = [part.facts for part in self.all_parts]
        weights = dict(zip([part.name for part in self.all_parts], self.weights.tolist(), strict=True))
        words = ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items())
        numbers = {part.name: part.facts["numbers"] for part in self.parts}
        return {
            "description": self.description,
            "groups": facts[0]["groups"],
            "kept": (
                f"The parts of the sum and their weights: {words}.",
                *(one for part in facts for one in part["kept"]),
            ),
            "vector_length": max(*(part["vector_length"] for part in facts), 1),
            "numbers": {**facts[0]["numbers"], **numbers, "weights": weights},
        }

    def landmarks(self, column: int) -> Array:
        """Those of all parts."""
        return np.concatenate([part.landmarks(column) for part in self.all_parts])

    def score(self, X: Table, *, channels: bool = False, threads: int | None = None) -> Scored:
        """The weighted sum, with the nearest medoids of the base."""
        found = self.base.score(X, channels=channels, threads=threads)
        return found._replace(
            scores=self._sum(found.scores, [part.score(X, threads=threads).scores for part in self.parts])
        )

    def score_measured(self, X: Table, backend: SwapTestFunction) -> Scored:
        """The sum of measured scores; nothing is measured for what weighs nothing."""
        measures_base = self.weights[0] > 0 or self.rare_class is not None
        found = self.base.score_measured(X, backend) if measures_base else self.base.score(X, channels=True)
        parts = [
            (part.score_measured(X, backend) if weight > 0 else part.score(X)).scores
            for part, weight in zip(self.parts, self.weights[1:], strict=True)
        ]
        return found._replace(scores=self._sum(found.scores, parts))

    def contributions(self, row: Array, winner: int, other: int) -> Contributions:
        """Contributions to the difference of two classes' scores, for one row of shape (1, M)."""
        total = self.base.contributions(row, winner, other).times(float(self.weights[0]))
        for part, weight in zip(self.parts, self.weights[1:].tolist(), strict=True):
            total = total.plus(part.contributions(row, winner, other).times(weight))
        bias = float(self.biases[winner] - self.biases[other])
        return replace(total, terms={**total.terms, "intercept": total.terms.get("intercept", 0.0) + bias})

    def column_contributions(self, X: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        total: Array = self.weights[0] * self.base.column_contributions(X, winners, others)
        for part, weight in zip(self.parts, self.weights[1:], strict=True):
            total += weight * part.column_contributions(X, winners, others)
        return total

    def group_contributions(self, X: Array, winners: Codes, others: Codes) -> tuple[tuple[tuple[int, ...], ...], Array]:
        """What groups of columns add, of the base and of the parts that have some, shape (n, G)."""
        groups, added = list[tuple[int, ...]](), [np.zeros((len(X), 0))]
        for one, weight in zip(self.all_parts, self.weights.tolist(), strict=True):
            columns, amounts = one.group_contributions(X, winners, others)
            groups += columns
            added.append(weight * amounts)
        return tuple(groups), np.hstack(added)

    def _sum(self, base: Array, parts: list[Array]) -> Array:
        total: Array = self.weights[0] * base - self.biases
        for weight, scores in zip(self.weights[1:], parts, strict=True):
            total += weight * scores
        return total
