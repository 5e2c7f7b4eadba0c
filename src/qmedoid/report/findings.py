"""Coded findings about a model and a table: problem, tip or passed, why, and what to do.

A finding is a function of the summary of a report and of what `_column_facts` says of a table, under one mapping. Its
docstring is what it is about; it returns its status and why, in a sentence.
"""

import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.resources import files
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import some_of
from qmedoid.explain.effect import column_values
from qmedoid.kernels.ties import stable_order
from qmedoid.metrics.intervals import share_change
from qmedoid.model.model import Model
from qmedoid.report.documents import ReportFindingDict
from qmedoid.report.reading import Sample
from qmedoid.tables.kinds import IDENTIFIERS
from qmedoid.tables.leaks import judged_alone
from qmedoid.tables.novelty import are_single

Status = Literal["problem", "tip", "passed", "not applicable", "ignored"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""In the order of the page."""
Facts = Mapping[str, Any]
Verdict = tuple[Status, str]
TEXTS: dict[str, dict[str, str]] = tomllib.loads(files("qmedoid.report").joinpath("findings.toml").read_text("utf-8"))
"""By code: its title where it is found, what holds where it is not, and what to do."""
FINDINGS: dict[str, Callable[[Facts], Verdict]] = {}
"""Functions by code."""
MOST_NAMED, MOST_COLUMNS = 5, 60
"""Columns or classes that a sentence names, and columns of a table that are looked at: the most important ones."""
WIDTH, COLUMNS_WIDTH = 3.0, 3.5
"""Standard errors from which on a difference is no chance, and where several columns are compared."""
_NO_TABLE: Verdict = "not applicable", "It needs a table."


def finding(code: str) -> Callable[[Callable[[Facts], Verdict]], Callable[[Facts], Verdict]]:
    """Register a function of the facts under a code."""

    def register(evaluate: Callable[[Facts], Verdict]) -> Callable[[Facts], Verdict]:
        FINDINGS[code] = evaluate
        return evaluate

    return register


def evaluate_findings(
    summary: Facts, model: Model, sample: Sample | None, importance: Array | None, ignore: Collection[str]
) -> list[ReportFindingDict]:
    """All findings about a model and the rows that were drawn of a table, problems first; then by their code."""
    facts, found = {**summary, "by_column": _column_facts(model, sample, importance)}, list[ReportFindingDict]()
    for code, evaluate in FINDINGS.items():
        status, why = evaluate(facts)
        if code in ignore:
            status, why = "ignored", "It was ignored, as requested (--ignore)."
        is_found, texts = status in ("problem", "tip"), TEXTS[code]
        title, do = (texts["title"], texts["do"]) if is_found else (texts["holds"], "")
        found.append({"code": code, "status": status, "title": title, "why": why, "do": do})
    return sorted(found, key=lambda one: (STATUSES.index(one["status"]), one["code"]))


def _column_facts(model: Model, sample: Sample | None, importance: Array | None) -> dict[str, dict[str, Any]]:
    """By column of a table, of many the most important ones: how well it separates the classes ``"alone"``.

    None where that is not known. ``"missing_rows"`` are missing cells, among ``"rows"``.
    """
    if sample is None:
        return {}
    places = list(model.layout.used)
    if importance is not None and len(places) > MOST_COLUMNS:
        places = [places[rank] for rank in stable_order(-importance[places])]
    facts = dict[str, dict[str, Any]]()
    for place in places[:MOST_COLUMNS]:
        column, cells = model.contract.columns[place], sample.table
        missing = int(np.isnan(column_values(cells, column, model.encodings[place])).sum())
        labeled, alone = np.flatnonzero(sample.codes >= 0), None
        classes = np.unique(sample.codes[labeled], return_inverse=True)[1].astype(np.int32)
        if column.name in cells.column_names and len(labeled) >= 50 and classes.any():
            alone = judged_alone(cells.select([column.name]).take(pa.array(labeled)), column, classes)
        facts[column.name] = {"alone": alone, "missing_rows": missing, "rows": len(sample.codes)}
    return facts


def _named(names: Iterable[object]) -> str:
    return some_of([repr(name) for name in names], MOST_NAMED)


def _columns(count: int) -> str:
    return "1 column was" if count == 1 else f"{count:,} columns were"


@finding("QM101")
def few_rows(facts: Facts) -> Verdict:
    """A class of which a fit has hardly seen a row."""
    model = facts["model"]
    if model["class_shares"] is None or model["training_rows"] is None:
        return "not applicable", "The model keeps no counts of its training rows."
    share, rarest = min(zip(model["class_shares"], map(str, model["classes"]), strict=True), key=lambda one: one[0])
    rows = round(model["training_rows"] * share)
    if rows >= 50:
        return "passed", f"The rarest class, {rarest!r}, has about {rows:,} training rows."
    why = f"The class {rarest!r} has about {rows:,} training rows: its probabilities rest on them alone."
    return ("problem" if rows < 10 else "tip"), why


@finding("QM102")
def left_out(facts: Facts) -> Verdict:
    """Columns that no model reads because of a guess, such as that they are identifiers."""
    guessed = [one["name"] for one in facts["left_out"] if one["reason"] in IDENTIFIERS]
    n_all = len(facts["left_out"])
    if not guessed:
        why = f"{_columns(n_all)} left out for a reason that is no guess." if n_all else ""
        return "passed", why or "Every column of the training table was used."
    each = "every row has its own cell"
    return "tip", f"{_columns(len(guessed))} left out by a guess, as {each} there: {_named(guessed)}."


@finding("QM201")
def given_away(facts: Facts) -> Verdict:
    """A column that separates the classes alone, as one does that is filled in after the class is known."""
    alone = {name: one["alone"] for name, one in facts["by_column"].items() if one["alone"] is not None}
    if not alone:
        return "not applicable", "It needs a table with at least 50 rows and their classes."
    best = max(alone, key=lambda name: alone[name])
    figure = "a ROC-AUC" if len(facts["model"]["classes"]) == 2 else "a mean recall"
    why = f"{best!r} alone separates the classes with {figure} of {alone[best]:.4f}."
    return ("passed" if alone[best] < 0.97 else "problem" if alone[best] >= 0.999 else "tip"), why


@finding("QM204")
def never_predicted(facts: Facts) -> Verdict:
    """A class that no row is called."""
    table, confusion = facts["table"], facts["confusion"]
    if table is not None:
        called = {one["class"]: one["rows"] for one in table["called"]}
    elif confusion is not None:
        called = dict(zip(confusion["labels"], map(sum, zip(*confusion["counts"], strict=True)), strict=True))
    else:
        return "not applicable", "There are no decisions to look at."
    never, rows = [label for label, n in called.items() if n == 0], sum(called.values())
    if not never:
        return "passed", f"Every class is predicted among {rows:,} rows."
    return ("problem" if rows >= 50 else "tip"), f"None of {rows:,} rows is called {_named(never)}."


@finding("QM301")
def worse_than_expected(facts: Facts) -> Verdict:
    """Precision or recall on the table that is lower than on the held-out rows of the fit."""
    expected = facts["expected"]
    if expected is None or (facts["figures"] or {}).get("source") != "table":
        return "not applicable", "It compares a table with classes with the held-out rows of the fit, of two classes."
    (_, fp), (fn, tp) = facts["confusion"]["counts"]
    totals = {
        "recall": (tp + fn, expected["tp"] + expected["fn"]),
        "precision": (tp + fp, expected["tp"] + expected["fp"]),
    }
    worst, found, draws = None, [], expected["draws_per_row"]
    for name, (n, n_before) in totals.items():
        if n and n_before:
            change = share_change(tp, n, expected["tp"] * draws, n_before * draws, width=WIDTH)
            now, before = tp / n, expected["tp"] / n_before
            found.append(f"{name} {now:.4f} here, {before:.4f} there")
            worst = name if change.standard_errors < -WIDTH and before - now >= 0.02 else worst
    if not found:
        return "not applicable", "There is no alert and no row of the positive class to compare."
    if worst is None:
        return "passed", f"The table is as the held-out rows promised: {'; '.join(found)}."
    return "problem", f"The {worst} is lower than on held-out rows: {'; '.join(found)}."


@finding("QM302")
def miscalibrated(facts: Facts) -> Verdict:
    """A calibration error that chance does not explain."""
    found = facts["calibration"]
    if found is None:
        return "not applicable", "It needs a table with classes, and a model with probabilities."
    error, high = found["error"], found["by_chance_high"]
    why = (
        f"The calibration error is {error:.4f}; by chance it is {found['by_chance']:.4f} on average, and exceeds "
        f"{high:.4f} in 1 table of 20."
    )
    return ("passed" if error <= high else "problem" if error > 2 * high else "tip"), why


@finding("QM303")
def baseline_better(facts: Facts) -> Verdict:
    """A plain classifier with the settings of its library that is better by more than luck."""
    found = facts["baselines"]
    if found is None:
        return "not applicable", "No baseline was fitted: qmedoid fit TABLE --compare --report FILE does."
    if found["better"] is None:
        return "not applicable", "Our model and the baselines were not evaluated on the same new rows."
    return ("problem" if found["better"] else "passed"), found["verdict"]


@finding("QM401")
def contract(facts: Facts) -> Verdict:
    """Columns or cells that the training rows did not have."""
    if facts["table"] is None:
        return _NO_TABLE
    found = facts["table"]["difference"]
    lines = [line[2:] for line in found["lines"] if not line.startswith("+")]
    if not lines:
        return "passed", "Columns, kinds and levels are those of the training rows."
    more = f" (and {len(lines) - 3} more)" if len(lines) > 3 else ""
    return ("problem" if found["breaks"] else "tip"), "; ".join(lines[:3]) + more + "."


@finding("QM402")
def novel(facts: Facts) -> Verdict:
    """Values beyond all limits, other distributions, records far from every medoid."""
    if facts["table"] is None:
        return _NO_TABLE
    found = facts["table"]["novelty"]
    if found["status"] == "unknown":
        return "not applicable", "The model keeps no summary of its training rows."
    if found["status"] != "unlike":
        few = " (too few rows to compare shares)" if found["status"] == "too few" else ""
        return "passed", f"Values and distances are as in the training rows{few}."
    return ("problem" if found["is_far"] else "tip"), "; ".join(found["lines"]) + "."


@finding("QM403")
def prior_shift(facts: Facts) -> Verdict:
    """Class frequencies other than those that probabilities were made for."""
    shares, confusion = facts["model"]["class_shares"], facts["confusion"]
    if shares is None or confusion is None or facts["figures"]["source"] != "table":
        return "not applicable", "It needs a table with classes, and a model that knows its class frequencies."
    rows = [sum(counts) for counts in confusion["counts"]]
    n, n_before = sum(rows), facts["model"]["training_rows"] or 0
    beyond = []
    for label, here, share in zip(confusion["labels"], rows, shares, strict=True):
        change = share_change(here, n, share * n_before, n_before, width=COLUMNS_WIDTH)
        ratio = max((here / n + 1e-12) / share, share / (here / n + 1e-12))
        if abs(change.standard_errors) > COLUMNS_WIDTH and (abs(here / n - share) > 0.05 or ratio > 1.5):
            beyond.append(f"{label!r} has {100 * here / n:.3g} % of the rows, {100 * share:.3g} % in training")
    if not beyond:
        return "passed", "The classes are about as frequent as in training."
    return "tip", "; ".join(beyond[:MOST_NAMED]) + "."


@finding("QM404")
def alert_rate(facts: Facts) -> Verdict:
    """An alert rate that held-out rows did not promise."""
    found = None if facts["table"] is None else facts["table"]["drift"]
    if found is None:
        return "not applicable", "It compares the alerts in a table with those of held-out rows, of two classes."
    rate, expected, low, high = (100 * found[name] for name in ("alert_rate", "expected", "low", "high"))
    said = f"{rate:.3g} % of {found['rows']:,} rows are alerts, and {expected:.3g} % were expected"
    novelty = facts["table"]["novelty"]
    if found["direction"] == "none" and novelty["status"] == "unlike" and not are_single(novelty, found["rows"]):
        return "tip", f"{said} of records like the training rows, which these are not."
    if found["direction"] == "none":
        return "passed", f"{said}."
    return "problem", f"{said} ({low:.3g} to {high:.3g} % by chance)."


@finding("QM408")
def more_missing(facts: Facts) -> Verdict:
    """Columns that are missing more often than they were."""
    if facts["table"] is None:
        return _NO_TABLE
    rows, beyond = facts["model"]["training_rows"], []
    if rows is None:
        return "not applicable", "The model keeps no counts of its training rows."
    for column in facts["columns"]:
        here, before = facts["by_column"].get(column["name"]), column["missing"]
        if here is None or before is None or not here["rows"]:
            continue
        change = share_change(here["missing_rows"], here["rows"], before * rows, rows, width=COLUMNS_WIDTH)
        share = here["missing_rows"] / here["rows"]
        if change.standard_errors > COLUMNS_WIDTH and share - before >= 0.05:
            beyond.append((share, f"{column['name']!r} ({100 * share:.3g} %, {100 * before:.3g} % in training)"))
    if not beyond:
        return "passed", "No column is missing much more often than in training."
    said = some_of([text for _, text in sorted(beyond, reverse=True)], MOST_NAMED)
    return ("problem" if max(beyond)[0] > 0.5 else "tip"), f"More cells are missing: {said}."
