"""Curves with bands, and the course of searches, in one panel or a grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ParameterError
from qmedoid.reporting.document import Picture
from qmedoid.reporting.drawing import MUTED, PAPER, Look, Role, check_panels, check_role, draw_panels, looks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Points that are drawn across a panel, by the number of panels in a row; more would only make the file larger.
_PLACES = {1: 150, 2: 120, 3: 100}


@dataclass(frozen=True)
class Curve:
    """A method's curve.

    Attributes
    ----------
    label : str
        Of the method; the same label looks the same in all panels.
    mean : array-like of shape (n_points,)
        NaN leaves a gap.
    low, high : array-like of shape (n_points,), optional
        Edges of the band around it; both or none.
    role : {"ours", "printed", "baseline"}
        Whose curve it is.
    """

    label: str
    mean: npt.ArrayLike
    low: npt.ArrayLike | None = None
    high: npt.ArrayLike | None = None
    role: Role = "baseline"

    def __post_init__(self) -> None:
        check_role(self.role)
        if (self.low is None) != (self.high is None):
            raise ParameterError(
                f"The band of curve {self.label!r} must have both edges. Give 'low' and 'high' or none."
            )


class Marker(NamedTuple):
    """A point that the paper states."""

    x: float
    y: float
    label: str


class CurvePanel(NamedTuple):
    """Curves over one x, such as those of a data set."""

    subtitle: str
    x: npt.ArrayLike
    curves: Sequence[Curve]
    marker: Marker | None = None


def curve_grid(
    name: str,
    title: str,
    panels: Sequence[CurvePanel],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    diagonal: bool = False,
    note: str = "",
) -> Picture:
    """A picture of panels of curves: the same label looks the same in all, and one legend is below them.

    Parameters
    ----------
    name, title, note : str
        Those of the picture.
    panels : sequence of CurvePanel
    log_x : bool
        Whether x is on a logarithmic scale; points at or below zero are left out.
    diagonal : bool
        Whether to draw the line of chance of a ROC curve.
    """
    check_panels(panels)
    look = looks((curve.label, curve.role) for panel in panels for curve in panel.curves)
    columns = len(panels) if len(panels) <= 3 else 2
    entries_per_line = 3 if columns == 1 else 4

    def paint(axes: "Axes", number: int) -> "dict[str, Artist]":
        return _paint_panel(axes, panels[number], look, _PLACES[columns], log_x=log_x, diagonal=diagonal)

    return draw_panels(
        name,
        title,
        note,
        len(panels),
        paint,
        columns=columns,
        panel_size={1: (6.6, 3.9), 2: (4.2, 3.2), 3: (3.0, 2.9)}[columns],
        legend_size=(entries_per_line, 0.2 * -(-(len(look) + 1) // entries_per_line) + 0.1),
        x_label=x_label,
        y_label=y_label,
    )


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


def _paint_panel(
    axes: "Axes", panel: CurvePanel, look: dict[str, Look], places: int, *, log_x: bool, diagonal: bool
) -> "dict[str, Artist]":
    """Draw a panel, and give what its legend needs."""
    x = np.asarray(panel.x, dtype=np.float64)
    kept = thinned(x, places, log_x=log_x)
    handles: dict[str, Artist] = {}
    if log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    if diagonal:
        axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=(0, (2, 2)), zorder=2)
    for curve in panel.curves:
        style = look[curve.label].line
        (handles[curve.label],) = axes.plot(x[kept], _values(curve.mean, x, curve.label)[kept], **style)
        if curve.low is not None and curve.high is not None:
            low, high = _values(curve.low, x, curve.label), _values(curve.high, x, curve.label)
            # Edges, because two bands over each other have a color of neither.
            inside, edge = (style["color"], 0.12), (style["color"], 0.5)
            axes.fill_between(x[kept], low[kept], high[kept], facecolor=inside, edgecolor=edge, linewidth=0.5, zorder=2)
    if panel.marker is not None:
        x_paper, y_paper, label = panel.marker
        (handles[label],) = axes.plot([x_paper], [y_paper], clip_on=False, **PAPER)
    axes.set_title(panel.subtitle)
    _end_at_zero_and_one(axes)
    return handles


def _values(values: npt.ArrayLike, x: Array, label: str) -> Array:
    found = np.asarray(values, dtype=np.float64)
    if found.shape != x.shape or x.ndim != 1:
        raise ParameterError(
            f"Curve {label!r} must have a value per point of x, which has shape {x.shape}. Got shape {found.shape}."
        )
    return found


def _end_at_zero_and_one(axes: "Axes") -> None:
    """Shares end at zero and one: an axis that shows nothing beyond them reaches just far enough to show the line."""
    low, high = axes.get_ylim()
    bounds = axes.dataLim
    if bounds.y0 >= 0 and bounds.y1 <= 1:
        axes.set_ylim(max(low, -0.02), min(high, 1.02))


@dataclass(frozen=True)
class Trace:
    """One search.

    Attributes
    ----------
    evaluations : array-like of shape (n_points,)
        Rising; those at which the best score changed are enough, with the last one.
    best : array-like of shape (n_points,)
        The best score up to each.
    """

    evaluations: npt.ArrayLike
    best: npt.ArrayLike

    def __post_init__(self) -> None:
        shapes = np.shape(self.evaluations), np.shape(self.best)
        if shapes[0] != shapes[1] or len(shapes[0]) != 1 or shapes[0] == (0,):
            raise ParameterError(
                "A trace must have at least one evaluation and a score for each. "
                f"Got evaluations of shape {shapes[0]} and scores of shape {shapes[1]}."
            )
        if np.any(np.diff(np.asarray(self.evaluations)) <= 0):
            raise ParameterError("The evaluations of a trace must rise. Sort them, and give each once.")

    def at(self, evaluations: Array) -> Array:
        """The best score at any number of evaluations; NaN before the first."""
        place = np.searchsorted(np.asarray(self.evaluations), evaluations, side="right") - 1
        return np.where(place < 0, np.nan, np.asarray(self.best, dtype=np.float64)[place])


class TracePanel(NamedTuple):
    """The searches on the splits of one data set."""

    subtitle: str
    traces: Sequence[Trace]


def trace_grid(name: str, title: str, panels: Sequence[TracePanel], *, role: Role = "ours", note: str = "") -> Picture:
    """A picture of searches: a thin line per split, and their median; a panel per data set.

    A search that has ended keeps its score, so that the median is over all splits everywhere.
    """
    check_panels(panels)
    check_role(role)
    for panel in panels:
        check_panels(panel.traces)
    color = looks([("", role)])[""].color
    columns = len(panels) if len(panels) <= 3 else 2
    return draw_panels(
        name,
        title,
        note,
        len(panels),
        lambda axes, number: _paint_traces(axes, panels[number], color),
        columns=columns,
        panel_size={1: (6.6, 3.6), 2: (4.2, 3.1), 3: (3.0, 2.9)}[columns],
        legend_size=(2, 0.3),
        x_label="evaluations",
        y_label="best macro-F1 so far",
    )


def median_trace(traces: Sequence[Trace]) -> Trace:
    """The median over searches, from where all have begun, at every evaluation at which one of them changes."""
    begun = max(np.asarray(trace.evaluations)[0] for trace in traces)
    places = np.unique(np.concatenate([np.asarray(trace.evaluations, dtype=np.float64) for trace in traces]))
    places = places[places >= begun]
    return Trace(places, np.median([trace.at(places) for trace in traces], axis=0))


def _paint_traces(axes: "Axes", panel: TracePanel, color: str) -> "dict[str, Artist]":
    handles: dict[str, Artist] = {}
    end = max(np.asarray(trace.evaluations)[-1] for trace in panel.traces)
    for trace in panel.traces:
        x, y = np.asarray(trace.evaluations), np.asarray(trace.best)
        (handles["a split"],) = axes.plot(
            x, y, drawstyle="steps-post", color=color, alpha=0.35, linewidth=0.7, zorder=3
        )
    median = median_trace(panel.traces)
    x, y = np.append(median.evaluations, end), np.append(median.best, np.asarray(median.best)[-1])
    (handles["median of the splits"],) = axes.plot(x, y, drawstyle="steps-post", color=color, linewidth=2.1, zorder=4)
    axes.set_title(panel.subtitle)
    return handles
