"""The plain classifiers a user would try first, as the paper compares with them, and LightGBM."""

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from qmedoid.exceptions import MissingExtraError

BASELINES: dict[str, Callable[[int], Any]] = {
    "LogReg": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed)),
    "LinearSVM": lambda seed: make_pipeline(StandardScaler(), LinearSVC(max_iter=20000, random_state=seed)),
    "RBF-SVM": lambda seed: make_pipeline(StandardScaler(), SVC(random_state=seed)),
    "RandomForest": lambda seed: RandomForestClassifier(n_estimators=300, random_state=seed),
}
"""Makers of unfitted baselines, given a seed; all with the usual settings of scikit-learn."""


def lightgbm(seed: int, **changes: Any) -> Any:
    """LightGBM on one thread, so that its bits do not depend on how many there are; `changes` override settings."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise missing_extra("LightGBM", "baselines") from error
    settings = {"random_state": seed, "n_jobs": 1, "deterministic": True, "force_row_wise": True, "verbose": -1}
    return LGBMClassifier(**(settings | changes))


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """The error of an optional package that is not installed."""
    return MissingExtraError(f"{package} is not installed. Get it with: pip install 'qmedoid[{extra}]'")
