"""The paper's printed figures against each other, and against what our data and splits count."""

import numpy as np
import pytest
from benchmarks.datasets import load_dataset
from benchmarks.studies.cells import paper_split
from benchmarks.studies.paper import (
    FRAUD,
    FRAUD_FIGURES,
    PAPER,
    SUMMARIES,
    TEST_CONFUSIONS,
    TITLES,
    VALIDATION_CONFUSIONS,
)

from qmedoid.metrics.classification import ClassMetrics

TEST_FIGURES = {
    "heart": (0.8478, 0.8463),
    "breast-cancer": (0.8881, 0.8703),
    "wine": (0.9556, 0.9522),
}
"""Test accuracy and macro-F1 of the fusion score, from the table of those alone."""

NAMES = list(SUMMARIES)
COLUMNS = [(table, model) for table, models in FRAUD.items() for model in models]


def metrics(confusion):
    return ClassMetrics(np.array(confusion, dtype=np.float64))


def is_printed(value, printed, digits=4):
    """Whether a value, rounded either way where it lies in the middle, is what was printed."""
    return abs(value - printed) <= 0.5 * 10**-digits + 1e-12


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1, 19])
def test_splits_have_the_sizes_and_the_class_balance_of_the_paper(name, seed):
    y, summary = load_dataset(name).y, SUMMARIES[name]
    split = paper_split(y, seed)
    assert tuple(map(len, split)) == summary.split_sizes
    for rows, confusion in ((split.val, VALIDATION_CONFUSIONS[name]), (split.test, TEST_CONFUSIONS[name])):
        assert np.bincount(y[rows]).tolist() == metrics(confusion).support.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_confusion_matrices_give_the_printed_figures(name):
    validation, test, summary = metrics(VALIDATION_CONFUSIONS[name]), metrics(TEST_CONFUSIONS[name]), SUMMARIES[name]
    assert is_printed(validation.accuracy, summary.validation_accuracy)
    assert is_printed(validation.macro_f1, summary.validation_macro_f1)
    ours = PAPER[TITLES[name]]["Fusion"]
    assert is_printed(test.accuracy, ours.accuracy)
    assert is_printed(test.macro_f1, ours.macro_f1)
    assert is_printed(test.average(test.f1, "weighted"), ours.weighted_f1)
    assert TEST_FIGURES[name] == (ours.accuracy, ours.macro_f1)


# --- the fraud tables -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("table", "model"), COLUMNS)
def test_the_counts_give_the_printed_figures(table, model):
    printed = FRAUD[table][model]
    assert tuple(printed) == FRAUD_FIGURES
    tp, fp, fn, tn = (int(printed[name]) for name in ("TP", "FP", "FN", "TN"))
    found = metrics([[tn, fp], [fn, tp]])
    again = {
        "prevalence": (tp + fn) / (tp + fp + fn + tn),
        "alert rate": (tp + fp) / (tp + fp + fn + tn),
        "precision": found.precision[1],
        "recall": found.recall[1],
        "F1": found.f1[1],
        "macro-F1": found.macro_f1,
        "accuracy": found.accuracy,
    }
    wrong = {name: (value, printed[name]) for name, value in again.items() if not is_printed(value, printed[name])}
    assert not wrong
    assert (tp + fp + fn + tn, tp + fn) == (printed["rows"], 492) == (284_807, 492)
    assert model != "ours" or printed == FRAUD["fraud_matched"]["ours"]
