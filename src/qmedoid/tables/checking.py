"""A table looked at before a fit: how its columns are read and why, and what would make a model wrong."""

import hashlib
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.model.contract import Column
from qmedoid.tables import cells
from qmedoid.tables._check_columns import (
    GIVES_AWAY,
    Codes,
    Facts,
    Finding,
    can_judge,
    describe,
    facts_of,
    judged_alone,
    missing_in_one_class,
    oddities,
    sample_of,
)
from qmedoid.tables.arrow import as_table
from qmedoid.tables.kinds import DateOrder, infer_columns
from qmedoid.tables.roles import Role, check_roles, in_roles
from qmedoid.tables.targets import class_labels, labeled_rows, target_notes

_COMPARED = 50
"""Cells by which columns are compared before all of them are."""
_FEW = 10
"""Rows of a class below which figures about it say little."""


def check_table(
    data: Any,
    target: str | None = None,
    *,
    roles: Mapping[str, Role] | None = None,
    decimal: str | None = None,
    date_order: str | None = None,
) -> dict[str, Any]:
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

    Returns
    -------
    dict
        ``rows``, ``target`` and ``classes``; ``columns``, each with ``name``, ``type``, ``kind``, ``used``, ``role``,
        ``why``, ``note``, ``levels``, ``missing``, ``examples`` and ``alone`` (how well it separates the classes alone,
        on ``judged_rows`` rows); ``duplicates``; ``findings``, each with ``code``, ``severity``, ``columns`` and
        ``message``; and ``problems``, how many of these are problems.

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
        names = some_of([repr(name) for name in table.column_names])
        raise ParameterError(f"The target {target!r} is not a column. The columns are {names}.")
    asked = check_roles(("The 'roles' parameter", roles), names=table.column_names, target=target)
    return check_rows(in_roles(table, asked), target, asked, decimal=decimal, date_order=date_order)


def check_rows(
    table: pa.Table,
    target: str | None,
    roles: Mapping[str, Role],
    *,
    decimal: str | None = None,
    date_order: str | None = None,
) -> dict[str, Any]:
    """The report about a table whose categories by role are texts already."""
    if table.num_rows == 0:
        raise DataError("The table has no rows: there is nothing to check.")
    report: dict[str, Any] = {"rows": table.num_rows, "target": target, "classes": [], "columns": []}
    findings: list[Finding] = []
    classes, labels = None, None
    if target is not None:
        table, labels = _labeled(table, target, findings)
    if labels is not None:
        classes = _classes(labels, report, findings, str(target))
    order = cast("DateOrder | None", date_order)
    inferred = infer_columns(table, skip={target} if target else (), roles=roles, decimal=decimal, date_order=order)
    drafts = {column.name: column for column in inferred.columns}
    facts_by_row = RowHashes(table.num_rows)
    digests: dict[str, bytes] = {}
    judged = sample_of(table.num_rows)
    judge = classes is not None and can_judge(classes[judged])
    for name in (name for name in table.column_names if name != target):
        # Column by column, so that no more than one is held beside the table.
        column = table[name]
        facts = facts_of(column)
        shown = describe(name, column, facts, inferred, drafts.get(name), roles.get(name))
        report["columns"].append(shown)
        findings += oddities(name, column, facts, shown)
        if name not in drafts or facts.codes is None:
            continue
        facts_by_row.add(facts.codes)
        digests[name] = partition_digest(facts.codes)
        if classes is not None and judge:
            shown["alone"] = judged_alone(column.take(pa.array(judged)), drafts[name], classes[judged])
            findings += _leaks(drafts[name], facts, shown["alone"], classes, labels, str(target))
    report["judged_rows"] = len(judged) if judge else 0
    report["duplicates"] = _duplicates(table, facts_by_row, digests, classes, findings)
    if not digests:
        findings.append(Finding("nothing_left", "problem", (), "no column is left to learn from"))
    findings.sort(key=lambda finding: finding.severity != "problem")
    report["findings"] = [finding.as_dict() for finding in findings]
    report["problems"] = sum(finding.severity == "problem" for finding in findings)
    return report


def _labeled(table: pa.Table, target: str, findings: list[Finding]) -> tuple[pa.Table, Any]:
    """The rows that have a class, as a fit takes them, and their labels; None where the target holds no classes."""
    try:
        rows = labeled_rows(table[target])
        if len(rows) < table.num_rows:
            message = f"{table.num_rows - len(rows):,} of {table.num_rows:,} rows have no class in {target!r}"
            findings.append(Finding("unlabeled", "note", (target,), f"{message}: a fit leaves them out"))
        if not len(rows):
            findings.append(Finding("no_classes", "problem", (target,), f"no row has a class in {target!r}"))
            return table, None
        labeled = table.take(pa.array(rows)) if len(rows) < table.num_rows else table
        return labeled, class_labels(labeled[target], target)
    except DataError as error:
        findings.append(Finding("target", "problem", (target,), str(error)))
    except (pa.ArrowNotImplementedError, TypeError):
        message = f"the target {target!r} is of type {table[target].type}: give a column of names or whole numbers"
        findings.append(Finding("target", "problem", (target,), message))
    return table, None


def _classes(labels: pa.ChunkedArray, report: dict[str, Any], findings: list[Finding], target: str) -> Codes:
    """Class codes in the order of appearance; the classes with their rows, and what is odd about them."""
    encoded = labels.combine_chunks().dictionary_encode()
    codes: Codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    counts = np.bincount(codes, minlength=len(encoded.dictionary))
    names = encoded.dictionary.to_pylist()
    order = sorted(range(len(names)), key=lambda code: (-counts[code], str(names[code])))
    report["classes"] = [{"class": names[code], "rows": int(counts[code])} for code in order]
    if len(names) < 2:
        message = f"every row is of the class {names[0]!r}: a classifier needs at least 2 classes"
        findings.append(Finding("one_class", "problem", (target,), message))
    notes = target_notes(names, counts.tolist())
    findings += [Finding(note.code, note.severity, (target,), note.message) for note in notes]
    few = [f"{name!r} ({count})" for name, count in zip(names, counts.tolist(), strict=True) if 1 < count < _FEW]
    if few and not any(note.code == "target_quantity" for note in notes):
        message = f"classes of {target!r} with few rows: {some_of(few, 5)}; figures about them will be rough"
        findings.append(Finding("few_rows", "note", (target,), message))
    return codes


def _leaks(draft: Column, facts: Facts, alone: float, classes: Codes, labels: Any, target: str) -> list[Finding]:
    """Whether a column gives the class away, by its cells or by where they are missing."""
    name, codes = draft.name, facts.codes
    assert codes is not None
    way_out = "ignore it unless it is known before the class is"
    if not facts.n_missing and np.array_equal(codes, classes):
        message = f"column {name!r} is the target {target!r} in other words: {way_out}"
        return [Finding("target_copy", "problem", (name,), message)]
    if alone >= GIVES_AWAY:
        figure = "ROC-AUC" if int(classes.max()) == 1 else "mean recall"
        message = f"column {name!r} alone separates the classes (out-of-fold {figure} {alone:.4f}): {way_out}"
        return [Finding("gives_away", "problem", (name,), message)]
    of = missing_in_one_class(codes < 0, classes)
    if of is None:
        return []
    label = labels[int(np.flatnonzero(classes == of)[0])].as_py()
    message = f"column {name!r} is missing in {facts.n_missing:,} rows, all of class {label!r}: {way_out}"
    is_most = 2 * facts.n_missing >= int((classes == of).sum())
    return [Finding("missing_by_class", "problem" if is_most else "note", (name,), message)]


def _duplicates(
    table: pa.Table, rows: "RowHashes", digests: Mapping[str, bytes], classes: Codes | None, findings: list[Finding]
) -> dict[str, Any]:
    """Equal rows and equal columns among those that are learnt from."""
    repeated, contrary = rows.count(classes) if digests else (0, 0)
    if repeated:
        message = f"{repeated:,} of {table.num_rows:,} rows are equal to an earlier one in every column that is used"
        findings.append(Finding("equal_rows", "note", (), message))
    if contrary:
        message = f"{contrary:,} rows are equal to a row of another class in every column that is used"
        findings.append(Finding("contrary_rows", "note", (), message))
    groups = equal_columns(table, digests)
    for group in groups:
        message = f"columns {some_of([repr(name) for name in group], 5)} are equal: one of them is enough"
        findings.append(Finding("equal_columns", "note", tuple(group), message))
    return {"rows": repeated, "contrary_rows": contrary, "columns": groups}


class RowHashes:
    """A hash of 64 bits for every row, grown column by column; rows of one hash are taken as equal."""

    def __init__(self, n_rows: int) -> None:
        self._hashes: npt.NDArray[np.uint64] = np.zeros(n_rows, dtype=np.uint64)

    def add(self, codes: Codes) -> None:
        """Take in the codes of a column (the finalizer of SplitMix64 over their sum with the hash so far)."""
        mixed = self._hashes * np.uint64(0x9E3779B97F4A7C15) + (codes.astype(np.int64) + 2).astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        self._hashes = mixed ^ (mixed >> np.uint64(31))

    def count(self, classes: Codes | None) -> tuple[int, int]:
        """Rows that are equal to an earlier one, and rows that are equal to one of another class."""
        _, places, counts = np.unique(self._hashes, return_inverse=True, return_counts=True)
        repeated = len(places) - len(counts)
        if classes is None or not repeated:
            return repeated, 0
        low = np.full(len(counts), np.iinfo(np.int32).max, dtype=np.int32)
        high = np.full(len(counts), -1, dtype=np.int32)
        np.minimum.at(low, places, classes)
        np.maximum.at(high, places, classes)
        return repeated, int((low < high)[places].sum())


def partition_digest(codes: Codes) -> bytes:
    """A digest of which rows of a column have equal cells, whatever the cells are."""
    return hashlib.blake2b(np.ascontiguousarray(codes).tobytes(), digest_size=16).digest()


def equal_columns(table: pa.Table, digests: Mapping[str, bytes]) -> list[list[str]]:
    """Groups of columns whose cells are equal in every row."""
    alike: dict[tuple[bytes, tuple[str | None, ...]], list[list[str]]] = {}
    for name, digest in digests.items():
        # Columns without a repeated cell have one partition; their first cells distinguish nearly all of them.
        first = tuple(cells.texts(table[name].slice(0, _COMPARED)).to_pylist())
        groups = alike.setdefault((digest, first), [])
        own = next((group for group in groups if _same_cells(table[group[0]], table[name])), None)
        if own is None:
            groups.append([name])
        else:
            own.append(name)
    return [group for groups in alike.values() for group in groups if len(group) > 1]


def _same_cells(one: pa.ChunkedArray, two: pa.ChunkedArray) -> bool:
    if one.type == two.type and not pa.types.is_floating(one.type):
        return bool(one.equals(two))
    return bool(cells.texts(one).equals(cells.texts(two)))
