"""Findings about figures: QM301 to QM306."""

from qmedoid.metrics.intervals import share_change
from qmedoid.model_report.findings.facts import Facts
from qmedoid.model_report.findings.registry import Verdict, finding, not_applicable, passed

WIDTH = 3.0
"""Standard errors from which on a difference is no chance."""
LEAST_WORSE = 0.02
"""By how much a share must be lower before that is said, however sure it is."""
_SEEN = 0.01


@finding("QM301", "worse than held-out rows promised")
def worse_than_expected(facts: Facts) -> Verdict:
    """Precision or recall on the table that is lower than on the held-out rows of the fit."""
    table, expected = facts.table, facts.summary["expected"]
    if table is None or expected is None or facts.summary["confusion"] is None or not table["labeled"]:
        return not_applicable("It compares a table with classes with the held-out rows of the fit, of two classes.")
    (_, fp), (fn, tp) = facts.summary["confusion"]["counts"]
    pairs = {
        "recall": ((tp, tp + fn), (expected["tp"], expected["tp"] + expected["fn"])),
        "precision": ((tp, tp + fp), (expected["tp"], expected["tp"] + expected["fp"])),
    }
    worst, found = None, []
    for name, ((hits, n), (hits_before, n_before)) in pairs.items():
        if not n or not n_before:
            continue
        change = share_change(hits, n, hits_before * expected["draws_per_row"], n_before * expected["draws_per_row"],
                              width=WIDTH)  # fmt: skip
        now, before = hits / n, hits_before / n_before
        found.append(f"{name} {now:.4f} here, {before:.4f} there")
        if change.standard_errors < -WIDTH and before - now >= LEAST_WORSE:
            worst = name
    if not found:
        return not_applicable("There is no alert and no row of the positive class to compare.")
    if worst is None:
        return passed(f"The table is as the held-out rows promised: {'; '.join(found)}.")
    return Verdict(
        "problem", f"The {worst} is lower than on held-out rows: {'; '.join(found)}.",
        "Look at drift and novelty below; qmedoid recalibrate fits probabilities and cut to new labels.",
    )  # fmt: skip


@finding("QM302", "probabilities that are off")
def miscalibrated(facts: Facts) -> Verdict:
    """A calibration error that chance does not explain."""
    found = facts.summary["calibration"]
    if found is None:
        return not_applicable("It is judged on a table with classes, by a model with probabilities.")
    said = f"The calibration error is {found['error_text']}; by chance it is {found['by_chance_text']}"
    if found["error"] <= found["by_chance_high"]:
        return passed(f"{said}.")
    return Verdict("problem" if found["error"] > 2 * found["by_chance_high"] else "tip", f"{said}.",
                   "qmedoid recalibrate fits the probabilities to new labels.")  # fmt: skip


@finding("QM303", "a plain baseline is better")
def baseline_better(facts: Facts) -> Verdict:
    """A plain classifier with the settings of its library that is better by more than luck."""
    found = facts.summary["baselines"]
    if found is None:
        return not_applicable("No baseline was fitted: qmedoid report MODEL TABLE --baselines does.")
    better = found["better"]
    if better is None:
        return not_applicable("Ours and the baselines were not judged by the same new rows.")
    if better:
        return Verdict("problem", found["verdict"], "Use the baseline, or fit ours with other settings and compare.")
    return passed(found["verdict"])


@finding("QM304", "rows that the model was fitted on")
def seen_rows(facts: Facts) -> Verdict:
    """Rows of the table that are training rows, so that figures are too good."""
    table = facts.table
    if table is None or table["seen"] is None:
        return not_applicable("It needs a table with classes, and a model that keeps hashes of its training rows.")
    rows, checked = table["seen"]["rows"], table["seen"]["checked"]
    if not rows:
        return passed(f"None of {checked:,} rows was seen in fitting.")
    return Verdict(
        "problem" if rows > _SEEN * checked else "tip",
        f"{rows:,} of {checked:,} rows have the same cells as rows that the model was fitted on.",
        "Judge by rows that the fit has not seen: figures on new rows will be less good.",
    )


@finding("QM305", "equal rows of different classes")
def conflicting_rows(facts: Facts) -> Verdict:
    """Rows that no model of these columns can tell apart."""
    table = facts.table
    if table is None or facts.conflicting is None or not table["labeled"]:
        return not_applicable("It needs a table with classes, and a model that keeps hashes of its training rows.")
    share = facts.conflicting / max(table["labeled"], 1)
    said = (
        f"{facts.conflicting:,} of {table['labeled']:,} rows equal a row of another class in all columns that are read"
    )
    if share < 0.01:
        return passed(f"{said}.")
    return Verdict("tip", f"{said}: no model can be right about all of them.",
                   "Look for a column that tells them apart, or for wrong labels.")  # fmt: skip


@finding("QM306", "no better than the most frequent class")
def no_better(facts: Facts) -> Verdict:
    """An accuracy that always naming one class has as well."""
    accuracy, confusion = facts.figure("accuracy"), facts.summary["confusion"]
    if accuracy is None or confusion is None or accuracy["low"] is None:
        return not_applicable("There are no figures.")
    totals = [sum(row) for row in confusion["counts"]]
    share = max(totals) / max(sum(totals), 1)
    said = f"The accuracy is {accuracy['text']}, and always the most frequent class has {share:.4f}"
    if accuracy["low"] > share or (facts.summary["operating"] is not None and _is_cut(facts)):
        return passed(f"{said}.")
    return Verdict("tip", f"{said}.", "Where classes are rare, judge by ROC-AUC, precision and recall instead.")


def _is_cut(facts: Facts) -> bool:
    """Whether a ranking of alerts is better than chance, which counts more than accuracy where one class is rare."""
    area = facts.figure("roc_auc")
    return area is not None and area["low"] is not None and area["low"] > 0.6
