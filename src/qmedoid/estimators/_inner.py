"""The classifier inside a table classifier: a fresh copy of what was given, with the classes and rows it is to use."""

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone

from qmedoid.arrays import Codes
from qmedoid.estimators.fusion import NearestMedoidClassifier
from qmedoid.estimators.geometric import GeometricClassifier
from qmedoid.estimators.variational import VariationalClassifier

Inner = GeometricClassifier | NearestMedoidClassifier | VariationalClassifier


def inner_classifier(given: Inner | None) -> Inner:
    """A copy of a classifier that is not fitted, or the default."""
    inner: Inner = GeometricClassifier() if given is None else clone(given)
    return inner


def weigh_codes(inner: Inner, classes: list[Any]) -> None:
    """Let class weights name class codes where they name classes."""
    stages = [inner, inner.method, inner.variational] if isinstance(inner, GeometricClassifier) else [inner]
    for stage in stages:
        if isinstance(stage, NearestMedoidClassifier | VariationalClassifier) and isinstance(
            stage.class_weight, Mapping
        ):
            weights = stage.class_weight
            named = {classes.index(label) if label in classes else label: w for label, w in weights.items()}
            stage.set_params(class_weight=named)


def choose_on(inner: Inner, splits: list[tuple[Codes, Codes]], codes: Codes) -> None:
    """Let a classifier choose on given rows instead of in folds, and calibrate on them what is not searched.

    Parameters
    ----------
    inner : GeometricClassifier, NearestMedoidClassifier or VariationalClassifier
        Changed in place.
    splits : list of one (training rows, rows to choose on)
    codes : ndarray of shape (n,)
        Class codes of all rows, which say what the default first stage is.
    """
    if isinstance(inner, NearestMedoidClassifier):
        inner.set_params(cv=splits, refit=False)
    elif isinstance(inner, VariationalClassifier):
        inner.set_params(cv=splits)
    else:
        method = inner._stage_settings(inner._first_stage(codes))
        circuit = VariationalClassifier() if inner.variational is None else clone(inner.variational)
        inner.set_params(method=method.set_params(cv=splits, refit=False), variational=circuit.set_params(cv=splits))
