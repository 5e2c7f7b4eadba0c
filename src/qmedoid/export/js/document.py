"""A model as JSON that `engine.js` scores records with, and as one JavaScript file of both."""

from importlib.resources import files
from typing import Any

import numpy as np

from qmedoid._version import __version__
from qmedoid.export.js.packing import packed
from qmedoid.export.parts import check_exported, part_writer
from qmedoid.markup.page import script_json
from qmedoid.model.contract import Column, Dates, Encoding, Levels
from qmedoid.model.decision import Decision
from qmedoid.model.model import Model

FORMAT = 3
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
    return {
        "format": FORMAT,
        "version": __version__,
        "sha256": sha256,
        "target": model.contract.target,
        "classes": list(model.decision.classes),
        "columns": [_column(column, encoding, place in used) for place, (column, encoding) in enumerate(columns)],
        "parts": [{"type": part.name, **part_writer("js", part)(part)} for part in model.parts],
        "weights": packed(model.weights),
        "biases": packed(model.biases),
        "calibration": {
            "slope": model.calibration.slope,
            **{name: packed(getattr(model.calibration, name)) for name in ("biases", "knots", "heights")},
        },
        "decision": _decision(model.decision),
        "medoids": {
            "rows": medoids.numbers.tolist(),
            "classes": medoids.classes.tolist(),
            "records": None if not model.records else [dict(one) for one in model.records],
        },
    }


def _column(column: Column, encoding: Encoding, is_read: bool) -> dict[str, Any]:
    about = {"name": column.name, "kind": column.kind, "missing": column.missing, "open": column.is_open}
    return {
        **about,
        "levels": list(column.levels),
        "spelling": column.spelling,
        "missingValues": list(column.missing_values),
        "read": is_read,
        "outputs": len(encoding.outputs),
        "encoding": _encoding(encoding),
    }


def _encoding(encoding: Encoding) -> dict[str, Any]:
    if isinstance(encoding, Levels):
        return {"type": "levels", "levels": list(encoding.levels), "values": packed(encoding.values)}
    if isinstance(encoding, Dates):
        fills = packed(encoding.fills)
        return {"type": "dates", "parts": list(encoding.parts), "fills": fills, "indicator": encoding.indicator}
    fill = None if np.isnan(encoding.fill) else encoding.fill
    return {"type": "numbers", "fill": fill, "indicator": encoding.indicator}


def _decision(decision: Decision) -> dict[str, Any]:
    return {
        "cut": decision.cut,
        "probabilistic": decision.probabilistic,
        "shift": None if decision.shift is None else packed(decision.shift.log_ratios),
        "biases": None if decision.biases is None else packed(decision.biases),
    }
