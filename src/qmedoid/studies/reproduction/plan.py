"""Which cells a reproduction has, and where each finds its data and its study."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from qmedoid.studies.catalog import load_creditcard
from qmedoid.studies.datasets import Dataset, load_creditcard_sample, load_dataset, load_heart
from qmedoid.studies.reproduction import fraud, small
from qmedoid.studies.reproduction.cells import Cell, Result

Part = Literal["heart", "breast-cancer", "wine", "fraud"]
PARTS: tuple[Part, ...] = ("heart", "breast-cancer", "wine", "fraud")
HEART_ORDINAL = "heart-ordinal"
"""The heart data with categories numbered in alphabetical order: one reading of what the paper leaves open."""
NUMBERED = "categories numbered"
"""What tables call that reading."""
FULL_FRAUD, FRAUD_SAMPLE = "creditcard", "creditcard-sample"


@dataclass(frozen=True)
class Plan:
    """How much is run.

    Attributes
    ----------
    parts : sequence of {"heart", "breast-cancer", "wine", "fraud"}
    splits, fraud_splits : int
        Repeated splits of the small data sets and of the frauds.
    seed : int
        Of the first split.
    fraud_data : {"creditcard", "creditcard-sample"}
        All payments, or the sample that ships with the package.
    variants : bool
        Whether the paper preset is run with its open points read otherwise, too.
    """

    parts: Sequence[Part]
    splits: int = 20
    fraud_splits: int = 5
    seed: int = 0
    fraud_data: str = FULL_FRAUD
    variants: bool = True

    def quick(self) -> "Plan":
        """A smoke run: few splits, the fraud sample, no variants."""
        return replace(self, splits=3, fraud_splits=2, fraud_data=FRAUD_SAMPLE, variants=False)

    @property
    def cells(self) -> list[Cell]:
        """All cells, those of one part after those of another."""
        return [cell for part in self.parts for cell in (self._fraud() if part == "fraud" else self._small(part))]

    def _small(self, part: str) -> list[Cell]:
        methods = [name for name in small.METHODS if self.variants or name not in small.VARIANTS]
        named = [(part, name) for name in methods]
        if part == "heart" and self.variants:
            named += [(HEART_ORDINAL, name) for name in methods if name not in small.VARIANTS]
        seeds = range(self.seed, self.seed + self.splits)
        return [
            Cell("small", data, "random", seed, name, small.METHODS[name].is_ours)
            for data, name in named
            for seed in seeds
        ]

    def _fraud(self) -> list[Cell]:
        seeds = range(self.seed, self.seed + self.fraud_splits)
        cells = []
        for name, method in fraud.METHODS.items():
            if name in fraud.VARIANTS and not self.variants:
                continue
            cells += [Cell("fraud", self.fraud_data, "random", seed, name, method.is_ours) for seed in seeds]
            if method.on_honest_splits:
                cells += [Cell("fraud", self.fraud_data, "apart", seed, name, method.is_ours) for seed in seeds]
                cells.append(Cell("fraud", self.fraud_data, "time", self.seed, name, method.is_ours))
        return cells


@cache
def load_data(name: str) -> Dataset:
    """The data set of a cell, read and checked once for all cells of a process."""
    others = {
        HEART_ORDINAL: lambda: load_heart("ordinal"),
        FULL_FRAUD: load_creditcard,
        FRAUD_SAMPLE: load_creditcard_sample,
    }
    return others[name]() if name in others else load_dataset(name)


def run_cell(cell: Cell, data: Dataset) -> Result:
    """The result of a cell."""
    return small.run_small(cell, data) if cell.study == "small" else fraud.run_fraud(cell, data)


def expected_seconds(cell: Cell) -> float:
    """What a cell takes, roughly, on one core."""
    if cell.study == "small":
        return small.METHODS[cell.method].seconds
    share = 1.0 if cell.data == FULL_FRAUD else 0.05
    return share * fraud.METHODS[cell.method].seconds
