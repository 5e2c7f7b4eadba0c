"""Trees of comparisons as a graph."""

import numpy as np

from qmedoid.export.onnx.cells import CellNodes
from qmedoid.export.onnx.evidence import class_scores
from qmedoid.export.onnx.graph import Graph
from qmedoid.kernels.trees import LEVELS, N_LEAVES, N_NODES
from qmedoid.methods.comparisons.part import ComparisonsPart


def write(graph: Graph, cells: CellNodes, model: ComparisonsPart) -> tuple[str, None]:
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
    return class_scores(graph, outputs, model.n_classes), None
