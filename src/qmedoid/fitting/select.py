"""From a table to the best fusion models: groups, search, calibration, final fit (algorithms 1, 7, 10 and 12)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import warn
from qmedoid.fitting.incremental import IncrementalObjective
from qmedoid.fitting.model import fit_fusion_model
from qmedoid.fitting.problem import Fold, FusionSettings, TrainingRows
from qmedoid.geometry.fusion import Channels, fusion_scores, predict_codes
from qmedoid.geometry.groups import Configuration, Groups
from qmedoid.metrics.classification import evaluate
from qmedoid.models.fusion import FusionModel
from qmedoid.search.descent import DescentResult, Progress, Record, coordinate_descent
from qmedoid.search.sweep import Sweep, alpha_sweep

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class SearchSettings:
    """How configurations are searched and channels mixed.

    Attributes
    ----------
    sizes : subset sizes k, rising
    max_passes, candidate_budget : bounds of the descent
    search_alpha : α while configurations are compared
    alphas : grid on which α is calibrated afterwards
    n_models : how many models, one per subset size, are kept
    """

    sizes: tuple[int, ...]
    max_passes: int
    candidate_budget: int | None
    search_alpha: float
    alphas: tuple[float, ...]
    n_models: int


@dataclass(frozen=True)
class Selected:
    """A model with the record of its choice.

    Attributes
    ----------
    model : FusionModel
    record : the search at its size
    sweep : the α sweep
    option : index of its class multipliers
    held_out : channels of the folds' validation rows, each from the model of its own fold; None if interrupted
    """

    model: FusionModel
    record: Record
    sweep: Sweep
    option: int
    held_out: Channels | None


def search_configurations(
    folds: Sequence[Fold],
    groups: Groups,
    settings: FusionSettings,
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
    settings: FusionSettings,
    search: SearchSettings,
    options: Sequence[Array],
) -> list[Selected]:
    """Calibrate and fit the best models over k, best first (algorithm 12).

    An interrupt (Ctrl-C) does not lose the search: the models that are ready are returned, or the best one with the α
    of the search and the first of the options.

    Parameters
    ----------
    train : TrainingRows
        Rows of the final fit.
    options : sequence of ndarray of shape (C,)
        Class multipliers to choose from; of equal ones the first.
    """
    selected: list[Selected] = []
    for record in found.ranked()[: search.n_models]:
        try:
            held_out, codes = held_out_channels(folds, record.configuration, settings, options[0])
            sweep, option = calibrate(held_out, codes, settings.use_angular, search.alphas, options)
        except KeyboardInterrupt:
            warn(f"The calibration was interrupted: {len(selected) or 1} of {search.n_models} models are kept.")
            if not selected:
                uncalibrated = Sweep(np.array([search.search_alpha]), np.array([record.score]), 0)
                selected.append(_fitted(train, record, settings, uncalibrated, 0, options, None))
            break
        selected.append(_fitted(train, record, settings, sweep, option, options, held_out))
    return selected


def _fitted(
    train: TrainingRows,
    record: Record,
    settings: FusionSettings,
    sweep: Sweep,
    option: int,
    options: Sequence[Array],
    held_out: Channels | None,
) -> Selected:
    model = fit_fusion_model(train, record.configuration, settings, alpha=sweep.value, multipliers=options[option])
    return Selected(model, record, sweep, option, held_out)


def calibrate(
    channels: Channels, codes: Codes, use_angular: bool, alphas: Sequence[float], options: Sequence[Array]
) -> tuple[Sweep, int]:
    """Mixing weight and class multipliers with the best macro-F1 on held-out rows (algorithm 10)."""
    sweeps = [alpha_sweep(_macro_f1(channels, codes, use_angular, option), alphas) for option in options]
    best = int(np.argmax([sweep.score for sweep in sweeps]))
    return sweeps[best], best


def held_out_channels(
    folds: Sequence[Fold], configuration: Configuration, settings: FusionSettings, multipliers: Array
) -> tuple[Channels, Codes]:
    """Channels and class codes of every validation row, each from the model of its own fold."""
    parts = []
    for fold in folds:
        model = fit_fusion_model(fold.train, configuration, settings, alpha=1.0, multipliers=multipliers)
        parts.append(model.feature_channels(model.scaled_features(fold.X_val)))
    channels = Channels(*(np.concatenate(channel) for channel in zip(*parts, strict=True)))
    return channels, np.concatenate([fold.codes_val for fold in folds])


def _macro_f1(channels: Channels, codes: Codes, use_angular: bool, multipliers: Array) -> Callable[[float], float]:
    def objective(alpha: float) -> float:
        scores = fusion_scores(channels, alpha, use_angular=use_angular, multipliers=multipliers)
        return evaluate(codes, predict_codes(scores), len(multipliers)).macro_f1

    return objective
