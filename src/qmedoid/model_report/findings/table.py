"""Findings about a table compared with the training rows: QM401 to QM408."""

import math

from qmedoid.exceptions import some_of
from qmedoid.metrics.intervals import share_change
from qmedoid.model_report.findings.facts import Facts
from qmedoid.model_report.findings.registry import Verdict, finding, not_applicable, passed

WIDTH = 3.5
"""Standard errors from which on a difference is no chance; several columns are compared."""
LEAST_MOVED = 0.15
"""Share of the rows that must have moved before that is said, however sure it is."""
LEAST_MISSING = 0.1
_NO_TABLE = "It is judged on a table."
_NAMED = 5


@finding("QM401", "a table unlike the contract")
def contract(facts: Facts) -> Verdict:
    """Columns or cells that the training rows did not have."""
    if facts.table is None:
        return not_applicable(_NO_TABLE)
    found = facts.table["difference"]
    lines = [line for line in found["lines"] if not line.startswith("+")]
    if not lines:
        return passed("Columns, kinds and levels are those of the training rows.")
    more = f" (and {len(lines) - 3} more)" if len(lines) > 3 else ""
    return Verdict("problem" if found["breaks"] else "tip", "; ".join(line[2:] for line in lines[:3]) + more + ".",
                   "Make the table as that of the fit, or fit again with rows like these.")  # fmt: skip


@finding("QM402", "records unlike the training rows")
def novel(facts: Facts) -> Verdict:
    """Values beyond all limits, other distributions, records far from every medoid."""
    if facts.table is None:
        return not_applicable(_NO_TABLE)
    found = facts.table["novelty"]
    if found["status"] == "unknown":
        return not_applicable("The model keeps no summary of its training rows.")
    if found["status"] != "unlike":
        few = " (too few rows to compare shares)" if found["status"] == "too few" else ""
        return passed(f"Values and distances are as in the training rows{few}.")
    return Verdict("problem" if found["is_far"] else "tip", "; ".join(found["lines"]) + ".",
                   "Look at these columns: probabilities of such records are guesses.")  # fmt: skip


@finding("QM403", "classes more or less frequent than in training")
def prior_shift(facts: Facts) -> Verdict:
    """Class frequencies other than those that probabilities were made for."""
    shares, confusion = facts.summary["model"]["class_shares"], facts.summary["confusion"]
    if facts.table is None or not facts.table["labeled"] or shares is None or confusion is None:
        return not_applicable("It needs a table with classes, and a model that knows its class frequencies.")
    rows = [sum(counts) for counts in confusion["counts"]]
    n, n_before = sum(rows), facts.summary["model"]["training_rows"] or 0
    beyond = []
    for label, here, share in zip(confusion["labels"], rows, shares, strict=True):
        change = share_change(here, n, share * n_before, n_before, width=WIDTH)
        ratio = max((here / n + 1e-12) / share, share / (here / n + 1e-12))
        if abs(change.standard_errors) > WIDTH and (abs(here / n - share) > 0.05 or ratio > 1.5):
            beyond.append(f"{label!r} has {100 * here / n:.3g} % of the rows, {100 * share:.3g} % in training")
    if not beyond:
        return passed("The classes are about as frequent as in training.")
    return Verdict("tip", "; ".join(beyond[:_NAMED]) + ".",
                   "qmedoid score --prevalence adjusts probabilities; qmedoid recalibrate fits them anew.")  # fmt: skip


@finding("QM404", "more or fewer alerts than expected")
def alert_rate(facts: Facts) -> Verdict:
    """An alert rate that held-out rows did not promise."""
    found = None if facts.table is None else facts.table["drift"]
    if found is None:
        return not_applicable("It compares the alerts in a table with those of held-out rows, of two classes.")
    said = (
        f"{100 * found['alert_rate']:.3g} % of the rows are alerts, and {100 * found['expected']:.3g} % were expected"
    )
    if found["direction"] == "none":
        return passed(f"{said}.")
    return Verdict("problem", f"{said} ({100 * found['low']:.3g} to {100 * found['high']:.3g} % for so many rows).",
                   "Look at novelty and class frequencies; choose the cut anew by --top or --alert-rate.")  # fmt: skip


@finding("QM405", "drift between first and last rows")
def drift(facts: Facts) -> Verdict:
    """Classes or columns that change in the order of time."""
    order = facts.order
    if order is None or order.first < 50:
        return not_applicable("It compares the first and the last third of at least 150 rows.")
    # Kolmogorov and Smirnov's bound, for as many columns as are compared.
    n_columns = max(len(facts.columns), 1)
    bound = math.sqrt(-math.log(0.0005 / n_columns) / order.first)
    beyond = sorted(
        ((one.moved, name) for name, one in facts.columns.items()
         if one.moved is not None and one.moved > max(bound, LEAST_MOVED) and repr(name) != order.by), reverse=True
    )  # fmt: skip
    classes = []
    n_first, n_last = sum(order.first_classes), sum(order.last_classes)
    for label, first, last in zip(facts.summary["model"]["classes"], order.first_classes, order.last_classes,
                                  strict=True):  # fmt: skip
        if n_first and n_last:
            change = share_change(last, n_last, first, n_first, width=WIDTH)
            if abs(change.standard_errors) > WIDTH and abs(last / n_last - first / n_first) > 0.03:
                shares = f"{100 * first / n_first:.3g} % of the first and {100 * last / n_last:.3g} % of the last third"
                classes.append(f"{label!r} is {shares}")
    if not beyond and not classes:
        return passed(f"The first and the last third in the order of {order.by} are alike.")
    columns = [f"{name!r} ({100 * amount:.0f} % of the rows moved)" for amount, name in beyond]
    said = "; ".join([*classes[:2], *([some_of(columns, _NAMED)] if columns else [])])
    # Rows may stand in an order that is not of time.
    return Verdict("problem" if classes and order.is_time else "tip", f"In the order of {order.by}: {said}.",
                   "Fit with --time-column, so that the last rows are held out; watch figures over time.")  # fmt: skip


@finding("QM406", "cells that are missing in one class mainly")
def missing_by_class(facts: Facts) -> Verdict:
    """Missing cells that give the class away, as forms do that are filled in later."""
    known = {name: one.missing for name, one in facts.columns.items() if sum(n > 0 for _, n in one.missing) > 1}
    if not known:
        return not_applicable("It needs a table with rows of two classes.")
    worst, said = 0.0, ""
    for name, counts in known.items():
        pairs = [(absent, n) for absent, n in counts if n >= 20]
        if len(pairs) < 2:
            continue
        (low, n_low), (high, n_high) = (pick(pairs, key=lambda pair: pair[0] / pair[1]) for pick in (min, max))
        change = share_change(high, n_high, low, n_low, width=WIDTH)
        away = high / n_high - low / n_low
        if change.standard_errors > WIDTH and away >= LEAST_MISSING and away > worst:
            worst = away
            said = f"{name!r} is missing in {100 * high / n_high:.3g} % of the rows of one class, and in " \
                   f"{100 * low / n_low:.3g} % of another."  # fmt: skip
    if not said:
        return passed("Cells are missing about as often in every class.")
    return Verdict("problem" if worst > 0.5 else "tip", said,
                   "Make sure that cells are missing for the same reasons when the model is used.")  # fmt: skip


@finding("QM407", "a table without classes")
def without_classes(facts: Facts) -> Verdict:
    """A table by which no figure can be judged."""
    if facts.table is None:
        return not_applicable(_NO_TABLE)
    if facts.table["labeled"]:
        missing = facts.table["rows"] - facts.table["labeled"]
        return passed(f"{facts.table['labeled']:,} rows have a class of the model, {missing:,} have none.")
    why = f"None of {facts.table['rows']:,} rows has a class of the model: they judge no figure."
    return Verdict("tip", why,
                   "Name the column of the classes by --target, or add it to judge by these rows.")  # fmt: skip


@finding("QM408", "more missing cells than in training")
def more_missing(facts: Facts) -> Verdict:
    """Columns that are missing more often than they were."""
    if facts.table is None:
        return not_applicable(_NO_TABLE)
    rows, beyond = facts.summary["model"]["training_rows"], []
    if rows is None:
        return not_applicable("The model keeps no counts of its training rows.")
    for column in facts.summary["columns"]:
        here = facts.columns.get(column["name"])
        if here is None or column["missing"] is None or not here.rows:
            continue
        change = share_change(here.missing_rows, here.rows, column["missing"] * rows, rows, width=WIDTH)
        share = here.missing_rows / here.rows
        if change.standard_errors > WIDTH and share - column["missing"] >= 0.05:
            beyond.append(
                (share, f"{column['name']!r} ({100 * share:.3g} %, {100 * column['missing']:.3g} % in training)")
            )
    if not beyond:
        return passed("No column is missing much more often than in training.")
    texts = [text for _, text in sorted(beyond, reverse=True)]
    return Verdict("problem" if max(beyond)[0] > 0.5 else "tip", f"More cells are missing: {some_of(texts, _NAMED)}.",
                   "Look why: the model fills them in as it learnt to from other cells.")  # fmt: skip


@finding("QM409", "rows that are there more than once")
def repeated_rows(facts: Facts) -> Verdict:
    """Equal rows within the table, which count as several and are one."""
    if facts.table is None or facts.repeated is None:
        return not_applicable("It needs a table, and a model that keeps hashes of its training rows.")
    said = f"{facts.repeated:,} of {facts.table['rows']:,} rows equal another row in all columns that are read"
    if facts.repeated <= 0.05 * facts.table["rows"]:
        return passed(f"{said}.")
    return Verdict("tip", f"{said}: intervals that count each of them are too narrow.",
                   "Leave repeated rows out, or fit with --group-column if they belong together.")  # fmt: skip
