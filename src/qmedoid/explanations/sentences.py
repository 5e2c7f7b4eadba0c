"""One decision in two sentences, every number of which is in its dictionary."""

from collections.abc import Mapping, Sequence
from typing import Any

from qmedoid.explanations.digits import plain, signed
from qmedoid.spelling import printable

# Reasons that are named for the decision, and against it.
_FOR, _AGAINST = 2, 1
_LONGEST = 40


def two_sentences(report: Mapping[str, Any], flips: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """What was decided and why; which real row it lies nearer to, and what would turn it."""
    return _decision(report), _nearness(report, flips)


def cell_text(value: Any) -> str:
    """A cell within a sentence: numbers with six digits, long texts cut."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = printable(str(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _decision(report: Mapping[str, Any]) -> str:
    winner, against = cell_text(report["prediction"]), cell_text(report["against"])
    probability = report.get("probability")
    sure = "" if probability is None else f" with a probability {_chance(probability)}"
    named = f"Row {report['row']}" if report.get("row") is not None else "The record"
    at = " at the operating point" if report["terms"].get("operating point") else ""
    text = f"{named} is called {winner}{sure}, {plain(report['margin'])} ahead of {against} in log-odds{at}"
    reasons = [_reason(column) for column in report["columns"] if column["contribution"] > 0][:_FOR]
    doubts = [_reason(column) for column in report["columns"] if column["contribution"] < 0][:_AGAINST]
    text += f", most of all because {' and '.join(reasons)}" if reasons else ", and no column speaks for it"
    return text + (f"; against it speaks that {doubts[0]}." if doubts else ".")


def _chance(probability: float) -> str:
    """A probability in words that claim no certainty: what would be rounded to 1 is above a number below 1."""
    return f"of {plain(probability)}" if probability < 0.99995 else "above 0.9999"


def _reason(column: Mapping[str, Any]) -> str:
    name, cell = cell_text(column["name"]), cell_text(column["cell"])
    return f"{name} is {cell} ({signed(column['contribution'], 2)})"


def _nearness(report: Mapping[str, Any], flips: Sequence[Mapping[str, Any]]) -> str:
    winner, nearest = report["medoids"][0], min(report["medoids"], key=lambda medoid: float(medoid["distance"]))
    nearer, farther = (winner, report["medoids"][1]) if winner["distance"] <= nearest["distance"] else (nearest, winner)
    text = (
        f"Of the medoids it lies nearer to training row {nearer['training_row']}, a known {cell_text(nearer['class'])} "
        f"(distance {plain(nearer['distance'])}), than to row {farther['training_row']}, a known "
        f"{cell_text(farther['class'])} ({plain(farther['distance'])})"
    )
    if not flips:
        return text + "; no change of one or two columns that was tried leads to another class."
    flip = flips[0]
    changes = " and ".join(f"{cell_text(one['column'])} were {cell_text(one['to'])}" for one in flip["changes"])
    return f"{text}; it would be called {cell_text(flip['prediction'])} if {changes}."
