"""Charts as SVG text: scales, axes, lines. Colors come from the classes of a style sheet."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from qmedoid.markup.html import Child, Html, element, join

Point = tuple[float, float]
Layer = tuple[str, Sequence[Sequence[float]], str]
WIDTH, HEIGHT, BROAD = 320.0, 250.0, 440.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 298.0, 28.0, 208.0
"""Where the axes of a chart lie within it."""
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


def count(number: int) -> str:
    """A whole number with commas."""
    return f"{number:,}"


def known(value: float | None) -> str:
    """A number, or a dash for none."""
    return "–" if value is None else label(value)


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

    def marks(self, most: int = 6) -> list[tuple[float, str]]:
        """Coordinates of the ticks with their values as text, in as many digits as tell them apart."""
        ticks = self.ticks(most)
        step = min((b - a for a, b in pairwise(ticks)), default=0.0)
        if self.is_log or not _SMALLEST_STEP <= step < _TOO_MANY:
            return [(self.place(tick), label(tick)) for tick in ticks]
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


def path(points: Iterable[Point], class_: str) -> Html:
    """A line through points."""
    placed = " L".join(f"{short(x)} {short(y)}" for x, y in points)
    return element("path", d=f"M{placed}", class_=class_) if placed else Html("")


def area(upper: Sequence[Point], lower: Sequence[Point], class_: str) -> Html:
    """What lies between two lines."""
    around = [*upper, *reversed(lower)]
    placed = " L".join(f"{short(x)} {short(y)}" for x, y in around)
    return element("path", d=f"M{placed}Z", class_=class_) if placed else Html("")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """A straight line."""
    return element("line", x1=short(x1), y1=short(y1), x2=short(x2), y2=short(y2), class_=class_)


def text(x: float, y: float, words: Child, anchor: str = "start", class_: str | None = None) -> Html:
    """Words at a place; ``anchor`` is ``start``, ``middle`` or ``end``."""
    return element("text", words, x=short(x), y=short(y), text_anchor=anchor, class_=class_)


def axes(x: Axis, y: Axis, x_label: str, y_label: str, number: Callable[[float], str] | None = None) -> Html:
    """Grid lines with their values at the left and below, and what the axes show.

    Values on a logarithmic axis are written by `number`.
    """
    drawn = []
    for at, said in _marks(y, number):
        drawn += [line(x.start, at, x.end, at, "grid"), text(x.start - 6, at + 4, said, "end")]
    for at, said in _marks(x, number):
        drawn += [line(at, y.start, at, y.end, "grid"), text(at, y.start + 16, said, "middle")]
    drawn.append(line(x.start, y.start, x.end, y.start, "axis"))
    drawn.append(line(x.start, y.start, x.start, y.end, "axis"))
    drawn.append(text((x.start + x.end) / 2, y.start + 33, x_label, "middle", "what"))
    drawn.append(text(2, y.end - 9, y_label, "start", "what"))
    return join(drawn)


def _marks(axis: Axis, number: Callable[[float], str] | None) -> list[tuple[float, str]]:
    if number is None or not axis.is_log:
        return axis.marks(5)
    return [(axis.place(tick), number(tick)) for tick in axis.ticks(5)]


def picture(width: float, height: float, about: str, *children: Child) -> Html:
    """A drawing that takes the width it is given; ``about`` says in words what it shows."""
    return element("svg", *children, viewBox=f"0 0 {short(width)} {short(height)}", role="img", aria_label=about)


def across(low: float, high: float, *, is_log: bool = False, is_broad: bool = False) -> Axis:
    """The axis of a chart from the left to the right."""
    return Axis(low, high, LEFT, RIGHT + (BROAD - WIDTH if is_broad else 0.0), is_log)


def upward(low: float, high: float, *, is_log: bool = False) -> Axis:
    """The axis of a chart from below to the top."""
    return Axis(low, high, BOTTOM, TOP, is_log)


def chart(
    about: str, x: Axis, y: Axis, names: tuple[str, str], *layers: Layer, number: Callable[[float], str] | None = None
) -> Html:
    """A chart of layers over two axes.

    A layer is its kind, its points and its class: a ``line`` or ``dots`` through points (x, y), an ``area`` or
    ``whiskers`` between (x, low, high), ``ticks`` at (x, y), or a ``rule`` at y from end to end.
    """
    drawn = [piece for kind, points, class_ in layers for piece in _layer(kind, points, class_, x, y)]
    return picture(x.end + WIDTH - RIGHT, HEIGHT, about, axes(x, y, *names, number), *drawn)


def _layer(kind: str, points: Sequence[Sequence[float]], class_: str, x: Axis, y: Axis) -> list[Html]:
    placed = [(x.place(one[0]), *(y.place(value) for value in one[1:])) for one in points]
    match kind:
        case "line":
            return [path([(one[0], one[1]) for one in placed], class_)]
        case "dots":
            size = {"dot": 4, "plainly": 2}.get(class_, 3)
            return [element("circle", cx=short(one[0]), cy=short(one[1]), r=size, class_=class_) for one in placed]
        case "area":
            return [area([(one[0], one[2]) for one in placed], [(one[0], one[1]) for one in placed], class_)]
        case "whiskers":
            return [line(one[0], one[1], one[0], one[2], class_) for one in placed]
        case "ticks":
            return [line(one[0] - 2.5, one[1], one[0] + 2.5, one[1], class_) for one in placed]
        case "rule":
            return [line(x.start, y.place(one[0]), x.end, y.place(one[0]), class_) for one in points]
    raise ValueError(f"The kind of a layer must be line, dots, area, whiskers, ticks or rule. Got {kind!r} instead.")


def some_points(points: Sequence[Sequence[float]], most: int = 41) -> list[Sequence[float]]:
    """At most so many points of a curve that a reader still takes in, both ends included."""
    last = len(points) - 1
    if last < most:
        return list(points)
    return [points[round(place * last / (most - 1))] for place in range(most)]


def against_exact(about: str, what: str, points: Sequence[Point], low: float, high: float) -> Html:
    """Measured numbers against exact ones, points (exact, measured); exact ones are between two ends."""
    measured = [point[1] for point in points]
    x, y = across(low, high), upward(min([low, *measured]), max([high, *measured]))
    names = f"exact {what}", f"measured {what}"
    return chart(about, x, y, names, ("line", [(low, low), (high, high)], "by-chance"), ("dots", points, "plainly"))


def margins(about: str, given: Sequence[Mapping[str, Any]]) -> Html:
    """Margins in their order, with two errors on either side; those of undecided records are marked."""
    x = across(-0.5, max(len(given) - 0.5, 0.5), is_broad=True)
    reach = [(place, one["margin"] - 2 * one["margin_error"], one["margin"] + 2 * one["margin_error"])
             for place, one in enumerate(given)]  # fmt: skip
    true = [(place, one["margin_in_closed_form"]) for place, one in enumerate(given)]
    y = spanning([end for one in (*reach, *true) for end in one[1:]], BOTTOM, TOP, zero=True)
    dots: list[Layer] = [
        ("dots", [(place, one["margin"]) for place, one in enumerate(given) if one["undecided"] is is_open], class_)
        for is_open, class_ in ((True, "toward"), (False, "settled"))
    ]
    layers: list[Layer] = [("rule", [(0.0,)], "cut"), ("whiskers", reach, "whisker"), *dots, ("ticks", true, "axis")]
    return chart(about, x, y, ("records, by margin", "margin"), *layers)
