"""Findings about figures, QM301 to QM306, and about a table next to the training rows, QM401 to QM410."""

import math

from qmedoid.exceptions import some_of
from qmedoid.metrics.intervals import share_change
from qmedoid.report.figures import known_figure
from qmedoid.report.findings.facts import MOST_NAMED, TABLE_ORDER, ReportFacts, Verdict, finding
from qmedoid.tables.cells import read_as
from qmedoid.tables.sentinels import find_sentinels

WIDTH = 3.0
"""Standard errors from which on a difference is no chance."""
LEAST_WORSE = 0.02
"""By how much a share must be lower before that is said, however sure it is."""
_SEEN = 0.01


@finding("QM301", "worse than held-out rows promised", "as good as held-out rows promised")
def worse_than_expected(facts: ReportFacts) -> Verdict:
    """Precision or recall on the table that is lower than on the held-out rows of the fit."""
    expected = facts.summary["expected"]
    if expected is None or not facts.is_evaluated_on_table:
        return "not applicable", "It compares a table with classes with the held-out rows of the fit, of two classes."
    (_, fp), (fn, tp) = facts.summary["confusion"]["counts"]
    called, called_before = tp + fp, expected["tp"] + expected["fp"]
    totals = {"recall": (tp + fn, expected["tp"] + expected["fn"]), "precision": (called, called_before)}
    worst, found, draws = None, [], expected["draws_per_row"]
    for name, (n, n_before) in totals.items():
        if not n or not n_before:
            continue
        change = share_change(tp, n, expected["tp"] * draws, n_before * draws, width=WIDTH)
        now, before = tp / n, expected["tp"] / n_before
        found.append(f"{name} {now:.4f} here, {before:.4f} there")
        if change.standard_errors < -WIDTH and before - now >= LEAST_WORSE:
            worst = name
    if not found:
        return "not applicable", "There is no alert and no row of the positive class to compare."
    if worst is None:
        return "passed", f"The table is as the held-out rows promised: {'; '.join(found)}."
    return "problem", f"The {worst} is lower than on held-out rows: {'; '.join(found)}."


@finding("QM302", "probabilities that are off", "probabilities are right on average")
def miscalibrated(facts: ReportFacts) -> Verdict:
    """A calibration error that chance does not explain."""
    found = facts.summary["calibration"]
    if found is None:
        return "not applicable", "It needs a table with classes, and a model with probabilities."
    said = f"The calibration error is {found['error']:.4f}; by chance it is {found['by_chance']:.4f} on average, and " \
           f"exceeds {found['by_chance_high']:.4f} in 1 table of 20"  # fmt: skip
    if found["error"] <= found["by_chance_high"]:
        return "passed", f"{said}."
    return ("problem" if found["error"] > 2 * found["by_chance_high"] else "tip"), f"{said}."


@finding("QM303", "a plain baseline is better", "no plain baseline is better")
def baseline_better(facts: ReportFacts) -> Verdict:
    """A plain classifier with the settings of its library that is better by more than luck."""
    found = facts.summary["baselines"]
    if found is None:
        return "not applicable", "No baseline was fitted: qmedoid report MODEL TABLE --baselines does."
    if found["better"] is None:
        return "not applicable", "Our model and the baselines were not evaluated on the same new rows."
    if found["better"]:
        return "problem", found["verdict"]
    return "passed", found["verdict"]


@finding("QM304", "rows that the model was fitted on", "figures are of new rows")
def seen_rows(facts: ReportFacts) -> Verdict:
    """Rows of the table that are training rows, so that figures are too good."""
    table = facts.table
    if table is None or table["seen"] is None:
        return "not applicable", "It needs a table with classes, and a model that keeps hashes of its training rows."
    rows, checked = table["seen"]["rows"], table["seen"]["checked"]
    if not rows:
        return "passed", f"None of {checked:,} rows was seen in fitting."
    if not table["counts_seen"]:
        return "passed", f"{rows:,} of {checked:,} rows were seen in fitting, and no figure counts them."
    return (
        "problem" if rows > _SEEN * checked else "tip",
        f"{rows:,} of {checked:,} rows were seen in fitting, and are counted all the same.",
    )


@finding("QM305", "equal rows of different classes", "equal rows have the same class")
def conflicting_rows(facts: ReportFacts) -> Verdict:
    """Rows that no model of these columns can tell apart."""
    table, equal = facts.table, facts.equal_rows
    if table is None or equal is None or not table["labeled"]:
        return "not applicable", "It needs a table with classes, and a model that keeps hashes of its training rows."
    said = f"{equal[0]:,} of {table['labeled']:,} rows equal a row of another class in all columns that are read"
    if equal[0] < 0.01 * table["labeled"]:
        return "passed", f"{said}."
    return "tip", f"{said}: no model can be right about all of them."


@finding("QM306", "no better than the most frequent class", "better than the most frequent class")
def no_better(facts: ReportFacts) -> Verdict:
    """An accuracy that always naming one class has as well."""
    accuracy, confusion = known_figure(facts.summary, "accuracy"), facts.summary["confusion"]
    if accuracy is None or confusion is None or accuracy["low"] is None:
        return "not applicable", "There are no figures."
    totals = [sum(row) for row in confusion["counts"]]
    share = max(totals) / max(sum(totals), 1)
    said = f"The accuracy is {accuracy['text']}, and always the most frequent class has {share:.4f}"
    # Where one class is rare, a ranking of alerts that is better than chance counts more than accuracy.
    area = None if facts.summary["operating"] is None else known_figure(facts.summary, "roc_auc")
    is_ranked = area is not None and area["low"] is not None and area["low"] > 0.6
    if accuracy["low"] > share or is_ranked:
        return "passed", f"{said}."
    return "tip", f"{said}."


COLUMNS_WIDTH = 3.5
"""The same where several columns are compared."""
LEAST_MOVED = 0.15
"""Share of the rows that must have moved before that is said, however sure it is."""
LEAST_MISSING = 0.1
_NO_TABLE = "It needs a table."


@finding("QM401", "a table unlike the contract", "the table is like the contract")
def contract(facts: ReportFacts) -> Verdict:
    """Columns or cells that the training rows did not have."""
    if facts.table is None:
        return "not applicable", _NO_TABLE
    found = facts.table["difference"]
    lines = [line for line in found["lines"] if not line.startswith("+")]
    if not lines:
        return "passed", "Columns, kinds and levels are those of the training rows."
    more = f" (and {len(lines) - 3} more)" if len(lines) > 3 else ""
    return ("problem" if found["breaks"] else "tip"), "; ".join(line[2:] for line in lines[:3]) + more + "."


@finding("QM402", "records unlike the training rows", "records are like the training rows")
def novel(facts: ReportFacts) -> Verdict:
    """Values beyond all limits, other distributions, records far from every medoid."""
    if facts.table is None:
        return "not applicable", _NO_TABLE
    found = facts.table["novelty"]
    if found["status"] == "unknown":
        return "not applicable", "The model keeps no summary of its training rows."
    if found["status"] != "unlike":
        few = " (too few rows to compare shares)" if found["status"] == "too few" else ""
        return "passed", f"Values and distances are as in the training rows{few}."
    return ("problem" if found["is_far"] else "tip"), "; ".join(found["lines"]) + "."


@finding("QM403", "classes more or less frequent than in training", "classes are as frequent as in training")
def prior_shift(facts: ReportFacts) -> Verdict:
    """Class frequencies other than those that probabilities were made for."""
    shares, confusion = facts.summary["model"]["class_shares"], facts.summary["confusion"]
    if shares is None or confusion is None or not facts.is_evaluated_on_table:
        return "not applicable", "It needs a table with classes, and a model that knows its class frequencies."
    rows = [sum(counts) for counts in confusion["counts"]]
    n, n_before = sum(rows), facts.summary["model"]["training_rows"] or 0
    beyond = []
    for label, here, share in zip(confusion["labels"], rows, shares, strict=True):
        change = share_change(here, n, share * n_before, n_before, width=COLUMNS_WIDTH)
        ratio = max((here / n + 1e-12) / share, share / (here / n + 1e-12))
        if abs(change.standard_errors) > COLUMNS_WIDTH and (abs(here / n - share) > 0.05 or ratio > 1.5):
            beyond.append(f"{label!r} has {100 * here / n:.3g} % of the rows, {100 * share:.3g} % in training")
    if not beyond:
        return "passed", "The classes are about as frequent as in training."
    return "tip", "; ".join(beyond[:MOST_NAMED]) + "."


@finding("QM404", "more or fewer alerts than expected", "as many alerts as expected")
def alert_rate(facts: ReportFacts) -> Verdict:
    """An alert rate that held-out rows did not promise."""
    found = None if facts.table is None else facts.table["drift"]
    if found is None:
        return "not applicable", "It compares the alerts in a table with those of held-out rows, of two classes."
    rate, expected, low, high = (100 * found[name] for name in ("alert_rate", "expected", "low", "high"))
    said = f"{rate:.3g} % of {found['rows']:,} rows are alerts, and {expected:.3g} % were expected"
    if found["direction"] == "none":
        return "passed", f"{said}."
    return "problem", f"{said} ({low:.3g} to {high:.3g} % by chance)."


@finding("QM405", "the last rows differ from the first", "first and last rows are alike")
def drift(facts: ReportFacts) -> Verdict:
    """Classes or columns that change in the order of time."""
    order, by = facts.row_order
    third = len(order) // 3
    if facts.looked is None or third < 50:
        return "not applicable", "It compares the first and the last third of at least 150 rows."
    # Kolmogorov and Smirnov's bound, for as many columns as are compared.
    bound = max(math.sqrt(-math.log(0.0005 / max(len(facts.columns), 1)) / third), LEAST_MOVED)
    beyond = sorted(
        ((one["moved"], name) for name, one in facts.columns.items()
         if one["moved"] is not None and one["moved"] > bound and repr(name) != by), reverse=True
    )  # fmt: skip
    first, last = (facts.looked.sample.codes[order[part]] for part in (slice(third), slice(-third, None)))
    n_first, n_last, classes = int((first >= 0).sum()), int((last >= 0).sum()), list[str]()
    for code, label in enumerate(facts.summary["model"]["classes"] if n_first and n_last else ()):
        before, after = int((first == code).sum()), int((last == code).sum())
        change = share_change(after, n_last, before, n_first, width=COLUMNS_WIDTH)
        if abs(change.standard_errors) > COLUMNS_WIDTH and abs(after / n_last - before / n_first) > 0.03:
            shares = f"{100 * before / n_first:.3g} % of the first and {100 * after / n_last:.3g} % of the last third"
            classes.append(f"{label!r} is {shares}")
    if not beyond and not classes:
        return "passed", f"The first and the last third in the order of {by} are alike."
    columns = [f"{name!r} ({100 * amount:.0f} % of its rows moved)" for amount, name in beyond[:1]]
    columns += [f"{name!r} ({100 * amount:.0f} %)" for amount, name in beyond[1:]]
    said = "; ".join([*classes[:2], *([some_of(columns, MOST_NAMED)] if columns else [])])
    # Rows may stand in an order that is not of time.
    return ("problem" if classes and by != TABLE_ORDER else "tip"), f"In the order of {by}: {said}."


@finding("QM406", "cells that are missing in one class mainly", "cells are missing alike in every class")
def missing_by_class(facts: ReportFacts) -> Verdict:
    """Missing cells that give the class away, as forms do that are filled in later."""
    known = {name: one["missing"] for name, one in facts.columns.items() if sum(n > 0 for _, n in one["missing"]) > 1}
    if not known:
        return "not applicable", "It needs a table with rows of two classes."
    worst, said = 0.0, ""
    for name, counts in known.items():
        pairs = [(absent, n) for absent, n in counts if n >= 20]
        if len(pairs) < 2:
            continue
        (low, n_low), (high, n_high) = (pick(pairs, key=lambda pair: pair[0] / pair[1]) for pick in (min, max))
        change = share_change(high, n_high, low, n_low, width=COLUMNS_WIDTH)
        away = high / n_high - low / n_low
        if change.standard_errors > COLUMNS_WIDTH and away >= LEAST_MISSING and away > worst:
            worst = away
            said = f"{name!r} is missing in {100 * high / n_high:.3g} % of the rows of one class, and in " \
                   f"{100 * low / n_low:.3g} % of another."  # fmt: skip
    if not said:
        return "passed", "Cells are missing about as often in every class."
    return ("problem" if worst > 0.5 else "tip"), said


@finding("QM407", "a table without classes", "the table has classes")
def without_classes(facts: ReportFacts) -> Verdict:
    """A table that gives no figures."""
    if facts.table is None:
        return "not applicable", _NO_TABLE
    if facts.table["labeled"]:
        missing = facts.table["rows"] - facts.table["labeled"]
        return "passed", f"{facts.table['labeled']:,} rows have a class of the model, {missing:,} have none."
    why = f"None of {facts.table['rows']:,} rows has a class of the model: they do not show how good it is."
    return "tip", why


@finding("QM408", "more missing cells than in training", "no more missing cells than in training")
def more_missing(facts: ReportFacts) -> Verdict:
    """Columns that are missing more often than they were."""
    if facts.table is None:
        return "not applicable", _NO_TABLE
    rows, beyond = facts.summary["model"]["training_rows"], []
    if rows is None:
        return "not applicable", "The model keeps no counts of its training rows."
    for column in facts.summary["columns"]:
        here = facts.columns.get(column["name"])
        if here is None or column["missing"] is None or not here["rows"]:
            continue
        change = share_change(here["missing_rows"], here["rows"], column["missing"] * rows, rows, width=COLUMNS_WIDTH)
        share = here["missing_rows"] / here["rows"]
        if change.standard_errors > COLUMNS_WIDTH and share - column["missing"] >= 0.05:
            shares = f"{100 * share:.3g} %, {100 * column['missing']:.3g} % in training"
            beyond.append((share, f"{column['name']!r} ({shares})"))
    if not beyond:
        return "passed", "No column is missing much more often than in training."
    said = some_of([text for _, text in sorted(beyond, reverse=True)], MOST_NAMED)
    return ("problem" if max(beyond)[0] > 0.5 else "tip"), f"More cells are missing: {said}."


@finding("QM409", "rows that are there more than once", "no row is there more than once")
def repeated_rows(facts: ReportFacts) -> Verdict:
    """Equal rows within the table, which count as several and are one."""
    equal = facts.equal_rows
    if facts.table is None or equal is None:
        return "not applicable", "It needs a table, and a model that keeps hashes of its training rows."
    said = f"{equal[1]:,} of {facts.table['rows']:,} rows equal another row in all columns that are read"
    if equal[1] <= 0.05 * facts.table["rows"]:
        return "passed", f"{said}."
    return "tip", f"{said}: intervals that count each of them are too narrow."


@finding("QM410", "values that may stand for missing cells", "no value stands out in many rows")
def sentinels(facts: ReportFacts) -> Verdict:
    """One value in many rows, far from all others, such as a cholesterol of 0."""
    if facts.looked is None or facts.model is None:
        return "not applicable", _NO_TABLE
    said, table = list[str](), facts.looked.sample.table
    for column in facts.model.contract.columns:
        if column.name in facts.columns and column.name in table.column_names and column.kind in ("number", "date"):
            found = find_sentinels(read_as(table.column(column.name), column).values, column.kind)
            said += [] if found is None else [found.message(column.name)]
    if not said:
        return "passed", "No value stands in many rows and far from all others."
    return "tip", some_of(said, MOST_NAMED) + "."
