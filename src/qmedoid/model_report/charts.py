"""Pictures of a report as SVG text, each with the same values as a table below it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qmedoid.markup.html import Child, Html, element, folded, join, shortened, table
from qmedoid.markup.svg import Axis, Point, area, axes, label, line, path, percent, picture, short, spanning, text

WIDTH, HEIGHT = 320.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 298.0, 28.0, 208.0
MOST_ROWS = 41
"""Points of a curve in its table twin."""
_NAME = 16
"""Characters of a name next to a mark."""


def figure(title: str, about: str, drawing: Html, twin: Html, *notes: Child) -> Html:
    """A picture with its title and its table twin; `about` says in words what it shows."""
    said = element("p", about, class_="note") if about else None
    return element(
        "figure",
        element("figcaption", title),
        drawing,
        said,
        *notes,
        folded("The same as a table", twin),
        class_="chart",
    )


def count(number: int) -> str:
    """A whole number with commas."""
    return f"{number:,}"


def _marker(name: str, x: Axis, y: Axis) -> Html:
    """The place of the operating point, which the page's script moves."""
    drawn = element("path", d="M0 -7 L7 0 L0 7 L-7 0Z")
    return element("g", drawn, class_="marker", data_curve=name, data_x=x.text, data_y=y.text)


def curve_charts(operating: Mapping[str, Any]) -> list[Html]:
    """ROC, precision against recall, recall against alert rate, and net benefit."""
    found, curves = [], operating["curves"]
    unit = Axis(0.0, 1.0, _LEFT, _RIGHT), Axis(0.0, 1.0, _BOTTOM, _TOP)
    share = operating["positives"] / max(operating["rows"], 1)
    if curves["pr"]:
        chance = [(_LEFT, unit[1].place(share)), (_RIGHT, unit[1].place(share))]
        about = f"Solid: the model. Dashed: precision of alerts by chance, {percent(share)}."
        found.append(_curve("pr", "Precision and recall", about, curves["pr"], unit, ("recall", "precision"), chance))
    if curves["roc"]:
        chance = [(_LEFT, _BOTTOM), (_RIGHT, _TOP)]
        about = "Solid: the model. Dashed: alerts by chance."
        names = ("false alert rate", "recall")
        found.append(_curve("roc", "ROC", about, curves["roc"], unit, names, chance))
    if curves["recall_by_alert_rate"]:
        points = curves["recall_by_alert_rate"]
        x, about = unit[0], "Solid: the model. Dashed: alerts by chance."
        lowest = min((p[0] for p in points if p[0] > 0), default=1.0)
        if lowest < 0.004:
            x = Axis(lowest, 1.0, _LEFT, _RIGHT, is_log=True)
            about += " The axis of alert rates is logarithmic."
        steps = [lowest * (1.0 / lowest) ** (i / 40) if x.is_log else i / 40 for i in range(41)]
        chance = [(x.place(step), unit[1].place(step)) for step in steps]
        names = ("alert rate", "recall")
        title = "Recall by alert rate"
        found.append(_curve("recall_by_alert_rate", title, about, points, (x, unit[1]), names, chance))
    if curves.get("net_benefit"):
        found.append(_net_benefit(curves["net_benefit"]))
    return found


def _curve(
    name: str, title: str, about: str, points: Sequence[Sequence[float]], scales: tuple[Axis, Axis],
    names: tuple[str, str], chance: Sequence[Point],
) -> Html:  # fmt: skip
    x, y = scales
    shown = [p for p in points if not x.is_log or p[0] > 0]
    drawing = picture(
        WIDTH, HEIGHT, f"{title}: {names[1]} against {names[0]}",
        axes(x, y, *names, percent),
        path(chance, "by-chance"), path([(x.place(a), y.place(b)) for a, b in shown], "curve"), _marker(name, x, y),
    )  # fmt: skip
    rows = [(label(a), label(b)) for a, b in some_points(points)]
    return figure(title, about, drawing, table(_twin_title(title, len(rows), len(points)), names, rows, numbers=(0, 1)))


def some_points(points: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    """At most so many points of a curve that a reader still takes in, both ends included."""
    last = len(points) - 1
    if last < MOST_ROWS:
        return list(points)
    return [points[round(place * last / (MOST_ROWS - 1))] for place in range(MOST_ROWS)]


def _twin_title(title: str, shown: int, every: int) -> str:
    return f"{title}: {shown} of {every} points of the curve" if shown < every else f"{title}: points of the curve"


def _net_benefit(curves: Mapping[str, Sequence[Sequence[float]]]) -> Html:
    best = max((b for name in ("model", "all") for _, b in curves[name]), default=1.0)
    best = best if best > 0 else 0.01
    last = max((p for p, _ in curves["model"]), default=1.0)
    x, y = Axis(0.0, last, _LEFT, _RIGHT), Axis(-best / 4, best * 1.08, _BOTTOM, _TOP)

    def placed(name: str) -> list[Point]:
        return [(x.place(p), y.place(b)) for p, b in curves[name] if y.low <= b]

    title, names = "Net benefit", ("threshold", "net benefit")
    about = (
        "Benefit of acting on alerts, in true alerts per record, where a false one costs p / (1 − p) at the threshold "
        "p. Solid: the model. Dashed: acting on all records. Dotted: on none."
    )
    drawing = picture(
        WIDTH, HEIGHT, f"{title}: of the model, of acting on all records and on none, against the threshold",
        axes(x, y, *names), path(placed("all"), "by-chance"), path(placed("none"), "dotted"),
        path(placed("model"), "curve"), _marker("net_benefit", x, y),
    )  # fmt: skip
    all_of, none_of = ({p: b for p, b in curves[name]} for name in ("all", "none"))  # noqa: C416
    rows = [
        (label(p), label(b), _known(all_of.get(p)), _known(none_of.get(p))) for p, b in some_points(curves["model"])
    ]
    head = ("threshold", "model", "all", "none")
    return figure(
        title,
        about,
        drawing,
        table(_twin_title(title, len(rows), len(curves["model"])), head, rows, numbers=(0, 1, 2, 3)),
    )


def _known(value: float | None) -> str:
    return "–" if value is None else label(value)


def calibration_chart(calibration: Mapping[str, Any]) -> Html:
    """Shares of records of a class by their probability, with intervals."""
    bins = calibration["bins"]
    x, y = _calibration_axes(bins)
    marks = [
        join([
            line(x.place(one["mean"]), y.place(one["low"]), x.place(one["mean"]), y.place(one["high"]), "whisker"),
            element("circle", cx=short(x.place(one["mean"])), cy=short(y.place(one["share"])), r=4, class_="dot"),
        ])
        for one in bins
    ]  # fmt: skip
    names = ("mean probability", "share")
    drawing = picture(
        WIDTH, HEIGHT, "Calibration: share that came true against mean probability, with 95 % intervals",
        axes(x, y, *names, percent),
        path([(_LEFT, _BOTTOM), (_RIGHT, _TOP)], "by-chance"),
        path([(x.place(one["mean"]), y.place(one["share"])) for one in bins], "thin"), *marks,
    )  # fmt: skip
    rows = [
        (label(one["mean"]), label(one["share"]), f"{label(one['low'])} to {label(one['high'])}", count(one["count"]))
        for one in bins
    ]
    twin = table("Calibration by bins", (*names, "95 % interval", "rows"), rows, numbers=(0, 1, 2, 3))
    about = (
        f"Dots: what came true in bins of records, with 95 % intervals. Dashed: perfect. Calibration error "
        f"{calibration['error_text']}; by chance {calibration['by_chance_text']}."
    )
    if x.is_log:
        about += " Both axes are logarithmic; a share of zero lies on the lower edge."
    return figure("Calibration", about, drawing, twin)


def _calibration_axes(bins: Sequence[Mapping[str, Any]]) -> tuple[Axis, Axis]:
    """From 0 to 1, or logarithmic where half of the bins would lie on each other near zero."""
    means = sorted(one["mean"] for one in bins)
    is_log = bool(means) and means[len(means) // 2] < 0.01
    low = max(min((mean for mean in means if mean > 0), default=1.0) / 2, 1e-9) if is_log else 0.0
    return Axis(low, 1.0, _LEFT, _RIGHT, is_log), Axis(low, 1.0, _BOTTOM, _TOP, is_log)


def effect_chart(effect: Mapping[str, Any]) -> Html:
    """Contribution of a column against its values: mean, spread, and how many rows."""
    bins = [*effect["bins"], *([] if effect["missing"] is None else [{**effect["missing"], "label": "missing"}])]
    ends = [value for one in bins for value in (one["mean"], one["low"], one["high"]) if value is not None]
    has_numbers = len(effect["bins"]) > 1 and all(one["x"] is not None for one in effect["bins"])
    draw = _number_effect if has_numbers else _level_effect
    drawing = draw(effect, bins, ends)
    rows = [
        (one["label"], label(one["mean"]), f"{_known(one['low'])} to {_known(one['high'])}", count(one["count"]))
        for one in bins
    ]
    head = ("value", "mean contribution", "spread", "rows")
    twin = table(f"Contribution of {effect['column']}", head, rows, numbers=(1, 2, 3))
    return figure(str(effect["column"]), "", drawing, twin)


def odds_factor(log_odds: float) -> str:
    """What the odds are multiplied or divided by, such as ×2 or ÷2."""
    factor = math.exp(min(abs(log_odds), 700.0))
    text = (
        f"{factor:.2g}" if factor < 100 else f"{factor:.0f}" if factor < 10_000 else f"{factor:.0e}".replace("e+0", "e")
    )
    return f"{'÷' if log_odds < 0 and text != '1' else '×'}{text}"


def _effect_about(effect: Mapping[str, Any]) -> str:
    return f"Mean contribution of {effect['column']} toward {effect['toward']} against its value, in log-odds"


def _number_effect(effect: Mapping[str, Any], bins: Sequence[Mapping[str, Any]], ends: Sequence[float]) -> Html:
    own = effect["bins"]
    has_missing = len(bins) > len(own)
    right = _RIGHT - (78 if has_missing else 30)
    x = spanning([one["x"] for one in own], _LEFT, right, room=0.02)
    y = spanning(ends, _BOTTOM - 34, _TOP, zero=True)
    most = max(one["count"] for one in bins) or 1
    bars = []
    for one in own:
        height = 26.0 * one["count"] / most
        bars.append(_rectangle(x.place(one["x"]) - 2, _BOTTOM - height, 4, height, "count"))
    upper = [(x.place(one["x"]), y.place(one["high"])) for one in own]
    lower = [(x.place(one["x"]), y.place(one["low"])) for one in own]
    middle = [(x.place(one["x"]), y.place(one["mean"])) for one in own]
    drawn = [
        _effect_axes(y, right), *bars, area(upper, lower, "band"),
        line(_LEFT, y.place(0.0), right, y.place(0.0), "zero"), path(middle, "curve"),
        *(element("circle", cx=short(a), cy=short(b), r=2.5, class_="dot") for a, b in middle),
        *(text(at, _BOTTOM + 16, said, "middle") for at, said in x.marks(5)),
        line(_LEFT, _BOTTOM, right, _BOTTOM, "axis"),
        text((_LEFT + right) / 2, _BOTTOM + 33, "value", "middle", "what"),
    ]  # fmt: skip
    if has_missing:
        drawn.append(_dot_with_whisker(bins[-1], right + 46, y))
        height = 26.0 * bins[-1]["count"] / most
        drawn.append(_rectangle(right + 43, _BOTTOM - height, 6, height, "count"))
        drawn.append(text(right + 46, _BOTTOM + 16, "missing", "middle"))
    return picture(WIDTH, HEIGHT, _effect_about(effect), *drawn)


def _effect_axes(y: Axis, right: float) -> Html:
    """Log-odds at the left, factors of the odds at the right."""
    drawn = [text(2, _TOP - 12, "log-odds", "start", "what"), text(right + 2, _TOP - 12, "odds", "start", "what")]
    for tick, (at, said) in zip(y.ticks(5), y.marks(5), strict=True):
        drawn += [line(_LEFT, at, right, at, "grid"), text(_LEFT - 6, at + 4, said, "end")]
        drawn.append(text(right + 4, at + 4, odds_factor(tick)))
    return join(drawn)


def _rectangle(x: float, y: float, width: float, height: float, class_: str) -> Html:
    return element("rect", x=short(x), y=short(y), width=short(width), height=short(height), class_=class_)


def _dot_with_whisker(one: Mapping[str, Any], x: float, y: Axis) -> Html:
    whisker = line(x, y.place(one["low"]), x, y.place(one["high"]), "whisker")
    dot = element("circle", cx=short(x), cy=short(y.place(one["mean"])), r=4, class_="dot")
    return join([whisker, dot])


def _level_effect(effect: Mapping[str, Any], bins: Sequence[Mapping[str, Any]], ends: Sequence[float]) -> Html:
    """A line for each level: its mean as a bar from zero, its spread, its rows."""
    step, top = 22.0, 26.0
    height = top + step * len(bins) + 40
    left, right = 104.0, _RIGHT - 38
    x = spanning(ends, left, right, zero=True)
    bottom = top + step * len(bins)
    drawn = [line(x.place(tick), top, x.place(tick), bottom, "grid") for tick in x.ticks(4)]
    drawn += [text(at, bottom + 15, said, "middle") for at, said in x.marks(4)]
    drawn += [text(x.place(tick), bottom + 31, odds_factor(tick), "middle", "quiet") for tick in x.ticks(4)]
    drawn += [
        text(2, bottom + 15, "log-odds", class_="what"),
        text(2, bottom + 31, "odds", class_="what"),
    ]
    drawn.append(text(WIDTH - 4, top - 8, "rows", "end", "what"))
    for place, one in enumerate(bins):
        middle, zero, mean = top + step * (place + 0.5), x.place(0.0), x.place(one["mean"])
        drawn += [
            text(left - 6, middle + 4, shortened(str(one["label"]), _NAME), "end"),
            _rectangle(min(zero, mean), middle - 6, abs(mean - zero), 12, "toward" if one["mean"] >= 0 else "against"),
            line(x.place(one["low"]), middle, x.place(one["high"]), middle, "whisker"),
            text(WIDTH - 4, middle + 4, count(one["count"]), "end", "quiet"),
        ]
    drawn.append(line(x.place(0.0), top, x.place(0.0), bottom, "zero"))
    return picture(WIDTH, height, _effect_about(effect), *drawn)


def bar_chart(title: str, bars: Sequence[tuple[str, float, str]], twin: Html, *, are_long: bool = False) -> Html:
    """Bars from zero, the first on top: name, value and text of each. Long names stand above their bars."""
    step, left = (40.0, 2.0) if are_long else (22.0, 124.0)
    x = Axis(0.0, max([value for _, value, _ in bars] + [0.0]) or 1.0, left, WIDTH - 58)
    drawn: list[Html] = []
    for place, (name, value, said) in enumerate(bars):
        middle = step * (place + 1) - (9 if are_long else 8)
        where = (
            (left, middle - 14, shortened(name, 48)) if are_long else (left - 6, middle + 4, shortened(name, _NAME + 2))
        )
        drawn += [
            text(*where, "start" if are_long else "end"),
            _rectangle(left, middle - 7, max(x.place(value) - left, 0.5), 14, "plainly"),
            text(x.place(value) + 5, middle + 4, said),
        ]
    drawing = picture(WIDTH, step * len(bars) + 6, f"{title}, as bars", *drawn)
    return figure(title, "", drawing, twin)


def groups_chart(groups: Mapping[str, Any], twin: Html) -> Html:
    """Columns on a circle; lines join those that share a group, the thicker, the more they weigh together."""
    nodes, edges = groups["nodes"], groups["edges"]
    width, height, radius = 380.0, 290.0, 96.0
    largest = max([node["importance"] or 0.0 for node in nodes] + [0.0]) or 1.0
    heaviest = max([edge["weight"] for edge in edges] + [0.0]) or 1.0

    def at(place: int, distance: float = radius) -> Point:
        turn = 2 * math.pi * place / len(nodes) - math.pi / 2
        return width / 2 + distance * math.cos(turn), height / 2 + distance * math.sin(turn)

    drawn: list[Html] = []
    for edge in sorted(edges, key=lambda one: float(one["weight"])):
        (x1, y1), (x2, y2) = at(edge["a"]), at(edge["b"])
        share = edge["weight"] / heaviest
        ends = {"x1": short(x1), "y1": short(y1), "x2": short(x2), "y2": short(y2)}
        drawn.append(element("line", class_="edge", stroke_width=short(0.6 + 5.4 * share),
                             stroke_opacity=short(0.25 + 0.75 * share), **ends))  # fmt: skip
    for place, node in enumerate(nodes):
        size = 4.0 + 7.0 * math.sqrt((node["importance"] or 0.0) / largest)
        (x, y), (u, v) = at(place), at(place, radius + size + 8)
        anchor = "middle" if abs(u - width / 2) < 12 else "start" if u > width / 2 else "end"
        drawn.append(element("circle", cx=short(x), cy=short(y), r=short(size), class_="node"))
        drawn.append(text(u, v + 4, shortened(str(node["name"]), 13), anchor))
    about = "Lines join columns that are compared together in a group; the thicker, the more the group weighs."
    drawing = picture(width, height, "Columns that are compared together, as a graph", *drawn)
    return figure("Groups of columns", about, drawing, twin)


def line_chart(title: str, names: tuple[str, str], values: Sequence[float], number: Callable[[float], str]) -> Html:
    """A value at each step, such as the loss of a training."""
    x, y = Axis(0.0, max(len(values) - 1.0, 1.0), _LEFT, _RIGHT), spanning(values, _BOTTOM, _TOP)
    drawing = picture(
        WIDTH, HEIGHT, f"{title}: {names[1]} against {names[0]}", axes(x, y, *names),
        path([(x.place(step), y.place(value)) for step, value in enumerate(values)], "curve"),
    )  # fmt: skip
    rows = [(str(step), number(value)) for step, value in enumerate(values)]
    return figure(title, "", drawing, table(title, names, rows, numbers=(0, 1)))
