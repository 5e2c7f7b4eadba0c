"""The rivals of the tables: tuned on each split's fit rows alone, with thresholds from the same held-out rows.

Settings are compared by log-loss of held-out rows of three stratified folds. The best one is fitted again on all fit
rows, and what it said of the held-out rows gives its thresholds. CatBoost keeps the defaults of its package; EBM has
one setting that is cheaper than its defaults, which take a minute for a fit of 4,000 rows. Every rival gets categories
as it takes them best, and one thread.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.quality.judging import Thresholds, clipped, judge
from benchmarks.quality.protocol import Rows, known_rows
from benchmarks.quality.tables import Table
from benchmarks.studies.cells import Cell
from qmedoid.arrays import Array, Codes, Flags
from qmedoid.metrics.classification import log_loss

CODE = 1
"""Number of what these functions compute: whoever changes their figures takes the next one."""
FOLDS = 3
MUCH = 20_000
"""Rows times classes from which on a rival that is not LightGBM is tuned by one of the three folds alone, for time."""
Setting = Mapping[str, Any]
Fitted = Callable[[Any, int | None], Array]
"""From rows, and the number of the first trees that count, to probabilities (n, C)."""
Fit = Callable[[Any, Codes, Flags, int, Setting], Fitted]
"""From rows, classes, which columns are categories, a seed and a setting."""


@dataclass(frozen=True)
class Rival:
    """One kind of classifier and what it is tuned over.

    Attributes
    ----------
    fit : callable
    settings : sequence of dict
    package : str
        What it is part of.
    form : {"one_hot", "coded", "words"}
        The form of the rows that it takes.
    trees : sequence of int
        For boosted trees: the numbers of trees that are tried of each fit, whose first trees are a smaller model.
    trials : dict
        What differs while settings are compared.
    most : int
        The largest size that it is run at.
    large : sequence of dict, optional
        The settings from 20,000 rows on, where these are fewer.
    folds : {"by size", "all", "one"}
        How many of the folds are used to tune it: "by size" all of them until there is `MUCH` to fit, and then one.
    """

    fit: Fit
    settings: Sequence[Setting] = ({},)
    package: str = "scikit-learn"
    form: str = "one_hot"
    trees: Sequence[int] = ()
    trials: Setting = field(default_factory=dict)
    most: int = 100_000
    large: Sequence[Setting] = ()
    folds: Literal["by size", "all", "one"] = "by size"

    @property
    def release(self) -> str:
        """The package and its version, or that it is not here."""
        try:
            return f"{self.package} {version(self.package)}"
        except PackageNotFoundError:
            return f"no {self.package}"


def _lightgbm(X: Array, y: Codes, is_category: Flags, seed: int, setting: Setting) -> Fitted:
    from lightgbm import LGBMClassifier

    fixed = {"random_state": seed, "n_jobs": 1, "deterministic": True, "force_row_wise": True, "verbose": -1}
    columns = np.flatnonzero(is_category).tolist()
    model = LGBMClassifier(**fixed, **setting).fit(X, y, categorical_feature=columns or "auto")
    return lambda new, trees: model.predict_proba(new, num_iteration=trees)


def _xgboost(X: Array, y: Codes, is_category: Flags, seed: int, setting: Setting) -> Fitted:
    from xgboost import XGBClassifier

    kinds = ["c" if one else "q" for one in is_category]
    fixed = {"random_state": seed, "n_jobs": 1, "tree_method": "hist", "enable_categorical": True}
    model = XGBClassifier(**fixed, feature_types=kinds, **setting).fit(X, y)
    return lambda new, trees: model.predict_proba(new, iteration_range=(0, trees or 0))


def _histograms(X: Array, y: Codes, is_category: Flags, seed: int, setting: Setting) -> Fitted:
    named = {("max_iter" if name == "n_estimators" else name): value for name, value in setting.items()}
    model = HistGradientBoostingClassifier(
        random_state=seed, early_stopping=False, categorical_features=is_category, **named
    ).fit(X, y)

    def probabilities(new: Array, trees: int | None) -> Array:
        if trees is None or trees == model.n_iter_:
            return np.asarray(model.predict_proba(new))
        return next(found for place, found in enumerate(model.staged_predict_proba(new), 1) if place == trees)

    return probabilities


def _catboost(X: Any, y: Codes, is_category: Flags, seed: int, setting: Setting) -> Fitted:
    from catboost import CatBoostClassifier

    columns = [name for name, is_one in zip(X.columns, is_category, strict=True) if is_one]
    fixed = {"random_seed": seed, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    model = CatBoostClassifier(**fixed, cat_features=columns, **setting).fit(X, y)
    return lambda new, _: model.predict_proba(new, thread_count=1)


def _ebm(X: Array, y: Codes, is_category: Flags, seed: int, setting: Setting) -> Fitted:
    from interpret.glassbox import ExplainableBoostingClassifier

    kinds = ["nominal" if one else "continuous" for one in is_category]
    model = ExplainableBoostingClassifier(feature_types=kinds, random_state=seed, n_jobs=1, **setting).fit(X, y)
    return lambda new, _: model.predict_proba(new)


def _forest(kind: Any) -> Fit:
    def fit(X: Array, y: Codes, _: Flags, seed: int, setting: Setting) -> Fitted:
        model = kind(**{"n_estimators": 300, "random_state": seed, "n_jobs": 1, **setting}).fit(X, y)
        return lambda new, _: model.predict_proba(new)

    return fit


def _logistic(X: Array, y: Codes, _: Flags, seed: int, setting: Setting) -> Fitted:
    model = make_pipeline(StandardScaler(), LogisticRegression(random_state=seed, **setting)).fit(X, y)
    return lambda new, _: model.predict_proba(new)


def _rbf(X: Array, y: Codes, _: Flags, seed: int, setting: Setting) -> Fitted:
    """Margins, (n, C); γ is in units of 1/M, which is what scikit-learn takes for standardized columns."""
    machine = SVC(C=setting["C"], gamma=setting["width"] / X.shape[1], random_state=seed, cache_size=400)
    model = make_pipeline(StandardScaler(), machine).fit(X, y)

    def margins(new: Array, _: int | None) -> Array:
        found = model.decision_function(new)
        return found if found.ndim == 2 else np.column_stack([-found, found])

    return margins


class Platt:
    """Probabilities of margins: a logistic curve for each class against the others, scaled to add up to 1."""

    def __init__(self, margins: Array, y: Codes) -> None:
        self._curves = [LogisticRegression(C=1e3).fit(own[:, None], y == code) for code, own in enumerate(margins.T)]

    def __call__(self, margins: Array) -> Array:
        """From margins (n, C) to probabilities (n, C)."""
        pairs = zip(self._curves, margins.T, strict=True)
        return clipped(np.column_stack([curve.predict_proba(own[:, None])[:, 1] for curve, own in pairs]))


_DRAWN = {"subsample": 0.8, "learning_rate": 0.05}
_FOREST = tuple(
    {"max_features": share, "min_samples_leaf": leaf} for share, leaf in (("sqrt", 1), ("sqrt", 3), (0.5, 3))
)
RIVALS: dict[str, Rival] = {
    "CatBoost": Rival(_catboost, package="catboost", form="words"),
    "LightGBM": Rival(
        _lightgbm,
        (
            {**_DRAWN, "subsample_freq": 1, "num_leaves": 4, "min_child_samples": 10, "colsample_bytree": 0.7},
            {**_DRAWN, "subsample_freq": 1, "num_leaves": 8, "min_child_samples": 10, "colsample_bytree": 0.7},
            {**_DRAWN, "subsample_freq": 1, "num_leaves": 16, "min_child_samples": 20, "colsample_bytree": 0.7},
            {
                **{**_DRAWN, "subsample_freq": 1, "num_leaves": 31, "min_child_samples": 5, "colsample_bytree": 0.5},
                "reg_lambda": 5.0,
            },
        ),
        package="lightgbm",
        form="coded",
        trees=(60, 150, 400),
        folds="all",
    ),
    "XGBoost": Rival(
        _xgboost,
        (
            {**_DRAWN, "max_depth": 3, "colsample_bytree": 0.7},
            {**_DRAWN, "max_depth": 5, "colsample_bytree": 0.7},
            {**_DRAWN, "max_depth": 7, "colsample_bytree": 0.5, "reg_lambda": 5.0},
        ),
        package="xgboost",
        form="coded",
        trees=(60, 150, 400),
        large=(
            {**_DRAWN, "max_depth": 5, "colsample_bytree": 0.7},
            {**_DRAWN, "max_depth": 7, "colsample_bytree": 0.5, "reg_lambda": 5.0},
        ),
    ),
    "HistGradientBoosting": Rival(
        _histograms,
        (
            {"learning_rate": 0.1, "max_leaf_nodes": 6, "max_features": 0.7},
            {"learning_rate": 0.1, "max_leaf_nodes": 12, "max_features": 0.7},
            {"learning_rate": 0.1, "max_leaf_nodes": 31, "l2_regularization": 5.0, "max_features": 0.5},
        ),
        form="coded",
        trees=(30, 80, 200),
        large=({"learning_rate": 0.1, "max_leaf_nodes": 31, "l2_regularization": 5.0, "max_features": 0.5},),
    ),
    "RandomForest": Rival(
        _forest(RandomForestClassifier), _FOREST, trials={"n_estimators": 80}, most=20_000, large=_FOREST[:2]
    ),
    "ExtraTrees": Rival(
        _forest(ExtraTreesClassifier), _FOREST, trials={"n_estimators": 80}, most=20_000, large=_FOREST[:2]
    ),
    "EBM": Rival(
        _ebm,
        ({"outer_bags": 4, "learning_rate": 0.04, "interactions": 10},),
        package="interpret-core",
        form="coded",
        most=4_000,
        folds="one",
    ),
    "LogReg": Rival(
        _logistic,
        tuple({"C": C, "max_iter": 1000} for C in (0.003, 0.03, 0.3, 3.0, 30.0, 300.0)),
        most=20_000,
        large=tuple({"C": C, "max_iter": 300} for C in (0.03, 1.0, 30.0)),
    ),
    "RBF-SVM": Rival(
        _rbf, tuple({"C": C, "width": width} for C in (1.0, 10.0) for width in (0.2, 1.0, 5.0)), most=4_000
    ),
}
"""The classifiers that a user would try first."""
MARGINS = ("RBF-SVM",)
"""Rivals that give margins; probabilities are Platt's of margins of held-out rows."""


def run_rival(table: Table, cell: Cell, *, name: str, release: str) -> dict[str, Any]:
    """The cell of a rival at the size that its part is named by; the release of the package is part of the key."""
    del release
    return rival_metrics(RIVALS[name], known_rows(table, int(cell.part), cell.seed), cell.seed, margins=name in MARGINS)


def rival_metrics(rival: Rival, rows: Rows, seed: int, *, margins: bool = False) -> dict[str, Any]:
    """Tune, fit and judge a rival on one split. Times are core-seconds; that of the fit is without the tuning."""
    X, X_test = forms(rows, rival.form)
    begun = time.process_time()
    tuned = tune(rival, X, rows, seed, margins=margins)
    tuned_at = time.process_time()
    fitted = rival.fit(X, rows.y, rows.is_category, seed, tuned.setting)
    fitted_at = time.process_time()
    found = np.asarray(tuned.probabilities(fitted(X_test, None)), dtype=np.float64)
    predicted_at = time.process_time()
    return {
        **judge(rows.y_test, found, tuned.thresholds.call(found), rows.y),
        "cv_log_loss": tuned.score,
        "setting": dict(tuned.setting),
        "fit_rows": len(rows.y),
        "tune_s": tuned_at - begun,
        "fit_s": fitted_at - tuned_at,
        "predict_s": predicted_at - fitted_at,
    }


def forms(rows: Rows, form: str) -> tuple[Any, Any]:
    """Fit rows and test rows in the form that a rival takes."""
    if form != "words":
        return getattr(rows, form)
    import pandas

    fit, test = (pandas.DataFrame(dict(enumerate(own.values()))) for own in rows.words)
    return fit, test


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a rival was given on some rows.

    Attributes
    ----------
    setting : dict
    score : float
        Log-loss of held-out rows.
    thresholds : Thresholds
        Learnt from these rows.
    probabilities : callable
        From what its fits say to probabilities.
    """

    setting: Setting
    score: float
    thresholds: Thresholds
    probabilities: Callable[[Array], Array]


def tune(rival: Rival, X: Any, rows: Rows, seed: int, *, margins: bool = False) -> Tuned:
    """Choose a rival's setting by rows held out of the fit rows; of equal ones the first."""
    y = rows.y
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(np.zeros(len(y)), y))
    if rival.folds == "one" or (rival.folds == "by size" and len(y) * rows.n_classes >= MUCH):
        folds = folds[:1]
    held_out = np.concatenate([outer for _, outer in folds])
    best: tuple[float, Setting, Array, Callable[[Array], Array]] | None = None
    for start in rival.large if rival.large and len(y) >= 10_000 else rival.settings:
        said: dict[str, tuple[Setting, list[Array]]] = {}
        for inner, outer in folds:
            fit, new = _take(X, inner), _take(X, outer)
            for setting, found in _tried(rival, start, fit, y[inner], rows.is_category, new, seed):
                said.setdefault(repr(setting), (setting, []))[1].append(found)
        for setting, parts in said.values():
            raw = np.concatenate(parts)
            probabilities = Platt(raw, y[held_out]) if margins else _as_they_are
            shares = clipped(probabilities(raw))
            score = log_loss(y[held_out], shares)
            if best is None or score < best[0]:
                best = score, setting, shares, probabilities
    assert best is not None
    score, setting, shares, probabilities = best
    return Tuned(setting, score, Thresholds(y[held_out], shares), probabilities)


def _as_they_are(probabilities: Array) -> Array:
    return probabilities


def _tried(
    rival: Rival, setting: Setting, X: Any, y: Codes, is_category: Flags, new: Any, seed: int
) -> Iterator[tuple[Setting, Array]]:
    """Fit once, and give what it says of other rows for each setting that the fit holds."""
    if not rival.trees:
        yield setting, rival.fit(X, y, is_category, seed, {**setting, **rival.trials})(new, None)
        return
    grown = rival.fit(X, y, is_category, seed, {**setting, "n_estimators": max(rival.trees)})
    for trees in rival.trees:
        yield {**setting, "n_estimators": trees}, grown(new, trees)


def _take(X: Any, rows: Codes) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
