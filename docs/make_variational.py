"""Makes the numbers and pictures of ``docs/variational.md``: the credit-card sample from deltas to decisions.

``python docs/make_variational.py`` writes the table between the markers of the page, and the pictures.
``python docs/make_variational.py --check`` writes nothing and fails when the page differs from what would be written.
"""

import argparse
import csv
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the studies lie beside the documentation

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from benchmarks.datasets import load_creditcard_sample
from marked_sections import Row, number, table, write_or_check
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from sklearn.model_selection import train_test_split
from walkthrough_pictures import GREY, MARK, NO, STYLE, YES, save

from qmedoid import DeltaFeatures, VariationalClassifier
from qmedoid.methods.variational.ansatz import AngleMap, Ansatz
from qmedoid.methods.variational.model import Network
from qmedoid.methods.variational.readout import ParityReadout

Array = npt.NDArray[np.float64]

FOLDER = Path(__file__).parent
PAGE = FOLDER / "variational.md"
PICTURES = FOLDER / "pictures"
STUDY = FOLDER.parent / "benchmarks" / "results" / "fraud_study.csv"
SEED = 0
STUDY_ROWS = {
    "Δ_D alone": "Δ_D alone",
    "logistic regression on both deltas": "logistic regression on both deltas",
    "printed circuit, SPSA": "printed circuit, SPSA",
    "printed circuit, exact gradients": "printed circuit, exact gradients",
    "the same, balanced classes": "printed circuit, exact gradients, balanced classes",
    "the same at ±π/2": "printed circuit but angles to ±π/2, exact gradients, balanced classes",
    "the same, clip by the data": (
        "printed circuit but angles to ±π/2, clip by the data, exact gradients, balanced classes"
    ),
    "default circuit, SPSA": "default circuit, SPSA",
    "`VariationalClassifier()`": "VariationalClassifier()",
}
"""Rows of the study that the page shows, by the names it gives them."""


@dataclass(frozen=True)
class Story:
    """Standardized deltas of training and test rows, and classifiers trained on them."""

    deltas: DeltaFeatures
    Z_train: Array
    Z_test: Array
    y_train: npt.NDArray[np.intp]
    y_test: npt.NDArray[np.intp]
    by_gradients: VariationalClassifier
    by_spsa: VariationalClassifier
    logistic: LogisticRegression


def compute() -> Story:
    """Fit everything on three quarters of the sample."""
    data = load_creditcard_sample()
    X_train, X_test, y_train, y_test = train_test_split(
        data.X, data.y, test_size=0.25, stratify=data.y, random_state=SEED
    )
    deltas = DeltaFeatures(random_state=SEED).fit(X_train, y_train)
    Z_train, Z_test = deltas.transform(X_train), deltas.transform(X_test)
    return Story(
        deltas,
        Z_train,
        Z_test,
        y_train,
        y_test,
        VariationalClassifier(random_state=SEED).fit(Z_train, y_train),
        VariationalClassifier(optimizer="spsa", clip_norm=1.0, random_state=SEED).fit(Z_train, y_train),
        LogisticRegression(C=np.inf).fit(Z_train, y_train),
    )


def sections(story: Story) -> dict[str, str]:
    """The marked sections of the page."""
    delta_d = -story.Z_test[:, 0]
    rows: list[Row] = [["Δ_D alone", number(average_precision_score(story.y_test, delta_d), 3), ""]]
    named = {
        "logistic regression on both deltas": story.logistic,
        "circuit, SPSA": story.by_spsa,
        "circuit, exact gradients": story.by_gradients,
    }
    for name, model in named.items():
        p = model.predict_proba(story.Z_test)[:, 1]
        rows.append([name, number(average_precision_score(story.y_test, p), 3), number(log_loss(story.y_test, p), 4)])
    deltas = table(["on the two deltas", "PR-AUC", "log-loss"], rows)
    return {"deltas": deltas, "study": study_table()}


def study_table() -> str:
    """PR-AUC on held-out rows of the full table, from what ``benchmarks/fraud_study.py`` left; by depth L."""
    with STUDY.open(newline="", encoding="utf-8") as file:
        next(file)  # the command
        found = {(row["front end"], row["model"], row["L"]): row for row in csv.DictReader(file)}
    rows: list[Row] = []
    for name, model in STUDY_ROWS.items():
        cells: list[object] = [name]
        for front_end in ("paper", "default"):
            depths = [
                found[front_end, model, depth] for depth in ("", "1", "3", "6") if (front_end, model, depth) in found
            ]
            cells.append(" / ".join(row["PR-AUC"] for row in depths))
        rows.append(cells)
    return table(["PR-AUC (L = 1 / 3 / 6)", "`NearestMedoidClassifier.paper()`", "`NearestMedoidClassifier()`"], rows)


def draw_all(story: Story) -> None:
    """Write every picture."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.6, 4.0), layout="constrained")
        fold_picture(figure.subplots())
        save(figure, PICTURES / "fold.png")
        figure = Figure(figsize=(9.2, 4.0), layout="constrained")
        left, right = figure.subplots(1, 2)
        surface_picture(left, story)
        training_picture(right, story)
        save(figure, PICTURES / "deltas.png")


def fold_picture(axes: Axes) -> None:
    """Probability of odd parity along one feature, for the printed span and ours, under the same random weights."""
    z = np.linspace(-3, 3, 241)[:, None]
    network = Network(Ansatz(2, 1, 3), ParityReadout(2, 2), np.ones(1), learn_scales=False)
    theta = np.random.default_rng(2).normal(size=network.n_parameters)
    spans = (("π, as printed: both ends agree", np.pi, MARK, "--"), ("π/2", np.pi / 2, NO, "-"))
    for label, span, color, style in spans:
        angles = AngleMap(np.zeros(1), np.ones(1), 3.0, span).apply(z)
        p = np.exp(network.scores(theta, angles)[:, 1])
        axes.plot(z[:, 0], p, color=color, linestyle=style, label=label)
        axes.plot(z[[0, -1], 0], p[[0, -1]], "o", color=color)
    axes.set_xlabel("standardized feature, clipped at ±3")
    axes.set_ylabel("probability of odd parity")
    axes.set_title("The angle map folds at ±π")
    axes.legend()


def surface_picture(axes: Axes, story: Story) -> None:
    """Log-odds of the trained circuit over the two deltas, and the test rows."""
    low, high = story.Z_test.min(axis=0) - 0.5, story.Z_test.max(axis=0) + 0.5
    grid = np.meshgrid(np.linspace(low[0], high[0], 160), np.linspace(low[1], high[1], 160))
    odds = story.by_gradients.decision_function(np.column_stack([part.ravel() for part in grid])).reshape(grid[0].shape)
    image = axes.contourf(*grid, odds, levels=np.arange(-9, 9.1, 1.5), cmap="PuOr_r", extend="both", alpha=0.55)
    axes.contour(*grid, odds, levels=[0.0], colors="black", linewidths=1.2)
    for code, color, size, label in ((0, NO, 3, "normal"), (1, YES, 16, "fraud")):
        own = story.Z_test[story.y_test == code]
        axes.scatter(own[:, 0], own[:, 1], s=size, color=color, edgecolor="black" if code else "none",
                     linewidth=0.4, label=label)  # fmt: skip
    axes.set_xlabel("Δ_D, standardized (left: nearer the fraud)")
    axes.set_ylabel("Δ_Θ, standardized")
    axes.set_title("Test rows, and the log-odds of the circuit")
    axes.legend(loc="lower right")
    axes.figure.colorbar(image, ax=axes, shrink=0.85)


def training_picture(axes: Axes, story: Story) -> None:
    """Batch losses of both trainings, smoothed over 15 steps."""
    window = np.ones(15) / 15
    for label, model, color in (("SPSA", story.by_spsa, MARK), ("exact gradients", story.by_gradients, NO)):
        losses = model.loss_curve_
        axes.plot(np.arange(0, len(losses), 3), losses[::3], color=color, alpha=0.2, linewidth=0.8)
        axes.plot(np.arange(7, len(losses) - 7), np.convolve(losses, window, "valid"), color=color, label=label)
    prior = story.y_train.mean()
    axes.axhline(-prior * np.log(prior) - (1 - prior) * np.log(1 - prior), color=GREY, linestyle=":", label="prior")
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("loss of the batch")
    axes.set_title("Training of the same circuit")
    axes.legend()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    made = compute()
    write_or_check(PAGE, sections(made), check=arguments.check)
    if not arguments.check:
        draw_all(made)
