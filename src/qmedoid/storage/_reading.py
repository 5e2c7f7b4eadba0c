"""Saved models read back: from bytes whose hashes are right to a table model.

A hash says that the bytes are those that were written, not that they make sense: every shape, bound and index is
checked against the others before a model is built.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from qmedoid.arrays import Array
from qmedoid.calibration.curve import Calibration
from qmedoid.fields import Fields, RefusedError, Shelf, inside, parsed, restored, shown, tensors_parsed
from qmedoid.methods.registry import read_method
from qmedoid.model.decision import Decision, PriorShift
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.operating_point import ASKED, RULES, Counts, OperatingSummary
from qmedoid.model.table import TableModel
from qmedoid.storage._columns import read_classes, read_contract, read_encodings, read_rows
from qmedoid.storage._files import MANIFEST
from qmedoid.storage._hybrid import read_circuit, read_geometric, read_slope
from qmedoid.storage._novelty import read_novelty
from qmedoid.storage._seen import read as read_seen
from qmedoid.variational.model import VariationalModel

DESCRIPTION = (
    "contract", "encodings", "classes", "cut", "probabilistic", "models", "best", "parameters", "metrics", "priors",
    "expected_priors", "operating", "seen", "novelty",
)  # fmt: skip
"""Fields of the manifest that describe the model."""
VERSIONS = ("qmedoid", "numpy", "python")
"""What a model was saved with, for the reader."""
ROLES = ("arrays", "circuits", "card")
"""Files that every bundle has."""
OPTIONAL_ROLES = ("rows", "circuit.qpy", "circuit.qasm", "swap_test.qpy", "swap_test.qasm")
"""Files that a bundle may have; the circuits for other tools are never parsed."""
_GEOMETRIC = ("type", "first", "slope", "deltas", "refine_below", "residual")
_OPERATING = ("rule", "asked", "log_odds", "counts", "prevalence", "draws_per_row")
_MOST_ROWS = 2**53


def read(manifest: Mapping[str, Any], contents: Mapping[str, bytes]) -> TableModel:
    """The model of a manifest and of the files it names, by their roles."""
    with inside(MANIFEST):
        fields = Fields(manifest, "it", ("format", "sha256", "versions", "files", *DESCRIPTION))
        _check_roles(contents)
        versions = Fields(fields.raw("versions"), "versions", VERSIONS)
        for name in VERSIONS:
            versions.text(name)
        contract, classes = read_contract(fields.raw("contract")), read_classes(fields.raw("classes"))
        cut = None if fields.raw("cut") is None else fields.real("cut")
        if cut is not None and len(classes) != 2:
            raise RefusedError(f"cut belongs to two classes, and there are {len(classes)}")
        entries = fields.list("models")
        if not entries:
            raise RefusedError("models is empty")
        fields.whole("best", 0, 0)
        probabilistic, parameters = fields.flag("probabilistic"), fields.mapping("parameters")
        metrics = fields.mapping("metrics")
    with inside("arrays"):
        shelf = Shelf(tensors_parsed(contents["arrays"]))
        encodings = read_encodings(fields.raw("encodings"), contract, shelf)
    with inside("circuits"):
        circuits = parsed(contents["circuits"])
        if not isinstance(circuits, list) or len(circuits) != len(entries):
            raise RefusedError(f"it must be a list with one entry for each of the {len(entries)} models")
    width = sum(encoding.width for encoding in encodings)
    with inside("arrays"):
        models = tuple(
            _model(entry, circuit, number, width, len(classes), shelf)
            for number, (entry, circuit) in enumerate(zip(entries, circuits, strict=True))
        )
        seen = read_seen(fields.raw("seen"), shelf)
        novelty = read_novelty(fields.raw("novelty"), width, shelf)
        shelf.done()
    records = None
    if "rows" in contents:
        with inside("rows"):
            records = read_rows(parsed(contents["rows"]), [_n_medoids(model) for model in models])
    decision = Decision(classes, cut, probabilistic)
    with inside(MANIFEST):
        priors, expected = (_priors(fields, name, len(classes)) for name in ("priors", "expected_priors"))
        if priors is not None and not probabilistic:
            raise RefusedError("priors belong to probabilities, and there are none")
        shift = None
        if expected is not None:
            if priors is None:
                raise RefusedError("expected_priors must stand beside priors")
            shift = PriorShift.to(priors, expected)
        decision = replace(decision, priors=priors, shift=shift, operating=_operating(fields, decision, shift))
    return TableModel(contract, encodings, decision, models, records, parameters, metrics, seen=seen, novelty=novelty)


def _check_roles(contents: Mapping[str, bytes]) -> None:
    for role in ROLES:
        if role not in contents:
            raise RefusedError(f"files lacks {role!r}")
    for role in contents:
        if role not in (*ROLES, *OPTIONAL_ROLES):
            raise RefusedError(f"files has the unknown entry {role!r}")


def _model(
    entry: Any, circuit: Any, number: int, width: int, n_classes: int, shelf: Shelf
) -> HybridModel | VariationalModel:
    where = f"models[{number}]"
    type_ = entry.get("type") if isinstance(entry, dict) else None
    fields = Fields(entry, where, _GEOMETRIC if type_ == "geometric" else ("type",))
    if fields.choice("type", ("geometric", "variational")) == "variational":
        if circuit is None:
            raise RefusedError(f"{where} is a circuit, and there is none")
        return read_circuit(circuit, number, width, n_classes, shelf)
    first = read_method(fields.raw("first"), f"{where}.first", number, width, n_classes, shelf)
    return read_geometric(fields, first, _calibration(fields, number, n_classes, shelf), circuit, number, shelf)


def _calibration(fields: Fields, number: int, n_classes: int, shelf: Shelf) -> Calibration:
    knots = shelf.moderate(f"{number}.knots", None)
    bends = shelf.moderate(f"{number}.bends", len(knots))
    if not (np.diff(knots) > 0).all():
        raise RefusedError(f"array '{number}.knots' must ascend, and does not")
    if not (np.diff(bends) > -np.diff(knots)).all():
        raise RefusedError(f"array '{number}.bends' turns the order of the scores")
    return Calibration(read_slope(fields), shelf.moderate(f"{number}.biases", n_classes), knots, bends)


def _priors(fields: Fields, name: str, n_classes: int) -> Array | None:
    if fields.raw(name) is None:
        return None
    values = [restored(value) for value in fields.list(name)]
    if len(values) != n_classes or not all(isinstance(value, float) and 0 < value < 1 for value in values):
        raise RefusedError(f"{name} must hold a number above 0 and below 1 for each of the {n_classes} classes")
    priors = np.array(values)
    if abs(priors.sum() - 1.0) > 1e-9 * n_classes:
        raise RefusedError(f"{name} must add up to 1, and adds up to {priors.sum():g}")
    return priors


def _operating(fields: Fields, decision: Decision, shift: PriorShift | None) -> OperatingSummary | None:
    if fields.raw("operating") is None:
        return None
    if len(decision.classes) != 2 or not decision.probabilistic:
        raise RefusedError("operating belongs to probabilities of two classes")
    own = Fields(fields.raw("operating"), "operating", _OPERATING)
    rule = own.choice("rule", RULES)
    if (rule == "likeliest") != (decision.cut is None):
        raise RefusedError(f"operating.rule is {rule!r}, and cut is {shown(decision.cut)}")
    log_odds = own.real("log_odds")
    if log_odds != (decision.cut or 0.0):
        raise RefusedError(f"operating.log_odds is {log_odds}, and cut is {shown(decision.cut)}")
    prevalence = None if own.raw("prevalence") is None else own.real("prevalence")
    if prevalence != (None if shift is None else shift.prevalence):
        raise RefusedError("operating.prevalence and the last of expected_priors are not the same")
    draws_per_row = own.real("draws_per_row")
    if not 0 < draws_per_row <= 1:
        raise RefusedError(f"operating.draws_per_row must be above 0 and at most 1. Got {draws_per_row:g}")
    return OperatingSummary(rule, _asked(own, rule), log_odds, _counts(own), prevalence, draws_per_row)


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


def _n_medoids(model: HybridModel | VariationalModel) -> int:
    return len(model.method.plain.medoid_rows) if isinstance(model, HybridModel) else 0
