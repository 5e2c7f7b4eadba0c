"""Parts of a model as graphs of ONNX operators: functions by the names of the parts.

Each gives class scores, (rows, C), and places of the nearest medoids of a part that has some, (rows, C).
"""

from functools import reduce
from itertools import pairwise

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.export.onnx.graph import (
    Node,
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


def evidence(cells: CellNodes, model: EvidencePart) -> tuple[Node, Node]:
    """Class scores and places of the nearest medoids, each (rows, C)."""
    plan = model.plan
    lines = _lines(cells, plan)
    squared = _squared(lines, plan)
    outputs = _outputs(lines, squared, plan)
    if model.neighbors is not None:
        outputs = outputs + _neighbor_term(cells, model)
    return class_scores(outputs, model.n_classes), _nearest(squared, plan)


def class_scores(outputs: Node, n_classes: int) -> Node:
    """Dissimilarities from outputs, (rows, C)."""
    return outputs * ([[0.5, -0.5]] if n_classes == 2 else -1.0)


def _lines(cells: CellNodes, plan: EvidencePlan) -> Node:
    """Scaled columns times the roots of their weights, (rows, L)."""
    columns = plan.columns
    x = cells.columns(columns.used)
    parts = [slice(*columns.knot_offsets[u : u + 2].tolist()) for u in range(len(columns.used))]
    ranked = piecewise(
        x, *([values[part] for part in parts] for values in (columns.knots, columns.marks, columns.rises))
    )
    standardized = scaled(x, Scaling(columns.center, columns.scale)).clipped(-columns.clip, columns.clip)
    of_line = np.repeat(np.arange(len(columns.used)), np.diff(plan.line_offsets))
    places = np.where(plan.line_by_rank == 1, of_line, of_line + len(columns.used))
    return side_by_side([ranked, standardized]).columns(places) * plan.line_root


def _squared(lines: Node, plan: EvidencePlan) -> Node:
    """Squared distance of every pair of a group and a medoid, (rows, N): pairs with as many lines at a time."""
    by_width: dict[int, list[int]] = {}
    for group, width in enumerate(np.diff(plan.member_offsets).tolist()):
        by_width.setdefault(width, []).append(group)
    parts, order = list[Node](), list[Codes]()
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
        apart = [lines.columns(own) - of_line for own, of_line in places]
        parts.append(reduce(Node.__add__, [one * one for one in apart]))
    return side_by_side(parts).columns(np.argsort(np.concatenate(order)))


def _outputs(lines: Node, squared: Node, plan: EvidencePlan) -> Node:
    """The outputs without neighbors, (rows, K)."""
    outputs = lines * lines @ plan.quadratic + plan.intercepts + lines @ plan.linear
    fold_line = np.repeat(np.arange(len(plan.line_root)), np.diff(plan.fold_offsets))
    if len(fold_line):
        outputs = outputs + (lines.columns(fold_line) - plan.folds).apply("Abs") @ plan.fold_weights
    distances = squared.apply("Sqrt")
    far = np.flatnonzero(plan.has_distance)
    if len(far):
        outputs = outputs + distances.columns(far) @ plan.distance_weights[far]
    pair = np.repeat(np.arange(len(plan.has_distance)), np.diff(plan.near_offsets))
    if len(pair):
        nearness = (distances.columns(pair) * (plan.near_rates * _LOG_2)).apply("Exp")
        outputs = outputs + nearness @ plan.near_weights
    return outputs


def _nearest(squared: Node, plan: EvidencePlan) -> Node:
    """Places of the nearest medoids, class by class, (rows, C)."""
    found = list[Node]()
    for start, stop in pairwise(plan.class_offsets.tolist()):
        among = squared.columns(np.arange(start, stop)).apply("ArgMin", axis=1, keepdims=0)
        found.append(squared.graph.add("Gather", plan.medoid_indices[start:stop], among, axis=0).as_column())
    return side_by_side(found)


def _neighbor_term(cells: CellNodes, model: EvidencePart) -> Node:
    """What the nearest neighbors add to the outputs, (rows, K)."""
    neighbors, compared = model.neighbors, model.compared
    assert neighbors is not None
    x = cells.columns(compared)
    ranked, linear = model.scaled(neighbors.records)
    if neighbors.by_rank:
        place, rows = by_rank(x, model.rank_scaling, compared), ranked[:, compared]
    else:
        scaling = Scaling(model.linear_scaling.center[compared], model.linear_scaling.scale[compared])
        place, rows = scaled(x, scaling).clipped(-CLIP, CLIP), linear[:, compared]
    squared, found = k_nearest(squared_distances(place, rows), neighbors.n_nearest)
    weights = (squared.apply("Sqrt") / neighbors.length + _NEAREST).apply("Pow", _POWER)
    return weighted(weights / (weights.total(1).as_column() + 1.0), found, neighbors.amounts)


def weighted(weights: Node, places: Node, amounts: Array) -> Node:
    """Amounts (N, K) at places (rows, k), times weights, summed, (rows, K)."""
    at_places = weights.graph.add("Gather", amounts, places, axis=0)
    return (weights.apply("Unsqueeze", [2]) * at_places).total(1)


_SMALLEST = 1e-300


def rare(cells: CellNodes, model: RarePart) -> tuple[Node, Node]:
    """Class scores and places of the nearest prototypes, each (rows, 2)."""
    geometry = model.geometry
    x = _scaled(cells.columns(model.columns), geometry)
    deltas, (common, close) = _deltas(x, geometry)
    middles = [(x - row).apply("Abs") for row in geometry.typical]
    features = side_by_side([*deltas, _nearness(x, geometry), x - geometry.middle, *middles])
    held = scaled(features, Scaling(model.center, model.scale)).clipped(-RARE_CLIP, RARE_CLIP)
    logit = held @ model.weights[:, None] + model.intercept
    halves, places = [0.5, -0.5], [common + len(geometry.rare), close]
    step = 1 if model.rare_class == 1 else -1
    return logit * halves[::step], side_by_side(places[::step])


def _scaled(x: Node, geometry: RareGeometry) -> Node:
    """Columns on the scale of the prototypes."""
    z = scaled(x, geometry.scaling.outer)
    size = (z.apply("Abs") + 1.0).apply("Log")
    return scaled(z.apply("Sign") * size, geometry.scaling.inner).clipped(-LARGEST, LARGEST)


def _deltas(x: Node, geometry: RareGeometry) -> tuple[list[Node], list[Node]]:
    """Deltas of every metric and count, and places of the nearest common and rare prototype, (rows, 1) each."""
    deltas, closest = list[Node](), list[Node]()
    for number, (columns, roots, *classes) in enumerate(geometry.weighted):
        rows = x.columns(columns) * roots
        means = list[list[Node]]()
        for prototypes in classes:
            most = min(max(geometry.counts), len(prototypes) - 1)
            squared, places = k_nearest(squared_distances(rows, prototypes), most)
            distances = squared.apply("Sqrt")
            firsts = [min(k, most) for k in geometry.counts]
            means.append([distances.columns(np.arange(k)).total(1).as_column() / float(k) for k in firsts])
            if number == 0:
                closest.append(places.columns([0]))
        deltas += [(far - near) / (far + near + _SMALLEST) for far, near in zip(*means, strict=True)]
    return deltas, closest


def _nearness(x: Node, geometry: RareGeometry) -> Node:
    """Nearness to rare prototypes against common ones on every column, (rows, M), by running sums."""
    kernel = geometry.kernel
    n_columns, width = kernel.knots.shape
    place = search(x, list(kernel.knots[:, 1:-1])) + np.arange(n_columns) * width
    after = place + 1

    def at(values: Array, places: Node) -> Node:
        return x.graph.add("Gather", values.ravel(), places, axis=0)

    from_left = ((at(kernel.knots, place) - x) / kernel.length).apply("Exp")
    from_right = ((x - at(kernel.knots, after)) / kernel.length).apply("Exp")
    means = list[Node]()
    for group in (0, 1):
        near = at(kernel.left[:, group], place) * from_left + at(kernel.right[:, group], after) * from_right
        means.append(near / max(float(kernel.counts[group]), 1.0) + geometry.floor)
    return (means[1] / means[0]).apply("Log")


def comparisons(cells: CellNodes, model: ComparisonsPart) -> tuple[Node, None]:
    """Class scores of trees, (rows, C): every tree is descended by its table of nodes."""
    trees, count, add_node = model.trees, len(model.outputs), cells.x.graph.add
    place = np.vectorize(lambda column, own: cells.place[own] if column >= 0 else 0, otypes=[np.int64])
    columns = place(model.node_columns, trees.columns)
    first = np.arange(count) * N_NODES
    node = (cells.x.columns(columns[:, 0]) > trees.thresholds[:, 0]).cast(np.int64) + 1
    for _ in range(LEVELS - 1):
        at = node + first
        own = cells.x.apply("GatherElements", add_node("Gather", columns.ravel(), at, axis=0), axis=1)
        above = own > add_node("Gather", trees.thresholds.ravel(), at, axis=0)
        node = node * 2 + 1 + above.cast(np.int64)
    values = add_node("Gather", trees.leaves.ravel(), node + (np.arange(count) * N_LEAVES - N_NODES), axis=0)
    outputs = values @ np.eye(len(model.intercepts))[model.outputs] + model.intercepts
    return class_scores(outputs, model.n_classes), None


def neighbors(cells: CellNodes, model: NeighborsPart) -> tuple[Node, None]:
    """Class scores by the votes of the nearest rows, (rows, C)."""
    used = model.columns
    x = cells.columns(used)
    if len(used):
        x = by_rank(x, model.rank_scaling, used) * np.sqrt(model.column_weights[used])
    rows = model.points(model.records)
    squared = squared_distances(x, rows)
    if model.cells is not None and len(used):
        # To rows outside of the cells with the nearest centers the distance is infinite.
        to_centers = squared_distances(x, rows[model.cells.centers])
        _, visits = k_nearest(to_centers, min(N_VISITS, len(model.cells.centers)))
        is_visited = (to_centers < -1.0).apply("ScatterElements", visits, visits >= 0, axis=1)
        squared = is_visited.columns(model.cells.members).apply("Where", squared, np.inf)
    found, places = k_nearest(squared, min(model.n_nearest, len(rows)))
    distances = found.apply("Sqrt")
    weights = ((distances.columns([0]) - distances) / model.length).apply("Exp")
    return weighted(weights / weights.total(1).as_column(), places, model.votes).apply("Neg"), None
