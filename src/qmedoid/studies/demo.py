"""What ``qmedoid demo`` compares: cells of the paper's experiments, and rankings of rare events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qmedoid.studies import baselines, ours
from qmedoid.studies.baselines import BASELINES
from qmedoid.studies.catalog import FRAUD_SAMPLE, load_data
from qmedoid.studies.cells import Cell, Result, StudyMethod
from qmedoid.studies.datasets import LOADERS
from qmedoid.studies.metrics import ALERT_BUDGET
from qmedoid.studies.plan import NEAREST
from qmedoid.studies.plan import STUDY as PAPER_STUDY
from qmedoid.studies.results import Measure, Spread, StudyResults, confusion

SMALL: dict[str, str] = {
    "qmedoid": "default",
    "qmedoid, nearest": NEAREST,
    "qmedoid, as printed": "printed",
    **{name: name for name in BASELINES if name != "LightGBM"},
}
"""What is compared on the small data sets: the demo's name and that of the paper's experiments."""
RARE: dict[str, StudyMethod] = {
    "qmedoid": StudyMethod(ours.run_front_rare, {}, 8.0, is_ours=True),
    "qmedoid, without circuit": StudyMethod(ours.run_front_rare, {"refine": "never"}, 4.0, is_ours=True),
    "qmedoid, nearest": StudyMethod(ours.run_front_rare, {"method": "nearest"}, 4.0, is_ours=True),
    "qmedoid, as printed": StudyMethod(ours.run_front_rare, {"printed": True}, 4.0, is_ours=True),
    "LogReg": StudyMethod(baselines.run_rare, {"name": "LogReg"}, 0.2),
    "RandomForest": StudyMethod(baselines.run_rare, {"name": "RandomForest"}, 20.0),
}
"""What is compared on the fraud sample, by probabilities."""
STUDY = replace(PAPER_STUDY, methods={**PAPER_STUDY.methods, "rare": RARE}, share=lambda _: 1.0)

_of_test = confusion("test")
SMALL_MEASURES: dict[str, Measure] = {
    "accuracy": lambda result: _of_test(result).accuracy,
    "macro_f1": lambda result: _of_test(result).macro_f1,
}
RARE_MEASURES: dict[str, Measure] = {
    "pr_auc": lambda result: float(result["test"]["pr_auc"]),
    "recall": lambda result: float(result["test"]["recall"]),
    "log_loss": lambda result: float(result["test"]["log_loss"]),
}
"""Average precision; recall among the `ALERT_BUDGET` most probable rows; mean of −log p of the true class."""


@dataclass(frozen=True)
class Outcome:
    """Metrics of one method on one data set over splits, and what else is known of it."""

    data: str
    method: str
    metrics: dict[str, Spread]
    about: dict[str, Any]

    @property
    def splits(self) -> int:
        """Number of splits."""
        return len(next(iter(self.metrics.values())).values)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON: means and standard errors, None for a single split."""
        found: dict[str, Any] = {"data": self.data, "method": self.method, "splits": self.splits} | self.about
        for name, spread in self.metrics.items():
            found |= {name: spread.mean, f"{name}_se": spread.error}
        return found


def small_cells(seeds: Sequence[int]) -> list[Cell]:
    """Every method on the splits of the small data sets."""
    return [Cell("small", data, "random", seed, own) for data in LOADERS for own in SMALL.values() for seed in seeds]


def rare_cells(seeds: Sequence[int]) -> list[Cell]:
    """Every method on the splits of the fraud sample."""
    return [Cell("rare", FRAUD_SAMPLE, "random", seed, name) for name in RARE for seed in seeds]


def small_outcomes(results: StudyResults) -> Iterator[Outcome]:
    """Accuracy and macro-F1 on every small data set."""
    for data in LOADERS:
        for title, name in SMALL.items():
            yield Outcome(load_data(data).name, title, _spreads(results.of(data, name), SMALL_MEASURES), {})


def rare_outcomes(results: StudyResults) -> Iterator[Outcome]:
    """Metrics of rare events, and the share of test rows that the circuit decided."""
    data = load_data(FRAUD_SAMPLE)
    about = {"prevalence": float(data.y.mean()), "alert_budget": ALERT_BUDGET}
    for name in RARE:
        own = results.of(FRAUD_SAMPLE, name)
        chosen = " or ".join(dict.fromkeys(one["chosen_method"] for one in own if "chosen_method" in one)) or None
        shares = [one["by_circuit"] for one in own if "by_circuit" in one]
        decided = {"chosen_method": chosen, "by_circuit": float(np.mean(shares)) if shares else None}
        yield Outcome(data.name, name, _spreads(own, RARE_MEASURES), about | decided)


def _spreads(results: Sequence[Result], measures: dict[str, Measure]) -> dict[str, Spread]:
    return {name: Spread(np.array([measure(one) for one in results])) for name, measure in measures.items()}
