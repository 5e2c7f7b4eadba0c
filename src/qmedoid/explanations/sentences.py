"""One decision in two sentences, every number of which is in its dictionary."""

from collections.abc import Mapping, Sequence
from typing import Any

from qmedoid.explanations.digits import plain, signed
from qmedoid.spelling import printable

# Reasons that are named for the decision, and against it.
_FOR, _AGAINST = 2, 1
# Contributions up to this size are rounding.
_NOTHING = 1e-9
_LONGEST, _END = 40, 12


def two_sentences(report: Mapping[str, Any], flips: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """What was decided and why; which real row it lies nearer to, and what would turn it."""
    return _decision(report), _nearness(report, flips)


def reasons(columns: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """The columns that the sentences name for the decision, and against it, of all that contributed."""
    return (
        [column for column in columns if column["contribution"] > _NOTHING][:_FOR],
        [column for column in columns if column["contribution"] < -_NOTHING][:_AGAINST],
    )


def compared(medoids: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The two medoids that the sentences name, the nearer first: the winner's, and the nearest or the other class's."""
    winner, nearest = medoids[0], min(medoids, key=lambda medoid: float(medoid["distance"]))
    return (winner, medoids[1]) if winner["distance"] <= nearest["distance"] else (nearest, winner)


def cell_text(value: Any) -> str:
    """A cell within a sentence: numbers with six digits, long texts cut within, for many differ at their ends only."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = printable(str(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - _END - 1] + "…" + text[-_END:]


def change_texts(change: Mapping[str, Any]) -> tuple[str, str]:
    """A cell as it is and as it would be: the new one with all digits that it needs, and not the same in print."""
    cell, to = change["cell"], change["to"]
    before, after = cell_text(cell), cell_text(to)
    if isinstance(to, float) and float(after) != to:
        after = f"{to:.12g}"
    if before == after and isinstance(cell, float):
        before = f"{cell:.12g}"
    return before, after


def _decision(report: Mapping[str, Any]) -> str:
    winner, against = cell_text(report["prediction"]), cell_text(report["against"])
    probability = report.get("probability")
    sure = "" if probability is None else f" with a probability {_chance(probability)}"
    named = f"Row {report['row']}" if report.get("row") is not None else "The record"
    at = " at the operating point" if report["terms"].get("operating point") else ""
    unit = "" if probability is None else " in log-odds"
    # Of classes that are equal up to rounding the first is called.
    ahead = f"{plain(report['margin'])} ahead of" if report["margin"] > _NOTHING else "level with"
    text = f"{named} is called {winner}{sure}, {ahead} {against}{unit}{at}"
    causes, doubts = ([_reason(column) for column in part] for part in reasons(report["columns"]))
    text += f", most of all because {' and '.join(causes)}" if causes else ", and no column speaks for it"
    return text + (f"; against it speaks that {doubts[0]}." if doubts else ".")


def _chance(probability: float) -> str:
    """A probability in words that claim no certainty: what would be rounded to 1 is above a number below 1."""
    return f"of {plain(probability)}" if probability < 0.99995 else "above 0.9999"


def _reason(column: Mapping[str, Any]) -> str:
    name, cell = cell_text(column["name"]), cell_text(column["cell"])
    value = column["contribution"]
    # What two decimals would round to nothing still has a digit.
    amount = signed(value, 2) if abs(value) >= 0.005 else f"{value:+.1g}".replace("-", "−")
    return f"{name} is {cell} ({amount})"


def _nearness(report: Mapping[str, Any], flips: Sequence[Mapping[str, Any]]) -> str:
    nearer, farther = compared(report["medoids"])
    # Distances that would look the same have more digits; those that are the same up to rounding are called so.
    digits = next((n for n in (4, 6, 8) if plain(nearer["distance"], n) != plain(farther["distance"], n)), None)
    near, far = (plain(one["distance"], digits or 4) for one in (nearer, farther))
    how, than = ("as near", "as") if digits is None else ("nearer", "than")
    text = (
        f"Of the medoids it lies {how} to training row {nearer['training_row']}, a known {cell_text(nearer['class'])} "
        f"(distance {near}), {than} to row {farther['training_row']}, a known {cell_text(farther['class'])} ({far})"
    )
    if not flips:
        return text + "; no change of one or two columns that was tried leads to another class."
    flip = flips[0]
    changes = " and ".join(f"{cell_text(one['column'])} were {change_texts(one)[1]}" for one in flip["changes"])
    return f"{text}; it would be called {cell_text(flip['prediction'])} if {changes}."
