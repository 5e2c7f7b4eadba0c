"""Selection of circuit, training and threshold by out-of-fold predictions (algorithm 16)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.kernels.ties import merged
from qmedoid.metrics.thresholds import best_threshold, metric_at
from qmedoid.variational.training import (
    CircuitSettings,
    Trained,
    TrainingData,
    TrainingSettings,
    Watch,
    train_variational,
)

Split = tuple[Codes, Codes]


@dataclass(frozen=True)
class Candidate:
    """One point of the grid."""

    circuit: CircuitSettings
    training: TrainingSettings


@dataclass(frozen=True)
class OutOfFold:
    """Scores of rows by circuits that were not trained on them.

    Attributes
    ----------
    scores : ndarray of shape (n, C)
        NaN for rows that no fold holds out.
    fold : ndarray of shape (n,)
        The fold that held a row out, −1 where none did.
    """

    scores: Array
    fold: Codes

    @property
    def judged(self) -> Codes:
        """Rows that a fold holds out."""
        return np.flatnonzero(self.fold >= 0)


@dataclass(frozen=True)
class Selection:
    """The best candidate's number, every candidate's score (larger is better), and the best's out-of-fold scores."""

    best: int
    scores: Array
    out_of_fold: OutOfFold


def select_variational(
    data: TrainingData,
    candidates: Sequence[Candidate],
    splits: Sequence[Split],
    entropy: Sequence[int],
    n_seeds: int,
    metric: str | None,
    watch: Watch,
) -> Selection | None:
    """Cross-validate every candidate; None when stopped before the first was judged.

    Parameters
    ----------
    metric : str or None
        Judge by this metric at thresholds from the other folds, or (None) by the mean log-likelihood.
    """
    best, scores, kept = 0, [], None
    for number, candidate in enumerate(candidates):
        found = out_of_fold(data, candidate, splits, [*entropy, number], n_seeds, watch)
        if found is None:
            break
        scores.append(out_of_fold_score(found, data.codes, metric))
        if kept is None or scores[-1] > scores[best]:
            best, kept = number, found
    return None if kept is None else Selection(best, np.array(scores), kept)


def out_of_fold(
    data: TrainingData,
    candidate: Candidate,
    splits: Sequence[Split],
    entropy: Sequence[int],
    n_seeds: int,
    watch: Watch,
) -> OutOfFold | None:
    """Scores of every held-out row by the circuit of its fold; None when stopped."""
    scores = np.full((len(data.codes), len(data.class_weights)), np.nan)
    fold = np.full(len(data.codes), -1, dtype=np.intp)
    for number, (train_rows, held_out) in enumerate(splits):
        trained = train_candidate(data.part(train_rows), candidate, [*entropy, number], n_seeds, watch)
        if watch.stop.is_set():
            return None
        offset = None if data.offset is None else data.offset[held_out]
        scores[held_out] = trained.model.scores(data.features[held_out], offset)
        fold[held_out] = number
    return OutOfFold(scores, fold)


def train_candidate(
    data: TrainingData, candidate: Candidate, entropy: Sequence[int], n_seeds: int, watch: Watch
) -> Trained:
    """Train a candidate from several seeds that follow from the entropy."""
    seeds = [[*entropy, seed] for seed in range(n_seeds)]
    return train_variational(data, candidate.circuit, candidate.training, seeds, watch)


def out_of_fold_score(found: OutOfFold, codes: Codes, metric: str | None) -> float:
    """Mean log-likelihood of the held-out rows, or a metric of all of them, cut in each fold where the others say."""
    rows = found.judged
    if metric is None:
        log_p = log_softmax(found.scores[rows])
        return float(log_p[np.arange(len(rows)), codes[rows]].mean())
    margin = merged(two_class_margin(found.scores))
    above = np.empty(len(rows))
    for number in np.unique(found.fold[rows]):
        own = found.fold[rows] == number
        # A single fold has no others: its threshold is then its own, as printed.
        others = rows[own] if own.all() else rows[~own]
        above[own] = margin[rows[own]] - best_threshold(codes[others], margin[others], metric)
    return metric_at(codes[rows], above, 0.0, metric)


def two_class_margin(scores: Array) -> Array:
    """Log-odds of the second of two classes, shape (n,)."""
    margin: Array = scores[:, 1] - scores[:, 0]
    return margin
