"""Findings about the training rows and the columns of a model: QM101 to QM107."""

from qmedoid.exceptions import some_of
from qmedoid.model_report.findings.facts import Facts
from qmedoid.model_report.findings.registry import Verdict, finding, not_applicable, passed
from qmedoid.tables.roles import IDENTIFIERS

FEW_ROWS, VERY_FEW_ROWS = 50, 10
"""Training rows of a class below which it is a tip, and a problem."""
MANY_LEVELS, MANY_SHARE = 30, 0.05
"""Levels from which on a category has many, if they are this share of the training rows as well."""
MANY_SINGLE = 0.1
"""Share of a category's levels that may be seen once."""
_NAMED = 5


@finding("QM101", "few training rows in a class")
def few_rows(facts: Facts) -> Verdict:
    """A class of which a fit has hardly seen a row."""
    if facts.class_counts is None:
        return not_applicable("The model keeps no counts of its training rows.")
    labels = [str(label) for label in facts.summary["model"]["classes"]]
    fewest = min(range(len(labels)), key=lambda code: facts.class_counts[code] if facts.class_counts else 0.0)
    rows = round(facts.class_counts[fewest])
    if rows >= FEW_ROWS:
        return passed(f"The rarest class, {labels[fewest]!r}, has about {rows:,} training rows.")
    return Verdict(
        "problem" if rows < VERY_FEW_ROWS else "tip",
        f"The class {labels[fewest]!r} has about {rows:,} training rows: its probabilities rest on them alone.",
        "Collect more rows of this class, or join it with another one.",
    )


@finding("QM102", "columns left out of the fit")
def left_out(facts: Facts) -> Verdict:
    """Columns that no model reads because of a guess, such as that they are identifiers."""
    guessed = [one["name"] for one in facts.summary["left_out"] if one["reason"] in IDENTIFIERS]
    n_all = len(facts.summary["left_out"])
    if not n_all:
        return passed("Every column of the training table was used.")
    if not guessed:
        return passed(f"{_columns(n_all)} left out for a reason that is no guess.")
    return Verdict(
        "tip",
        f"{_columns(len(guessed))} left out because {'it looks' if len(guessed) == 1 else 'they look'} like an "
        f"identifier: {some_of([repr(name) for name in guessed], _NAMED)}.",
        "Fit with --keep NAME if a column says something about new records as well.",
    )


@finding("QM103", "levels that were seen once")
def single_levels(facts: Facts) -> Verdict:
    """Levels of a category with one training row, of which nothing can be learnt."""
    if not facts.levels:
        return not_applicable("The model has no categories whose levels were counted.")
    worst, share, n_single = "", 0.0, 0
    for name, counts in facts.levels.items():
        single = sum(count == 1 for count in counts)
        if counts and single / len(counts) > share:
            worst, share, n_single = name, single / len(counts), single
    if share <= MANY_SINGLE:
        return passed("Nearly all levels have more than one training row.")
    return Verdict(
        "tip",
        f"{n_single:,} of {len(facts.levels[worst]):,} levels of {worst!r} were seen in one training row.",
        "Join rare levels into one before the fit, or collect more rows.",
    )


@finding("QM104", "a category of many levels")
def many_levels(facts: Facts) -> Verdict:
    """A category with so many levels that new tables will have new ones."""
    rows = facts.summary["model"]["training_rows"]
    if not facts.levels or rows is None:
        return not_applicable("The model has no categories whose levels were counted.")
    many = {name: len(counts) for name, counts in facts.levels.items()
            if len(counts) >= MANY_LEVELS and len(counts) >= MANY_SHARE * rows}  # fmt: skip
    if not many:
        return passed("No category has many levels for the number of training rows.")
    worst = max(many, key=lambda name: many[name])
    return Verdict(
        "tip",
        f"{worst!r} has {many[worst]:,} levels in {rows:,} training rows: a new level is likely in every table.",
        "Group its levels, or leave the column out with --ignore NAME.",
    )


@finding("QM105", "constant columns")
def constant_columns(facts: Facts) -> Verdict:
    """Columns with one value, in the training rows or in the table."""
    training = [one["name"] for one in facts.summary["left_out"] if one["reason"].startswith("every cell is")]
    table = [name for name, one in facts.columns.items() if one.n_values == 1 and one.rows > 1 and not one.missing_rows]
    if training:
        return Verdict(
            "tip",
            f"{_columns(len(training))} left out because every cell was the same: "
            f"{some_of([repr(name) for name in training], _NAMED)}.",
            "Look whether the table was cut to a part in which they do not vary.",
        )
    if table:
        return Verdict(
            "tip",
            f"Every looked-at cell of {some_of([repr(name) for name in table], _NAMED)} is the same in this table.",
            "Look whether the table is a part of what the model decides about.",
        )
    return passed("No column is constant.")


@finding("QM106", "columns that the model does not read")
def unread_columns(facts: Facts) -> Verdict:
    """Columns that a table must have though no decision depends on them."""
    unread = [one["name"] for one in facts.summary["columns"] if not one["read"]]
    if not unread:
        return passed("Every column that is listed is read.")
    return Verdict(
        "tip",
        f"No decision depends on {some_of([repr(name) for name in unread], _NAMED)}.",
        "Fit with --ignore NAME to need fewer columns.",
    )


def _columns(count: int) -> str:
    return "1 column was" if count == 1 else f"{count:,} columns were"
