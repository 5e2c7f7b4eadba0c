"""A decision as a picture: one bar for each contribution, from 0 to the margin, with a scale of probabilities."""

import math
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple

from qmedoid.explanations.digits import plain, rounded_to_sum, signed
from qmedoid.explanations.sentences import cell_text, toward_text

PICTURE_TITLE = "What the decision for"
"""How the title of every picture begins."""
DIGITS = 3
"""Decimals of contributions in print."""
_WIDTH, _LABELS, _NUMBERS, _ROW, _TOP, _BOTTOM = 720, 230, 70, 22, 46, 40
_PROBABILITIES = (0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999)
_FEW = 36
# What is the same for all records, or is not about columns.
_TERM_NAMES = {
    "intercept": "start of every record", "calibration": "calibration", "neighbors": "votes of neighbors",
    "circuit": "circuit", "prevalence": "expected prevalence", "operating point": "operating point",
    "recalibration": "recalibration", "class weights": "class weights", "angle": "angle",
}  # fmt: skip


class Step(NamedTuple):
    """A bar of the picture: its label, from where to where it goes, and its value in print."""

    label: str
    start: float
    end: float
    text: str


def steps(made: Mapping[str, Any]) -> list[Step]:
    """The bars from 0 to the margin; their printed values add up to the printed margin."""
    parts = [(_TERM_NAMES.get(name, name), value) for name, value in made["terms"].items() if value]
    parts += [(f"{cell_text(one['name'])} = {cell_text(one['cell'])}", one["contribution"]) for one in made["columns"]]
    rest = made["rest"]["columns"]
    if rest["count"]:
        parts.append((counted(rest["count"], "other column"), rest["contribution"]))
    found, at = [], 0.0
    printed = rounded_to_sum([value for _, value in parts], DIGITS)
    for (label, value), text in zip(parts, printed, strict=True):
        found.append(Step(label, at, at + value, signed(text, DIGITS)))
        at += value
    return found


def counted(count: int, what: str) -> str:
    """A number of things, such as 1 other column and 2 other columns."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def waterfall(made: Mapping[str, Any]) -> str:
    """The picture as SVG; colors of the text are those around it."""
    bars = steps(made)
    ends = [0.0, made["margin"], *(end for bar in bars for end in (bar.start, bar.end))]
    low, high = min(ends), max(ends)
    pad = 0.04 * (high - low or 1.0)
    left, right = _LABELS, _WIDTH - _NUMBERS
    unit = (right - left) / (high - low + 2 * pad)

    def x(value: float) -> float:
        return float(round(left + (value - low + pad) * unit, 1))

    height = _TOP + _ROW * (len(bars) + 1) + _BOTTOM
    title = f"{PICTURE_TITLE} {cell_text(made['prediction'])} is made of"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12" '
        'fill="currentColor">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(' '.join(made['sentences']))}</desc>",
        '<defs><pattern id="lowers" width="5" height="5" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><rect width="5" height="5" fill="#1f6fb5"/>'
        '<line x1="0" y1="0" x2="0" y2="5" stroke="#fff" stroke-width="1.5" stroke-opacity="0.55"/></pattern></defs>',
        *_scales(made, low - pad, high + pad, x, height),
        *(line for place, bar in enumerate(bars) for line in _bar(bar, _TOP + _ROW * place, x)),
        *_total(made, _TOP + _ROW * len(bars), x, height),
        "</svg>",
    ]
    return "\n".join(lines)


def _bar(bar: Step, y: int, x: Any) -> Iterator[str]:
    start, end = sorted((x(bar.start), x(bar.end)))
    fill = "#b8460e" if bar.end >= bar.start else "url(#lowers)"
    yield _text(_LABELS - 8, y + 15, _cut(bar.label), "end")
    yield f'<rect x="{start}" y="{y + 4}" width="{max(end - start, 1):.1f}" height="{_ROW - 8}" fill="{fill}"/>'
    yield (
        f'<line x1="{x(bar.end)}" x2="{x(bar.end)}" y1="{y + 4}" y2="{y + _ROW + 4}" stroke="currentColor" '
        'stroke-opacity="0.45"/>'
    )
    yield _text(_WIDTH - 4, y + 15, bar.text, "end")


def _total(made: Mapping[str, Any], y: int, x: Any, height: int) -> Iterator[str]:
    margin = made["margin"]
    start, end = sorted((x(0.0), x(margin)))
    yield _text(_LABELS - 8, y + 15, "margin", "end", "bold")
    yield (
        f'<rect x="{start}" y="{y + 4}" width="{max(end - start, 1):.1f}" height="{_ROW - 8}" fill="none" '
        'stroke="currentColor" stroke-width="1.5"/>'
    )
    yield _text(_WIDTH - 4, y + 15, signed(float(f"{margin:.{DIGITS}f}"), DIGITS), "end", "bold")
    yield _text(
        _LABELS - 8, height - 14, "difference of scores" if made.get("probability") is None else "log-odds", "end"
    )


def _scales(made: Mapping[str, Any], low: float, high: float, x: Any, height: int) -> Iterator[str]:
    """Log-odds below, and above the probability that they mean for the winner against the other class."""
    bottom = height - _BOTTOM
    yield (
        f'<line x1="{x(0.0)}" x2="{x(0.0)}" y1="{_TOP}" y2="{bottom}" stroke="currentColor" stroke-dasharray="3 3"/>'
    )
    step = _nice_step(high - low)
    tick = math.ceil(low / step) * step
    while tick <= high:
        yield f'<line x1="{x(tick)}" x2="{x(tick)}" y1="{bottom}" y2="{bottom + 5}" stroke="currentColor"/>'
        yield _text(x(tick), height - 14, plain(round(tick, 9)), "middle")
        tick += step
    if made.get("probability") is None:
        return
    moved, last = made["terms"].get("operating point", 0.0), -math.inf
    # Of more than two classes the margin tells of two: what their probabilities are if it is one of them.
    against = f", not {_cut(cell_text(made['against']), 10)}" if len(made["probabilities"]) > 2 else ""
    toward = _cut(cell_text(made["toward"]) if against else toward_text(made), 10 if against else 20)
    yield _text(_LABELS - 8, 22, f"probability of {toward}{against}", "end")
    for probability in _PROBABILITIES:
        value = math.log(probability / (1.0 - probability)) + moved
        if low <= value <= high and x(value) - last > 38:
            last = x(value)
            yield f'<line x1="{last}" x2="{last}" y1="{_TOP - 16}" y2="{_TOP - 11}" stroke="currentColor"/>'
            yield _text(last, 22, f"{probability:g}", "middle")


def _nice_step(width: float) -> float:
    rough = width / 6.0
    power = 10.0 ** math.floor(math.log10(rough))
    return float(next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough))


def _text(x: float, y: float, text: str, anchor: str, weight: str = "normal") -> str:
    bold = "" if weight == "normal" else f' font-weight="{weight}"'
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{bold}>{escape(text)}</text>'


def _cut(text: str, most: int = _FEW) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
