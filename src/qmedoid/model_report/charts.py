"""Pictures of a report as SVG text, each with the same values as a table below it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qmedoid.markup.charts import Axis, Point, axes, label, line, path, percent, picture, short, spanning, text
from qmedoid.markup.html import Child, Html, element, folded, join, shortened, table

WIDTH, HEIGHT = 320.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 298.0, 28.0, 208.0
MOST_ROWS = 41
"""Points of a curve in its table twin."""
NAME = 16
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
    unit = Axis(0.0, 1.0, LEFT, RIGHT), Axis(0.0, 1.0, BOTTOM, TOP)
    share = operating["positives"] / max(operating["rows"], 1)
    if curves["pr"]:
        chance = [(LEFT, unit[1].place(share)), (RIGHT, unit[1].place(share))]
        about = f"Solid: the model. Dashed: precision of alerts by chance, {percent(share)}."
        found.append(_curve("pr", "Precision and recall", about, curves["pr"], unit, ("recall", "precision"), chance))
    if curves["roc"]:
        chance = [(LEFT, BOTTOM), (RIGHT, TOP)]
        about = "Solid: the model. Dashed: alerts by chance."
        names = ("false alert rate", "recall")
        found.append(_curve("roc", "ROC", about, curves["roc"], unit, names, chance))
    if curves["recall_by_alert_rate"]:
        points = curves["recall_by_alert_rate"]
        x, about = unit[0], "Solid: the model. Dashed: alerts by chance."
        lowest = min((p[0] for p in points if p[0] > 0), default=1.0)
        if lowest < 0.004:
            x = Axis(lowest, 1.0, LEFT, RIGHT, is_log=True)
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
    x, y = Axis(0.0, last, LEFT, RIGHT), Axis(-best / 4, best * 1.08, BOTTOM, TOP)

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
    rows = [(label(p), label(b), known(all_of.get(p)), known(none_of.get(p))) for p, b in some_points(curves["model"])]
    head = ("threshold", "model", "all", "none")
    return figure(
        title,
        about,
        drawing,
        table(_twin_title(title, len(rows), len(curves["model"])), head, rows, numbers=(0, 1, 2, 3)),
    )


def known(value: float | None) -> str:
    """A number, or a dash for none."""
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
        path([(LEFT, BOTTOM), (RIGHT, TOP)], "by-chance"),
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
    return Axis(low, 1.0, LEFT, RIGHT, is_log), Axis(low, 1.0, BOTTOM, TOP, is_log)


def rectangle(x: float, y: float, width: float, height: float, class_: str) -> Html:
    """A rectangle from its upper left corner."""
    return element("rect", x=short(x), y=short(y), width=short(width), height=short(height), class_=class_)


def bar_chart(title: str, bars: Sequence[tuple[str, float, str]], twin: Html, *, are_long: bool = False) -> Html:
    """Bars from zero, the first on top: name, value and text of each. Long names stand above their bars."""
    step, left = (40.0, 2.0) if are_long else (22.0, 124.0)
    x = Axis(0.0, max([value for _, value, _ in bars] + [0.0]) or 1.0, left, WIDTH - 58)
    drawn: list[Html] = []
    for place, (name, value, said) in enumerate(bars):
        middle = step * (place + 1) - (9 if are_long else 8)
        where = (
            (left, middle - 14, shortened(name, 48)) if are_long else (left - 6, middle + 4, shortened(name, NAME + 2))
        )
        drawn += [
            text(*where, "start" if are_long else "end"),
            rectangle(left, middle - 7, max(x.place(value) - left, 0.5), 14, "plainly"),
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
    x, y = Axis(0.0, max(len(values) - 1.0, 1.0), LEFT, RIGHT), spanning(values, BOTTOM, TOP)
    drawing = picture(
        WIDTH, HEIGHT, f"{title}: {names[1]} against {names[0]}", axes(x, y, *names),
        path([(x.place(step), y.place(value)) for step, value in enumerate(values)], "curve"),
    )  # fmt: skip
    rows = [(str(step), number(value)) for step, value in enumerate(values)]
    return figure(title, "", drawing, table(title, names, rows, numbers=(0, 1)))
