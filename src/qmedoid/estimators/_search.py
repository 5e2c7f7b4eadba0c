"""The search of a `NearestMedoidClassifier`: groups, folds, configurations, α and models (algorithms 1 to 3, 7, 10)."""

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.utils import check_random_state

from qmedoid.arrays import Array, Codes
from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.inputs import check_size, column_label, given_weights
from qmedoid.estimators.recipes import FitReport
from qmedoid.exceptions import ConstantColumnWarning, DataError, InterruptedWarning, warn
from qmedoid.geometry.channels import printed_multipliers, prior_multipliers
from qmedoid.geometry.groups import (
    Groups,
    build_groups,
    constant_columns,
    correlation_matrix,
    correlation_ratio,
)
from qmedoid.kernels.backend import compiled
from qmedoid.methods.nearest.fit import Selected, select_models
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.nearest.problem import (
    Fold,
    IncrementalObjective,
    NearestSettings,
    RebuildObjective,
    TrainingRows,
    prepare_folds,
)
from qmedoid.optimize.descent import ALPHA_GRID, coordinate_descent

AUTO_EXPONENTS = (0.0, 0.25, 0.5)
SCORE_WEIGHTS = ("auto", "balanced", "printed")
DEFAULT_GROUP_SIZE = 8
AnchorOrder = Literal["association", "codes", "columns"]
DEFAULT_SIZES = (2, 5)
MOST_CORRELATED = 5_000
"""Columns at most: their correlations, and copies of them, take a gigabyte."""
PRINTED: Mapping[str, Any] = {
    "kind": "weighted",
    "input_scaling": "none",
    "n_anchors": None,
    "angle": "printed",
    "search_alpha": 0.9,
    "score_weight": "printed",
    "anchor_order": "codes",
    "cv": StratifiedShuffleSplit(n_splits=1, test_size=0.25, random_state=0),
    "refit": False,
}
"""Its parameters as the paper has them."""


def make_groups(
    estimator: Any,
    X: Array,
    codes: Codes,
    names: Any,
    *,
    quiet: bool,
) -> Groups:
    """Groups over the columns that vary, by the parameters of an estimator; a warning for every adjustment.

    With `quiet`, constant columns are dropped without a warning.
    """
    constant = constant_columns(X)
    if constant.all():
        raise DataError(
            f"All {X.shape[1]} columns of X are constant: no column distinguishes records. "
            "Pass at least one column that varies."
        )
    if constant.any() and not quiet:
        labels = ", ".join(column_label(int(c), names) for c in np.flatnonzero(constant)[:10])
        more = f" and {constant.sum() - 10} more" if constant.sum() > 10 else ""
        dropped = "was dropped: it correlates" if constant.sum() == 1 else "were dropped: they correlate"
        warn(f"{labels}{more} held one value only and {dropped} with nothing.", ConstantColumnWarning)
    asked, n_columns = estimator.group_size, int((~constant).sum())
    if asked is not None and asked > n_columns:
        warn(f"group_size={asked} is more than the {n_columns} columns that vary: {n_columns} was used.")
    association = None
    if estimator.anchor_order == "association":
        association = correlation_ratio(X, codes)
    elif estimator.anchor_order == "codes":
        # With label codes 0, 1, 2, … the printed rule.
        association = np.abs(correlation_matrix(np.column_stack([X, codes]))[:-1, -1])
    return build_groups(
        correlation_matrix(X),
        group_size=min(asked or DEFAULT_GROUP_SIZE, n_columns),
        association=association,
        usable=~constant,
        n_anchors=estimator.n_anchors,
    )


def _warn_of_few_rows(codes: Codes, classes: npt.NDArray[Any], n_columns: int) -> None:
    """Warn about tables that can be fitted but leave little to learn from."""
    counts = np.bincount(codes, minlength=len(classes))
    if (counts == 1).all():
        warn("Every class has one row: those rows are the medoids, and there are no others to judge the fit by.")
    else:
        for label in classes[counts == 1].tolist():
            warn(f"Class {label!r} has one row: that row is its medoid, and it is never held out to judge the fit.")
    if len(codes) < n_columns:
        warn(
            f"{len(codes)} rows for {n_columns} columns: correlations between columns are unsure, and so are the "
            "groups built on them. They were built all the same."
        )


def multiplier_options(score_weight: Any, codes: Codes, classes: npt.NDArray[Any]) -> list[Array]:
    """Multipliers to choose from, the first being the one that the search uses; the way must be allowed."""
    priors = np.bincount(codes, minlength=len(classes)) / len(codes)
    if score_weight is None:
        return [np.ones(len(classes))]
    if isinstance(score_weight, Mapping):
        return [given_weights(score_weight, classes, "score_weight")]
    if score_weight == "auto":
        return [prior_multipliers(priors, exponent) for exponent in AUTO_EXPONENTS]
    if score_weight == "balanced":
        return [prior_multipliers(priors, 1.0)]
    return [printed_multipliers(priors)]


def search_models(
    estimator: Any, data: TrainingTable, report: FitReport, validation: tuple[Array, Codes] | None = None
) -> tuple[list[tuple[NearestPart, Selected]], list[Codes], Groups, list[Any], list[Any]]:
    """Search configurations and α by the parameters of a `NearestMedoidClassifier`, in folds or on validation rows.

    Returns the best models with their choices, best first; the rows that each fold held out; groups, every
    configuration that was scored, and the best of each size.
    """
    if data.X.shape[1] > MOST_CORRELATED:
        raise DataError(
            f"Groups are made of the correlations of all pairs of columns, at most {MOST_CORRELATED:,} of them. X has "
            f"{data.X.shape[1]:,} columns: leave some out, or take method='evidence', which has no such limit."
        )
    if estimator.input_scaling == "none":
        check_size(data.X, data.names)
    _warn_of_few_rows(data.codes, data.classes, data.X.shape[1])
    rng = np.random.default_rng(check_random_state(estimator.random_state).randint(2**31, size=4))
    alphas = ALPHA_GRID if estimator.alpha is None else (float(estimator.alpha),)
    settings = NearestSettings(
        kind=estimator.kind,
        input_scaling=estimator.input_scaling,
        use_angular=estimator.use_angular,
        angle=estimator.angle,
        n_medoids=estimator.n_medoids,
        max_medoid_rows=estimator.max_medoid_rows,
        search_alpha=float(estimator.search_alpha),
        alphas=alphas if estimator.use_angular else (1.0,),
        n_models=estimator.n_models,
    )
    train, folds = _training_data(estimator, data, validation, settings, rng)
    groups = make_groups(estimator, train.X, train.codes, data.names, quiet=data.is_checked)
    passes, largest, wanted = estimator.max_passes, len(groups.members[0]), estimator.subset_sizes
    first, last = (min(size, largest) for size in wanted or DEFAULT_SIZES)
    if wanted is not None and last < wanted[1]:
        warn(f"subset_sizes={wanted} goes beyond the groups of {largest} columns: ({first}, {last}) was used.")
    sizes = tuple(range(first, last + 1))
    options = multiplier_options(estimator.score_weight, train.codes, data.classes)
    report.begin(len(sizes) * passes * len(groups.anchors))
    objective = IncrementalObjective if compiled("search") else RebuildObjective
    found = coordinate_descent(
        objective(folds, settings, alpha=settings.search_alpha, multipliers=options[0]),
        groups.members,
        sizes,
        max_passes=passes,
        candidate_budget=estimator.candidate_budget,
        rng=rng,
        progress=lambda size, sweep, _: report.step(f"k={size}, pass {sweep}"),
    )
    if found.interrupted:
        message = f"The search was interrupted after {len(found.trace)} evaluations; the best so far is used."
        warn(message, InterruptedWarning)
    selected = select_models(train, folds, found, settings, options)
    counts = np.bincount(selected[0][0].medoid_classes)
    if counts.min() < estimator.n_medoids:
        warn(
            f"n_medoids={estimator.n_medoids} is more than the {counts.min()} rows of class "
            f"{data.classes.tolist()[counts.argmin()]!r} that medoids are sought among: all of them were used."
        )
    return selected, [fold.rows_val for fold in folds], groups, found.trace, found.records


def _training_data(
    estimator: Any,
    data: TrainingTable,
    validation: tuple[Array, Codes] | None,
    settings: NearestSettings,
    rng: np.random.Generator,
) -> tuple[TrainingRows, list[Fold]]:
    """The rows of the final fit, and the folds that judge configurations."""
    table, codes, n_classes = data.X, data.codes, len(data.classes)
    everything = np.arange(len(table))
    if validation is not None:
        train = TrainingRows(table, codes, everything, n_classes, settings, rng)
        held_out, labels = validation
        nowhere = np.full(len(held_out), -1, dtype=np.intp)
        return train, [Fold(train, train.scaling.apply(held_out), labels, nowhere)]
    folds = prepare_folds(table, codes, data.splits(estimator, rng), n_classes, settings, rng)
    if estimator.refit:
        return TrainingRows(table, codes, everything, n_classes, settings, rng), folds
    return folds[0].train, folds
