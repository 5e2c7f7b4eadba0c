"""A decision to look at: a picture of its contributions, a page that stands alone, and a view within a notebook."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qmedoid.explain.sentences import change_texts, term_text, toward_text
from qmedoid.markup import charts
from qmedoid.markup.html import Html, element
from qmedoid.markup.page import render
from qmedoid.metrics.texts import cell_text, chance_texts, class_name, column_text, effect_text, percent_text

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
