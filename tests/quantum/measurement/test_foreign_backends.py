"""Backends of `measured_by` that return something else: nothing is decided by it."""

import numpy as np
import pytest

pytest.importorskip("qiskit", reason='needs Qiskit: pip install "qmedoid[quantum]"')
from sklearn.datasets import load_iris

from qmedoid import (
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    SavedModel,
    VariationalClassifier,
    compact_swap_test,
)
from qmedoid.exceptions import DataError, ModelError, ParameterError
from qmedoid.quantum import StatevectorExpectations

X, y = load_iris(return_X_y=True)
SIMPLE = {"n_medoids": 4, "n_neighbors": 0, "n_pairs": 1, "n_triples": 0, "cv": 2}


@pytest.fixture(scope="module")
def fitted():
    return {
        "evidence": EvidenceClassifier(**SIMPLE, random_state=0).fit(X, y),
        "nearest": NearestMedoidClassifier(max_passes=0, random_state=0).fit(X, y),
        "medoid": MedoidClassifier(method=EvidenceClassifier(**SIMPLE), random_state=0).fit(X, y),
        "variational": VariationalClassifier(n_qubits=2, n_steps=2, n_seeds=1, random_state=0).fit(X, y),
    }


@pytest.mark.parametrize("wrong", ["simulator", 5, [], VariationalClassifier])
@pytest.mark.parametrize("name", ["evidence", "nearest", "medoid", "variational"])
def test_what_cannot_be_called_is_refused_at_once(fitted, name, wrong):
    with pytest.raises(
        ParameterError, match=r"of measured_by must be callable, such as qmedoid\.quantum\..*Got .*device"
    ):
        fitted[name].measured_by(wrong)
    saved = SavedModel(fitted[name].model_)
    with pytest.raises(ParameterError, match="must be callable"):
        saved.measured_by(**{"expectations" if name == "variational" else "swap_test": wrong})


def changed(change):
    """The closed form with its overlaps changed."""
    return lambda rows, medoids: compact_swap_test(rows, medoids)._replace(
        overlap=change(compact_swap_test(rows, medoids).overlap)
    )


@pytest.mark.parametrize("name", ["evidence", "nearest", "medoid"])
@pytest.mark.parametrize(
    ("swap_test", "message"),
    [
        (changed(lambda overlap: overlap[:1, :1]), r"overlaps of shape \(1, 1\) instead of \("),
        (changed(lambda overlap: overlap[:1]), r"overlaps of shape \(1, \d+\) instead of \("),
        (changed(lambda overlap: np.where(overlap == overlap.max(), np.nan, overlap)), "overlaps that are no numbers"),
        (lambda rows, medoids: compact_swap_test(rows, medoids).overlap, "ndarray without an overlap"),
    ],
    ids=["one number", "one row", "NaN", "an array"],
)
def test_overlaps_of_another_kind_decide_nothing(fitted, name, swap_test, message):
    with pytest.raises(ModelError, match=message):
        fitted[name].measured_by(swap_test).predict(X[::30])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values[:1], r"of shape \(1, \d\) instead of \(5, "),
        (lambda values: values * np.nan, "expectation values that are no numbers"),
        (lambda values: values.T, "instead of"),
    ],
    ids=["one row", "NaN", "transposed"],
)
def test_expectation_values_of_another_kind_decide_nothing(fitted, change, message):
    measured = fitted["variational"].measured_by(lambda *asked: change(StatevectorExpectations()(*asked)))
    with pytest.raises(DataError, match=message):
        measured.predict(X[::30])
