"""A model as JSON that `engine.js` scores records with, and as one JavaScript file of both."""

import base64
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid._version import __version__
from qmedoid.export.writing import check_exported, part_writer
from qmedoid.geometry.scaling import RankScaling, Scaling
from qmedoid.markup.page import script_json
from qmedoid.methods.comparisons.part import ComparisonsPart
from qmedoid.methods.evidence.part import EvidencePart
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.neighbors.part import NeighborsPart
from qmedoid.methods.rare.part import RarePart
from qmedoid.model.contract import COMPOUND, Column, Dates, Encoding, Levels
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
    encoded: dict[str, Any]
    if isinstance(encoding, Levels):
        encoded = {"type": "levels", "levels": list(encoding.levels), "values": packed(encoding.values)}
    elif isinstance(encoding, Dates):
        encoded = {"type": "dates", "parts": list(encoding.parts), "fills": packed(encoding.fills)}
    else:
        encoded = {"type": "numbers", "fill": None if np.isnan(encoding.fill) else encoding.fill}
    if not isinstance(encoding, Levels):
        encoded["indicator"] = encoding.indicator
    return {
        "name": column.name,
        "kind": column.kind,
        "missing": column.missing,
        "open": column.is_open,
        "levels": list(column.levels),
        "spelling": column.spelling,
        "isCompound": column.spelling in COMPOUND,
        "needsUnit": column.kind == "number" and needs_unit(column.spelling),
        "missingValues": list(column.missing_values),
        "read": is_read,
        "outputs": len(encoding.outputs),
        "encoding": encoded,
    }


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


def rank_scaling(given: RankScaling) -> dict[str, Any]:
    """Knots and scores of every column."""
    return {name: packed(getattr(given, name)) for name in ("offsets", "values", "scores")}


def scaling(given: Scaling) -> dict[str, Any]:
    """Centers and scales of the columns."""
    return {"center": packed(given.center), "scale": packed(given.scale)}


def evidence(model: EvidencePart) -> dict[str, Any]:
    """Evidence and its neighbor term."""
    terms, near = model.terms, model.neighbors
    return {
        "rank": rank_scaling(model.rank_scaling),
        "linear": scaling(model.linear_scaling),
        "medoids": packed(model.medoids),
        "medoidClasses": model.medoid_classes.tolist(),
        "columnWeights": packed(model.column_weights),
        "groups": [
            {"columns": list(group.columns), "weights": packed(group.weights), "byRank": bool(group.by_rank)}
            for group in model.groups
        ],
        "terms": {
            name: packed(getattr(terms, name)) for name in ("group", "medoid", "channel", "length", "center", "weights")
        },
        "intercepts": packed(model.intercepts),
        "neighbors": None
        if near is None
        else {
            "records": packed(near.records),
            "amounts": packed(near.amounts),
            "nearest": near.n_nearest,
            "length": near.length,
            "byRank": near.by_rank,
        },
    }


def nearest(model: NearestPart) -> dict[str, Any]:
    """The nearest medoid."""
    return {
        "input": scaling(model.input_scaling),
        "subsets": [list(subset) for subset in model.configuration],
        "weights": [packed(weights) for weights in model.weights],
        "signed": model.signed,
        "feature": scaling(model.feature_scaling),
        "medoids": packed(model.medoids),
        "medoidClasses": model.medoid_classes.tolist(),
        "multipliers": packed(model.multipliers),
        "alpha": model.alpha,
        "angular": model.use_angular,
        "angle": model.angle,
    }


def neighbors(model: NeighborsPart) -> dict[str, Any]:
    """Neighbors."""
    cells = None
    if model.cells is not None:
        cells = {"centers": packed(model.cells.centers), "members": packed(model.cells.members)}
    return {
        "records": packed(model.records),
        "votes": packed(model.votes),
        "rank": rank_scaling(model.rank_scaling),
        "columnWeights": packed(model.column_weights),
        "length": model.length,
        "nearest": model.n_nearest,
        "cells": cells,
    }


def rare(model: RarePart) -> dict[str, Any]:
    """Prototypes of rare events."""
    geometry = model.geometry
    return {
        "outer": scaling(geometry.scaling.outer),
        "inner": scaling(geometry.scaling.inner),
        **{name: packed(getattr(geometry, name)) for name in ("rare", "common", "hard", "metrics")},
        "counts": list(geometry.counts),
        "length": geometry.length,
        "floor": geometry.floor,
        **{name: packed(getattr(model, name)) for name in ("center", "scale", "weights")},
        "intercept": model.intercept,
        "rareClass": model.rare_class,
    }


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
