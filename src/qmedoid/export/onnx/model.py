"""A model as an ONNX file."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from qmedoid._version import __version__
from qmedoid.exceptions import ModelError
from qmedoid.export.flat import FlatModel
from qmedoid.export.onnx.cells import Cells, described, read_cells
from qmedoid.export.onnx.decision import decide
from qmedoid.export.onnx.evidence import evidence
from qmedoid.export.onnx.graph import Graph
from qmedoid.export.onnx.nearest_medoid import nearest_medoid
from qmedoid.export.onnx.parts import comparisons, neighbors
from qmedoid.export.onnx.rare import rare
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.methods.evidence.part import EvidencePart
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.neighbors.part import NeighborsPart
from qmedoid.methods.part import Part
from qmedoid.methods.rare.part import RarePart

_ABOUT = (
    "A model of qmedoid {version}, SHA-256 {sha256}. Every input is a column of shape (rows,): doubles with NaN where "
    "a cell is missing, truth values as 0 and 1; texts, exactly as in training, empty where they are missing; dates as "
    "whole numbers of microseconds since 1970 in universal time, the smallest whole number where they are missing. "
    "Outputs: label; probabilities of the classes; margin; scores of the classes; nearest, for every class the row of "
    "the training table of the nearest medoid, counted from 0; issues, the number of cells that are not as in the "
    "training table. A record that the model refuses has NaN, an empty or the smallest label, and -1."
)


def onnx_file(flat: FlatModel) -> bytes:
    """A model as the bytes of an ONNX file.

    Raises
    ------
    MissingExtraError
        The package onnx is not installed.
    ModelError
        The method cannot be expressed.
    """
    graph = Graph()
    cells = read_cells(graph, flat)
    fused, nearest = _part(_BASES, flat.base)(graph, cells, flat.base)
    biases = graph.constant(flat.biases)
    fused = graph.add("Sub", graph.add("Mul", fused, graph.constant(flat.weights[0])), biases)
    for part, weight in zip(flat.parts, flat.weights[1:].tolist(), strict=True):
        scores = _part(_PARTS, part)(graph, cells, part)
        fused = graph.add("Add", fused, graph.add("Mul", scores, graph.constant(weight)))
    outputs = decide(graph, flat, cells, fused, nearest)
    about = _ABOUT.format(version=__version__, sha256=flat.sha256 or "not known")
    properties = {
        "qmedoid": __version__,
        "sha256": flat.sha256 or "",
        "classes": json.dumps(list(flat.table.decision.classes)),
        "inputs": described(cells.inputs),
        "outputs": json.dumps(outputs),
    }
    made: bytes = graph.model(about, properties).SerializeToString()
    return made


def _part(known: Mapping[type, Callable[..., Any]], part: Part) -> Callable[[Graph, Cells, Any], Any]:
    if type(part) not in known:
        raise ModelError(f"The method {part.name!r} cannot be written as ONNX.")
    return known[type(part)]


_BASES: Mapping[type, Callable[[Graph, Cells, Any], tuple[str, str]]] = {
    EvidencePart: evidence,
    RarePart: rare,
    NearestPart: nearest_medoid,
}
_PARTS: Mapping[type, Callable[[Graph, Cells, Any], str]] = {
    ComparisonsPart: comparisons,
    NeighborsPart: neighbors,
}
