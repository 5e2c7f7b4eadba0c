"""The evidence of a record as a graph: lines, distances, sums, and the neighbor term."""

from itertools import pairwise

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.export.onnx.cells import CellNodes
from qmedoid.export.onnx.graph import (
    Graph,
    as_column,
    by_rank,
    first_nearest,
    nearest,
    piecewise,
    scaled,
    side_by_side,
    squared_distances,
)
from qmedoid.geometry.scaling import Scaling
from qmedoid.kernels.evidence import EvidencePlan
from qmedoid.methods.evidence.part import CLIP, EvidencePart

_LOG_2 = float(np.log(2.0))
_NEAREST, _POWER = 0.05, -3.0


def write(graph: Graph, cells: CellNodes, model: EvidencePart) -> tuple[str, str]:
    """Class scores and places of the nearest medoids, each (rows, C)."""
    plan = model.plan
    lines = _lines(graph, cells, plan)
    squared = _squared(graph, lines, plan)
    outputs = _outputs(graph, lines, squared, plan)
    if model.neighbors is not None:
        outputs = graph.add("Add", outputs, _neighbor_term(graph, cells, model))
    return class_scores(graph, outputs, model.n_classes), _nearest(graph, squared, plan)


def class_scores(graph: Graph, outputs: str, n_classes: int) -> str:
    """Dissimilarities from outputs, (rows, C)."""
    factors = [[0.5, -0.5]] if n_classes == 2 else -1.0
    return graph.add("Mul", outputs, graph.constant(factors))


def _lines(graph: Graph, cells: CellNodes, plan: EvidencePlan) -> str:
    """Scaled columns times the roots of their weights, (rows, L)."""
    columns = plan.columns
    x = graph.columns(cells.x, [cells.place[column] for column in columns.used.tolist()])
    parts = [slice(*columns.knot_offsets[u : u + 2].tolist()) for u in range(len(columns.used))]
    ranked = piecewise(
        graph, x, *([values[part] for part in parts] for values in (columns.knots, columns.marks, columns.rises))
    )
    standardized = graph.clipped(scaled(graph, x, Scaling(columns.center, columns.scale)), -columns.clip, columns.clip)
    of_line = np.repeat(np.arange(len(columns.used)), np.diff(plan.line_offsets))
    places = np.where(plan.line_by_rank == 1, of_line, of_line + len(columns.used))
    both = side_by_side(graph, [ranked, standardized])
    return graph.add("Mul", graph.columns(both, places), graph.constant(plan.line_root))


def _squared(graph: Graph, lines: str, plan: EvidencePlan) -> str:
    """Squared distance of every pair of a group and a medoid, (rows, N): pairs with as many lines at a time."""
    by_width: dict[int, list[int]] = {}
    for group, width in enumerate(np.diff(plan.member_offsets).tolist()):
        by_width.setdefault(width, []).append(group)
    parts, order = list[str](), list[Codes]()
    for width, groups in by_width.items():
        members, values = list[Codes](), list[Array]()
        for group in groups:
            own = plan.members[plan.member_offsets[group] : plan.member_offsets[group + 1]]
            pairs = np.arange(plan.pair_offsets[group], plan.pair_offsets[group + 1])
            members.append(np.tile(own, (len(pairs), 1)))
            flat = plan.values[plan.value_offsets[group] : plan.value_offsets[group + 1]]
            values.append(flat.reshape(len(pairs), width))
            order.append(pairs)
        # Line by line, in the order of the kernel: of medoids at equal distances the same is the first.
        places = zip(np.concatenate(members).T, np.concatenate(values).T, strict=True)
        apart = [graph.add("Sub", graph.columns(lines, own), graph.constant(of_line)) for own, of_line in places]
        parts.append(graph.sum([graph.square(one) for one in apart]))
    return graph.columns(side_by_side(graph, parts), np.argsort(np.concatenate(order)))


def _outputs(graph: Graph, lines: str, squared: str, plan: EvidencePlan) -> str:
    """The outputs without neighbors, (rows, K)."""
    terms = [
        graph.add("MatMul", graph.square(lines), graph.constant(plan.quadratic)),
        graph.add("MatMul", lines, graph.constant(plan.linear)),
    ]
    fold_line = np.repeat(np.arange(len(plan.line_root)), np.diff(plan.fold_offsets))
    if len(fold_line):
        apart = graph.add("Sub", graph.columns(lines, fold_line), graph.constant(plan.folds))
        terms.append(graph.add("MatMul", graph.add("Abs", apart), graph.constant(plan.fold_weights)))
    distances = graph.add("Sqrt", squared)
    far = np.flatnonzero(plan.has_distance)
    if len(far):
        weights = graph.constant(plan.distance_weights[far])
        terms.append(graph.add("MatMul", graph.columns(distances, far), weights))
    pair = np.repeat(np.arange(len(plan.has_distance)), np.diff(plan.near_offsets))
    if len(pair):
        exponent = graph.add("Mul", graph.columns(distances, pair), graph.constant(plan.near_rates * _LOG_2))
        terms.append(graph.add("MatMul", graph.add("Exp", exponent), graph.constant(plan.near_weights)))
    return graph.sum([graph.add("Add", terms[0], graph.constant(plan.intercepts)), *terms[1:]])


def _nearest(graph: Graph, squared: str, plan: EvidencePlan) -> str:
    """Places of the nearest medoids, class by class, (rows, C)."""
    bounds, found = plan.class_offsets.tolist(), list[str]()
    for start, stop in pairwise(bounds):
        place = first_nearest(graph, squared, np.arange(start, stop))
        found.append(as_column(graph, graph.add("Gather", graph.whole(plan.medoid_indices), place, axis=0)))
    return side_by_side(graph, found)


def _neighbor_term(graph: Graph, cells: CellNodes, model: EvidencePart) -> str:
    """What the nearest neighbors add to the outputs, (rows, K)."""
    neighbors, compared = model.neighbors, model.compared
    assert neighbors is not None
    x = graph.columns(cells.x, [cells.place[column] for column in compared.tolist()])
    ranked, linear = model.scaled(neighbors.records)
    if neighbors.by_rank:
        place, rows = by_rank(graph, x, model.rank_scaling, compared), ranked[:, compared]
    else:
        scaling = Scaling(model.linear_scaling.center[compared], model.linear_scaling.scale[compared])
        place, rows = graph.clipped(scaled(graph, x, scaling), -CLIP, CLIP), linear[:, compared]
    squared, found = nearest(graph, squared_distances(graph, place, rows), neighbors.n_nearest)
    share = graph.add("Div", graph.add("Sqrt", squared), graph.constant(neighbors.length))
    weights = graph.add("Pow", graph.add("Add", share, graph.constant(_NEAREST)), graph.constant(_POWER))
    total = graph.add("Add", as_column(graph, graph.total(weights, 1)), graph.constant(1.0))
    return weighted(graph, graph.add("Div", weights, total), found, neighbors.amounts)


def weighted(graph: Graph, weights: str, places: str, amounts: Array) -> str:
    """Amounts (N, K) at places (rows, k), times weights, summed, (rows, K)."""
    at_places = graph.add("Gather", graph.constant(amounts), places, axis=0)
    return graph.total(graph.add("Mul", graph.add("Unsqueeze", weights, graph.whole([2])), at_places), 1)
