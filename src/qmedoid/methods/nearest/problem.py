"""The fit of a nearest-medoid model for one configuration: settings, folds, training rows (algorithms 3 and 5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.groups import Configuration, FeatureKind, correlation_matrix, feature_matrix, subset_weights
from qmedoid.geometry.medoids import class_samples, sampled_class_medoids
from qmedoid.geometry.overlap import AngleKind
from qmedoid.geometry.scaling import Scaling, ScalingKind, fit_scaling, fit_standard
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.optimize.sweep import ALPHA_GRID

Selection = Literal["best", "one_se"]
SELECTIONS: tuple[Selection, ...] = ("best", "one_se")


@dataclass(frozen=True)
class NearestSettings:
    """Settings of a nearest-medoid model.

    Attributes
    ----------
    kind : feature kind
    input_scaling : scaling of the raw columns
    use_angular, angle : whether there is an angular channel, and which angle it holds
    n_medoids : medoids per class in the final model; the search always uses one
    max_medoid_rows : maximum number of rows of a class among which its medoid is searched (algorithm 4)
    search_alpha : α while configurations are compared
    alphas : grid on which α is calibrated afterwards
    n_models : number of models kept, one per subset size
    selection : whether the best out-of-fold score decides, or the simplest within a standard error of it
    """

    kind: FeatureKind = "signed"
    input_scaling: ScalingKind = "standard"
    use_angular: bool = True
    angle: AngleKind = "true"
    n_medoids: int = 1
    max_medoid_rows: int = 1000
    search_alpha: float = 0.75
    alphas: tuple[float, ...] = ALPHA_GRID
    n_models: int = 1
    selection: Selection = "best"

    @property
    def signed(self) -> bool:
        """Whether features carry a sign."""
        return self.kind == "signed"


@dataclass(frozen=True)
class TrainingRows:
    """Rows that a model is fitted on, with all that does not depend on a configuration.

    Attributes
    ----------
    X : ndarray of shape (n, M)
        Scaled columns.
    codes : ndarray of shape (n,)
        Class codes.
    rows : ndarray of shape (n,)
        Number of each row in the table it was taken from.
    scaling : Scaling
        The scaling of the raw columns, fitted on these rows.
    correlation : ndarray of shape (M, M)
        Correlation of the columns on these rows: the weights of the features.
    samples : tuple of ndarray
        For each class the places in X among which its medoid is searched, ascending.
    """

    X: Array
    codes: Codes
    rows: Codes
    scaling: Scaling
    correlation: Array
    samples: tuple[Codes, ...]


@dataclass(frozen=True)
class Fold:
    """Training rows and validation rows, scaled alike; `rows_val` are the row numbers of the latter."""

    train: TrainingRows
    X_val: Array
    codes_val: Codes
    rows_val: Codes


def prepare_rows(
    X: Array, codes: Codes, rows: Codes, n_classes: int, settings: NearestSettings, rng: np.random.Generator
) -> TrainingRows:
    """Scale rows of a table, correlate its columns over them and draw the samples for medoids."""
    scaling = fit_scaling(X[rows], settings.input_scaling)
    scaled = scaling.apply(X[rows])
    samples = class_samples(codes[rows], n_classes, max_rows=settings.max_medoid_rows, rng=rng)
    return TrainingRows(scaled, codes[rows], rows, scaling, correlation_matrix(scaled), samples)


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
        train = prepare_rows(X, codes, train_rows, n_classes, settings, rng)
        folds.append(Fold(train, train.scaling.apply(X[val_rows]), codes[val_rows], val_rows))
    return folds


def fit_nearest_model(
    train: TrainingRows, configuration: Configuration, settings: NearestSettings, alpha: float, multipliers: Array
) -> NearestPart:
    """Fit a nearest-medoid model: features of the configuration, standardized, and the medoids of each class."""
    features = feature_matrix(train.X, configuration, train.correlation, settings.kind)
    scaling = fit_standard(features)
    standardized = scaling.apply(features)
    picked = sampled_class_medoids(standardized, train.samples, n_medoids=settings.n_medoids)
    return NearestPart(
        input_scaling=train.scaling,
        configuration=configuration,
        weights=tuple(subset_weights(train.correlation, subset, settings.kind) for subset in configuration),
        signed=settings.signed,
        feature_scaling=scaling,
        medoids=standardized[picked.rows],
        medoid_classes=picked.classes,
        medoid_rows=train.rows[picked.rows],
        multipliers=multipliers,
        alpha=alpha,
        use_angular=settings.use_angular,
        angle=settings.angle,
    )
