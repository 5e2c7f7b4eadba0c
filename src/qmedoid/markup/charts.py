"""Elements and charts as text of SVG and HTML: every text is escaped; templates call the pictures by their names.

Colors come from the classes of the style sheet.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from markupsafe import Markup, escape

Child = str | int | None
"""What an element may hold: markup, text, a whole number, or nothing."""
LONGEST = 300
"""Characters of a text that are shown."""


def shortened(text: str, most: int = LONGEST) -> str:
    """At most this many characters, the last of which says that there were more."""
    return text if len(text) <= most else text[: most - 1] + "…"


def plain(text: str, most: int = LONGEST, keep: str = "") -> str:
    """A text of foreign origin fit to be shown: short, and without characters that steer or turn what follows.

    Parameters
    ----------
    text : str
    most : int
        Characters that are kept.
    keep : str
        Characters that stay although they are not printable, such as the line break of a longer text.
    """
    short = shortened(text, most)
    if short.isprintable():
        return short
    return "".join(one if one.isprintable() or one in keep else " " for one in short)


def element(tag: str, *children: Child, **attributes: str | int | float | bool | None) -> Markup:
    """An element; text children are escaped.

    Attributes are named as in Python: ``class_`` is ``class``, ``aria_label`` is ``aria-label``. One that is None or
    False is left out, one that is True has no value.

    Raises
    ------
    ValueError
        An attribute is a style or a handler of events, which the policy of our pages would ignore.
    """
    written = [tag]
    for name, value in attributes.items():
        if name.startswith("on") or name == "style":
            raise ValueError(f"The attribute {name!r} has no effect under the policy of our pages. Use a class.")
        if value is not None and value is not False:
            key = name.rstrip("_").replace("_", "-")
            written.append(key if value is True else f'{key}="{escape(value)}"')
    inside = Markup().join(str(child) if isinstance(child, int) else child for child in children if child is not None)
    return Markup(f"<{' '.join(written)}>{inside}</{tag}>")


Point = tuple[float, float]
# Numbers from here on have commas between their thousands, and a power of ten.
_MANY, _TOO_MANY = 10_000, 10_000_000
_SMALLEST_STEP = 1e-6


def short(value: float) -> str:
    """A coordinate with at most two decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def label(value: float) -> str:
    """A number on an axis or in a table: four significant digits, and a minus as long as a plus."""
    text = f"{value:,.0f}" if _MANY <= abs(value) < _TOO_MANY else f"{value:.4g}"
    return text.replace("-", "−")


def percent(value: float) -> str:
    """A share on an axis, in percent."""
    return f"{100 * value:.4g} %".replace("-", "−")


@dataclass(frozen=True)
class Axis:
    """Places of values along a chart.

    Attributes
    ----------
    low, high : float
        Values at the ends; ``low < high``, and above zero on a logarithmic axis.
    start, end : float
        Coordinates of the ends.
    is_log : bool
    """

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def place(self, value: float) -> float:
        """The coordinate of a value; one beyond an end is put at the end."""
        held = min(max(value, self.low), self.high)
        if self.is_log:
            share = math.log(held / self.low) / math.log(self.high / self.low)
        else:
            share = (held - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values along the axis: at most about this many, or powers of ten on a logarithmic one."""
        if self.is_log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = max(1, -(-(last - first + 1) // most))
            return [10.0**power for power in range(first, last + 1, every)]
        step = round_step((self.high - self.low) / most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]

    def marks(self, most: int = 6, log_text: Callable[[float], str] | None = None) -> list[tuple[float, str]]:
        """Coordinates of the ticks with their values as text, in as many digits as tell them apart.

        Values on a logarithmic axis are written by `log_text`.
        """
        ticks = self.ticks(most)
        step = min((b - a for a, b in pairwise(ticks)), default=0.0)
        if self.is_log or not _SMALLEST_STEP <= step < _TOO_MANY:
            write = (log_text if self.is_log else None) or label
            return [(self.place(tick), write(tick)) for tick in ticks]
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        comma = "," if max(map(abs, ticks)) >= _MANY else ""
        texts = [f"{tick if abs(tick) > step / 2 else 0.0:{comma}.{digits}f}" for tick in ticks]
        return [(self.place(tick), said.replace("-", "−")) for tick, said in zip(ticks, texts, strict=True)]

    @property
    def text(self) -> str:
        """Ends, coordinates and kind, as an attribute that a script reads."""
        return f"{self.low!r} {self.high!r} {short(self.start)} {short(self.end)} {int(self.is_log)}"


def round_step(width: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is not below a width."""
    if not width > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(width))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= width * (1 - 1e-9))


def spanning(values: Iterable[float], start: float, end: float, *, room: float = 0.05, zero: bool = False) -> Axis:
    """An axis on which all finite values have a place, with some room at both ends."""
    found = [value for value in values if math.isfinite(value)] + ([0.0] if zero else [])
    low, high = min(found, default=0.0), max(found, default=1.0)
    if low == high:
        width = max(abs(low), 1.0)
        return Axis(low - width / 2, high + width / 2, start, end)
    pad = room * (high - low)
    return Axis(low - pad, high + pad, start, end)


def line_path(points: Iterable[Point]) -> str:
    """The ``d`` of a line through points."""
    placed = " L".join(f"{short(x)} {short(y)}" for x, y in points)
    return f"M{placed}" if placed else ""


def area_path(upper: Sequence[Point], lower: Sequence[Point]) -> str:
    """The ``d`` of what lies between two lines."""
    around = line_path([*upper, *reversed(lower)])
    return f"{around}Z" if around else ""


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return element("line", x1=short(x1), y1=short(y1), x2=short(x2), y2=short(y2), class_=class_)


def text(x: float, y: float, words: Child, anchor: str = "start", class_: str | None = None) -> Markup:
    """Words at a place; ``anchor`` is ``start``, ``middle`` or ``end``."""
    shown = plain(words) if isinstance(words, str) else words
    return element("text", shown, x=short(x), y=short(y), text_anchor=anchor, class_=class_)


def axes(x: Axis, y: Axis, x_label: str, y_label: str, number: Callable[[float], str] | None = None) -> Markup:
    """Grid lines with their values at the left and below, and what the axes show.

    Values on a logarithmic axis are written by `number`.
    """
    drawn = []
    for at, said in y.marks(5, number):
        drawn += [line(x.start, at, x.end, at, "grid"), text(x.start - 6, at + 4, said, "end")]
    for at, said in x.marks(5, number):
        drawn += [line(at, y.start, at, y.end, "grid"), text(at, y.start + 16, said, "middle")]
    drawn.append(line(x.start, y.start, x.end, y.start, "axis"))
    drawn.append(line(x.start, y.start, x.start, y.end, "axis"))
    drawn.append(text((x.start + x.end) / 2, y.start + 33, x_label, "middle", "what"))
    drawn.append(text(2, y.end - 9, y_label, "start", "what"))
    return Markup().join(drawn)


def picture(width: float, height: float, about: str, *children: Child, class_: str | None = None) -> Markup:
    """A drawing that takes the width it is given; ``about`` says in words what it shows."""
    size = f"0 0 {short(width)} {short(height)}"
    return element("svg", *children, viewBox=size, role="img", aria_label=plain(about), class_=class_)


Layer = tuple[str, Sequence[Sequence[float]], str]
WIDTH, HEIGHT = 320.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 298.0, 28.0, 208.0
"""Where the axes of a chart lie within it."""
ODDS = "log-odds"
"""The unit of contributions that add up to a probability; others are scores."""
# Of the picture of a decision: its width, that of its labels and numbers, and the height of a bar.
_DECISION, _LABELS, _NUMBERS, _STEP = 720.0, 230.0, 70.0, 22.0


def chart(
    about: str,
    names: tuple[str, str],
    *layers: Layer,
    x: tuple[float, float],
    y: tuple[float, float],
    is_log: tuple[bool, bool] = (False, False),
    number: Callable[[float], str] | None = None,
) -> Markup:
    """A chart of layers over two axes with their ends.

    `number` writes the values of logarithmic axes. A layer is its kind, its points and its class: a ``line`` or
    ``dots`` through points (x, y), an ``area`` or ``whiskers`` between (x, low, high), a ``rule`` at (y,) from end to
    end, and a ``marker`` without points, which the script of a page moves along the curve of the name that stands for
    the class.
    """
    across, upward = Axis(*x, LEFT, RIGHT, is_log[0]), Axis(*y, BOTTOM, TOP, is_log[1])
    drawn = [piece for kind, points, class_ in layers for piece in _layer(kind, points, class_, across, upward)]
    return picture(WIDTH, HEIGHT, about, axes(across, upward, *names, number), *drawn)


def _layer(kind: str, points: Sequence[Sequence[float]], class_: str, x: Axis, y: Axis) -> list[Markup]:
    if kind == "rule":
        return [line(x.start, y.place(at), x.end, y.place(at), class_) for (at,) in points]
    if kind == "marker":
        drawn = element("path", d="M0 -7 L7 0 L0 7 L-7 0Z")
        return [element("g", drawn, class_="marker", data_curve=class_, data_x=x.text, data_y=y.text)]
    placed = [(x.place(one[0]), *(y.place(value) for value in one[1:])) for one in points]
    match kind:
        case "line":
            return [element("path", d=line_path([(one[0], one[1]) for one in placed]), class_=class_)] if placed else []
        case "dots":
            size = {"dot": 4, "dot small": 2.5}.get(class_, 3)
            return [_dot(one[0], one[1], size, class_) for one in placed]
        case "area":
            around = area_path([(one[0], one[2]) for one in placed], [(one[0], one[1]) for one in placed])
            return [element("path", d=around, class_=class_)]
        case "whiskers":
            return [line(one[0], one[1], one[0], one[2], class_) for one in placed]
    raise ValueError(f"The kind of a layer is {kind!r}, which is not drawn.")


def _dot(x: float, y: float, radius: float, class_: str) -> Markup:
    return element("circle", cx=short(x), cy=short(y), r=short(radius), class_=class_)


def rectangle(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    """A rectangle from its upper left corner."""
    return element("rect", x=short(x), y=short(y), width=short(width), height=short(height), class_=class_)


def bars(about: str, given: Sequence[tuple[str, float, str]], *, is_broad: bool = False) -> Markup:
    """Bars from zero, the first on top: name, value and text of each."""
    left, width = (200.0, 560.0) if is_broad else (124.0, WIDTH)
    x = Axis(0.0, max([value for _, value, _ in given] + [0.0]) or 1.0, left, width - 58)
    drawn: list[Markup] = []
    for place, (name, value, said) in enumerate(given):
        middle = _STEP * (place + 1) - 8
        drawn.append(text(left - 6, middle + 4, shortened(name, round(left / 7)), "end"))
        drawn.append(rectangle(left, middle - 7, max(x.place(value) - left, 0.5), 14, "plainly"))
        drawn.append(text(x.place(value) + 5, middle + 4, said))
    return picture(width, _STEP * len(given) + 6, about, *drawn, class_="broad" if is_broad else None)


def effect(shape: Mapping[str, Any]) -> Markup:
    """What the values of a column add toward a class: along an axis for numbers and dates, else line by line.

    It is an effect as plain values: bins have ``value``, ``low``, ``high``, ``mean``, ``p10``, ``p90`` and ``rows``.
    """
    missing = [] if shape["missing"] is None else [shape["missing"]]
    bins = [*shape["bins"], *missing]
    ends = [one[key] for one in bins for key in ("mean", "p10", "p90")]
    about = f"Mean contribution of {shape['column']} toward {shape['toward']} against its value, in {shape['unit']}"
    if len(shape["bins"]) > 1 and shape["kind"] in ("number", "date"):
        return _number_effect(about, shape, missing, ends)
    # A line for each level: its mean as a bar from zero, its spread, its rows.
    step, top, left, right = 22.0, 26.0, 104.0, RIGHT - 38
    x, bottom = spanning(ends, left, right, zero=True), top + step * len(bins)
    drawn = [line(x.place(tick), top, x.place(tick), bottom, "grid") for tick in x.ticks(4)]
    drawn += [text(at, bottom + 15, said, "middle") for at, said in x.marks(4)]
    drawn.append(text(2, bottom + 15, shape["unit"], class_="what"))
    if shape["unit"] == ODDS:
        drawn += [text(x.place(tick), bottom + 31, odds_factor(tick), "middle", "quiet") for tick in x.ticks(4)]
        drawn.append(text(2, bottom + 31, "odds", class_="what"))
    drawn.append(text(WIDTH - 4, top - 8, "rows", "end", "what"))
    for place, one in enumerate(bins):
        middle, zero, mean = top + step * (place + 0.5), x.place(0.0), x.place(one["mean"])
        drawn += [
            text(left - 6, middle + 4, shortened(str(one["value"]), 16), "end"),
            rectangle(min(zero, mean), middle - 6, abs(mean - zero), 12, "toward" if one["mean"] >= 0 else "against"),
            line(x.place(one["p10"]), middle, x.place(one["p90"]), middle, "whisker"),
            text(WIDTH - 4, middle + 4, f"{one['rows']:,}", "end", "quiet"),
        ]
    drawn.append(line(x.place(0.0), top, x.place(0.0), bottom, "zero"))
    return picture(WIDTH, top + step * len(bins) + 40, about, *drawn)


def _days(moment: str) -> float:
    """A date in ISO form as days since 1970."""
    return float(np.datetime64(moment, "s").astype(np.int64)) / 86_400.0


def _number_effect(
    about: str, shape: Mapping[str, Any], missing: Sequence[Mapping[str, Any]], ends: Sequence[float]
) -> Markup:
    """The mean as a curve within its spread, the rows as bars below it, and missing cells at the right."""
    own, right, is_date = shape["bins"], RIGHT - (78 if missing else 30), shape["kind"] == "date"
    middles = [
        ((_days(a) + _days(b)) / 2 if is_date else a / 2 + b / 2) for a, b in ((one["low"], one["high"]) for one in own)
    ]
    x = spanning(middles, LEFT, right, room=0.02)
    y = spanning(ends, BOTTOM - 34, TOP, zero=True)
    most = max(one["rows"] for one in (*own, *missing)) or 1
    means = [(middle, one["mean"]) for middle, one in zip(middles, own, strict=True)]
    layers: list[Layer] = [
        ("area", [(middle, one["p10"], one["p90"]) for middle, one in zip(middles, own, strict=True)], "band"),
        ("rule", [(0.0,)], "zero"),
        ("line", means, "curve"),
        ("dots", means, "dot small"),
    ]
    drawn = [text(2, TOP - 12, shape["unit"], "start", "what")]
    drawn += [text(right + 2, TOP - 12, "odds", "start", "what")] if shape["unit"] == ODDS else []
    for tick, (at, said) in zip(y.ticks(5), y.marks(5), strict=True):
        drawn += [line(LEFT, at, right, at, "grid"), text(LEFT - 6, at + 4, said, "end")]
        drawn += [text(right + 4, at + 4, odds_factor(tick))] if shape["unit"] == ODDS else []
    beyond, places = right + 46, [(x.place(middle), 4.0) for middle in middles]
    for (at, wide), one in zip([*places, *((beyond, 6.0) for _ in missing)], [*own, *missing], strict=True):
        height = 26.0 * one["rows"] / most
        drawn.append(rectangle(at - wide / 2, BOTTOM - height, wide, height, "count"))
    drawn += [piece for layer in layers for piece in _layer(*layer, x, y)]
    for one in missing:
        drawn.append(line(beyond, y.place(one["p10"]), beyond, y.place(one["p90"]), "whisker"))
        drawn += [_dot(beyond, y.place(one["mean"]), 4, "dot"), text(beyond, BOTTOM + 16, "missing", "middle")]
    if is_date:
        first, last = (str(np.datetime64(math.floor(day), "D")) for day in (x.low, x.high))
        drawn += [text(x.start, BOTTOM + 16, first), text(x.end, BOTTOM + 16, last, "end")]
    else:
        drawn += [text(at, BOTTOM + 16, said, "middle") for at, said in x.marks(4)]
    drawn.append(line(LEFT, BOTTOM, right, BOTTOM, "axis"))
    drawn.append(text((LEFT + right) / 2, BOTTOM + 33, "value", "middle", "what"))
    return picture(WIDTH, HEIGHT, about, *drawn)


def odds_factor(log_odds: float) -> str:
    """What the odds are multiplied or divided by, such as ×2 or ÷2."""
    factor = math.exp(min(abs(log_odds), 700.0))
    said = f"{factor:.2g}" if factor < 100 else f"{factor:.0f}"
    if factor >= 10_000:
        said = f"{factor:.0e}".replace("e+0", "e").replace("e+", "e")
    return f"{'÷' if log_odds < 0 and said != '1' else '×'}{said}"


def waterfall(
    about: str,
    description: str,
    given: Sequence[tuple[str, float, float, str]],
    total: tuple[str, float, str],
    unit: str,
    above: str = "",
    marks: Sequence[tuple[float, str]] = (),
) -> Markup:
    """Bars that begin where the one before ends: what a sum is made of.

    Parameters
    ----------
    about, description : str
        What it shows, in short and in sentences, for those who do not see it.
    given : sequence
        Label, start, end and printed value of each bar.
    total : tuple
        Label, value and printed value of the sum.
    unit, above : str
        What the scale below the bars is in, and that of the marks above them.
    marks : sequence
        Values with their texts on the scale above; those too near to the one before are left out.
    """
    ends = [0.0, total[1], *(end for _, *both, _ in given for end in both)]
    x = spanning([float(end) for end in ends], _LABELS, _DECISION - _NUMBERS, room=0.04)
    top, bottom = 46.0, 46.0 + _STEP * (len(given) + 1)
    drawn: list[Markup | None] = [line(x.place(0.0), top, x.place(0.0), bottom, "by-chance")]
    drawn.append(text(_LABELS - 8, bottom + 24, unit, "end"))
    for at, said in x.marks(6):
        drawn += [line(at, bottom, at, bottom + 5, "axis"), text(at, bottom + 24, said, "middle")]
    # No mark stands next to the label: "HeartDisease = 1" and "25 %" would read as one number.
    last = _LABELS - 24
    drawn += [text(_LABELS - 8, 22, above, "end")] if marks else []
    for value, said in marks:
        if x.low <= value <= x.high and x.place(value) - last > 40:
            last = x.place(value)
            drawn += [line(last, top - 16, last, top - 11, "axis"), text(last, 22, said, "middle")]
    for place, (name, start, end, said) in enumerate([*given, (total[0], 0.0, total[1], total[2])]):
        y, near, far = top + _STEP * place, *sorted((x.place(start), x.place(end)))
        is_total = place == len(given)
        kind, strong = "toward" if end >= start else "against", "strong" if is_total else None
        drawn += [
            text(_LABELS - 8, y + 15, name if is_total else shortened(name, 32), "end", strong),
            rectangle(near, y + 4, max(far - near, 1.0), _STEP - 8, "total" if is_total else kind),
            None if is_total else line(x.place(end), y + 4, x.place(end), y + _STEP + 4, "grid"),
            text(_DECISION - 4, y + 15, said, "end", strong),
        ]
    words = [element("title", plain(about)), element("desc", plain(description, 2_000))]
    return picture(_DECISION, bottom + 40, about, *words, *drawn, class_="decision")
