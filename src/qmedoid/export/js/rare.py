"""Prototypes of rare events as plain values."""

from typing import Any

from qmedoid.export.js.packing import packed, scaling
from qmedoid.methods.rare.part import RarePart


def write(model: RarePart) -> dict[str, Any]:
    """Prototypes of rare events."""
    geometry = model.geometry
    inner = geometry.scaling.inner
    return {
        "outer": scaling(geometry.scaling.outer),
        "inner": None if inner is None else scaling(inner),
        **{name: packed(getattr(geometry, name)) for name in ("rare", "common", "hard", "metrics")},
        "counts": list(geometry.counts),
        "length": geometry.length,
        "floor": geometry.floor,
        **{name: packed(getattr(model, name)) for name in ("center", "scale", "weights")},
        "intercept": model.intercept,
        "rareClass": model.rare_class,
    }
