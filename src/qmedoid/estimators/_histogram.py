"""Trees of comparisons that scikit-learn's histogram boosting grows."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from qmedoid.arrays import Array
from qmedoid.estimators._tree_kinds import Growing, RankedRows
from qmedoid.kernels.trees import LEVELS, N_LEAVES
from qmedoid.methods.comparisons.fit import FullTrees, PlainTree, full_trees


@dataclass(frozen=True, eq=False)
class Histogram:
    """A fit of scikit-learn; see `Grown`."""

    fit: Any

    @property
    def best(self) -> int:
        return int(np.argmax(self.fit.validation_score_))

    @property
    def start(self) -> Array:
        return np.asarray(self.fit._baseline_prediction, dtype=np.float64).ravel()

    def outputs(self, ranks: Array, n_iterations: int | None = None) -> Array:
        if n_iterations is None:
            raw = self.fit.decision_function(ranks)
        else:
            raw = deque(islice(self.fit.staged_decision_function(ranks), n_iterations), maxlen=1).pop()
        return np.asarray(raw, dtype=np.float64).reshape(len(ranks), -1)

    def full_trees(self, known: Sequence[Array]) -> FullTrees:
        return full_trees([
            _plain_tree(predictor.nodes, known, output)
            for iteration in self.fit._predictors
            for output, predictor in enumerate(iteration)
        ])  # fmt: skip


def grow(
    rows: RankedRows, growing: Growing, seed: int, n_iterations: int, held_out: RankedRows | None = None
) -> Histogram:
    """Boosted trees, each with its own comparison at every node; see `Grow`."""
    classifier = HistGradientBoostingClassifier(
        max_iter=n_iterations, learning_rate=growing.rate, max_depth=LEVELS, max_leaf_nodes=N_LEAVES,
        min_samples_leaf=growing.least_rows, max_features=growing.share_of_columns, l2_regularization=growing.l2,
        early_stopping=held_out is not None, n_iter_no_change=growing.patience, random_state=seed,
        tol=0.0 if held_out is None else growing.least_gain / len(held_out.codes),
    )  # fmt: skip
    if held_out is None:
        return Histogram(classifier.fit(rows.ranks, rows.codes, sample_weight=rows.weights))
    judges = {"X_val": held_out.ranks, "y_val": held_out.codes, "sample_weight_val": held_out.weights}
    return Histogram(classifier.fit(rows.ranks, rows.codes, sample_weight=rows.weights, **judges))


def _plain_tree(nodes: Any, known: Sequence[Array], output: int) -> PlainTree:
    is_leaf = nodes["is_leaf"].astype(np.bool_)
    column = np.where(is_leaf, -1, nodes["feature_idx"].astype(np.intp))
    # The last value that goes to the left.
    rank = np.where(is_leaf, 0, np.floor(nodes["num_threshold"])).astype(np.intp)
    threshold = np.array([known[one][place] for one, place in zip(column, rank, strict=True)])
    return PlainTree(
        column, threshold,
        nodes["left"].astype(np.intp), nodes["right"].astype(np.intp), nodes["value"].astype(np.float64),
        nodes["count"].astype(np.float64), output,
    )  # fmt: skip
