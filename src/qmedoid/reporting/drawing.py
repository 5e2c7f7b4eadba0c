"""What all pictures share: colors and lines by role, and the way from a painted figure to its bytes."""

import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from qmedoid.exceptions import MissingExtraError, ParameterError
from qmedoid.reporting.document import Picture

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Role = Literal["ours", "printed", "baseline"]
"""Whose figures: ours, ours as the paper prints the method, or those of another method."""
PAPER: dict[str, Any] = {"marker": "D", "color": "black", "markersize": 5, "linestyle": "none", "zorder": 6}
"""What the paper states is a black diamond everywhere."""
MUTED = "#666666"
"""For what is not compared by color."""
# After Okabe and Ito. The strong colors are ours alone; a second method of ours is a darker, a third a lighter shade.
_COLORS: dict[Role, tuple[str, ...]] = {
    "ours": ("#0072B2", "#003F66", "#4FA3D9"),
    "printed": ("#D55E00", "#8A3C00", "#F0945A"),
    "baseline": ("#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A7A7A", "#7B5EA7", "#A6761D"),
}
_DASHES: dict[Role, tuple[Any, ...]] = {
    "ours": ("-", (0, (1, 1))),
    "printed": ((0, (5, 1.5)), (0, (3, 1, 1, 1))),
    "baseline": ("-", (0, (4, 2)), (0, (6, 2, 1, 2)), (0, (1, 1.5)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1))),
}
_DOTS: dict[Role, str] = {"ours": "o", "printed": "s", "baseline": "o"}


@dataclass(frozen=True)
class Look:
    """How one method is drawn, in all panels of a picture."""

    role: Role
    color: str
    dashes: Any

    @property
    def line(self) -> dict[str, Any]:
        """Arguments of a line; ours are wider and lie above the others."""
        is_other = self.role == "baseline"
        return {
            "color": self.color,
            "linestyle": self.dashes,
            "linewidth": 1.3 if is_other else 2.1,
            "zorder": 3 if is_other else 4,
        }

    @property
    def dot(self) -> dict[str, Any]:
        """Arguments of a dot: larger than a diamond, so that it shows below one."""
        return {"color": self.color, "marker": _DOTS[self.role], "markersize": 7, "linestyle": "none", "zorder": 5}


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


def check_role(role: str) -> None:
    """Raise where there is no such role."""
    if role not in get_args(Role):
        raise ParameterError(f"The 'role' parameter must be one of {', '.join(get_args(Role))}. Got {role!r} instead.")


_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#666666",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.titlesize": 11,
    "figure.titleweight": "bold",
    # A dollar sign in a name of a class is one.
    "text.parse_math": False,
    # Text as outlines: a page looks the same whatever fonts its reader has.
    "svg.fonttype": "path",
    "svg.hashsalt": "qmedoid",
}
_DPI = 150
_TITLE_HEIGHT = 0.35


def require_plots() -> None:
    """Raise where pictures cannot be drawn: to ask before long work.

    Raises
    ------
    MissingExtraError
        Matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("Matplotlib is not installed. Get it with: pip install 'qmedoid[plots]'") from error


def draw_panels(
    name: str,
    title: str,
    note: str,
    n_panels: int,
    paint: "Callable[[Axes, int], dict[str, Artist]]",
    *,
    columns: int,
    panel_size: tuple[float, float],
    legend_size: tuple[int, float] = (1, 0.1),
    x_label: str = "",
    y_label: str = "",
) -> Picture:
    """A picture of panels in rows, with one legend below them, where it covers nothing.

    `paint` draws a panel, given by its number, and returns what the legend needs. A row has at most `columns` panels
    of `panel_size`, width and height in inches; `legend_size` is the maximum number of columns and the height. All
    panels have the x label, the first in a row the y label. The page writes the title above its SVG; the PNG travels
    alone, and bears it.
    """
    require_plots()
    import matplotlib.style
    from matplotlib.figure import Figure

    rows = math.ceil(n_panels / columns)
    width, height = panel_size[0] * columns, panel_size[1] * rows + legend_size[1]
    # Our settings over Matplotlib's own, not over those of the user, whose pictures these are not.
    with matplotlib.style.context("default"), matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        handles: dict[str, Artist] = {}
        for number, axes in enumerate(grid[:n_panels]):
            handles |= paint(axes, number)
            if x_label:
                axes.set_xlabel(x_label)
            if y_label and number % columns == 0:
                axes.set_ylabel(y_label)
        for unused in grid[n_panels:]:
            unused.remove()
        if handles:
            ncols = min(legend_size[0], len(handles))
            figure.legend(list(handles.values()), list(handles), loc="outside lower left", ncols=ncols)
        svg = _saved(figure, "svg", {"Date": None, "Creator": None, "Title": title})
        figure.set_size_inches(width, height + _TITLE_HEIGHT)
        figure.suptitle(title, x=0.01, ha="left", wrap=True)
        png = _saved(figure, "png", {"Software": None})
    return Picture(name, title, svg, png, note)


def check_panels(panels: Sequence[object]) -> None:
    """Raise where there is nothing to draw."""
    if not panels:
        raise ParameterError("The 'panels' parameter must hold at least one panel. Got none. Leave the picture out.")


def _saved(figure: "Figure", format_: str, metadata: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format=format_, dpi=_DPI, metadata=metadata)
    return out.getvalue()
