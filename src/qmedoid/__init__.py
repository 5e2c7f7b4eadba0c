"""qmedoid: a classifier for tables whose every decision is an exact sum, column by column and row by row.

Public names are imported on first use, so that importing the package costs little more than nothing.
"""

from typing import TYPE_CHECKING, Any

from qmedoid._version import __version__ as __version__

if TYPE_CHECKING:
    from qmedoid import exceptions as exceptions
    from qmedoid.estimators.checking import check_table as check_table
    from qmedoid.estimators.comparison import Comparison as Comparison
    from qmedoid.estimators.comparison import compare as compare
    from qmedoid.estimators.evidence import EvidenceClassifier as EvidenceClassifier
    from qmedoid.estimators.medoid import MedoidClassifier as MedoidClassifier
    from qmedoid.estimators.nearest import NearestMedoidClassifier as NearestMedoidClassifier
    from qmedoid.estimators.rare import RareEventClassifier as RareEventClassifier
    from qmedoid.estimators.recalibration import Recalibration as Recalibration
    from qmedoid.estimators.recalibration import recalibrate as recalibrate
    from qmedoid.estimators.stability import StabilityReport as StabilityReport
    from qmedoid.estimators.stability import stability as stability
    from qmedoid.estimators.sum import SumClassifier as SumClassifier
    from qmedoid.estimators.transformers import DeltaFeatures as DeltaFeatures
    from qmedoid.estimators.variational import VariationalClassifier as VariationalClassifier
    from qmedoid.explain.effect import Effect as Effect
    from qmedoid.explain.explanation import Explanation as Explanation
    from qmedoid.geometry.medoids import medoid_index as medoid_index
    from qmedoid.geometry.overlap import SwapTest as SwapTest
    from qmedoid.geometry.overlap import compact_swap_test as compact_swap_test
    from qmedoid.large.arrow_scorer import ArrowScorer as ArrowScorer
    from qmedoid.large.arrow_scorer import arrow_scorer as arrow_scorer
    from qmedoid.model.contract import Contract as Contract
    from qmedoid.model.operating_point import OperatingSummary as OperatingSummary
    from qmedoid.report.diff import ModelDiff as ModelDiff
    from qmedoid.saved import SavedModel as SavedModel
    from qmedoid.saved import diff as diff
    from qmedoid.saved import load as load

# Public names by the module that has them.
_HOMES = {
    "qmedoid.estimators.checking": "check_table",
    "qmedoid.estimators.comparison": "Comparison compare",
    "qmedoid.estimators.evidence": "EvidenceClassifier",
    "qmedoid.estimators.medoid": "MedoidClassifier",
    "qmedoid.estimators.nearest": "NearestMedoidClassifier",
    "qmedoid.estimators.rare": "RareEventClassifier",
    "qmedoid.estimators.recalibration": "Recalibration recalibrate",
    "qmedoid.estimators.stability": "StabilityReport stability",
    "qmedoid.estimators.sum": "SumClassifier",
    "qmedoid.estimators.transformers": "DeltaFeatures",
    "qmedoid.estimators.variational": "VariationalClassifier",
    "qmedoid.explain.effect": "Effect",
    "qmedoid.explain.explanation": "Explanation",
    "qmedoid.geometry.medoids": "medoid_index",
    "qmedoid.geometry.overlap": "SwapTest compact_swap_test",
    "qmedoid.large.arrow_scorer": "ArrowScorer arrow_scorer",
    "qmedoid.model.contract": "Contract",
    "qmedoid.model.operating_point": "OperatingSummary",
    "qmedoid.report.diff": "ModelDiff",
    "qmedoid.saved": "SavedModel diff load",
}

__all__ = sorted(["__version__", "exceptions", *" ".join(_HOMES.values()).split()])


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "exceptions":
        return import_module("qmedoid.exceptions")
    home = next((module for module, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module 'qmedoid' has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
