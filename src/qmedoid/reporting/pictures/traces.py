"""The course of searches: the best score so far by the number of evaluations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.reporting.document import Picture
from qmedoid.reporting.pictures.drawing import check_panels, draw, grid_of_axes, legend_below
from qmedoid.reporting.pictures.palette import Role, check_role, looks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    """The searches on the splits of one data set; a plain tuple will do."""

    subtitle: str
    traces: Sequence[Trace]


def trace_grid(
    name: str,
    title: str,
    panels: Sequence[TracePanel | tuple[str, Sequence[Trace]]],
    *,
    x_label: str = "evaluations",
    y_label: str = "best macro-F1 so far",
    role: Role = "ours",
    log_x: bool = False,
    note: str = "",
) -> Picture:
    """A picture of searches: a thin line per split, and their median; a panel per data set.

    A search that has ended keeps its score, so that the median is over all splits everywhere.

    Parameters
    ----------
    name, title, note : str
        Those of the picture.
    panels : sequence of (subtitle, traces)
    x_label, y_label : str
    role : {"ours", "printed", "baseline"}
        Whose searches they are.
    log_x : bool
        Whether the evaluations are on a logarithmic scale.
    """
    check_panels(panels)
    check_role(role)
    whole = [TracePanel(*panel) for panel in panels]
    for panel in whole:
        check_panels(panel.traces)
    color = looks([("", role)])[""].color
    columns = len(whole) if len(whole) <= 3 else 2

    def paint(figure: "Figure") -> None:
        handles: dict[str, Artist] = {}
        for number, (axes, panel) in enumerate(zip(grid_of_axes(figure, len(whole), columns), whole, strict=True)):
            handles |= _paint_panel(axes, panel, color, log_x=log_x)
            axes.set_xlabel(x_label)
            if number % columns == 0:
                axes.set_ylabel(y_label)
        legend_below(figure, handles, columns=2)

    width, height = {1: (6.6, 3.6), 2: (4.2, 3.1), 3: (3.0, 2.9)}[columns]
    return draw(name, title, note, (width * columns, height * -(-len(whole) // columns) + 0.3), paint)


def median_trace(traces: Sequence[Trace]) -> Trace:
    """The median over searches, from where all have begun, at every evaluation at which one of them changes."""
    begun = max(np.asarray(trace.evaluations)[0] for trace in traces)
    places = np.unique(np.concatenate([np.asarray(trace.evaluations, dtype=np.float64) for trace in traces]))
    places = places[places >= begun]
    return Trace(places, np.median([trace.at(places) for trace in traces], axis=0))


def _paint_panel(axes: "Axes", panel: TracePanel, color: str, *, log_x: bool) -> "dict[str, Artist]":
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
    if log_x:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter("{x:g}")
    axes.set_title(panel.subtitle)
    return handles
