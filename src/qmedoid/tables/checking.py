"""A table looked at before a fit: how its columns are read and why, and what would make a model wrong."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Flags
from qmedoid.exceptions import DataError, some_of
from qmedoid.geometry.row_groups import mixed
from qmedoid.model.contract import Column
from qmedoid.tables import cells
from qmedoid.tables.documents import (
    CheckDuplicatesDict,
    CheckedClassDict,
    CheckedColumnDict,
    CheckedTableDict,
    CheckFindingDict,
)
from qmedoid.tables.kinds import (
    CONSTANT,
    EMPTY,
    FREE_TEXT,
    IDENTIFIERS,
    Inferred,
    alike_levels,
    are_times_of_day,
    infer_columns,
)
from qmedoid.tables.leaks import FEW, LEAKS, STRONG, figure_name, find_leaks, judged_alone
from qmedoid.tables.repeats import find_repeats
from qmedoid.tables.roles import Role, Sentinels, quoted
from qmedoid.tables.targets import class_labels, target_notes, unlabeled_note

Codes = npt.NDArray[np.int32]
_STEP = np.uint64(0x9E3779B97F4A7C15)
SAMPLE_ROWS = 100_000  # on which columns are evaluated alone
_EXAMPLES, _LONGEST = 3, 30
_MOSTLY_MISSING = 0.5  # share of missing cells from which on it is worth a word
_RANKED = 5  # columns that separate the classes best that are named
_MOST_CELLS = 100_000_000  # in which people who come back are looked for; of more a sample of the rows is taken


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
    table, alike = cells.in_one_look(table, {str(target), *(name for name, role in roles.items() if role == "ignore")})
    others = {name: values for name, values in (missing or {}).items() if name != target}
    how: Any = {"roles": roles, "decimal": decimal, "date_order": date_order, "missing": others}
    check = _Check(str(target))
    n_rows, counted = table.num_rows, list[CheckedClassDict]()
    if target is not None:
        table, counted = check.classes_of(table, (missing or {}).get(target, ()))
    inferred = infer_columns(table, skip={target} if target else (), notes=alike, **how)
    table = cells.with_missing_values_out(table, inferred.columns)
    drafts = {column.name: column for column in inferred.columns}
    columns = list[CheckedColumnDict]()
    hashes = np.zeros(table.num_rows, dtype=np.uint64)
    judged = np.arange(table.num_rows)
    if len(judged) > SAMPLE_ROWS:
        judged = np.sort(np.random.default_rng(0).choice(len(judged), SAMPLE_ROWS, replace=False))
    n_judged = [] if check.codes is None else np.bincount(check.codes[judged]).tolist()
    judge = len(n_judged) > 1 and min(n_judged) >= FEW
    groups = check.repeats(table, inferred)
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
            together = None if groups is None else groups[judged]
            some = table.select([name]).take(pa.array(judged))
            shown["alone"] = judged_alone(some, draft, check.codes[judged], together)
    check.leaks(table, inferred.columns, columns, roles, groups)
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
        "without": None,
    }


def too_good(report: CheckedTableDict) -> list[str]:
    """Columns of a report that say the class, or separate it well alone, the best first."""
    alone = {one["name"]: one["alone"] or 0.0 for one in report["columns"]}
    said = [one for one in report["findings"] if one["code"] == "strong" or one["code"] in LEAKS]
    names = {name for one in said for name in one["columns"] if one["severity"] == "problem" or one["code"] == "strong"}
    return sorted(names, key=lambda name: (-alone[name], name))


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

    def classes_of(self, table: pa.Table, missing: Sequence[Any]) -> tuple[pa.Table, list[CheckedClassDict]]:
        """The rows that have a class, as a fit takes them, and the classes, the most frequent first."""
        target = self.target
        try:
            rows, labels = class_labels(table[target], target, missing)
        except (DataError, pa.ArrowNotImplementedError, TypeError) as error:
            such = f"the target {target!r} is of type {table[target].type}: give a column of names or whole numbers"
            self.add("target", str(error) if isinstance(error, DataError) else such, target, is_problem=True)
            return table, []
        if len(rows) < table.num_rows:
            self.add("unlabeled", unlabeled_note(table[target], rows, target), target)
        if not len(rows):
            self.add("no_classes", f"no row has a class in {target!r}", target, is_problem=True)
            return table, []
        encoded = labels.combine_chunks().dictionary_encode()
        self.labels, self.codes = labels, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
        names, counts = encoded.dictionary.to_pylist(), np.bincount(self.codes).tolist()
        merged = len(table[target].take(pa.array(rows)).unique()) - len(names)
        if merged:
            message = f"{merged:,} of the classes in {target!r} differ from another by blanks or odd letters only"
            self.add("class_spellings", f"{message}, and are read as that", target)
        if len(names) < 2:
            message = f"every row is of the class {names[0]!r}: a classifier needs at least 2 classes"
            self.add("one_class", message, target, is_problem=True)
        notes = target_notes(names, counts)
        for code, message in notes:
            self.add(code, message, target, is_problem=code not in ("missing_word", "target_codes"))
        few = [f"{name!r} ({count})" for name, count in zip(names, counts, strict=True) if 1 < count < FEW]
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

    def repeats(self, table: pa.Table, inferred: Inferred) -> Codes | None:
        """Rows that belong together and share their class, and the groups that hold them, if there are some."""
        if self.codes is None or not inferred.columns:
            return None
        rows, most = np.arange(table.num_rows), _MOST_CELLS // len(inferred.columns)
        if is_part := len(rows) > most:
            rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
            table = table.take(pa.array(rows))
        places, codes = cells.cell_ranks(table, inferred.columns)[0], self.codes[rows].astype(np.intp)
        found = find_repeats(table, inferred.columns, places, codes, self.target)
        for one in found:
            named = [] if one.column is None else [one.column]
            message = one.message()
            if named:
                option = f"--group-column {quoted(named[0])}"
                message = message.replace(option, f"{option} (in Python groups=X[{named[0]!r}])")
            self.add(one.kind, message, *named, is_problem=one.kind != "near_rows")
        sure = [one.groups for one in found if one.is_sure and not is_part]
        return sure[0].astype(np.int32) if sure else None

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
        if shown["kind"] == "category" and (alike := alike_levels(name, different)) is not None:
            self.add("spellings", alike, name)
        if shown["used"] and shown["kind"] == "date" and not is_clock:
            message = (
                f"column {name!r} is about time: if the model will score later rows, test it on the latest ones "
                f"(fit --time-column {quoted(name)})"
            )
            self.add("time", message, name)

    def leaks(
        self,
        table: pa.Table,
        drafts: Sequence[Column],
        columns: Sequence[CheckedColumnDict],
        roles: Mapping[str, Role],
        groups: Codes | None,
    ) -> None:
        """What gives the class away, and columns that separate the classes well alone, the best first.

        A column that is kept is known before the class is: there is a note, and no problem.
        """
        if self.codes is None:
            return
        names, kept = list(dict.fromkeys(self.labels.to_pylist())), {one for one in roles if roles[one] == "keep"}
        found = find_leaks(table, drafts, self.codes, names, groups=groups)
        for leak in found:
            is_problem = leak.is_problem and kept.isdisjoint(leak.columns)
            self.add(leak.code, leak.message, *leak.columns, is_problem=is_problem)
        named = kept.union(*(leak.columns for leak in found if leak.is_problem))
        alone = {one["name"]: one["alone"] or 0.0 for one in columns if one["name"] not in named}
        best = sorted((name for name in alone if alone[name] >= STRONG), key=lambda name: (-alone[name], name))
        if best:
            shown = some_of([f"{name!r} ({figure_name(names)} {alone[name]:.4f})" for name in best], _RANKED)
            message = f"columns that alone separate the classes well, the best first: {shown}; are they known before"
            self.add("strong", f"{message} the class is?", *best)


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
