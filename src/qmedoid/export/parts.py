"""Writers of parts: a format can express the parts that it has a module for, by their names."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from qmedoid.exceptions import ModelError
from qmedoid.methods.part import Part
from qmedoid.model.model import Model

LANGUAGES = {"js": "JavaScript", "sql": "SQL", "onnx": "ONNX"}


def check_exported(model: Model) -> None:
    """Raise for a model with a circuit, which no format can run."""
    if model.circuit is not None:
        raise ModelError(
            "A quantum circuit takes part in the decisions of this model, and no export can run it: fit a model "
            "without one (refine='never'), or export its circuits with 'qmedoid circuit export'."
        )


def part_writer(format: str, part: Part) -> Callable[..., Any]:
    """The function ``write`` of the module ``qmedoid.export.<format>.<name of the part>``.

    Raises
    ------
    ModelError
        There is none: the format cannot express the part.
    """
    name = f"qmedoid.export.{format}.{part.name}"
    if find_spec(name) is None:
        others = " or ".join(
            one for one in LANGUAGES if one != format and find_spec(f"qmedoid.export.{one}.{part.name}")
        )
        way_out = f"export the model as {others}" if others else "fit the model with another method"
        raise ModelError(f"{LANGUAGES[format]} cannot express the part {part.name!r} of this model: {way_out}.")
    writer: Callable[..., Any] = import_module(name).write
    return writer
