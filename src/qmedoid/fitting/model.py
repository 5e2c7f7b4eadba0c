"""A fusion model from training rows and a configuration (algorithms 3 and 5)."""

from qmedoid.arrays import Array
from qmedoid.fitting.problem import FusionSettings, TrainingRows
from qmedoid.geometry.features import feature_matrix, subset_weights
from qmedoid.geometry.groups import Configuration
from qmedoid.geometry.medoids import sampled_class_medoids
from qmedoid.geometry.scaling import fit_standard
from qmedoid.models.fusion import FusionModel


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
    picked = sampled_class_medoids(standardised, train.samples, n_medoids=settings.n_medoids)
    return FusionModel(
        input_scaling=train.scaling,
        configuration=configuration,
        weights=tuple(subset_weights(train.correlation, subset, settings.kind) for subset in configuration),
        signed=settings.signed,
        feature_scaling=scaling,
        medoids=standardised[picked.rows],
        medoid_classes=picked.classes,
        medoid_rows=train.rows[picked.rows],
        multipliers=multipliers,
        alpha=alpha,
        use_angular=settings.use_angular,
        angle=settings.angle,
    )
