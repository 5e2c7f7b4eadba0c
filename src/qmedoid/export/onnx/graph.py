"""A graph of ONNX operators as it is built: nodes with names of their own, and constants that are kept once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import MissingExtraError
from qmedoid.geometry.scaling import RankScaling, Scaling

OPSETS = {"": 18, "ai.onnx.ml": 3}
"""Versions of the sets of operators."""
_IR_VERSION = 9
ROWS = "rows"
"""Name of the first dimension of every input and output."""


class Graph:
    """Nodes and constants; every method that adds one returns the name of its result."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise MissingExtraError("To export as onnx, install qmedoid[onnx]: pip install 'qmedoid[onnx]'.") from error
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._tensors: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._given: dict[str, str] = {}

    def input(self, name: str, kind: type) -> str:
        """An input of shape (rows,), of doubles, whole numbers or texts; the user's name is kept."""
        self._inputs.append(self._info(name, kind, [ROWS]))
        inside = f"q{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node("Identity", [name], [inside]))
        self._given[name] = inside
        return inside

    def output(self, name: str, value: str, kind: type, shape: Sequence[int] = ()) -> None:
        """Give a result a name of an output, of shape (rows, ...)."""
        self._outputs.append(self._info(name, kind, [ROWS, *shape]))
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))

    def constant(self, values: Any, kind: type = np.float64) -> str:
        """An array."""
        array: npt.NDArray[Any] = np.asarray(values, dtype=kind)
        key = (array.dtype.str, array.shape, repr(array.tolist()).encode() if kind is object else array.tobytes())
        if key not in self._constants:
            name = f"k{len(self._constants)}"
            self._constants[key] = name
            if kind is object:
                texts = [text.encode() for text in array.ravel().tolist()]
                tensor = self._onnx.helper.make_tensor(name, self._onnx.TensorProto.STRING, array.shape, texts)
            else:
                tensor = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
            self._tensors.append(tensor)
        return self._constants[key]

    def whole(self, values: Any) -> str:
        """An array of whole numbers."""
        return self.constant(values, np.int64)

    def add(self, operator: str, *inputs: str, domain: str = "", outputs: int = 1, **attributes: Any) -> str:
        """A node; where it has several results, the name of the first, with ``.1`` and so on for the others."""
        first = f"q{len(self._nodes)}"
        names = [first, *(f"{first}.{number}" for number in range(1, outputs))]
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), names, domain=domain, **attributes))
        return first

    def cast(self, value: str, kind: type) -> str:
        """A value as another type."""
        return self.add("Cast", value, to=self._kind(kind))

    def sum(self, values: Sequence[str]) -> str:
        """The sum of some values."""
        total = values[0]
        for value in values[1:]:
            total = self.add("Add", total, value)
        return total

    def total(self, value: str, axis: int) -> str:
        """The sum along an axis, which is dropped."""
        return self.add("ReduceSum", value, self.whole([axis]), keepdims=0)

    def square(self, value: str) -> str:
        """A value times itself."""
        return self.add("Mul", value, value)

    def columns(self, value: str, places: Any) -> str:
        """Some columns of rows."""
        return self.add("Gather", value, self.whole(places), axis=1)

    def clipped(self, value: str, low: Any, high: Any) -> str:
        """A value within limits."""
        return self.add("Max", self.add("Min", value, self.constant(high)), self.constant(low))

    def model(self, about: str, properties: dict[str, str]) -> Any:
        """The finished model, checked."""
        helper = self._onnx.helper
        graph = helper.make_graph(self._nodes, "qmedoid", self._inputs, self._outputs, self._tensors, doc_string=about)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="qmedoid")
        helper.set_model_props(model, properties)
        model.doc_string = about
        self._onnx.checker.check_model(model, full_check=False)
        return model

    def _info(self, name: str, kind: type, shape: Sequence[str | int]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._kind(kind), list(shape))

    def _kind(self, kind: type) -> Any:
        if kind is object:
            return self._onnx.TensorProto.STRING
        return self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))


def rises(knots: npt.NDArray[np.float64], heights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Slope from each knot to the next; 0 from the last one, and where no number lies between two."""
    with np.errstate(all="ignore"):
        found = np.append(np.diff(heights) / np.diff(knots), 0.0)
    return np.where(np.isfinite(found), found, 0.0)


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


def k_nearest(graph: Graph, squared: str, k: int) -> tuple[str, str]:
    """The k smallest of squared distances, and their places; of equal ones the first."""
    values = graph.add("TopK", squared, graph.whole([k]), outputs=2, axis=1, largest=0, sorted=1)
    return values, f"{values}.1"


def as_column(graph: Graph, value: str) -> str:
    """(rows,) as (rows, 1)."""
    return graph.add("Unsqueeze", value, graph.whole([1]))


def side_by_side(graph: Graph, values: Sequence[str]) -> str:
    """Columns of shape (rows, m) next to each other."""
    return graph.add("Concat", *values, axis=1) if len(values) > 1 else values[0]
