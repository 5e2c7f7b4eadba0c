r"""Trees of comparisons: boosted trees whose thresholds lie halfway between two real rows.

Every node of a tree asks whether a record is nearer to real row a or to real row b in one column,

.. math:: |x_f - a_f| \le |x_f - b_f| \iff x_f \le \tfrac12 (a_f + b_f) \qquad (a_f < b_f),

which is the sign of the difference of two distances that a SWAP test measures. It has to where the record lies between
the two rows; a record beyond one of them is nearer to this one. A leaf adds its value to one output.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np

from qmedoid.arrays import Array, Codes, Flags, Table, row_slices
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.geometry.scaling import Scaling
from qmedoid.kernels.backend import row_block
from qmedoid.kernels.trees import LEVELS, N_LEAVES, N_NODES, Trees, tree_outputs
from qmedoid.methods.contributions import Contributions, GroupContribution, largest_first
from qmedoid.methods.part import LARGEST, KeptRows, Part, PartFacts, Scored, measured_distances, refuse_bad_values
from qmedoid.schema import MODERATE, RefusedError, RowNumbers, Values

# Share of the gap of two rows by which a record has to be nearer to the second: records halfway between them, where
# decimals often lie, go to the first on any processor.
_TIE = 1e-9
# Records whose distances are measured at a time.
_MEASURED_ROWS = 256


@dataclass(frozen=True, eq=False)
class ComparisonsPart(Part):
    """T trees of comparisons over M encoded columns, with R real rows and K outputs.

    Attributes
    ----------
    node_columns : ndarray of shape (T, 15)
        Column that each node compares, nodes in breadth-first order; −1 below the end of a branch.
    near, far : ndarray of shape (T, 15)
        Indices in `row_numbers` of real rows a and b, where a has the smaller value in the column.
    near_values, far_values : ndarray of shape (T, 15)
        Their values in the column.
    values : ndarray of shape (T, 31)
        Of each node the mean over the training rows that reach it, then of each of 16 leaves what it adds.
    outputs : ndarray of shape (T,)
        The output that a tree adds to.
    row_numbers, row_classes : ndarray of shape (R,)
        Training row and class code of each real row.
    intercepts : ndarray of shape (K,)
        K is 1 for two classes and C for more.
    scaling : Scaling of shape (M,)
        Units in which a SWAP test compares; the comparisons themselves do not depend on them.
    n_classes : int
    """

    node_columns: Annotated[Codes, Values("T 15", least=-1, below="M")]
    row_numbers: Annotated[Codes, RowNumbers("R")]
    row_classes: Annotated[Codes, Values("R", below="C")]
    near: Annotated[Codes, Values("T 15", below="R")]
    far: Annotated[Codes, Values("T 15", below="R")]
    near_values: Annotated[Array, Values("T 15", largest=LARGEST)]
    far_values: Annotated[Array, Values("T 15", largest=LARGEST)]
    values: Annotated[Array, Values("T 31", largest=MODERATE)]
    outputs: Annotated[Codes, Values("T", below="K")]
    intercepts: Annotated[Array, Values("K", largest=MODERATE)]
    scaling: Scaling
    n_classes: Annotated[int, Values(least="C", most="C")]

    name: ClassVar[str] = "comparisons"

    def validate(self) -> None:
        """Refuse stored trees whose thresholds do not lie between two values."""
        if not (self.near_values < self.far_values)[self.node_columns >= 0].all():
            raise RefusedError("near_values must be below far_values at every comparison")

    @cached_property
    def columns(self) -> Codes:
        """Encoded columns that the trees compare, rising."""
        return np.unique(self.node_columns[self.node_columns >= 0])

    @property
    def rows(self) -> KeptRows:
        """The rows that records are compared with, of which single cells are kept."""
        return KeptRows(self.row_numbers, self.row_classes)

    @property
    def facts(self) -> PartFacts:
        """What it says of itself: how many trees there are, and real rows that they compare with."""
        kept = (
            f"The {len(self.node_columns)} trees of comparisons keep single cells of {len(self.row_numbers)} training "
            "rows, with their row numbers and classes. To leave them out, fit with comparisons=False.",
        )
        return {
            "description": "trees of comparisons with two training rows each",
            "groups": (),
            "kept": kept,
            "vector_length": 1,
            "numbers": {"trees": len(self.node_columns), "rows": len(self.row_numbers)},
        }

    def landmarks(self, column: int) -> Array:
        """Both sides of the thresholds."""
        near = self.trees.thresholds[(self.trees.columns == column) & np.isfinite(self.trees.thresholds)]
        return np.concatenate([near, np.nextafter(near, np.inf)])

    @cached_property
    def trees(self) -> Trees:
        """The trees as the kernel takes them."""
        return Trees(
            np.maximum(self.node_columns, 0).astype(np.int32),
            np.where(self.node_columns >= 0, midpoints(self.near_values, self.far_values), np.inf),
            np.ascontiguousarray(self.values[:, N_NODES:]),
            self.outputs.astype(np.int32),
        )

    def score(self, X: Table, *, channels: bool = False, threads: int | None = None) -> Scored:
        """Score records by the leaves that they reach."""
        del channels  # none without medoids
        added = tree_outputs(X, self.trees, len(self.scaling.center), len(self.intercepts), threads=threads)
        return Scored(self.class_scores(self.intercepts + added))

    def score_measured(self, X: Table, backend: SwapTestFunction) -> Scored:
        """Score records by comparing measured distances, where a record lies between the two rows."""
        number = np.arange(len(self.node_columns))
        parts = [np.zeros((0, self.n_classes))]
        for place in row_slices(X, _MEASURED_ROWS):
            rows = row_block(X, place)
            refuse_bad_values(rows, self.columns, range(place.start, place.stop))
            nearer_to_far = self._measured_nodes(rows, backend)
            node = np.zeros((len(nearer_to_far), len(number)), dtype=np.intp)
            each = np.arange(len(nearer_to_far))[:, None]
            for _ in range(LEVELS):
                node = 2 * node + 1 + nearer_to_far[each, number, node]
            added = np.tile(self.intercepts, (len(node), 1))
            for tree, output in enumerate(self.outputs):
                added[:, output] += self.values[tree, node[:, tree]]
            parts.append(self.class_scores(added))
        return Scored(np.concatenate(parts))

    def _measured_nodes(self, rows: Array, swap_test: SwapTestFunction) -> Flags:
        """Whether rows are nearer to b than to a, shape (n, T, 15).

        A row that does not lie between a and b is nearer to the one on its side; the others are measured.
        """
        found = np.zeros((len(rows), *self.node_columns.shape), dtype=np.bool_)
        for column in self.columns:
            of_column = self.node_columns == column
            x, near, far = rows[:, column], self.near_values[of_column], self.far_values[of_column]
            nearer_to_far = x[:, None] >= far
            between = (near < x[:, None]) & ~nearer_to_far
            for record in np.flatnonzero(between.any(axis=1)):
                nodes = between[record]
                measured = self._nearer_to_far(x[record], near[nodes], far[nodes], int(column), swap_test)
                nearer_to_far[record, nodes] = measured
            found[:, of_column] = nearer_to_far
        return found

    def _nearer_to_far(self, x: float, near: Array, far: Array, column: int, swap_test: SwapTestFunction) -> Flags:
        """Whether a value is nearer to those of b than to those of a, by measured distances, (q,) and (q,) to (q,)."""
        center, scale = self.scaling.center[column], self.scaling.scale[column]
        values, place = np.unique(np.concatenate([near, far]), return_inverse=True)
        scaled = (values[:, None] - center) / scale
        distances = measured_distances(swap_test, np.array([[(x - center) / scale]]), scaled)[0]
        a, b = np.split(place, 2)
        gaps = np.abs(scaled[b, 0] - scaled[a, 0])
        return np.asarray(distances[a] - distances[b] > 2.0 * _TIE * gaps)

    def contributions(self, row: Array, winner: int, other: int) -> Contributions:
        """What each comparison changes along the paths of one row, shape (1, M): from a node's mean to its child's."""
        number, node = np.arange(len(self.node_columns)), np.zeros(len(self.node_columns), dtype=np.intp)
        signs = self._signs(winner, other)
        by_column: dict[int, dict[int, float]] = {}
        columns = np.zeros(row.shape[1])
        for _ in range(LEVELS):
            column = self.trees.columns[number, node]
            above = row[0, column] > self.trees.thresholds[number, node]
            child = 2 * node + 1 + above
            changes = signs * (self.values[number, child] - self.values[number, node])
            np.add.at(columns, column, changes)
            nearer = np.where(above, self.far[number, node], self.near[number, node])
            for place in np.flatnonzero(changes):
                of_rows = by_column.setdefault(int(column[place]), {})
                of_rows[int(nearer[place])] = of_rows.get(int(nearer[place]), 0.0) + float(changes[place])
            node = child
        groups = tuple(self._group(row, column, shares) for column, shares in sorted(by_column.items()))
        start = float(signs @ self.values[:, 0]) + self._between(winner, other)
        return Contributions(columns, groups, {"intercept": start})

    def column_contributions(self, X: Array, winners: Codes, others: Codes) -> Array:
        """The `columns` of `contributions` for many rows, each with its two classes, shape (n, M)."""
        n_columns, n_outputs = X.shape[1], len(self.intercepts)
        added = tree_outputs(X, self._column_trees, n_columns, n_outputs * n_columns)
        by_output, each = added.reshape(len(X), n_outputs, n_columns), np.arange(len(X))
        if self.n_classes == 2:
            return np.asarray(np.where(winners == 1, 1.0, -1.0)[:, None] * by_output[:, 0])
        return np.asarray(by_output[each, winners] - by_output[each, others])

    @cached_property
    def _column_trees(self) -> Trees:
        """Trees whose leaves are what one column changes along the way: output k·M + f for column f of output k."""
        trees, n_columns = self.trees, len(self.scaling.center)
        tree = np.arange(len(trees.output))
        changes = np.zeros((len(tree), n_columns, N_LEAVES))
        for leaf in range(N_LEAVES):
            node = leaf + N_NODES
            while node > 0:
                parent = (node - 1) // 2
                changes[tree, trees.columns[:, parent], leaf] += self.values[:, node] - self.values[:, parent]
                node = parent
        of, column = np.nonzero(changes.any(axis=2))
        output = (trees.output[of] * n_columns + column).astype(np.int32)
        return Trees(trees.columns[of], trees.thresholds[of], changes[of, column], output)

    def with_columns(self, columns: Codes) -> Self:
        """A copy where column i is column ``columns[i]`` of the table."""
        place = np.argsort(columns)
        return self.of_some_columns(columns, Scaling(self.scaling.center[place], self.scaling.scale[place]))

    def of_some_columns(self, columns: Codes, scaling: Scaling) -> Self:
        """A copy for a wider table with this scaling, where column i is column ``columns[i]``."""
        return replace(
            self, node_columns=np.where(self.node_columns < 0, -1, columns[self.node_columns]), scaling=scaling
        )

    def class_scores(self, outputs: Array) -> Array:
        """Dissimilarities from outputs, shape (n, C)."""
        return class_scores(outputs, self.n_classes)

    def _signs(self, winner: int, other: int) -> Array:
        """What every tree counts for the winner against the other class."""
        if self.n_classes == 2:
            return np.full(len(self.outputs), 1.0 if winner == 1 else -1.0)
        signs: Array = (self.outputs == winner).astype(np.float64) - (self.outputs == other)
        return signs

    def _between(self, winner: int, other: int) -> float:
        if self.n_classes == 2:
            return float(self.intercepts[0]) * (1.0 if winner == 1 else -1.0)
        return float(self.intercepts[winner] - self.intercepts[other])

    def _group(self, row: Array, column: int, shares: dict[int, float]) -> GroupContribution:
        """What the comparisons in one column change, by the real row that is nearer."""
        values = {
            int(p): v
            for places, vs in ((self.near, self.near_values), (self.far, self.far_values))
            for p, v in zip(places[self.node_columns == column], vs[self.node_columns == column], strict=True)
        }
        places, scale = list(shares), float(self.scaling.scale[column])
        records = largest_first(
            self.row_numbers[places].tolist(),
            self.row_classes[places].tolist(),
            [abs(float(row[0, column] - values[place])) / scale for place in places],
            shares.values(),
        )
        return GroupContribution((column,), float(sum(shares.values())), name=self.name, records=records)


def class_scores(outputs: Array, n_classes: int) -> Array:
    """Dissimilarities (n, C) from outputs: of two classes (n, 1), of more (n, C)."""
    return np.hstack([outputs / 2.0, outputs / -2.0]) if n_classes == 2 else -outputs


def midpoints(near: Array, far: Array) -> Array:
    """Thresholds just above the middle of two values, from `near` on and below `far` whatever rounding says."""
    middle = near + (0.5 + _TIE) * (far - near)
    return np.where(middle < far, middle, near)
