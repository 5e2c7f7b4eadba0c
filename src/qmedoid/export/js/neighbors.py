"""Neighbors as plain values."""

from typing import Any

from qmedoid.export.js.packing import packed, rank_scaling
from qmedoid.methods.neighbors.part import NeighborsPart


def write(model: NeighborsPart) -> dict[str, Any]:
    """Neighbors."""
    cells = None
    if model.cells is not None:
        cells = {"centers": packed(model.cells.centers), "members": packed(model.cells.members)}
    return {
        "records": packed(model.records),
        "votes": packed(model.votes),
        "rank": rank_scaling(model.rank_scaling),
        "columnWeights": packed(model.column_weights),
        "length": model.length,
        "nearest": model.n_nearest,
        "cells": cells,
    }
