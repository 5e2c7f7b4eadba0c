"""The fusion model: scaled columns, anchor features, medoids, and one score per class (algorithm 8)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmedoid.geometry.features import anchor_feature
from qmedoid.geometry.fusion import Channels, class_channels, fusion_scores, margins, predict_codes
from qmedoid.geometry.overlap import AngleKind, SwapTest, compact_swap_test
from qmedoid.geometry.scaling import Scaling

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class FusionModel:
    """A fitted nearest-medoid rule over the features of one configuration.

    Attributes
    ----------
    input_scaling : Scaling of shape (M,)
        Applied to the raw columns.
    configuration : tuple of tuple of int
        Columns of each anchor's subset, the anchor first.
    weights : tuple of ndarray
        Weight of each column of each subset.
    signed : bool
        Whether features carry the sign of their weighted sum.
    feature_scaling : Scaling of shape (A,)
        Training mean and deviation of the features.
    medoids : ndarray of shape (P, A)
        Standardised features of the medoids, class by class.
    medoid_classes, medoid_rows : ndarray of shape (P,)
        Class code and training row of each medoid.
    multipliers : ndarray of shape (C,)
        Factor on each class's score; below 1 draws a class nearer.
    alpha : float
        Share of the distance channel in the score.
    use_angular : bool
        Whether the angle has a share at all.
    angle : {"true", "printed"}
        Which angle it is.
    """

    input_scaling: Scaling
    configuration: tuple[tuple[int, ...], ...]
    weights: tuple[Array, ...]
    signed: bool
    feature_scaling: Scaling
    medoids: Array
    medoid_classes: Codes
    medoid_rows: Codes
    multipliers: Array
    alpha: float
    use_angular: bool
    angle: AngleKind

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return len(self.multipliers)

    def features(self, X: Array) -> Array:
        """Standardised anchor features of raw rows, shape (n, A) (algorithms 2 and 3)."""
        return self.scaled_features(self.input_scaling.apply(X))

    def scaled_features(self, scaled: Array) -> Array:
        """Standardised anchor features of rows whose columns are scaled already, shape (n, A)."""
        columns = [
            anchor_feature(scaled, subset, weights, signed=self.signed)
            for subset, weights in zip(self.configuration, self.weights, strict=True)
        ]
        return self.feature_scaling.apply(np.column_stack(columns))

    def swap_test(self, features: Array) -> SwapTest:
        """Overlap, distance and angle of every feature vector to every medoid, each of shape (n, P) (algorithm 6)."""
        return compact_swap_test(features, self.medoids, angle=self.angle)

    def channels(self, X: Array) -> Channels:
        """Distance and angle to the nearest medoid of each class, each of shape (n, C)."""
        return self.feature_channels(self.features(X))

    def feature_channels(self, features: Array) -> Channels:
        """Channels of standardised feature vectors, each of shape (n, C)."""
        measured = self.swap_test(features)
        return class_channels(measured.distance, measured.angle, self.medoid_classes, self.n_classes)[0]

    def scores(self, X: Array) -> Array:
        """Fusion score of every class, shape (n, C); the smallest decides."""
        return fusion_scores(self.channels(X), self.alpha, use_angular=self.use_angular, multipliers=self.multipliers)

    def margins(self, X: Array) -> Array:
        """Decision values: s_0 − s_1 for two classes, −s for more."""
        return margins(self.scores(X))

    def predict(self, X: Array) -> Codes:
        """Class code of every row, shape (n,)."""
        return predict_codes(self.scores(X))
