"""Findings about what decides: QM201 to QM206."""

from qmedoid.exceptions import some_of
from qmedoid.model_report.findings.facts import Facts
from qmedoid.model_report.findings.registry import Verdict, finding, not_applicable, passed

GIVEN_AWAY, NEARLY = 0.999, 0.97
"""ROC-AUC of one column alone from which on it is a problem, and a tip."""
ENOUGH_ROWS = 50
"""Sampled rows from which on a column is judged alone."""
MOSTLY = 0.6
"""Share of all importance of one column that is a tip."""
SATURATED = 0.5
"""Share of the rows with a probability next to 0 or 1 that is a tip."""


@finding("QM201", "a column that gives the class away")
def given_away(facts: Facts) -> Verdict:
    """A column that tells the classes apart alone, as one does that is filled in after the class is known."""
    alone = {
        name: one.alone for name, one in facts.columns.items() if one.alone is not None and one.rows >= ENOUGH_ROWS
    }
    if not alone:
        return not_applicable("It is judged on a table with at least 50 rows and their classes.")
    best = max(alone, key=lambda name: alone[name] or 0.0)
    area = alone[best] or 0.0
    if area < NEARLY:
        return passed(f"The best single column, {best!r}, tells the classes apart with a ROC-AUC of {area:.4f}.")
    return Verdict(
        "problem" if area >= GIVEN_AWAY else "tip",
        f"{best!r} alone tells the classes apart with a ROC-AUC of {area:.4f}.",
        f"Make sure that {best!r} is known before the class is; if not, fit with --ignore {best!r}.",
    )


@finding("QM202", "one column decides nearly alone")
def one_column(facts: Facts) -> Verdict:
    """Decisions that rest on one column."""
    known = [(one["importance"], one["name"]) for one in facts.summary["columns"] if one["importance"] is not None]
    total = sum(amount for amount, _ in known)
    if len(known) < 2 or total <= 0:
        return not_applicable("There are no importances of two columns or more.")
    amount, name = max(known)
    share = f"{100 * amount / total:.0f} % of all contributions are of {name!r}"
    if amount / total < MOSTLY:
        return passed(f"At most {share}.")
    return Verdict("tip", f"{share}.", "Look what happens where this column is missing or wrong.")


@finding("QM203", "probabilities next to 0 or 1")
def saturated(facts: Facts) -> Verdict:
    """Probabilities so sure that their ranking says little."""
    if facts.saturated is None:
        return not_applicable("It is judged on a table, by a model with probabilities.")
    share = f"{100 * facts.saturated:.3g} % of the rows have a probability of more than 0.999999"
    if facts.saturated < SATURATED:
        return passed(f"{share}.")
    return Verdict("tip", f"{share} for one class.", "Look for a column that gives the class away, or for equal rows.")


@finding("QM204", "a class that is never predicted")
def never_predicted(facts: Facts) -> Verdict:
    """A class that no row is called."""
    table, confusion = facts.table, facts.summary["confusion"]
    if table is not None:
        never, rows = [one["class"] for one in table["called"] if one["rows"] == 0], table["rows"]
    elif confusion is not None:
        called = [sum(row[code] for row in confusion["counts"]) for code in range(len(confusion["labels"]))]
        never = [label for label, n in zip(confusion["labels"], called, strict=True) if n == 0]
        rows = sum(called)
    else:
        return not_applicable("There are no decisions to look at.")
    if not never:
        return passed(f"Every class is predicted among {rows:,} rows.")
    return Verdict(
        "problem" if rows >= ENOUGH_ROWS else "tip",
        f"None of {rows:,} rows is called {some_of([repr(label) for label in never], 5)}.",
        "Choose another operating point, such as --min-recall 0.5 or --alert-rate 1%, or collect rows of this class.",
    )


@finding("QM205", "too few rows for sure figures")
def wide_intervals(facts: Facts) -> Verdict:
    """Figures whose interval says next to nothing."""
    figures = [
        one for key in ("accuracy", "recall", "roc_auc") if (one := facts.figure(key)) and one["low"] is not None
    ]
    if not figures:
        return not_applicable("There are no figures with intervals.")
    widest = max(figures, key=lambda one: one["high"] - one["low"])
    width, said = widest["high"] - widest["low"], f"The {widest['name']} is {widest['text']}"
    if width < 0.2:
        return passed(f"{said}: the widest interval of accuracy, recall and ROC-AUC is {width:.2f} wide.")
    return Verdict("problem" if width >= 0.4 else "tip", f"{said}, an interval {width:.2f} wide.",
                   "Judge by more rows before you compare figures.")  # fmt: skip


@finding("QM206", "too few events for the alert rate")
def few_events(facts: Facts) -> Verdict:
    """A precision or a recall that rests on a handful of rows."""
    point = facts.summary["operating"]
    if point is None:
        return not_applicable("It is about two classes with probabilities.")
    stops, start = point["stops"], point["start"]
    alerts, positives = stops["alerts"][start], point["positives"]
    said = f"There are {alerts:,} alerts at the present cut and {positives:,} rows of {str(point['positive'])!r}"
    if min(alerts, positives) >= 30:
        return passed(f"{said} among {point['rows']:,} rows.")
    return Verdict(
        "problem" if min(alerts, positives) < 10 else "tip",
        f"{said} among {point['rows']:,} rows: precision or recall rests on them.",
        "Judge by more rows, or by a budget that has at least 30 alerts.",
    )
