"""One column of a table as `qmedoid check` shows it: how it is read, why, and what is odd about its cells."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Flags
from qmedoid.exceptions import some_of
from qmedoid.model.contract import Column
from qmedoid.tables import cells
from qmedoid.tables._identifiers import IDENTIFIERS
from qmedoid.tables.kinds import Inferred
from qmedoid.tables.roles import Role

Codes = npt.NDArray[np.int32]

_EXAMPLES, _LONGEST = 3, 30
_MOSTLY_MISSING = 0.5
"""Share of missing cells from which on it is worth a word."""
_MIXED = 0.02
"""Share of numbers among texts from which on they are no accident."""
_TIME_WORDS = frozenset(("time", "date", "datetime", "timestamp", "year", "month", "day", "week", "ts"))


class Finding(NamedTuple):
    """Something that a reader should know before a fit.

    Attributes
    ----------
    code : str
        What it is, in a word that does not change.
    severity : {"problem", "note"}
        Whether a model would probably be wrong or misleading.
    columns : tuple of str
        The columns it is about, if any.
    message : str
        What was found, and what to do.
    """

    code: str
    severity: str
    columns: tuple[str, ...]
    message: str

    def as_dict(self) -> dict[str, Any]:
        """The finding for JSON."""
        return {**self._asdict(), "columns": list(self.columns)}


class Facts(NamedTuple):
    """What the cells of a column are.

    Attributes
    ----------
    codes : ndarray of shape (n,) or None
        The place of each cell among the different ones in their order of appearance, -1 where it is missing; None for
        lists and the like.
    different : pyarrow.Array or None
        The different cells.
    n_missing : int
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
    notes = [note for note in inferred.notes if note.startswith((f"column {name!r}:", f"column {name!r} "))]
    return {
        "name": name,
        "type": str(column.type),
        "kind": None if draft is None else draft.kind,
        "used": draft is not None,
        "role": role,
        "why": _why(draft, column.type, role) if draft is not None else inferred.left_out[name],
        "note": "; ".join(notes) or None,
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


def odd_spellings(different: pa.Array) -> list[list[str]]:
    """Groups of texts that differ by case or blanks alone."""
    trimmed = pc.utf8_trim_whitespace(cells.as_text(different).cast(pa.string())).unique().drop_null()
    keys = pc.replace_substring_regex(pc.utf8_lower(trimmed), r"\s+", " ").dictionary_encode()
    places = keys.indices.to_numpy(zero_copy_only=False)
    shared = np.flatnonzero(np.bincount(places, minlength=1) > 1)
    groups: dict[int, list[str]] = {int(place): [] for place in shared}
    for place, text in zip(*_where(places, shared, trimmed), strict=True):
        groups[place].append(text)
    return list(groups.values())


def _where(places: npt.NDArray[Any], shared: npt.NDArray[Any], texts: pa.Array) -> tuple[list[int], list[str]]:
    chosen = np.flatnonzero(np.isin(places, shared))
    return places[chosen].tolist(), texts.take(pa.array(chosen)).to_pylist()


def _left_out(name: str, shown: Mapping[str, Any]) -> list[Finding]:
    why = shown["why"]
    if shown["role"] == "ignore":
        return []
    if why in IDENTIFIERS:
        message = f"column {name!r} is left out: {why}; the role 'keep' uses it all the same"
        return [Finding("identifier", "note", (name,), message)]
    code = "empty" if why == "every cell is missing" else "constant" if why.startswith("every cell is ") else "not_read"
    return [Finding(code, "note", (name,), f"column {name!r} is left out: {why}")]


def _spellings(name: str, facts: Facts) -> list[Finding]:
    found = []
    text = cells.as_text(facts.different)
    padded = pc.fill_null(pc.not_equal(text, pc.utf8_trim_whitespace(text)), False).to_numpy(zero_copy_only=False)
    if padded.any():
        rows = int(np.append(padded, False)[facts.codes].sum())
        if rows:
            message = f"column {name!r}: {rows:,} cells have blanks before or after the text, which are taken away"
            found.append(Finding("blanks", "note", (name,), message))
    groups = odd_spellings(facts.different)
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
    readings = {"numbers": ~np.isnan(cells.numbers(text).values), "dates": ~np.isnat(cells.dates(text).values)}
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
    values = cells.numbers(column).values
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
    different = facts.different
    if draft is not None and draft.kind == "category":
        different = cells.texts(different).drop_null().unique()
        return len(different)
    return len(different.drop_null()) - int(_is_absent(different.drop_null()).sum())


def _examples(facts: Facts) -> list[str]:
    if facts.different is None:
        return []
    first = cells.texts(facts.different.slice(0, _EXAMPLES + 3)).drop_null().to_pylist()[:_EXAMPLES]
    return [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in first]
