"""SVG as text: scales, axes, lines. Colors come from the classes of the style sheet."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from qmedoid.markup.html import Child, Html, element, join, plain

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


def path(points: Iterable[Point], class_: str) -> Html:
    """A line through points."""
    placed = line_path(points)
    return element("path", d=placed, class_=class_) if placed else Html("")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    """A straight line."""
    return element("line", x1=short(x1), y1=short(y1), x2=short(x2), y2=short(y2), class_=class_)


def text(x: float, y: float, words: Child, anchor: str = "start", class_: str | None = None) -> Html:
    """Words at a place; ``anchor`` is ``start``, ``middle`` or ``end``."""
    shown = plain(words) if isinstance(words, str) else words
    return element("text", shown, x=short(x), y=short(y), text_anchor=anchor, class_=class_)


def axes(x: Axis, y: Axis, x_label: str, y_label: str, number: Callable[[float], str] | None = None) -> Html:
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
    return join(drawn)


def picture(width: float, height: float, about: str, *children: Child, class_: str | None = None) -> Html:
    """A drawing that takes the width it is given; ``about`` says in words what it shows."""
    size = f"0 0 {short(width)} {short(height)}"
    return element("svg", *children, viewBox=size, role="img", aria_label=plain(about), class_=class_)
