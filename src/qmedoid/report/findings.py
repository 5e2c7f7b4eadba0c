"""Coded findings about a model and a table: problem, tip or passed, why, and what to do.

A finding is a function of the summary of a report and of `qmedoid.report.rows.table_facts`, under one mapping. Its
docstring is what it is about; it returns its status and why, in a sentence.
"""

import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any, Literal, get_args

from qmedoid.exceptions import ParameterError, some_of
from qmedoid.metrics.intervals import share_change
from qmedoid.report.documents import ReportFindingDict
from qmedoid.spelling import did_you_mean
from qmedoid.tables.roles import IDENTIFIERS

Status = Literal["problem", "tip", "passed", "not applicable", "ignored"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""In the order of the page."""
Facts = Mapping[str, Any]
Verdict = tuple[Status, str]
TEXTS: dict[str, dict[str, str]] = tomllib.loads(files("qmedoid.report").joinpath("findings.toml").read_text("utf-8"))
"""By code: its title where it is found, what holds where it is not, and what to do."""
FINDINGS: dict[str, Callable[[Facts], Verdict]] = {}
"""Functions by code."""
MOST_NAMED = 5
"""Columns or classes that a sentence names."""
WIDTH, COLUMNS_WIDTH = 3.0, 3.5
"""Standard errors from which on a difference is no chance, and where several columns are compared."""
_NO_TABLE: Verdict = "not applicable", "It needs a table."
_NO_HASHES: Verdict = "not applicable", "It needs a table, and a model that keeps hashes of its training rows."


def finding(code: str) -> Callable[[Callable[[Facts], Verdict]], Callable[[Facts], Verdict]]:
    """Register a function of the facts under a code."""

    def register(evaluate: Callable[[Facts], Verdict]) -> Callable[[Facts], Verdict]:
        FINDINGS[code] = evaluate
        return evaluate

    return register


def check_codes(codes: Iterable[str]) -> None:
    """Refuse codes that no finding has."""
    for code in codes:
        if code not in FINDINGS:
            raise ParameterError(
                f"There is no finding {code!r}.{did_you_mean(code, FINDINGS)} There are {', '.join(sorted(FINDINGS))}."
            )


def evaluate_findings(facts: Facts, ignore: Collection[str] = ()) -> list[ReportFindingDict]:
    """All findings, problems first; those of equal status by their code."""
    check_codes(ignore)
    found = list[ReportFindingDict]()
    for code, evaluate in FINDINGS.items():
        status, why = evaluate(facts)
        if code in ignore:
            status, why = "ignored", "It was ignored, as requested (--ignore)."
        is_found, texts = status in ("problem", "tip"), TEXTS[code]
        title, do = (texts["title"], texts["do"]) if is_found else (texts["holds"], "")
        found.append({"code": code, "status": status, "title": title, "why": why, "do": do})
    return sorted(found, key=lambda one: (STATUSES.index(one["status"]), one["code"]))


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
    look = "it looks" if len(guessed) == 1 else "they look"
    return "tip", f"{_columns(len(guessed))} left out because {look} like an identifier: {_named(guessed)}."


@finding("QM104")
def many_levels(facts: Facts) -> Verdict:
    """A category with many levels, so that new tables will have new ones."""
    rows, counted = facts["model"]["training_rows"], facts["levels"]
    if not counted or rows is None:
        return "not applicable", "The model has no categories whose levels were counted."
    worst = max(counted, key=lambda name: len(counted[name]))
    n, once = len(counted[worst]), counted[worst].count(1)
    if n < 30 or n < 0.05 * rows:
        return "passed", "No category has many levels for the number of training rows."
    return "tip", (
        f"{worst!r} has {n:,} levels in {rows:,} training rows, {once:,} of them in a single one: "
        "a new level is likely in every table."
    )


@finding("QM105")
def constant_columns(facts: Facts) -> Verdict:
    """Columns with one value, in the training rows or in the table."""
    training = [one["name"] for one in facts["left_out"] if one["reason"].startswith("every cell is")]
    if training:
        return "tip", f"{_columns(len(training))} left out because every cell was the same: {_named(training)}."
    columns = facts["by_column"].items()
    same = [name for name, one in columns if one["is_constant"] and one["rows"] > 1 and not one["missing_rows"]]
    if same:
        return "tip", f"Every looked-at cell of {_named(same)} is the same in this table."
    return "passed", "No column is constant."


@finding("QM201")
def given_away(facts: Facts) -> Verdict:
    """A column that tells the classes apart alone, as one does that is filled in after the class is known."""
    alone = {name: one["alone"] or 0.0 for name, one in facts["by_column"].items() if one["rows"] >= 50}
    if not any(alone.values()):
        return "not applicable", "It needs a table with at least 50 rows and their classes."
    best = max(alone, key=lambda name: alone[name])
    if alone[best] < 0.97:
        return (
            "passed",
            f"The best single column, {best!r}, tells the classes apart with a ROC-AUC of {alone[best]:.4f}.",
        )
    why = f"{best!r} alone tells the classes apart with a ROC-AUC of {alone[best]:.4f}."
    return ("problem" if alone[best] >= 0.999 else "tip"), why


@finding("QM202")
def one_column(facts: Facts) -> Verdict:
    """Decisions that rest on one column."""
    known = [(one["importance"], one["name"]) for one in facts["columns"] if one["importance"] is not None]
    total = sum(amount for amount, _ in known)
    if len(known) < 2 or total <= 0:
        return "not applicable", "There are no importances of two columns or more."
    amount, name = max(known)
    share = f"{100 * amount / total:.0f} % of all contributions are of {name!r}."
    return ("passed", f"At most {share}") if amount / total < 0.6 else ("tip", share)


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


@finding("QM205")
def wide_intervals(facts: Facts) -> Verdict:
    """Figures whose interval says next to nothing."""
    figures = [one for one in (facts["figures"] or {}).get("figures", ()) if one["low"] is not None]
    judged = [one for one in figures if one["key"] in ("accuracy", "precision", "recall", "roc_auc")]
    widths = [(one["high"] - one["low"], one["name"], one["text"]) for one in judged]
    if not widths:
        return "not applicable", "There are no figures with intervals."
    width, name, text = max(widths)
    if width < 0.2:
        return (
            "passed",
            f"The {name} is {text}: of accuracy, precision, recall and ROC-AUC this interval is the widest.",
        )
    return ("problem" if width >= 0.4 else "tip"), f"The {name} is {text}, an interval {width:.2f} wide."


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
        return "not applicable", "No baseline was fitted: qmedoid report MODEL TABLE --baselines does."
    if found["better"] is None:
        return "not applicable", "Our model and the baselines were not evaluated on the same new rows."
    return ("problem" if found["better"] else "passed"), found["verdict"]


@finding("QM304")
def seen_rows(facts: Facts) -> Verdict:
    """Rows of the table that are training rows, so that figures are too good."""
    table = facts["table"]
    if table is None or table["seen"] is None:
        return _NO_HASHES
    rows, checked = table["seen"]["rows"], table["seen"]["checked"]
    if not rows:
        return "passed", f"None of {checked:,} rows was seen in fitting."
    said = f"{rows:,} of {checked:,} rows were seen in fitting"
    if not table["counts_seen"]:
        return "passed", f"{said}, and no figure counts them."
    return ("problem" if rows > 0.01 * checked else "tip"), f"{said}, and are counted all the same."


@finding("QM305")
def conflicting_rows(facts: Facts) -> Verdict:
    """Rows that no model of these columns can tell apart."""
    table, equal = facts["table"], facts["conflicting"]
    if table is None or equal is None or not table["labeled"]:
        return _NO_HASHES
    said = f"{equal:,} of {table['labeled']:,} rows equal a row of another class in all columns that are read"
    if equal < 0.01 * table["labeled"]:
        return "passed", f"{said}."
    return "tip", f"{said}: no model can be right about all of them."


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
    if found["direction"] == "none":
        return "passed", f"{said}."
    return "problem", f"{said} ({low:.3g} to {high:.3g} % by chance)."


@finding("QM405")
def drift(facts: Facts) -> Verdict:
    """Classes or columns that change in the order of time."""
    first, last = facts["thirds"] or ((), ())
    if len(first) < 50:
        return "not applicable", "It compares the first and the last third of at least 150 rows."
    # Kolmogorov and Smirnov's bound, for as many columns as are compared.
    bound = max(math.sqrt(-math.log(0.0005 / max(len(facts["by_column"]), 1)) / len(first)), 0.15)
    moved = [(one["moved"], name) for name, one in facts["by_column"].items() if name != facts["dated_by"]]
    beyond = sorted((one for one in moved if one[0] is not None and one[0] > bound), reverse=True)
    said = _moved_classes(facts["model"]["classes"], first, last)[:2]
    columns = [f"{name!r} ({100 * amount:.0f} % of its rows moved)" for amount, name in beyond]
    said += [some_of(columns, MOST_NAMED)] if columns else []
    by = "the rows of the table" if facts["dated_by"] is None else repr(facts["dated_by"])
    if not said:
        return "passed", f"The first and the last third in the order of {by} are alike."
    # Rows may stand in an order that is not of time.
    is_problem = len(said) > bool(columns) and facts["dated_by"] is not None
    return ("problem" if is_problem else "tip"), f"In the order of {by}: {'; '.join(said)}."


def _moved_classes(classes: Sequence[object], first: Any, last: Any) -> list[str]:
    n_first, n_last, said = int((first >= 0).sum()), int((last >= 0).sum()), list[str]()
    for code, label in enumerate(classes if n_first and n_last else ()):
        before, after = int((first == code).sum()), int((last == code).sum())
        change = share_change(after, n_last, before, n_first, width=COLUMNS_WIDTH)
        if abs(change.standard_errors) > COLUMNS_WIDTH and abs(after / n_last - before / n_first) > 0.03:
            shares = f"{100 * before / n_first:.3g} % of the first and {100 * after / n_last:.3g} % of the last third"
            said.append(f"{label!r} is {shares}")
    return said


@finding("QM406")
def missing_by_class(facts: Facts) -> Verdict:
    """Missing cells that give the class away, as forms do that are filled in later."""
    known = {name: one["missing"] for name, one in facts["by_column"].items()}
    if not any(sum(n > 0 for _, n in counts) > 1 for counts in known.values()):
        return "not applicable", "It needs a table with rows of two classes."
    worst, said = 0.0, ""
    for name, counts in known.items():
        pairs = sorted((pair for pair in counts if pair[1] >= 20), key=lambda pair: pair[0] / pair[1])
        if len(pairs) < 2:
            continue
        (low, n_low), (high, n_high) = pairs[0], pairs[-1]
        change = share_change(high, n_high, low, n_low, width=COLUMNS_WIDTH)
        if change.standard_errors > COLUMNS_WIDTH and high / n_high - low / n_low >= max(0.1, worst):
            worst, shares = high / n_high - low / n_low, (100 * high / n_high, 100 * low / n_low)
            said = "{!r} is missing in {:.3g} % of the rows of one class, and in {:.3g} % of another."
            said = said.format(name, *shares)
    if not said:
        return "passed", "Cells are missing about as often in every class."
    return ("problem" if worst > 0.5 else "tip"), said


@finding("QM407")
def without_classes(facts: Facts) -> Verdict:
    """A table that gives no figures."""
    table = facts["table"]
    if table is None:
        return _NO_TABLE
    if table["labeled"]:
        missing = table["rows"] - table["labeled"]
        return "passed", f"{table['labeled']:,} rows have a class of the model, {missing:,} have none."
    return "tip", f"None of {table['rows']:,} rows has a class of the model: they do not show how good it is."


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


@finding("QM410")
def sentinels(facts: Facts) -> Verdict:
    """One value in many rows, far from all others, such as a cholesterol of 0."""
    if facts["table"] is None:
        return _NO_TABLE
    said = [one["sentinel"] for one in facts["by_column"].values() if one["sentinel"] is not None]
    if not said:
        return "passed", "No value stands in many rows and far from all others."
    return "tip", some_of(said, MOST_NAMED) + "."
