"""Plain classifiers that a user would try first, and their cells.

Their results have a number of their own, and stay while ours change.
"""

from collections.abc import Callable
from typing import Any

from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.datasets import Dataset
from benchmarks.studies.cells import Cell, Result, classifier_metrics, fraud_metrics, scores_of, split_of
from qmedoid.exceptions import MissingExtraError

CODE = 1
"""Number of what these functions compute: whoever changes their figures takes the next one."""
SMOTE_SHARE = 0.1
"""Frauds per normal row after SMOTE."""


def logistic(seed: int, **settings: Any) -> Any:
    """Logistic regression on standardized columns."""
    return make_pipeline(StandardScaler(), LogisticRegression(**{"max_iter": 2000, "random_state": seed, **settings}))


def linear_svm(seed: int, **settings: Any) -> Any:
    """A linear support vector machine on standardized columns."""
    return make_pipeline(StandardScaler(), LinearSVC(**{"max_iter": 20000, "random_state": seed, **settings}))


def rbf_svm(seed: int) -> Any:
    """A support vector machine with Gaussian kernel on standardized columns."""
    return make_pipeline(StandardScaler(), SVC(random_state=seed))


def forest(seed: int, **settings: Any) -> Any:
    """A random forest."""
    return RandomForestClassifier(**{"n_estimators": 300, "random_state": seed, **settings})


def lightgbm(seed: int, **settings: Any) -> Any:
    """LightGBM on one thread, so that its bits do not depend on the number of threads."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise _missing("LightGBM") from error
    fixed = {"random_state": seed, "n_jobs": 1, "deterministic": True, "force_row_wise": True, "verbose": -1}
    return LGBMClassifier(**(fixed | settings))


BASELINES: dict[str, Callable[[int], Any]] = {
    "LogReg": logistic,
    "LinearSVM": linear_svm,
    "RBF-SVM": rbf_svm,
    "RandomForest": forest,
    "LightGBM": lightgbm,
}
"""Makers of unfitted baselines, given a seed; all with the usual settings of their library."""


def _calibrated(make: Callable[[int], Any]) -> Callable[[int], Any]:
    """The same classifier with probabilities, from its margins on folds that it was not fitted on.

    After SMOTE they are those of the rows with SMOTE, as in the paper: too high for rows as they are.
    """
    return lambda seed: CalibratedClassifierCV(make(seed), method="sigmoid", cv=3)


def _with_smote(make: Callable[[int], Any]) -> Callable[[int], Any]:
    """The same classifier after SMOTE, which sees the training rows of each fit alone."""

    def make_with_smote(seed: int) -> Any:
        try:
            from imblearn.over_sampling import SMOTE
            from imblearn.pipeline import Pipeline
        except ImportError as error:
            raise _missing("imbalanced-learn") from error
        smote = SMOTE(sampling_strategy=SMOTE_SHARE, random_state=seed)
        return Pipeline([("scale", StandardScaler()), ("smote", smote), ("classify", make(seed))])

    return make_with_smote


def _balanced_svm(seed: int) -> Any:
    return linear_svm(seed, class_weight="balanced")


def _rare_forest(seed: int) -> Any:
    return forest(seed, n_estimators=100, class_weight="balanced_subsample", min_samples_leaf=2)


def _rare_lightgbm(seed: int) -> Any:
    """LightGBM with settings for rare classes, where its defaults fail.

    Chosen by PR-AUC on validation rows of splits that no report uses.
    """
    settings = {"n_estimators": 300, "learning_rate": 0.03, "num_leaves": 15, "min_child_weight": 1.0}
    return lightgbm(seed, **settings, reg_lambda=10.0, subsample=0.8, subsample_freq=1, colsample_bytree=0.5)


RARE_BASELINES: dict[str, Callable[[int], Any]] = {
    "LogReg": lambda seed: logistic(seed, class_weight="balanced"),
    "LinearSVM": _balanced_svm,
    "LinearSVM, calibrated": _calibrated(_balanced_svm),
    "RandomForest": _rare_forest,
    "LightGBM": _rare_lightgbm,
    "LogReg, SMOTE": _with_smote(logistic),
    "LinearSVM, SMOTE": _with_smote(linear_svm),
    "LinearSVM, SMOTE, calibrated": _with_smote(_calibrated(linear_svm)),
    "RandomForest, SMOTE": _with_smote(_rare_forest),
    "LightGBM, SMOTE": _with_smote(_rare_lightgbm),
}
"""For rare events. The paper prints no settings: these come near its figures on splits that no report uses."""


def run_small(data: Dataset, cell: Cell, *, name: str) -> Result:
    """A baseline on a small data set, fitted on training and validation rows: metrics of the test rows."""
    split = split_of(data, cell.split, cell.seed)
    model = BASELINES[name](cell.seed).fit(data.X[split.fit], data.y[split.fit])
    return {"test": classifier_metrics(model, data, split.test)}


def run_fraud(data: Dataset, cell: Cell, *, name: str, with_validation: bool = False) -> Result:
    """A baseline on the frauds, fitted on the training rows, or on the validation rows with them."""
    split = split_of(data, cell.split, cell.seed)
    rows = split.fit if with_validation else split.train
    model = RARE_BASELINES[name](cell.seed).fit(data.X[rows], data.y[rows])
    fixed = 0.0 if hasattr(model, "decision_function") else 0.5
    return fraud_metrics(data, split, scores_of(model, data.X), fixed, rows)


def _missing(package: str) -> MissingExtraError:
    return MissingExtraError(f"{package} is not installed. Get it with: pip install 'qmedoid[baselines]'")
