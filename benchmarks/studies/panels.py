"""Pictures of a study: curves with bands, searches, figures against the paper's, and confusion matrices."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from benchmarks.studies.document import Picture
from qmedoid.arrays import Array, Codes
from qmedoid.markup.charts import Axis, Point, area_path, axes, element, line, line_path, picture, short, spanning, text

Role = Literal["ours", "printed", "baseline"]
"""Whose figures: ours, ours as the paper prints the method, or those of another method."""
# After Okabe and Ito. The strong colors are ours alone; a second method of ours is a darker, a third a lighter shade.
_COLORS: dict[Role, tuple[str, ...]] = {
    "ours": ("#0072B2", "#003F66", "#4FA3D9"),
    "printed": ("#D55E00", "#8A3C00", "#F0945A"),
    "baseline": ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A", "#7B5EA7", "#A6761D"),
}
_DASHES: dict[Role, tuple[str | None, ...]] = {
    "ours": (None, "2 2"),
    "printed": ("9 3", "5 2 2 2"),
    "baseline": (None, "5 3", "8 3 2 3", "1.5 2", "10 3", "4 2 1 2 1 2"),
}
Trace = tuple[Sequence[float], Sequence[float]]
"""One search: rising numbers of evaluations, those that changed the best score and the last; and the best scores."""
Stated = tuple[float, float, str]
"""A point that the paper states: x, y and its label."""
_MUTED = "#666666"
# Points that are drawn across a panel, by the number of panels in a row; more would only make the file larger.
_PLACES = {1: 150, 2: 120, 3: 100}
# A panel of curves, by the number of panels in a row, and the places of its axes.
_SIZES = {1: (700.0, 360.0), 2: (400.0, 300.0), 3: (310.0, 280.0)}
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 14.0, 44.0, 44.0
_ENTRY, _LINE, _WIDTH = 22.0, 20.0, 800.0


class Look(NamedTuple):
    """How one method is drawn, in all panels of a picture; ours are wider than the others."""

    role: Role
    color: str
    dashes: str | None

    def line(self, d: str) -> Markup:
        """A line of this look."""
        width = 1.5 if self.role == "baseline" else 2.5
        return element("path", d=d, fill="none", stroke=self.color, stroke_width=width, stroke_dasharray=self.dashes)

    def dot(self, x: float, y: float) -> Markup:
        """A dot of this look, and a square of ours as printed."""
        if self.role == "printed":
            return element("rect", x=short(x - 5), y=short(y - 5), width=10, height=10, fill=self.color)
        return element("circle", cx=short(x), cy=short(y), r=5.5, fill=self.color)


def looks(methods: Iterable[tuple[str, Role]]) -> dict[str, Look]:
    """A look per label, in the order in which labels first appear."""
    found: dict[str, Look] = {}
    counts: dict[Role, int] = dict.fromkeys(get_args(Role), 0)
    for label, role in methods:
        if label not in found:
            colors, dashes = _COLORS[role], _DASHES[role]
            found[label] = Look(role, colors[counts[role] % len(colors)], dashes[counts[role] % len(dashes)])
            counts[role] += 1
    return found


def _diamond(x: float, y: float) -> Markup:
    """What the paper states."""
    return element("path", d=f"M{short(x)} {short(y - 6)} l5 6 l-5 6 l-5 -6Z", class_="printed")


def _grid(
    name: str, title: str, note: str, panels: Sequence[Markup], size: tuple[float, float], columns: int,
    legend: Mapping[str, Callable[[float, float], Markup]], entries: int = 3,
) -> Picture:  # fmt: skip
    """Panels of one size in rows, and a legend below them, where it covers nothing."""
    (width, height), rows = size, math.ceil(len(panels) / columns)
    placed = [
        element("g", panel, transform=f"translate({short(width * (number % columns))} "
                                      f"{short(height * (number // columns))})")
        for number, panel in enumerate(panels)
    ]  # fmt: skip
    room = width * columns / entries
    for number, (label, sample) in enumerate(legend.items()):
        x, y = room * (number % entries) + 10, height * rows + _LINE * (number // entries) + 14
        placed += [sample(x + _ENTRY / 2, y - 4), text(x + _ENTRY + 8, y, label)]
    whole = height * rows + _LINE * math.ceil(len(legend) / entries) + 8
    return Picture(name, title, picture(max(width * columns, _WIDTH), whole, title, *placed, class_="study"), note)


def _sample(look: Look) -> Callable[[float, float], Markup]:
    return lambda x, y: look.line(f"M{short(x - _ENTRY / 2)} {short(y)} h{short(_ENTRY)}")


@dataclass(frozen=True)
class Curve:
    """A method's curve: its means, of which NaN leaves a gap, and the edges of the band around it; both or none."""

    label: str
    mean: npt.ArrayLike
    low: npt.ArrayLike | None = None
    high: npt.ArrayLike | None = None
    role: Role = "baseline"

    def values(self) -> list[Array]:
        """The mean and the edges at every point of x."""
        return [np.asarray(one, dtype=np.float64) for one in (self.mean, self.low, self.high) if one is not None]


class CurvePanel(NamedTuple):
    """Curves over one x, such as those of a data set."""

    subtitle: str
    x: npt.ArrayLike
    curves: Sequence[Curve]
    marker: Stated | None = None


def curve_grid(
    name: str, title: str, panels: Sequence[CurvePanel], *, x_label: str, y_label: str, log_x: bool = False,
    diagonal: bool = False, note: str = "",
) -> Picture:  # fmt: skip
    """A picture of panels of curves: the same label looks the same in all, and one legend is below them.

    `log_x` puts x on a logarithmic scale, and leaves out points at or below zero; `diagonal` draws the line of chance
    of a ROC curve.
    """
    look = looks((curve.label, curve.role) for panel in panels for curve in panel.curves)
    columns = len(panels) if len(panels) <= 3 else 2
    legend = {label: _sample(one) for label, one in look.items()}
    legend |= {panel.marker[2]: _diamond for panel in panels if panel.marker is not None}
    drawn = [
        _curves(panel, look, columns, x_label, y_label if number % columns == 0 else "", log_x=log_x, diagonal=diagonal)
        for number, panel in enumerate(panels)
    ]
    return _grid(name, title, note, drawn, _SIZES[columns], columns, legend, 3 if columns == 1 else 4)


def thinned(x: Array, places: int, *, log_x: bool) -> Codes:
    """Which points are worth drawing: of neighbors that fall on one place of the axis, the first and the last.

    Points at or below zero have no place on a logarithmic axis.
    """
    usable = np.flatnonzero(np.isfinite(x) & (x > 0) if log_x else np.isfinite(x))
    if usable.size <= 2:
        return usable
    on_axis = np.log(x[usable]) if log_x else x[usable]
    place = np.floor((on_axis - on_axis.min()) / (np.ptp(on_axis) or 1.0) * places)
    changes = np.diff(place) != 0
    is_kept = np.append(True, changes) | np.append(changes, True)
    return usable[np.flatnonzero(is_kept)]


def _curves(
    panel: CurvePanel, look: Mapping[str, Look], columns: int, x_label: str, y_label: str, *, log_x: bool,
    diagonal: bool,
) -> Markup:  # fmt: skip
    given = np.asarray(panel.x, dtype=np.float64)
    values = [curve.values() for curve in panel.curves]
    kept = thinned(given, _PLACES[columns], log_x=log_x)
    points = [] if panel.marker is None else [panel.marker]
    ends = [0.0, 1.0] if diagonal else []
    xs = [*given[kept].tolist(), *(x for x, _, _ in points), *ends]
    ys = [value for of_curve in values for one in of_curve for value in one[kept].tolist()]
    ys += [*(y for _, y, _ in points), *ends]
    x, y = _scales(xs, ys, _SIZES[columns], log_x=log_x, room=0.0)
    drawn = [text(2, 14, panel.subtitle, class_="strong"), axes(x, y, x_label, y_label)]
    if diagonal:
        drawn.append(line(x.place(0.0), y.place(0.0), x.place(1.0), y.place(1.0), "by-chance"))
    for curve, (mean, *band) in zip(panel.curves, values, strict=True):
        if band:
            # Edges, because two bands over each other have a color of neither.
            edges = [_runs(x, y, given[kept], edge[kept]) for edge in band]
            color = look[curve.label].color
            for low, high in zip(*edges, strict=True):
                drawn.append(element("path", d=area_path(high, low), fill=color, fill_opacity=0.12, stroke=color,
                                     stroke_width=0.5, stroke_opacity=0.5))  # fmt: skip
        drawn += [look[curve.label].line(line_path(run)) for run in _runs(x, y, given[kept], mean[kept])]
    return Markup().join([*drawn, *(_diamond(x.place(at), y.place(value)) for at, value, _ in points)])


def _scales(
    xs: Sequence[float], ys: Sequence[float], size: tuple[float, float], *, log_x: bool = False, room: float = 0.05
) -> tuple[Axis, Axis]:
    """Axes on which all values have a place; shares end at zero and one."""
    start, end = _LEFT, size[0] - _RIGHT
    x, y = spanning(xs, start, end, room=room), spanning(ys, size[1] - _BOTTOM, _TOP)
    if log_x and xs:
        x = Axis(min(xs), max(xs) if max(xs) > min(xs) else 2 * min(xs), start, end, is_log=True)
    known = [value for value in ys if math.isfinite(value)]
    if known and min(known) >= 0 and max(known) <= 1:
        y = Axis(max(y.low, 0.0), min(y.high, 1.0), y.start, y.end)
    return x, y


def _runs(x: Axis, y: Axis, xs: Array, ys: Array) -> list[list[Point]]:
    """The places of points, a list for each part between gaps."""
    runs: list[list[Point]] = [[]]
    for one, value in zip(xs.tolist(), ys.tolist(), strict=True):
        if math.isfinite(value):
            runs[-1].append((x.place(one), y.place(value)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def best_at(trace: Trace, evaluations: Array) -> Array:
    """The best score of a search at any number of evaluations; NaN before the first."""
    place = np.searchsorted(trace[0], evaluations, side="right") - 1
    return np.where(place < 0, np.nan, np.asarray(trace[1], dtype=np.float64)[place])


def median_trace(traces: Sequence[Trace]) -> Trace:
    """The median over searches, from where all have begun, at every evaluation at which one of them changes."""
    begun = max(at[0] for at, _ in traces)
    places = np.unique(np.concatenate([np.asarray(at, dtype=np.float64) for at, _ in traces]))
    places = places[places >= begun]
    return places.tolist(), np.median([best_at(trace, places) for trace in traces], axis=0).tolist()


def trace_grid(
    name: str, title: str, panels: Mapping[str, Sequence[Trace]], *, role: Role = "ours", note: str = ""
) -> Picture:
    """A picture of searches: a thin line per split, and their median; a panel per data set.

    A search that has ended keeps its score, so that the median is over all splits everywhere.
    """
    columns = len(panels) if len(panels) <= 3 else 2
    look = looks([("", role)])[""]

    def thin(d: str) -> Markup:
        return element("path", d=d, fill="none", stroke=look.color, stroke_width=0.8, stroke_opacity=0.5)

    def drawn(subtitle: str, traces: Sequence[Trace], y_label: str) -> Markup:
        found = [*traces, median_trace(traces)]
        xs = [float(value) for at, _ in traces for value in at]
        x, y = _scales(xs, [value for _, best in found for value in best], _SIZES[columns])
        lines = [thin(_steps(trace, x, y)) for trace in traces]
        parts = [text(2, 14, subtitle, class_="strong"), axes(x, y, "evaluations", y_label), *lines]
        return Markup().join([*parts, look.line(_steps(found[-1], x, y, max(xs)))])

    label = "best macro-F1 so far"
    made = [drawn(*panel, "" if number % columns else label) for number, panel in enumerate(panels.items())]
    legend: dict[str, Callable[[float, float], Markup]] = {
        "a split": lambda x, y: thin(f"M{short(x - _ENTRY / 2)} {short(y)} h{short(_ENTRY)}"),
        "median of the splits": _sample(look),
    }
    return _grid(name, title, note, made, _SIZES[columns], columns, legend, 2)


def _steps(trace: Trace, x: Axis, y: Axis, end: float | None = None) -> str:
    """A line that stays at a score until it changes."""
    parts = [(x.place(float(at)), y.place(best)) for at, best in zip(*trace, strict=True)]
    found = f"M{short(parts[0][0])} {short(parts[0][1])}" + "".join(f" H{short(a)} V{short(b)}" for a, b in parts[1:])
    return found if end is None else f"{found} H{short(x.place(end))}"


@dataclass(frozen=True)
class Dot:
    """A method's figure: the mean over splits, the ends of a bar, both or none, and what the paper states."""

    label: str
    mean: float | None
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    role: Role = "baseline"

    @property
    def values(self) -> list[float]:
        """Everything that has a place."""
        return [value for value in (self.mean, self.low, self.high, self.paper) if value is not None and value == value]


def dots_against_paper(
    name: str, title: str, panels: Mapping[str, Sequence[Dot]], *, x_label: str, note: str = ""
) -> Picture:
    """A picture of figures next to the paper's; a panel per data set and a row per method."""
    # Rows have names, so only what is ours needs a color.
    roles: dict[Role, str] = {"ours": "ours", "printed": "ours as printed", "baseline": "others"}
    look = {role: looks([("", role)])[""] for role in roles} | {"baseline": Look("baseline", _MUTED, None)}
    every = [dot for dots in panels.values() for dot in dots]
    columns, names = min(len(panels), 3 if len(panels) != 4 else 2), 8.0 * max(len(dot.label) for dot in every) + 16
    height = 24.0 * max(map(len, panels.values())) + _TOP + _BOTTOM
    size = names + {1: 520.0, 2: 260.0, 3: 180.0}[columns], height

    def bar(x: float, to: float, y: float, color: str) -> Markup:
        return element("line", x1=short(x), x2=short(to), y1=short(y), y2=short(y), stroke=color, stroke_width=2.6,
                       stroke_opacity=0.5)  # fmt: skip

    def drawn(subtitle: str, dots: Sequence[Dot]) -> Markup:
        x = spanning([value for dot in dots for value in dot.values], names, size[0] - _RIGHT)
        bottom = 24.0 * len(dots) + 26
        found = [
            text(2, 14, subtitle, class_="strong"),
            text((x.start + x.end) / 2, bottom + 33, x_label, "middle", "what"),
        ]
        for at, said in x.marks(4):
            found += [line(at, 24, at, bottom, "grid"), text(at, bottom + 16, said, "middle")]
        for row, dot in enumerate(dots):
            y, own = 24.0 * row + 38, look[dot.role]
            kind = "strong" if dot.role != "baseline" else None
            found.append(text(names - 8, y + 4, dot.label, "end", kind))
            if dot.low is not None and dot.high is not None:
                found.append(bar(x.place(dot.low), x.place(dot.high), y, own.color))
            for value, mark in ((dot.mean, own.dot), (dot.paper, _diamond)):
                if value is not None and math.isfinite(value):
                    found.append(mark(x.place(value), y))
        return Markup().join(found)

    legend = {title: look[role].dot for role, title in roles.items() if any(dot.role == role for dot in every)}
    legend |= {"the paper": _diamond} if any(dot.paper is not None for dot in every) else {}
    if any(dot.low is not None for dot in every):
        legend["least to most over splits"] = lambda x, y: bar(x - _ENTRY / 2, x + _ENTRY / 2, y, _MUTED)
    made = [drawn(*panel) for panel in panels.items()]
    return _grid(name, title, note, made, size, columns, legend, 3 if columns == 1 else 5)


def confusion_grid(
    name: str, title: str, panels: Sequence[tuple[str, npt.ArrayLike, Sequence[str]]], note: str = ""
) -> Picture:
    """A picture of confusion matrices: counts in the cells, which are the darker, the larger their share of the row.

    A panel is a label, counts or means of counts of true classes in rows and decided ones in columns, and their names.
    """
    names = 8.0 * max(len(one) for _, _, classes in panels for one in classes) + 16
    cell, most = max(62.0, names), max(len(classes) for _, _, classes in panels)

    def drawn(label: str, counts: npt.ArrayLike, classes: Sequence[str]) -> Markup:
        matrix = np.asarray(counts, dtype=np.float64)
        shares, texts, end = row_shares(matrix), count_texts(matrix), _TOP + 40 * len(matrix)
        found = [text(2, 14, label, class_="strong"), text(2, 32, "true class", class_="what")]
        found.append(text(names + cell * len(matrix) / 2, end + 34, "decided class", "middle", "what"))
        for place, one in enumerate(classes):
            found.append(text(names - 8, _TOP + 40 * place + 24, one, "end"))
            found.append(text(names + cell * (place + 0.5), end + 16, one, "middle"))
        for (row, column), share in np.ndenumerate(shares):
            x, y = names + cell * column, _TOP + 40.0 * row
            found.append(
                element(
                    "rect",
                    x=short(x),
                    y=short(y),
                    width=short(cell - 2),
                    height=38,
                    fill=_COLORS["ours"][0],
                    fill_opacity=short(0.05 + 0.5 * share),
                )
            )
            found.append(text(x + cell / 2 - 1, y + 24, texts[row][column], "middle"))
        return Markup().join(found)

    width = max(names + cell * most, 8.5 * max(len(label) for label, _, _ in panels)) + 24
    size = width, _TOP + 40 * most + 54
    return _grid(name, title, note, [drawn(*panel) for panel in panels], size, min(3, len(panels)), {})


def row_shares(matrix: Array) -> Array:
    """Each count's share of its row; zero in rows without any."""
    totals = matrix.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0))


def count_texts(matrix: Array) -> list[list[str]]:
    """Counts as they are written: whole ones with commas, and with one decimal where any is a mean."""
    digits = 0 if np.all(matrix == np.round(matrix)) else 1
    return [[f"{count:,.{digits}f}" for count in row] for row in matrix]
