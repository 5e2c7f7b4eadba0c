"""Columns of a table as inputs, and the numbers that a model reads of them."""

import json
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Codes
from qmedoid.exceptions import ModelError
from qmedoid.export.onnx.graph import Graph, as_column, side_by_side
from qmedoid.methods.part import LARGEST
from qmedoid.model.contract import Column, Dates, Levels, Numbers
from qmedoid.model.model import Model

MISSING_MOMENT = np.iinfo(np.int64).min
"""A date that is missing."""
_DAY, _HOUR = 86_400_000_000, 3_600_000_000
# Of the calendar that repeats after 400 years, from the first of March of the year 0 to 1970.
_ERA, _DAYS_TO_1970 = 146_097, 719_468


class CellNodes(NamedTuple):
    """What is made of the inputs.

    Attributes
    ----------
    x : str
        Encoded columns that are read, (rows, m).
    place : dict of int to int
        Where each encoded column stands in x.
    is_refused : str or None
        Whether a record has a cell that the model refuses, (rows,); None where it refuses none.
    issues : str
        Number of cells of a record that are not as in the training table, (rows,).
    inputs : list of dict
        Name and meaning of every input.
    """

    x: str
    place: dict[int, int]
    is_refused: str | None
    issues: str
    inputs: list[dict[str, str]]

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


def described(inputs: list[dict[str, str]]) -> str:
    """The inputs as a text for the properties of a model."""
    return json.dumps(inputs)
