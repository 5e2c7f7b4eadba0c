"""Plain baselines next to a saved model, on rows of a table: folds of it for the baselines, new rows for both."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import DataError
from qmedoid.geometry.row_groups import group_folds, row_groups
from qmedoid.metrics.classification import pr_auc, roc_auc
from qmedoid.model.cut import curve_rows
from qmedoid.model.table import TableModel
from qmedoid.report.documents import BaselineDict, ReportBaselinesDict
from qmedoid.report.reading import Sample
from qmedoid.studies.comparison import OURS, Comparison, Fold, Outcome, Spread, compared
from qmedoid.studies.plain_baselines import plain_rows, run_baselines
from qmedoid.tables.cells import cell_codes
from qmedoid.tables.row_hashes import row_hashes

N_FOLDS = 5
LEAST_NEW = 30
"""New rows from which on they judge alone."""
CLEAR = 0.02
"""By how much both areas of a baseline must be larger, where folds are not those of our model."""
TITLES = {"log_loss": "log-loss", "roc_auc": "ROC-AUC", "pr_auc": "PR-AUC", "macro_f1": "macro-F1"}


class Rows(NamedTuple):
    """Rows of a table with their class codes, encoded columns, and whether the model was fitted on them."""

    table: pa.Table
    encoded: list[Array]
    codes: Codes
    is_seen: Flags | None


def baselines_beside(model: TableModel, sample: Sample, n_rows: int) -> tuple[ReportBaselinesDict, list[str]]:
    """The baselines part of a summary, and sentences on baselines that lack.

    Baselines are fitted to four fifths of the rows and judged by the others, in turn. Rows that our model was fitted on
    do not judge, unless there are no others: then our figures are those of its out-of-fold rows, where it keeps them.

    Parameters
    ----------
    model : TableModel
    sample : Sample
    n_rows : int
        Rows of the table that the sample is of.
    """
    rows = _rows(model, sample)
    if len(rows.codes) < 2 * N_FOLDS or len(np.unique(rows.codes)) < 2:
        raise DataError(
            f"Baselines need at least {2 * N_FOLDS} rows with classes, of two classes or more. Got "
            f"{len(rows.codes):,} rows."
        )
    new = np.ones(len(rows.codes), dtype=np.bool_) if rows.is_seen is None else ~rows.is_seen
    judges = new if new.sum() >= LEAST_NEW and len(np.unique(rows.codes[new])) > 1 else np.ones_like(new)
    folds, notes = _folds(model, rows, judges)
    found = compared(folds)
    drawn = "" if len(sample.codes) == n_rows else f" of a random sample of {len(sample.codes):,} of {n_rows:,} rows"
    about = (
        f"Each baseline is fitted to four fifths of the rows{drawn} and judged by the others, in turn, with the "
        "settings of its library. "
    )
    if not new.all() and judges.all():
        seen = f"Our model was fitted on {int((~new).sum()):,} of these {len(new):,} rows: "
        return _of_seen_rows(model, found, about + seen), notes
    if rows.is_seen is None:
        about += (
            "Whether our model was fitted on these rows is not known, as it keeps no hashes of them: if so, its "
            "figures are too good."
        )
    elif judges.all():
        about += f"Our model was fitted on none of these {found.n_rows:,} rows; it was made before, of other rows."
    else:
        about += f"Only the {found.n_rows:,} rows judge that our model was not fitted on; it was made of other rows."
    return comparison_table(found, about), notes


def comparison_table(found: Comparison, about: str) -> ReportBaselinesDict:
    """A comparison as a summary has it: texts by method, and which is the best of each figure."""
    figures = [name for name in TITLES if found.best(name) is not None]
    rows: list[BaselineDict] = [
        {
            "name": one.name,
            "values": [_text(one.figures[name]) for name in figures],
            "best": [_is_best(found, name, one.figures[name]) for name in figures],
        }
        for one in found.methods
    ]
    verdict = found.verdict()
    differences = [one.difference for one in found.methods if one.difference is not None]
    better = any(one.high < 0 for one in differences) if differences else None
    return {
        "about": about, "figures": [TITLES[name] for name in figures], "rows": rows, "verdict": verdict,
        "better": better,
    }  # fmt: skip


def _rows(model: TableModel, sample: Sample) -> Rows:
    labeled = np.flatnonzero(sample.codes >= 0)
    table = sample.table.take(pa.array(labeled))
    hashes = row_hashes(model, table)
    is_seen = None
    if hashes is not None and model.seen is not None:
        is_seen = np.isin(hashes, model.seen.hashes)
        if model.seen.is_sample:
            # Of hashes beyond the last that was kept nothing is known: where the others were seen, so were these.
            beyond = hashes > model.seen.hashes[-1]
            is_seen = is_seen | (beyond & bool(is_seen[~beyond].any()))
    return Rows(table, [column[labeled] for column in sample.encoded], sample.codes[labeled], is_seen)


def _folds(model: TableModel, rows: Rows, judges: Flags) -> tuple[list[Fold], list[str]]:
    columns = [model.contract.columns[place] for place in model.layout.used]
    names = [column.name for column in columns if column.name in rows.table.column_names]
    equal = row_groups(cell_codes(rows.table, names), rows.codes)
    groups = np.arange(len(rows.codes)) if equal is None else equal
    fold = group_folds(groups, rows.codes, N_FOLDS, np.random.default_rng(0))
    ours = model.decision.probabilities(model.decide(rows.encoded).scores)
    made, notes = list[Fold](), list[str]()
    for place in range(N_FOLDS):
        fit, judged = np.flatnonzero(fold != place), np.flatnonzero((fold == place) & judges)
        if len(judged) == 0 or len(np.unique(rows.codes[fit])) < len(model.decision.classes):
            continue
        outcomes = {OURS: Outcome(ours[judged], 0.0)}
        plain = plain_rows(columns, rows.table.take(pa.array(fit)), rows.table.take(pa.array(judged)))
        for name, found in run_baselines(plain, rows.codes[fit], 0):
            if isinstance(found, str):
                notes += [f"{name} is not compared: {found}"] if place == 0 else []
            else:
                outcomes[name] = found
        made.append(Fold(outcomes, rows.codes[judged], groups[judged]))
    if not made:
        raise DataError("No fold of the table has rows of every class: baselines cannot be fitted to it.")
    return made, notes


def _of_seen_rows(model: TableModel, found: Comparison, about: str) -> ReportBaselinesDict:
    """Ours from out-of-fold rows, as all rows of the table were fitted on; else marked as not comparable."""
    table = comparison_table(found, about)
    names = [name for name in TITLES if found.best(name) is not None]
    curve = None if model.training is None else model.training.curve
    if curve is None:
        table["about"] += "its figures here are too good to compare."
        table["rows"][0]["name"] = f"{OURS} (on rows that it was fitted on)"
        table["verdict"] = "Nothing is decided: our model was fitted on these rows, and the baselines were not."
        table["better"] = None
        return _marked(table, found, names, skip=True)
    positive, log_odds = curve_rows(curve)
    areas = {"roc_auc": roc_auc(positive, log_odds), "pr_auc": pr_auc(positive, log_odds)}
    table["about"] += (
        f"its areas are those of its {len(positive):,} out-of-fold rows, each decided by a model that had not seen it."
    )
    ours = table["rows"][0]
    ours["name"] = f"{OURS} (out-of-fold)"
    ours["values"] = [f"{areas[name]:.4f}" if name in areas else "–" for name in names]
    largest: dict[str, float] = {}
    for name in areas:
        values = [spread.mean for one in found.methods[1:] if (spread := one.figures[name]) is not None]
        largest |= {name: max(values)} if values else {}
    table["verdict"] = _area_verdict(areas, largest)
    # Areas of other folds are not paired: a small difference may be luck.
    table["better"] = all(largest[name] > areas[name] + CLEAR for name in areas) if len(largest) == len(areas) else None
    return _marked(table, found, names, areas=areas)


def _area_verdict(areas: dict[str, float], best: dict[str, float]) -> str:
    if not best:
        return "No baseline was fitted."
    parts = [f"{TITLES[name]} {areas[name]:.4f}, the best baseline {best[name]:.4f}" for name in areas]
    return f"Out of fold ours has {'; '.join(parts)}. Folds differ, so that small differences may be luck."


def _marked(
    table: ReportBaselinesDict, found: Comparison, names: Sequence[str], *, areas: dict[str, float] | None = None,
    skip: bool = False,
) -> ReportBaselinesDict:  # fmt: skip
    """The best of each figure, where ours has other values, or does not count."""
    for place, name in enumerate(names):
        values = [None if one.figures[name] is None else one.figures[name].mean for one in found.methods]  # type: ignore[union-attr]
        values[0] = None if skip else (areas or {}).get(name)
        known = [value for value in values if value is not None]
        # Nothing is the best of a figure that ours does not have.
        best = None if values[0] is None else (min(known) if name == "log_loss" else max(known))
        for row, value in zip(table["rows"], values, strict=True):
            row["best"][place] = value is not None and value == best
    return table


def _text(spread: Spread | None) -> str:
    if spread is None:
        return "–"
    return f"{spread.mean:.4f}" + ("" if spread.error is None else f" ± {spread.error:.4f}")


def _is_best(found: Comparison, name: str, spread: Spread | None) -> bool:
    return spread is not None and len(found.methods) > 1 and spread.mean == found.best(name)
