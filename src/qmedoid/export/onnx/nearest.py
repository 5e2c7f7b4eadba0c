"""A nearest-medoid model as a graph: features of groups of columns, distances and angles to medoids."""

import numpy as np

from qmedoid.export.onnx.cells import CellNodes
from qmedoid.export.onnx.graph import Graph, as_column, first_nearest, scaled, side_by_side, squared_distances
from qmedoid.geometry.channels import EPSILON
from qmedoid.geometry.scaling import Scaling
from qmedoid.methods.nearest.part import NearestPart

# An arc tangent is halved so often, and its series then has so many terms: their error is below rounding.
_HALVINGS, _TERMS = 3, 14


def write(graph: Graph, cells: CellNodes, model: NearestPart) -> tuple[str, str]:
    """Fusion scores and places of the nearest medoids, each (rows, C)."""
    features = _features(graph, cells, model)
    distances = graph.add("Sqrt", squared_distances(graph, features, model.medoids))
    places, channels, angles = list[str](), list[str](), list[str]()
    medoids = graph.constant(model.medoids)
    for c in range(model.n_classes):
        place = first_nearest(graph, distances, np.flatnonzero(model.medoid_classes == c))
        places.append(as_column(graph, place))
        channels.append(graph.add("GatherElements", distances, places[-1], axis=1))
        if model.use_angular:
            angles.append(_angle(graph, features, graph.add("Gather", medoids, place, axis=0), model.angle))
    scores = _shares(graph, side_by_side(graph, channels))
    if model.use_angular:
        by_angle = graph.add("Mul", _shares(graph, side_by_side(graph, angles)), graph.constant(1.0 - model.alpha))
        scores = graph.add("Add", graph.add("Mul", scores, graph.constant(model.alpha)), by_angle)
    return graph.add("Mul", scores, graph.constant(model.multipliers)), side_by_side(graph, places)


def _features(graph: Graph, cells: CellNodes, model: NearestPart) -> str:
    """Standardized anchor features, (rows, A)."""
    used = model.columns
    place = {int(column): number for number, column in enumerate(used)}
    scaling = Scaling(model.input_scaling.center[used], model.input_scaling.scale[used])
    x = scaled(graph, graph.columns(cells.x, [cells.place[int(column)] for column in used]), scaling)
    width = max(len(subset) for subset in model.configuration)
    columns, weights = (
        np.zeros((len(model.configuration), width), dtype=np.int64),
        np.zeros((len(model.configuration), width)),
    )
    for anchor, (subset, own) in enumerate(zip(model.configuration, model.weights, strict=True)):
        # A column without weight is not read.
        columns[anchor, : len(subset)] = [place.get(column, 0) for column in subset]
        weights[anchor, : len(subset)] = [w if column in place else 0.0 for column, w in zip(subset, own, strict=True)]
    terms = graph.add("Reshape", graph.columns(x, columns.ravel()), graph.whole([-1, *columns.shape]))
    terms = graph.add("Mul", terms, graph.constant(weights))
    lengths = graph.add("Sqrt", graph.total(graph.square(terms), 2))
    if model.signed:
        is_negative = graph.add("Less", graph.total(terms, 2), graph.constant(0.0))
        lengths = graph.add("Where", is_negative, graph.add("Neg", lengths), lengths)
    return scaled(graph, lengths, model.feature_scaling)


def _shares(graph: Graph, channel: str) -> str:
    total = graph.add("Add", as_column(graph, graph.total(channel, 1)), graph.constant(EPSILON))
    return graph.add("Div", channel, total)


def _length(graph: Graph, vectors: str) -> str:
    """Norms, (rows, 1)."""
    return as_column(graph, graph.add("Sqrt", graph.total(graph.square(vectors), 1)))


def _angle(graph: Graph, x: str, y: str, kind: str) -> str:
    """The angle of every row of x with the same row of y, (rows, 1)."""
    zero, one = graph.constant(0.0), graph.constant(1.0)
    lengths = [_length(graph, vectors) for vectors in (x, y)]
    is_zero = [graph.add("Equal", length, zero) for length in lengths]
    either, both = graph.add("Or", *is_zero), graph.add("And", *is_zero)
    if kind == "printed":
        total = graph.add("Add", *(graph.square(length) for length in lengths))
        squared = graph.square(_length(graph, graph.add("Sub", x, y)))
        overlap = graph.add("Div", squared, graph.add("Mul", total, graph.constant(2.0)))
        cosine = graph.add("Sqrt", graph.add("Min", overlap, one))
        across, along = (graph.add("Sqrt", graph.add(sign, one, cosine)) for sign in ("Sub", "Add"))
        return graph.add("Where", either, zero, _twice_arc_tangent(graph, across, along))
    units = [
        graph.add("Div", vectors, graph.add("Where", is_none, one, length))
        for vectors, length, is_none in zip((x, y), lengths, is_zero, strict=True)
    ]
    across, along = (_length(graph, graph.add(sign, *units)) for sign in ("Sub", "Add"))
    theta = _twice_arc_tangent(graph, across, along)
    of_zero = graph.add("Where", both, zero, graph.constant(np.pi / 2.0))
    return graph.add("Where", either, of_zero, theta)


def _twice_arc_tangent(graph: Graph, across: str, along: str) -> str:
    """Twice the angle whose opposite and adjacent sides, neither negative, are given.

    onnxruntime has no arc tangent in double precision. Halving the angle shrinks its tangent until a short series has
    all digits; the sides are kept apart, so that a right angle needs no infinity.
    """
    for _ in range(_HALVINGS):
        longest = graph.add("Sqrt", graph.add("Add", graph.square(across), graph.square(along)))
        along = graph.add("Add", along, longest)
    tangent = graph.add("Div", across, along)
    squared, series = graph.square(tangent), graph.constant(1.0 / (2 * _TERMS + 1))
    for term in range(_TERMS - 1, -1, -1):
        series = graph.add("Sub", graph.constant(1.0 / (2 * term + 1)), graph.add("Mul", series, squared))
    return graph.add("Mul", graph.add("Mul", tangent, series), graph.constant(2.0 ** (_HALVINGS + 1)))
