"""Registry of the methods: estimators that fit the parts of a model, by name."""

from importlib import import_module
from typing import Any

from qmedoid.arrays import Codes

RECIPES = {
    "rare": "qmedoid.estimators.rare:RareEventClassifier",
    "sum": "qmedoid.estimators.sum:SumClassifier",
    "evidence": "qmedoid.estimators.evidence:EvidenceClassifier",
    "nearest": "qmedoid.estimators.nearest:NearestMedoidClassifier",
}
"""Each as ``"module:class"``; ``method="auto"`` is the first that suits the numbers of rows per class."""


def recipe_class(name: str) -> Any:
    """The estimator of a method."""
    module, _, kind = RECIPES[name].partition(":")
    return getattr(import_module(module), kind)


def auto_method(counts: Codes) -> str:
    """The name that ``method="auto"`` stands for: the first method that suits these numbers of rows per class."""
    return next(name for name in RECIPES if recipe_class(name).suits(counts))
