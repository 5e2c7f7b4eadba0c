"""Neighbors as a graph."""

import numpy as np

from qmedoid.arrays import Array
from qmedoid.export.onnx.cells import CellNodes
from qmedoid.export.onnx.evidence import weighted
from qmedoid.export.onnx.graph import Graph, as_column, by_rank, nearest, squared_distances
from qmedoid.kernels.cells import N_VISITS
from qmedoid.methods.neighbors.part import NeighborsPart, RowCells


def write(graph: Graph, cells: CellNodes, model: NeighborsPart) -> tuple[str, None]:
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
    return graph.add("Neg", weighted(graph, shares, places, model.votes)), None


def _in_cells(graph: Graph, x: str, squared: str, cells: RowCells, centers: Array) -> str:
    """Squared distances to the rows of the cells with the nearest centers; to all others infinity."""
    to_centers = squared_distances(graph, x, centers)
    _, visits = nearest(graph, to_centers, min(N_VISITS, len(centers)))
    nowhere = graph.add("Less", to_centers, graph.constant(-1.0))
    visited = graph.add("GreaterOrEqual", visits, graph.whole(0))
    is_visited = graph.add("ScatterElements", nowhere, visits, visited, axis=1)
    return graph.add("Where", graph.columns(is_visited, cells.members), squared, graph.constant(np.inf))
