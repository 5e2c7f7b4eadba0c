"""The paper's experiments: their methods, and which cells a run has."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from benchmarks.studies import ours
from benchmarks.studies.baselines import RARE_BASELINES, run_fraud, run_small
from benchmarks.studies.data import FRAUD_SAMPLE, FULL_FRAUD, HEART_ORDINAL, data_digest, load_data
from benchmarks.studies.runner import Study
from benchmarks.studies.splits import Cell, SplitKind, StudyMethod

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
