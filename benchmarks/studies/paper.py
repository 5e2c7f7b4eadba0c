"""Figures printed in the paper, one split each, to hold ours against.

Numbers alone, with the digits that were printed. Small data sets go by their names in the catalogue, models by their
names in our tables.
"""

from collections.abc import Mapping
from typing import NamedTuple

Confusion = tuple[tuple[int, ...], ...]


class PaperFigure(NamedTuple):
    """Metrics on the paper's test split; areas are None where none is printed."""

    accuracy: float
    macro_f1: float
    weighted_f1: float
    roc_auc: float | None = None
    pr_auc: float | None = None


class PaperSummary(NamedTuple):
    """A data set as the paper describes it, and what was chosen on its validation rows.

    Class counts are in the order of our labels; sizes are of training, validation and test rows; `best_k` is the number
    of columns in a group, `alpha` the share of the distance in the fusion score.
    """

    n_rows: int
    n_columns: int
    class_counts: tuple[int, ...]
    split_sizes: tuple[int, int, int]
    best_k: int
    alpha: float
    validation_accuracy: float
    validation_macro_f1: float


TITLES: dict[str, str] = {"heart": "Heart disease", "breast-cancer": "Breast cancer", "wine": "Wine"}
"""What the small data sets are called in tables. The paper's "Wine Quality" is this one, by its rows and classes."""

PAPER: dict[str, dict[str, PaperFigure]] = {
    "Heart disease": {
        "Fusion": PaperFigure(0.8478, 0.8463, 0.8479),
        "LogReg": PaperFigure(0.8565, 0.8551, 0.8566, 0.9021, 0.8976),
        "LinearSVM": PaperFigure(0.8565, 0.8551, 0.8566, 0.8997, 0.8908),
        "RBF-SVM": PaperFigure(0.8870, 0.8861, 0.8871, 0.9372, 0.9435),
        "RandomForest": PaperFigure(0.8913, 0.8898, 0.8911, 0.9408, 0.9437),
    },
    "Breast cancer": {
        "Fusion": PaperFigure(0.8881, 0.8703, 0.8827),
        "LogReg": PaperFigure(0.9860, 0.9849, 0.9860, 0.9983, 0.9974),
        "LinearSVM": PaperFigure(0.9580, 0.9547, 0.9579, 0.9881, 0.9834),
        "RBF-SVM": PaperFigure(0.9720, 0.9698, 0.9719, 0.9962, 0.9946),
        "RandomForest": PaperFigure(0.9790, 0.9772, 0.9789, 0.9979, 0.9964),
    },
    "Wine": {
        "Fusion": PaperFigure(0.9556, 0.9522, 0.9547),
        "LogReg": PaperFigure(1.0, 1.0, 1.0),
        "LinearSVM": PaperFigure(1.0, 1.0, 1.0),
        "RBF-SVM": PaperFigure(1.0, 1.0, 1.0),
        "RandomForest": PaperFigure(1.0, 1.0, 1.0),
    },
}
"""By the title of a data set and the method, from the table of test-set comparisons."""

SUMMARIES: dict[str, PaperSummary] = {
    "heart": PaperSummary(918, 11, (410, 508), (516, 172, 230), 3, 1.00, 0.8198, 0.8184),
    "breast-cancer": PaperSummary(569, 30, (357, 212), (319, 107, 143), 3, 0.90, 0.9159, 0.9052),
    "wine": PaperSummary(178, 13, (59, 71, 48), (99, 34, 45), 4, 0.85, 0.9412, 0.9428),
}
"""By the name of a data set, from the table of data sets."""

VALIDATION_CONFUSIONS: dict[str, Confusion] = {
    "heart": ((63, 14), (17, 78)),
    "breast-cancer": ((67, 0), (9, 31)),
    "wine": ((10, 1, 0), (0, 13, 1), (0, 0, 9)),
}
TEST_CONFUSIONS: dict[str, Confusion] = {
    "heart": ((86, 17), (18, 109)),
    "breast-cancer": ((90, 0), (16, 37)),
    "wine": ((15, 0, 0), (0, 18, 0), (0, 2, 10)),
}
"""Confusion matrices of the fusion score: rows are true classes, columns decided ones."""

FRAUD_FIGURES = (
    "rows", "prevalence", "alert rate", "precision", "recall", "F1", "PR-AUC", "ROC-AUC", "macro-F1", "accuracy",
    "TP", "FP", "FN", "TN",
)  # fmt: skip
"""What the fraud tables print of every model, class 1 (fraud) being the positive one."""


def _column(*values: float) -> dict[str, float]:
    return dict(zip(FRAUD_FIGURES, (284_807, 0.0017, *values), strict=True))


_OURS = _column(0.0131, 0.1124, 0.8496, 0.1985, 0.3251, 0.9249, 0.5963, 0.9881, 418, 3_301, 74, 281_014)

FRAUD: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "fraud_matched": {
        "ours": _OURS,
        "LogReg": _column(0.0130, 0.1188, 0.8963, 0.2098, 0.7392, 0.9852, 0.6019, 0.9883, 441, 3_272, 51, 281_043),
        "LinearSVM": _column(0.0133, 0.1157, 0.8923, 0.2049, 0.7287, 0.9852, 0.5994, 0.9880, 439, 3_355, 53, 280_960),
        "RandomForest": _column(
            0.0128, 0.1277, 0.9492, 0.2251, 0.9269, 0.9808, 0.6097, 0.9887, 467, 3_190, 25, 281_125
        ),
    },
    "fraud_matched_smote": {
        "ours": _OURS,
        "LogReg": _column(0.0130, 0.1192, 0.8984, 0.2105, 0.7521, 0.9830, 0.6023, 0.9884, 442, 3_265, 50, 281_050),
        "LinearSVM": _column(0.0130, 0.1193, 0.9004, 0.2107, 0.7609, 0.9832, 0.6024, 0.9883, 443, 3_270, 49, 281_045),
        "RandomForest": _column(
            0.0090, 0.1835, 0.9512, 0.3076, 0.9393, 0.9915, 0.6519, 0.9926, 468, 2_083, 24, 282_232
        ),
    },
    "fraud_fixed": {
        "ours": _OURS,
        "LogReg": _column(0.0242, 0.0658, 0.9228, 0.1229, 0.7401, 0.9851, 0.5557, 0.9772, 454, 6_442, 38, 277_873),
        "LinearSVM": _column(0.0012, 0.8663, 0.5793, 0.6943, 0.7242, 0.9848, 0.8469, 0.9991, 285, 44, 207, 284_271),
        "RandomForest": _column(0.0016, 0.9516, 0.8801, 0.9145, 0.9269, 0.9808, 0.9572, 0.9997, 433, 22, 59, 284_293),
    },
    "fraud_fixed_smote": {
        "ours": _OURS,
        "LogReg": _column(0.0046, 0.3279, 0.8659, 0.4757, 0.7521, 0.9830, 0.7370, 0.9967, 426, 873, 66, 283_442),
        "LinearSVM": _column(0.0049, 0.3059, 0.8679, 0.4523, 0.7589, 0.9832, 0.7253, 0.9964, 427, 969, 65, 283_346),
        "RandomForest": _column(0.0017, 0.9433, 0.9126, 0.9277, 0.9393, 0.9915, 0.9638, 0.9998, 449, 27, 43, 284_288),
    },
}
"""By table, model and figure. Ours is cut at 0.3 in all four; the others are cut at its alert rate ("matched") or at
0.5 ("fixed"), and fitted on the training rows as they are or with SMOTE. LinearSVM is calibrated where it is cut at
0.5."""


def printed_figure(name: str, model: str, figure: str) -> float | None:
    """A figure (``"macro-F1"``) of a model on the test rows of a small data set; None where the paper prints none."""
    printed = PAPER[TITLES[name]].get(model)
    value: float | None = None if printed is None else getattr(printed, figure.lower().replace("-", "_"))
    return value
