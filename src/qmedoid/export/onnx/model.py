"""A model as an ONNX file: the columns of a table as inputs, the numbers that it reads of them, and its decision."""

import json
from typing import Any, NamedTuple

import numpy as np

from qmedoid._version import __version__
from qmedoid.arrays import Codes
from qmedoid.exceptions import ModelError
from qmedoid.export.onnx.graph import Graph, as_column, piecewise, rises, side_by_side
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

    x: str  # encoded columns that are read, (rows, m)
    place: dict[int, int]  # position of each encoded column in x
    is_refused: str | None  # whether a record has a cell that the model refuses, (rows,)
    issues: str  # number of cells that are not as in the training table, (rows,)
    inputs: list[dict[str, str]]  # name and meaning of every input

    def columns(self, graph: Graph, encoded: Codes) -> str:
        """Some encoded columns of every record, (rows, m)."""
        return graph.columns(self.x, [self.place[column] for column in encoded.tolist()])


def read_cells(graph: Graph, model: Model) -> CellNodes:
    """The columns that a model reads, each an input."""
    first = np.cumsum([0, *(len(encoding.outputs) for encoding in model.encodings)]).tolist()
    values, problems, refused, place, inputs = list[str](), list[str](), list[str](), dict[int, int](), []
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
                refused.append(graph.add("IsNaN", graph.columns(outputs, [output])))
        width += len(encoding.outputs)
    x = side_by_side(graph, values)
    counts = [graph.cast(one, np.int64) for one in problems]
    issues = graph.sum(counts) if counts else graph.cast(graph.total(graph.columns(x, []), 1), np.int64)
    is_refused = None
    if refused:
        count = graph.sum([graph.cast(one, np.int64) for one in refused])
        is_refused = graph.add("Greater", count, graph.whole(0))
        is_refused = graph.add("Squeeze", is_refused, graph.whole([1]))
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


def _number(graph: Graph, column: Column, encoding: Numbers) -> tuple[str, list[str]]:
    """A number or a truth value, (rows, 1 or 2), and what is wrong."""
    given = graph.input(column.name, np.float64)
    for value in column.missing_numbers:
        given = graph.add("Where", graph.add("Equal", given, graph.constant(value)), graph.constant(np.nan), given)
    if column.kind == "boolean":
        is_there = graph.add("Or", *(graph.add("Equal", given, graph.constant(value)) for value in (0.0, 1.0)))
        is_wrong = graph.add("Not", graph.add("Or", is_there, graph.add("IsNaN", given)))
    else:
        size = graph.add("Abs", given)
        is_there = graph.add("LessOrEqual", size, graph.constant(LARGEST))
        is_wrong = graph.add("Greater", size, graph.constant(LARGEST))
    wrong = [is_wrong] if column.missing else [is_wrong, graph.add("IsNaN", given)]
    outputs = [as_column(graph, graph.add("Where", is_there, given, graph.constant(encoding.fill)))]
    if encoding.indicator:
        outputs.append(as_column(graph, graph.cast(graph.add("Not", is_there), np.float64)))
    return side_by_side(graph, outputs), wrong


def _levels(graph: Graph, column: Column, encoding: Levels) -> tuple[str, list[str]]:
    """The numbers of a level, (rows, outputs), and what is wrong."""
    count = len(encoding.levels)
    keys, codes = list(encoding.levels), list(range(count))
    for missing in ("", *column.missing_values):
        if missing not in keys:
            keys.append(missing)
            codes.append(count)
    code = graph.add(
        "LabelEncoder",
        graph.input(column.name, object),
        domain="ai.onnx.ml",
        keys_strings=keys,
        values_int64s=codes,
        default_int64=count + 1,
    )
    wrong = [] if column.missing else [graph.add("Equal", code, graph.whole(count))]
    if not column.is_open:
        wrong.append(graph.add("Equal", code, graph.whole(count + 1)))
    return graph.add("Gather", graph.constant(encoding.values), code, axis=0), wrong


def _dates(graph: Graph, column: Column, encoding: Dates) -> tuple[str, list[str]]:
    """The parts of a date, (rows, outputs), and what is wrong."""
    given = graph.input(column.name, np.int64)
    for value in column.missing_numbers:
        is_missing = graph.add("Equal", given, graph.whole(int(value)))
        given = graph.add("Where", is_missing, graph.whole(MISSING_MOMENT), given)
    absent = graph.add("Equal", given, graph.whole(MISSING_MOMENT))
    moment = graph.add("Where", absent, graph.whole(0), given)
    of_day = graph.add("Mod", moment, graph.whole(_DAY))
    day = graph.add("Div", graph.add("Sub", moment, of_day), graph.whole(_DAY))
    made = {
        "days": lambda: graph.add("Div", graph.cast(moment, np.float64), graph.constant(_DAY)),
        "hour": lambda: graph.add("Div", graph.cast(of_day, np.float64), graph.constant(_HOUR)),
        "weekday": lambda: graph.cast(
            graph.add("Mod", graph.add("Add", day, graph.whole(3)), graph.whole(7)), np.float64
        ),
        "month": lambda: graph.cast(_month(graph, day), np.float64),
    }
    outputs = [
        as_column(graph, graph.add("Where", absent, graph.constant(fill), made[part]()))
        for part, fill in zip(encoding.parts, encoding.fills.tolist(), strict=True)
    ]
    if encoding.indicator:
        outputs.append(as_column(graph, graph.cast(absent, np.float64)))
    return side_by_side(graph, outputs), [] if column.missing else [absent]


def _month(graph: Graph, day: str) -> str:
    """The month of a day since 1970: years begin in March, so that the day of a leap year comes last."""

    def divided(value: str, by: int) -> str:
        return graph.add("Div", value, graph.whole(by))

    of_era = graph.add("Mod", graph.add("Add", day, graph.whole(_DAYS_TO_1970)), graph.whole(_ERA))
    # Leap days that came before: one of 4 years, none of 100, one of 400.
    counted = graph.add("Add", graph.add("Sub", of_era, divided(of_era, 1460)), divided(of_era, 36_524))
    year = divided(graph.add("Sub", counted, divided(of_era, 146_096)), 365)
    leap_days = graph.add("Sub", divided(year, 4), divided(year, 100))
    before = graph.add("Add", graph.add("Mul", year, graph.whole(365)), leap_days)
    of_year = graph.add("Sub", of_era, before)
    month = divided(graph.add("Add", graph.add("Mul", of_year, graph.whole(5)), graph.whole(2)), 153)
    moved = graph.add("Where", graph.add("Less", month, graph.whole(10)), graph.whole(3), graph.whole(-9))
    return graph.add("Add", month, moved)


OUTPUTS = ("label", "probabilities", "margin", "scores", "nearest", "issues")
"""Names of the outputs; one that is the name of a column has ``qmedoid_`` before it."""


def decide(graph: Graph, model: Model, cells: CellNodes, fused: str, nearest: str) -> list[str]:
    """Add the outputs; their names."""
    decision, n_classes = model.decision, model.n_classes
    scores = _calibrated(graph, model, fused)
    if decision.shift is not None:
        scores = graph.add("Add", scores, graph.constant(decision.shift.log_ratios))
    biased = scores if decision.biases is None else graph.add("Add", scores, graph.constant(decision.biases))
    margin, code = _of_two(graph, model, scores) if n_classes == 2 else _of_more(graph, model, biased)
    assert model.medoids is not None, "only a circuit has none"
    rows = graph.add("Gather", graph.whole(model.medoids.numbers), nearest, axis=0)
    found: dict[str, tuple[str, type, tuple[int, ...], Any]] = {
        "label": _label(graph, model, code),
        "margin": (margin, np.float64, (), np.nan),
        "scores": (scores, np.float64, (n_classes,), np.nan),
        "nearest": (rows, np.int64, (n_classes,), -1),
        "issues": (cells.issues, np.int64, (), None),
    }
    if decision.probabilistic:
        found["probabilities"] = graph.add("Softmax", scores, axis=1), np.float64, (n_classes,), np.nan
    names = list[str]()
    taken = {one["name"] for one in cells.inputs}
    for output in OUTPUTS:
        if output not in found:
            continue
        value, kind, shape, of_refused = found[output]
        if cells.is_refused is not None and of_refused is not None:
            is_refused = as_column(graph, cells.is_refused) if shape else cells.is_refused
            value = graph.add("Where", is_refused, graph.constant(of_refused, kind), value)
        name = output
        while name in taken:
            name = f"qmedoid_{name}"
        graph.output(name, value, kind, shape)
        names.append(name)
    return names


def _calibrated(graph: Graph, model: Model, fused: str) -> str:
    """Calibrated class scores, (rows, C)."""
    calibration, n_classes = model.calibration, model.n_classes
    stretched = graph.add("Mul", fused, graph.constant(calibration.slope))
    straight = graph.add("Sub", graph.constant(calibration.biases), stretched)
    knots, heights = calibration.knots, calibration.heights
    if not len(knots):
        return straight
    slopes = rises(knots, heights)
    if n_classes != 2:
        return graph.add(
            "Add", straight, piecewise(graph, straight, *([one] * n_classes for one in (knots, heights, slopes)))
        )
    log_odds = graph.add("Sub", graph.columns(straight, [1]), graph.columns(straight, [0]))
    half = piecewise(graph, log_odds, [knots], [heights], [slopes])
    return graph.add("Add", straight, graph.add("Mul", half, graph.constant([[-0.5, 0.5]])))


def _of_two(graph: Graph, model: Model, scores: str) -> tuple[str, str]:
    """Margin and class code, (rows,) each."""
    decision = model.decision
    first, second = (graph.add("Gather", scores, graph.whole(c), axis=1) for c in (0, 1))
    margin = graph.add("Sub", second, first)
    if decision.cut is not None:
        margin = graph.add("Sub", margin, graph.constant(decision.cut))
    even = TIE if decision.cut is None and decision.probabilistic else 0.0
    return margin, graph.cast(graph.add("Greater", margin, graph.constant(even)), np.int64)


def _of_more(graph: Graph, model: Model, biased: str) -> tuple[str, str]:
    """Margin and class code, (rows,) each: the first class that is the best up to rounding."""
    highest = graph.add("TopK", biased, graph.whole([2]), outputs=2, axis=1, largest=1, sorted=1)
    best, next_best = (graph.columns(highest, [place]) for place in (0, 1))
    margin = graph.add("Squeeze", graph.add("Sub", best, next_best), graph.whole([1]))
    slack = graph.constant(TIE)
    if not model.decision.probabilistic:
        slack = graph.add("Mul", slack, graph.add("Abs", best))
    is_best = graph.cast(graph.add("GreaterOrEqual", biased, graph.add("Sub", best, slack)), np.float64)
    return margin, graph.add("ArgMax", is_best, axis=1, keepdims=0)


def _label(graph: Graph, model: Model, code: str) -> tuple[str, type, tuple[int, ...], Any]:
    """Classes as texts, whole numbers or doubles; of a record that is refused an empty text, the least, or NaN."""
    classes = model.decision.classes
    kind: type = object if isinstance(classes[0], str) else np.int64
    refused: Any = "" if kind is object else MISSING_MOMENT
    if any(isinstance(label, float) for label in classes):
        kind, refused = np.float64, np.nan
    return graph.add("Gather", graph.constant(list(classes), kind), code, axis=0), kind, (), refused


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
    graph, nearest = Graph(), ""
    cells = read_cells(graph, model)
    fused = graph.constant(-model.biases)
    for part, weight in zip(model.parts, model.weights.tolist(), strict=True):
        scores, places = part_writer("onnx", part)(graph, cells, part)
        nearest = places if part is model.medoid_part else nearest
        fused = graph.add("Add", fused, graph.add("Mul", scores, graph.constant(weight)))
    outputs = decide(graph, model, cells, fused, nearest)
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
