"""Findings about training rows, columns and what decides: QM101 to QM106, QM201 to QM206."""

from qmedoid.report.figures import known_figure
from qmedoid.report.findings.facts import ReportFacts, Status, Verdict, finding, named
from qmedoid.tables.roles import IDENTIFIERS

FEW_ROWS, VERY_FEW_ROWS = 50, 10
"""Training rows of a class below which it is a tip, and a problem."""
MANY_LEVELS, MANY_SHARE = 30, 0.05
"""Levels from which on a category has many, if they are this share of the training rows as well."""
MANY_SINGLE = 0.1
"""Share of a category's levels that may be seen once."""


@finding("QM101", "few training rows in a class", "every class has enough training rows")
def few_rows(facts: ReportFacts) -> Verdict:
    """A class of which a fit has hardly seen a row."""
    model = facts.summary["model"]
    if model["class_shares"] is None or model["training_rows"] is None:
        return "not applicable", "The model keeps no counts of its training rows."
    share, rarest = min(zip(model["class_shares"], map(str, model["classes"]), strict=True), key=lambda one: one[0])
    rows = round(model["training_rows"] * share)
    if rows >= FEW_ROWS:
        return "passed", f"The rarest class, {rarest!r}, has about {rows:,} training rows."
    why = f"The class {rarest!r} has about {rows:,} training rows: its probabilities rest on them alone."
    return ("problem" if rows < VERY_FEW_ROWS else "tip"), why


@finding("QM102", "columns left out of the fit", "no column was left out by a guess")
def left_out(facts: ReportFacts) -> Verdict:
    """Columns that no model reads because of a guess, such as that they are identifiers."""
    guessed = [one["name"] for one in facts.summary["left_out"] if one["reason"] in IDENTIFIERS]
    n_all = len(facts.summary["left_out"])
    if not n_all:
        return "passed", "Every column of the training table was used."
    if not guessed:
        return "passed", f"{_columns(n_all)} left out for a reason that is no guess."
    look = "it looks" if len(guessed) == 1 else "they look"
    why = f"{_columns(len(guessed))} left out because {look} like an identifier: {named(guessed)}."
    return "tip", why


@finding("QM103", "levels that were seen once", "levels were seen more than once")
def single_levels(facts: ReportFacts) -> Verdict:
    """Levels of a category with one training row, of which nothing can be learnt."""
    if not facts.levels:
        return "not applicable", "The model has no categories whose levels were counted."
    single = {name: counts.count(1) for name, counts in facts.levels.items() if counts}
    worst = max(single, key=lambda name: single[name] / len(facts.levels[name]), default="")
    if not worst or single[worst] <= MANY_SINGLE * len(facts.levels[worst]):
        return "passed", "Nearly all levels have more than one training row."
    why = f"{single[worst]:,} of {len(facts.levels[worst]):,} levels of {worst!r} were seen in one training row."
    return "tip", why


@finding("QM104", "a category of many levels", "no category has too many levels")
def many_levels(facts: ReportFacts) -> Verdict:
    """A category with many levels, so that new tables will have new ones."""
    rows = facts.summary["model"]["training_rows"]
    if not facts.levels or rows is None:
        return "not applicable", "The model has no categories whose levels were counted."
    many = {name: len(counts) for name, counts in facts.levels.items()
            if len(counts) >= MANY_LEVELS and len(counts) >= MANY_SHARE * rows}  # fmt: skip
    if not many:
        return "passed", "No category has many levels for the number of training rows."
    worst = max(many, key=lambda name: many[name])
    why = f"{worst!r} has {many[worst]:,} levels in {rows:,} training rows: a new level is likely in every table."
    return "tip", why


@finding("QM105", "constant columns", "every column varies")
def constant_columns(facts: ReportFacts) -> Verdict:
    """Columns with one value, in the training rows or in the table."""
    training = [one["name"] for one in facts.summary["left_out"] if one["reason"].startswith("every cell is")]
    table = [
        name
        for name, one in facts.columns.items()
        if one["is_constant"] and one["rows"] > 1 and not one["missing_rows"]
    ]
    if training:
        why = f"{_columns(len(training))} left out because every cell was the same: {named(training)}."
        return ("tip", why, "Look whether the table was cut to a part in which they do not vary.")
    if table:
        why = f"Every looked-at cell of {named(table)} is the same in this table."
        return ("tip", why, "Look whether the table is a part of what the model decides about.")
    return "passed", "No column is constant."


@finding("QM106", "columns that the model does not read", "every column is read")
def unread_columns(facts: ReportFacts) -> Verdict:
    """Columns that a table must have though no decision depends on them."""
    unread = [one["name"] for one in facts.summary["columns"] if not one["read"]]
    if not unread:
        return "passed", "Every column that is listed is read."
    return "tip", f"No decision depends on {named(unread)}."


def _columns(count: int) -> str:
    return "1 column was" if count == 1 else f"{count:,} columns were"


GIVEN_AWAY, NEARLY = 0.999, 0.97
"""ROC-AUC of one column alone from which on it is a problem, and a tip."""
ENOUGH_ROWS = 50
"""Sampled rows from which on a column is evaluated alone."""
MOSTLY = 0.6
"""Share of all importance of one column that is a tip."""
SATURATED = 0.5
"""Share of the rows with a probability next to 0 or 1 that is a tip."""


@finding("QM201", "a column that gives the class away", "no column gives the class away")
def given_away(facts: ReportFacts) -> Verdict:
    """A column that tells the classes apart alone, as one does that is filled in after the class is known."""
    alone = {name: one["alone"] or 0.0 for name, one in facts.columns.items() if one["rows"] >= ENOUGH_ROWS}
    if not any(alone.values()):
        return "not applicable", "It needs a table with at least 50 rows and their classes."
    best = max(alone, key=lambda name: alone[name])
    area = alone[best]
    if area < NEARLY:
        return "passed", f"The best single column, {best!r}, tells the classes apart with a ROC-AUC of {area:.4f}."
    why = f"{best!r} alone tells the classes apart with a ROC-AUC of {area:.4f}."
    do = f"Make sure that {best!r} is known before the class is; if not, fit with --ignore {best!r}."
    return ("problem" if area >= GIVEN_AWAY else "tip", why, do)


@finding("QM202", "one column decides nearly alone", "several columns decide")
def one_column(facts: ReportFacts) -> Verdict:
    """Decisions that rest on one column."""
    known = [(one["importance"], one["name"]) for one in facts.summary["columns"] if one["importance"] is not None]
    total = sum(amount for amount, _ in known)
    if len(known) < 2 or total <= 0:
        return "not applicable", "There are no importances of two columns or more."
    amount, name = max(known)
    share = f"{100 * amount / total:.0f} % of all contributions are of {name!r}"
    if amount / total < MOSTLY:
        return "passed", f"At most {share}."
    return "tip", f"{share}."


@finding("QM203", "probabilities next to 0 or 1", "probabilities leave room for doubt")
def saturated(facts: ReportFacts) -> Verdict:
    """Probabilities so sure that their ranking says little."""
    if facts.model is None or facts.looked is None or not facts.model.decision.probabilistic:
        return "not applicable", "It needs a table, and a model with probabilities."
    best = facts.model.decision.probabilities(facts.looked.decided.scores).max(axis=1)
    sure = float((best > 1.0 - 1e-6).mean())
    share = f"{100 * sure:.3g} % of the rows have a probability of more than 0.999999"
    if sure < SATURATED:
        return "passed", f"{share}."
    return "tip", f"{share} for one class."


@finding("QM204", "a class that is never predicted", "every class is predicted")
def never_predicted(facts: ReportFacts) -> Verdict:
    """A class that no row is called."""
    table, confusion = facts.table, facts.summary["confusion"]
    if table is not None:
        called = {one["class"]: one["rows"] for one in table["called"]}
    elif confusion is not None:
        called = dict(zip(confusion["labels"], map(sum, zip(*confusion["counts"], strict=True)), strict=True))
    else:
        return "not applicable", "There are no decisions to look at."
    never, rows = [label for label, n in called.items() if n == 0], sum(called.values())
    if not never:
        return "passed", f"Every class is predicted among {rows:,} rows."
    return ("problem" if rows >= ENOUGH_ROWS else "tip"), f"None of {rows:,} rows is called {named(never)}."


@finding("QM205", "too few rows for sure figures", "enough rows for sure figures")
def wide_intervals(facts: ReportFacts) -> Verdict:
    """Figures whose interval says next to nothing."""
    known = [known_figure(facts.summary, key) for key in ("accuracy", "recall", "roc_auc")]
    figures = [one for one in known if one is not None and one["low"] is not None]
    if not figures:
        return "not applicable", "There are no figures with intervals."
    widest = max(figures, key=lambda one: one["high"] - one["low"])
    width, said = widest["high"] - widest["low"], f"The {widest['name']} is {widest['text']}"
    if width < 0.2:
        return "passed", f"{said}: the widest interval of accuracy, recall and ROC-AUC is {width:.2f} wide."
    return ("problem" if width >= 0.4 else "tip"), f"{said}, an interval {width:.2f} wide."


@finding("QM206", "too few events for the alert rate", "enough events for the alert rate")
def few_events(facts: ReportFacts) -> Verdict:
    """A precision or a recall that rests on a handful of rows."""
    point = facts.summary["operating"]
    if point is None:
        return "not applicable", "It is about two classes with probabilities."
    stops, start = point["stops"], point["start"]
    alerts, positives = stops["alerts"][start], point["positives"]
    said = (
        f"There {'is 1 alert' if alerts == 1 else f'are {alerts:,} alerts'} at the present cut and "
        f"{positives:,} row{'' if positives == 1 else 's'} of {str(point['positive'])!r} among {point['rows']:,} rows"
    )
    if min(alerts, positives) >= 30:
        return "passed", f"{said}."
    status: Status = "problem" if min(alerts, positives) < 10 else "tip"
    return status, f"{said}: precision or recall rests on them."
