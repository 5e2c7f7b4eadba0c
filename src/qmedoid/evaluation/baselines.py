"""The plain classifiers a user would try first, as the paper compares with them."""

from collections.abc import Callable
from typing import Any

from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

BASELINES: dict[str, Callable[[int], Any]] = {
    "LogReg": lambda seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, random_state=seed)),
    "LinearSVM": lambda seed: make_pipeline(StandardScaler(), LinearSVC(max_iter=20000, random_state=seed)),
    "RBF-SVM": lambda seed: make_pipeline(StandardScaler(), SVC(random_state=seed)),
    "RandomForest": lambda seed: RandomForestClassifier(n_estimators=300, random_state=seed),
}
"""Makers of unfitted baselines, given a seed; all with the usual settings of scikit-learn."""
