"""A fusion model from training rows and a configuration (algorithms 3 and 5)."""

import numpy as np
import numpy.typing as npt

from qmedoid.fitting.problem import FusionSettings, TrainingRows
from qmedoid.geometry.features import feature_matrix, subset_weights
from qmedoid.geometry.groups import Configuration
from qmedoid.geometry.medoids import k_medoids, medoid_index
from qmedoid.geometry.scaling import fit_standard
from qmedoid.models.fusion import FusionModel

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


def fit_fusion_model(
    train: TrainingRows,
    configuration: Configuration,
    settings: FusionSettings,
    *,
    alpha: float,
    multipliers: Array,
) -> FusionModel:
    """Features of the configuration, standardised on the training rows, and the medoids of each class."""
    features = feature_matrix(train.X, configuration, train.correlation, settings.kind)
    scaling = fit_standard(features)
    standardised = scaling.apply(features)
    picked = [_class_medoids(standardised, sample, settings.n_medoids) for sample in train.samples]
    positions = np.concatenate(picked)
    return FusionModel(
        input_scaling=train.scaling,
        configuration=configuration,
        weights=tuple(subset_weights(train.correlation, subset, settings.kind) for subset in configuration),
        signed=settings.signed,
        feature_scaling=scaling,
        medoids=standardised[positions],
        medoid_classes=np.repeat(np.arange(len(picked)), [len(p) for p in picked]),
        medoid_rows=train.rows[positions],
        multipliers=multipliers,
        alpha=alpha,
        use_angular=settings.use_angular,
        angle=settings.angle,
    )


def _class_medoids(features: Array, sample: Codes, n_medoids: int) -> Codes:
    if n_medoids == 1:
        return sample[[medoid_index(features[sample])]]
    return sample[k_medoids(features[sample], n_medoids)]
