"""Confusion matrices next to each other, with their counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.reporting.document import Picture
from qmedoid.reporting.drawing import check_panels, draw_panels

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Share of a row from which its cell is too dark for black letters.
_DARK = 0.6


@dataclass(frozen=True)
class Panel:
    """A confusion matrix.

    Attributes
    ----------
    label : str
        What stands above it.
    matrix : array-like of shape (n_classes, n_classes)
        Counts, or means of counts: true classes in rows, decided ones in columns.
    class_names : sequence of str
    """

    label: str
    matrix: npt.ArrayLike
    class_names: Sequence[str]

    def __post_init__(self) -> None:
        n_classes = len(self.class_names)
        if np.shape(self.matrix) != (n_classes, n_classes):
            raise ParameterError(
                f"The matrix of panel {self.label!r} must have a row and a column per class, of which there are "
                f"{n_classes}. Got shape {np.shape(self.matrix)}."
            )


def confusion_grid(name: str, title: str, panels: Sequence[Panel], note: str = "") -> Picture:
    """A picture of confusion matrices: counts in the cells, which are the darker, the larger their share of the row."""
    check_panels(panels)
    columns = min(3, len(panels))

    def paint(axes: "Axes", number: int) -> "dict[str, Artist]":
        _paint_panel(axes, panels[number])
        if number + columns >= len(panels):
            axes.set_xlabel("decided class")
        return {}

    side = 2.0 + 0.3 * max(len(panel.class_names) for panel in panels)
    return draw_panels(
        name,
        title,
        note,
        len(panels),
        paint,
        columns=columns,
        panel_size=(side + 0.4 / columns, side),
        y_label="true class",
    )


def row_shares(matrix: Array) -> Array:
    """Each count's share of its row; zero in rows without any."""
    totals = matrix.sum(axis=1, keepdims=True)
    shares: Array = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    return shares


def count_texts(matrix: Array) -> list[list[str]]:
    """Counts as they are written: whole ones with commas, and with one decimal where any is a mean."""
    digits = 0 if np.all(matrix == np.round(matrix)) else 1
    return [[f"{count:,.{digits}f}" for count in row] for row in matrix]


def _paint_panel(axes: "Axes", panel: Panel) -> None:
    from matplotlib import colormaps

    matrix = np.asarray(panel.matrix, dtype=np.float64)
    shares = row_shares(matrix)
    ticks = np.arange(len(matrix))
    # Stretched, because the darkest blue swallows even white letters.
    axes.pcolormesh(shares, cmap=colormaps["Blues"], vmin=0, vmax=1.2, edgecolors="white", linewidth=1.5)
    for (row, column), share in np.ndenumerate(shares):
        text = count_texts(matrix)[row][column]
        color = "white" if share > _DARK else "black"
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=color)
    axes.set_xticks(ticks + 0.5, list(panel.class_names))
    axes.set_yticks(ticks + 0.5, list(panel.class_names), rotation=90, va="center")
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(panel.label, fontsize=9)
