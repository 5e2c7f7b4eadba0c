"""Effects and decisions drawn with Matplotlib, on axes that the caller gives, or on those of a new figure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from qmedoid.exceptions import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_RAISES, _LOWERS, _LINE, _MUTED = "#b8460e", "#1f6fb5", "#0072B2", "#666666"


def _axes(ax: "Axes | None", height: float) -> "Axes":
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise MissingExtraError("Matplotlib is not installed. Get it with: pip install 'qmedoid[plots]'") from error
    return pyplot.subplots(figsize=(7.0, height), layout="constrained")[1] if ax is None else ax


def draw_waterfall(
    title: str, bars: Sequence[tuple[str, float, float, str]], margin: float, ax: "Axes | None" = None
) -> "Axes":
    """Draw what a decision is made of: bars (label, start, end, printed value), and the margin."""
    ax = _axes(ax, 1.2 + 0.3 * (len(bars) + 1))
    for place, (_, start, end, text) in enumerate(bars):
        ax.barh(place, end - start, left=start, color=_RAISES if end >= start else _LOWERS)
        ax.annotate(text, (max(start, end), place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    ax.barh(len(bars), margin, fill=False, linewidth=1.2)
    ax.axvline(0.0, color=_MUTED, linestyle=":", linewidth=1)
    ax.set_yticks(range(len(bars) + 1), [*(label for label, *_ in bars), "margin"])
    ax.invert_yaxis()
    ax.set_xlabel("log-odds")
    ax.set_title(title, loc="left", fontsize=10)
    ax.margins(x=0.12)
    return ax


def draw_effect(effect: Mapping[str, Any], ax: "Axes | None" = None) -> "Axes":
    """Draw an effect, as plain values: mean contributions of its values, and how far they spread."""
    ax = _axes(ax, 4.0)
    against = "the other classes" if effect["against"] is None else repr(effect["against"])
    amount = f"{effect['unit']} of {effect['toward']!r} against {against}"
    if effect["kind"] in ("number", "date"):
        _draw_ranges(effect, ax)
        ax.set(xlabel=effect["column"], ylabel=amount)
        ax.axhline(0.0, color=_MUTED, linewidth=0.8, zorder=2)
    else:
        shown = [*effect["bins"], *([effect["missing"]] if effect["missing"] else [])]
        for place, one in enumerate(shown):
            color = _RAISES if one["mean"] >= 0 else _LOWERS
            ax.plot([one["p10"], one["p90"]], [place] * 2, color=color, alpha=0.3, linewidth=6, solid_capstyle="butt")
            ax.plot([one["mean"]], [place], color=color, marker="o", markersize=7)
        ax.set_yticks(range(len(shown)), [f"{one['value']} ({one['rows']:,})" for one in shown])
        ax.invert_yaxis()
        ax.set_xlabel(amount)
        ax.axvline(0.0, color=_MUTED, linewidth=0.8, zorder=2)
    ax.set_title(f"What {effect['column']!r} contributes toward {effect['toward']!r}", loc="left")
    return ax


def _draw_ranges(effect: Mapping[str, Any], ax: "Axes") -> None:
    """A step for each bin, from its smallest to its largest value; missing cells are a dashed line."""
    for one in effect["bins"]:
        low, high = ((np.datetime64(end) if isinstance(end, str) else end) for end in (one["low"], one["high"]))
        ax.fill_between([low, high], one["p10"], one["p90"], color=_LINE, alpha=0.2, linewidth=3 * (low == high))
        ax.plot([low, high], [one["mean"]] * 2, color=_LINE, linewidth=2.1, marker="|" if low != high else "o")
    if missing := effect["missing"]:
        words = f"missing ({missing['rows']:,} rows)"
        ax.axhline(missing["mean"], color=_LINE, linestyle="--", linewidth=1.3, label=words)
        ax.legend()
