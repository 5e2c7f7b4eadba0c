"""A model as an ONNX file."""

import json
from typing import Any

import numpy as np

from qmedoid._version import __version__
from qmedoid.export.onnx.cells import MISSING_MOMENT, CellNodes, described, read_cells
from qmedoid.export.onnx.graph import Graph, as_column, piecewise, rises
from qmedoid.export.writing import check_exported, part_writer
from qmedoid.kernels.ties import TIE
from qmedoid.model.model import Model

OUTPUTS = ("label", "probabilities", "margin", "scores", "nearest", "issues")
"""Names of the outputs; one that is the name of a column has ``qmedoid_`` before it."""


def decide(graph: Graph, model: Model, cells: CellNodes, fused: str, nearest: str) -> list[str]:
    """Add the outputs; their names."""
    decision, n_classes = model.decision, model.n_classes
    scores = _calibrated(graph, model, fused)
    if decision.shift is not None:
        scores = graph.add("Add", scores, graph.constant(decision.shift.log_ratios))
    biased = scores if decision.biases is None else graph.add("Add", scores, graph.constant(decision.biases))
    margin, code = _of_two(graph, model, scores) if n_classes == 2 else _of_more(graph, model, biased)
    assert model.medoids is not None, "only a circuit has none"
    rows = graph.add("Gather", graph.whole(model.medoids.numbers), nearest, axis=0)
    found: dict[str, tuple[str, type, tuple[int, ...], Any]] = {
        "label": _label(graph, model, code),
        "margin": (margin, np.float64, (), np.nan),
        "scores": (scores, np.float64, (n_classes,), np.nan),
        "nearest": (rows, np.int64, (n_classes,), -1),
        "issues": (cells.issues, np.int64, (), None),
    }
    if decision.probabilistic:
        found["probabilities"] = graph.add("Softmax", scores, axis=1), np.float64, (n_classes,), np.nan
    names = list[str]()
    taken = {one["name"] for one in cells.inputs}
    for output in OUTPUTS:
        if output not in found:
            continue
        value, kind, shape, of_refused = found[output]
        if cells.is_refused is not None and of_refused is not None:
            is_refused = as_column(graph, cells.is_refused) if shape else cells.is_refused
            value = graph.add("Where", is_refused, graph.constant(of_refused, kind), value)
        name = output
        while name in taken:
            name = f"qmedoid_{name}"
        graph.output(name, value, kind, shape)
        names.append(name)
    return names


def _calibrated(graph: Graph, model: Model, fused: str) -> str:
    """Calibrated class scores, (rows, C)."""
    calibration, n_classes = model.calibration, model.n_classes
    stretched = graph.add("Mul", fused, graph.constant(calibration.slope))
    straight = graph.add("Sub", graph.constant(calibration.biases), stretched)
    knots, heights = calibration.knots, calibration.heights
    if not len(knots):
        return straight
    slopes = rises(knots, heights)
    if n_classes != 2:
        return graph.add(
            "Add", straight, piecewise(graph, straight, *([one] * n_classes for one in (knots, heights, slopes)))
        )
    log_odds = graph.add("Sub", graph.columns(straight, [1]), graph.columns(straight, [0]))
    half = piecewise(graph, log_odds, [knots], [heights], [slopes])
    return graph.add("Add", straight, graph.add("Mul", half, graph.constant([[-0.5, 0.5]])))


def _of_two(graph: Graph, model: Model, scores: str) -> tuple[str, str]:
    """Margin and class code, (rows,) each."""
    decision = model.decision
    first, second = (graph.add("Gather", scores, graph.whole(c), axis=1) for c in (0, 1))
    margin = graph.add("Sub", second, first)
    if decision.cut is not None:
        margin = graph.add("Sub", margin, graph.constant(decision.cut))
    even = TIE if decision.cut is None and decision.probabilistic else 0.0
    return margin, graph.cast(graph.add("Greater", margin, graph.constant(even)), np.int64)


def _of_more(graph: Graph, model: Model, biased: str) -> tuple[str, str]:
    """Margin and class code, (rows,) each: the first class that is the best up to rounding."""
    highest = graph.add("TopK", biased, graph.whole([2]), outputs=2, axis=1, largest=1, sorted=1)
    best, next_best = (graph.columns(highest, [place]) for place in (0, 1))
    margin = graph.add("Squeeze", graph.add("Sub", best, next_best), graph.whole([1]))
    slack = graph.constant(TIE)
    if not model.decision.probabilistic:
        slack = graph.add("Mul", slack, graph.add("Abs", best))
    is_best = graph.cast(graph.add("GreaterOrEqual", biased, graph.add("Sub", best, slack)), np.float64)
    return margin, graph.add("ArgMax", is_best, axis=1, keepdims=0)


def _label(graph: Graph, model: Model, code: str) -> tuple[str, type, tuple[int, ...], Any]:
    """Classes as texts, whole numbers or doubles; of a record that is refused an empty text, the least, or NaN."""
    classes = model.decision.classes
    kind: type = object if isinstance(classes[0], str) else np.int64
    refused: Any = "" if kind is object else MISSING_MOMENT
    if any(isinstance(label, float) for label in classes):
        kind, refused = np.float64, np.nan
    return graph.add("Gather", graph.constant(list(classes), kind), code, axis=0), kind, (), refused


_ABOUT = (
    "A model of qmedoid {version}, SHA-256 {sha256}. Every input is a column of shape (rows,): doubles with NaN where "
    "a cell is missing, truth values as 0 and 1; texts, exactly as in training, empty where they are missing; dates as "
    "whole numbers of microseconds since 1970 in universal time, the smallest whole number where they are missing. "
    "Outputs: label; probabilities of the classes; margin; scores of the classes; nearest, for every class the row of "
    "the training table of the nearest medoid, counted from 0; issues, the number of cells that are not as in the "
    "training table. A record that the model refuses has NaN, an empty or the smallest label, and -1."
)


def onnx_file(model: Model, sha256: str | None = None) -> bytes:
    """A model as the bytes of an ONNX file.

    Raises
    ------
    MissingExtraError
        The package onnx is not installed.
    ModelError
        ONNX cannot express it.
    """
    check_exported(model)
    graph, nearest = Graph(), ""
    cells = read_cells(graph, model)
    fused = graph.constant(-model.biases)
    for part, weight in zip(model.parts, model.weights.tolist(), strict=True):
        scores, places = part_writer("onnx", part)(graph, cells, part)
        nearest = places if part is model.medoid_part else nearest
        fused = graph.add("Add", fused, graph.add("Mul", scores, graph.constant(weight)))
    outputs = decide(graph, model, cells, fused, nearest)
    about = _ABOUT.format(version=__version__, sha256=sha256 or "not known")
    properties = {
        "qmedoid": __version__,
        "sha256": sha256 or "",
        "classes": json.dumps(list(model.decision.classes)),
        "inputs": described(cells.inputs),
        "outputs": json.dumps(outputs),
    }
    made: bytes = graph.model(about, properties).SerializeToString()
    return made
