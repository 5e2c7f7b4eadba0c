"""Selection of circuit, training and threshold by out-of-fold predictions (algorithm 16)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.kernels.ties import first_largest_of_rows, merged
from qmedoid.methods.variational.training import (
    CircuitSettings,
    Trained,
    TrainingData,
    Watch,
    train_variational,
)
from qmedoid.metrics.classification import evaluate
from qmedoid.metrics.thresholds import best_threshold, metric_at

Split = tuple[Codes, Codes]


@dataclass(frozen=True)
class OutOfFold:
    """Out-of-fold predictions.

    Attributes
    ----------
    scores : ndarray of shape (n, C)
        NaN for rows that are in no test fold.
    fold : ndarray of shape (n,)
        Test fold of every row, −1 where there is none.
    """

    scores: Array
    fold: Codes

    @property
    def judged(self) -> Codes:
        """Rows that are in a test fold."""
        return np.flatnonzero(self.fold >= 0)


Selection = tuple[int, Array, OutOfFold]
"""Number of the best candidate, scores of all (larger is better), and out-of-fold scores of the best."""


def select_variational(
    data: TrainingData,
    candidates: Sequence[CircuitSettings],
    splits: Sequence[Split],
    entropy: Sequence[int],
    n_seeds: int,
    metric: str | None,
    watch: Watch,
) -> Selection | None:
    """Cross-validate every candidate; None when stopped before the first was scored.

    Parameters
    ----------
    metric : str or None
        Metric at thresholds of the other folds, for more than two classes that of the likeliest class; None is the
        mean log-likelihood.
    """
    best, scores, kept = 0, [], None
    for number, candidate in enumerate(candidates):
        found = out_of_fold(data, candidate, splits, [*entropy, number], n_seeds, watch)
        if found is None:
            break
        scores.append(out_of_fold_score(found, data.codes, metric))
        if kept is None or scores[-1] > scores[best]:
            best, kept = number, found
    return None if kept is None else (best, np.array(scores), kept)


def out_of_fold(
    data: TrainingData,
    candidate: CircuitSettings,
    splits: Sequence[Split],
    entropy: Sequence[int],
    n_seeds: int,
    watch: Watch,
) -> OutOfFold | None:
    """Out-of-fold scores of a candidate; None when stopped."""
    scores = np.full((len(data.codes), len(data.class_weights)), np.nan)
    fold = np.full(len(data.codes), -1, dtype=np.intp)
    for number, (train_rows, test_rows) in enumerate(splits):
        trained = train_candidate(data.part(train_rows), candidate, [*entropy, number], n_seeds, watch)
        if watch.stop.is_set():
            return None
        offset = None if data.offset is None else data.offset[test_rows]
        scores[test_rows] = trained.model.scores(data.features[test_rows], offset)
        fold[test_rows] = number
    return OutOfFold(scores, fold)


def train_candidate(
    data: TrainingData, candidate: CircuitSettings, entropy: Sequence[int], n_seeds: int, watch: Watch
) -> Trained:
    """Train a candidate from several seeds that follow from the entropy."""
    seeds = [[*entropy, seed] for seed in range(n_seeds)]
    return train_variational(data, candidate, seeds, watch)


def out_of_fold_score(found: OutOfFold, codes: Codes, metric: str | None) -> float:
    """Mean out-of-fold log-likelihood, or a metric over all out-of-fold rows.

    The threshold of every fold is chosen on the other folds. Algorithm 16 chooses it on the fold itself and takes the
    mean of the metric over the folds. More than two classes have no threshold: the likeliest is called, as printed, and
    the metric is "macro_f1" or "balanced_accuracy".
    """
    rows = found.judged
    if metric is None:
        log_p = log_softmax(found.scores[rows])
        return float(log_p[np.arange(len(rows)), codes[rows]].mean())
    n_classes = found.scores.shape[1]
    if n_classes > 2:
        figures = evaluate(codes[rows], first_largest_of_rows(found.scores[rows]), n_classes)
        return figures.average({"macro_f1": figures.f1, "balanced_accuracy": figures.recall}[metric])
    margin = merged(found.scores[:, 1] - found.scores[:, 0])
    above = np.empty(len(rows))
    for number in np.unique(found.fold[rows]):
        test = found.fold[rows] == number
        # A single fold has no others: its threshold is chosen on itself, as printed.
        others = rows[test] if test.all() else rows[~test]
        above[test] = margin[rows[test]] - best_threshold(codes[others], margin[others], metric)
    return metric_at(codes[rows], above, 0.0, metric)
