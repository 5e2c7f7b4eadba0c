"""Parts of a sum as graphs: trees of comparisons, and neighbors."""

import numpy as np

from qmedoid.arrays import Array
from qmedoid.export.onnx.cells import CellNodes
from qmedoid.export.onnx.evidence import class_scores, weighted
from qmedoid.export.onnx.graph import Graph, as_column, by_rank, nearest, squared_distances
from qmedoid.kernels.cells import N_VISITS
from qmedoid.kernels.trees import LEVELS, N_LEAVES, N_NODES
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.methods.neighbors.part import NeighborsPart, RowCells


def comparisons(graph: Graph, cells: CellNodes, model: ComparisonsPart) -> str:
    """Class scores of trees, (rows, C): every tree is descended by its table of nodes."""
    trees, count = model.trees, len(model.outputs)
    place = np.vectorize(lambda column, own: cells.place[own] if column >= 0 else 0, otypes=[np.int64])
    columns = graph.whole(place(model.node_columns, trees.columns).ravel())
    thresholds = graph.constant(trees.thresholds.ravel())
    first = graph.whole(np.arange(count) * N_NODES)
    roots = place(model.node_columns[:, 0], trees.columns[:, 0])
    above = graph.add("Greater", graph.columns(cells.x, roots), graph.constant(trees.thresholds[:, 0]))
    node = graph.add("Add", graph.cast(above, np.int64), graph.whole(1))
    for _ in range(LEVELS - 1):
        at = graph.add("Add", node, first)
        own = graph.add("GatherElements", cells.x, graph.add("Gather", columns, at, axis=0), axis=1)
        above = graph.add("Greater", own, graph.add("Gather", thresholds, at, axis=0))
        child = graph.add("Add", graph.add("Mul", node, graph.whole(2)), graph.whole(1))
        node = graph.add("Add", child, graph.cast(above, np.int64))
    leaf = graph.add("Add", node, graph.whole(np.arange(count) * N_LEAVES - N_NODES))
    values = graph.add("Gather", graph.constant(trees.leaves.ravel()), leaf, axis=0)
    of_output = np.eye(len(model.intercepts))[model.outputs]
    outputs = graph.add("Add", graph.add("MatMul", values, graph.constant(of_output)), graph.constant(model.intercepts))
    return class_scores(graph, outputs, model.n_classes)


def neighbors(graph: Graph, cells: CellNodes, model: NeighborsPart) -> str:
    """Class scores by the votes of the nearest rows, (rows, C)."""
    used = model.columns
    x = graph.columns(cells.x, [cells.place[column] for column in used.tolist()])
    roots = graph.constant(np.sqrt(model.column_weights[used]))
    x = graph.add("Mul", by_rank(graph, x, model.rank_scaling, used), roots) if len(used) else x
    rows = model.points(model.records)
    squared = squared_distances(graph, x, rows)
    if model.cells is not None and len(used):
        squared = _in_cells(graph, x, squared, model.cells, rows[model.cells.centers])
    found, places = nearest(graph, squared, min(model.n_nearest, len(rows)))
    distances = graph.add("Sqrt", found)
    closer = graph.add("Sub", graph.columns(distances, [0]), distances)
    weights = graph.add("Exp", graph.add("Div", closer, graph.constant(model.length)))
    shares = graph.add("Div", weights, as_column(graph, graph.total(weights, 1)))
    return graph.add("Neg", weighted(graph, shares, places, model.votes))


def _in_cells(graph: Graph, x: str, squared: str, cells: RowCells, centers: Array) -> str:
    """Squared distances to the rows of the cells with the nearest centers; to all others infinity."""
    to_centers = squared_distances(graph, x, centers)
    _, visits = nearest(graph, to_centers, min(N_VISITS, len(centers)))
    nowhere = graph.add("Less", to_centers, graph.constant(-1.0))
    visited = graph.add("GreaterOrEqual", visits, graph.whole(0))
    is_visited = graph.add("ScatterElements", nowhere, visits, visited, axis=1)
    return graph.add("Where", graph.columns(is_visited, cells.members), squared, graph.constant(np.inf))
