"""A table looked at before a fit: how its columns are read and why, and what would make a model wrong."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.metrics.classification import roc_auc
from qmedoid.model.contract import Column
from qmedoid.spelling import did_you_mean
from qmedoid.tables import cells
from qmedoid.tables.arrow import as_table
from qmedoid.tables.documents import (
    CheckDuplicatesDict,
    CheckedClassDict,
    CheckedColumnDict,
    CheckedTableDict,
    CheckFindingDict,
)
from qmedoid.tables.kinds import Inferred, infer_columns
from qmedoid.tables.roles import IDENTIFIERS, Role, check_roles, find_units, in_roles
from qmedoid.tables.row_hashes import equal_columns, mixed
from qmedoid.tables.sentinels import Sentinels, check_missing, quoted
from qmedoid.tables.targets import class_labels, target_notes

Codes = npt.NDArray[np.int32]
_STEP = np.uint64(0x9E3779B97F4A7C15)
SAMPLE_ROWS = 100_000  # on which columns are evaluated alone
_FEW = 10  # rows of a class below which figures about it say little, and columns are not evaluated alone
_EXAMPLES, _LONGEST = 3, 30
_MOSTLY_MISSING = 0.5  # share of missing cells from which on it is worth a word
_MIXED = 0.02  # share of numbers among texts from which on they are no accident
_TIME_WORDS = frozenset(("time", "date", "datetime", "timestamp", "year", "month", "day", "week", "ts"))
_GIVES_AWAY = 0.99  # ROC-AUC of one column, or its mean recall of more than two classes, too good to be true
_FOLDS = 5
_BINS, _FEWEST_BINS, _ROWS_PER_BIN = 256, 8, 10
_CHANCE = 1e-4  # probability below which it is no chance that all missing cells are of one class


def check_table(
    data: Any,
    target: str | None = None,
    *,
    roles: Mapping[str, Role] | None = None,
    decimal: str | None = None,
    date_order: str | None = None,
    missing: Mapping[str, Sequence[Any]] | None = None,
) -> CheckedTableDict:
    """Look at a table before any fit: how every column is read and why, and what is odd about it.

    Parameters
    ----------
    data : data frame, Arrow table, dict of columns or array of shape (n, M)
    target : str or None, default=None
        Column that holds the classes. Without it nothing is said about classes.
    roles, decimal, date_order, missing
        What columns are, how texts are read that do not show it, and values that stand for missing cells, by column; as
        of `MedoidClassifier`.

    Returns
    -------
    dict
        ``rows``, ``target`` and ``classes``; ``columns``, each with ``name``, ``type``, ``kind``, ``used``, ``role``,
        ``why``, ``note``, ``levels``, ``missing``, ``sentinels`` (values that may stand for missing cells),
        ``examples`` and ``alone`` (how well it separates the classes alone, on ``judged_rows`` rows); ``duplicates``;
        ``findings``, each with ``code``, ``severity``, ``columns`` and ``message``; and ``problems``, how many of
        these are problems.

    Examples
    --------
    >>> import qmedoid
    >>> report = qmedoid.check_table({"paid": [1, 2, 2, 9], "town": ["A", "a", "B", "B"]})
    >>> [(column["name"], column["kind"]) for column in report["columns"]]
    [('paid', 'number'), ('town', 'category')]
    >>> [finding["code"] for finding in report["findings"]]
    ['spellings']

    See Also
    --------
    MedoidClassifier : fits such a table; it reads columns in the same way.
    """
    table = as_table(data)
    if target is not None and target not in table.column_names:
        names, hint = some_of([repr(name) for name in table.column_names]), did_you_mean(target, table.column_names)
        raise ParameterError(f"The target {target!r} is not a column.{hint} The columns are {names}.")
    asked = check_roles(("The 'roles' parameter", roles), names=table.column_names, target=target)
    values = check_missing("The 'missing' parameter", missing, names=table.column_names, target=target)
    return check_rows(in_roles(table, asked), target, asked, decimal=decimal, date_order=date_order, missing=values)


def check_rows(
    table: pa.Table,
    target: str | None,
    roles: Mapping[str, Role],
    *,
    decimal: str | None = None,
    date_order: str | None = None,
    missing: Mapping[str, Sequence[Any]] | None = None,
    first_row: str = "the first row",
) -> CheckedTableDict:
    """The report about a table whose categories by role are texts already; its first row is called `first_row`."""
    if table.num_rows == 0:
        raise DataError("The table has no rows: there is nothing to check.")
    n_rows, columns, findings = table.num_rows, list[CheckedColumnDict](), list[CheckFindingDict]()
    if (units := find_units(table, roles)) is not None:
        message = units.message(first_row)
        findings.append(finding("units", message, *units.texts, severity="problem" if units.is_sure else "note"))
    counted = list[CheckedClassDict]()
    table, labels = (table, None) if target is None else _labeled(table, target, findings)
    classes = None
    if labels is not None:
        classes, counted = _classes(labels, findings, str(target))
    how: Any = {"roles": roles, "decimal": decimal, "date_order": date_order, "missing": missing}
    inferred = infer_columns(table, skip={target} if target else (), **how)
    table = cells.with_missing_values_out(table, inferred.columns)
    drafts = {column.name: column for column in inferred.columns}
    hashes, digests = np.zeros(table.num_rows, dtype=np.uint64), dict[str, bytes]()
    judged = np.arange(table.num_rows)
    if len(judged) > SAMPLE_ROWS:
        judged = np.sort(np.random.default_rng(0).choice(len(judged), SAMPLE_ROWS, replace=False))
    n_judged = [] if classes is None else np.bincount(classes[judged]).tolist()
    judge = len(n_judged) > 1 and min(n_judged) >= _FEW
    for name in (name for name in table.column_names if name != target):
        # Column by column, so that no more than one is held in addition to the table.
        column = table[name]
        facts = facts_of(column)
        shown = describe(name, column, facts, inferred, drafts.get(name), roles.get(name))
        columns.append(shown)
        findings += oddities(name, column, facts, shown, inferred.sentinels.get(name))
        if name not in drafts or facts.codes is None:
            continue
        hashes = mixed(hashes * _STEP + (facts.codes.astype(np.int64) + 2).astype(np.uint64))
        # Which rows of a column have equal cells, whatever the cells are.
        digests[name] = hashlib.blake2b(np.ascontiguousarray(facts.codes).tobytes(), digest_size=16).digest()
        if classes is not None and judge:
            shown["alone"] = judged_alone(column.take(pa.array(judged)), drafts[name], classes[judged])
            findings += leaks(drafts[name], facts, shown["alone"], classes, labels, str(target))
    duplicates = _duplicates(table, hashes, digests, classes, findings)
    if not digests:
        findings.append(finding("nothing_left", "no column is left to learn from", severity="problem"))
    findings.sort(key=lambda one: one["severity"] != "problem")
    return {
        "rows": n_rows,
        "target": target,
        "classes": counted,
        "columns": columns,
        "judged_rows": len(judged) if judge else 0,
        "duplicates": duplicates,
        "findings": findings,
        "problems": sum(one["severity"] == "problem" for one in findings),
    }


def _labeled(table: pa.Table, target: str, findings: list[CheckFindingDict]) -> tuple[pa.Table, Any]:
    """The rows that have a class, as a fit takes them, and their labels; None where the target holds no classes."""
    try:
        rows, labels = class_labels(table[target], target)
        if len(rows) < table.num_rows:
            message = f"{table.num_rows - len(rows):,} of {table.num_rows:,} rows have no class in {target!r}"
            findings.append(finding("unlabeled", f"{message}: a fit leaves them out", target))
        if not len(rows):
            findings.append(finding("no_classes", f"no row has a class in {target!r}", target, severity="problem"))
            return table, None
        return table.take(pa.array(rows)) if len(rows) < table.num_rows else table, labels
    except (DataError, pa.ArrowNotImplementedError, TypeError) as error:
        such = f"the target {target!r} is of type {table[target].type}: give a column of names or whole numbers"
        such = str(error) if isinstance(error, DataError) else such
        findings.append(finding("target", such, target, severity="problem"))
    return table, None


def _classes(
    labels: pa.ChunkedArray, findings: list[CheckFindingDict], target: str
) -> tuple[Codes, list[CheckedClassDict]]:
    """Class codes in the order of appearance; the classes with their rows, and what is odd about them."""
    encoded = labels.combine_chunks().dictionary_encode()
    codes: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    counts = np.bincount(codes, minlength=len(encoded.dictionary))
    names = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=lambda code: (-counts[code], str(names[code])))
    counted: list[CheckedClassDict] = [{"class": names[code], "rows": int(counts[code])} for code in order]
    if len(names) < 2:
        message = f"every row is of the class {names[0]!r}: a classifier needs at least 2 classes"
        findings.append(finding("one_class", message, target, severity="problem"))
    notes = target_notes(names, counts.tolist())
    findings += [finding(code, message, target, severity="problem") for code, message in notes]
    few = [f"{name!r} ({count})" for name, count in zip(names, counts.tolist(), strict=True) if 1 < count < _FEW]
    if few and not any(code == "target_quantity" for code, _ in notes):
        message = f"classes of {target!r} with few rows: {some_of(few, 5)}; figures about them will be rough"
        findings.append(finding("few_rows", message, target))
    return codes, counted


def _duplicates(
    table: pa.Table,
    hashes: npt.NDArray[np.uint64],
    digests: Mapping[str, bytes],
    classes: Codes | None,
    findings: list[CheckFindingDict],
) -> CheckDuplicatesDict:
    """Equal rows and equal columns among those that are learnt from; rows of one hash are taken as equal."""
    repeated, contrary = 0, 0
    if digests:
        _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        repeated = len(places) - len(counts)
        if classes is not None and repeated:
            low = np.full(len(counts), np.iinfo(np.int32).max, dtype=np.int32)
            high = np.full(len(counts), -1, dtype=np.int32)
            np.minimum.at(low, places, classes)
            np.maximum.at(high, places, classes)
            contrary = int((low < high)[places].sum())
    if repeated:
        such = f"{repeated:,} of {table.num_rows:,} rows are equal to an earlier one"
        findings.append(finding("equal_rows", f"{such} in every column that is used"))
    if contrary:
        such = f"{contrary:,} rows are equal to a row of another class"
        findings.append(finding("contrary_rows", f"{such} in every column that is used"))
    groups = equal_columns(table, digests)
    for group in groups:
        message = f"columns {some_of([repr(name) for name in group], 5)} are equal: one of them is enough"
        findings.append(finding("equal_columns", message, *group))
    return {"rows": repeated, "contrary_rows": contrary, "columns": groups}


def finding(code: str, message: str, *columns: str, severity: Literal["problem", "note"] = "note") -> CheckFindingDict:
    """Something that a reader should know before a fit: a code that does not change, and what to do.

    The severity is "problem" where a model would probably be wrong or misleading, else "note".
    """
    return {"code": code, "severity": severity, "columns": list(columns), "message": message}


class CellCodes(NamedTuple):
    """The index of each cell among the different ones, -1 where it is missing; both are None for lists and the like."""

    codes: Codes | None
    different: Any
    n_missing: int


def facts_of(column: pa.ChunkedArray) -> CellCodes:
    """Codes, different cells and missing cells of a column."""
    array = cells.one_chunk(column)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary.take(array.indices)
    try:
        encoded = array.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return CellCodes(None, None, int(array.null_count))
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    absent = _is_absent(encoded.dictionary)
    if absent.any():
        codes = np.where(np.append(absent, False)[codes], np.int32(-1), codes)
    return CellCodes(codes, encoded.dictionary, int((codes < 0).sum()))


def _is_absent(different: pa.Array) -> Flags:
    """Which of the different cells mean none: NaN, and texts of blanks."""
    if pa.types.is_floating(different.type):
        return np.asarray(np.isnan(different.to_numpy(zero_copy_only=False)))
    if cells.is_text(different.type):
        return np.asarray(cells.texts(different).is_null().to_numpy(zero_copy_only=False))
    return np.zeros(len(different), dtype=bool)


def describe(
    name: str, column: pa.ChunkedArray, facts: CellCodes, inferred: Inferred, draft: Column | None, role: Role | None
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
    name: str, column: pa.ChunkedArray, facts: CellCodes, shown: Mapping[str, Any], sentinels: Sentinels | None
) -> list[CheckFindingDict]:
    """What is odd about the cells of a column."""
    found = [] if shown["note"] is None else [finding("reading", shown["note"], name)]
    why = shown["why"]
    if not shown["used"] and shown["role"] != "ignore":
        is_guess = why in IDENTIFIERS
        way_out = f"; --keep {quoted(name)} uses it (in Python roles={{{name!r}: 'keep'}})" if is_guess else ""
        message = f"column {name!r} is left out: {why}{way_out}"
        found.append(finding("identifier" if is_guess else getattr(why, "code", "not_read"), message, name))
    if sentinels is not None:
        found.append(finding("sentinel", sentinels.message(name), name))
    if shown["role"] == "ignore" or facts.codes is None:
        return found
    n = len(facts.codes)
    if n > facts.n_missing >= _MOSTLY_MISSING * n:
        message = f"column {name!r}: {facts.n_missing:,} of {n:,} cells are missing"
        found.append(finding("mostly_missing", message, name))
    if shown["kind"] == "category" and cells.is_text(facts.different.type):
        found += _spellings(name, facts)
        # Where the reading itself has a note, that says it.
        found += _mixed(name, facts) if shown["note"] is None and shown["role"] is None else []
    if shown["used"] and _is_time_like(name, column, shown["kind"], facts):
        message = (
            f"column {name!r} is about time: if the model will score later rows, test it on the latest ones "
            f"(fit --time-column {quoted(name)})"
        )
        found.append(finding("time", message, name))
    return found


def _spellings(name: str, facts: CellCodes) -> list[CheckFindingDict]:
    """Blanks around texts, and texts that differ by case or blanks alone."""
    found = []
    text = cells.as_text(facts.different)
    padded = pc.fill_null(pc.not_equal(text, pc.utf8_trim_whitespace(text)), False).to_numpy(zero_copy_only=False)
    if rows := int(np.append(padded, False)[facts.codes].sum()):
        message = f"column {name!r}: {rows:,} cells have blanks before or after the text, which are taken away"
        found.append(finding("blanks", message, name))
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
        found.append(finding("spellings", message, name))
    return found


def _mixed(name: str, facts: CellCodes) -> list[CheckFindingDict]:
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
            return [finding("mixed", message, name)]
    return []


def _is_time_like(name: str, column: pa.ChunkedArray, kind: str | None, facts: CellCodes) -> bool:
    if kind != "number" or facts.n_missing:
        return kind == "date"
    words = set("".join(sign if sign.isalnum() else " " for sign in name.lower()).split())
    if not words & _TIME_WORDS or len(facts.different) < 20:
        return False
    steps = np.diff(cells.read(column, "number").values)
    return bool((steps >= 0).all() or (steps <= 0).all())


def leaks(
    draft: Column, facts: CellCodes, alone: float | None, classes: Codes, labels: pa.ChunkedArray, target: str
) -> list[CheckFindingDict]:
    """Whether a column gives the class away, by its cells or by where they are missing."""
    name, codes = draft.name, np.asarray(facts.codes)
    way_out = "ignore it unless it is known before the class is"
    if not facts.n_missing and np.array_equal(codes, classes):
        message = f"column {name!r} is the target {target!r} in other words: {way_out}"
        return [finding("target_copy", message, name, severity="problem")]
    if alone is not None and alone >= _GIVES_AWAY:
        figure = "ROC-AUC" if int(classes.max()) == 1 else "mean recall"
        message = f"column {name!r} alone separates the classes (out-of-fold {figure} {alone:.4f}): {way_out}"
        return [finding("gives_away", message, name, severity="problem")]
    missing = classes[codes < 0]
    if not len(missing) or (missing != missing[0]).any():
        return []
    share = float((classes == missing[0]).mean())
    if share == 1 or len(missing) * np.log(share) > np.log(_CHANCE):
        return []
    label = labels[int(np.flatnonzero(classes == missing[0])[0])].as_py()
    message = f"column {name!r} is missing in {facts.n_missing:,} rows, all of class {label!r}: {way_out}"
    is_most = 2 * len(missing) >= share * len(classes)
    return [finding("missing_by_class", message, name, severity="problem" if is_most else "note")]


def judged_alone(column: pa.ChunkedArray, draft: Column, classes: Codes) -> float:
    """How well one column alone separates the classes, out-of-fold, from 0 to 1.

    Cells fall into bins (levels, or at most 256 quantiles of numbers and dates); a row is scored by the class
    frequencies of its bin among the rows of the other folds. For two classes it is the ROC-AUC of that score, or of the
    number itself where that is larger; for more the mean recall of the most frequent class of the bin.
    """
    values = None if draft.kind == "category" else cells.floats(cells.read_as(column, draft).values)
    if values is not None and draft.kind != "date":
        values = np.where(cells.is_usable(values), values, np.nan)
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


def _quantile_bins(values: Array) -> npt.NDArray[np.int64]:
    """The bin of every number: one for each value where they are few, else quantiles; missing ones have their own."""
    known = values[~np.isnan(values)]
    edges = np.unique(known)
    most = min(max(len(values) // _ROWS_PER_BIN, _FEWEST_BINS), _BINS)
    if len(edges) > most:
        edges = np.unique(np.quantile(known, np.arange(1, most) / most))
    places = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, places).astype(np.int64)
