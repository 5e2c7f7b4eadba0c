"""The configuration objective the plain way: every score rebuilds features, scalers, medoids and predictions.

It is the definition that the incremental objective must reproduce, and the baseline its speed is measured against.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from qmedoid.arrays import Array
from qmedoid.fitting.model import fit_fusion_model
from qmedoid.fitting.problem import Fold, FusionSettings
from qmedoid.geometry.fusion import fusion_scores, predict_codes
from qmedoid.geometry.groups import Configuration, Subset
from qmedoid.metrics.classification import ClassMetrics, confusion_matrix


class RebuildObjective:
    """Macro-F1 of the pooled validation predictions of all folds, computed from scratch each time.

    Parameters
    ----------
    folds : sequence of Fold
    settings : FusionSettings
    alpha : float
        Share of the distance channel during the search.
    multipliers : ndarray of shape (C,)
        Class multipliers during the search.
    """

    def __init__(self, folds: Sequence[Fold], settings: FusionSettings, *, alpha: float, multipliers: Array) -> None:
        self.folds = folds
        self.settings = settings
        self.alpha = alpha
        self.multipliers = multipliers
        self.configuration: Configuration = ()

    def start(self, configuration: Configuration) -> float:
        """Make a configuration the current one and score it."""
        self.configuration = configuration
        return self._score(configuration)

    def scores(self, anchor: int, subsets: Sequence[Subset]) -> Array:
        """Scores with one subset replaced, shape (n_subsets,)."""
        return np.array([self._score(self._replaced(anchor, subset)) for subset in subsets])

    def commit(self, anchor: int, subset: Subset) -> None:
        """Replace one subset for good."""
        self.configuration = self._replaced(anchor, subset)

    def _replaced(self, anchor: int, subset: Subset) -> Configuration:
        return (*self.configuration[:anchor], subset, *self.configuration[anchor + 1 :])

    def _score(self, configuration: Configuration) -> float:
        n_classes = len(self.multipliers)
        confusion = np.zeros((n_classes, n_classes))
        for fold in self.folds:
            confusion += fold_confusion(
                fold, configuration, self.settings, alpha=self.alpha, multipliers=self.multipliers
            )
        return ClassMetrics(confusion).macro_f1


def fold_confusion(
    fold: Fold, configuration: Configuration, settings: FusionSettings, *, alpha: float, multipliers: Array
) -> Array:
    """Confusion matrix of a fold's validation rows for the one-medoid model of a configuration, shape (C, C)."""
    single = replace(settings, n_medoids=1)
    model = fit_fusion_model(fold.train, configuration, single, alpha=alpha, multipliers=multipliers)
    scores = fusion_scores(
        model.feature_channels(model.scaled_features(fold.X_val)),
        alpha,
        use_angular=settings.use_angular,
        multipliers=multipliers,
    )
    return confusion_matrix(fold.codes_val, predict_codes(scores), len(multipliers))
