"""A table looked at before a fit: how its columns are read and why, and what would make a model wrong."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.spelling import did_you_mean
from qmedoid.tables import cells
from qmedoid.tables._check_columns import Codes, Finding, describe, facts_of, judged_alone, leaks, oddities
from qmedoid.tables.arrow import as_table
from qmedoid.tables.documents import CheckDuplicatesDict, CheckedClassDict, CheckedColumnDict, CheckedTableDict
from qmedoid.tables.kinds import DateOrder, infer_columns
from qmedoid.tables.roles import Role, check_roles, find_units, in_roles
from qmedoid.tables.row_hashes import mixed
from qmedoid.tables.sentinels import check_missing
from qmedoid.tables.targets import class_labels, target_notes

Hashes = npt.NDArray[np.uint64]
SAMPLE_ROWS = 100_000
"""Rows on which columns are judged alone."""
_COMPARED = 50
"""Cells by which columns are compared before all of them are."""
_FEW = 10
"""Rows of a class below which figures about it say little, and columns are not judged alone."""


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
    roles : mapping of str to str or None, default=None
        What columns are, as of `MedoidClassifier`.
    decimal, date_order : str or None, default=None
        How texts that do not show it are read, as of `MedoidClassifier`.
    missing : mapping of str to sequence or None, default=None
        Values that stand for a missing cell, by column, as of `MedoidClassifier`.

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
    n_rows, columns, findings = table.num_rows, list[CheckedColumnDict](), list[Finding]()
    if (units := find_units(table, roles)) is not None:
        message, of = units.message(first_row), tuple(units.texts)
        findings.append(Finding("units", message, of, "problem" if units.is_sure else "note"))
    classes, labels, counted = None, None, list[CheckedClassDict]()
    if target is not None:
        table, labels = _labeled(table, target, findings)
    if labels is not None:
        classes, counted = _classes(labels, findings, str(target))
    order = cast("DateOrder | None", date_order)
    skip = {target} if target else set[str]()
    inferred = infer_columns(table, skip=skip, roles=roles, decimal=decimal, date_order=order, missing=missing)
    table = cells.with_missing_values_out(table, inferred.columns)
    drafts = {column.name: column for column in inferred.columns}
    hashes = np.zeros(table.num_rows, dtype=np.uint64)
    digests: dict[str, bytes] = {}
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
        hashes = _mixed_in(hashes, facts.codes)
        # Which rows of a column have equal cells, whatever the cells are.
        digests[name] = hashlib.blake2b(np.ascontiguousarray(facts.codes).tobytes(), digest_size=16).digest()
        if classes is not None and judge:
            shown["alone"] = judged_alone(column.take(pa.array(judged)), drafts[name], classes[judged])
            findings += leaks(drafts[name], facts, shown["alone"], classes, labels, str(target))
    duplicates = _duplicates(table, hashes, digests, classes, findings)
    if not digests:
        findings.append(Finding("nothing_left", "no column is left to learn from", severity="problem"))
    findings.sort(key=lambda finding: finding.severity != "problem")
    return {
        "rows": n_rows,
        "target": target,
        "classes": counted,
        "columns": columns,
        "judged_rows": len(judged) if judge else 0,
        "duplicates": duplicates,
        "findings": [
            {"code": one.code, "severity": one.severity, "columns": list(one.columns), "message": one.message}
            for one in findings
        ],
        "problems": sum(finding.severity == "problem" for finding in findings),
    }


def _labeled(table: pa.Table, target: str, findings: list[Finding]) -> tuple[pa.Table, Any]:
    """The rows that have a class, as a fit takes them, and their labels; None where the target holds no classes."""
    try:
        rows, labels = class_labels(table[target], target)
        if len(rows) < table.num_rows:
            message = f"{table.num_rows - len(rows):,} of {table.num_rows:,} rows have no class in {target!r}"
            findings.append(Finding("unlabeled", f"{message}: a fit leaves them out", (target,)))
        if not len(rows):
            findings.append(Finding("no_classes", f"no row has a class in {target!r}", (target,), "problem"))
            return table, None
        return table.take(pa.array(rows)) if len(rows) < table.num_rows else table, labels
    except DataError as error:
        findings.append(Finding("target", str(error), (target,), "problem"))
    except (pa.ArrowNotImplementedError, TypeError):
        message = f"the target {target!r} is of type {table[target].type}: give a column of names or whole numbers"
        findings.append(Finding("target", message, (target,), "problem"))
    return table, None


def _classes(labels: pa.ChunkedArray, findings: list[Finding], target: str) -> tuple[Codes, list[CheckedClassDict]]:
    """Class codes in the order of appearance; the classes with their rows, and what is odd about them."""
    encoded = labels.combine_chunks().dictionary_encode()
    codes: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    counts = np.bincount(codes, minlength=len(encoded.dictionary))
    names = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=lambda code: (-counts[code], str(names[code])))
    counted: list[CheckedClassDict] = [{"class": names[code], "rows": int(counts[code])} for code in order]
    if len(names) < 2:
        message = f"every row is of the class {names[0]!r}: a classifier needs at least 2 classes"
        findings.append(Finding("one_class", message, (target,), "problem"))
    notes = target_notes(names, counts.tolist())
    findings += [Finding(note.code, note.message, (target,), note.severity) for note in notes]
    few = [f"{name!r} ({count})" for name, count in zip(names, counts.tolist(), strict=True) if 1 < count < _FEW]
    if few and not any(note.code == "target_quantity" for note in notes):
        message = f"classes of {target!r} with few rows: {some_of(few, 5)}; figures about them will be rough"
        findings.append(Finding("few_rows", message, (target,)))
    return codes, counted


def _duplicates(
    table: pa.Table, hashes: Hashes, digests: Mapping[str, bytes], classes: Codes | None, findings: list[Finding]
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
        message = f"{repeated:,} of {table.num_rows:,} rows are equal to an earlier one in every column that is used"
        findings.append(Finding("equal_rows", message))
    if contrary:
        message = f"{contrary:,} rows are equal to a row of another class in every column that is used"
        findings.append(Finding("contrary_rows", message))
    groups = equal_columns(table, digests)
    for group in groups:
        message = f"columns {some_of([repr(name) for name in group], 5)} are equal: one of them is enough"
        findings.append(Finding("equal_columns", message, tuple(group)))
    return {"rows": repeated, "contrary_rows": contrary, "columns": groups}


def _mixed_in(hashes: Hashes, codes: Codes) -> Hashes:
    """Hashes of rows with the codes of one more column (the finalizer of SplitMix64 over their sum)."""
    return mixed(hashes * np.uint64(0x9E3779B97F4A7C15) + (codes.astype(np.int64) + 2).astype(np.uint64))


def equal_columns(table: pa.Table, digests: Mapping[str, bytes]) -> list[list[str]]:
    """Groups of columns whose cells are equal in every row."""
    alike: dict[tuple[bytes, tuple[str | None, ...]], list[list[str]]] = {}
    for name, digest in digests.items():
        # Columns without a repeated cell have one partition; their first cells distinguish nearly all of them.
        first = tuple(cells.texts(table[name].slice(0, _COMPARED)).to_pylist())
        groups = alike.setdefault((digest, first), [])
        equal = next((group for group in groups if _same_cells(table[group[0]], table[name])), None)
        if equal is None:
            groups.append([name])
        else:
            equal.append(name)
    return [group for groups in alike.values() for group in groups if len(group) > 1]


def _same_cells(one: pa.ChunkedArray, two: pa.ChunkedArray) -> bool:
    if one.type == two.type and not pa.types.is_floating(one.type):
        return bool(one.equals(two))
    return bool(cells.texts(one).equals(cells.texts(two)))
