"""Figures over splits, paired differences, and sentences made of them: by hand, and by laws."""

import math

import numpy as np
import pytest
from benchmarks.studies.cells import Cell, load_data, paper_split
from benchmarks.studies.document import Heading, Table
from benchmarks.studies.paper import Plan
from benchmarks.studies.report import (
    rival_findings,
    rival_pairs,
    spread_findings,
    spread_table,
)
from benchmarks.studies.results import OperatingPoint, Paired, Spread, StudyResults
from benchmarks.studies.small_tables import MEASURES
from hypothesis import given
from hypothesis import strategies as st
from made_up_cells import expanded, made_up
from sklearn.metrics import accuracy_score, f1_score

from qmedoid.metrics.classification import evaluate

values = st.lists(st.floats(0, 1).map(lambda x: round(x, 4)), min_size=1, max_size=8)


def by_seed(numbers, method="a", data="wine"):
    """Results with a figure ``x`` for each seed, put in backwards."""
    cells = [(Cell("small", data, "random", seed, method), {"x": x}) for seed, x in enumerate(numbers)]
    return StudyResults(dict(reversed(cells)))


def x_of(result):
    return result["x"]


class TestSpread:
    @given(values)
    def test_its_own_values_and_its_mean_are_within(self, numbers):
        spread = Spread(np.array(numbers))
        assert all(spread.holds(x) == "yes" for x in (*numbers, spread.mean))

    @pytest.mark.parametrize(
        ("values", "within", "beyond"),
        [
            ([0.0, 1.0], [1.9142, -0.9142], [1.9148, -0.9148]),  # a deviation of 0.7071 around 0.5
            ([0.5] * 30 + [0.9], [0.9], [0.9006]),  # its range is more than two deviations
            ([2 / 3, 2 / 3], [0.6667], [0.6668, 0.67]),  # a printed figure is rounded
            ([0.25], [0.25], [0.2502]),  # without a deviation
        ],
    )
    def test_the_range_or_two_deviations(self, values, within, beyond):
        spread = Spread(np.array(values))
        assert (spread.deviation is None) == (spread.error is None) == (len(values) == 1)
        assert [spread.holds(x) for x in within + beyond] == ["yes"] * len(within) + ["no"] * len(beyond)


class TestResults:
    def test_the_order_is_that_of_the_seeds(self):
        numbers = [0.3, 0.1, 0.2] * 4
        assert by_seed(numbers).spread("wine", "a", x_of).values.tolist() == numbers


def test_measures_are_those_of_scikit_learn():
    results = made_up(Plan(["wine", "heart"], splits=2, variants=False))
    for cell, result in results.by_cell.items():
        truth, decided = expanded(result["test"]["confusion"])
        expected = {
            "accuracy": accuracy_score(truth, decided),
            "macro-F1": f1_score(truth, decided, average="macro"),
            "weighted-F1": f1_score(truth, decided, average="weighted"),
            "ROC-AUC": result["test"]["roc_auc"],
            "PR-AUC": result["test"]["pr_auc"],
        }
        assert {name: measure(result) for name, measure in MEASURES.items()} == pytest.approx(expected), cell


def paired(theirs, ours, rival="LogReg", figure="macro-F1", split="random"):
    theirs, ours = np.array(theirs), np.array(ours)
    return Paired("wine", split, figure, rival, Spread(ours), Spread(theirs), 1 / 3)


class TestPaired:
    @given(values, st.randoms(use_true_random=False))
    def test_differences_are_antisymmetric_and_split_by_split(self, first, random):
        second = random.sample(first, len(first))
        forth, back = (paired(*both).difference.values for both in ((first, second), (second, first)))
        assert forth.tolist() == [a - b for a, b in zip(first, second, strict=True)]
        assert (forth == -back).all()

    def test_the_error_counts_rows_that_splits_share(self):
        # Differences 0.1, 0.2, 0.3, 0.4: variance 1/60; times 1/4 for four splits, and 1/3 for 25 % against 75 %.
        one = paired([0.6, 0.7, 0.8, 0.9], [0.5] * 4)
        assert one.error == pytest.approx(math.sqrt(1 / 60 * (1 / 4 + 1 / 3)))
        assert one.wins == 4
        assert paired([0.5], [0.4]).error is None
        assert paired([0.5, 0.6, 0.4], [0.5, 0.5, 0.5]).wins == 1  # equal is no win

    @pytest.mark.parametrize("parts", [["wine"], ["fraud"]])
    def test_pairs_are_between_the_default_and_each_plain_classifier(self, parts):
        results = made_up(Plan(parts).quick(), seed=3)
        (data,) = {cell.data for cell in results.by_cell}
        pairs = list(rival_pairs(results, data))
        splits = ("random",) if parts == ["wine"] else ("random", "time", "grouped")
        figures = 5 if parts == ["wine"] else 3
        assert len(pairs) == len(splits) * figures * 5
        split = paper_split(np.arange(4000) % 2, 0)
        fitted_on = split.fit if parts == ["wine"] else split.train
        for one in pairs:
            assert one.test_share == pytest.approx(len(split.test) / len(fitted_on), rel=1e-3)
            measure = MEASURES.get(one.figure) if parts == ["wine"] else FRAUD[one.figure]
            ours = [measure(result) for result in results.of(data, "default", one.split)]
            theirs = [measure(result) for result in results.of(data, one.rival, one.split)]
            assert one.ours.values.tolist() == pytest.approx(ours)
            assert one.theirs.values.tolist() == pytest.approx(theirs)
            assert one.difference.values == pytest.approx(np.array(theirs) - ours)


def _recall(result):
    tp, _, fn, _ = result["test"]["counts"]["alert rate 1.31 %"]
    return tp / (tp + fn)


FRAUD = {
    "PR-AUC": lambda result: result["test"]["pr_auc"],
    "ROC-AUC": lambda result: result["test"]["roc_auc"],
    "recall at 1.31 % alerts": _recall,
}
RIVALS = ("LogReg", "LinearSVM", "RandomForest")


class TestRivalFindings:
    @given(st.data())
    def test_a_plain_classifier_is_named_as_winner_if_and_only_if_its_mean_is_higher(self, data):
        n = data.draw(st.integers(1, 5))
        # Multiples of 1/64 have sums without rounding, so that a tie is one.
        scores = st.lists(st.integers(0, 64).map(lambda i: i / 64), min_size=n, max_size=n)
        ours, theirs = data.draw(scores), [data.draw(scores) for _ in RIVALS]
        pairs = [paired(one, ours, rival) for rival, one in zip(RIVALS, theirs, strict=True)]
        (sentence,) = rival_findings(pairs, {"wine": "Wine"}, ("macro-F1",))
        means = dict(zip(RIVALS, (sum(one) for one in theirs), strict=True))
        best = max(means.values())
        winners = [rival for rival, total in means.items() if total == best]
        wins = best > sum(ours)
        assert ("beats our default by" in sentence) == wins
        assert ("no plain classifier beats our default" in sentence) == (not wins)
        assert ("behind" in sentence) == (best < sum(ours))
        assert any(rival in sentence for rival in winners)
        assert not any(f" {rival} " in sentence for rival in RIVALS if rival not in winners)
        assert sentence.startswith("Wine: ")

    def test_a_win_in_figures(self):
        (sentence,) = rival_findings([paired([0.9, 0.7, 0.8], [0.5, 0.8, 0.8])], {"wine": "Wine"}, ("macro-F1",))
        error = np.std([0.4, -0.1, 0.0], ddof=1) * math.sqrt(1 / 3 + 1 / 3)
        assert sentence == (
            f"Wine: the plain classifier LogReg beats our default by 0.100 ± {error:.3f} (0.800 against 0.700 in "
            "macro-F1), on 1 of 3 splits; that is within two standard errors."
        )
        (sure,) = rival_findings([paired([0.9, 0.8], [0.5, 0.4])], {"wine": "Wine"}, ("macro-F1",))
        assert "standard error" not in sure
        assert list(rival_findings([], {}, ("macro-F1",))) == []


class TestSpreadOfPrintedFigures:
    def table(self):
        sets = {"wine": load_data("wine"), "heart": load_data("heart")}
        return made_up(Plan(["wine", "heart"], splits=6)), sets

    def test_rows_are_those_of_the_method_that_they_name(self):
        results, sets = self.table()
        table = spread_table(results, sets, None)
        rows = {tuple(row[:3]): row[3:] for row in table.rows}
        assert len(rows) == len(table.rows)
        values = np.array([MEASURES["macro-F1"](result) for result in results.of("wine", "RBF-SVM")])
        paper, mean, deviation, low, high, within = rows["Wine", "RBF-SVM", "macro-F1"]
        assert (paper, mean, deviation) == pytest.approx((1.0, values.mean(), values.std(ddof=1)))
        assert (low, high) == (values.min(), values.max())
        assert within == ("yes" if max(values.max(), values.mean() + 2 * values.std(ddof=1)) > 0.99995 else "no")
        ours = np.mean([MEASURES["accuracy"](result) for result in results.of("wine", "printed")])
        assert rows["Wine", "printed", "accuracy"][:2] == pytest.approx([0.9556, ours])
        numbered = np.mean([MEASURES["accuracy"](result) for result in results.of("heart-ordinal", "LogReg")])
        assert rows["Heart disease, categories numbered", "LogReg", "accuracy"][:2] == [0.8565, numbered]

    def test_findings_count_what_is_outside_and_name_what_is_ours(self):
        rows = [
            ["Wine", "printed", "accuracy", 0.9, 0.5, 0.1, 0.4, 0.6, "no"],
            ["Wine", "printed", "macro-F1", 0.5, 0.5, 0.1, 0.4, 0.6, "yes"],
            ["Frauds", "printed, fixed", "recall", 0.5, 0.5, 0.1, 0.4, 0.6, "yes"],
            ["Wine", "LogReg", "accuracy", 0.9, 0.5, 0.1, 0.4, 0.6, "no"],
        ]
        table = Table("t", "", [Heading(str(i)) for i in range(9)], rows)
        sentences = list(spread_findings(table))
        assert len(sentences) == 3
        assert "its own method: 2 of 3 are" in sentences[0]
        assert sentences[1] == (
            "Wine, as printed: the paper has accuracy 0.9000; ours is 0.5000, 0.4000 to 0.6000 over the splits."
        )
        assert "plain classifiers: 0 of 1 are" in sentences[2]


class TestOperatingPoint:
    @given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
    def test_figures_are_those_of_the_confusion_matrix(self, rows):
        codes, called = np.array(rows, dtype=np.intp).T
        reference = evaluate(codes, called, 2)
        (tn, fp), (fn, tp) = reference.confusion.astype(int).tolist()
        point = OperatingPoint(0.5, tp, fp, fn, tn)
        assert (point.n, point.prevalence, point.alert_rate) == (len(rows), codes.mean(), called.mean())
        assert (point.precision, point.recall) == (reference.precision[1], reference.recall[1])
        assert point.accuracy == reference.accuracy
        assert point.f1 == pytest.approx(reference.f1[1], rel=1e-14)
        assert point.macro_f1 == pytest.approx(reference.macro_f1, rel=1e-14)
