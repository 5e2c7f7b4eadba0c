"""A model as an ONNX file: the columns of a table as inputs, the numbers that it reads of them, and its decision."""

import json
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from qmedoid._version import __version__
from qmedoid.arrays import Codes
from qmedoid.exceptions import ModelError
from qmedoid.export.onnx.graph import Graph, Node, piecewise, rises, side_by_side
from qmedoid.export.writing import check_exported, part_writer
from qmedoid.kernels.ties import TIE
from qmedoid.methods.part import LARGEST
from qmedoid.model.contract import Column, Dates, Levels, Numbers
from qmedoid.model.model import Model

MISSING_MOMENT = np.iinfo(np.int64).min
"""A date that is missing."""
_DAY, _HOUR = 86_400_000_000, 3_600_000_000
# Of the calendar that repeats after 400 years, from the first of March of the year 0 to 1970.
_ERA, _DAYS_TO_1970 = 146_097, 719_468


class CellNodes(NamedTuple):
    """What is made of the inputs."""

    x: Node  # encoded columns that are read, (rows, m)
    place: dict[int, int]  # position of each encoded column in x
    is_refused: Node | None  # whether a record has a cell that the model refuses, (rows,)
    issues: Node  # number of cells that are not as in the training table, (rows,)
    inputs: list[dict[str, str]]  # name and meaning of every input

    def columns(self, encoded: Codes) -> Node:
        """Some encoded columns of every record, (rows, m)."""
        return self.x.columns(np.array([self.place[column] for column in encoded.tolist()], dtype=np.int64))


def read_cells(graph: Graph, model: Model) -> CellNodes:
    """The columns that a model reads, each an input."""
    first = np.cumsum([0, *(len(encoding.outputs) for encoding in model.encodings)]).tolist()
    values, problems, refused, place, inputs = list[Node](), list[Node](), list[Node](), dict[int, int](), []
    width = 0
    wanted = set(model.columns.tolist())
    for number in model.layout.used:
        column, encoding = model.contract.columns[number], model.encodings[number]
        if not column.name:
            raise ModelError("A column has an empty name, which no input in ONNX can have: name it and fit again.")
        if isinstance(encoding, Levels):
            outputs, wrong = _levels(graph, column, encoding)
        elif isinstance(encoding, Dates):
            outputs, wrong = _dates(graph, column, encoding)
        else:
            outputs, wrong = _number(graph, column, encoding)
        inputs.append({"name": column.name, "kind": column.kind, "as": _MEANING[column.kind]})
        problems += wrong
        values.append(outputs)
        for output in range(len(encoding.outputs)):
            place[first[number] + output] = width + output
            if first[number] + output in wanted and _refuses(encoding, output):
                refused.append(outputs.columns([output]).apply("IsNaN"))
        width += len(encoding.outputs)
    x = side_by_side(values)
    nothing = x.columns(np.array([], dtype=np.int64)).total(1).cast(np.int64)
    issues = reduce(Node.__add__, [one.cast(np.int64) for one in problems], nothing)
    is_refused = (
        (reduce(Node.__add__, [one.cast(np.int64) for one in refused]) > 0).apply("Squeeze", [1]) if refused else None
    )
    return CellNodes(x, place, is_refused, issues, inputs)


_MEANING = {
    "number": "double, NaN where it is missing",
    "boolean": "double, 0 or 1, NaN where it is missing",
    "category": "text, empty where it is missing",
    "date": f"whole number of microseconds since 1970 in universal time, {MISSING_MOMENT} where it is missing",
}


def _refuses(encoding: Numbers | Dates | Levels, output: int) -> bool:
    """Whether an encoded column is NaN for some cells."""
    if isinstance(encoding, Levels):
        return bool(np.isnan(encoding.values[:, output]).any())
    if isinstance(encoding, Dates):
        return output < len(encoding.parts) and bool(np.isnan(encoding.fills[output]))
    return output == 0 and bool(np.isnan(encoding.fill))


def _number(graph: Graph, column: Column, encoding: Numbers) -> tuple[Node, list[Node]]:
    """A number or a truth value, (rows, 1 or 2), and what is wrong."""
    given = graph.input(column.name, np.float64)
    for value in column.missing_numbers:
        given = given.equals(float(value)).apply("Where", np.nan, given)
    is_blank = given.apply("IsNaN")
    if column.kind == "boolean":
        is_there = given.equals(0.0).apply("Or", given.equals(1.0))
        is_wrong = is_there.apply("Or", is_blank).apply("Not")
    else:
        size = given.apply("Abs")
        is_there, is_wrong = size <= LARGEST, size > LARGEST
    outputs = [is_there.apply("Where", given, float(encoding.fill)).as_column()]
    if encoding.indicator:
        outputs.append(is_there.apply("Not").cast(np.float64).as_column())
    return side_by_side(outputs), [is_wrong] if column.missing else [is_wrong, is_blank]


def _levels(graph: Graph, column: Column, encoding: Levels) -> tuple[Node, list[Node]]:
    """The numbers of a level, (rows, outputs), and what is wrong."""
    count = len(encoding.levels)
    codes = dict.fromkeys(("", *column.missing_values), count) | {
        level: code for code, level in enumerate(encoding.levels)
    }
    code = graph.input(column.name, object).apply(
        "LabelEncoder",
        domain="ai.onnx.ml",
        keys_strings=list(codes),
        values_int64s=list(codes.values()),
        default_int64=count + 1,
    )
    wrong = [] if column.missing else [code.equals(count)]
    if not column.is_open:
        wrong.append(code.equals(count + 1))
    return graph.add("Gather", encoding.values, code, axis=0), wrong


def _dates(graph: Graph, column: Column, encoding: Dates) -> tuple[Node, list[Node]]:
    """The parts of a date, (rows, outputs), and what is wrong."""
    given = graph.input(column.name, np.int64)
    for value in column.missing_numbers:
        given = given.equals(int(value)).apply("Where", MISSING_MOMENT, given)
    absent = given.equals(MISSING_MOMENT)
    moment = absent.apply("Where", 0, given)
    of_day = moment % _DAY
    day = (moment - of_day) // _DAY
    made = {
        "days": lambda: moment.cast(np.float64) / float(_DAY),
        "hour": lambda: of_day.cast(np.float64) / float(_HOUR),
        "weekday": lambda: ((day + 3) % 7).cast(np.float64),
        "month": lambda: _month(day).cast(np.float64),
    }
    outputs = [
        absent.apply("Where", fill, made[part]()).as_column()
        for part, fill in zip(encoding.parts, encoding.fills.tolist(), strict=True)
    ]
    if encoding.indicator:
        outputs.append(absent.cast(np.float64).as_column())
    return side_by_side(outputs), [] if column.missing else [absent]


def _month(day: Node) -> Node:
    """The month of a day since 1970: years begin in March, so that the day of a leap year comes last."""
    of_era = (day + _DAYS_TO_1970) % _ERA
    # Leap days that came before: one of 4 years, none of 100, one of 400.
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (year * 365 + (year // 4 - year // 100))
    month = (of_year * 5 + 2) // 153
    return month + (month < 10).apply("Where", 3, -9)


OUTPUTS = ("label", "probabilities", "margin", "scores", "nearest", "issues")
"""Names of the outputs; one that is the name of a column has ``qmedoid_`` before it."""


def decide(model: Model, cells: CellNodes, fused: Node, nearest: Node) -> list[str]:
    """Add the outputs; their names."""
    decision, n_classes, graph = model.decision, model.n_classes, fused.graph
    scores = _calibrated(model, fused)
    if decision.shift is not None:
        scores = scores + decision.shift.log_ratios
    biased = scores if decision.biases is None else scores + decision.biases
    margin, code = _of_two(model, scores) if n_classes == 2 else _of_more(model, biased)
    assert model.medoids is not None, "only a circuit has none"
    rows = graph.add("Gather", model.medoids.numbers, nearest, axis=0)
    found: dict[str, tuple[Node, type, tuple[int, ...], Any]] = {
        "label": _label(model, code),
        "margin": (margin, np.float64, (), np.nan),
        "scores": (scores, np.float64, (n_classes,), np.nan),
        "nearest": (rows, np.int64, (n_classes,), -1),
        "issues": (cells.issues, np.int64, (), None),
    }
    if decision.probabilistic:
        found["probabilities"] = scores.apply("Softmax", axis=1), np.float64, (n_classes,), np.nan
    names = list[str]()
    taken = {one["name"] for one in cells.inputs}
    for output in OUTPUTS:
        if output not in found:
            continue
        value, kind, shape, of_refused = found[output]
        if cells.is_refused is not None and of_refused is not None:
            is_refused = cells.is_refused.as_column() if shape else cells.is_refused
            value = is_refused.apply("Where", graph.constant(of_refused, kind), value)
        name = output
        while name in taken:
            name = f"qmedoid_{name}"
        graph.output(name, value, kind, shape)
        names.append(name)
    return names


def _calibrated(model: Model, fused: Node) -> Node:
    """Calibrated class scores, (rows, C)."""
    calibration, n_classes = model.calibration, model.n_classes
    straight = fused.graph.constant(calibration.biases) - fused * float(calibration.slope)
    knots, heights = calibration.knots, calibration.heights
    if not len(knots):
        return straight
    slopes = rises(knots, heights)
    if n_classes != 2:
        return straight + piecewise(straight, *([one] * n_classes for one in (knots, heights, slopes)))
    log_odds = straight.columns([1]) - straight.columns([0])
    return straight + piecewise(log_odds, [knots], [heights], [slopes]) * [[-0.5, 0.5]]


def _of_two(model: Model, scores: Node) -> tuple[Node, Node]:
    """Margin and class code, (rows,) each."""
    decision = model.decision
    margin = scores.columns(1) - scores.columns(0)
    if decision.cut is not None:
        margin = margin - float(decision.cut)
    even = TIE if decision.cut is None and decision.probabilistic else 0.0
    return margin, (margin > even).cast(np.int64)


def _of_more(model: Model, biased: Node) -> tuple[Node, Node]:
    """Margin and class code, (rows,) each: the first class that is the best up to rounding."""
    highest = biased.apply("TopK", [2], outputs=2, axis=1, largest=1, sorted=1)
    best, next_best = highest.columns([0]), highest.columns([1])
    slack = TIE if model.decision.probabilistic else best.apply("Abs") * TIE
    is_best = (biased >= best - slack).cast(np.float64)
    return (best - next_best).apply("Squeeze", [1]), is_best.apply("ArgMax", axis=1, keepdims=0)


def _label(model: Model, code: Node) -> tuple[Node, type, tuple[int, ...], Any]:
    """Classes as texts, whole numbers or doubles; of a record that is refused an empty text, the least, or NaN."""
    classes = model.decision.classes
    kind: type = object if isinstance(classes[0], str) else np.int64
    refused: Any = "" if kind is object else MISSING_MOMENT
    if any(isinstance(label, float) for label in classes):
        kind, refused = np.float64, np.nan
    labels = code.graph.constant(list(classes), kind)
    return labels.apply("Gather", code, axis=0), kind, (), refused


_ABOUT = (
    "A model of qmedoid {version}, SHA-256 {sha256}. Every input is a column of shape (rows,): doubles with NaN where "
    "a cell is missing, truth values as 0 and 1; texts, exactly as in training, empty where they are missing; dates as "
    "whole numbers of microseconds since 1970 in universal time, the smallest whole number where they are missing. "
    "Outputs: label; probabilities of the classes; margin; scores of the classes; nearest, for every class the row of "
    "the training table of the nearest medoid, counted from 0; issues, the number of cells that are not as in the "
    "training table. A record that the model refuses has NaN, an empty or the smallest label, and -1."
)


def onnx_file(model: Model, sha256: str | None = None) -> bytes:
    """A model as the bytes of an ONNX file.

    Raises
    ------
    MissingExtraError
        The package onnx is not installed.
    ModelError
        ONNX cannot express it.
    """
    check_exported(model)
    graph = Graph()
    cells = read_cells(graph, model)
    fused, nearest = graph.constant(-model.biases), cells.x
    for part, weight in zip(model.parts, model.weights.tolist(), strict=True):
        scores, places = part_writer("onnx", part)(cells, part)
        nearest = places if part is model.medoid_part else nearest
        fused = fused + scores * weight
    outputs = decide(model, cells, fused, nearest)
    about = _ABOUT.format(version=__version__, sha256=sha256 or "not known")
    properties = {
        "qmedoid": __version__,
        "sha256": sha256 or "",
        "classes": json.dumps(list(model.decision.classes)),
        "inputs": json.dumps(cells.inputs),
        "outputs": json.dumps(outputs),
    }
    made: bytes = graph.model(about, properties).SerializeToString()
    return made
