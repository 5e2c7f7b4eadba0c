"""Trees of comparisons, learnt by scikit-learn's histogram boosting and kept as pairs of real rows."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._folds import FoldRows
from qmedoid.exceptions import ModelError
from qmedoid.geometry.row_groups import draws_per_row, group_folds
from qmedoid.kernels.ties import order_by_content, with_equal_cells
from qmedoid.kernels.trees import LEVELS, N_LEAVES
from qmedoid.methods.comparisons.fit import PlainTree, comparisons_of
from qmedoid.methods.comparisons.model import ComparisonsModel

# From this many rows on there are fewer folds, dealt twice, and trees of all rows are grown so much longer than those
# of a fold, which see two thirds of the rows.
_MANY_ROWS, _MUCH_LONGER = 12_500, 1.5
# From this many rows times classes on, which the time of a fit grows with, fewer folds are dealt once, for one seed.
_LARGE = 100_000
# Trees of a fold stop where their last iterations added no more than this to the log-likelihood of its held-out rows:
# where classes lie apart they would gain less and less, and never nothing.
_LEAST_GAIN = 0.05
# From this many classes on there is one seed: each class has a tree in every iteration.
_MANY_CLASSES = 10
# Largest difference between our sum of the trees and the library's, relative to its size.
_SAME = 1e-9


@dataclass(frozen=True)
class BoostingSettings:
    """How trees are grown: iterations at most, the learning rate, and how soon to stop without a gain."""

    n_iterations: int = 500
    learning_rate: float = 0.1
    patience: int = 20
    n_folds: int = 5
    n_deals: int = 1
    n_seeds: int = 2
    longer: float = 1.1
    least_rows: int = 10
    share_of_columns: float = 0.5
    l2: float = 1.0

    def for_table(self, n_rows: int, n_classes: int, share: float) -> Self:
        """The settings for a table of this size: fewer folds and seeds for large ones, and folds dealt twice between.

        The penalty is one for two classes: trees learn from p·(1 − p) of a row with probability p, which is smaller
        for more. Where a row is but a `share` of a draw, as in copies of a table, more rows count as much.
        """
        many, large = n_rows >= _MANY_ROWS, n_rows * n_classes >= _LARGE
        return replace(
            self, n_folds=max(2, self.n_folds - 2) if many or large else self.n_folds,
            n_deals=2 * self.n_deals if many and not large else self.n_deals,
            n_seeds=1 if large or n_classes >= _MANY_CLASSES else self.n_seeds,
            longer=_MUCH_LONGER if many else self.longer,
            l2=self.l2 * 4.0 * (n_classes - 1) / n_classes**2 / share, least_rows=round(self.least_rows / share),
        )  # fmt: skip


class FittedComparisons(NamedTuple):
    """Trees fitted to all rows, and the out-of-fold dissimilarities of every row, shape (n, C)."""

    model: ComparisonsModel
    out_of_fold: Array
    n_iterations: int


def fit_comparisons(
    X: Array,
    codes: Codes,
    n_classes: int,
    settings: BoostingSettings,
    seed: int,
    progress: Callable[[float], None],
    groups: Codes | None = None,
    fold_rows: FoldRows | None = None,
) -> FittedComparisons | None:
    """Grow trees in folds, and on all rows with more iterations than are best for the folds in the mean.

    Out-of-fold scores are means over deals of the folds: the trees of all rows are better than those of a fold, and
    would get too small a weight by scores of one. Where columns are made with labels, `fold_rows` makes those of a fold
    without the labels of its held-out rows. None where a fold would have nothing to learn from or to judge by.
    """
    rng = np.random.default_rng(seed)
    settings = settings.for_table(len(codes), n_classes, draws_per_row(groups))
    dealt = [_folds(codes, groups, n_classes, settings.n_folds, rng) for _ in range(settings.n_deals)]
    deals = [folds for folds in dealt if folds is not None]
    if not deals:
        return None
    parts = [folds == fold for folds in deals for fold in range(settings.n_folds)]
    # What is learnt depends neither on the order of the columns nor on last digits: trees see ranks, which are exact.
    order = order_by_content(X)
    values = with_equal_cells(np.ascontiguousarray(X[:, order]))
    known, X = _ranks(values)
    grown, judges = [], []
    for number, part in enumerate(parts):
        train, held = np.flatnonzero(~part), np.flatnonzero(part)
        rows, held_out = X[train], X[held]
        if fold_rows is not None:
            both = with_equal_cells(np.ascontiguousarray(np.vstack(fold_rows(train, held))[:, order]))
            rows, held_out = np.split(_ranks(both)[1], [len(train)])
        judges.append(held_out)
        grown.append(
            _grown(settings, seed + number, settings.n_iterations, rows, codes[train], (held_out, codes[held]))
        )
        progress((number + 1) / (len(parts) + 2))
    # The scores begin with that of no iteration.
    n_iterations = max(1, round(float(np.mean([np.argmax(one.validation_score_) for one in grown]))))
    outputs = np.zeros((len(codes), 1 if n_classes == 2 else n_classes))
    for one, held_out, part in zip(grown, judges, parts, strict=True):
        stages = deque(islice(one.staged_decision_function(held_out), n_iterations), maxlen=1)
        outputs[part] += _outputs(stages.pop(), len(held_out)) / len(deals)
    longer = max(1, round(settings.longer * n_iterations))
    fits = [_grown(settings, seed + len(parts) + number, longer, X, codes) for number in range(settings.n_seeds)]
    model = _mean_model(fits, X, known, values, codes, n_classes)
    # Rows that are never held out are the only ones of their class.
    judged = np.any(parts, axis=0)
    outputs[~judged] = outputs[judged].mean(axis=0)
    progress(1.0)
    return FittedComparisons(model.with_columns(order), model.class_scores(outputs), n_iterations)


def _ranks(X: Array) -> tuple[list[Array], Array]:
    """The values of each column, rising, and the places of all cells among them."""
    known, places = zip(*(np.unique(column, return_inverse=True) for column in X.T), strict=True)
    return list(known), np.column_stack(places).astype(np.float64)


def _folds(codes: Codes, groups: Codes | None, n_classes: int, n_folds: int, rng: np.random.Generator) -> Codes | None:
    """Fold of every row, −1 for classes of one draw; None where fewer than two classes or folds are left."""
    groups = np.arange(len(codes)) if groups is None else groups
    draws = np.bincount(np.unique(groups * n_classes + codes) % n_classes, minlength=n_classes)
    judged = np.flatnonzero(draws[codes] > 1)
    if (draws > 1).sum() < 2 or len(np.unique(groups[judged])) < 2 * n_folds:
        return None
    folds = np.full(len(codes), -1, dtype=np.intp)
    folds[judged] = group_folds(groups[judged], codes[judged], n_folds, rng)
    enough = all(len(np.unique(codes[folds != fold])) == n_classes and (folds == fold).any() for fold in range(n_folds))
    return folds if enough else None


def _grown(
    settings: BoostingSettings, seed: int, n_iterations: int, X: Array, codes: Codes, held_out: Any = None
) -> Any:
    """Boosted trees; with held-out rows they stop growing when these gain nothing."""
    classifier = HistGradientBoostingClassifier(
        max_iter=n_iterations, learning_rate=settings.learning_rate, max_depth=LEVELS, max_leaf_nodes=N_LEAVES,
        min_samples_leaf=settings.least_rows, max_features=settings.share_of_columns, l2_regularization=settings.l2,
        early_stopping=held_out is not None, n_iter_no_change=settings.patience, random_state=seed,
        tol=0.0 if held_out is None else _LEAST_GAIN / len(held_out[1]),
    )  # fmt: skip
    if held_out is None:
        return classifier.fit(X, codes)
    return classifier.fit(X, codes, X_val=held_out[0], y_val=held_out[1])


def _outputs(raw: Any, n_rows: int) -> Array:
    return np.asarray(raw, dtype=np.float64).reshape(n_rows, -1)


def _mean_model(
    fits: list[Any], ranks: Array, known: Sequence[Array], X: Array, codes: Codes, n_classes: int
) -> ComparisonsModel:
    """The mean of some fits as trees of comparisons; raise where these trees say anything else on the training rows.

    The fits saw ranks, the places of the cells of X among the `known` values of their columns.
    """
    trees = [
        _plain_tree(predictor.nodes, known, output, 1.0 / len(fits))
        for fit in fits
        for iteration in fit._predictors
        for output, predictor in enumerate(iteration)
    ]
    intercepts = np.mean([fit._baseline_prediction.ravel() for fit in fits], axis=0)
    model = comparisons_of(trees, intercepts, X, codes, n_classes)
    some = slice(None, None, max(1, len(X) // 1000))
    wanted = model.class_scores(
        np.mean([_outputs(fit.decision_function(ranks[some]), len(ranks[some])) for fit in fits], axis=0)
    )
    if not np.allclose(model.scores(X[some]), wanted, rtol=_SAME, atol=_SAME):
        raise ModelError(
            "The trees of scikit-learn's histogram boosting could not be read: this version of scikit-learn keeps them "
            "in another form. Pass comparisons=False, or install the version that qmedoid was tested with."
        )
    return model


def _plain_tree(nodes: Any, known: Sequence[Array], output: int, share: float) -> PlainTree:
    is_leaf = nodes["is_leaf"].astype(np.bool_)
    column = np.where(is_leaf, -1, nodes["feature_idx"].astype(np.intp))
    # The last value that goes to the left.
    rank = np.where(is_leaf, 0, np.floor(nodes["num_threshold"])).astype(np.intp)
    threshold = np.array([known[one][place] for one, place in zip(column, rank, strict=True)])
    return PlainTree(
        column, threshold,
        nodes["left"].astype(np.intp), nodes["right"].astype(np.intp), share * nodes["value"].astype(np.float64),
        nodes["count"].astype(np.float64), output,
    )  # fmt: skip
