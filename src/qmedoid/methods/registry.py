"""Registry of the methods: a new one is a folder and a line here."""

from importlib import import_module
from typing import Any, NamedTuple

from qmedoid.methods.part import Part


class MethodEntry(NamedTuple):
    """Where a method is found, each as ``"module:class"``: its fitted model, and the estimator that fits it."""

    model: str
    estimator: str


METHODS = {
    "rare": MethodEntry("qmedoid.methods.rare.part:RarePart", "qmedoid.estimators.rare:RareEventClassifier"),
    "sum": MethodEntry("qmedoid.methods.sum.model:SumModel", "qmedoid.estimators.sum:SumClassifier"),
    "evidence": MethodEntry(
        "qmedoid.methods.evidence.part:EvidencePart", "qmedoid.estimators.evidence:EvidenceClassifier"
    ),
    "nearest": MethodEntry(
        "qmedoid.methods.nearest.part:NearestPart", "qmedoid.estimators.nearest:NearestMedoidClassifier"
    ),
}
"""The methods; ``method="auto"`` is the first that suits the numbers of rows per class."""


PARTS = {
    "comparisons": "qmedoid.methods.comparisons.part:ComparisonsPart",
    "neighbors": "qmedoid.methods.neighbors.part:NeighborsPart",
}
"""Parts that a sum adds to a method, as ``"module:class"``."""


def model_class(name: str) -> type[Part]:
    """The class of the fitted models of a method."""
    found: type[Part] = _load(METHODS[name].model)
    return found


def part_class(name: str) -> type[Part]:
    """The class of the fitted models of a part."""
    found: type[Part] = _load(PARTS[name])
    return found


def estimator_class(name: str) -> Any:
    """The estimator of a method."""
    return _load(METHODS[name].estimator)


def _load(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
