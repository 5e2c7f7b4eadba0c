"""qmedoid: a geometry-first, quantum-inspired classifier for tables.

Public names are imported on first use, so that importing the package costs little more than nothing.
"""

from typing import TYPE_CHECKING, Any

from qmedoid._version import __version__

if TYPE_CHECKING:
    from qmedoid.estimators._saving import save
    from qmedoid.estimators.deltas import DeltaFeatures
    from qmedoid.estimators.evidence import EvidenceClassifier
    from qmedoid.estimators.fusion import NearestMedoidClassifier
    from qmedoid.estimators.geometric import GeometricClassifier
    from qmedoid.estimators.groups import CorrelationGroups
    from qmedoid.estimators.progress import TrainingProgress
    from qmedoid.estimators.rare import RareEventClassifier
    from qmedoid.estimators.stability import stability
    from qmedoid.estimators.table import TableClassifier
    from qmedoid.estimators.variational import VariationalClassifier
    from qmedoid.geometry.medoids import medoid_index
    from qmedoid.geometry.overlap import SwapTest, compact_swap_test
    from qmedoid.methods.evidence.model import EvidenceModel
    from qmedoid.methods.nearest.model import NearestModel
    from qmedoid.methods.rare.model import RareEventModel
    from qmedoid.model.hybrid import HybridModel
    from qmedoid.tables.checking import check_table
    from qmedoid.tables.saved import SavedModel, load

_HOMES = {
    "CorrelationGroups": "qmedoid.estimators.groups",
    "DeltaFeatures": "qmedoid.estimators.deltas",
    "EvidenceClassifier": "qmedoid.estimators.evidence",
    "EvidenceModel": "qmedoid.methods.evidence.model",
    "NearestMedoidClassifier": "qmedoid.estimators.fusion",
    "NearestModel": "qmedoid.methods.nearest.model",
    "GeometricClassifier": "qmedoid.estimators.geometric",
    "HybridModel": "qmedoid.model.hybrid",
    "RareEventClassifier": "qmedoid.estimators.rare",
    "RareEventModel": "qmedoid.methods.rare.model",
    "SavedModel": "qmedoid.tables.saved",
    "SwapTest": "qmedoid.geometry.overlap",
    "TableClassifier": "qmedoid.estimators.table",
    "TrainingProgress": "qmedoid.estimators.progress",
    "VariationalClassifier": "qmedoid.estimators.variational",
    "check_table": "qmedoid.tables.checking",
    "compact_swap_test": "qmedoid.geometry.overlap",
    "load": "qmedoid.tables.saved",
    "medoid_index": "qmedoid.geometry.medoids",
    "save": "qmedoid.estimators._saving",
    "stability": "qmedoid.estimators.stability",
}

__all__ = [
    "CorrelationGroups",
    "DeltaFeatures",
    "EvidenceClassifier",
    "EvidenceModel",
    "GeometricClassifier",
    "HybridModel",
    "NearestMedoidClassifier",
    "NearestModel",
    "RareEventClassifier",
    "RareEventModel",
    "SavedModel",
    "SwapTest",
    "TableClassifier",
    "TrainingProgress",
    "VariationalClassifier",
    "__version__",
    "check_table",
    "compact_swap_test",
    "load",
    "medoid_index",
    "save",
    "stability",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'qmedoid' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
