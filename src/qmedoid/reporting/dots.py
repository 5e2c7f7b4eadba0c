"""Figures against the paper's: a dot and a bar per method, and a black diamond for what the paper states."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from qmedoid.exceptions import ParameterError
from qmedoid.reporting.document import Picture
from qmedoid.reporting.drawing import MUTED, PAPER, Look, Role, check_panels, check_role, draw_panels, looks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_ROLES: dict[Role, str] = {"ours": "ours", "printed": "ours as printed", "baseline": "others"}
# Of a picture in inches, by the number of panels in a row.
_WIDTHS = {1: 6.6, 2: 8.6, 3: 9.2}


@dataclass(frozen=True)
class Dot:
    """A method's figure.

    Attributes
    ----------
    label : str
        Of the method.
    mean : float or None
        Over splits; None where only the paper has a figure.
    low, high : float or None
        Ends of the bar, such as least and most over splits; both or none.
    paper : float or None
        What the paper states.
    role : {"ours", "printed", "baseline"}
    """

    label: str
    mean: float | None
    low: float | None = None
    high: float | None = None
    paper: float | None = None
    role: Role = "baseline"

    def __post_init__(self) -> None:
        check_role(self.role)
        if (self.low is None) != (self.high is None):
            raise ParameterError(f"The bar of {self.label!r} must have both ends. Give 'low' and 'high' or none.")


class DotPanel(NamedTuple):
    """The methods on one data set, from top to bottom."""

    subtitle: str
    dots: Sequence[Dot]


def dots_against_paper(name: str, title: str, panels: Sequence[DotPanel], *, x_label: str, note: str = "") -> Picture:
    """A picture of figures next to the paper's; a panel per data set and a row per method."""
    check_panels(panels)
    # Rows have names, so only what is ours needs a color.
    look = {role: looks([("", role)])[""] for role in _ROLES} | {"baseline": Look("baseline", MUTED, "-")}
    is_named_once = len({tuple(dot.label for dot in panel.dots) for panel in panels}) == 1
    columns = min(len(panels), 3 if is_named_once and len(panels) != 4 else 2)

    def paint(axes: "Axes", number: int) -> "dict[str, Artist]":
        _paint_panel(axes, panels[number], look)
        if is_named_once and number % columns:
            axes.set_yticklabels([])
        return _legend([dot for panel in panels for dot in panel.dots], look)

    most = max(len(panel.dots) for panel in panels)
    return draw_panels(
        name,
        title,
        note,
        len(panels),
        paint,
        columns=columns,
        panel_size=(_WIDTHS[columns] / columns, 0.26 * most + 0.9),
        legend_size=(5 if columns > 1 else 3, 0.5),
        x_label=x_label,
    )


def _paint_panel(axes: "Axes", panel: DotPanel, look: dict[Role, Look]) -> None:
    from matplotlib.ticker import MaxNLocator

    for row, dot in enumerate(panel.dots):
        style = look[dot.role]
        if dot.low is not None and dot.high is not None:
            axes.plot([dot.low, dot.high], [row, row], color=style.color, linewidth=2.2, alpha=0.45, zorder=3)
        if dot.mean is not None and math.isfinite(dot.mean):
            axes.plot([dot.mean], [row], **style.dot)
        if dot.paper is not None and math.isfinite(dot.paper):
            axes.plot([dot.paper], [row], **PAPER)
    axes.set_yticks(range(len(panel.dots)), [dot.label for dot in panel.dots])
    for text, dot in zip(axes.get_yticklabels(), panel.dots, strict=True):
        if dot.role != "baseline":
            text.set_color(look[dot.role].color)
            text.set_fontweight("bold")
    axes.set_ylim(len(panel.dots) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.spines["left"].set_visible(False)
    axes.set_title(panel.subtitle)


def _legend(dots: Sequence[Dot], look: dict[Role, Look]) -> "dict[str, Artist]":
    from matplotlib.lines import Line2D

    handles: dict[str, Artist] = {}
    for role, label in _ROLES.items():
        if any(dot.role == role for dot in dots):
            handles[label] = Line2D([], [], **look[role].dot)
    if any(dot.paper is not None for dot in dots):
        handles["the paper"] = Line2D([], [], **PAPER)
    if any(dot.low is not None for dot in dots):
        handles["least to most over splits"] = Line2D([], [], color=MUTED, linewidth=2.2, alpha=0.45)
    return handles
