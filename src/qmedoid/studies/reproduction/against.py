"""Ours against plain classifiers on the same splits, and the paper's figures against the spread of ours."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qmedoid.reporting.document import Column, Table, Value
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.paper import FRAUD, printed_figure
from qmedoid.studies.reproduction.cells import SplitKind
from qmedoid.studies.reproduction.fraud import FIXED, MATCHED
from qmedoid.studies.reproduction.fraud_details import SPLITS
from qmedoid.studies.reproduction.fraud_tables import ORDER, PRINTED_TABLES, measure_of
from qmedoid.studies.reproduction.plan import HEART_ORDINAL, NUMBERED
from qmedoid.studies.reproduction.results import Measure, Results, Spread
from qmedoid.studies.reproduction.small_tables import BASELINES, MEASURES

FRAUD_BASELINES = ("LogReg", "LinearSVM", "LinearSVM, calibrated", "RandomForest", "LightGBM")
FRAUD_MEASURES: dict[str, Measure] = {
    "PR-AUC": measure_of("PR-AUC", "test", FIXED),
    "ROC-AUC": measure_of("ROC-AUC", "test", FIXED),
    "recall at 1.31 % alerts": measure_of("recall", "test", MATCHED),
}
"""Held-out figures of the frauds. Recall is at the threshold that validation rows chose."""
# Test rows for every row that was fitted on.
_SMALL_SHARE, _FRAUD_SHARE = 0.25 / 0.75, 0.25 / 0.5625


@dataclass(frozen=True)
class Duel:
    """Our default against one plain classifier on the same splits.

    Attributes
    ----------
    difference : Spread
        Figure of the plain classifier minus ours, split by split: above 0 it wins.
    test_share : float
        Test rows for every row that was fitted on.
    """

    data: str
    split: SplitKind
    figure: str
    rival: str
    ours: Spread
    theirs: Spread
    difference: Spread
    test_share: float

    @property
    def error(self) -> float | None:
        """Standard error of the mean difference, corrected for splits that share most of their rows.

        Nadeau and Bengio: the variance is multiplied by 1/n + n_test/n_train instead of 1/n.
        """
        deviation = self.difference.deviation
        return None if deviation is None else deviation * math.sqrt(1 / len(self.difference.values) + self.test_share)

    @property
    def wins(self) -> int:
        """Splits on which the plain classifier is ahead."""
        return int((self.difference.values > 0).sum())


def small_duels(results: Results, name: str) -> Iterator[Duel]:
    """Our default against every plain classifier on a small data set."""
    for figure, measure in MEASURES.items():
        yield from _duels(results, name, "random", figure, measure, BASELINES, _SMALL_SHARE)


def fraud_duels(results: Results, name: str) -> Iterator[Duel]:
    """Our default against every plain classifier on the frauds, for every kind of split."""
    for split in SPLITS:
        for figure, measure in FRAUD_MEASURES.items():
            yield from _duels(results, name, split, figure, measure, FRAUD_BASELINES, _FRAUD_SHARE)


def _duels(
    results: Results,
    name: str,
    split: SplitKind,
    figure: str,
    measure: Measure,
    rivals: tuple[str, ...],
    test_share: float,
) -> Iterator[Duel]:
    for rival in rivals:
        ours, theirs = (results.spread(name, method, measure, split) for method in ("default", rival))
        if ours is not None and theirs is not None:
            yield Duel(name, split, figure, rival, ours, theirs, Spread(theirs.values - ours.values), test_share)


def paired_table(duels: list[Duel], titles: Mapping[str, str]) -> Table:
    """Differences on the same splits."""
    rows: list[list[Value]] = [
        [
            titles[duel.data],
            SPLITS[duel.split],
            duel.figure,
            duel.rival,
            duel.theirs.mean,
            duel.ours.mean,
            duel.difference.mean,
            duel.error,
            f"{duel.wins} of {len(duel.difference.values)}",
        ]
        for duel in duels
    ]
    names = ("data", "split", "figure", "plain classifier", "theirs", "ours by default", "theirs − ours")
    return Table(
        "paired_differences",
        "Plain classifiers against our default, split by split",
        [*map(Column, names), Column("±", is_error=True), Column("splits they win")],
        rows,
        "Test rows. Standard errors are corrected for splits that share rows (Nadeau and Bengio).",
    )


def spread_table(results: Results, sets: Mapping[str, Dataset], fraud: str | None) -> Table:
    """Every figure that the paper prints beside the spread of ours."""
    rows: list[list[Value]] = []
    for name, data in sets.items():
        rows += _small_spreads(results, name, name, data.name)
        if name == "heart":
            rows += _small_spreads(results, HEART_ORDINAL, name, f"{data.name}, {NUMBERED}")
    if fraud is not None:
        rows += _fraud_spreads(results, fraud)
    names = ("data", "method", "figure", "paper", "mean", "sd", "low", "high", "within the spread")
    return Table(
        "within_the_spread",
        "Every printed figure against the spread of repeated splits",
        list(map(Column, names)),
        rows,
        "Within the spread: in the range of the splits, or within two standard deviations of their mean. Frauds: all "
        "rows scored, as in the paper.",
    )


def _small_spreads(results: Results, source: str, name: str, title: str) -> list[list[Value]]:
    """Figures of a small data set, perhaps encoded otherwise, beside those that are printed for it."""
    rows: list[list[Value]] = []
    for model, method in {"Fusion": "printed", **{own: own for own in BASELINES}}.items():
        for figure, measure in MEASURES.items():
            printed = printed_figure(name, model, figure)
            rows += _spread_row(title, method, figure, printed, results.spread(source, method, measure))
    return rows


def _fraud_spreads(results: Results, fraud: str) -> list[list[Value]]:
    rows: list[list[Value]] = []
    for table, (_, models) in PRINTED_TABLES.items():
        for model in models:
            if model.printed is None or (model.printed == "ours" and table != "fraud_matched"):
                continue  # ours stands in all four tables with the same figures
            for figure in ORDER[2:]:
                spread = results.spread(fraud, model.method, measure_of(figure, "all", model.cut))
                title = f"{model.method}, {model.cut}"
                rows += _spread_row("Credit-card fraud", title, figure, FRAUD[table][model.printed][figure], spread)
    return rows


def _spread_row(data: str, method: str, figure: str, printed: float | None, spread: Spread | None) -> list[list[Value]]:
    if printed is None or spread is None:
        return []
    within = "yes" if spread.contains(printed) else "no"
    return [[data, method, figure, printed, spread.mean, spread.deviation, spread.low, spread.high, within]]
