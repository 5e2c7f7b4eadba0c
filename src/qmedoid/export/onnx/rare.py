"""A rare-event model as a graph: deltas to the nearest prototypes, and features of single columns."""

import numpy as np

from qmedoid.arrays import Array
from qmedoid.export.onnx.cells import CellNodes
from qmedoid.export.onnx.graph import Graph, as_column, nearest, scaled, search, side_by_side, squared_distances
from qmedoid.methods.part import LARGEST
from qmedoid.methods.rare.geometry import RareGeometry
from qmedoid.methods.rare.part import CLIP, RarePart

_SMALLEST = 1e-300


def write(graph: Graph, cells: CellNodes, model: RarePart) -> tuple[str, str]:
    """Class scores and places of the nearest prototypes, each (rows, 2)."""
    geometry = model.geometry
    x = _scaled(graph, graph.columns(cells.x, [cells.place[column] for column in model.columns.tolist()]), geometry)
    deltas, closest = _deltas(graph, x, geometry)
    position = graph.add("Sub", x, graph.constant(geometry.middle))
    middles = [graph.add("Abs", graph.add("Sub", x, graph.constant(row))) for row in geometry.typical]
    features = side_by_side(graph, [*deltas, _nearness(graph, x, geometry), position, *middles])
    centered = graph.add("Div", graph.add("Sub", features, graph.constant(model.center)), graph.constant(model.scale))
    held = graph.clipped(centered, -CLIP, CLIP)
    logit = graph.add("MatMul", held, graph.constant(model.weights[:, None]))
    logit = graph.add("Add", logit, graph.constant(model.intercept))
    halves = np.array([0.5, -0.5])[:: 1 if model.rare_class == 1 else -1]
    common, close = closest
    behind = graph.add("Add", common, graph.whole(len(geometry.rare)))
    places = side_by_side(graph, [behind, close] if model.rare_class == 1 else [close, behind])
    return graph.add("Mul", logit, graph.constant(halves)), places


def _scaled(graph: Graph, x: str, geometry: RareGeometry) -> str:
    """Columns on the scale of the prototypes."""
    outer, inner = geometry.scaling.outer, geometry.scaling.inner
    z = scaled(graph, x, outer)
    if inner is not None:
        size = graph.add("Log", graph.add("Add", graph.add("Abs", z), graph.constant(1.0)))
        z = scaled(graph, graph.add("Mul", graph.add("Sign", z), size), inner)
    return graph.clipped(z, -LARGEST, LARGEST)


def _deltas(graph: Graph, x: str, geometry: RareGeometry) -> tuple[list[str], list[str]]:
    """Deltas of every metric and count, and places of the nearest common and rare prototype, (rows, 1) each."""
    deltas, closest = list[str](), list[str]()
    for number, (columns, roots, *classes) in enumerate(geometry.weighted):
        rows = graph.add("Mul", graph.columns(x, columns), graph.constant(roots))
        means = list[list[str]]()
        for prototypes in classes:
            most = min(max(geometry.counts), len(prototypes) - 1)
            squared, places = nearest(graph, squared_distances(graph, rows, prototypes), most)
            distances = graph.add("Sqrt", squared)
            means.append([_mean(graph, distances, min(k, most)) for k in geometry.counts])
            if number == 0:
                closest.append(graph.columns(places, [0]))
        for far, near in zip(*means, strict=True):
            both = graph.add("Add", graph.add("Add", far, near), graph.constant(_SMALLEST))
            deltas.append(graph.add("Div", graph.add("Sub", far, near), both))
    return deltas, closest


def _mean(graph: Graph, distances: str, k: int) -> str:
    """The mean of the first k of each row, (rows, 1)."""
    some = graph.columns(distances, np.arange(k))
    return graph.add("Div", as_column(graph, graph.total(some, 1)), graph.constant(float(k)))


def _nearness(graph: Graph, x: str, geometry: RareGeometry) -> str:
    """Nearness to rare prototypes against common ones on every column, (rows, M), by running sums."""
    kernel = geometry.kernel
    n_columns, width = kernel.knots.shape
    place = graph.add("Add", search(graph, x, list(kernel.knots[:, 1:-1])), graph.whole(np.arange(n_columns) * width))
    after = graph.add("Add", place, graph.whole(1))

    def at(values: Array, places: str) -> str:
        return graph.add("Gather", graph.constant(values.ravel()), places, axis=0)

    length = graph.constant(kernel.length)
    from_left = graph.add("Exp", graph.add("Div", graph.add("Sub", at(kernel.knots, place), x), length))
    from_right = graph.add("Exp", graph.add("Div", graph.add("Sub", x, at(kernel.knots, after)), length))
    means = list[str]()
    for group in (0, 1):
        left = graph.add("Mul", at(kernel.left[:, group], place), from_left)
        right = graph.add("Mul", at(kernel.right[:, group], after), from_right)
        mean = graph.add("Div", graph.add("Add", left, right), graph.constant(max(float(kernel.counts[group]), 1.0)))
        means.append(graph.add("Add", mean, graph.constant(geometry.floor)))
    return graph.add("Log", graph.add("Div", means[1], means[0]))
