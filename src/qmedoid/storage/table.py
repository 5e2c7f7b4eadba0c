"""Table models as they are written and read: the description in the manifest, the arrays and the medoid rows.

A hash shows that the bytes are those that were written, not that they make sense: every shape, bound and index is
checked against the others before a model is built.
"""

import re
from typing import Any

import numpy as np

from qmedoid.arrays import Array
from qmedoid.fields import Arrays, Fields, RefusedError, Shelf, plain, restored, shown
from qmedoid.model.decision import Decision, PriorShift
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.operating_point import ASKED, RULES, Counts, OperatingSummary
from qmedoid.model.table import Record, TableModel
from qmedoid.storage.columns import (
    read_classes,
    read_contract,
    read_encodings,
    read_rows,
    write_contract,
    write_encodings,
)
from qmedoid.storage.hybrid import Decider, read_decider, write_decider
from qmedoid.storage.training_rows import (
    read_novelty,
    read_seen,
    read_summary,
    write_novelty,
    write_seen,
    write_summary,
)

DESCRIPTION = (
    "contract", "encodings", "classes", "cut", "probabilistic", "models", "parameters", "metrics", "priors",
    "expected_priors", "operating", "seen", "novelty", "training", "parent",
)  # fmt: skip
"""Fields of the manifest that describe the model."""
_OPERATING = ("rule", "asked", "log_odds", "counts", "prevalence", "draws_per_row")
_MOST_ROWS = 2**53
_DIGEST = re.compile(r"[0-9a-f]{64}")


def write_table(model: TableModel, arrays: Arrays, *, raw_rows: bool) -> dict[str, Any]:
    """The description of a model; its arrays are added. Anything that cannot be stored raises a `ModelError`."""
    decision = model.decision
    return {
        "contract": write_contract(model.contract),
        "encodings": write_encodings(model.encodings, arrays),
        "classes": plain(list(model.classes), "classes"),
        "cut": None if decision.cut is None else plain(float(decision.cut), "cut"),
        "probabilistic": bool(decision.probabilistic),
        "models": [write_decider(one, str(number), arrays) for number, one in enumerate(model.models)],
        "parameters": plain(model.parameters, "parameters"),
        "metrics": plain(model.metrics, "metrics"),
        "priors": None if decision.priors is None else plain(decision.priors, "priors"),
        "expected_priors": None if decision.shift is None else plain(decision.shift.priors, "expected_priors"),
        "operating": plain(_operating(decision.operating), "operating"),
        # A hash shows whether a row that somebody has was a training row: they are left out with the rows.
        "seen": write_seen(model.seen, arrays) if raw_rows else None,
        "novelty": plain(write_novelty(model.novelty, arrays), "novelty"),
        "training": write_summary(model.training, arrays),
        "parent": model.parent,
    }


def read_table(fields: Fields, shelf: Shelf) -> TableModel:
    """The model of a description and of all arrays, without its medoid rows."""
    contract, classes = read_contract(fields.raw("contract")), read_classes(fields.raw("classes"))
    encodings = read_encodings(fields.raw("encodings"), contract, shelf)
    cut = None if fields.raw("cut") is None else fields.real("cut")
    if cut is not None and len(classes) != 2:
        raise RefusedError(f"cut belongs to two classes, and there are {len(classes)}")
    entries, width = fields.list("models"), sum(encoding.width for encoding in encodings)
    if not entries:
        raise RefusedError("models is empty")
    models = tuple(read_decider(entry, number, width, len(classes), shelf) for number, entry in enumerate(entries))
    probabilistic = fields.flag("probabilistic")
    priors, expected = (_priors(fields, name, len(classes)) for name in ("priors", "expected_priors"))
    if priors is not None and not probabilistic:
        raise RefusedError("priors belong to probabilities, and there are none")
    if expected is not None and priors is None:
        raise RefusedError("expected_priors needs priors")
    shift = None if expected is None or priors is None else PriorShift.to(priors, expected)
    if fields.raw("operating") is not None and (len(classes) != 2 or not probabilistic):
        raise RefusedError("operating belongs to probabilities of two classes")
    training = read_summary(fields.raw("training"), contract, encodings, shelf)
    if training is not None and training.curve is not None and len(classes) != 2:
        raise RefusedError("training.curve belongs to two classes")
    model = TableModel(
        contract=contract,
        encodings=encodings,
        decision=Decision(classes, cut, probabilistic, priors, shift, _read_operating(fields, cut, shift)),
        models=models,
        parameters=fields.mapping("parameters"),
        metrics=fields.mapping("metrics"),
        seen=read_seen(fields.raw("seen"), shelf),
        novelty=read_novelty(fields.raw("novelty"), width, shelf),
        training=training,
        parent=_parent(fields),
    )
    shelf.done()
    return model


def read_records(value: Any, models: tuple[Decider, ...]) -> tuple[tuple[Record, ...], ...]:
    """For each model its medoids as rows."""
    counts = [len(one.method.plain.medoid_rows) if isinstance(one, HybridModel) else 0 for one in models]
    return read_rows(value, counts)


def _parent(fields: Fields) -> str | None:
    if fields.raw("parent") is not None and not _DIGEST.fullmatch(fields.text("parent")):
        raise RefusedError(f"parent must be a SHA-256 in 64 hexadecimal digits, and is {shown(fields.raw('parent'))}")
    parent: str | None = fields.raw("parent")
    return parent


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


def _operating(summary: OperatingSummary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "rule": summary.rule,
        "asked": None if summary.asked is None else float(summary.asked),
        "log_odds": float(summary.log_odds),
        "counts": None if summary.counts is None else [int(count) for count in summary.counts],
        "prevalence": None if summary.prevalence is None else float(summary.prevalence),
        "draws_per_row": float(summary.draws_per_row),
    }


def _read_operating(fields: Fields, cut: float | None, shift: PriorShift | None) -> OperatingSummary | None:
    if fields.raw("operating") is None:
        return None
    given = Fields(fields.raw("operating"), "operating", _OPERATING)
    rule = given.choice("rule", RULES)
    if (rule == "likeliest") != (cut is None):
        raise RefusedError(f"operating.rule is {rule!r}, and cut is {shown(cut)}")
    log_odds = given.real("log_odds")
    if log_odds != (cut or 0.0):
        raise RefusedError(f"operating.log_odds is {log_odds}, and cut is {shown(cut)}")
    prevalence = None if given.raw("prevalence") is None else given.real("prevalence")
    if prevalence != (None if shift is None else shift.prevalence):
        raise RefusedError("operating.prevalence and the last of expected_priors are not the same")
    draws_per_row = given.real("draws_per_row")
    if not 0 < draws_per_row <= 1:
        raise RefusedError(f"operating.draws_per_row must be above 0 and at most 1. Got {draws_per_row:g}")
    return OperatingSummary(rule, _asked(given, rule), log_odds, _counts(given), prevalence, draws_per_row)


def _asked(given: Fields, rule: str) -> float | None:
    if rule not in ASKED:
        if given.raw("asked") is not None:
            raise RefusedError(f"operating.asked is {shown(given.raw('asked'))}, and {rule!r} asks for no number")
        return None
    asked = given.real("asked")
    if asked <= 0 or (rule != "cost" and asked > 1):
        raise RefusedError(f"operating.asked must be above 0{'' if rule == 'cost' else ' and at most 1'}")
    return asked


def _counts(given: Fields) -> Counts | None:
    if given.raw("counts") is None:
        return None
    counts = given.list("counts")
    are_whole = all(isinstance(count, int) and not isinstance(count, bool) and count >= 0 for count in counts)
    if len(counts) != 4 or not are_whole or not 0 < sum(counts) < _MOST_ROWS:
        raise RefusedError("operating.counts must be four whole numbers from 0 up, not all of them 0")
    return Counts(*counts)
