"""qmedoid: a classifier for tables whose every decision is an exact sum, column by column and row by row.

Public names are imported on first use, so that importing the package costs little more than nothing.
"""

from typing import TYPE_CHECKING, Any

from qmedoid._version import __version__

if TYPE_CHECKING:
    from qmedoid import exceptions
    from qmedoid.estimators.comparison import Comparison, compare
    from qmedoid.estimators.evidence import EvidenceClassifier
    from qmedoid.estimators.medoid import MedoidClassifier
    from qmedoid.estimators.nearest import NearestMedoidClassifier
    from qmedoid.estimators.rare import RareEventClassifier
    from qmedoid.estimators.recalibration import Recalibration, recalibrate
    from qmedoid.estimators.stability import StabilityReport, stability
    from qmedoid.estimators.sum import SumClassifier
    from qmedoid.estimators.transformers import DeltaFeatures
    from qmedoid.estimators.variational import VariationalClassifier
    from qmedoid.explain.effect import Effect
    from qmedoid.explain.explanation import Explanation
    from qmedoid.geometry.medoids import medoid_index
    from qmedoid.geometry.overlap import SwapTest, compact_swap_test
    from qmedoid.large.arrow_scorer import ArrowScorer, arrow_scorer
    from qmedoid.model.contract import Contract
    from qmedoid.model.operating_point import OperatingSummary
    from qmedoid.report.diff import ModelDiff
    from qmedoid.saved import SavedModel, diff, load
    from qmedoid.tables.checking import check_table

_HOMES = {
    "ArrowScorer": "qmedoid.large.arrow_scorer",
    "Comparison": "qmedoid.estimators.comparison",
    "Contract": "qmedoid.model.contract",
    "DeltaFeatures": "qmedoid.estimators.transformers",
    "Effect": "qmedoid.explain.effect",
    "EvidenceClassifier": "qmedoid.estimators.evidence",
    "Explanation": "qmedoid.explain.explanation",
    "MedoidClassifier": "qmedoid.estimators.medoid",
    "ModelDiff": "qmedoid.report.diff",
    "NearestMedoidClassifier": "qmedoid.estimators.nearest",
    "OperatingSummary": "qmedoid.model.operating_point",
    "RareEventClassifier": "qmedoid.estimators.rare",
    "Recalibration": "qmedoid.estimators.recalibration",
    "SavedModel": "qmedoid.saved",
    "StabilityReport": "qmedoid.estimators.stability",
    "SumClassifier": "qmedoid.estimators.sum",
    "SwapTest": "qmedoid.geometry.overlap",
    "VariationalClassifier": "qmedoid.estimators.variational",
    "arrow_scorer": "qmedoid.large.arrow_scorer",
    "check_table": "qmedoid.tables.checking",
    "compare": "qmedoid.estimators.comparison",
    "compact_swap_test": "qmedoid.geometry.overlap",
    "diff": "qmedoid.saved",
    "load": "qmedoid.saved",
    "medoid_index": "qmedoid.geometry.medoids",
    "recalibrate": "qmedoid.estimators.recalibration",
    "stability": "qmedoid.estimators.stability",
}

__all__ = [
    "ArrowScorer",
    "Comparison",
    "Contract",
    "DeltaFeatures",
    "Effect",
    "EvidenceClassifier",
    "Explanation",
    "MedoidClassifier",
    "ModelDiff",
    "NearestMedoidClassifier",
    "OperatingSummary",
    "RareEventClassifier",
    "Recalibration",
    "SavedModel",
    "StabilityReport",
    "SumClassifier",
    "SwapTest",
    "VariationalClassifier",
    "__version__",
    "arrow_scorer",
    "check_table",
    "compact_swap_test",
    "compare",
    "diff",
    "exceptions",
    "load",
    "medoid_index",
    "recalibrate",
    "stability",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "exceptions":
        return import_module("qmedoid.exceptions")
    if name not in _HOMES:
        raise AttributeError(f"module 'qmedoid' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
