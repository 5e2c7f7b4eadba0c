"""A table looked at before a fit: how its columns are read and why, and what would make a model wrong."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.geometry.row_groups import mixed
from qmedoid.metrics.classification import roc_auc
from qmedoid.model.contract import Column
from qmedoid.spelling import did_you_mean
from qmedoid.tables import cells
from qmedoid.tables.arrow import as_table
from qmedoid.tables.dataset import check_roles, in_roles
from qmedoid.tables.documents import (
    CheckDuplicatesDict,
    CheckedClassDict,
    CheckedColumnDict,
    CheckedTableDict,
    CheckFindingDict,
)
from qmedoid.tables.kinds import CONSTANT, EMPTY, FREE_TEXT, IDENTIFIERS, Inferred, are_times_of_day, infer_columns
from qmedoid.tables.roles import Role, Sentinels, check_missing, quoted
from qmedoid.tables.targets import class_labels, target_notes

Codes = npt.NDArray[np.int32]
_STEP = np.uint64(0x9E3779B97F4A7C15)
SAMPLE_ROWS = 100_000  # on which columns are evaluated alone
_FEW = 10  # rows of a class below which figures about it say little, and columns are not evaluated alone
_EXAMPLES, _LONGEST = 3, 30
_MOSTLY_MISSING = 0.5  # share of missing cells from which on it is worth a word
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
) -> CheckedTableDict:
    """The report about a table whose categories by role are texts already."""
    if table.num_rows == 0:
        raise DataError("The table has no rows: there is nothing to check.")
    how: Any = {"roles": roles, "decimal": decimal, "date_order": date_order, "missing": missing}
    check = _Check(str(target))
    n_rows, counted = table.num_rows, list[CheckedClassDict]()
    if target is not None:
        table, counted = check.classes_of(table)
    inferred = infer_columns(table, skip={target} if target else (), **how)
    table = cells.with_missing_values_out(table, inferred.columns)
    drafts = {column.name: column for column in inferred.columns}
    columns = list[CheckedColumnDict]()
    hashes = np.zeros(table.num_rows, dtype=np.uint64)
    judged = np.arange(table.num_rows)
    if len(judged) > SAMPLE_ROWS:
        judged = np.sort(np.random.default_rng(0).choice(len(judged), SAMPLE_ROWS, replace=False))
    n_judged = [] if check.codes is None else np.bincount(check.codes[judged]).tolist()
    judge = len(n_judged) > 1 and min(n_judged) >= _FEW
    for name in (name for name in table.column_names if name != target):
        # Column by column, so that no more than one is held in addition to the table.
        column, draft = table[name], drafts.get(name)
        codes, different, n_missing = _cell_codes(column)
        # Times of day come again every day: they order no rows.
        is_clock = False
        if draft is not None and draft.kind == "date" and different is not None:
            is_clock = are_times_of_day(cells.read(different, "date", draft.spelling).values)
        shown = _described(name, column, different, n_missing, inferred, draft, roles.get(name), is_clock=is_clock)
        columns.append(shown)
        check.reading(shown, inferred.sentinels.get(name))
        if codes is None:
            continue
        if shown["role"] != "ignore":
            check.cells(shown, len(codes), different, is_clock=is_clock)
        if draft is None:
            continue
        hashes = mixed(hashes * _STEP + (codes.astype(np.int64) + 2).astype(np.uint64))
        if check.codes is not None and judge:
            shown["alone"] = judged_alone(column.take(pa.array(judged)), draft, check.codes[judged])
            check.leaks(shown, codes)
    duplicates: CheckDuplicatesDict = {"rows": 0, "contrary_rows": 0}
    if drafts:
        duplicates = check.duplicates(hashes)
    else:
        check.add("nothing_left", "no column is left to learn from", is_problem=True)
    check.findings.sort(key=lambda one: one["severity"] != "problem")
    return {
        "rows": n_rows,
        "target": target,
        "classes": counted,
        "columns": columns,
        "judged_rows": len(judged) if judge else 0,
        "duplicates": duplicates,
        "findings": check.findings,
        "problems": sum(one["severity"] == "problem" for one in check.findings),
    }


class _Check:
    """What is found in a table, and the codes and labels of its classes; None where the target holds none."""

    def __init__(self, target: str) -> None:
        self.target, self.findings = target, list[CheckFindingDict]()
        self.codes: Codes | None = None
        self.labels: Any = None

    def add(self, code: str, message: str, *columns: str, is_problem: bool = False) -> None:
        """Something to know before a fit: a code that does not change, and what to do.

        It is a problem where a model would probably be wrong or misleading, else a note.
        """
        severity: Literal["problem", "note"] = "problem" if is_problem else "note"
        self.findings.append({"code": code, "severity": severity, "columns": list(columns), "message": message})

    def classes_of(self, table: pa.Table) -> tuple[pa.Table, list[CheckedClassDict]]:
        """The rows that have a class, as a fit takes them, and the classes, the most frequent first."""
        target = self.target
        try:
            rows, labels = class_labels(table[target], target)
        except (DataError, pa.ArrowNotImplementedError, TypeError) as error:
            such = f"the target {target!r} is of type {table[target].type}: give a column of names or whole numbers"
            self.add("target", str(error) if isinstance(error, DataError) else such, target, is_problem=True)
            return table, []
        if len(rows) < table.num_rows:
            message = f"{table.num_rows - len(rows):,} of {table.num_rows:,} rows have no class in {target!r}"
            self.add("unlabeled", f"{message}: a fit leaves them out", target)
        if not len(rows):
            self.add("no_classes", f"no row has a class in {target!r}", target, is_problem=True)
            return table, []
        encoded = labels.combine_chunks().dictionary_encode()
        self.labels, self.codes = labels, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        names, counts = encoded.dictionary.to_pylist(), np.bincount(self.codes).tolist()
        if len(names) < 2:
            message = f"every row is of the class {names[0]!r}: a classifier needs at least 2 classes"
            self.add("one_class", message, target, is_problem=True)
        notes = target_notes(names, counts)
        for code, message in notes:
            self.add(code, message, target, is_problem=code != "target_codes")
        few = [f"{name!r} ({count})" for name, count in zip(names, counts, strict=True) if 1 < count < _FEW]
        if few and not any(code == "target_quantity" for code, _ in notes):
            message = f"classes of {target!r} with few rows: {some_of(few, 5)}; figures about them will be rough"
            self.add("few_rows", message, target)
        counted: list[CheckedClassDict] = [
            {"class": name, "rows": count} for name, count in zip(names, counts, strict=True)
        ]
        table = table.take(pa.array(rows)) if len(rows) < table.num_rows else table
        return table, sorted(counted, key=lambda one: (-one["rows"], str(one["class"])))

    def duplicates(self, hashes: npt.NDArray[np.uint64]) -> CheckDuplicatesDict:
        """Rows that are equal in the columns that are learned from; rows of one hash are taken as equal."""
        _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        repeated, contrary = len(places) - len(counts), 0
        if self.codes is not None and repeated:
            low, high = np.full(len(counts), np.iinfo(np.int32).max, dtype=np.int32), np.zeros(len(counts), np.int32)
            np.minimum.at(low, places, self.codes)
            np.maximum.at(high, places, self.codes)
            contrary = int((low < high)[places].sum())
        such = "in every column that is used"
        if repeated:
            self.add("equal_rows", f"{repeated:,} of {len(places):,} rows are equal to an earlier one {such}")
        if contrary:
            self.add("contrary_rows", f"{contrary:,} rows are equal to a row of another class {such}")
        return {"rows": repeated, "contrary_rows": contrary}

    def reading(self, shown: CheckedColumnDict, sentinels: Sentinels | None) -> None:
        """How a column is read, and why one is left out."""
        name, why = shown["name"], shown["why"]
        if shown["note"] is not None:
            self.add("reading", shown["note"], name)
        if not shown["used"] and shown["role"] != "ignore":
            is_guess = why in IDENTIFIERS
            way_out = f"; --keep {quoted(name)} uses it (in Python roles={{{name!r}: 'keep'}})" if is_guess else ""
            code = "identifier" if is_guess else "constant" if why.startswith(CONSTANT) else "not_read"
            code = "free_text" if why == FREE_TEXT else code
            code = "empty" if why.startswith(EMPTY) else code
            self.add(code, f"column {name!r} is left out: {why}{way_out}", name)
        if sentinels is not None:
            self.add("sentinel", sentinels.message(name), name)

    def cells(self, shown: CheckedColumnDict, n: int, different: pa.Array, *, is_clock: bool) -> None:
        """What is odd about the cells of a column."""
        name, n_missing = shown["name"], shown["missing"]
        if n > n_missing >= _MOSTLY_MISSING * n:
            self.add("mostly_missing", f"column {name!r}: {n_missing:,} of {n:,} cells are missing", name)
        if shown["kind"] == "category" and different.type in cells.TEXT_TYPES:
            levels = pc.utf8_trim_whitespace(cells.as_text(different).cast(pa.string())).unique().drop_null()
            keys = pc.replace_substring_regex(pc.utf8_lower(levels), r"\s+", " ")
            groups: dict[str, list[str]] = {}
            for key, level in zip(keys.to_pylist(), levels.to_pylist(), strict=True):
                groups.setdefault(key, []).append(level)
            alike = [" and ".join(map(repr, group[:4])) for group in groups.values() if len(group) > 1]
            if alike:
                such = f"levels differ by case or blanks only: {some_of(alike, 3)}"
                self.add("spellings", f"column {name!r}: {such}; they are different levels in a fit", name)
        if shown["used"] and shown["kind"] == "date" and not is_clock:
            message = (
                f"column {name!r} is about time: if the model will score later rows, test it on the latest ones "
                f"(fit --time-column {quoted(name)})"
            )
            self.add("time", message, name)

    def leaks(self, shown: CheckedColumnDict, codes: Codes) -> None:
        """Whether a column gives the class away, by its cells or by where they are missing."""
        assert self.codes is not None, "there are classes"
        name, alone, classes = shown["name"], shown["alone"], self.codes
        way_out = "ignore it unless it is known before the class is"
        if not shown["missing"] and np.array_equal(codes, classes):
            message = f"column {name!r} is the target {self.target!r} in other words: {way_out}"
            self.add("target_copy", message, name, is_problem=True)
            return
        if alone is not None and alone >= _GIVES_AWAY:
            figure = "ROC-AUC" if int(classes.max()) == 1 else "mean recall"
            message = f"column {name!r} alone separates the classes (out-of-fold {figure} {alone:.4f}): {way_out}"
            self.add("gives_away", message, name, is_problem=True)
            return
        missing = classes[codes < 0]
        if not len(missing) or (missing != missing[0]).any():
            return
        share = float((classes == missing[0]).mean())
        if share == 1 or len(missing) * np.log(share) > np.log(_CHANCE):
            return
        label = self.labels[int(np.flatnonzero(classes == missing[0])[0])].as_py()
        message = f"column {name!r} is missing in {len(missing):,} rows, all of class {label!r}: {way_out}"
        self.add("missing_by_class", message, name, is_problem=2 * len(missing) >= share * len(classes))


def _cell_codes(column: pa.ChunkedArray) -> tuple[Codes | None, pa.Array | None, int]:
    """The index of each cell among the different ones, -1 where it is missing; these, None of lists; missing cells."""
    array = cells.decoded(column)
    try:
        encoded = array.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return None, None, int(array.null_count)
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    absent = _is_absent(encoded.dictionary)
    if absent.any():
        codes = np.where(np.append(absent, False)[codes], np.int32(-1), codes)
    return codes, encoded.dictionary, int((codes < 0).sum())


def _is_absent(different: pa.Array) -> Flags:
    """Which of the different cells mean none: NaN, and texts of blanks."""
    if pa.types.is_floating(different.type):
        return np.asarray(np.isnan(different.to_numpy(zero_copy_only=False)))
    if different.type in cells.TEXT_TYPES:
        return np.asarray(cells.texts(different).is_null().to_numpy(zero_copy_only=False))
    return np.zeros(len(different), dtype=bool)


def _described(
    name: str,
    column: pa.ChunkedArray,
    different: pa.Array | None,
    n_missing: int,
    inferred: Inferred,
    draft: Column | None,
    role: Role | None,
    *,
    is_clock: bool,
) -> CheckedColumnDict:
    """A column as plain values, by what was inferred for it: its draft, or the reason to leave it out."""
    levels, examples = None, []
    if different is not None:
        is_category = draft is not None and draft.kind == "category"
        given = cells.texts(different).unique() if is_category else different
        given = given.drop_null()
        levels = len(given) - (0 if is_category else int(_is_absent(given).sum()))
        first = cells.texts(different.slice(0, _EXAMPLES + 3)).drop_null().to_pylist()[:_EXAMPLES]
        examples = [text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…" for text in first]
    why, kind = inferred.left_out.get(name, ""), column.type
    if draft is not None:
        why = {"number": "numbers", "boolean": "truth values", "date": "dates"}.get(draft.kind, "texts")
        why = "times of day" if is_clock else why
        if role is not None:
            why = f"it has the role {role!r}"
        elif pa.types.is_dictionary(kind):
            why = "the file says that it is a category"
        elif kind in cells.TEXT_TYPES and draft.kind in ("number", "date"):
            why = f"texts that are {why}"
        elif pa.types.is_integer(kind):
            why = "whole numbers"
    return {
        "name": name,
        "type": str(column.type),
        "kind": None if draft is None else draft.kind,
        "used": draft is not None,
        "role": role,
        "why": why,
        "note": inferred.notes.get(name),
        "levels": levels,
        "missing": n_missing,
        "sentinels": [] if name not in inferred.sentinels else inferred.sentinels[name].as_dicts(),
        "examples": examples,
        "alone": None,
    }


def judged_alone(column: pa.ChunkedArray, draft: Column, classes: Codes) -> float:
    """How well one column alone separates the classes, out-of-fold, from 0 to 1.

    Cells fall into bins (levels, or at most 256 quantiles of numbers and dates); a row is scored by the class
    frequencies of its bin among the rows of the other folds. For two classes it is the ROC-AUC of that score, or of the
    number itself where that is larger; for more the mean recall of the most frequent class of the bin.
    """
    values = None if draft.kind == "category" else cells.floats(cells.read(column, draft).values)
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
