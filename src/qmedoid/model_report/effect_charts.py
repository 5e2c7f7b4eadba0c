"""Learnt shapes of columns: what a column adds to the log-odds, by its value."""

import math
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from qmedoid.markup.charts import Axis, area, label, line, path, picture, short, spanning, text
from qmedoid.markup.html import Html, element, join, shortened, table
from qmedoid.model_report.charts import BOTTOM, HEIGHT, LEFT, NAME, RIGHT, TOP, WIDTH, count, figure, known, rectangle

ODDS = "log-odds"
"""The unit of contributions that add up to a probability; others are scores."""
_DAYS = 700_000
"""Days from 1970 that a calendar has, backward and forward."""


def effect_chart(effect: Mapping[str, Any]) -> Html:
    """Contribution of a column against its values: mean, spread, and how many rows."""
    bins = [*effect["bins"], *([] if effect["missing"] is None else [{**effect["missing"], "label": "missing"}])]
    ends = [value for one in bins for value in (one["mean"], one["low"], one["high"]) if value is not None]
    has_numbers = len(effect["bins"]) > 1 and all(one["x"] is not None for one in effect["bins"])
    draw = _number_effect if has_numbers else _level_effect
    drawing = draw(effect, bins, ends)
    rows = [
        (one["label"], label(one["mean"]), f"{known(one['low'])} to {known(one['high'])}", count(one["count"]))
        for one in bins
    ]
    head = ("value", "mean contribution", "10 % to 90 % of rows", "rows")
    twin = table(f"Contribution of {effect['column']}", head, rows, numbers=(1, 2, 3))
    return figure(str(effect["column"]), "", drawing, twin)


def odds_factor(log_odds: float) -> str:
    """What the odds are multiplied or divided by, such as ×2 or ÷2."""
    factor = math.exp(min(abs(log_odds), 700.0))
    said = f"{factor:.2g}" if factor < 100 else f"{factor:.0f}"
    if factor >= 10_000:
        said = f"{factor:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{'÷' if log_odds < 0 and said != '1' else '×'}{said}"


def _effect_about(effect: Mapping[str, Any]) -> str:
    return f"Mean contribution of {effect['column']} toward {effect['toward']} against its value, in {effect['unit']}"


def _number_effect(effect: Mapping[str, Any], bins: Sequence[Mapping[str, Any]], ends: Sequence[float]) -> Html:
    own = effect["bins"]
    has_missing = len(bins) > len(own)
    right = RIGHT - (78 if has_missing else 30)
    x = spanning([one["x"] for one in own], LEFT, right, room=0.02)
    y = spanning(ends, BOTTOM - 34, TOP, zero=True)
    most = max(one["count"] for one in bins) or 1
    bars = []
    for one in own:
        height = 26.0 * one["count"] / most
        bars.append(rectangle(x.place(one["x"]) - 2, BOTTOM - height, 4, height, "count"))
    upper = [(x.place(one["x"]), y.place(one["high"])) for one in own]
    lower = [(x.place(one["x"]), y.place(one["low"])) for one in own]
    middle = [(x.place(one["x"]), y.place(one["mean"])) for one in own]
    drawn = [
        _effect_axes(y, right, effect["unit"]), *bars, area(upper, lower, "band"),
        line(LEFT, y.place(0.0), right, y.place(0.0), "zero"), path(middle, "curve"),
        *(element("circle", cx=short(a), cy=short(b), r=2.5, class_="dot") for a, b in middle),
        _value_axis(x, is_date=effect["kind"] == "date"),
        line(LEFT, BOTTOM, right, BOTTOM, "axis"),
        text((LEFT + right) / 2, BOTTOM + 33, "value", "middle", "what"),
    ]  # fmt: skip
    if has_missing:
        drawn.append(_dot_with_whisker(bins[-1], right + 46, y))
        height = 26.0 * bins[-1]["count"] / most
        drawn.append(rectangle(right + 43, BOTTOM - height, 6, height, "count"))
        drawn.append(text(right + 46, BOTTOM + 16, "missing", "middle"))
    return picture(WIDTH, HEIGHT, _effect_about(effect), *drawn)


def _value_axis(x: Axis, *, is_date: bool) -> Html:
    """Values below a chart; of dates, which are days since 1970, the two at the ends."""
    if is_date and max(abs(x.low), abs(x.high)) < _DAYS:
        first, last = (str(date(1970, 1, 1) + timedelta(days=math.floor(day))) for day in (x.low, x.high))
        return join([text(x.start, BOTTOM + 16, first), text(x.end, BOTTOM + 16, last, "end")])
    return join(text(at, BOTTOM + 16, said, "middle") for at, said in x.marks(4))


def _effect_axes(y: Axis, right: float, unit: str) -> Html:
    """Log-odds or scores at the left, factors of the odds at the right."""
    drawn = [text(2, TOP - 12, unit, "start", "what")]
    if unit == ODDS:
        drawn.append(text(right + 2, TOP - 12, "odds", "start", "what"))
    for tick, (at, said) in zip(y.ticks(5), y.marks(5), strict=True):
        drawn += [line(LEFT, at, right, at, "grid"), text(LEFT - 6, at + 4, said, "end")]
        drawn += [text(right + 4, at + 4, odds_factor(tick))] if unit == ODDS else []
    return join(drawn)


def _dot_with_whisker(one: Mapping[str, Any], x: float, y: Axis) -> Html:
    whisker = line(x, y.place(one["low"]), x, y.place(one["high"]), "whisker")
    dot = element("circle", cx=short(x), cy=short(y.place(one["mean"])), r=4, class_="dot")
    return join([whisker, dot])


def _level_effect(effect: Mapping[str, Any], bins: Sequence[Mapping[str, Any]], ends: Sequence[float]) -> Html:
    """A line for each level: its mean as a bar from zero, its spread, its rows."""
    step, top = 22.0, 26.0
    height = top + step * len(bins) + 40
    left, right = 104.0, RIGHT - 38
    x = spanning(ends, left, right, zero=True)
    bottom = top + step * len(bins)
    drawn = [line(x.place(tick), top, x.place(tick), bottom, "grid") for tick in x.ticks(4)]
    drawn += [text(at, bottom + 15, said, "middle") for at, said in x.marks(4)]
    drawn.append(text(2, bottom + 15, effect["unit"], class_="what"))
    if effect["unit"] == ODDS:
        drawn += [text(x.place(tick), bottom + 31, odds_factor(tick), "middle", "quiet") for tick in x.ticks(4)]
        drawn.append(text(2, bottom + 31, "odds", class_="what"))
    drawn.append(text(WIDTH - 4, top - 8, "rows", "end", "what"))
    for place, one in enumerate(bins):
        middle, zero, mean = top + step * (place + 0.5), x.place(0.0), x.place(one["mean"])
        drawn += [
            text(left - 6, middle + 4, shortened(str(one["label"]), NAME), "end"),
            rectangle(min(zero, mean), middle - 6, abs(mean - zero), 12, "toward" if one["mean"] >= 0 else "against"),
            line(x.place(one["low"]), middle, x.place(one["high"]), middle, "whisker"),
            text(WIDTH - 4, middle + 4, count(one["count"]), "end", "quiet"),
        ]
    drawn.append(line(x.place(0.0), top, x.place(0.0), bottom, "zero"))
    return picture(WIDTH, height, _effect_about(effect), *drawn)
