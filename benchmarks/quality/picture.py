"""Critical-difference pictures: average ranks of the methods on a line, and bars over those that are level."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.quality.figures import Figures, by_size
from benchmarks.quality.goals import LARGE, RANKED, SMALL
from benchmarks.quality.ours import OURS
from benchmarks.quality.ranks import MEASURES, Ranks, run_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OURS, _OTHERS = "#b03a2e", "#33475b"
_SHORT = {"HistGradientBoosting": "HistGB"}
_STEP = 0.28
"""Height of a line of names, where the line of ranks is 1 long."""
_MARGIN = 0.5
"""What is left for names on both sides of it."""


def draw_ranks(figures: Figures, path: Path) -> bool:
    """Draw a panel for each measure and range of sizes, as SVG; False where nothing can be drawn."""
    panels = [own for own in _panels(figures) if OURS in own[1].methods and len(own[1].places) > 1]
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        return False
    if not panels:
        return False
    columns = len(RANKED)
    rows = -(-len(panels) // columns)
    with mpl.rc_context({"svg.hashsalt": "ranks", "svg.fonttype": "none", "font.size": 8}):
        figure = Figure(figsize=(5.0 * columns, 2.6 * rows))
        figure.subplots_adjust(left=0.0, right=1.0, bottom=0.0, top=0.94, wspace=0.02, hspace=0.12)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis in axes:
            axis.set_axis_off()
        for axis, (title, ranks) in zip(axes, panels, strict=False):
            _panel(axis, title, ranks)
        figure.savefig(path, metadata={"Date": None})
    return True


def _panels(figures: Figures) -> Iterator[tuple[str, Ranks]]:
    sizes = by_size(place for place in figures.places if figures.of(place, OURS))
    for size in (SMALL, LARGE):
        places = sizes.get(size, [])
        for measure in RANKED if places else ():
            found = Ranks.of(figures, measure, places, run_at(figures, places))
            yield f"{MEASURES[measure]}, {size} rows, {len(found.places)} tables", found


def _panel(axis: "Axes", title: str, ranks: Ranks) -> None:
    """Names hang below the line of ranks, those of the better half to the left."""
    average = sorted(ranks.average.items(), key=lambda own: own[1])
    last = len(average)
    half = (last + 1) // 2
    axis.set_title(title, fontsize=9)
    axis.set_xlim(-_MARGIN, 1 + _MARGIN)
    axis.set_ylim(-_STEP * (half + 3.0), 0.8)

    def along(rank: float) -> float:
        return (rank - 1.0) / (last - 1.0)

    axis.plot([0, 1], [0, 0], color="black", lw=1)
    for tick in range(1, last + 1):
        axis.plot([along(tick)] * 2, [0, 0.06], color="black", lw=0.8)
        axis.text(along(tick), 0.1, str(tick), ha="center", va="bottom")
    for place, (name, rank) in enumerate(average):
        is_left = place < half
        y = -_STEP * ((place if is_left else last - 1 - place) + 2.5)
        end = -0.03 if is_left else 1.03
        color = _OURS if name == OURS else _OTHERS
        axis.plot([along(rank), along(rank), end], [0, y, y], color=color, lw=1.6 if name == OURS else 0.8)
        text = f"{name} {rank:.2f}"
        axis.text(
            end + (-0.02 if is_left else 0.02), y, text, ha="right" if is_left else "left", va="center", color=color
        )
    for line, (first, end) in enumerate(level([rank for _, rank in average], ranks.critical)):
        y = -_STEP * 0.4 * (line + 1)
        axis.plot([along(first) - 0.005, along(end) + 0.005], [y, y], color="black", lw=2.5, solid_capstyle="round")
    width = min(along(1.0 + ranks.critical), 1.0)
    axis.plot([0, width], [0.5, 0.5], color="black", lw=1.2)
    axis.text(0, 0.54, f"critical difference {ranks.critical:.2f}", ha="left", va="bottom")


def level(ranks: Sequence[float], critical: float) -> list[tuple[float, float]]:
    """Ends of the longest runs of rising average ranks that differ by less than the critical difference."""
    runs: list[tuple[float, float]] = []
    for place, first in enumerate(ranks):
        end = max(rank for rank in ranks[place:] if rank - first < critical)
        if end > first and (not runs or end > runs[-1][1]):
            runs.append((first, end))
    return runs
