"""The credit-card frauds: random and time-ordered splits, tuned baselines on raw columns, and what is measured.

A random split holds out 25 % of the payments, stratified; the time-ordered one holds out the last 25 %. Splits for
tuning have seeds from 100 on, and their time-ordered one lies within the first 75 %. `Time` is not a feature.
"""

import base64
import time
import warnings
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.datasets import Dataset
from benchmarks.quality.baselines import FOLDS, Family, boosted_scores
from benchmarks.quality.judging import calibration
from benchmarks.quality.protocol import FIRST_SEED, Seeds
from benchmarks.studies.baselines import lightgbm, logistic
from benchmarks.studies.cells import (
    FULL_FRAUD,
    PAPER_ALERT_RATE,
    Cell,
    SplitKind,
    areas,
    hold_out,
    load_data,
    recall_at,
    scores_of,
    time_split,
)
from qmedoid.arrays import Array, Codes
from qmedoid.metrics.classification import pr_auc

CODE = 1
"""Number of what these functions compute: whoever changes their figures takes the next one."""
SHIFT = 50.0
"""By what the share of frauds is multiplied to see whether probabilities follow."""
_BOOSTED = {"learning_rate": 0.03, "min_child_weight": 1.0, "subsample": 0.8, "subsample_freq": 1}


METHODS: dict[str, Family] = {
    "LogReg, raw columns": Family(partial(logistic, max_iter=1000), ({"C": 0.001}, {"C": 0.03}, {"C": 1.0})),
    "LightGBM, raw columns": Family(
        lightgbm,
        (
            {**_BOOSTED, "num_leaves": 7, "reg_lambda": 10.0, "colsample_bytree": 0.5},
            {**_BOOSTED, "num_leaves": 15, "reg_lambda": 10.0, "colsample_bytree": 0.5},
            {**_BOOSTED, "num_leaves": 31, "reg_lambda": 10.0, "colsample_bytree": 0.3},
        ),
        trees=(300, 600, 1000),
    ),
}
"""Tuned by PR-AUC on three folds of the fit rows."""


class Payments(NamedTuple):
    """One split of the payments."""

    X: Array
    y: Codes
    X_test: Array
    y_test: Codes


def splits(seeds: Seeds, at_most: int | None = None) -> list[tuple[SplitKind, int]]:
    """Kinds and seeds of the splits."""
    first = FIRST_SEED[seeds]
    return [*(("random", first + place) for place in range(min(3, at_most or 3))), ("time", first)]


@lru_cache(1)
def make_payments(split: str, seed: int) -> Payments:
    """The rows of a split."""
    data = load_data(FULL_FRAUD)
    if split == "random":
        fit, test = hold_out(data.y, seed)
    else:
        assert data.times is not None
        by_time = time_split(data.times)
        if seed >= FIRST_SEED["tuning"]:
            within = time_split(data.times[by_time.fit])
            fit, test = by_time.fit[within.fit], by_time.fit[within.test]
        else:
            fit, test = by_time.fit, by_time.test
    return Payments(data.X[fit], data.y[fit], data.X[test], data.y[test])


def run_raw(_: Dataset, cell: Cell, *, name: str) -> dict[str, Any]:
    """The cell of a baseline on the columns as they are."""
    family, data, seed = METHODS[name], make_payments(cell.split, cell.seed), cell.seed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        setting = tune_by_pr_auc(family, data.X, data.y, seed)
        tune_s = time.process_time() - begun
        clock = Clock()
        fitted = family.make(seed, **setting).fit(data.X, data.y)
        times = clock.fitted()
        log_odds = boosted_scores(fitted, data.X_test) if family.trees else scores_of(fitted, data.X_test)
        times |= clock.predicted(len(data.y_test))
    return {**judge_payments(data, log_odds), **times, "tune_s": tune_s, "setting": setting}


def tune_by_pr_auc(family: Family, X: Array, y: Codes, seed: int) -> dict[str, Any]:
    """The setting with the best PR-AUC of held-out scores."""
    found: dict[str, tuple[dict[str, Any], list[float]]] = {}
    for inner, outer in StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y):
        for start in family.settings:
            for setting, scores in family.scored(start, X[inner], y[inner], X[outer], seed):
                own = found.setdefault(repr(setting), (dict(setting), []))
                own[1].append(pr_auc(y[outer] == 1, scores))
    return max(found.values(), key=lambda own: float(np.mean(own[1])))[0]


class Clock:
    """Core-seconds and seconds of a fit and of the prediction after it."""

    def __init__(self) -> None:
        self._since()

    def _since(self) -> None:
        self._core, self._wall = time.process_time(), time.perf_counter()

    def fitted(self) -> dict[str, float]:
        """What the fit took."""
        found = {"fit_s": time.process_time() - self._core, "fit_wall_s": time.perf_counter() - self._wall}
        self._since()
        return found

    def predicted(self, rows: int) -> dict[str, float]:
        """Seconds that the prediction of this number of rows took."""
        core = time.process_time() - self._core
        return {"predict_s": core, "rows_per_s": rows / max(core, 1e-9)}


def judge_payments(data: Payments, log_odds: Array) -> dict[str, Any]:
    """Figures of log-odds of fraud on test rows; the log-odds themselves are kept, for intervals."""
    probabilities = _probability(log_odds)
    shifted = Shifted.of(data, log_odds)
    return {
        **areas(data.y_test == 1, log_odds),
        "recall": recall_at_alerts(data.y_test, log_odds),
        **calibration(data.y_test, np.column_stack([1.0 - probabilities, probabilities])),
        "predicted_over_true": float(probabilities.mean() / data.y_test.mean()),
        "shifted_unaware": shifted.unaware,
        "shifted_told": shifted.told,
        "shifted_estimated": shifted.estimated,
        "scores": base64.b64encode(log_odds.astype("<f4").tobytes()).decode(),
    }


def recall_at_alerts(y: Codes, scores: Array) -> float:
    """Recall at the paper's alert rate."""
    return recall_at(y == 1, scores, round(PAPER_ALERT_RATE * len(y)))


class Shifted(NamedTuple):
    """Predicted over true share of frauds where there are 50 times as many.

    Attributes
    ----------
    unaware : float
        With the probabilities as they are.
    told : float
        With log-odds moved by the known new share.
    estimated : float
        The share that expectation and maximization find without labels, over the true one.
    """

    unaware: float
    told: float
    estimated: float

    @classmethod
    def of(cls, data: Payments, log_odds: Array) -> "Shifted":
        """Every fraud of the test rows counts as many: no row is drawn, so that chance has no part in it."""
        own, prior = float(data.y_test.mean()), float(data.y.mean())
        new = SHIFT * own
        weights = np.where(data.y_test == 1, new / own, (1.0 - new) / (1.0 - own)) / len(log_odds)

        def predicted(share: float) -> float:
            return float(weights @ _probability(log_odds + _odds(share) - _odds(prior)))

        estimate = prior
        for _ in range(1000):
            estimate, before = predicted(estimate), estimate
            if abs(estimate - before) < 1e-9:
                break
        return cls(predicted(prior) / new, predicted(new) / new, estimate / new)


def _odds(share: float) -> float:
    return float(np.log(share / (1.0 - share)))


def _probability(log_odds: Array) -> Array:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * log_odds)))


def stored_scores(result: dict[str, Any]) -> Array:
    """The log-odds of the test rows that a result holds."""
    return np.frombuffer(base64.b64decode(result["scores"]), dtype="<f4").astype(np.float64)
