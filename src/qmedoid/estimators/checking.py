"""A table looked at before a fit, and what a quick model gets without the columns that are too good to be true."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.exceptions import ParameterError, QMedoidError, QMedoidWarning, some_of
from qmedoid.metrics.classification import roc_auc
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import as_table
from qmedoid.tables.cells import in_one_look
from qmedoid.tables.checking import check_rows, too_good
from qmedoid.tables.dataset import Dataset, DatasetSettings, check_roles, in_roles, split_rows
from qmedoid.tables.difference import Issues
from qmedoid.tables.documents import CheckedTableDict, WithoutDict
from qmedoid.tables.leaks import balanced_rows, figure_name
from qmedoid.tables.roles import Role, check_missing
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.targets import Target

# Rows of both halves of a quick fit, cells that they may have, and columns: it takes a second or two.
_MOST_ROWS, _FEWEST_ROWS, _MOST_CELLS, _MOST_COLUMNS = 3_000, 400, 60_000, 200
_NAMED = 5
# Share of what a model knows beyond chance that may be lost without a strong column: with less left it is a problem.
_LOST = 0.5


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
        ``findings``, each with ``code``, ``severity``, ``columns`` and ``message``; ``problems``, how many of these
        are problems; and ``without``: how good a quick model is with and without the columns that say the class or
        separate it well alone (None where there are none).

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
    values = check_missing("The 'missing' parameter", missing, names=table.column_names)
    table, how = in_roles(table, asked), {"decimal": decimal, "date_order": date_order, "missing": values}
    report = check_rows(table, target, asked, **how)  # type: ignore[arg-type]
    return with_quick_fits(report, table, DatasetSettings(target=target, roles=asked, **how))  # type: ignore[arg-type]


def with_quick_fits(report: CheckedTableDict, table: pa.Table, settings: DatasetSettings) -> CheckedTableDict:
    """The report about a table with a quick model of all columns, and of those that are not too good to be true.

    Where nearly all that the first knows is in a few strong columns, these are a problem.
    """
    names, findings = too_good(report), report["findings"]
    if not names:
        return report
    alone = {one["name"]: one["alone"] or 0.0 for one in report["columns"] if one["used"]}
    strong = [one for one in findings if one["code"] == "strong"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QMedoidWarning)  # nobody sees these models
            found = _quick_fits(table, settings, names, alone)
    except QMedoidError:  # a fit says why the table cannot be fitted
        return report
    chance = 0.5 if found["figure"] == "ROC-AUC" else 1.0 / len(report["classes"])
    known, left = found["all_columns"] - chance, max((found["others"] or 0.0) - chance, 0.0)
    said = (
        f"a quick model, fitted to {found['rows']:,} rows, has a {found['figure']} of {found['all_columns']:.4f} "
        "on other rows"
    )
    without = f"without {some_of([repr(name) for name in names], _NAMED)}"
    if found["others"] is None:
        said = f"{said}; {without} no column is left"
    else:
        words = ", hardly better than chance" if left < 0.05 else ", nearly the same" if known - left < 0.01 else ""
        said = f"{said}, and {found['others']:.4f} {without}{words}"
    findings.append({"code": "without", "severity": "note", "columns": names, "message": said})
    if left < _LOST * known and all(set(one["columns"]) == set(names) for one in strong):
        for one in strong:
            one["severity"] = "problem"
            one["message"] += " Without them a model knows little."
    findings.sort(key=lambda one: one["severity"] != "problem")
    return {**report, "without": found, "problems": sum(one["severity"] == "problem" for one in findings)}


def _quick_fits(
    table: pa.Table, settings: DatasetSettings, suspects: Sequence[str], alone: Mapping[str, float]
) -> WithoutDict:
    """How good a model of all columns is on rows that it has not seen, and one without those that are suspected."""
    name = str(settings.target)
    settings, (table, _) = replace(settings, takes_numbers=True), in_one_look(table, settings.unread)
    rows, target = Target.of_column(table[name], name, missing=settings.missing.get(name, ()))
    best = sorted(alone, key=lambda one: (-alone[one], one))[: _MOST_COLUMNS + len(suspects)]
    n_rows = max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_CELLS // len(best)))
    some = balanced_rows(target.codes, n_rows)
    part = table.take(pa.array(rows[some])).drop_columns([name])
    data = replace(Dataset.of(part, target.take(some), settings, kinds=settings.infer(table)), is_part=False)
    shared = (one.groups for one in data.repeats if one.is_sure)
    halves = split_rows(data.target.codes, 0.5, order=None, seed=0, groups=next(shared, data.together()))
    others = [one for one in best if one not in suspects]
    return {
        "columns": list(suspects),
        "figure": figure_name(target.classes.tolist()),
        "all_columns": _quick_figure(data, best, *halves),
        "others": _quick_figure(data, others, *halves) if others else None,
        "rows": len(halves[0]),
    }


def _quick_figure(data: Dataset, names: Sequence[str], rows: Codes, others: Codes) -> float:
    """The ROC-AUC, or the mean recall, of a small model of some columns on other rows."""
    from qmedoid.estimators.evidence import EvidenceClassifier
    from qmedoid.estimators.medoid import MedoidClassifier

    kinds = replace(data.kinds, columns=tuple(one for one in data.kinds.columns if one.name in names))
    part = replace(data, table=data.table.select([one.name for one in kinds.columns]), kinds=kinds)
    method = EvidenceClassifier(n_medoids=8, n_neighbors=0)
    model = MedoidClassifier(method=method, refine="never", random_state=0).fit(part.take(rows)).model_
    decided = decide_batch(model, part.table.take(pa.array(others)), Issues())[0]
    place = np.array([model.decision.classes.index(label) for label in data.target.classes.tolist()])
    codes = place[data.target.codes[others]]
    if len(place) == 2:
        return roc_auc(codes == 1, decided.margins)
    hits = np.bincount(codes[decided.codes == codes], minlength=len(place))
    return float((hits / np.bincount(codes, minlength=len(place))).mean())
