"""A picture of the effect of a column: mean contributions of its values, and how far they spread."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from qmedoid.reporting.document import Picture
from qmedoid.reporting.drawing import MUTED, draw_panels, looks, require_plots

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_SPREAD = "10 % to 90 % of the rows"


def draw_effect(effect: Mapping[str, Any], ax: "Axes | None" = None) -> "Axes":
    """Draw an effect, as plain values, on axes, or on those of a new figure."""
    require_plots()
    if ax is None:
        from matplotlib import pyplot

        ax = pyplot.subplots(layout="constrained")[1]
    _paint(effect, ax)
    ax.set_title(_title(effect), loc="left")
    return ax


def effect_picture(effect: Mapping[str, Any]) -> Picture:
    """The same as a picture of its own."""
    height = 3.4 if _is_range(effect) else 1.2 + 0.28 * max(4, len(_shown(effect)))
    note = f"{effect['rows']:,} rows. Bars: {_SPREAD}."
    return draw_panels(
        "effect", _title(effect), note, 1, lambda axes, _: _paint(effect, axes), columns=1, panel_size=(6.6, height)
    )


def _title(effect: Mapping[str, Any]) -> str:
    return f"What {effect['column']!r} contributes toward {effect['toward']!r}"


def _is_range(effect: Mapping[str, Any]) -> bool:
    return effect["kind"] in ("number", "date")


def _shown(effect: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*effect["bins"], *([effect["missing"]] if effect["missing"] else [])]


def _paint(effect: Mapping[str, Any], axes: "Axes") -> "dict[str, Artist]":
    look = looks([("effect", "ours")])["effect"]
    against = "the other classes" if effect["against"] is None else repr(effect["against"])
    amount = f"{effect['unit']} of {effect['toward']!r} against {against}"
    if _is_range(effect):
        _paint_ranges(effect, axes, look.color)
        axes.set_xlabel(effect["column"])
        axes.set_ylabel(amount)
        axes.axhline(0.0, color=MUTED, linewidth=0.8, zorder=2)
    else:
        _paint_levels(effect, axes, look.color)
        axes.set_xlabel(amount)
        axes.axvline(0.0, color=MUTED, linewidth=0.8, zorder=2)
    return {}


def _paint_ranges(effect: Mapping[str, Any], axes: "Axes", color: str) -> None:
    """A step for each bin, from its smallest to its largest value; missing cells are a dashed line."""
    for one in effect["bins"]:
        low, high = ((np.datetime64(end) if isinstance(end, str) else end) for end in (one["low"], one["high"]))
        axes.fill_between([low, high], one["p10"], one["p90"], color=color, alpha=0.2, linewidth=3 * (low == high))
        axes.plot([low, high], [one["mean"]] * 2, color=color, linewidth=2.1, marker="|" if low != high else "o")
    missing = effect["missing"]
    if missing:
        words = f"missing ({missing['rows']:,} rows)"
        axes.axhline(missing["mean"], color=color, linestyle="--", linewidth=1.3, label=words)
        axes.legend()


def _paint_levels(effect: Mapping[str, Any], axes: "Axes", color: str) -> None:
    shown = _shown(effect)
    for place, one in enumerate(shown):
        axes.plot([one["p10"], one["p90"]], [place] * 2, color=color, alpha=0.3, linewidth=6, solid_capstyle="butt")
        axes.plot([one["mean"]], [place], color=color, marker="o", markersize=7)
    axes.set_yticks(range(len(shown)), [f"{one['value']} ({one['rows']:,})" for one in shown])
    axes.invert_yaxis()
