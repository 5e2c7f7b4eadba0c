"""Cells of plain classifiers. Nothing here imports ours, so that their results stay while ours change."""

from qmedoid.studies.baselines import BASELINES, RARE_BASELINES
from qmedoid.studies.cells import Cell, Result
from qmedoid.studies.datasets import Dataset
from qmedoid.studies.metrics import classifier_metrics, fraud_metrics, rare_metrics, scores_of
from qmedoid.studies.splits import split_of


def run_small(data: Dataset, cell: Cell, *, name: str) -> Result:
    """A baseline on a small data set, fitted on training and validation rows: metrics of the test rows."""
    split = split_of(data, cell.split, cell.seed)
    model = BASELINES[name](cell.seed).fit(data.X[split.fit], data.y[split.fit])
    return {"test": classifier_metrics(model, data, split.test)}


def run_fraud(data: Dataset, cell: Cell, *, name: str, with_validation: bool = False) -> Result:
    """A baseline on the frauds, fitted on the training rows, or on the validation rows with them."""
    split = split_of(data, cell.split, cell.seed)
    rows = split.fit if with_validation else split.train
    model = RARE_BASELINES[name].make(cell.seed).fit(data.X[rows], data.y[rows])
    fixed = 0.0 if hasattr(model, "decision_function") else 0.5
    return fraud_metrics(data, split, scores_of(model, data.X), fixed, rows)


def run_rare(data: Dataset, cell: Cell, *, name: str) -> Result:
    """A baseline with probabilities on rare events, fitted on training and validation rows."""
    split = split_of(data, cell.split, cell.seed)
    model = BASELINES[name](cell.seed).fit(data.X[split.fit], data.y[split.fit])
    return {"test": rare_metrics(model, data, split.test)}
