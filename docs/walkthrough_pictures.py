"""Pictures of ``docs/walkthrough.md``, drawn from what ``make_walkthrough.py`` computes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

if TYPE_CHECKING:
    from make_walkthrough import Walk

# Okabe and Ito's palette: distinct with every kind of color vision, and by lightness in print.
NO, YES, MARK, GREY, LIGHT = "#0072B2", "#E69F00", "#D55E00", "#555555", "#BBBBBB"
SIZES = ["#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#E69F00", "#D55E00"]
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "axes.titlelocation": "left",
    "legend.frameon": False,
}
DPI = 110


def draw_all(walk: "Walk", folder: Path) -> None:
    """Write every picture into a folder."""
    single: dict[str, tuple[Callable[[Axes, Walk], None], tuple[float, float]]] = {
        "correlation": (correlation_picture, (7.6, 6.6)),
        "search": (search_picture, (8.2, 4.4)),
        "contributions": (contributions_picture, (7.2, 5.6)),
        "distances": (distances_picture, (6.6, 5.8)),
        "alpha": (alpha_picture, (7.2, 3.8)),
    }
    folder.mkdir(exist_ok=True)
    with mpl.rc_context(STYLE):
        for name, (draw, size) in single.items():
            figure = Figure(figsize=size, layout="constrained")
            draw(figure.subplots(), walk)
            save(figure, folder / f"{name}.png")


def save(figure: Figure, path: Path) -> None:
    """A PNG without date or program name, so that equal numbers make equal files."""
    figure.savefig(path, dpi=DPI, metadata={"Software": None}, facecolor="white")


def correlation_picture(axes: Axes, walk: "Walk") -> None:
    """Correlations of the columns, the group of the worked anchor first and framed."""
    groups = walk.fitted.groups_
    members = groups.members[walk.worked_anchor]
    order = [*members, *(a for a in groups.anchors if a not in members)]
    image = axes.imshow(groups.correlation[np.ix_(order, order)], cmap="PuOr_r", vmin=-1, vmax=1)
    labels = [walk.names[f] for f in order]
    axes.set_xticks(range(len(order)), labels, rotation=60, ha="right", rotation_mode="anchor", fontsize=9)
    axes.set_yticks(range(len(order)), labels, fontsize=9)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0)
    axes.add_patch(Rectangle((-0.5, -0.5), len(members), 1, fill=False, edgecolor="black", linewidth=2.5))
    axes.add_patch(Rectangle((-0.5, -0.5), len(members), len(members), fill=False, edgecolor="black", linestyle="--"))
    axes.set_title(f"Group of {walk.names[members[0]]}; heavy frame: its weights ρ")
    axes.figure.colorbar(image, ax=axes, shrink=0.8, label="correlation on the fitting rows")


def search_picture(axes: Axes, walk: "Walk") -> None:
    """Validation macro-F1 of every configuration in the order they were scored; steps taken are joined."""
    trace = walk.fitted.search_trace_
    scores = np.array([step.score for step in trace])
    sizes = np.array([step.size for step in trace])
    taken = np.array([step.accepted for step in trace])
    for size, color in zip(np.unique(sizes), SIZES, strict=False):
        own = np.flatnonzero(sizes == size)
        axes.plot(own, scores[own], ".", markersize=3, color=color, alpha=0.45)
        steps = own[taken[own]]
        path = np.append(steps, own[-1])
        axes.plot(path, np.append(scores[steps], scores[steps].max()), drawstyle="steps-post", color="black", lw=1.2)
        axes.plot(steps, scores[steps], "o", color=color, markeredgecolor="black", markersize=6)
        axes.annotate(
            f"k={size}", (own.mean(), 1.0), xycoords=("data", "axes fraction"), ha="center", va="top", fontsize=11
        )
        if own[0] > 0:
            axes.axvline(own[0] - 0.5, color=LIGHT, lw=0.8)
    low = min(np.quantile(scores, 0.005), scores[taken].min())
    axes.set_ylim(low - 0.003, scores.max() + 0.012)
    axes.set_xlim(-len(trace) * 0.01, len(trace) * 1.01)
    axes.set_xlabel("configurations scored")
    axes.set_ylabel("macro-F1 on held-out rows")
    handles = [
        Line2D([], [], marker="o", color="black", markerfacecolor="white", lw=1.2, label="step taken"),
        Line2D([], [], marker=".", color=GREY, lw=0, label="scored"),
    ]
    axes.legend(handles=handles, loc="lower right", fontsize=10, frameon=True, facecolor="white", edgecolor="none")


def contributions_picture(axes: Axes, walk: "Walk") -> None:
    """What each anchor adds to the distance part of the margin."""
    order = np.argsort(walk.contributions, kind="stable")
    terms = walk.contributions[order]
    names = [walk.names[walk.fitted.configuration_[j][0]] for j in order]
    axes.barh(range(len(terms)), terms, color=[YES if term > 0 else NO for term in terms], height=0.72)
    axes.axvline(0, color="black", lw=0.8)
    axes.set_yticks(range(len(terms)), names, fontsize=9.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(-0.6, len(terms) - 0.4)
    total = f"{walk.contributions.sum():+.3f}".replace("-", "−")
    axes.set_title(f"Why: terms of the anchors, sum {total}")
    axes.set_xlabel("term in (D₀ − D₁)/(D₀ + D₁)")
    handles = [Patch(color=YES, label="nearer to “yes”"), Patch(color=NO, label="nearer to “no”")]
    axes.legend(handles=handles, loc="lower right", fontsize=10)


def distances_picture(axes: Axes, walk: "Walk") -> None:
    """Every test record by its distances to the two medoids."""
    X, y = walk.data.X[walk.split.test], walk.data.y[walk.split.test]
    distance = walk.fitted.channels(X).distance
    right = walk.fitted.predict(X) == y
    for label, color, marker in ((0, NO, "o"), (1, YES, "^")):
        for ok in (True, False):
            own = (y == label) & (right == ok)
            face = color if ok else "none"
            axes.scatter(
                *distance[own].T, s=26, marker=marker, facecolor=face, edgecolor=color, linewidth=1.0, alpha=0.85
            )
    low, (right_end, top) = distance.min() * 0.92, distance.max(axis=0)
    w = walk.fitted.class_multipliers_
    line = np.array([low, right_end * 1.04])
    axes.plot(line, line * w[0] / w[1], color=GREY, lw=1.2, ls="--", zorder=0)
    axes.set(xlim=line, ylim=(low, top * 1.25), aspect="equal")  # the legend stands above the points
    here = walk.measured.distance[0]
    axes.plot(*here, "o", markersize=15, markerfacecolor="none", markeredgecolor=MARK, markeredgewidth=2.2)
    axes.annotate(
        "the record", here, xytext=(0.34, 0.14), textcoords="axes fraction", ha="center", color=MARK,
        fontsize=12, weight="bold", arrowprops={"arrowstyle": "-", "color": MARK, "shrinkB": 9},
    )  # fmt: skip
    axes.set_title("Test records by distance to two real patients")
    axes.set_xlabel("D₀, distance to the medoid of “no”")
    axes.set_ylabel("D₁, distance to the medoid of “yes”")
    handles = [
        Line2D([], [], marker="o", lw=0, color=NO, label="no disease"),
        Line2D([], [], marker="^", lw=0, color=YES, label="disease"),
        Line2D([], [], marker="o", lw=0, markerfacecolor="none", color=GREY, label="hollow: decided wrongly"),
        Line2D([], [], color=GREY, ls="--", label="equally far"),
    ]
    axes.legend(handles=handles, loc="upper left", fontsize=10, frameon=True, framealpha=0.9, edgecolor="none")


def alpha_picture(axes: Axes, walk: "Walk") -> None:
    """Held-out macro-F1 along the share of the distance."""
    sweep = walk.fitted.alpha_sweep_
    axes.plot(sweep.grid, sweep.scores, "o-", color=NO, markersize=5)
    axes.plot(sweep.value, sweep.score, "o", markersize=13, markerfacecolor="none", markeredgecolor=MARK, mew=2.2)
    axes.annotate(
        f"α = {sweep.value:g}", (sweep.value, sweep.score), xytext=(0, 13), textcoords="offset points", ha="center",
        color=MARK, weight="bold",
    )  # fmt: skip
    span = np.ptp(sweep.scores)
    axes.set_ylim(sweep.scores.min() - 0.1 * span, sweep.score + 0.3 * span)
    axes.set_xlabel("α: 0 is the angle alone, 1 the distance alone")
    axes.set_ylabel("macro-F1 on held-out rows")
