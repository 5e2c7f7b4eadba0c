"""A graph of ONNX operators as it is built: nodes with names of their own, and constants that are kept once."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Union

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
Operand = Union["Node", float, npt.NDArray[Any], Sequence[Any]]
"""What an operator takes: a result, or numbers and texts that become a constant."""


def _with(operator: str, **attributes: Any) -> Callable[["Node", Operand], "Node"]:
    """A method that applies an operator to a node and another operand."""
    return lambda node, other: node.apply(operator, other, **attributes)


class Node:
    """A result in a graph, named as there; what is computed with it is a further node of the graph."""

    def __init__(self, graph: "Graph", name: str) -> None:
        self.graph, self.name = graph, name

    def apply(self, operator: str, *others: Operand, **attributes: Any) -> "Node":
        """The result of an operator that takes this one first."""
        return self.graph.add(operator, self, *others, **attributes)

    __add__ = _with("Add")
    __sub__ = _with("Sub")
    __mul__ = _with("Mul")
    __matmul__ = _with("MatMul")
    __truediv__ = _with("Div")
    __floordiv__ = _with("Div")  # of whole numbers that are not negative
    __mod__ = _with("Mod")
    __lt__ = _with("Less")
    __le__ = _with("LessOrEqual")
    __gt__ = _with("Greater")
    __ge__ = _with("GreaterOrEqual")
    equals = _with("Equal")
    columns = _with("Gather", axis=1)

    def cast(self, kind: type) -> "Node":
        """The same as another type."""
        return self.apply("Cast", to=self.graph.kind(kind))

    def total(self, axis: int) -> "Node":
        """The sum along an axis, which is dropped."""
        return self.apply("ReduceSum", [axis], keepdims=0)

    def as_column(self) -> "Node":
        """(rows,) as (rows, 1)."""
        return self.apply("Unsqueeze", [1])

    def clipped(self, low: Operand, high: Operand) -> "Node":
        """The same within limits."""
        return self.apply("Min", high).apply("Max", low)


class Graph:
    """Nodes and constants; every method that adds one returns its result."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise MissingExtraError("To export as onnx, install qmedoid[onnx]: pip install 'qmedoid[onnx]'.") from error
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], Node] = {}
        self._tensors: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, kind: type) -> Node:
        """An input of shape (rows,), of doubles, whole numbers or texts; the user's name is kept."""
        self._inputs.append(self._info(name, kind, [ROWS]))
        return self.add("Identity", Node(self, name))

    def output(self, name: str, value: Node, kind: type, shape: Sequence[int] = ()) -> None:
        """Give a result a name of an output, of shape (rows, ...)."""
        self._outputs.append(self._info(name, kind, [ROWS, *shape]))
        self._nodes.append(self._onnx.helper.make_node("Identity", [value.name], [name]))

    def constant(self, values: Any, kind: type | None = None) -> Node:
        """An array; of whole numbers, doubles or texts, as its values are."""
        array: npt.NDArray[Any] = np.asarray(values, dtype=kind)
        array = array.astype(
            {"i": np.int64, "u": np.int64, "b": np.bool_, "f": np.float64}.get(array.dtype.kind, object)
        )
        key = (
            array.dtype.str,
            array.shape,
            repr(array.tolist()).encode() if array.dtype == object else array.tobytes(),
        )
        if key not in self._constants:
            name = f"k{len(self._constants)}"
            self._constants[key] = Node(self, name)
            if array.dtype == object:
                texts = [text.encode() for text in array.ravel().tolist()]
                tensor = self._onnx.helper.make_tensor(name, self._onnx.TensorProto.STRING, array.shape, texts)
            else:
                tensor = self._onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
            self._tensors.append(tensor)
        return self._constants[key]

    def add(self, operator: str, *inputs: Operand, domain: str = "", outputs: int = 1, **attributes: Any) -> Node:
        """A node; where it has several results, the first of them, with ``.1`` and so on for the others."""
        given = [one.name if isinstance(one, Node) else self.constant(one).name for one in inputs]
        first = f"q{len(self._nodes)}"
        names = [first, *(f"{first}.{number}" for number in range(1, outputs))]
        self._nodes.append(self._onnx.helper.make_node(operator, given, names, domain=domain, **attributes))
        return Node(self, first)

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
        return self._onnx.helper.make_tensor_value_info(name, self.kind(kind), list(shape))

    def kind(self, kind: type) -> Any:
        """The type of ONNX for one of NumPy; objects are texts."""
        if kind is object:
            return self._onnx.TensorProto.STRING
        return self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))


def rises(knots: npt.NDArray[np.float64], heights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Slope from each knot to the next; 0 from the last one, and where no number lies between two."""
    with np.errstate(all="ignore"):
        found = np.append(np.diff(heights) / np.diff(knots), 0.0)
    return np.where(np.isfinite(found), found, 0.0)


def search(x: Node, knots: Sequence[Array]) -> Node:
    """How many knots of each column are at or below the value of every row there, (rows, M) by bisection."""
    steps = max(1, int(np.ceil(np.log2(max(len(own) for own in knots) + 1))))
    width = 2**steps
    flat = np.full((len(knots), width), np.inf)
    for place, own in enumerate(knots):
        flat[place, : len(own)] = own
    start = np.arange(len(knots)) * width
    found = x.graph.constant(np.zeros(len(knots), dtype=np.int64))
    for step in range(steps - 1, -1, -1):
        probe = x.graph.add("Gather", flat.ravel(), found + (start + 2**step - 1), axis=0)
        found = found + (probe <= x).cast(np.int64) * 2**step
    return found


def piecewise(x: Node, knots: Sequence[Array], heights: Sequence[Array], slopes: Sequence[Array]) -> Node:
    """Of each column a function that is linear between its knots and constant outside of them, (rows, M)."""
    ends = [np.array([own[place] for own in knots]) for place in (0, -1)]
    held = x.clipped(*ends)
    offsets = np.cumsum([0, *(len(own) for own in knots[:-1])])
    place = search(held, knots) + (offsets - 1)
    slope, knot, height = (
        x.graph.add("Gather", np.concatenate(list(parts)), place, axis=0) for parts in (slopes, knots, heights)
    )
    return slope * (held - knot) + height


def by_rank(x: Node, scaling: RankScaling, columns: Codes) -> Node:
    """Columns of x, which are those of the scaling, scaled by rank."""
    parts = [slice(scaling.offsets[column], scaling.offsets[column + 1]) for column in columns]
    knots, heights = [scaling.values[part] for part in parts], [scaling.scores[part] for part in parts]
    return piecewise(x, knots, heights, [rises(*pair) for pair in zip(knots, heights, strict=True)])


def scaled(x: Node, scaling: Scaling) -> Node:
    """Values minus the center, divided by the scale."""
    return (x - scaling.center) / scaling.scale


def squared_distances(x: Node, rows: Array) -> Node:
    """Squared distance of every record to every row, column by column, so that equal ones are at 0 exactly."""
    if not rows.shape[1]:
        return x.apply("ReduceSum", [1], keepdims=1) * np.zeros(len(rows))
    differences: list[Node] = [x.columns([column]) - values for column, values in enumerate(rows.T)]
    return reduce(Node.__add__, [one * one for one in differences])


def k_nearest(squared: Node, k: int) -> tuple[Node, Node]:
    """The k smallest of squared distances, and their places; of equal ones the first."""
    values = squared.apply("TopK", [k], outputs=2, axis=1, largest=0, sorted=1)
    return values, Node(values.graph, f"{values.name}.1")


def side_by_side(values: Sequence[Node]) -> Node:
    """Columns of shape (rows, m) next to each other."""
    return values[0].apply("Concat", *values[1:], axis=1) if len(values) > 1 else values[0]
