"""One column of a table as `qmedoid check` shows it: how it is read and why, what is odd, and how it predicts alone."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import some_of
from qmedoid.metrics.classification import roc_auc
from qmedoid.model.contract import Column
from qmedoid.tables import cells
from qmedoid.tables.documents import CheckedColumnDict
from qmedoid.tables.kinds import Inferred
from qmedoid.tables.roles import IDENTIFIERS, Role
from qmedoid.tables.sentinels import Sentinels, quoted

Codes = npt.NDArray[np.int32]
_EXAMPLES, _LONGEST = 3, 30
_MOSTLY_MISSING = 0.5
"""Share of missing cells from which on it is worth a word."""
_MIXED = 0.02
"""Share of numbers among texts from which on they are no accident."""
_TIME_WORDS = frozenset(("time", "date", "datetime", "timestamp", "year", "month", "day", "week", "ts"))
_GIVES_AWAY = 0.99
"""ROC-AUC of one column alone, or its mean recall of more than two classes, that is too good to be true."""
_FOLDS = 5
_BINS, _FEWEST_BINS, _ROWS_PER_BIN = 256, 8, 10
_CHANCE = 1e-4
"""Probability below which it is no chance that all missing cells are of one class."""


class Finding(NamedTuple):
    """Something that a reader should know before a fit: a code that does not change, and what to do.

    The severity is "problem" where a model would probably be wrong or misleading, else "note".
    """

    code: str
    message: str
    columns: tuple[str, ...] = ()
    severity: Literal["problem", "note"] = "note"


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
    """Which of the different cells mean none: NaN, and texts of blanks."""
    if pa.types.is_floating(different.type):
        return np.asarray(np.isnan(different.to_numpy(zero_copy_only=False)))
    if cells.is_text(different.type):
        return np.asarray(cells.texts(different).is_null().to_numpy(zero_copy_only=False))
    return np.zeros(len(different), dtype=bool)


def describe(
    name: str, column: pa.ChunkedArray, facts: Facts, inferred: Inferred, draft: Column | None, role: Role | None
) -> CheckedColumnDict:
    """A column as plain values, by what was inferred for it: its draft, or the reason to leave it out."""
    levels, examples = None, []
    if facts.codes is not None:
        is_category = draft is not None and draft.kind == "category"
        given = cells.texts(facts.different).unique() if is_category else facts.different
        given = given.drop_null()
        levels = len(given) - (0 if is_category else int(_is_absent(given).sum()))
        first = cells.texts(facts.different.slice(0, _EXAMPLES + 3)).drop_null().to_pylist()[:_EXAMPLES]
        examples = [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in first]
    return {
        "name": name,
        "type": str(column.type),
        "kind": None if draft is None else draft.kind,
        "used": draft is not None,
        "role": role,
        "why": _why(draft, column.type, role) if draft is not None else inferred.left_out[name],
        "note": inferred.notes.get(name),
        "levels": levels,
        "missing": facts.n_missing,
        "sentinels": [] if name not in inferred.sentinels else inferred.sentinels[name].as_dicts(),
        "examples": examples,
        "alone": None,
    }


def _why(draft: Column, kind: pa.DataType, role: Role | None) -> str:
    if role is not None:
        return f"it has the role {role!r}"
    if pa.types.is_dictionary(kind):
        return "the file says that it is a category"
    if cells.is_text(kind):
        return {"number": "texts that are numbers", "date": "texts that are dates"}.get(draft.kind, "texts")
    if pa.types.is_integer(kind):
        return "whole numbers"
    return {"number": "numbers", "boolean": "truth values", "date": "dates"}.get(draft.kind, str(kind))


def oddities(
    name: str, column: pa.ChunkedArray, facts: Facts, shown: Mapping[str, Any], sentinels: Sentinels | None
) -> list[Finding]:
    """What is odd about the cells of a column."""
    found = [] if shown["note"] is None else [Finding("reading", shown["note"], (name,))]
    why = shown["why"]
    if not shown["used"] and shown["role"] != "ignore":
        is_guess = why in IDENTIFIERS
        way_out = f"; --keep {quoted(name)} uses it (in Python roles={{{name!r}: 'keep'}})" if is_guess else ""
        message = f"column {name!r} is left out: {why}{way_out}"
        found.append(Finding("identifier" if is_guess else getattr(why, "code", "not_read"), message, (name,)))
    if sentinels is not None:
        found.append(Finding("sentinel", sentinels.message(name), (name,)))
    if shown["role"] == "ignore" or facts.codes is None:
        return found
    n = len(facts.codes)
    if n > facts.n_missing >= _MOSTLY_MISSING * n:
        message = f"column {name!r}: {facts.n_missing:,} of {n:,} cells are missing"
        found.append(Finding("mostly_missing", message, (name,)))
    if shown["kind"] == "category" and cells.is_text(facts.different.type):
        found += _spellings(name, facts)
        # Where the reading itself has a note, that says it.
        found += _mixed(name, facts) if shown["note"] is None and shown["role"] is None else []
    if shown["used"] and _is_time_like(name, column, shown["kind"], facts):
        message = (
            f"column {name!r} is about time: if the model will score later rows, test it on the latest ones "
            f"(fit --time-column {quoted(name)})"
        )
        found.append(Finding("time", message, (name,)))
    return found


def _spellings(name: str, facts: Facts) -> list[Finding]:
    """Blanks around texts, and texts that differ by case or blanks alone."""
    found = []
    text = cells.as_text(facts.different)
    padded = pc.fill_null(pc.not_equal(text, pc.utf8_trim_whitespace(text)), False).to_numpy(zero_copy_only=False)
    if rows := int(np.append(padded, False)[facts.codes].sum()):
        message = f"column {name!r}: {rows:,} cells have blanks before or after the text, which are taken away"
        found.append(Finding("blanks", message, (name,)))
    trimmed = pc.utf8_trim_whitespace(text.cast(pa.string())).unique().drop_null()
    keys = pc.replace_substring_regex(pc.utf8_lower(trimmed), r"\s+", " ").dictionary_encode()
    places = keys.indices.to_numpy(zero_copy_only=False)
    chosen = np.flatnonzero(np.isin(places, np.flatnonzero(np.bincount(places, minlength=1) > 1)))
    groups: dict[int, list[str]] = {}
    for place, level in zip(places[chosen].tolist(), trimmed.take(pa.array(chosen)).to_pylist(), strict=True):
        groups.setdefault(place, []).append(level)
    if groups:
        such = some_of([" and ".join(map(repr, groups[place][:4])) for place in sorted(groups)], 3)
        message = f"column {name!r}: levels differ by case or blanks only: {such}; they are different levels in a fit"
        found.append(Finding("spellings", message, (name,)))
    return found


def _mixed(name: str, facts: Facts) -> list[Finding]:
    """Numbers, or dates, among texts."""
    text = cells.texts(facts.different)
    codes = np.asarray(facts.codes)
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
            return [Finding("mixed", message, (name,))]
    return []


def _is_time_like(name: str, column: pa.ChunkedArray, kind: str | None, facts: Facts) -> bool:
    if kind != "number" or facts.n_missing:
        return kind == "date"
    words = set("".join(sign if sign.isalnum() else " " for sign in name.lower()).split())
    if not words & _TIME_WORDS or len(facts.different) < 20:
        return False
    steps = np.diff(cells.read(column, "number").values)
    return bool((steps >= 0).all() or (steps <= 0).all())


def leaks(
    draft: Column, facts: Facts, alone: float | None, classes: Codes, labels: pa.ChunkedArray, target: str
) -> list[Finding]:
    """Whether a column gives the class away, by its cells or by where they are missing."""
    name, codes = draft.name, np.asarray(facts.codes)
    way_out = "ignore it unless it is known before the class is"
    if not facts.n_missing and np.array_equal(codes, classes):
        message = f"column {name!r} is the target {target!r} in other words: {way_out}"
        return [Finding("target_copy", message, (name,), "problem")]
    if alone is not None and alone >= _GIVES_AWAY:
        figure = "ROC-AUC" if int(classes.max()) == 1 else "mean recall"
        message = f"column {name!r} alone separates the classes (out-of-fold {figure} {alone:.4f}): {way_out}"
        return [Finding("gives_away", message, (name,), "problem")]
    missing = classes[codes < 0]
    if not len(missing) or (missing != missing[0]).any():
        return []
    share = float((classes == missing[0]).mean())
    if share == 1 or len(missing) * np.log(share) > np.log(_CHANCE):
        return []
    label = labels[int(np.flatnonzero(classes == missing[0])[0])].as_py()
    message = f"column {name!r} is missing in {facts.n_missing:,} rows, all of class {label!r}: {way_out}"
    is_most = 2 * len(missing) >= share * len(classes)
    return [Finding("missing_by_class", message, (name,), "problem" if is_most else "note")]


def judged_alone(column: pa.ChunkedArray, draft: Column, classes: Codes) -> float:
    """How well one column alone separates the classes, out-of-fold, from 0 to 1.

    Cells fall into bins (levels, or at most 256 quantiles of numbers and dates); a row is scored by the class
    frequencies of its bin among the rows of the other folds. For two classes it is the ROC-AUC of that score, or of the
    number itself where that is larger; for more the mean recall of the most frequent class of the bin.
    """
    values = None if draft.kind == "category" else _values(column, draft)
    if values is None:  # missing cells are a level
        levels = cells.texts(column).dictionary_encode()
        places = levels.indices.fill_null(len(levels.dictionary)).to_numpy(zero_copy_only=False)
    bins = places.astype(np.int64) if values is None else _quantile_bins(values)
    n_bins, n_classes = int(bins.max()) + 1, int(classes.max()) + 1
    folds = np.random.default_rng(0).permutation(len(bins)) % _FOLDS
    totals = np.bincount(classes, minlength=n_classes)
    scores = np.empty((len(bins), n_classes))
    for fold in range(_FOLDS):
        inside = folds == fold
        other = np.bincount(bins[~inside] * n_classes + classes[~inside], minlength=n_bins * n_classes)
        counts = other.reshape(n_bins, n_classes) + totals / len(classes)
        scores[inside] = (counts / counts.sum(axis=1, keepdims=True))[bins[inside]]
    if n_classes == 2:
        best = roc_auc(classes == 1, scores[:, 1])
        if values is not None and not np.isnan(values).any():
            ranked = roc_auc(classes == 1, values)
            best = max(best, ranked, 1 - ranked)
        return best
    hit = np.bincount(classes[scores.argmax(axis=1) == classes], minlength=n_classes)
    return float((hit / totals).mean())


def _values(column: pa.ChunkedArray, draft: Column) -> Array:
    """Numbers and dates as floats, NaN where they are missing."""
    read = cells.read_as(column, draft).values
    if draft.kind == "date":
        return np.where(np.isnat(read), np.nan, read.astype(np.int64).astype(np.float64))
    values = read.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(values) <= cells.LARGEST, values, np.nan)


def _quantile_bins(values: Array) -> npt.NDArray[np.int64]:
    """The bin of every number: one for each value where they are few, else quantiles; missing ones have their own."""
    known = values[~np.isnan(values)]
    edges = np.unique(known)
    most = min(max(len(values) // _ROWS_PER_BIN, _FEWEST_BINS), _BINS)
    if len(edges) > most:
        edges = np.unique(np.quantile(known, np.arange(1, most) / most))
    places = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, places).astype(np.int64)
