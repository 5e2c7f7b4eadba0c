"""Figures printed in the paper, one test split each, to hold ours against."""

from typing import NamedTuple


class PaperFigure(NamedTuple):
    """Accuracy and macro-F1 on the paper's test split."""

    accuracy: float
    macro_f1: float


PAPER: dict[str, dict[str, PaperFigure]] = {
    "Heart disease": {
        "Fusion": PaperFigure(0.8478, 0.8463),
        "LogReg": PaperFigure(0.8565, 0.8551),
        "LinearSVM": PaperFigure(0.8565, 0.8551),
        "RBF-SVM": PaperFigure(0.8870, 0.8861),
        "RandomForest": PaperFigure(0.8913, 0.8898),
    },
    "Breast cancer": {
        "Fusion": PaperFigure(0.8881, 0.8703),
        "LogReg": PaperFigure(0.9860, 0.9849),
        "LinearSVM": PaperFigure(0.9580, 0.9547),
        "RBF-SVM": PaperFigure(0.9720, 0.9698),
        "RandomForest": PaperFigure(0.9790, 0.9772),
    },
    "Wine": {
        "Fusion": PaperFigure(0.9556, 0.9522),
        "LogReg": PaperFigure(1.0, 1.0),
        "LinearSVM": PaperFigure(1.0, 1.0),
        "RBF-SVM": PaperFigure(1.0, 1.0),
        "RandomForest": PaperFigure(1.0, 1.0),
    },
}
"""By data set and method, from the paper's table of test-set comparisons."""
