"""Contributions to one decision, drawn with Matplotlib: one bar each, from 0 to the margin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmedoid.reporting.drawing import MUTED, require_plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FOR, _AGAINST = "#0072B2", "#D55E00"


def draw_waterfall(
    title: str, bars: Sequence[tuple[str, float, float, str]], margin: float, ax: "Axes | None" = None
) -> "Axes":
    """Draw bars (label, start, end, printed value) and the margin on axes, or on those of a new figure."""
    require_plots()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(figsize=(7.0, 1.2 + 0.3 * (len(bars) + 1)), layout="constrained")[1]
    for place, (_, start, end, text) in enumerate(bars):
        is_for = end >= start
        ax.barh(place, end - start, left=start, color=_FOR if is_for else _AGAINST, hatch="" if is_for else "//")
        ax.annotate(text, (max(start, end), place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    ax.barh(len(bars), margin, fill=False, linewidth=1.2)
    ax.axvline(0.0, color=MUTED, linestyle=":", linewidth=1)
    ax.set_yticks(range(len(bars) + 1), [*(label for label, *_ in bars), "margin"])
    ax.invert_yaxis()
    ax.set_xlabel("log-odds")
    ax.set_title(title, loc="left", fontsize=10)
    ax.margins(x=0.12)
    return ax
