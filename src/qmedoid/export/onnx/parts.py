"""Parts of a model as graphs of ONNX operators: functions by the names of the parts.

Each gives class scores, (rows, C), and places of the nearest medoids of a part that has some, (rows, C).
"""

from itertools import pairwise

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.export.onnx.graph import (
    Graph,
    as_column,
    by_rank,
    k_nearest,
    piecewise,
    scaled,
    search,
    side_by_side,
    squared_distances,
)
from qmedoid.export.onnx.model import CellNodes
from qmedoid.geometry.scaling import Scaling
from qmedoid.kernels.evidence import EvidencePlan
from qmedoid.kernels.nearest import N_VISITS
from qmedoid.kernels.trees import LEVELS, N_LEAVES, N_NODES
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.methods.evidence.part import CLIP, EvidencePart
from qmedoid.methods.neighbors.part import NeighborsPart
from qmedoid.methods.part import LARGEST
from qmedoid.methods.rare.geometry import RareGeometry
from qmedoid.methods.rare.part import CLIP as RARE_CLIP
from qmedoid.methods.rare.part import RarePart

_LOG_2 = float(np.log(2.0))
_NEAREST, _POWER = 0.05, -3.0


def evidence(graph: Graph, cells: CellNodes, model: EvidencePart) -> tuple[str, str]:
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
    x = cells.columns(graph, columns.used)
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
        among = graph.add("ArgMin", graph.columns(squared, np.arange(start, stop)), axis=1, keepdims=0)
        medoids = graph.whole(plan.medoid_indices[start:stop])
        found.append(as_column(graph, graph.add("Gather", medoids, among, axis=0)))
    return side_by_side(graph, found)


def _neighbor_term(graph: Graph, cells: CellNodes, model: EvidencePart) -> str:
    """What the nearest neighbors add to the outputs, (rows, K)."""
    neighbors, compared = model.neighbors, model.compared
    assert neighbors is not None
    x = cells.columns(graph, compared)
    ranked, linear = model.scaled(neighbors.records)
    if neighbors.by_rank:
        place, rows = by_rank(graph, x, model.rank_scaling, compared), ranked[:, compared]
    else:
        scaling = Scaling(model.linear_scaling.center[compared], model.linear_scaling.scale[compared])
        place, rows = graph.clipped(scaled(graph, x, scaling), -CLIP, CLIP), linear[:, compared]
    squared, found = k_nearest(graph, squared_distances(graph, place, rows), neighbors.n_nearest)
    share = graph.add("Div", graph.add("Sqrt", squared), graph.constant(neighbors.length))
    weights = graph.add("Pow", graph.add("Add", share, graph.constant(_NEAREST)), graph.constant(_POWER))
    total = graph.add("Add", as_column(graph, graph.total(weights, 1)), graph.constant(1.0))
    return weighted(graph, graph.add("Div", weights, total), found, neighbors.amounts)


def weighted(graph: Graph, weights: str, places: str, amounts: Array) -> str:
    """Amounts (N, K) at places (rows, k), times weights, summed, (rows, K)."""
    at_places = graph.add("Gather", graph.constant(amounts), places, axis=0)
    return graph.total(graph.add("Mul", graph.add("Unsqueeze", weights, graph.whole([2])), at_places), 1)


_SMALLEST = 1e-300


def rare(graph: Graph, cells: CellNodes, model: RarePart) -> tuple[str, str]:
    """Class scores and places of the nearest prototypes, each (rows, 2)."""
    geometry = model.geometry
    x = _scaled(graph, cells.columns(graph, model.columns), geometry)
    deltas, closest = _deltas(graph, x, geometry)
    position = graph.add("Sub", x, graph.constant(geometry.middle))
    middles = [graph.add("Abs", graph.add("Sub", x, graph.constant(row))) for row in geometry.typical]
    features = side_by_side(graph, [*deltas, _nearness(graph, x, geometry), position, *middles])
    centered = graph.add("Div", graph.add("Sub", features, graph.constant(model.center)), graph.constant(model.scale))
    held = graph.clipped(centered, -RARE_CLIP, RARE_CLIP)
    logit = graph.add("MatMul", held, graph.constant(model.weights[:, None]))
    logit = graph.add("Add", logit, graph.constant(model.intercept))
    halves = np.array([0.5, -0.5])[:: 1 if model.rare_class == 1 else -1]
    common, close = closest
    behind = graph.add("Add", common, graph.whole(len(geometry.rare)))
    places = side_by_side(graph, [behind, close] if model.rare_class == 1 else [close, behind])
    return graph.add("Mul", logit, graph.constant(halves)), places


def _scaled(graph: Graph, x: str, geometry: RareGeometry) -> str:
    """Columns on the scale of the prototypes."""
    z = scaled(graph, x, geometry.scaling.outer)
    size = graph.add("Log", graph.add("Add", graph.add("Abs", z), graph.constant(1.0)))
    z = scaled(graph, graph.add("Mul", graph.add("Sign", z), size), geometry.scaling.inner)
    return graph.clipped(z, -LARGEST, LARGEST)


def _deltas(graph: Graph, x: str, geometry: RareGeometry) -> tuple[list[str], list[str]]:
    """Deltas of every metric and count, and places of the nearest common and rare prototype, (rows, 1) each."""
    deltas, closest = list[str](), list[str]()
    for number, (columns, roots, *classes) in enumerate(geometry.weighted):
        rows = graph.add("Mul", graph.columns(x, columns), graph.constant(roots))
        means = list[list[str]]()
        for prototypes in classes:
            most = min(max(geometry.counts), len(prototypes) - 1)
            squared, places = k_nearest(graph, squared_distances(graph, rows, prototypes), most)
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


def comparisons(graph: Graph, cells: CellNodes, model: ComparisonsPart) -> tuple[str, None]:
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


def neighbors(graph: Graph, cells: CellNodes, model: NeighborsPart) -> tuple[str, None]:
    """Class scores by the votes of the nearest rows, (rows, C)."""
    used = model.columns
    x = cells.columns(graph, used)
    roots = graph.constant(np.sqrt(model.column_weights[used]))
    x = graph.add("Mul", by_rank(graph, x, model.rank_scaling, used), roots) if len(used) else x
    rows = model.points(model.records)
    squared = squared_distances(graph, x, rows)
    if model.cells is not None and len(used):
        # To rows outside of the cells with the nearest centers the distance is infinite.
        to_centers = squared_distances(graph, x, rows[model.cells.centers])
        _, visits = k_nearest(graph, to_centers, min(N_VISITS, len(model.cells.centers)))
        nowhere = graph.add("Less", to_centers, graph.constant(-1.0))
        visited = graph.add("GreaterOrEqual", visits, graph.whole(0))
        is_visited = graph.columns(graph.add("ScatterElements", nowhere, visits, visited, axis=1), model.cells.members)
        squared = graph.add("Where", is_visited, squared, graph.constant(np.inf))
    found, places = k_nearest(graph, squared, min(model.n_nearest, len(rows)))
    distances = graph.add("Sqrt", found)
    closer = graph.add("Sub", graph.columns(distances, [0]), distances)
    weights = graph.add("Exp", graph.add("Div", closer, graph.constant(model.length)))
    shares = graph.add("Div", weights, as_column(graph, graph.total(weights, 1)))
    return graph.add("Neg", weighted(graph, shares, places, model.votes)), None
