"""A decision in words: what speaks for it and what against it, and which medoid the record lies nearer to."""

from collections.abc import Sequence
from typing import Any

from qmedoid.cli._output import shown

_NAMED = 3
# Terms without which a decision can be thought of; an intercept is part of every one.
_OPTIONAL = ("operating point", "prevalence", "neighbors", "circuit")


def sentences(report: dict[str, Any]) -> list[str]:
    """The decision, its reasons, the nearer medoid, and the nearest known rows where there are any."""
    lines = [_decision(report), _reasons(report), _medoids(report)]
    lines += _conditions(report)
    if "known" in report:
        lines.append(_known(report))
    return lines


def cell_text(value: Any, digits: int = 6) -> str:
    """A cell for the reader, numbers with so many significant digits."""
    if value is None:
        return "missing"
    return f"{value:.{digits}g}" if isinstance(value, float) else shown(value)


def _decision(report: dict[str, Any]) -> str:
    winner, against = report["prediction"], report["against"]
    sure = f" (probability {report['probabilities'][str(winner)]:.4f})" if "probabilities" in report else ""
    return f"Row {report['row']} is called {shown(winner)}, by {report['margin']:.4g} over {shown(against)}{sure}."


def _reasons(report: dict[str, Any]) -> str:
    """Columns by what they contribute to the margin, the largest first."""
    speaking = [_named(report["columns"], sign) for sign in (1, -1)]
    for_it, against = (", ".join(map(_reason, columns)) for columns in speaking)
    winner = shown(report["prediction"])
    return f"Speaks for {winner}: {for_it or 'no column'}; against it: {against or 'no column'}."


def _named(columns: Sequence[dict[str, Any]], sign: int) -> list[dict[str, Any]]:
    return [column for column in columns if sign * column["contribution"] > 0][:_NAMED]


def _reason(column: dict[str, Any]) -> str:
    return f"{shown(column['name'])} is {cell_text(column['cell'])} ({column['contribution']:+.3g})"


def _medoids(report: dict[str, Any]) -> str:
    """Which medoid is nearer, and what decides where the decision goes the other way."""
    winner = report["medoids"][0]
    nearest = min(report["medoids"], key=lambda medoid: medoid["distance"])
    if winner["distance"] <= nearest["distance"]:
        nearer, farther = winner, report["medoids"][1]
    else:
        nearer, farther = nearest, winner
    text = (
        f"Of the medoids it lies nearer to training row {nearer['training_row']} ({shown(nearer['class'])}, distance "
        f"{nearer['distance']:.4g}) than to row {farther['training_row']} ({shown(farther['class'])}, "
        f"{farther['distance']:.4g})"
    )
    if nearer is winner:
        return text + "."
    return f"{text}: the decision goes against the nearer medoid. {_deciding(report)}"


def _deciding(report: dict[str, Any]) -> str:
    """The largest contribution of all to the margin."""
    columns = [(column["contribution"], _reason(column)) for column in report["columns"]]
    terms = [(value, f"the term {name!r} ({value:+.3g})") for name, value in report["terms"].items()]
    return f"Most of all decides: {max(columns + terms, key=lambda one: one[0])[1]}."


def _conditions(report: dict[str, Any]) -> list[str]:
    """Terms without which the decision would be another, and who took it."""
    lines = []
    optional = [(value, name) for name, value in report["terms"].items() if name in _OPTIONAL]
    value, name = max(optional, default=(0.0, ""))
    if value > report["margin"]:
        lines.append(f"Without the term {name!r} it would be called {shown(report['against'])}.")
    if report["decided_by"] == "circuit":
        lines.append("The circuit took the decision; its part is the term 'circuit'.")
    return lines


def _known(report: dict[str, Any]) -> str:
    known = report["known"]
    nearest = known["nearest"]
    classes = [one["class"] for one in nearest]
    of_class = f"{classes.count(report['prediction'])} are {shown(report['prediction'])}"
    if None in classes:
        unknown = classes.count(None)
        of_class = "their classes are not known" if unknown == len(classes) else f"{of_class}, {unknown} of no class"
    return (
        f"Of the {known['rows']:,} known rows the nearest {len(nearest)} lie at {nearest[0]['distance']:.4g} to "
        f"{nearest[-1]['distance']:.4g} ({known['distance']}); {of_class}."
    )
