"""Curves, searches and distances, as graphs."""

from collections.abc import Sequence

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.export.onnx.graph import Graph, rises
from qmedoid.geometry.scaling import RankScaling, Scaling


def search(graph: Graph, x: str, knots: Sequence[Array]) -> str:
    """How many knots of each column are at or below the value of every row there, (rows, M) by bisection."""
    steps = max(1, int(np.ceil(np.log2(max(len(own) for own in knots) + 1))))
    width = 2**steps
    flat = np.full((len(knots), width), np.inf)
    for place, own in enumerate(knots):
        flat[place, : len(own)] = own
    values, start = graph.constant(flat.ravel()), np.arange(len(knots)) * width
    found = graph.whole(np.zeros(len(knots)))
    for step in range(steps - 1, -1, -1):
        probe = graph.add("Gather", values, graph.add("Add", found, graph.whole(start + 2**step - 1)), axis=0)
        passed = graph.cast(graph.add("LessOrEqual", probe, x), np.int64)
        found = graph.add("Add", found, graph.add("Mul", passed, graph.whole(2**step)))
    return found


def piecewise(graph: Graph, x: str, knots: Sequence[Array], heights: Sequence[Array], slopes: Sequence[Array]) -> str:
    """Of each column a function that is linear between its knots and constant outside of them, (rows, M)."""
    ends = [np.array([own[place] for own in knots]) for place in (0, -1)]
    held = graph.clipped(x, *ends)
    offsets = np.cumsum([0, *(len(own) for own in knots[:-1])])
    place = graph.add("Add", search(graph, held, knots), graph.whole(offsets - 1))
    slope, knot, height = (
        graph.add("Gather", graph.constant(np.concatenate(list(parts))), place, axis=0)
        for parts in (slopes, knots, heights)
    )
    return graph.add("Add", graph.add("Mul", slope, graph.add("Sub", held, knot)), height)


def by_rank(graph: Graph, x: str, scaling: RankScaling, columns: Codes) -> str:
    """Columns of x, which are those of the scaling, scaled by rank."""
    parts = [slice(scaling.offsets[column], scaling.offsets[column + 1]) for column in columns]
    knots, heights = [scaling.values[part] for part in parts], [scaling.scores[part] for part in parts]
    return piecewise(graph, x, knots, heights, [rises(*pair) for pair in zip(knots, heights, strict=True)])


def scaled(graph: Graph, x: str, scaling: Scaling) -> str:
    """Values minus the center, divided by the scale."""
    return graph.add("Div", graph.add("Sub", x, graph.constant(scaling.center)), graph.constant(scaling.scale))


def squared_distances(graph: Graph, x: str, rows: Array) -> str:
    """Squared distance of every record to every row, column by column, so that equal ones are at 0 exactly."""
    found = list[str]()
    for column, values in enumerate(rows.T):
        difference = graph.add("Sub", graph.columns(x, [column]), graph.constant(values))
        found.append(graph.square(difference))
    if found:
        return graph.sum(found)
    nothing = graph.add("ReduceSum", x, graph.whole([1]), keepdims=1)  # of no columns
    return graph.add("Mul", nothing, graph.constant(np.zeros(len(rows))))


def nearest(graph: Graph, squared: str, k: int) -> tuple[str, str]:
    """The k smallest of squared distances, and their places; of equal ones the first."""
    values = graph.add("TopK", squared, graph.whole([k]), outputs=2, axis=1, largest=0, sorted=1)
    return values, f"{values}.1"


def first_nearest(graph: Graph, distances: str, places: Codes) -> str:
    """Which of some columns is the smallest, as a place among all of them, (rows,)."""
    among = graph.add("ArgMin", graph.columns(distances, places), axis=1, keepdims=0)
    return graph.add("Gather", graph.whole(places), among, axis=0)


def as_column(graph: Graph, value: str) -> str:
    """(rows,) as (rows, 1)."""
    return graph.add("Unsqueeze", value, graph.whole([1]))


def side_by_side(graph: Graph, values: Sequence[str]) -> str:
    """Columns of shape (rows, m) next to each other."""
    return graph.add("Concat", *values, axis=1) if len(values) > 1 else values[0]
