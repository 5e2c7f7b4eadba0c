"""Fits for the report of a saved model: plain baselines next to it, and how stable its kind of fit is on new rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.estimators.comparison import OURS, ComparedFold, Comparison, compared, figure_of, run_baselines
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.stability import stability
from qmedoid.exceptions import DataError
from qmedoid.geometry.row_groups import group_folds, row_groups
from qmedoid.metrics.classification import pr_auc, roc_auc
from qmedoid.model.model import Model
from qmedoid.model.operating_point import curve_rows
from qmedoid.report.documents import BaselineDict, ReportBaselinesDict
from qmedoid.report.reading import Sample
from qmedoid.tables.cells import cell_ranks
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.kinds import Inferred
from qmedoid.tables.row_hashes import row_hashes
from qmedoid.tables.targets import Target

N_FOLDS = 5
LEAST_NEW = 30
"""New rows from which on they judge alone."""
CLEAR = 0.02
"""By how much both areas of a baseline must be larger, where folds are not those of our model."""
TITLES = {"log_loss": "log-loss", "roc_auc": "ROC-AUC", "pr_auc": "PR-AUC", "macro_f1": "macro-F1"}


def baselines_beside(model: Model, sample: Sample, n_rows: int) -> tuple[ReportBaselinesDict, list[str]]:
    """The baselines part of a summary, and sentences on baselines that lack.

    Baselines are fitted to four fifths of the rows and judged by the others, in turn. Rows that our model was fitted on
    do not judge, unless there are no others: then our figures are those of its out-of-fold rows, where it keeps them.

    Parameters
    ----------
    model : Model
    sample : Sample
    n_rows : int
        Rows of the table that the sample is of.
    """
    labeled = np.flatnonzero(sample.codes >= 0)
    table, codes = sample.table.take(pa.array(labeled)), sample.codes[labeled]
    if len(codes) < 2 * N_FOLDS or len(np.unique(codes)) < 2:
        raise DataError(
            f"Baselines need at least {2 * N_FOLDS} rows with classes, of two classes or more. Got {len(codes):,} rows."
        )
    is_seen = _seen(model, table)
    new = np.ones(len(codes), dtype=np.bool_) if is_seen is None else ~is_seen
    judges = new if new.sum() >= LEAST_NEW and len(np.unique(codes[new])) > 1 else np.ones_like(new)
    ours = model.decision.probabilities(model.decide([column[labeled] for column in sample.encoded]).scores)
    folds, notes = _folds(model, ours, table, codes, judges)
    found = compared(folds)
    drawn = "" if len(sample.codes) == n_rows else f" of a random sample of {len(sample.codes):,} of {n_rows:,} rows"
    about = (
        f"Each baseline is fitted to four fifths of the rows{drawn} and judged by the others, in turn, with the "
        "settings of its library. "
    )
    if not new.all() and judges.all():
        seen = f"Our model was fitted on {int((~new).sum()):,} of these {len(new):,} rows: "
        return _of_seen_rows(model, found, about + seen), notes
    if is_seen is None:
        about += (
            "Whether our model was fitted on these rows is not known, as it keeps no hashes of them: if so, its "
            "figures are too good."
        )
    elif judges.all():
        about += f"Our model was fitted on none of these {found.n_rows:,} rows; it was made before, of other rows."
    else:
        about += f"Only the {found.n_rows:,} rows judge that our model was not fitted on; it was made of other rows."
    return comparison_table(found, about), notes


def comparison_table(found: Comparison, about: str, own: Mapping[str, float] | None = None) -> ReportBaselinesDict:
    """A comparison as a summary has it: texts by method, and which is the best of each figure.

    `own` are our figures where those of the folds do not count; nothing is the best of a figure that ours lacks.
    """
    names = [name for name in TITLES if found.best(name) is not None]
    means = [[figure_of(one, name) for name in names] for one in found.methods]
    texts = [[_text(figure_of(one, name), one["errors"][name]) for name in names] for one in found.methods]
    if own is not None:
        means[0] = [own.get(name) for name in names]
        texts[0] = ["–" if mean is None else f"{mean:.4f}" for mean in means[0]]
    best: list[float | None] = []
    for name, column in zip(names, zip(*means, strict=True), strict=True):
        known = [mean for mean in column if mean is not None]
        is_compared = column[0] is not None and len(column) > 1
        best.append((min if name == "log_loss" else max)(known) if is_compared else None)
    rows: list[BaselineDict] = [
        {
            "name": one["name"],
            "values": own_texts,
            "best": [mean is not None and mean == most for mean, most in zip(row, best, strict=True)],
        }
        for one, own_texts, row in zip(found.methods, texts, means, strict=True)
    ]
    differences = [one["log_loss_difference"] for one in found.methods]
    return {
        "about": about,
        "figures": [TITLES[name] for name in names],
        "rows": rows,
        "verdict": found.verdict(),
        "better": any(one["high"] < 0 for one in differences if one) if any(differences) else None,
    }


def _text(mean: float | None, error: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.4f}" + ("" if error is None else f" ± {error:.4f}")


def _seen(model: Model, table: pa.Table) -> Flags | None:
    """Whether the model was fitted on each row; None where it keeps no hashes of its rows."""
    hashes = row_hashes(model, table)
    if hashes is None or model.seen is None:
        return None
    is_seen = np.isin(hashes, model.seen.hashes)
    if model.seen.is_sample:
        # Of hashes beyond the last that was kept nothing is known: where the others were seen, so were these.
        beyond = hashes > model.seen.hashes[-1]
        is_seen = is_seen | (beyond & bool(is_seen[~beyond].any()))
    return is_seen


def _folds(
    model: Model, ours: Array, table: pa.Table, codes: Codes, judges: Flags
) -> tuple[list[ComparedFold], list[str]]:
    columns = [model.contract.columns[place] for place in model.layout.used]
    here = [column for column in columns if column.name in table.column_names]
    equal = row_groups(cell_ranks(table, here)[0], codes)
    groups = np.arange(len(codes)) if equal is None else equal
    fold = group_folds(groups, codes, N_FOLDS, np.random.default_rng(0))
    made, notes = list[ComparedFold](), list[str]()
    for place in range(N_FOLDS):
        fit, judged = np.flatnonzero(fold != place), np.flatnonzero((fold == place) & judges)
        if len(judged) == 0 or len(np.unique(codes[fit])) < len(model.decision.classes):
            continue
        found, lacking = run_baselines(columns, table.take(pa.array(fit)), table.take(pa.array(judged)), codes[fit], 0)
        notes += lacking if not made else []
        made.append(({OURS: (ours[judged], 0.0), **found}, codes[judged], groups[judged]))
    if not made:
        raise DataError("No fold of the table has rows of every class: baselines cannot be fitted to it.")
    return made, notes


def _of_seen_rows(model: Model, found: Comparison, about: str) -> ReportBaselinesDict:
    """Ours from out-of-fold rows, as all rows of the table were fitted on; else marked as not comparable."""
    curve = None if model.training is None else model.training.curve
    if curve is None:
        table = comparison_table(found, about + "its figures here are too good to compare.")
        table["rows"][0]["name"] = f"{OURS} (on rows that it was fitted on)"
        for row in table["rows"]:
            row["best"] = [False for _ in row["best"]]
        verdict = "Nothing is decided: our model was fitted on these rows, and the baselines were not."
        return table | {"verdict": verdict, "better": None}
    positive, log_odds = curve_rows(curve)
    areas = {"roc_auc": roc_auc(positive, log_odds), "pr_auc": pr_auc(positive, log_odds)}
    about += (
        f"its areas are those of its {len(positive):,} out-of-fold rows, each decided by a model that had not seen it."
    )
    table = comparison_table(found, about, areas)
    table["rows"][0]["name"] = f"{OURS} (out-of-fold)"
    largest: dict[str, float] = {}
    for name in areas:
        values = [mean for one in found.methods[1:] if (mean := figure_of(one, name)) is not None]
        largest |= {name: max(values)} if values else {}
    parts = [f"{TITLES[name]} {areas[name]:.4f}, the best baseline {largest[name]:.4f}" for name in largest]
    verdict = f"Out of fold ours has {'; '.join(parts)}. Folds differ, so that small differences may be luck."
    # Areas of other folds are not paired: a small difference may be luck.
    better = all(largest[name] > areas[name] + CLEAR for name in areas) if len(largest) == len(areas) else None
    return table | {"verdict": verdict if parts else "No baseline was fitted.", "better": better}


def stability_beside(model: Model, table: pa.Table, codes: Codes, n_bootstraps: int) -> dict[str, Any]:
    """The stability part of a summary: fits of the rows that have a class, with the method and columns of the model.

    Parameters
    ----------
    model : Model
    table : pyarrow.Table
        The columns that the model reads.
    codes : ndarray of shape (n,)
        Class codes; rows below 0 are left out.
    n_bootstraps : int
    """
    labeled = np.flatnonzero(codes >= 0)
    rows = table.take(pa.array(labeled))
    columns = tuple(column for column in model.contract.columns if column.name in rows.column_names)
    classes, places = np.unique(np.array(model.decision.classes)[codes[labeled]], return_inverse=True)
    target = Target(None, classes, places.astype(np.intp))
    data = Dataset.of(rows, target, DatasetSettings(), kinds=Inferred(columns))
    asked = model.parameters.get("method", "auto")
    classifier = MedoidClassifier(method=asked if isinstance(asked, str) else "auto", random_state=0)
    found = stability(classifier, data, n_bootstraps=n_bootstraps, random_state=0)
    about = (
        f"{found.n_rows:,} rows of the table were fitted anew, all of them and {found.n_bootstraps} bootstrap samples, "
        "with the method of this model. It is about such fits, not about this model file."
    )
    return {**found.as_dict(), "about": about}
