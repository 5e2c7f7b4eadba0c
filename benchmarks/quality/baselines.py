"""Tuned baselines: settings chosen on each split's fit rows alone, thresholds from the same held-out scores.

Every family is fitted with all of its settings on three stratified folds of the fit rows. The setting with the best
macro-F1 of the held-out scores (for two classes at their best threshold) is fitted again on all fit rows, and that
threshold decides. The same folds and the same rule serve all families.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from benchmarks.quality.judging import best_cut, decide, judge, macro_f1
from benchmarks.quality.protocol import Encoded, encoded_split
from benchmarks.quality.tables import Table
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from qmedoid.arrays import Array, Codes
from qmedoid.studies.baselines import forest, lightgbm, linear_svm, logistic
from qmedoid.studies.metrics import scores_of
from qmedoid.studies.splits import Cell

FOLDS = 3
Setting = Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """One kind of classifier and the settings it is tuned over.

    Attributes
    ----------
    make : callable (seed, **setting) -> classifier
    settings : tuple of dict
    trees : tuple of int
        For boosted trees: the numbers of trees that are tried of each fit, whose first trees are a smaller model.
    trials : dict
        What differs while settings are compared: a forest of half the trees ranks them as well.
    """

    make: Callable[..., Any]
    settings: tuple[dict[str, Any], ...]
    trees: tuple[int, ...] = ()
    trials: Setting = field(default_factory=dict)

    def scored(self, setting: Setting, X: Array, y: Codes, X_new: Array, seed: int) -> Iterator[tuple[Setting, Array]]:
        """Fit once, and give the scores of other rows for each setting that the fit holds."""
        if not self.trees:
            yield setting, scores_of(self.make(seed, **{**setting, **self.trials}).fit(X, y), X_new)
            return
        grown = self.make(seed, **setting, n_estimators=max(self.trees)).fit(X, y)
        for trees in self.trees:
            yield {**setting, "n_estimators": trees}, boosted_scores(grown, X_new, trees)


def boosted_scores(grown: Any, X: Array, trees: int | None = None) -> Array:
    """Log-odds, or one score per class, of boosted trees or of the first of them."""
    return np.asarray(grown.predict(X, raw_score=True, num_iteration=trees), dtype=np.float64)


def _rbf(seed: int, width: float, **setting: Any) -> Any:
    """γ in units of 1/M, which is what scikit-learn takes for standardized columns."""

    class ByColumns(SVC):
        def fit(self, X: Array, y: Codes, sample_weight: Any = None) -> Any:
            self.gamma = width / X.shape[1]
            return super().fit(X, y, sample_weight)

    return make_pipeline(
        StandardScaler(), ByColumns(random_state=seed, decision_function_shape="ovr", cache_size=400, **setting)
    )


def _grid(**values: tuple[Any, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


_SHARES = {"learning_rate": 0.05, "subsample": 0.8, "subsample_freq": 1}
FAMILIES: dict[str, Family] = {
    "LogReg": Family(partial(logistic, max_iter=1000), _grid(C=(0.003, 0.03, 0.3, 3.0, 30.0, 300.0))),
    "LinearSVM": Family(partial(linear_svm, dual=False, max_iter=5000), _grid(C=(0.0003, 0.003, 0.03, 0.3, 3.0, 30.0))),
    "RBF-SVM": Family(_rbf, _grid(C=(1.0, 6.0, 36.0), width=(0.2, 1.0, 5.0))),
    "LightGBM": Family(
        lightgbm,
        (
            {**_SHARES, "num_leaves": 4, "min_child_samples": 10, "colsample_bytree": 0.7},
            {**_SHARES, "num_leaves": 8, "min_child_samples": 10, "colsample_bytree": 0.7},
            {**_SHARES, "num_leaves": 16, "min_child_samples": 20, "colsample_bytree": 0.7},
            {**_SHARES, "num_leaves": 31, "min_child_samples": 5, "colsample_bytree": 0.5, "reg_lambda": 5.0},
        ),
        trees=(60, 150, 400),
    ),
    "RandomForest": Family(
        forest, _grid(max_features=("sqrt", 0.5), min_samples_leaf=(1, 4)), trials={"n_estimators": 150}
    ),
}
"""The classifiers that a user would try first; boosted trees have four settings at each of three sizes."""


@dataclass(frozen=True, eq=False)
class Tuned:
    """The setting that a family was given on some rows.

    Attributes
    ----------
    setting : dict
    score : float
        Macro-F1 of held-out rows.
    threshold : float or None
        For two classes, where that macro-F1 was reached.
    """

    setting: Setting
    score: float
    threshold: float | None


def tune(family: Family, X: Array, y: Codes, seed: int) -> Tuned:
    """Choose a family's setting by cross-validation; of equal ones the first."""
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y))
    best: Tuned | None = None
    for start in family.settings:
        held_out: dict[str, tuple[Setting, Array]] = {}
        for inner, outer in folds:
            for setting, scores in family.scored(start, X[inner], y[inner], X[outer], seed):
                known = held_out.setdefault(repr(setting), (setting, np.empty((len(y), *scores.shape[1:]))))
                known[1][outer] = scores
        for setting, scores in held_out.values():
            threshold, score = best_cut(y, scores) if scores.ndim == 1 else (None, macro_f1(y, decide(scores, None)))
            if best is None or score > best.score:
                best = Tuned(setting, score, threshold)
    assert best is not None
    return best


def run_baseline(table: Table, cell: Cell, *, name: str) -> dict[str, Any]:
    """The cell of a baseline."""
    return tuned_metrics(FAMILIES[name], encoded_split(table, cell.seed), cell.seed)


def tuned_metrics(family: Family, data: Encoded, seed: int) -> dict[str, Any]:
    """Tune, fit and judge a baseline on one split. Times are core-seconds; that of the fit is without the tuning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        tuned = tune(family, data.X, data.y, seed)
        tuned_at = time.process_time()
        fitted = family.make(seed, **tuned.setting).fit(data.X, data.y)
        fitted_at = time.process_time()
        scores = boosted_scores(fitted, data.X_test) if family.trees else scores_of(fitted, data.X_test)
        predicted_at = time.process_time()
        probabilities = fitted.predict_proba(data.X_test) if hasattr(fitted, "predict_proba") else None
    called = decide(scores, tuned.threshold)
    return {
        **judge(data.y_test, called, scores, probabilities),
        "cv_macro_f1": tuned.score,
        "setting": dict(tuned.setting),
        "tune_s": tuned_at - begun,
        "fit_s": fitted_at - tuned_at,
        "predict_s": predicted_at - fitted_at,
    }
