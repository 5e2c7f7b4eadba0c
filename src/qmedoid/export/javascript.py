"""A model as JSON that `engine.js` scores records with, and as one JavaScript file of both."""

import base64
import re
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid._version import __version__
from qmedoid.export.writing import check_exported, part_writer
from qmedoid.markup.page import script_json
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.model.contract import COMPOUND, Column, Encoding
from qmedoid.model.decision import Decision
from qmedoid.model.model import Model
from qmedoid.tables.numbers import needs_unit, rules_of_texts

FORMAT = 4
"""Of the JSON; `engine.js` reads this one."""


def engine() -> str:
    """The JavaScript that reads the JSON of a model and scores records."""
    return files("qmedoid.export").joinpath("engine.js").read_text(encoding="utf-8")


def javascript_file(model: Model, sha256: str | None = None) -> bytes:
    """A model as one file: `require` it in Node, or load it by a script tag as the global name ``model``."""
    lines = [
        f"// A model of qmedoid {__version__}, SHA-256 {sha256 or 'not known'}.",
        '// const { score } = require("./model.js"); score({ "column": 1.5, ... }).probabilities',
        engine().rstrip(),
        # Parsed, for within a literal the name __proto__ would be no cell of a record.
        f"const model = qmedoid.load(JSON.parse({script_json(script_json(as_document(model, sha256)))}));",
        'if (typeof module !== "undefined") module.exports = model;',
    ]
    return ("\n".join(lines) + "\n").encode()


def as_document(model: Model, sha256: str | None = None) -> dict[str, Any]:
    """A model as plain values, fit for JSON.

    Raises
    ------
    ModelError
        JavaScript cannot express it.
    """
    check_exported(model)
    medoids = model.medoids
    assert medoids is not None, "only a circuit has none"
    used = set(model.layout.used)
    columns = zip(model.contract.columns, model.encodings, strict=True)
    has_rules = any(one.spelling or one.kind == "date" for one in model.contract.columns)
    return {
        "format": FORMAT,
        "version": __version__,
        "sha256": sha256,
        "target": model.contract.target,
        "classes": list(model.decision.classes),
        "rules": rules_of_texts() if has_rules else None,
        "columns": [_column(column, encoding, place in used) for place, (column, encoding) in enumerate(columns)],
        "parts": [{"type": part.name, **part_writer("js", part)(part)} for part in model.parts],
        "weights": packed(model.weights),
        "biases": packed(model.biases),
        "calibration": plain(model.calibration),
        "decision": _decision(model.decision),
        "medoids": {
            "rows": medoids.numbers.tolist(),
            "classes": medoids.classes.tolist(),
            "records": None if not model.records else [dict(one) for one in model.records],
        },
    }


def _column(column: Column, encoding: Encoding, is_read: bool) -> dict[str, Any]:
    encoded = {"type": type(encoding).__name__.lower(), **plain(encoding)}
    is_unit = column.kind == "number" and needs_unit(column.spelling)
    how = {"read": is_read, "isCompound": column.spelling in COMPOUND, "needsUnit": is_unit}
    return {**plain(column), **how, "outputs": len(encoding.outputs), "encoding": encoded}


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "cut": decision.cut,
        "probabilistic": decision.probabilistic,
        "shift": None if decision.shift is None else packed(decision.shift.log_ratios),
        "biases": None if decision.biases is None else packed(decision.biases),
    }


# Little-endian types from small to large; the last holds every number of a model.
_TYPES = ("u1", "i2", "i4", "f4", "f8")


def packed(array: npt.NDArray[Any]) -> dict[str, Any]:
    """An array as type, shape and base64 text; its values come back exactly, the sign of a zero aside."""
    given = np.ascontiguousarray(array, dtype=np.float64)
    kind = next(name for name in _TYPES if _holds(given, name))
    text = base64.b64encode(given.astype("<" + kind if kind != "u1" else kind).tobytes()).decode("ascii")
    return {"type": kind, "shape": list(given.shape), "data": text}


def _holds(values: npt.NDArray[np.float64], kind: str) -> bool:
    if kind == "f8":
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        if kind != "f4" and not np.isfinite(values).all():
            return False
        back = values.astype(kind).astype(np.float64)
    return bool(np.array_equal(back, values, equal_nan=True))


# Fields that the engine does not read: they say which training rows are meant, or what others are.
_UNREAD = {"circuit_features", "classes", "medoid_rows", "metric_names", "n_classes", "outputs"}
_UNREAD |= {"row_classes", "row_numbers", "rows"}


def plain(value: Any) -> Any:
    """A part or another object as the values of its fields, named as in JavaScript; arrays are packed."""
    names = getattr(value, "_fields", ()) or getattr(value, "__dataclass_fields__", ())
    if names:
        found = {name: plain(getattr(value, name)) for name in names if name not in _UNREAD}
        return {re.sub("_(.)", lambda letter: letter[1].upper(), name): one for name, one in found.items()}
    if isinstance(value, np.ndarray):
        return packed(value)
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and np.isnan(value) else value


evidence = nearest = neighbors = rare = plain


def comparisons(model: ComparisonsPart) -> dict[str, Any]:
    """Trees of comparisons."""
    thresholds = np.where(model.node_columns >= 0, model.trees.thresholds, 0.0)
    return {
        "columns": packed(model.node_columns),
        "thresholds": packed(thresholds),
        "values": packed(model.values),
        "outputs": packed(model.outputs),
        "intercepts": packed(model.intercepts),
    }
