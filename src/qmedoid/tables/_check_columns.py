"""One column of a table as `qmedoid check` shows it: how it is read and why, what is odd, and how it predicts alone."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import some_of
from qmedoid.metrics.classification import roc_auc
from qmedoid.model.contract import Column
from qmedoid.tables import cells
from qmedoid.tables.kinds import Inferred
from qmedoid.tables.roles import IDENTIFIERS, Role

Codes = npt.NDArray[np.int32]
_EXAMPLES, _LONGEST = 3, 30
_MOSTLY_MISSING = 0.5
"""Share of missing cells from which on it is worth a word."""
_MIXED = 0.02
"""Share of numbers among texts from which on they are no accident."""
_TIME_WORDS = frozenset(("time", "date", "datetime", "timestamp", "year", "month", "day", "week", "ts"))


class Finding(NamedTuple):
    """Something that a reader should know before a fit: a code that does not change, and what to do.

    The severity is "problem" where a model would probably be wrong or misleading, else "note".
    """

    code: str
    severity: str
    columns: tuple[str, ...]
    message: str

    def as_dict(self) -> dict[str, Any]:
        """The finding for JSON."""
        return {**self._asdict(), "columns": list(self.columns)}


class Facts(NamedTuple):
    """The place of each cell among the different ones in their order of appearance, -1 where it is missing.

    Codes and different cells are None for lists and the like.
    """

    codes: Codes | None
    different: Any
    n_missing: int


def facts_of(column: pa.ChunkedArray) -> Facts:
    """Codes, different cells and missing cells of a column."""
    array = cells.one_chunk(column)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary.take(array.indices)
    try:
        encoded = array.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return Facts(None, None, int(array.null_count))
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    absent = _is_absent(encoded.dictionary)
    if absent.any():
        codes = np.where(np.append(absent, False)[codes], np.int32(-1), codes)
    return Facts(codes, encoded.dictionary, int((codes < 0).sum()))


def _is_absent(different: pa.Array) -> Flags:
    """Which of the different cells stand for none: NaN, and texts of blanks."""
    if pa.types.is_floating(different.type):
        return np.asarray(np.isnan(different.to_numpy(zero_copy_only=False)))
    if cells.is_text(different.type):
        found: Flags = cells.texts(different).is_null().to_numpy(zero_copy_only=False)
        return found
    return np.zeros(len(different), dtype=bool)


def describe(
    name: str, column: pa.ChunkedArray, facts: Facts, inferred: Inferred, draft: Column | None, role: Role | None
) -> dict[str, Any]:
    """A column as plain values, by what was inferred for it: its draft, or the reason to leave it out."""
    return {
        "name": name,
        "type": str(column.type),
        "kind": None if draft is None else draft.kind,
        "used": draft is not None,
        "role": role,
        "why": _why(draft, column.type, role) if draft is not None else inferred.left_out[name],
        "note": inferred.notes.get(name),
        "levels": None if facts.codes is None else _count_levels(facts, draft),
        "missing": facts.n_missing,
        "examples": _examples(facts),
        "alone": None,
    }


def oddities(name: str, column: pa.ChunkedArray, facts: Facts, shown: Mapping[str, Any]) -> list[Finding]:
    """What is odd about the cells of a column."""
    found = []
    if shown["note"] is not None:
        found.append(Finding("reading", "note", (name,), shown["note"]))
    if not shown["used"]:
        found += _left_out(name, shown)
    if shown["role"] == "ignore" or facts.codes is None:
        return found
    n = len(facts.codes)
    if n > facts.n_missing >= _MOSTLY_MISSING * n:
        message = f"column {name!r}: {facts.n_missing:,} of {n:,} cells are missing"
        found.append(Finding("mostly_missing", "note", (name,), message))
    if shown["kind"] == "category" and cells.is_text(facts.different.type):
        found += _spellings(name, facts) + _mixed(name, facts, shown)
    if shown["used"] and _is_time_like(name, column, shown["kind"], facts):
        message = (
            f"column {name!r} is about time: if rows to come are later ones, hold out the last rows "
            f"(fit --time-column {name!r})"
        )
        found.append(Finding("time", "note", (name,), message))
    return found


def _odd_spellings(different: pa.Array) -> list[list[str]]:
    """Groups of texts that differ by case or blanks alone."""
    trimmed = pc.utf8_trim_whitespace(cells.as_text(different).cast(pa.string())).unique().drop_null()
    keys = pc.replace_substring_regex(pc.utf8_lower(trimmed), r"\s+", " ").dictionary_encode()
    places = keys.indices.to_numpy(zero_copy_only=False)
    shared = np.flatnonzero(np.bincount(places, minlength=1) > 1)
    groups: dict[int, list[str]] = {int(place): [] for place in shared}
    chosen = np.flatnonzero(np.isin(places, shared))
    for place, text in zip(places[chosen].tolist(), trimmed.take(pa.array(chosen)).to_pylist(), strict=True):
        groups[place].append(text)
    return list(groups.values())


def _left_out(name: str, shown: Mapping[str, Any]) -> list[Finding]:
    why = shown["why"]
    if shown["role"] == "ignore":
        return []
    if why in IDENTIFIERS:
        message = f"column {name!r} is left out: {why}; the role 'keep' uses it all the same"
        return [Finding("identifier", "note", (name,), message)]
    return [Finding(getattr(why, "code", "not_read"), "note", (name,), f"column {name!r} is left out: {why}")]


def _spellings(name: str, facts: Facts) -> list[Finding]:
    found = []
    text = cells.as_text(facts.different)
    padded = pc.fill_null(pc.not_equal(text, pc.utf8_trim_whitespace(text)), False).to_numpy(zero_copy_only=False)
    if rows := int(np.append(padded, False)[facts.codes].sum()):
        message = f"column {name!r}: {rows:,} cells have blanks before or after the text, which are taken away"
        found.append(Finding("blanks", "note", (name,), message))
    groups = _odd_spellings(facts.different)
    if groups:
        such = some_of([" and ".join(map(repr, group[:4])) for group in groups], 3)
        message = f"column {name!r}: levels differ by case or blanks only: {such}; they are different levels in a fit"
        found.append(Finding("spellings", "note", (name,), message))
    return found


def _mixed(name: str, facts: Facts, shown: Mapping[str, Any]) -> list[Finding]:
    """Numbers, or dates, among texts; where the reading itself has a note, that says it."""
    if shown["note"] is not None or shown["role"] is not None:
        return []
    text = cells.texts(facts.different)
    codes = np.empty(0, dtype=np.int32) if facts.codes is None else facts.codes
    counts = np.bincount(codes[codes >= 0], minlength=len(text))
    given = counts.sum()
    absent = text.is_null().to_numpy(zero_copy_only=False)
    readings = {
        "numbers": ~np.isnan(cells.read(text, "number").values),
        "dates": ~np.isnat(cells.read(text, "date").values),
    }
    for what, read in readings.items():
        rows = int(counts[read & ~absent].sum())
        if _MIXED * given <= rows < given:
            other = text[int(np.flatnonzero(~read & ~absent)[0])].as_py()
            message = (
                f"column {name!r}: {rows:,} of {given:,} cells are {what}, others are texts such as {other!r}: "
                f"taken as a category; the role {what[:-1]!r} takes the others as missing"
            )
            return [Finding("mixed", "note", (name,), message)]
    return []


def _is_time_like(name: str, column: pa.ChunkedArray, kind: str | None, facts: Facts) -> bool:
    if kind == "date":
        return True
    if kind != "number" or facts.n_missing:
        return False
    words = set("".join(sign if sign.isalnum() else " " for sign in name.lower()).split())
    if not words & _TIME_WORDS or len(facts.different) < 20:
        return False
    values = cells.read(column, "number").values
    return bool((np.diff(values) >= 0).all() or (np.diff(values) <= 0).all())


def _why(draft: Column, kind: pa.DataType, role: Role | None) -> str:
    if role is not None:
        return f"it has the role {role!r}"
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_dictionary(kind):
        return "the file says that it is a category"
    if cells.is_text(value):
        return {"number": "texts that are numbers", "date": "texts that are dates"}.get(draft.kind, "texts")
    if pa.types.is_integer(value):
        return "whole numbers"
    return {"number": "numbers", "boolean": "truth values", "date": "dates"}.get(draft.kind, str(kind))


def _count_levels(facts: Facts, draft: Column | None) -> int:
    if draft is not None and draft.kind == "category":
        return len(cells.texts(facts.different).drop_null().unique())
    given = facts.different.drop_null()
    return len(given) - int(_is_absent(given).sum())


def _examples(facts: Facts) -> list[str]:
    if facts.different is None:
        return []
    first = cells.texts(facts.different.slice(0, _EXAMPLES + 3)).drop_null().to_pylist()[:_EXAMPLES]
    return [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in first]


GIVES_AWAY = 0.99
"""ROC-AUC of one column alone, or its mean recall of more than two classes, that is too good to be true."""
SAMPLE_ROWS = 100_000
"""Rows on which columns are judged alone."""
_FOLDS = 5
_BINS, _FEWEST_BINS, _ROWS_PER_BIN = 256, 8, 10
_FEWEST = 10
"""Rows of the smallest class from which on a column is judged alone."""


def sample_of(n_rows: int) -> npt.NDArray[np.intp]:
    """The rows on which columns are judged alone: all, or a random sample that is always the same."""
    if n_rows <= SAMPLE_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(0).choice(n_rows, SAMPLE_ROWS, replace=False))


def can_judge(classes: Codes) -> bool:
    """Whether there are rows enough of every class, and two classes."""
    counts = np.bincount(classes)
    return len(counts) > 1 and int(counts.min()) >= _FEWEST


def judged_alone(column: pa.ChunkedArray, draft: Column, classes: Codes) -> float:
    """How well one column alone separates the classes, out-of-fold, from 0 to 1.

    Cells fall into bins (levels, or at most 256 quantiles of numbers and dates); a row is scored by the class
    frequencies of its bin among the rows of the other folds. Of two classes it is the ROC-AUC of that score, or of the
    number itself where that is larger; of more the mean recall of the most frequent class of the bin.
    """
    values = None if draft.kind == "category" else _values(column, draft)
    if values is None:  # missing cells are a level
        levels = cells.texts(column).dictionary_encode()
        places = levels.indices.fill_null(len(levels.dictionary)).to_numpy(zero_copy_only=False)
    bins = places.astype(np.int64) if values is None else _quantile_bins(values)
    n_bins, n_classes = int(bins.max()) + 1, int(classes.max()) + 1
    folds = np.random.default_rng(0).permutation(len(bins)) % _FOLDS
    shares = np.bincount(classes, minlength=n_classes) / len(classes)
    scores = np.empty((len(bins), n_classes))
    for fold in range(_FOLDS):
        inside = folds == fold
        other = np.bincount(bins[~inside] * n_classes + classes[~inside], minlength=n_bins * n_classes)
        counts = other.reshape(n_bins, n_classes) + shares
        scores[inside] = (counts / counts.sum(axis=1, keepdims=True))[bins[inside]]
    if n_classes == 2:
        best = roc_auc(classes == 1, scores[:, 1])
        if values is not None and not np.isnan(values).any():
            ranked = roc_auc(classes == 1, values)
            best = max(best, ranked, 1 - ranked)
        return best
    hit = np.bincount(classes[scores.argmax(axis=1) == classes], minlength=n_classes)
    return float((hit / np.bincount(classes, minlength=n_classes)).mean())


def _values(column: pa.ChunkedArray, draft: Column) -> Array:
    """Numbers and dates as floats, NaN where they are missing."""
    read = cells.read(column, draft.kind, draft.spelling).values
    if draft.kind == "date":
        return np.where(np.isnat(read), np.nan, read.astype(np.int64).astype(np.float64))
    values = read.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) <= cells.LARGEST, values, np.nan)


def _quantile_bins(values: Array) -> npt.NDArray[np.int64]:
    """The bin of every number, from 0: one for each value where they are few, else quantiles; missing ones have one."""
    known = values[~np.isnan(values)]
    edges = np.unique(known)
    most = min(max(len(values) // _ROWS_PER_BIN, _FEWEST_BINS), _BINS)
    if len(edges) > most:
        edges = np.unique(np.quantile(known, np.arange(1, most) / most))
    places = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, places).astype(np.int64)


def missing_in_one_class(missing: Flags, classes: Codes) -> int | None:
    """The class that has all missing cells of a column, where that is no chance (1 in 10,000); else None."""
    n_missing = int(missing.sum())
    counts = np.bincount(classes[missing], minlength=int(classes.max()) + 1)
    code = int(counts.argmax())
    share = float((classes == code).mean())
    if n_missing == 0 or counts[code] < n_missing or share == 1 or n_missing * np.log(share) > np.log(1e-4):
        return None
    return code
