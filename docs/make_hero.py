"""Draws the picture of the first page, ``docs/pictures/hero.png``: ``python docs/make_hero.py`` (extra ``plots``).

The default model, fitted on three quarters of the heart data: every patient of the other quarter as a square, and the
decision about one of them as a sum of what boosted trees and distances say of each column.
"""

from collections import Counter
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from pyarrow import csv
from sklearn.model_selection import train_test_split

from qmedoid import MedoidClassifier
from qmedoid.datasets import locate

PICTURE = Path(__file__).parent / "pictures" / "hero.png"
RAISES, LOWERS, INK, GREY = "#b8460e", "#1f6fb5", "#15202e", "#6b7480"
LIGHT = {RAISES: "#eeb089", LOWERS: "#9cc4ea"}
STYLE = {
    "font.family": "DejaVu Sans", "font.size": 11, "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK,
    "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 12.5,
    "axes.titlelocation": "left", "axes.titleweight": "bold", "legend.frameon": False,
}  # fmt: skip
ROW = 9
"""The patient whose decision is shown, counted from 0 among those that the fit has not seen."""


def main() -> None:
    """Fit, explain and draw."""
    with locate("heart").open("rb") as file:
        table = csv.read_csv(file)
    X, y = table.drop_columns("HeartDisease"), table["HeartDisease"].to_numpy()
    known, new = train_test_split(np.arange(len(y)), stratify=y, random_state=0)
    model = MedoidClassifier(random_state=0).fit(X.take(known), y[known])
    probability = model.predict_proba(X.take(new))[:, 1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(11, 4.9), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[1.0, 1.25])
        draw_patients(left, probability, y[new])
        draw_decision(right, model.explain(X.take(new), row=ROW), probability[ROW])
        figure.savefig(PICTURE, dpi=110, metadata={"Software": None}, facecolor="white")


def draw_patients(axes: Axes, probability: np.ndarray, truth: np.ndarray) -> None:
    """A square for each patient, stacked by probability, colored by what is true."""
    bins = np.minimum((probability * 20).astype(int), 19)
    height: Counter[int] = Counter()
    for place in np.lexsort((probability, truth)):
        color = RAISES if truth[place] else LOWERS
        at = int(bins[place])
        axes.add_patch(Rectangle((at / 20 + 0.004, height[at]), 0.042, 0.82, color=color, linewidth=0))
        height[at] += 1
    top = max(height.values())
    axes.axvline(0.5, ymax=0.8, color=INK, lw=1, ls="--")
    axes.set(xlim=(0, 1), ylim=(0, top * 1.28), xlabel="probability of heart disease")
    axes.xaxis.set_major_formatter(mpl.ticker.PercentFormatter(1.0))
    axes.spines["left"].set_visible(False)
    axes.set_yticks([])
    right = ((probability > 0.5) == (truth == 1)).sum()
    axes.set_title(f"{len(truth)} patients it has not seen: {right} decided rightly")
    handles = [Patch(color=RAISES, label="has heart disease"), Patch(color=LOWERS, label="has none")]
    axes.legend(handles=handles, loc="upper center", fontsize=10, ncols=2)


def draw_decision(axes: Axes, why: Any, probability: float) -> None:
    """One bar for each column, toward heart disease to the right: trees dark, distances light."""
    toward = 1 if (why["margin"] > 0) == (why["prediction"] == 1) else -1
    trees: Counter[str] = Counter()
    for group in why["groups"]:
        if group.get("name") == "comparisons":
            trees[group["columns"][0].split("=")[0]] += toward * group["contribution"]
    columns = [(one["name"], one["cell"], toward * one["contribution"]) for one in why["columns"]]
    columns.sort(key=lambda one: -abs(one[2]))
    start = toward * sum(why["terms"].values())
    for line, (name, _, total) in enumerate(columns):
        ends = {1: 0.0, -1: 0.0}
        for part, is_tree in ((trees[name], True), (total - trees[name], False)):
            side, color = (1, RAISES) if part > 0 else (-1, LOWERS)
            axes.barh(line, part, left=ends[side], height=0.62, color=color if is_tree else LIGHT[color])
            ends[side] += part
        axes.text(ends[1] + 0.05, line, f"{total:+.2f}".replace("-", "−"), va="center", fontsize=9.5, color=INK)
    axes.axvline(0, color=INK, lw=0.8)
    axes.set_yticks(range(len(columns)), [f"{name} is {cell}" for name, cell, _ in columns], fontsize=10)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.spines["left"].set_visible(False)
    low, high = axes.get_xlim()
    axes.set_xlim(low - 0.1, high + 0.45)
    margin = toward * why["margin"]
    axes.set_title(f"One of them: heart disease with {probability:.0%}")
    sums = f"start {start:+.2f}, columns {margin - start:+.2f}, sum {margin:+.2f}".replace("-", "−")
    axes.set_xlabel(f"log-odds: {sums}")
    handles = [
        Patch(color=RAISES, label="raises, by trees"), Patch(color=LIGHT[RAISES], label="raises, by distances"),
        Patch(color=LOWERS, label="lowers, by trees"), Patch(color=LIGHT[LOWERS], label="lowers, by distances"),
    ]  # fmt: skip
    axes.legend(handles=handles, loc="lower right", fontsize=9.5, borderaxespad=0)


if __name__ == "__main__":
    main()
