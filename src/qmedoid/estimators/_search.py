"""The search of a `NearestMedoidClassifier`: folds, groups, configurations, α and models (algorithms 7, 10)."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._folds import check_counts, check_splits, stratified_splits
from qmedoid.estimators._inputs import check_size, multiplier_options
from qmedoid.estimators._methods import FitReport, TrainingTable, check_refit
from qmedoid.estimators.groups import make_groups, sizes_within
from qmedoid.exceptions import InterruptedWarning, warn
from qmedoid.geometry.groups import Groups
from qmedoid.methods.nearest.fit import SearchSettings, Selected, search_configurations, select_models
from qmedoid.methods.nearest.problem import Fold, FusionSettings, TrainingRows, prepare_folds, prepare_rows
from qmedoid.optimize.descent import ALPHA_GRID


class FoundModels(NamedTuple):
    """The best models, best first, the rows that each fold held out, the groups, and the course of the search."""

    selected: list[Selected]
    folds: list[Codes]
    groups: Groups
    trace: list[Any]
    records: list[Any]


def search_models(
    estimator: Any, data: TrainingTable, report: FitReport, validation: tuple[Array, Codes] | None = None
) -> FoundModels:
    """Search configurations and α by the parameters of a `NearestMedoidClassifier`.

    Parameters
    ----------
    validation : (ndarray of shape (n, M), class codes), optional
        Rows to choose on, instead of the folds of `cv`.
    """
    if estimator.input_scaling == "none":
        check_size(data.X, data.names)
    check_counts(data.codes, data.classes, data.X.shape[1])
    rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31, size=4))
    settings = FusionSettings(
        kind=estimator.kind,
        input_scaling=estimator.input_scaling,
        use_angular=estimator.use_angular,
        angle=estimator.angle,
        n_medoids=estimator.n_medoids,
        max_medoid_rows=estimator.max_medoid_rows,
    )
    train, folds = _training_data(estimator, data, validation, settings, rng)
    groups = make_groups(
        train.X,
        train.codes,
        order=estimator.anchor_order,
        group_size=estimator.group_size,
        n_anchors=estimator.n_anchors,
        names=data.names,
        quiet=data.is_checked,
    )
    alphas = ALPHA_GRID if estimator.alpha is None else (float(estimator.alpha),)
    search = SearchSettings(
        sizes=sizes_within(groups, estimator.subset_sizes),
        max_passes=estimator.max_passes,
        candidate_budget=estimator.candidate_budget,
        search_alpha=float(estimator.search_alpha),
        alphas=alphas if estimator.use_angular else (1.0,),
        n_models=estimator.n_models,
        selection=estimator.selection,
    )
    options = multiplier_options(estimator.class_weight, train.codes, data.classes)
    report.begin(len(search.sizes) * search.max_passes * len(groups.anchors))
    found = search_configurations(
        folds, groups, settings, search, options[0], rng,
        progress=lambda progress: report.step(f"k={progress.size}, pass {progress.sweep}"),
    )  # fmt: skip
    if found.interrupted:
        message = f"The search was interrupted after {len(found.trace)} evaluations; the best so far is used."
        warn(message, InterruptedWarning)
    selected = select_models(train, folds, found, settings, search, options)
    counts = np.bincount(selected[0].model.medoid_classes)
    if counts.min() < estimator.n_medoids:
        warn(
            f"n_medoids={estimator.n_medoids} is more than the {counts.min()} rows of class "
            f"{data.classes.tolist()[counts.argmin()]!r} that medoids are sought among: all of them were used."
        )
    return FoundModels(selected, [fold.rows_val for fold in folds], groups, found.trace, found.records)


def _training_data(
    estimator: Any,
    data: TrainingTable,
    validation: tuple[Array, Codes] | None,
    settings: FusionSettings,
    rng: np.random.Generator,
) -> tuple[TrainingRows, list[Fold]]:
    """The rows of the final fit, and the folds that judge configurations."""
    table, codes, n_classes = data.X, data.codes, len(data.classes)
    everything = np.arange(len(table))
    if validation is not None:
        train = prepare_rows(table, codes, everything, n_classes, settings, rng)
        held_out, labels = validation
        nowhere = np.full(len(held_out), -1, dtype=np.intp)
        return train, [Fold(train, train.scaling.apply(held_out), labels, nowhere)]
    splits = stratified_splits(estimator.cv, table, codes, data.classes, rng, data.groups)
    check_splits(type(estimator).__name__, splits, codes, data.classes)
    folds = prepare_folds(table, codes, splits, n_classes, settings, rng)
    if estimator.refit:
        return prepare_rows(table, codes, everything, n_classes, settings, rng), folds
    check_refit(False, len(folds))
    return folds[0].train, folds
