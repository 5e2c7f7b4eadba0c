"""A decision to read and to look at: sentences with the reason first, a picture, a page, a view in a notebook.

Every number in the sentences is in the dictionary of the decision.
"""

import math
from collections.abc import Mapping, Sequence
from heapq import merge
from typing import Any, NamedTuple

from qmedoid.markup import charts
from qmedoid.markup.html import Html, element
from qmedoid.markup.page import render
from qmedoid.metrics.texts import (
    SMALLEST_FACTOR,
    called_before,
    called_by_score,
    called_with_chance,
    cell_text,
    chance_texts,
    class_name,
    column_text,
    effect_text,
    percent_text,
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


def sentences(report: Part, flips: Sequence[Part]) -> tuple[str, ...]:
    """The decision, where it starts, what raises and lowers it, and the smallest change that turns it."""
    named = reasons(report)
    said = [_decision(report), _start(report, named)]
    is_odds = "probabilities" in report
    for word, sign in (("Raises", 1), ("Lowers", -1)):
        parts = [one for one in named if sign * one["contribution"] > 0]
        if parts:
            # What the factors are of is said once.
            unit = " odds" if is_odds and parts[0] is named[0] else ""
            texts = [reason_text(one, odds=is_odds, unit="" if number else unit) for number, one in enumerate(parts)]
            said.append(f"{word} it: {', '.join(texts)}.")
    strongest = next(iter(report["columns"]), None)
    if not named:
        is_small = strongest is not None and abs(strongest["contribution"]) > _NOTHING
        said.append("No column changes the odds noticeably." if is_small else "No column raises or lowers it.")
    if strongest is not None and strongest["contribution"] * decided_sign(report) <= -_least(report):
        said.append(f"The strongest column, {_with_cell(strongest)}, speaks against this decision.")
    return (*said, *_by_term(report), _turned(report, flips))


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
    least = max([_least(report), *(_SMALLEST_PART * abs(one["contribution"]) for one in (*columns, *others))])
    # The columns are sorted, and stay so where they are equal up to rounding.
    merged = merge(columns, sorted(others, key=_by_size), key=_by_size)
    large = [one for one in merged if abs(one["contribution"]) >= least]
    return [one for sign in (1, -1) for one in [one for one in large if sign * one["contribution"] > 0][:MOST_REASONS]]


def _by_size(part: Part) -> float:
    return -abs(float(part["contribution"]))


def decided_sign(report: Part) -> int:
    """1 where the decision is for the class that contributions are for, else -1."""
    return 1 if report["prediction"] == report["toward"] else -1


def toward_text(report: Part) -> str:
    """The class that contributions above 0 are for, in words."""
    return _class(report, report["toward"])


def reason_text(part: Part, *, odds: bool, unit: str = "") -> str:
    """A column with its cell, or a term, and what it does to the odds, such as ``Age 61 (×1.7)``."""
    return f"{_with_cell(part)} ({effect_text(part['contribution'], odds=odds)}{unit})"


def term_text(name: str) -> str:
    """A term in words."""
    return _TERM_NAMES.get(name, name)


def similar_text(similar: Part, report: Part) -> str:
    """The most similar row of a class: which it is, what it shares with the record, and where it differs."""
    row = f"training row {similar['training_row']}" if "training_row" in similar else f"row {similar['row']}"
    if similar["difference"] is None:
        row += ", by distance: the model keeps no cells of training rows"
    of_class = "row of no known class" if similar["class"] is None else f"known {_class(report, similar['class'])}"
    if similar.get("is_equal"):
        return f"Most similar {of_class}: {row} — the same in every column."
    texts = {
        "same": [_with_cell(one) for one in similar["same"]],
        "close:": [f"{_with_cell(one)} ({cell_text(one['own'])})" for one in similar["close"]],
        "differs:": [f"{_with_cell(one)} instead of {cell_text(one['own'])}" for one in similar["differs"]],
    }
    parts = [f"{word} {', '.join(named)}" for word, named in texts.items() if named]
    return f"Most similar {of_class}: {row}" + (f" — {'; '.join(parts)}." if parts else ".")


def change_texts(change: Part) -> tuple[str, str]:
    """A cell as it is and as it would be: the new one with all digits that it needs, and not the same in print."""
    cell, to = change["cell"], change["to"]
    before, after = cell_text(cell), cell_text(to)
    if isinstance(to, float) and float(after) != to:
        after = f"{to:.12g}"
    if before == after and isinstance(cell, float):
        before = f"{cell:.12g}"
    return before, after


def _least(report: Part) -> float:
    """The smallest size of a contribution that is a reason."""
    return math.log(SMALLEST_FACTOR) if "probabilities" in report else _NOTHING


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
        return called_by_score(called, toward, against, report["margin"], is_pair=threshold is not None)
    chance = chances[str(report["toward"])]
    if threshold is None:
        return called_before(called, against, chance, chances[str(report["against"])])
    return called_with_chance(called, toward, chance, threshold, alerts=report["is_alert"] is not None)


def _start(report: Part, named: Sequence[Part]) -> str:
    """Where every record starts, and whether that weighs more than any reason."""
    start, is_pair = report["start"], report["threshold"] is None
    ahead = start if is_pair else start + report["terms"].get("operating point", 0.0)
    if "probabilities" not in report:
        words = ("behind", "ahead", "level")
        if not is_pair:
            words = ("below the threshold", "above the threshold", "at the threshold")
        where = f"{abs(ahead):.3g} {words[int(ahead > 0)]}" if abs(ahead) > _NOTHING else words[2]
        text = f"Every record starts {where}"
    elif is_pair:
        text = f"Between these two, {toward_text(report)} starts at {chance_texts(probability(start))[0]}"
    else:
        subject = "Every record" if report["is_alert"] is None else "Risk"
        text = f"{subject} starts at {chance_texts(probability(start))[0]}"
    largest = max((abs(one["contribution"]) for one in named), default=0.0)
    return f"{text}, which weighs more than any reason." if abs(ahead) > largest else f"{text}."


def _by_term(report: Part) -> list[str]:
    """The term without which the decision would be another one, and whether the circuit took it."""
    more = ("prevalence", "operating point") if report["threshold"] is None else ("prevalence",)
    terms = {**report["varying"], **{name: report["terms"].get(name, 0.0) for name in more}}
    value, name = max(((decided_sign(report) * value, name) for name, value in terms.items()), default=(0.0, ""))
    taken = ["The circuit took this decision."] if report["decided_by"] == "circuit" else []
    if value <= abs(report["margin"]) or name not in _TERM_NAMES:
        return taken
    return [*taken, f"Without {term_text(name)} it would be {_otherwise(report, report['against'])}."]


def _otherwise(report: Part, label: Any) -> str:
    """What the record would be called if this class were decided for."""
    if report["is_alert"] is not None:
        return "no alert" if report["is_alert"] else "an alert"
    return f"called {_class(report, label)}"


def _turned(report: Part, flips: Sequence[Part]) -> str:
    if not flips:
        return "No change of one or two columns that was tried turns the decision."
    texts = [(cell_text(one["column"]), *change_texts(one)) for one in flips[0]["changes"]]
    changes = [f"{column_text(name, after)} instead of {before}" for name, before, after in texts]
    return f"It would be {_otherwise(report, flips[0]['prediction'])} with {' and '.join(changes)}."


PAGE_TITLE, PICTURE_TITLE = "Why this record is called", "What the decision for"
"""How the titles of every page and picture begin."""
DIGITS = 3
"""Decimals of contributions in print."""
_PROBABILITIES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)

Made = Mapping[str, Any]


class Step(NamedTuple):
    """A bar of the picture: its label, from where to where it goes, its value in print, and what it does."""

    label: str
    start: float
    end: float
    text: str
    effect: str


def steps(made: Made) -> list[Step]:
    """The bars from 0 to the margin, the start first; their printed values add up to the printed margin."""
    has_odds = made.get("probabilities") is not None
    parts = [("every record starts at", made["start"])]
    parts += [
        (column_text(cell_text(one["name"]), cell_text(one["cell"])), one["contribution"]) for one in made["columns"]
    ]
    rest, cut = made["rest"]["columns"], made["terms"].get("operating point", 0.0)
    parts += [(_counted(rest["count"], "other column"), rest["contribution"])] if rest["count"] else []
    parts += [(term_text(name), value) for name, value in made["varying"].items() if value]
    is_pair = made["threshold"] is not None
    parts += [("the threshold, taken off" if is_pair else term_text("operating point"), cut)] if cut else []
    found, at = [], 0.0
    printed = rounded_to_sum([value for _, value in parts], DIGITS)
    for (label, value), text in zip(parts, printed, strict=True):
        found.append(Step(label, at, at + value, signed(text, DIGITS), effect_text(value, odds=has_odds)))
        at += value
    if has_odds:
        found[0] = found[0]._replace(effect=chance_texts(made["start_probability"])[0])
    return found


def title(made: Made) -> str:
    """What the picture shows."""
    return f"{PICTURE_TITLE} {class_name(made['prediction'], made['target'])} is made of"


def bars(made: Made) -> list[tuple[str, float, float, str]]:
    """What is drawn, from the start that every record has to this one; 0 is the threshold, or level classes."""
    (label, _, start, _, effect), *others = steps(made)
    cut = 0.0
    if made["threshold"] is not None and made["terms"].get("operating point"):
        others, cut = others[:-1], made["terms"]["operating point"]
    moved = [(one.label, one.start + cut, one.end + cut, one.effect) for one in others]
    return [(label, start + cut, start + cut, effect), *moved]


def picture(made: Made) -> Html:
    """The picture: a bar for each contribution, with scales of log-odds and of probabilities."""
    margin, chances, is_pair = made["margin"], made.get("probabilities"), made["threshold"] is not None
    about, said, drawn = title(made), " ".join(made["sentences"]), bars(made)
    unit = ("log-odds" if chances else "score") + (" above the threshold" if is_pair else "")
    if chances is None:
        total = "this record", margin, signed(float(f"{margin:.{DIGITS}f}"), DIGITS)
        return charts.waterfall(about, said, drawn, total, unit)
    moved = made["terms"].get("operating point", 0.0)
    # Of more than two classes the margin tells of two: what their probabilities are if it is one of them.
    against = f", not {cell_text(made['against'])[:10]}" if len(chances) > 2 else ""
    above = f"probability of {cell_text(made['toward'])[:10] if against else toward_text(made)[:20]}{against}"
    marks = [(math.log(one / (1.0 - one)) + moved, f"{percent_text(one)}") for one in _PROBABILITIES]
    if is_pair:
        ends = [0.0, margin, *(end for _, *both, _ in drawn for end in both)]
        near = 0.1 * (max(ends) - min(ends))
        marks = sorted([one for one in marks if abs(one[0]) > near] + [(0.0, percent_text(made["threshold"]))])
    held = min(max(margin - moved, -50.0), 50.0)
    total = "this record", margin, chance_texts(1.0 / (1.0 + math.exp(-held)))[0]
    return charts.waterfall(about, said, drawn, total, unit, above, marks)


def as_html(made: Made, template: str, title: str, *, is_open: bool) -> str:
    """A page that loads nothing and runs nothing, or a view within a notebook, whose tables are folded."""
    medoids, record = made["medoids"], made["record"]
    groups = [(_group_name(one),) for one in made["groups"]]
    rows = [(str(one["training_row"]), cell_text(one["class"])) for one in made["rows"] or ()]
    return render(
        template, title=title, is_open=is_open, drawing=picture(made), toward=toward_text(made), parts=steps(made),
        is_pair=made["threshold"] is not None, has_odds=made.get("probabilities") is not None,
        margin=signed(float(f"{made['margin']:.{DIGITS}f}"), DIGITS),
        flips=[_flip(one) for one in made["flips"]],
        classes=[cell_text(one["class"]) for one in medoids],
        cells=[(name, cell_text(cell), [_cell(one, name) for one in medoids]) for name, cell in record.items()],
        groups=_listed(made, "groups", groups, "other group"), rows=_listed(made, "rows", rows, "other row"),
        **{name: made[name] for name in ("sentences", "similar", "difference", "medoids", "model", "time")},
    )  # fmt: skip


def _flip(flip: Mapping[str, Any]) -> tuple[str, str, str]:
    changes = [f"{cell_text(one['column'])}: {' → '.join(change_texts(one))}" for one in flip["changes"]]
    chance = "" if flip["probability"] is None else percent_text(flip["probability"])
    return " and ".join(changes), cell_text(flip["prediction"]), chance


def _cell(medoid: Mapping[str, Any], name: str) -> str:
    """The cell of a medoid, marked where it differs from that of the record."""
    if medoid["record"] is None:
        return "not kept"
    text = cell_text(medoid["record"][name])
    return element("span", text, class_="differs") if name in medoid["differs"] else text


def _group_name(group: Mapping[str, Any]) -> str:
    more = len(group["columns"]) - 4
    names = ", ".join(cell_text(name) for name in group["columns"][:4]) + (f" and {more} more" if more > 0 else "")
    return f"{names}: {group['name']}" if "name" in group else names


def _listed(made: Made, level: str, names: Sequence[tuple[str, ...]], rest: str) -> list[tuple[str, ...]]:
    """Contributions of one level, whose printed digits add up."""
    if not names:
        return []
    others = made["rest"][level]
    values = [*(one["contribution"] for one in made[level]), others["contribution"]]
    printed = [signed(value, DIGITS) for value in rounded_to_sum(values, DIGITS)]
    rows = [(*name, text) for name, text in zip(names, printed, strict=False)]
    if others["count"]:
        rows.append((_counted(others["count"], rest), *[""] * (len(names[0]) - 1), printed[-1]))
    return rows


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def rounded_to_sum(values: Sequence[float], digits: int) -> list[float]:
    """Values with so many decimals that add up to their sum with so many decimals, exactly in print.

    Each is its value rounded down or up: those whose fractions are largest are rounded up.
    """
    unit = 10.0**digits
    scaled = [value * unit for value in values]
    low = [math.floor(value) for value in scaled]
    missing = round(math.fsum(scaled)) - sum(low)
    by_fraction = sorted(range(len(values)), key=lambda place: (low[place] - scaled[place], place))
    for place in by_fraction[: max(0, missing)]:
        low[place] += 1
    return [whole / unit for whole in low]


def signed(value: float, digits: int) -> str:
    """A number with its sign and so many decimals; a zero has none."""
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")
