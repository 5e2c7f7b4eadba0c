"""First stages: for each type how it is taken apart, and how it is read back and checked.

A stage is an object with its ``type`` in the manifest, under ``first`` of its model, and arrays with the number of the
model before their names. A new type adds a module with both functions, and a line in `STAGES`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy.typing as npt

from qmedoid.exceptions import ModelError
from qmedoid.methods.base import PlainStage
from qmedoid.methods.evidence.model import EvidenceModel
from qmedoid.methods.nearest.model import NearestModel
from qmedoid.methods.rare.model import RareEventModel
from qmedoid.storage import _convex, _evidence, _rare
from qmedoid.storage._json import RefusedError, shown
from qmedoid.storage._tensors import Shelf

Arrays = dict[str, npt.NDArray[Any]]


class StageFormat(NamedTuple):
    """How first stages of one type are stored.

    Attributes
    ----------
    model : type
        The class of such a stage.
    packed : callable (stage, number, arrays) -> dict
        Adds its arrays, with the number of its model, and gives what the manifest says of it.
    read : callable (value, where, number, width, n_classes, shelf) -> stage
        The stage of what the manifest says, of `width` encoded columns, once everything is checked.
    """

    model: type
    packed: Callable[[Any, str, Arrays], dict[str, Any]]
    read: Callable[[Any, str, int, int, int, Shelf], PlainStage]


STAGES: Mapping[str, StageFormat] = {
    "convex": StageFormat(NearestModel, _convex.packed, _convex.read),
    "evidence": StageFormat(EvidenceModel, _evidence.packed, _evidence.read),
    "rare": StageFormat(RareEventModel, _rare.packed, _rare.read),
}


def packed_stage(stage: PlainStage, number: str, arrays: Arrays) -> dict[str, Any]:
    """What the manifest says of a first stage; its arrays are added to the others."""
    for name, own in STAGES.items():
        if isinstance(stage, own.model):
            return {"type": name, **own.packed(stage, number, arrays)}
    raise ModelError(f"A {type(stage).__name__} cannot be stored: a bundle knows first stages of {sorted(STAGES)}.")


def read_stage(value: Any, where: str, number: int, width: int, n_classes: int, shelf: Shelf) -> PlainStage:
    """The first stage of a model."""
    name = value.get("type") if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in STAGES:
        raise RefusedError(f"{where}.type must be one of {sorted(STAGES)}, and is {shown(name)}")
    return STAGES[name].read(value, where, number, width, n_classes, shelf)
