"""Fit of the nearest-medoid method: choice of α and final models (algorithms 10 and 12)."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import warn
from qmedoid.geometry.channels import Channels, fusion_scores
from qmedoid.geometry.groups import Configuration
from qmedoid.kernels.ties import first_smallest_of_rows
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.nearest.problem import Fold, NearestSettings, TrainingRows, fit_nearest_model
from qmedoid.metrics.classification import evaluate
from qmedoid.optimize.descent import DescentResult, Record, Sweep, alpha_sweep


class Selected(NamedTuple):
    """The record of the choice of a model."""

    record: Record  # the search at its size
    sweep: Sweep  # the α sweep
    option: int  # index of its class multipliers
    # Channels of the folds' validation rows, each from the model of its fold; None if interrupted.
    out_of_fold: Channels | None


def select_models(
    train: TrainingRows,
    folds: Sequence[Fold],
    found: DescentResult,
    settings: NearestSettings,
    options: Sequence[Array],
) -> list[tuple[NearestPart, Selected]]:
    """Calibrate and fit the models of the best scores during the search, over k (algorithm 12).

    An interrupt (Ctrl-C) does not lose the search: the models that are ready are returned, or the best one with the α
    of the search and the first of the options. `options` are class multipliers (C,) to choose from, of equal ones the
    first; `train` are the rows of the final fit.
    """
    chosen: list[Selected] = []
    try:
        for record in found.ranked()[: settings.n_models]:
            out_of_fold, codes = out_of_fold_channels(folds, record.configuration, settings, options[0])
            sweep, option = calibrate(out_of_fold, codes, settings.use_angular, settings.alphas, options)
            chosen.append(Selected(record, sweep, option, out_of_fold))
    except KeyboardInterrupt:
        warn(f"The calibration was interrupted: {len(chosen) or 1} of {settings.n_models} models are kept.")
    if not chosen:
        record = found.ranked()[0]
        uncalibrated = Sweep(np.array([settings.search_alpha]), np.array([record.score]), 0)
        chosen = [Selected(record, uncalibrated, 0, None)]
    return [
        (fit_nearest_model(train, one.record.configuration, settings, one.sweep.value, options[one.option]), one)
        for one in chosen
    ]


def calibrate(
    channels: Channels, codes: Codes, use_angular: bool, alphas: Sequence[float], options: Sequence[Array]
) -> tuple[Sweep, int]:
    """α and class multipliers with the best out-of-fold macro-F1 (algorithm 10)."""

    def macro_f1(alpha: float, multipliers: Array) -> float:
        scores = fusion_scores(channels, alpha, use_angular=use_angular, multipliers=multipliers)
        return evaluate(codes, first_smallest_of_rows(scores), len(multipliers)).macro_f1

    sweeps = [alpha_sweep(partial(macro_f1, multipliers=option), alphas) for option in options]
    best = int(np.argmax([sweep.score for sweep in sweeps]))
    return sweeps[best], best


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
