"""The fit of a nearest-medoid model for one configuration, and the objectives of the search (algorithms 3, 5 and 7).

:class:`RebuildObjective` rebuilds features, scalers, medoids and predictions for every score. It is the definition that
:class:`IncrementalObjective` must reproduce, and the baseline of its speed. Scores are equal to the last bit: both are
macro-F1 of whole counts, so they agree as soon as the predictions do. Predictions can only differ where a validation
row is as near to one class as to another up to rounding, which happens on lattices (columns of few whole numbers) and
next to never elsewhere. The kernel names the candidates for which there is such a row, and those are scored by the
definition. A tie between classes whose medoids are equal rows is exact in any arithmetic and needs no such care.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.channels import fusion_scores
from qmedoid.geometry.groups import (
    Configuration,
    FeatureKind,
    Subset,
    correlation_matrix,
    feature_matrix,
    subset_weights,
)
from qmedoid.geometry.medoids import class_samples, sampled_class_medoids
from qmedoid.geometry.overlap import AngleKind
from qmedoid.geometry.scaling import ScalingKind, fit_scaling, fit_standard
from qmedoid.kernels.backend import thread_count
from qmedoid.kernels.scoring import Candidates, FoldSearch
from qmedoid.kernels.ties import first_smallest_of_rows
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.metrics.classification import ClassMetrics, confusion_matrix
from qmedoid.optimize.descent import ALPHA_GRID


@dataclass(frozen=True)
class NearestSettings:
    """Settings of a nearest-medoid model."""

    kind: FeatureKind = "signed"  # feature kind
    input_scaling: ScalingKind = "standard"  # scaling of the raw columns
    use_angular: bool = True  # whether there is an angular channel, and which angle it holds
    angle: AngleKind = "true"
    n_medoids: int = 1  # medoids per class in the final model; the search always uses one
    max_medoid_rows: int = 1000  # maximum number of rows of a class among which its medoid is searched (algorithm 4)
    search_alpha: float = 0.75  # α while configurations are compared
    alphas: tuple[float, ...] = ALPHA_GRID  # grid on which α is calibrated afterwards
    n_models: int = 1  # number of models kept, one per subset size

    @property
    def signed(self) -> bool:
        """Whether features carry a sign."""
        return self.kind == "signed"


class TrainingRows:
    """Rows of a table that a model is fitted on, with all that does not depend on a configuration.

    `X` (n, M) has their scaled columns, `codes` and `rows` (n,) their classes and numbers in the table, `scaling` and
    `correlation` (M, M) are fitted on them, and `samples` are for each class the indices in X among which its medoid is
    searched, ascending.
    """

    def __init__(
        self, X: Array, codes: Codes, rows: Codes, n_classes: int, settings: NearestSettings, rng: np.random.Generator
    ) -> None:
        self.codes, self.rows, self.scaling = codes[rows], rows, fit_scaling(X[rows], settings.input_scaling)
        self.X = self.scaling.apply(X[rows])
        self.samples = class_samples(self.codes, n_classes, max_rows=settings.max_medoid_rows, rng=rng)
        self.correlation = correlation_matrix(self.X)


@dataclass(frozen=True)
class Fold:
    """Training rows and validation rows, scaled alike; `rows_val` are the row numbers of the latter."""

    train: TrainingRows
    X_val: Array
    codes_val: Codes
    rows_val: Codes


def prepare_folds(
    X: Array,
    codes: Codes,
    splits: Sequence[tuple[Codes, Codes]],
    n_classes: int,
    settings: NearestSettings,
    rng: np.random.Generator,
) -> list[Fold]:
    """Folds from pairs of training and validation rows; everything in a fold is fitted on its training rows."""
    folds = []
    for train_rows, val_rows in splits:
        train = TrainingRows(X, codes, train_rows, n_classes, settings, rng)
        folds.append(Fold(train, train.scaling.apply(X[val_rows]), codes[val_rows], val_rows))
    return folds


def fit_nearest_model(
    train: TrainingRows, configuration: Configuration, settings: NearestSettings, alpha: float, multipliers: Array
) -> NearestPart:
    """Fit a nearest-medoid model: features of the configuration, standardized, and the medoids of each class."""
    features = feature_matrix(train.X, configuration, train.correlation, settings.kind)
    scaling = fit_standard(features)
    standardized = scaling.apply(features)
    medoids, medoid_classes = sampled_class_medoids(standardized, train.samples, n_medoids=settings.n_medoids)
    return NearestPart(
        input_scaling=train.scaling,
        configuration=configuration,
        weights=tuple(subset_weights(train.correlation, subset, settings.kind) for subset in configuration),
        signed=settings.signed,
        feature_scaling=scaling,
        medoids=standardized[medoids],
        medoid_classes=medoid_classes,
        medoid_rows=train.rows[medoids],
        multipliers=multipliers,
        alpha=alpha,
        use_angular=settings.use_angular,
        angle=settings.angle,
    )


class RebuildObjective:
    """Macro-F1 of the pooled validation predictions of all folds, computed from scratch each time.

    `alpha` and `multipliers` (C,) are those of the search.
    """

    def __init__(self, folds: Sequence[Fold], settings: NearestSettings, *, alpha: float, multipliers: Array) -> None:
        self.folds = folds
        self.settings = settings
        self.alpha = alpha
        self.multipliers = multipliers
        self.configuration: Configuration = ()

    def start(self, configuration: Configuration) -> float:
        """Make a configuration the current one and score it."""
        self.configuration = configuration
        return float(self.scores(0, [configuration[0]])[0])

    def scores(self, anchor: int, subsets: Sequence[Subset]) -> Array:
        """Scores with one subset replaced, shape (n_subsets,)."""
        return np.array([self._score(_replaced(self.configuration, anchor, subset)) for subset in subsets])

    def commit(self, anchor: int, subset: Subset) -> None:
        """Replace one subset for good."""
        self.configuration = _replaced(self.configuration, anchor, subset)

    def _score(self, configuration: Configuration) -> float:
        confusion = np.zeros((len(self.multipliers), len(self.multipliers)))
        for fold in self.folds:
            confusion += fold_confusion(
                fold, configuration, self.settings, alpha=self.alpha, multipliers=self.multipliers
            )
        return ClassMetrics(confusion).macro_f1


def fold_confusion(
    fold: Fold, configuration: Configuration, settings: NearestSettings, *, alpha: float, multipliers: Array
) -> Array:
    """Confusion matrix of a fold's validation rows for the one-medoid model of a configuration, shape (C, C)."""
    single = replace(settings, n_medoids=1)
    model = fit_nearest_model(fold.train, configuration, single, alpha, multipliers)
    scores = fusion_scores(
        model.feature_channels(model.scaled_features(fold.X_val)),
        alpha,
        use_angular=settings.use_angular,
        multipliers=multipliers,
    )
    return confusion_matrix(fold.codes_val, first_smallest_of_rows(scores), len(multipliers))


Counts = npt.NDArray[np.int64]
Packed = tuple[Codes, Codes]
"""Columns that subsets of equal length use, rising, and the subsets as positions among them."""
# Folds with at least this many numbers (rows × features) are worth a separate thread.
_LARGE_FOLD = 1_000_000


class IncrementalObjective(RebuildObjective):
    """The same scores, by the search kernel, which must be built.

    As soon as two folds are large, threads go over the folds: as many as ``QMEDOID_THREADS`` says, else one per core.
    Scores do not change. `n_rebuilt` is how often a fold was left to the definition because rounding would have
    decided.
    """

    def __init__(self, folds: Sequence[Fold], settings: NearestSettings, *, alpha: float, multipliers: Array) -> None:
        super().__init__(folds, settings, alpha=alpha, multipliers=multipliers)
        self.n_rebuilt = 0
        self._n_workers = min(thread_count(None), len(folds))
        self._states = [_FoldObjective(fold, settings, alpha, multipliers) for fold in folds]

    def scores(self, anchor: int, subsets: Sequence[Subset]) -> Array:
        """Scores with one subset replaced, shape (n_subsets,); all subsets begin with one column and are as long."""
        for state in self._states:
            state.follow(self.configuration)
        packed = _packed(subsets)
        pooled = np.zeros((len(subsets), len(self.multipliers), len(self.multipliers)), dtype=np.int64)
        for counts, rebuilt in self._over_folds(anchor, subsets, packed):
            pooled += counts
            self.n_rebuilt += rebuilt
        return macro_f1(pooled)

    def _over_folds(self, anchor: int, subsets: Sequence[Subset], packed: Packed) -> list[tuple[Counts, int]]:
        if self._n_workers == 1 or sum(state.size >= _LARGE_FOLD for state in self._states) < 2:
            return [state.confusions(anchor, subsets, packed) for state in self._states]
        # An interrupt waits for all of them: the next call writes what they read.
        with ThreadPoolExecutor(self._n_workers) as pool:
            return list(pool.map(lambda state: state.confusions(anchor, subsets, packed), self._states))


def macro_f1(confusions: Counts) -> Array:
    """Macro-F1 of each confusion matrix of a stack of shape (n, C, C), shape (n,).

    The counts are whole, so 2·TP / ((TP + FP) + (TP + FN)) is to the last bit what ``ClassMetrics.macro_f1`` divides.
    """
    hits = 2.0 * np.einsum("ncc->nc", confusions)
    whole = confusions.sum(axis=1) + confusions.sum(axis=2)
    ratios = hits / np.maximum(whole, 1)  # a class that appears nowhere has no hits either: 0
    means: Array = ratios.mean(axis=1)
    return means


def _packed(subsets: Sequence[Subset]) -> Packed:
    members = np.array(sorted(set().union(*subsets)), dtype=np.intp)
    return members, np.searchsorted(members, np.array(subsets, dtype=np.intp))


class _FoldObjective:
    """Confusion matrices of one fold."""

    def __init__(self, fold: Fold, settings: NearestSettings, alpha: float, multipliers: Array) -> None:
        self.fold = fold
        self.settings = settings
        self.alpha = alpha
        self.multipliers = multipliers
        self.search = FoldSearch(
            fold.train.X,
            fold.train.samples,
            fold.X_val,
            fold.codes_val,
            multipliers=multipliers,
            alpha=alpha,
            angle=settings.angle if settings.use_angular and alpha != 1.0 else "none",
            signed=settings.signed,
        )
        # The configuration that the arrays of the search hold; empty while they are being written.
        self.held: Configuration = ()

    @property
    def size(self) -> int:
        """Rows × features, the size of one evaluation."""
        return (len(self.fold.train.X) + len(self.fold.X_val)) * len(self.held)

    def follow(self, configuration: Configuration) -> None:
        """Bring the features up to a configuration, replacing as few as possible."""
        if self.held is configuration:
            return
        held, self.held = self.held, ()
        changed = [a for a, subset in enumerate(configuration) if held[a : a + 1] != (subset,)]
        if len(held) == len(configuration) and len(changed) <= len(held) // 2:
            for a in changed:
                self.search.replace(a, self._column(configuration[a]))
        else:
            self.search.start([self._column(subset) for subset in configuration])
        self.held = configuration

    def confusions(self, anchor: int, subsets: Sequence[Subset], packed: Packed) -> tuple[Counts, int]:
        """Confusion matrix for each subset, shape (n_subsets, C, C), and how many were left to the definition."""
        counts, unsure = self.search.evaluate(anchor, self._candidates(subsets[0][0], *packed))
        doubtful = [int(i) for i in np.flatnonzero(unsure)]
        for i in doubtful:
            counts[i] = fold_confusion(
                self.fold,
                _replaced(self.held, anchor, subsets[i]),
                self.settings,
                alpha=self.alpha,
                multipliers=self.multipliers,
            )
        return counts, len(doubtful)

    def _column(self, subset: Subset) -> Candidates:
        return self._candidates(subset[0], *_packed([subset]))

    def _candidates(self, column: int, members: Codes, picks: Codes) -> Candidates:
        """Subsets of the anchor `column` with their weights and factors on this fold (algorithms 2 and 2b)."""
        correlation, kind = self.fold.train.correlation, self.settings.kind
        weights, factors = np.ones(len(members)), np.ones(len(picks))
        if kind == "multiplicative":  # every column has the same weight, so it can be taken out of the norm
            factors = np.array([subset_weights(correlation, (column, *members[p[1:]]), kind)[0] for p in picks])
        elif kind != "unweighted":
            weights = correlation[column, members]
        return Candidates(members, weights, picks, factors)


def _replaced(configuration: Configuration, anchor: int, subset: Subset) -> Configuration:
    return (*configuration[:anchor], subset, *configuration[anchor + 1 :])
