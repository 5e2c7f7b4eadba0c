"""What a model keeps of its training rows, as it is written and read: hashes, novelty limits and the summary."""

import re
from typing import Any

import numpy as np

from qmedoid.arrays import Codes
from qmedoid.fields import Arrays, Fields, RefusedError, Shelf, floats, whole
from qmedoid.model.contract import Column, Contract, Encoding, Levels
from qmedoid.model.novelty import KEY_BYTES, LEAST, MOST, MOST_KEPT, Far, Novelty, SeenRows
from qmedoid.model.training_summary import MOST_CUTS, MOST_DAYS, DayCounts, HeldOutCurve, TrainingSummary

_KEY = re.compile(rf"[0-9a-f]{{{2 * KEY_BYTES}}}")
_MOST_ROWS = 2**53
# Limits of novelty lie some widths beyond values of at most 1e150.
_LARGEST = 1e152
# Days since 1970 that an array can hold: it has no numbers below 0.
_FIRST_DAY = -(2**40)


def write_seen(seen: SeenRows | None, arrays: Arrays) -> dict[str, Any] | None:
    """Hashes of training rows for the manifest; their array is added."""
    if seen is None:
        return None
    arrays["seen.hashes"] = whole(seen.hashes)
    return {"key": seen.key.hex(), "is_sample": bool(seen.is_sample)}


def read_seen(value: Any, shelf: Shelf) -> SeenRows | None:
    """Hashes of training rows; None where there are none."""
    if value is None:
        return None
    fields = Fields(value, "seen", ("key", "is_sample"))
    key = fields.text("key")
    if not _KEY.fullmatch(key):
        raise RefusedError(f"seen.key must hold {2 * KEY_BYTES} hexadecimal digits, and does not")
    hashes = _ascending("seen.hashes", 2**63, MOST_KEPT, shelf).astype(np.int64)
    return SeenRows(bytes.fromhex(key), hashes, fields.flag("is_sample"))


def write_summary(summary: TrainingSummary | None, arrays: Arrays) -> dict[str, Any] | None:
    """The summary of the training table for the manifest; its arrays are added."""
    if summary is None:
        return None
    arrays["training.missing"] = whole(summary.missing)
    arrays["training.levels"] = whole(np.concatenate([np.zeros(0, dtype=np.intp), *summary.levels]))
    curve, days = summary.curve, summary.days
    if curve is not None:
        arrays["training.thresholds"] = floats(curve.thresholds)
        arrays["training.true_positives"] = whole(curve.true_positives)
        arrays["training.false_positives"] = whole(curve.false_positives)
    if days is not None:
        arrays["training.days"] = whole(days.days) - _FIRST_DAY
        arrays["training.day_rows"] = whole(days.counts)
    return {
        "rows": int(summary.n_rows),
        "curve": None if curve is None else {"positive": int(curve.n_positive), "negative": int(curve.n_negative)},
        "by_day": days is not None,
    }


def read_summary(
    value: Any, contract: Contract, encodings: tuple[Encoding, ...], shelf: Shelf
) -> TrainingSummary | None:
    """The summary of the training table; None where there is none."""
    if value is None:
        return None
    fields = Fields(value, "training", ("rows", "curve", "by_day"))
    n_rows = fields.whole("rows", 1, 2**40)  # so that no sum of counts overflows
    sizes = [n_levels(column, encoding) for column, encoding in zip(contract.columns, encodings, strict=True)]
    missing = shelf.whole("training.missing", len(sizes), below=n_rows + 1)
    counts = shelf.whole("training.levels", sum(sizes), below=n_rows + 1)
    levels = tuple(part.copy() for part in np.split(counts, np.cumsum(sizes)[:-1]))
    if any(int(absent) + int(part.sum()) > n_rows for absent, part in zip(missing, levels, strict=True)):
        raise RefusedError(f"array 'training.levels' counts more than the {n_rows} rows in a column")
    curve = None if fields.raw("curve") is None else _read_curve(fields.raw("curve"), shelf)
    days = None
    if fields.flag("by_day"):
        dates = _ascending("training.days", 2**41, MOST_DAYS, shelf) + _FIRST_DAY
        days = DayCounts(dates, shelf.whole("training.day_rows", len(dates), below=n_rows + 1))
        if int(days.counts.sum()) > n_rows or (days.counts < 1).any():
            raise RefusedError(f"array 'training.day_rows' must hold numbers above 0 that add up to {n_rows} at most")
    return TrainingSummary(n_rows, missing, levels, curve, days)


def write_novelty(novelty: Novelty | None, arrays: Arrays) -> dict[str, Any] | None:
    """Limits and bins of the columns for the manifest; their arrays are added."""
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
    fields = Fields(value, "novelty", ("rows", "far"))
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
    fields = Fields(value, "novelty.far", ("distance", "beyond", "rows"))
    distance = fields.real("distance")
    if not LEAST <= distance <= MOST:
        raise RefusedError(f"novelty.far.distance must be from {LEAST:g} to {MOST:g}")
    n_rows = fields.whole("rows", 1, _MOST_ROWS)
    return Far(distance, fields.whole("beyond", 0, n_rows), n_rows)


def _read_curve(value: Any, shelf: Shelf) -> HeldOutCurve:
    fields = Fields(value, "training.curve", ("positive", "negative"))
    totals = fields.whole("positive", 0, _MOST_ROWS), fields.whole("negative", 0, _MOST_ROWS)
    thresholds = shelf.floats("training.thresholds", None)
    if not 1 <= len(thresholds) <= MOST_CUTS or not (thresholds[1:] < thresholds[:-1]).all():
        raise RefusedError(f"array 'training.thresholds' must hold from 1 to {MOST_CUTS} numbers that descend")
    counts = []
    for name, total in zip(("true_positives", "false_positives"), totals, strict=True):
        counts.append(shelf.whole(f"training.{name}", len(thresholds), below=total + 1))
        if (np.diff(counts[-1]) < 0).any() or counts[-1][-1] != total:
            raise RefusedError(f"array 'training.{name}' must not descend, and must end with {total}")
    return HeldOutCurve(thresholds, counts[0], counts[1], *totals)


def _ascending(name: str, below: int, most: int, shelf: Shelf) -> Codes:
    array = shelf.whole(name, None, below=below)
    if not 1 <= len(array) <= most or (np.diff(array) <= 0).any():
        raise RefusedError(f"array {name!r} must hold from 1 to {most} ascending numbers, and does not")
    return array


def n_levels(column: Column, encoding: Encoding) -> int:
    """Levels whose rows are counted: of a category those of its encoding, of a boolean false and true."""
    if isinstance(encoding, Levels):
        return len(encoding.levels)
    return 2 if column.kind == "boolean" else 0
