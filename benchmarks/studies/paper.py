"""The paper: the figures that it prints, and its experiments as methods and cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from benchmarks.studies import ours
from benchmarks.studies.baselines import RARE_BASELINES, run_fraud, run_small
from benchmarks.studies.cells import (
    FRAUD_SAMPLE,
    FULL_FRAUD,
    HEART_ORDINAL,
    Cell,
    SplitKind,
    StudyMethod,
    data_digest,
    load_data,
)
from benchmarks.studies.runner import Study

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


Part = Literal["heart", "breast-cancer", "wine", "fraud"]
PARTS: tuple[Part, ...] = ("heart", "breast-cancer", "wine", "fraud")
NUMBERED = "categories numbered"
"""Title of the heart data with numbered categories."""
NEAREST = "convex"
"""Our nearest-medoid method with our defaults, by the name that it has in the committed tables."""
_ALL_SPLITS: tuple[SplitKind, ...] = ("random", "grouped", "time")


def _printed(**changes: Any) -> StudyMethod:
    return StudyMethod(ours.run_printed, changes, 0.2)


SMALL_VARIANTS: dict[str, StudyMethod] = {
    "printed, no class weights": _printed(score_weight=None),
    "printed, true angle": _printed(angle="true"),
    "printed, no search, k = 3": _printed(max_passes=0, subset_sizes=(3, 3)),
    "printed, search at α = 0.5": _printed(search_alpha=0.5),
    "printed, search at α = 1": _printed(search_alpha=1.0),
    "printed, inputs scaled to [0, 1]": _printed(input_scaling="minmax"),
    "printed, inputs standardised": _printed(input_scaling="standard"),
}
"""The paper preset with one open point read otherwise: what its figures depend on."""

SMALL_METHODS: dict[str, StudyMethod] = {
    "printed": _printed(),
    NEAREST: StudyMethod(ours.run_front, {"method": "nearest"}, 1.0),
    "default": StudyMethod(ours.run_front, {}, 1.0),
    **{
        name: StudyMethod(run_small, {"name": name}, seconds)
        for name, seconds in {
            "LogReg": 0.05, "LinearSVM": 0.05, "RBF-SVM": 0.05, "RandomForest": 0.6, "LightGBM": 0.3
        }.items()
    },
    **SMALL_VARIANTS,
}  # fmt: skip

_UNWEIGHTED, _ROOT_PRIOR = {"score_weight": None}, {"readout": "direct", "class_weight": {0: 1.0, 1: 24.0}}
READINGS: dict[str, dict[str, Any]] = {
    "printed": {},
    "printed, no class weights": {"nearest": _UNWEIGHTED},
    "printed, no class weights, balanced loss": {"nearest": _UNWEIGHTED, "circuit": {"class_weight": "balanced"}},
    "printed, no class weights, direct read-out, 1/√π in the loss": {"nearest": _UNWEIGHTED, "circuit": _ROOT_PRIOR},
    "printed, direct read-out, 1/√π in the loss": {"circuit": _ROOT_PRIOR},
    "printed, no class weights, no circuit": {"nearest": _UNWEIGHTED, "has_circuit": False},
}
"""The paper on the frauds; the first is its preset, the others read open points otherwise. 1/√π is 24 for a fraud and 1
for another row."""

FRAUD_VARIANTS: dict[str, StudyMethod] = {
    **{
        name: StudyMethod(ours.run_printed_fraud, reading, 25.0)
        for name, reading in READINGS.items()
        if name != "printed"
    },
    "RandomForest, fitted on 75 %": StudyMethod(
        run_fraud, {"name": "RandomForest", "with_validation": True}, 110.0
    ),
}  # fmt: skip
"""Open points of the paper read otherwise."""

FRAUD_METHODS: dict[str, StudyMethod] = {
    "printed": StudyMethod(ours.run_printed_fraud, READINGS["printed"], 25.0, splits=_ALL_SPLITS),
    NEAREST: StudyMethod(ours.run_front_fraud, {"method": "nearest"}, 40.0, splits=_ALL_SPLITS),
    "default": StudyMethod(ours.run_front_fraud, {}, 120.0, splits=_ALL_SPLITS),
    **{
        name: StudyMethod(
            run_fraud,
            {"name": name},
            {"LogReg": 2.0, "LinearSVM": 5.0, "RandomForest": 110.0, "LightGBM": 9.0}[name.partition(",")[0]],
            splits=("random",) if "SMOTE" in name else _ALL_SPLITS,
        )
        for name in RARE_BASELINES
    },
    **FRAUD_VARIANTS,
}


STUDY = Study(
    {"small": SMALL_METHODS, "fraud": FRAUD_METHODS},
    load_data,
    data_digest,
    lambda data: 0.05 if data == FRAUD_SAMPLE else 1.0,
)


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Splits are of each small data set, and of the frauds, which are all payments or the sample; `seed` is that of the
    first split. Variants are the paper preset with its open points read otherwise.
    """

    parts: Sequence[Part]
    splits: int = 20
    fraud_splits: int = 5
    seed: int = 0
    fraud_data: str = FULL_FRAUD
    variants: bool = True

    def quick(self) -> "Plan":
        """A smoke run: few splits, the fraud sample, no variants."""
        return replace(self, splits=2, fraud_splits=1, fraud_data=FRAUD_SAMPLE, variants=False)

    @property
    def cells(self) -> list[Cell]:
        """All cells, part by part."""
        return [cell for part in self.parts for cell in (self._fraud() if part == "fraud" else self._small(part))]

    def _small(self, part: str) -> list[Cell]:
        methods = [name for name in SMALL_METHODS if self.variants or name not in SMALL_VARIANTS]
        named = [(part, name) for name in methods]
        if part == "heart" and self.variants:
            named += [(HEART_ORDINAL, name) for name in methods if name not in SMALL_VARIANTS]
        seeds = range(self.seed, self.seed + self.splits)
        return [Cell("small", data, "random", seed, name) for data, name in named for seed in seeds]

    def _fraud(self) -> list[Cell]:
        seeds = range(self.seed, self.seed + self.fraud_splits)
        return [
            Cell("fraud", self.fraud_data, split, seed, name)
            for name, method in FRAUD_METHODS.items()
            if self.variants or name not in FRAUD_VARIANTS
            for split in method.splits
            for seed in (seeds[:1] if split == "time" else seeds)
        ]
