"""A decision in sentences, the reason first; every number in them is in the dictionary of the decision."""

import math
from collections.abc import Mapping, Sequence
from heapq import merge
from typing import Any

from qmedoid.metrics.texts import (
    SMALLEST_FACTOR,
    cell_text,
    chance_texts,
    class_name,
    column_text,
    effect_text,
)
from qmedoid.model.operating_point import probability

MOST_REASONS = 3
"""Reasons that the sentences name in either direction, at most."""
# Those below this part of the largest are not named.
_SMALLEST_PART = 0.1
# Contributions up to this size are rounding.
_NOTHING = 1e-9
# Terms in words.
_TERM_NAMES = {
    "neighbors": "its nearest training rows",
    "circuit": "the circuit",
    "calibration": "the calibration curve",
    "recalibration": "the recalibration curve",
    "angle": "the angle to the medoids",
    "class weights": "the class weights",
    "operating point": "the operating point",
    "prevalence": "the expected prevalence",
}

Part = Mapping[str, Any]


def in_words(report: Part, flips: Sequence[Part]) -> dict[str, Any]:
    """What an explanation says: its sentences, the reasons that they name, similar rows and flips, each with a text."""
    return {
        "sentences": sentences(report, flips),
        "reasons": reasons(report),
        "similar": [{**one, "sentence": _similar_text(one, report)} for one in report["similar"]],
        "flips": [{**one, "text": f"{cell_text(one['column'])}: {' → '.join(_change_texts(one))}"} for one in flips],
    }


def sentences(report: Part, flips: Sequence[Part]) -> tuple[str, ...]:
    """The decision, where it starts, what raises and lowers it, and the smallest change that turns it."""
    named, is_odds = reasons(report), "probabilities" in report
    said = [_decision(report), _start(report, named)]
    for word, sign in (("Raises", 1), ("Lowers", -1)):
        parts = [one for one in named if sign * one["contribution"] > 0]
        if parts:
            # What the factors are of is said once.
            unit = " odds" if is_odds and parts[0] is named[0] else ""
            texts = [reason_text(one, odds=is_odds, unit="" if number else unit) for number, one in enumerate(parts)]
            said.append(f"{word} it: {', '.join(texts)}.")
    if not named:
        said.append(f"No column changes the {'odds' if is_odds else 'score'} noticeably.")
    if report["decided_by"] == "circuit":
        said.append("The circuit took this decision.")
    if not flips:
        return (*said, "No change of one column that was tried turns the decision.")
    otherwise = f"called {_class(report, flips[0]['prediction'])}"
    if report["is_alert"] is not None:
        otherwise = "no alert" if report["is_alert"] else "an alert"
    before, after = _change_texts(flips[0])
    change = f"{column_text(cell_text(flips[0]['column']), after)} instead of {before}"
    return (*said, f"It would be {otherwise} with {change}.")


def reasons(report: Part) -> list[dict[str, Any]]:
    """What the sentences name: columns and terms of the record that raise it, then those that lower it.

    In either direction the largest, in order, and none below a tenth of the largest of all. Where they are factors of
    odds, none that is 1 up to rounding.
    """
    columns = [{**one, "is_column": True} for one in report["columns"]]
    terms = {**report["varying"]}
    if report["threshold"] is None and report["terms"].get("operating point"):
        # Of more than two classes it is no threshold, but an advantage of some classes.
        terms["operating point"] = report["terms"]["operating point"]
    others = [{"name": name, "cell": None, "contribution": value, "is_column": False} for name, value in terms.items()]
    smallest = math.log(SMALLEST_FACTOR) if "probabilities" in report else _NOTHING
    least = max([smallest, *(_SMALLEST_PART * abs(one["contribution"]) for one in (*columns, *others))])

    # The columns are sorted, and stay so where they are equal up to rounding.
    def less(part: Part) -> float:
        return -abs(float(part["contribution"]))

    merged = merge(columns, sorted(others, key=less), key=less)
    large = [one for one in merged if abs(one["contribution"]) >= least]
    found = [one for sign in (1, -1) for one in [one for one in large if sign * one["contribution"] > 0][:MOST_REASONS]]
    return [{**one, "text": reason_text(one, odds="probabilities" in report)} for one in found]


def reason_text(part: Part, *, odds: bool, unit: str = "") -> str:
    """A column with its cell, or a term, and what it does to the odds, such as ``Age 61 (×1.7)``."""
    return f"{_with_cell(part)} ({effect_text(part['contribution'], odds=odds)}{unit})"


def term_text(name: str) -> str:
    """A term in words."""
    return _TERM_NAMES.get(name, name)


def _similar_text(similar: Part, report: Part) -> str:
    """The most similar row of a class: which it is, what it shares with the record, and where it differs."""
    row = f"training row {similar['training_row']}" if "training_row" in similar else f"row {similar['row']}"
    if similar["difference"] is None:
        row += ", by distance: the model keeps no cells of training rows"
    of_class = "row of no known class" if similar["class"] is None else f"known {_class(report, similar['class'])}"
    texts = {
        "same": [_with_cell(one) for one in similar["same"]],
        "close:": [f"{_with_cell(one)} ({cell_text(one['own'])})" for one in similar["close"]],
        "differs:": [f"{_with_cell(one)} instead of {cell_text(one['own'])}" for one in similar["differs"]],
    }
    parts = [f"{word} {', '.join(named)}" for word, named in texts.items() if named]
    return f"Most similar {of_class}: {row}" + (f" — {'; '.join(parts)}." if parts else ".")


def _change_texts(flip: Part) -> tuple[str, str]:
    """A cell as it is and as it would be: the new one with all digits that it needs, and not the same in print."""
    cell, to = flip["cell"], flip["to"]
    before, after = cell_text(cell), cell_text(to)
    if isinstance(to, float) and float(after) != to:
        after = f"{to:.12g}"
    if before == after and isinstance(cell, float):
        before = f"{cell:.12g}"
    return before, after


def _class(report: Part, label: Any) -> str:
    return class_name(label, report["target"])


def _with_cell(part: Part) -> str:
    if part.get("is_column", True):
        return column_text(cell_text(part["name"]), cell_text(part["cell"]))
    return term_text(part["name"])


def _decision(report: Part) -> str:
    """What was decided, how likely it is, and from where on it would be decided otherwise."""
    called, toward, against = (_class(report, report[one]) for one in ("prediction", "toward", "against"))
    threshold, chances = report["threshold"], report.get("probabilities")
    if chances is None:
        ahead = f"{abs(report['margin']):.3g}"
        if threshold is None:
            return f"Called {called}: its score is {ahead} ahead of {against}."
        what = f"its score is {ahead} above" if called == toward else f"the score of {toward} is {ahead} below"
        return f"Called {called}: {what} the threshold."
    chance = chances[str(report["toward"])]
    if threshold is None:
        other = chances[str(report["against"])]
        chance_of, other_of = chance_texts(chance, other)
        return f"Called {called}: probability {chance_of}, rather than {against} ({other_of})."
    chance_of, cut = chance_texts(chance, threshold)
    if report["is_alert"] is not None:
        alert = "An alert" if called == toward else "Not an alert"
        return f"{alert}: the risk of {toward} is {chance_of}, alerts start at {cut}."
    whose = "its probability" if called == toward else f"the probability of {toward}"
    return f"Called {called}: {whose} is {chance_of}, the threshold {cut}."


def _start(report: Part, named: Sequence[Part]) -> str:
    """Where every record starts, and whether that weighs more than any reason."""
    start, is_pair = report["start"], report["threshold"] is None
    ahead = start if is_pair else start + report["terms"].get("operating point", 0.0)
    if "probabilities" not in report:
        words = ("behind", "ahead") if is_pair else ("below the threshold", "above the threshold")
        text = f"Every record starts {abs(ahead):.3g} {words[int(ahead > 0)]}"
    elif is_pair:
        text = f"Between these two, {_class(report, report['toward'])} starts at {chance_texts(probability(start))[0]}"
    else:
        subject = "Every record" if report["is_alert"] is None else "Risk"
        text = f"{subject} starts at {chance_texts(probability(start))[0]}"
    largest = max((abs(one["contribution"]) for one in named), default=0.0)
    return f"{text}, which weighs more than any reason." if abs(ahead) > largest else f"{text}."
