"""Codes and indices of a saved model point at what is there, and nothing is written where others could read it."""

import json
import os
import secrets
from typing import Annotated, NamedTuple

import numpy as np
import pytest
import spoilt_files as spoilt
from sample_models import all_models

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ModelError
from qmedoid.model.storage.atomic import atomic_file, write_atomic
from qmedoid.model.storage.forms import read
from qmedoid.model.storage.model_file import load_model, save_model
from qmedoid.model.storage.strict import read_arrays
from qmedoid.schema import RefusedError, Values, part_bounds

MODELS = all_models()
# What the places of an array count: how many there are, from the file itself.
POINTS_AT = {
    "medoid_classes": lambda file, _: len(file.manifest["model"]["decision"]["classes"]),
    "neighbors.classes": lambda file, _: len(file.manifest["model"]["decision"]["classes"]),
    "terms.group": lambda _, array: len(array("groups.offsets")) - 1,
    "terms.medoid": lambda _, array: len(array("medoids")),
    "terms.channel": lambda *_: 3,
    "groups.columns": lambda _, array: len(array("linear_scaling.center")),
    "configuration": lambda _, array: len(array("input_scaling.center")),
    "circuit_features": lambda _, array: len(array("weights")),
}


@pytest.mark.parametrize("name", ["selective", "several classes", "evidence of classes", "rare and circuit"])
def test_index_just_beyond_what_is_there_is_refused(tmp_path, name):
    """The first code or place that there is none of, and the one before the first, in any entry of any array."""
    path = save_model(MODELS[name], tmp_path / "m.qmedoid")
    file = spoilt.Spoilt(path)
    arrays, tried = file.arrays(), set()
    for full, values in arrays.items():
        start, _, kind = full.partition("parts.0.")
        if kind not in POINTS_AT or not len(values):
            continue
        tried.add(kind)
        bound = POINTS_AT[kind](file, lambda other, start=start: arrays[f"{start}parts.0.{other}"])
        assert 0 <= values.min() <= values.max() < bound
        for place in {0, len(values) - 1}:
            for wrong, reason in {bound: f"below {bound}, not {bound}", -1: "at least 0, not -1"}.items():
                forged = values.copy()
                forged[place] = wrong
                path.write_bytes(file.with_arrays(arrays | {full: forged}))
                with pytest.raises(ModelError, match=f"'{full}' must hold numbers {reason}"):
                    load_model(path)
    assert tried >= ({"medoid_classes"} if name != "rare and circuit" else {"circuit_features"})


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="makes links")
@pytest.mark.parametrize("kind", ["link", "file"])
def test_file_at_the_name_of_a_temporary_file_is_never_written_to(tmp_path, monkeypatch, kind):
    """However the name was guessed: neither what is there, nor what it points at, nor the target changes."""
    target, other = tmp_path / "out.csv", tmp_path / "passwords"
    target.write_text("old")
    other.write_text("secret")
    monkeypatch.setattr(secrets, "token_hex", lambda n: "ab" * n)
    planted = tmp_path / f".out.csv.{'ab' * 8}.part"
    if kind == "link":
        planted.symlink_to(other)
    else:
        planted.write_text("mine")

    def replace():
        if kind == "link":
            with atomic_file(target) as out:
                out.write(b"new")
        else:  # without the sweep of leftovers
            write_atomic(target, b"new")

    with pytest.raises((DataError, FileExistsError)):
        replace()
    assert (target.read_text(), other.read_text()) == ("old", "secret")
    assert planted.is_symlink() if kind == "link" else planted.read_text() == "mine"


class Numbers(NamedTuple):
    count: Annotated[int, Values(most=5)]
    share: float


@pytest.mark.parametrize("value", [True, False])
def test_truth_value_is_no_number(value):
    """JSON has both, and Python takes one for the other."""
    for name in ("count", "share"):
        with pytest.raises(RefusedError, match=f"{name} must be a .*number, and is {value}"):
            read(Numbers, {"count": 1, "share": 1} | {name: value}, {})


def test_arrays_that_share_bytes_are_refused():
    """Many arrays over the same bytes would take many times the memory of their file."""
    body = np.arange(3.0).tobytes()

    def file(second):
        places = {"a": [0, 16], "b": second}
        entries = {
            name: {"dtype": "F64", "shape": [(last - first) // 8], "data_offsets": [first, last]}
            for name, (first, last) in places.items()
        }
        header = json.dumps(entries).encode()
        return len(header).to_bytes(8, "little") + header + body

    assert read_arrays(file([16, 24]))["b"] == [2.0]
    for second in ([8, 24], [0, 24], [0, 16]):
        with pytest.raises(RefusedError, match="its arrays cannot be read"):
            read_arrays(file(second))


class InParts(NamedTuple):
    offsets: Annotated[Codes, part_bounds("n", "total")]
    values: Annotated[Array, Values("total")]


def test_bounds_of_parts_begin_at_0_ascend_and_end_with_the_last():
    def offsets(*values):
        arrays = {"offsets": np.array(values, dtype=np.int64), "values": np.zeros(5)}
        return read(InParts, {}, arrays).offsets

    np.testing.assert_array_equal(offsets(0, 2, 5), [0, 2, 5])
    for wrong in ((0, 2, 4), (1, 2, 5), (0, 0, 5), (0, 5, 5), (0, 2, 6), (-1, 2, 5), (0, 2), ()):
        with pytest.raises(RefusedError, match=r"'(offsets|values)' must"):
            offsets(*wrong)
