"""Every stored field that is spoilt in a way its declaration forbids is refused, by a message that names it."""

import json

import numpy as np
import pytest
import spoilt_files as spoilt
from sample_models import all_models

from qmedoid.model.model import Model
from qmedoid.model.storage.forms import packed_fields, read, stored_fields, write
from qmedoid.model.storage.strict import parsed
from qmedoid.schema import RefusedError, Values

MODELS = all_models()
# One of every method, encoding, read-out and summary.
NAMES = (
    "selective",
    "several classes",
    "evidence",
    "evidence of classes",
    "rare and circuit",
    "circuit",
    "sum",
    "sum of classes",
)
HUGE = 2**61


def fields_of(kind, value, path=""):
    """Path, form and value of every field, all the way down; of a list the first two."""
    for name, form in stored_fields(kind).items():
        yield from _fields(form, getattr(value, name), f"{path}.{name}" if path else name)


def _fields(form, value, path):
    holds, of, _ = form
    if value is None or holds in ("any", "mapping"):
        return
    if holds in ("null", "given"):
        yield from _fields(of, value, path)
        return
    yield path, form, value
    if holds in ("object", "tagged"):
        yield from fields_of(type(value), value, path)
    elif holds == "list":
        for number, one in enumerate(value[:2]):
            yield from _fields(of, one, f"{path}.{number}")


def wrong_scalars(kind, spec):
    """JSON that a text, number or truth value must not be."""
    yield from (None, []) if getattr(spec, "nan", False) else (None, [], {}, {"$float": "nan"})
    if kind is not bool and not isinstance(kind, tuple):
        yield True
    if kind in (int, float):
        yield "1"
    if kind is int:
        yield from (1.5, 2**70)
    if kind is str or kind is bool:
        yield 1
    if isinstance(spec, str | tuple):
        yield "no such text"
    if isinstance(spec, Values):
        for word, bound in bounds_of(spec):
            if not isinstance(bound, str):
                yield _beyond(word, bound) if kind is float else int(_beyond(word, bound))
        if kind is int and not is_signed(spec):
            yield -1
        if kind is float and not spec.infinite:
            yield {"$float": "inf"}


def bounds_of(spec):
    """The bounds of numbers, by word."""
    bounds = {"at least": spec.least, "above": spec.above, "at most": spec.most, "below": spec.below}
    if spec.largest < np.inf:
        bounds |= {"at least": -spec.largest, "at most": spec.largest}
    return [(word, bound) for word, bound in bounds.items() if bound is not None]


def is_signed(spec):
    return any(word in ("at least", "above") for word, _ in bounds_of(spec))


def _beyond(word, bound):
    return {"at least": bound - max(1.0, abs(bound)), "above": bound, "below": bound}.get(
        word, bound + max(1.0, abs(bound))
    )


def wrong_arrays(spec, array):
    """Arrays that a field must not be."""
    whole = array.dtype != np.float64
    yield array[..., None]
    yield array.astype(np.int64 if array.dtype == np.float64 else np.float64)
    if spec.length[0]:
        yield array[: spec.length[0] - 1]
    if not array.size:
        return
    values = [] if whole else [-np.inf] + [np.nan] * (not spec.nan)
    values += [-1] * (whole and not is_signed(spec) and array.dtype != np.uint8)
    for word, bound in bounds_of(spec):
        if not isinstance(bound, str):
            values.append(_beyond(word, bound))
        else:
            values.append((-1.0 if word in ("at least", "above") else 1.0) * (HUGE if whole else 1e151))
    values += [0.0] * (not spec.zero)
    for value in values:
        for place in {0, array.size - 1}:
            yield _with(array, place, value)
    if spec.order and not spec.within and len(array) > 1:
        yield _with(array, 1, array[0]) if spec.order in ("rises", "falls") else _with(array, -2, array[-1] + 1)
    if spec.every:
        yield np.zeros_like(array)
    if spec.last:
        yield _with(array, -1, array[-1] + 1 if spec.first is None else HUGE)
    if spec.first is not None:
        yield _with(array, 0, spec.first + 1)


def _with(array, place, value):
    changed = array.copy()
    changed.reshape(-1)[place] = value
    return changed


def spoilt_contents(model, described, arrays):
    """The path of a field, and JSON and arrays where it is spoilt."""
    for path, form, _ in fields_of(Model, model):
        place = tuple(int(part) if part.isdecimal() else part for part in path.split("."))
        holds, of, spec = form
        if holds in ("object", "tagged"):
            for new in (5, [], None) if place[-1] not in OPTIONAL else (5, []):
                yield path, spoilt.replaced(described, place, new), arrays
            yield path, spoilt.replaced(described, (*place, "unknown"), 1), arrays
            own = described
            for one in place:
                own = own[one]
            for name in own:
                yield path, spoilt.removed(described, (*place, name)), arrays
        elif holds in ("scalar", "list"):
            for new in wrong_scalars(of, spec) if holds == "scalar" else (5, {}, "text", None):
                if new is not None or place[-1] not in OPTIONAL:
                    yield path, spoilt.replaced(described, place, new), arrays
        else:
            parts = {path: spec}
            if holds == "packed":
                parts = {f"{path}.{name}".rstrip("."): own for name, (_, own) in packed_fields(of, spec).items()}
                if isinstance(spec.bounds, Values):
                    parts[f"{path}.offsets"] = spec.bounds
            for name, own in parts.items():
                for array in wrong_arrays(own, arrays[name]):
                    yield name, described, arrays | {name: array}
                yield name, described, {key: one for key, one in arrays.items() if key != name}


OPTIONAL = ("cut", "target", "asked", "prevalence", "parent", "counts", "far", "curve", "rows_per_day", "neighbors",
            "inner", "refinement", "records", "recalibration", "margin_of", "shift",
            "operating", "seen", "novelty", "training")  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_field_that_its_declaration_forbids_is_refused_and_named(name):
    arrays = {}
    described = write(MODELS[name], arrays)
    read(Model, parsed(json.dumps(described).encode()), dict(arrays))
    paths = []
    for path, forged, changed in spoilt_contents(MODELS[name], described, arrays):
        with pytest.raises(RefusedError) as caught:
            read(Model, parsed(json.dumps(forged).encode()), dict(changed))
        message = str(caught.value)
        # Offsets that end elsewhere are the length of another array, which is named instead.
        assert path.removesuffix(".offsets") in message, (path, message)
        assert len(message) < 300, message
        paths.append(path)
    assert len(paths) > 400
    assert len(set(paths)) > 60
