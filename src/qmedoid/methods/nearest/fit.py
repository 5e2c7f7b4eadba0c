"""Fit of the nearest-medoid method: search, choice of α and final models (algorithms 7, 10 and 12)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import warn
from qmedoid.geometry.channels import Channels, fusion_scores, predict_codes
from qmedoid.geometry.groups import Configuration, Groups
from qmedoid.methods.nearest.model import NearestModel
from qmedoid.methods.nearest.objective import IncrementalObjective
from qmedoid.methods.nearest.problem import Fold, NearestSettings, TrainingRows, fit_nearest_model
from qmedoid.metrics.classification import confusion_matrix, evaluate
from qmedoid.metrics.intervals import macro_f1_error
from qmedoid.optimize.descent import (
    DescentResult,
    Progress,
    Record,
    Sweep,
    alpha_sweep,
    coordinate_descent,
    one_se_order,
)

Selection = Literal["best", "one_se"]
SELECTIONS: tuple[Selection, ...] = ("best", "one_se")


@dataclass(frozen=True)
class SearchSettings:
    """Settings of the search of configurations and of the choice of α.

    Attributes
    ----------
    sizes : subset sizes k, rising
    max_passes, candidate_budget : bounds of the descent
    search_alpha : α while configurations are compared
    alphas : grid on which α is calibrated afterwards
    n_models : number of models kept, one per subset size
    selection : whether the best out-of-fold score decides, or the simplest within a standard error of it
    """

    sizes: tuple[int, ...]
    max_passes: int
    candidate_budget: int | None
    search_alpha: float
    alphas: tuple[float, ...]
    n_models: int
    selection: Selection = "best"


@dataclass(frozen=True)
class Best:
    """The best out-of-fold score of a choice by the one-standard-error rule, with its standard error.

    Attributes
    ----------
    score : out-of-fold macro-F1 of the best candidate
    error : its standard error
    over : what was left out one at a time for it: the folds or, where there is one fold, its rows
    """

    score: float
    error: float
    over: Literal["folds", "rows"]


@dataclass(frozen=True)
class Selected:
    """A model with the record of its choice.

    Attributes
    ----------
    model : NearestModel
    record : the search at its size
    sweep : the α sweep
    option : index of its class multipliers
    out_of_fold : channels of the folds' validation rows, each from the model of its fold; None if interrupted
    best : what it was held against, where the one-standard-error rule chose
    """

    model: NearestModel
    record: Record
    sweep: Sweep
    option: int
    out_of_fold: Channels | None
    best: Best | None = None


def search_configurations(
    folds: Sequence[Fold],
    groups: Groups,
    settings: NearestSettings,
    search: SearchSettings,
    multipliers: Array,
    rng: np.random.Generator,
    progress: Callable[[Progress], bool | None] | None = None,
) -> DescentResult:
    """Coordinate descent on the validation macro-F1 of the folds (algorithm 7)."""
    objective = IncrementalObjective(folds, settings, alpha=search.search_alpha, multipliers=multipliers)
    return coordinate_descent(
        objective,
        groups.members,
        search.sizes,
        max_passes=search.max_passes,
        candidate_budget=search.candidate_budget,
        rng=rng,
        progress=progress,
    )


def select_models(
    train: TrainingRows,
    folds: Sequence[Fold],
    found: DescentResult,
    settings: NearestSettings,
    search: SearchSettings,
    options: Sequence[Array],
) -> list[Selected]:
    """Calibrate and fit the best models over k, in the order of `search.selection` (algorithm 12).

    An interrupt (Ctrl-C) does not lose the search: the models that are ready are returned, or the best one with the α
    of the search and the first of the options.

    Parameters
    ----------
    train : TrainingRows
        Rows of the final fit.
    options : sequence of ndarray of shape (C,)
        Class multipliers to choose from; of equal ones the first.
    """
    choose = _simplest_within_error if search.selection == "one_se" else _best_scores
    chosen = choose(folds, found, settings, search, options)
    if not chosen:
        record = found.ranked()[0]
        uncalibrated = Sweep(np.array([search.search_alpha]), np.array([record.score]), 0)
        chosen = [_Choice(record, uncalibrated, 0, None)]
    return [_fitted(train, choice, settings, options) for choice in chosen]


class _Choice(NamedTuple):
    """A configuration with its α and class multipliers; see `Selected`."""

    record: Record
    sweep: Sweep
    option: int
    out_of_fold: Channels | None
    best: Best | None = None


class _Candidate(NamedTuple):
    """A configuration with its channels of out-of-fold rows and a sweep of α for each of the options."""

    record: Record
    out_of_fold: Channels
    sweeps: list[Sweep]


class _Point(NamedTuple):
    """A candidate with one of the options and one α of its grid."""

    candidate: _Candidate
    option: int
    number: int

    @property
    def score(self) -> float:
        return float(self.candidate.sweeps[self.option].scores[self.number])

    @property
    def alpha(self) -> float:
        return float(self.candidate.sweeps[self.option].grid[self.number])

    def choice(self, best: Best) -> _Choice:
        sweep = self.candidate.sweeps[self.option]
        taken = Sweep(sweep.grid, sweep.scores, self.number)
        return _Choice(self.candidate.record, taken, self.option, self.candidate.out_of_fold, best)


def _best_scores(
    folds: Sequence[Fold],
    found: DescentResult,
    settings: NearestSettings,
    search: SearchSettings,
    options: Sequence[Array],
) -> list[_Choice]:
    """The records of best score during the search, each with the α and multipliers of its best out-of-fold score."""
    chosen: list[_Choice] = []
    try:
        for record in found.ranked()[: search.n_models]:
            out_of_fold, codes = out_of_fold_channels(folds, record.configuration, settings, options[0])
            sweep, option = calibrate(out_of_fold, codes, settings.use_angular, search.alphas, options)
            chosen.append(_Choice(record, sweep, option, out_of_fold))
    except KeyboardInterrupt:
        warn(f"The calibration was interrupted: {len(chosen) or 1} of {search.n_models} models are kept.")
    return chosen


def _simplest_within_error(
    folds: Sequence[Fold],
    found: DescentResult,
    settings: NearestSettings,
    search: SearchSettings,
    options: Sequence[Array],
) -> list[_Choice]:
    """The records with fewest columns, and the α nearest to that of the search, within a standard error of the best.

    Every record is calibrated, and the best is the best out-of-fold score over records, options and α.
    """
    candidates: list[_Candidate] = []
    codes = np.concatenate([fold.codes_val for fold in folds])
    try:
        for record in found.ranked():
            out_of_fold, _ = out_of_fold_channels(folds, record.configuration, settings, options[0])
            candidates.append(
                _Candidate(
                    record, out_of_fold, _sweeps(out_of_fold, codes, settings.use_angular, search.alphas, options)
                )
            )
    except KeyboardInterrupt:
        warn(f"The calibration was interrupted: the choice is among {len(candidates) or 1} of {len(found.records)}.")
    if not candidates:
        return []
    points = [
        _Point(candidate, option, number)
        for candidate in candidates
        for option, sweep in enumerate(candidate.sweeps)
        for number in range(len(sweep.grid))
    ]
    best = _best(folds, max(points, key=lambda point: point.score), settings.use_angular, options)
    simplicity = [(point.candidate.record.n_columns, abs(point.alpha - search.search_alpha)) for point in points]
    chosen: dict[int, _Choice] = {}
    for place in one_se_order([point.score for point in points], best.error, simplicity):
        point = points[place]
        chosen.setdefault(point.candidate.record.size, point.choice(best))
    return list(chosen.values())[: search.n_models]


def _best(folds: Sequence[Fold], point: _Point, use_angular: bool, options: Sequence[Array]) -> Best:
    """The out-of-fold score of the best point with its standard error."""
    multipliers = options[point.option]
    scores = fusion_scores(point.candidate.out_of_fold, point.alpha, use_angular=use_angular, multipliers=multipliers)
    ends = np.cumsum([len(fold.codes_val) for fold in folds])
    confusions = [
        confusion_matrix(fold.codes_val, said, len(multipliers))
        for fold, said in zip(folds, np.split(predict_codes(scores), ends[:-1]), strict=True)
    ]
    return Best(point.score, macro_f1_error(confusions), "folds" if len(folds) > 1 else "rows")


def _fitted(train: TrainingRows, choice: _Choice, settings: NearestSettings, options: Sequence[Array]) -> Selected:
    configuration, multipliers = choice.record.configuration, options[choice.option]
    model = fit_nearest_model(train, configuration, settings, alpha=choice.sweep.value, multipliers=multipliers)
    return Selected(model, *choice)


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
    return [alpha_sweep(_macro_f1(channels, codes, use_angular, option), alphas) for option in options]


def out_of_fold_channels(
    folds: Sequence[Fold], configuration: Configuration, settings: NearestSettings, multipliers: Array
) -> tuple[Channels, Codes]:
    """Channels and class codes of every validation row, each from the model of its fold."""
    parts = []
    for fold in folds:
        model = fit_nearest_model(fold.train, configuration, settings, alpha=1.0, multipliers=multipliers)
        parts.append(model.feature_channels(model.scaled_features(fold.X_val)))
    channels = Channels(*(np.concatenate(channel) for channel in zip(*parts, strict=True)))
    return channels, np.concatenate([fold.codes_val for fold in folds])


def _macro_f1(channels: Channels, codes: Codes, use_angular: bool, multipliers: Array) -> Callable[[float], float]:
    def objective(alpha: float) -> float:
        scores = fusion_scores(channels, alpha, use_angular=use_angular, multipliers=multipliers)
        return evaluate(codes, predict_codes(scores), len(multipliers)).macro_f1

    return objective
