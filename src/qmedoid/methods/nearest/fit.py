"""Fit of the nearest-medoid method: choice of α and final models (algorithms 10 and 12)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import warn
from qmedoid.geometry.channels import Channels, fusion_scores
from qmedoid.geometry.groups import Configuration
from qmedoid.kernels.ties import first_smallest_of_rows
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.nearest.problem import Fold, NearestSettings, TrainingRows, fit_nearest_model
from qmedoid.metrics.classification import confusion_matrix, evaluate
from qmedoid.metrics.intervals import macro_f1_error
from qmedoid.optimize.descent import DescentResult, Record, Sweep, alpha_sweep, one_se_order


@dataclass(frozen=True)
class Best:
    """The best out-of-fold score of a choice by the one-standard-error rule, with its standard error."""

    score: float  # out-of-fold macro-F1 of the best candidate
    error: float  # its standard error
    # What was left out one at a time for it: the folds or, where there is one fold, its rows.
    over: Literal["folds", "rows"]


class Selected(NamedTuple):
    """The record of the choice of a model."""

    record: Record  # the search at its size
    sweep: Sweep  # the α sweep
    option: int  # index of its class multipliers
    # Channels of the folds' validation rows, each from the model of its fold; None if interrupted.
    out_of_fold: Channels | None
    best: Best | None = None  # what it was held against, where the one-standard-error rule chose


def select_models(
    train: TrainingRows,
    folds: Sequence[Fold],
    found: DescentResult,
    settings: NearestSettings,
    options: Sequence[Array],
) -> list[tuple[NearestPart, Selected]]:
    """Calibrate and fit the best models over k, in the order of `settings.selection` (algorithm 12).

    An interrupt (Ctrl-C) does not lose the search: the models that are ready are returned, or the best one with the α
    of the search and the first of the options. `options` are class multipliers (C,) to choose from, of equal ones the
    first; `train` are the rows of the final fit.
    """
    choose = _simplest_within_error if settings.selection == "one_se" else _best_scores
    chosen = choose(folds, found, settings, options)
    if not chosen:
        record = found.ranked()[0]
        uncalibrated = Sweep(np.array([settings.search_alpha]), np.array([record.score]), 0)
        chosen = [Selected(record, uncalibrated, 0, None)]
    return [
        (fit_nearest_model(train, one.record.configuration, settings, one.sweep.value, options[one.option]), one)
        for one in chosen
    ]


def _best_scores(
    folds: Sequence[Fold], found: DescentResult, settings: NearestSettings, options: Sequence[Array]
) -> list[Selected]:
    """The records of best score during the search, each with the α and multipliers of its best out-of-fold score."""
    chosen: list[Selected] = []
    try:
        for record in found.ranked()[: settings.n_models]:
            out_of_fold, codes = out_of_fold_channels(folds, record.configuration, settings, options[0])
            sweep, option = calibrate(out_of_fold, codes, settings.use_angular, settings.alphas, options)
            chosen.append(Selected(record, sweep, option, out_of_fold))
    except KeyboardInterrupt:
        warn(f"The calibration was interrupted: {len(chosen) or 1} of {settings.n_models} models are kept.")
    return chosen


def _simplest_within_error(
    folds: Sequence[Fold], found: DescentResult, settings: NearestSettings, options: Sequence[Array]
) -> list[Selected]:
    """The records with fewest columns, and the α nearest to that of the search, within a standard error of the best.

    Every record is calibrated, and the best is the best out-of-fold score over records, options and α.
    """
    candidates: list[list[Selected]] = []
    try:
        for record in found.ranked():
            channels, codes = out_of_fold_channels(folds, record.configuration, settings, options[0])
            sweeps = _sweeps(channels, codes, settings.use_angular, settings.alphas, options)
            candidates.append([Selected(record, sweep, option, channels) for option, sweep in enumerate(sweeps)])
    except KeyboardInterrupt:
        warn(f"The calibration was interrupted: the choice is among {len(candidates) or 1} of {len(found.records)}.")
    points = [
        choice._replace(sweep=Sweep(choice.sweep.grid, choice.sweep.scores, place))
        for choices in candidates
        for choice in choices
        for place in range(len(choice.sweep.grid))
    ]
    if not points:
        return []
    best = _best(folds, max(points, key=lambda point: point.sweep.score), settings.use_angular, options)
    simplicity = [(point.record.n_columns, abs(point.sweep.value - settings.search_alpha)) for point in points]
    chosen: dict[int, Selected] = {}
    for place in one_se_order([point.sweep.score for point in points], best.error, simplicity):
        chosen.setdefault(points[place].record.size, points[place]._replace(best=best))
    return list(chosen.values())[: settings.n_models]


def _best(folds: Sequence[Fold], choice: Selected, use_angular: bool, options: Sequence[Array]) -> Best:
    """The out-of-fold score of the best choice with its standard error."""
    multipliers, channels = options[choice.option], choice.out_of_fold
    assert channels is not None
    scores = fusion_scores(channels, choice.sweep.value, use_angular=use_angular, multipliers=multipliers)
    ends = np.cumsum([len(fold.codes_val) for fold in folds])
    confusions = [
        confusion_matrix(fold.codes_val, predicted, len(multipliers))
        for fold, predicted in zip(folds, np.split(first_smallest_of_rows(scores), ends[:-1]), strict=True)
    ]
    return Best(choice.sweep.score, macro_f1_error(confusions), "folds" if len(folds) > 1 else "rows")


def calibrate(
    channels: Channels, codes: Codes, use_angular: bool, alphas: Sequence[float], options: Sequence[Array]
) -> tuple[Sweep, int]:
    """α and class multipliers with the best out-of-fold macro-F1 (algorithm 10)."""
    sweeps = _sweeps(channels, codes, use_angular, alphas, options)
    best = int(np.argmax([sweep.score for sweep in sweeps]))
    return sweeps[best], best


def _sweeps(
    channels: Channels, codes: Codes, use_angular: bool, alphas: Sequence[float], options: Sequence[Array]
) -> list[Sweep]:
    def macro_f1(alpha: float, multipliers: Array) -> float:
        scores = fusion_scores(channels, alpha, use_angular=use_angular, multipliers=multipliers)
        return evaluate(codes, first_smallest_of_rows(scores), len(multipliers)).macro_f1

    return [alpha_sweep(partial(macro_f1, multipliers=option), alphas) for option in options]


def out_of_fold_channels(
    folds: Sequence[Fold], configuration: Configuration, settings: NearestSettings, multipliers: Array
) -> tuple[Channels, Codes]:
    """Channels and class codes of every validation row, each from the model of its fold."""
    parts = []
    for fold in folds:
        model = fit_nearest_model(fold.train, configuration, settings, 1.0, multipliers)
        parts.append(model.feature_channels(model.scaled_features(fold.X_val)))
    channels = Channels(*(np.concatenate(channel) for channel in zip(*parts, strict=True)))
    return channels, np.concatenate([fold.codes_val for fold in folds])
