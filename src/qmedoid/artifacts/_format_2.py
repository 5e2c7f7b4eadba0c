"""The reader of formats 2, 3 and 4.

Format 2 is format 1 with typed first stages, priors, and what the operating point is expected to do. Format 3 is
format 2 where evidence may have neighbours, and rare events have distances to the middle of each class. Format 4 is
format 3 where scores of more than two classes may be bent, too.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.artifacts import _format_1
from qmedoid.artifacts._files import MANIFEST
from qmedoid.artifacts._format_1 import read_circuit, read_described, read_geometric, read_slope
from qmedoid.artifacts._format_2_stages import read_stage
from qmedoid.artifacts._json import Fields, RefusedError, inside, restored, shown
from qmedoid.artifacts._tensors import Shelf
from qmedoid.models.calibration import Calibration
from qmedoid.models.geometric import GeometricModel
from qmedoid.models.operating import ASKED, RULES, Counts, OperatingSummary
from qmedoid.models.priors import PriorShift
from qmedoid.models.table import TableModel
from qmedoid.models.variational import VariationalModel

DESCRIPTION = (*_format_1.DESCRIPTION, "priors", "expected_priors", "operating")
"""Fields of the manifest that describe the model."""
_GEOMETRIC = ("type", "first", "slope", "deltas", "refine_below", "residual")
_OPERATING = ("rule", "asked", "log_odds", "counts", "prevalence")
_MOST_ROWS = 2**53


def read(manifest: Mapping[str, Any], contents: Mapping[str, bytes]) -> TableModel:
    """The model of a manifest and of the files it names, by their roles."""
    model, fields = read_described(manifest, contents, DESCRIPTION, _model)
    with inside(MANIFEST):
        priors, expected = (_priors(fields, name, len(model.classes)) for name in ("priors", "expected_priors"))
        if priors is not None and not model.probabilistic:
            raise RefusedError("priors belong to probabilities, and there are none")
        shift = None
        if expected is not None:
            if priors is None:
                raise RefusedError("expected_priors must stand beside priors")
            shift = PriorShift.to(priors, expected)
        return replace(model, priors=priors, prior_shift=shift, operating=_operating(fields, model, shift))


def _model(
    entry: Any, circuit: Any, number: int, width: int, n_classes: int, shelf: Shelf
) -> GeometricModel | VariationalModel:
    where = f"models[{number}]"
    type_ = entry.get("type") if isinstance(entry, dict) else None
    fields = Fields(entry, where, _GEOMETRIC if type_ == "geometric" else ("type",))
    if fields.choice("type", ("geometric", "variational")) == "variational":
        if circuit is None:
            raise RefusedError(f"{where} is a circuit, and there is none")
        return read_circuit(circuit, number, width, n_classes, shelf)
    first = read_stage(fields.raw("first"), f"{where}.first", number, width, n_classes, shelf)
    return read_geometric(fields, first, _calibration(fields, number, n_classes, shelf), circuit, number, shelf)


def _calibration(fields: Fields, number: int, n_classes: int, shelf: Shelf) -> Calibration:
    knots = shelf.floats(f"{number}.knots", None)
    bends = shelf.floats(f"{number}.bends", len(knots))
    if not (np.diff(knots) > 0).all():
        raise RefusedError(f"array '{number}.knots' must ascend, and does not")
    if not (np.diff(bends) > -np.diff(knots)).all():
        raise RefusedError(f"array '{number}.bends' turns the order of the scores")
    return Calibration(read_slope(fields), shelf.floats(f"{number}.biases", n_classes), knots, bends)


def _priors(fields: Fields, name: str, n_classes: int) -> npt.NDArray[np.float64] | None:
    if fields.raw(name) is None:
        return None
    values = [restored(value) for value in fields.list(name)]
    if len(values) != n_classes or not all(isinstance(value, float) and 0 < value < 1 for value in values):
        raise RefusedError(f"{name} must hold a number above 0 and below 1 for each of the {n_classes} classes")
    priors = np.array(values)
    if abs(priors.sum() - 1.0) > 1e-9 * n_classes:
        raise RefusedError(f"{name} must add up to 1, and adds up to {priors.sum():g}")
    return priors


def _operating(fields: Fields, model: TableModel, shift: PriorShift | None) -> OperatingSummary | None:
    if fields.raw("operating") is None:
        return None
    if len(model.classes) != 2 or not model.probabilistic:
        raise RefusedError("operating belongs to probabilities of two classes")
    own = Fields(fields.raw("operating"), "operating", _OPERATING)
    rule = own.choice("rule", RULES)
    if (rule == "likeliest") != (model.cut is None):
        raise RefusedError(f"operating.rule is {rule!r}, and cut is {shown(model.cut)}")
    log_odds = own.real("log_odds")
    if log_odds != (model.cut or 0.0):
        raise RefusedError(f"operating.log_odds is {log_odds}, and cut is {shown(model.cut)}")
    prevalence = None if own.raw("prevalence") is None else own.real("prevalence")
    if prevalence != (None if shift is None else shift.prevalence):
        raise RefusedError("operating.prevalence and the last of expected_priors are not the same")
    return OperatingSummary(rule, _asked(own, rule), log_odds, _counts(own), prevalence)


def _asked(own: Fields, rule: str) -> float | None:
    if rule not in ASKED:
        if own.raw("asked") is not None:
            raise RefusedError(f"operating.asked is {shown(own.raw('asked'))}, and {rule!r} asks for no number")
        return None
    asked = own.real("asked")
    if asked <= 0 or (rule != "cost" and asked > 1):
        raise RefusedError(f"operating.asked must be above 0{'' if rule == 'cost' else ' and at most 1'}")
    return asked


def _counts(own: Fields) -> Counts | None:
    if own.raw("counts") is None:
        return None
    counts = own.list("counts")
    whole = all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts)
    if len(counts) != 4 or not whole or not 0 < sum(counts) < _MOST_ROWS:
        raise RefusedError("operating.counts must be four whole numbers from 0 up, not all of them 0")
    return Counts(*counts)
