"""Pictures of a report, each with the same values as a table below it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qmedoid.markup import charts
from qmedoid.markup.html import Child, Html, element, folded, table
from qmedoid.markup.svg import count, known, label, percent

_CURVES = {
    "pr": ("Precision and recall", ("recall", "precision")),
    "roc": ("ROC", ("false alert rate", "recall")),
    "recall_by_alert_rate": ("Recall by alert rate", ("alert rate", "recall")),
}


def figure(title: str, about: str, drawing: Html, twin: Html, *notes: Child) -> Html:
    """A picture with its title and its table twin; `about` says in words what it shows."""
    said = element("p", about, class_="note") if about else None
    below = folded("The same as a table", twin)
    return element("figure", element("figcaption", title), drawing, said, *notes, below, class_="chart")


def curve_charts(operating: Mapping[str, Any]) -> list[Html]:
    """ROC, precision against recall, recall against alert rate, and net benefit."""
    found, curves = [], operating["curves"]
    share = operating["positives"] / max(operating["rows"], 1)
    for kind, (title, names) in _CURVES.items():
        points = curves[kind]
        if not points:
            continue
        about = "Solid: the model. Dashed: alerts by chance."
        if kind == "pr":
            about = f"Solid: the model. Dashed: precision of alerts by chance, {percent(share)}."
        elif kind != "roc" and min((one[0] for one in points if one[0] > 0), default=1.0) < charts.LOW_RATE:
            about += " The axis of alert rates is logarithmic."
        shown = charts.some_points(points)
        rows = [(label(a), label(b)) for a, b in shown]
        twin = table(_twin_title(title, len(shown), len(points)), names, rows, numbers=(0, 1))
        found.append(figure(title, about, charts.operating_curve(kind, points, share), twin))
    if curves.get("net_benefit"):
        found.append(_net_benefit(curves["net_benefit"]))
    return found


def _twin_title(title: str, shown: int, every: int) -> str:
    return f"{title}: {shown} of {every} points of the curve" if shown < every else f"{title}: points of the curve"


def _net_benefit(curves: Mapping[str, Sequence[Sequence[float]]]) -> Html:
    about = (
        "Benefit of acting on alerts, in true alerts per record, where a false one costs p / (1 − p) at the threshold "
        "p. Solid: the model. Dashed: acting on all records. Dotted: on none."
    )
    all_of, none_of = ({p: b for p, b in curves[name]} for name in ("all", "none"))  # noqa: C416
    shown = charts.some_points(curves["model"])
    rows = [(label(p), label(b), known(all_of.get(p)), known(none_of.get(p))) for p, b in shown]
    title, head = "Net benefit", ("threshold", "model", "all", "none")
    twin = table(_twin_title(title, len(rows), len(curves["model"])), head, rows, numbers=(0, 1, 2, 3))
    return figure(title, about, charts.net_benefit(curves), twin)


def calibration_chart(calibration: Mapping[str, Any]) -> Html:
    """Shares of records of a class by their probability, with intervals."""
    bins = calibration["bins"]
    rows = [
        (label(one["mean"]), label(one["share"]), f"{label(one['low'])} to {label(one['high'])}", count(one["count"]))
        for one in bins
    ]
    head = ("mean probability", "share", "95 % interval", "rows")
    twin = table("Calibration by bins", head, rows, numbers=(0, 1, 2, 3))
    about = (
        f"Dots: what came true in bins of records, with 95 % intervals. Dashed: perfect. Calibration error "
        f"{calibration['error_text']}; by chance {calibration['by_chance_text']}."
    )
    if charts.is_near_zero(bins):
        about += " Both axes are logarithmic; a share of zero lies on the lower edge."
    return figure("Calibration", about, charts.calibration(bins), twin)


def bar_chart(title: str, bars: Sequence[tuple[str, float, str]], twin: Html, *, are_long: bool = False) -> Html:
    """Bars from zero, the first on top: name, value and text of each. Long names stand above their bars."""
    return figure(title, "", charts.bars(f"{title}, as bars", bars, are_long=are_long), twin)


def groups_chart(groups: Mapping[str, Any], twin: Html) -> Html:
    """Columns on a circle; lines join those that share a group, the thicker, the more they weigh together."""
    about = "Lines join columns that are compared together in a group; the thicker, the more the group weighs."
    drawing = charts.graph("Columns that are compared together, as a graph", groups["nodes"], groups["edges"])
    return figure("Groups of columns", about, drawing, twin)


def line_chart(title: str, names: tuple[str, str], values: Sequence[float], number: Callable[[float], str]) -> Html:
    """A value at each step, such as the loss of a training."""
    drawing = charts.steps(f"{title}: {names[1]} against {names[0]}", names, values)
    rows = [(str(step), number(value)) for step, value in enumerate(values)]
    return figure(title, "", drawing, table(title, names, rows, numbers=(0, 1)))


def effect_chart(effect: Mapping[str, Any]) -> Html:
    """Contribution of a column against its values: mean, spread, and how many rows."""
    bins = [*effect["bins"], *([] if effect["missing"] is None else [{**effect["missing"], "label": "missing"}])]
    rows = [
        (one["label"], label(one["mean"]), f"{known(one['low'])} to {known(one['high'])}", count(one["count"]))
        for one in bins
    ]
    head = ("value", "mean contribution", "10 % to 90 % of rows", "rows")
    twin = table(f"Contribution of {effect['column']}", head, rows, numbers=(1, 2, 3))
    return figure(str(effect["column"]), "", charts.effect(effect), twin)
