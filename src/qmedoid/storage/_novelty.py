"""The summary of training rows by which unlike records are noticed, as it is saved."""

from typing import Any

import numpy as np

from qmedoid.fields import Arrays, Fields, RefusedError, Shelf, floats, whole
from qmedoid.model.novelty import LEAST, MOST, Far, Novelty

_FIELDS = ("rows", "far")
_FAR = ("distance", "beyond", "rows")
_MOST_ROWS = 2**53
# Limits lie some widths beyond values of at most 1e150.
_LARGEST = 1e152


def packed_novelty(novelty: Novelty | None, arrays: Arrays) -> dict[str, Any] | None:
    """What the manifest says of a summary; its arrays are added."""
    if novelty is None:
        return None
    for name in ("limited", "binned", "offsets", "counts"):
        arrays[f"novelty.{name}"] = whole(getattr(novelty, name))
    for name in ("lowest", "highest", "low", "high", "edges"):
        arrays[f"novelty.{name}"] = floats(getattr(novelty, name))
    far = novelty.far
    return {
        "rows": int(novelty.n_rows),
        "far": None if far is None else {"distance": far.distance, "beyond": far.beyond, "rows": far.n_rows},
    }


def read_novelty(value: Any, width: int, shelf: Shelf) -> Novelty | None:
    """The summary over `width` encoded columns."""
    if value is None:
        return None
    fields = Fields(value, "novelty", _FIELDS)
    n_rows = fields.whole("rows", 1, _MOST_ROWS)
    limited, binned = (shelf.whole(f"novelty.{name}", None, below=width) for name in ("limited", "binned"))
    for name, columns in (("limited", limited), ("binned", binned)):
        if (np.diff(columns) <= 0).any():
            raise RefusedError(f"array 'novelty.{name}' must ascend, and does not")
    low, lowest, highest, high = (
        shelf.moderate(f"novelty.{name}", len(limited), largest=_LARGEST)
        for name in ("low", "lowest", "highest", "high")
    )
    if not ((low <= lowest) & (lowest < highest) & (highest <= high)).all():
        raise RefusedError("arrays 'novelty.low', 'lowest', 'highest' and 'high' must ascend in every column")
    edges = shelf.floats("novelty.edges", None)
    offsets = shelf.offsets("novelty.offsets", len(binned), len(edges), step=1)
    within = np.ones(max(len(edges) - 1, 0), dtype=np.bool_)
    within[offsets[1:-1] - 1] = False
    if not ((edges[1:] > edges[:-1])[within]).all():
        raise RefusedError("array 'novelty.edges' must ascend within each column, and does not")
    counts = shelf.whole("novelty.counts", len(edges) + len(binned), below=n_rows + 1)
    starts = offsets[:-1] + np.arange(len(binned))
    if len(binned) and not (np.add.reduceat(counts, starts) == n_rows).all():
        raise RefusedError(f"array 'novelty.counts' must add up to the {n_rows} rows in every column")
    far = fields.raw("far")
    return Novelty(
        n_rows, limited, lowest, highest, low, high, binned, offsets, edges, counts, None if far is None else _far(far)
    )


def _far(value: Any) -> Far:
    fields = Fields(value, "novelty.far", _FAR)
    distance = fields.real("distance")
    if not LEAST <= distance <= MOST:
        raise RefusedError(f"novelty.far.distance must be from {LEAST:g} to {MOST:g}")
    n_rows = fields.whole("rows", 1, _MOST_ROWS)
    return Far(distance, fields.whole("beyond", 0, n_rows), n_rows)
