"""Trees of comparisons as plain values."""

from typing import Any

import numpy as np

from qmedoid.export.js.packing import packed
from qmedoid.methods.comparisons.part import ComparisonsPart


def write(model: ComparisonsPart) -> dict[str, Any]:
    """Trees of comparisons."""
    thresholds = np.where(model.node_columns >= 0, model.trees.thresholds, 0.0)
    return {
        "columns": packed(model.node_columns),
        "thresholds": packed(thresholds),
        "values": packed(model.values),
        "outputs": packed(model.outputs),
        "intercepts": packed(model.intercepts),
    }
