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
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.quantum import (
    Device,
    SamplerExpectations,
    SamplerSwapTest,
    StatevectorExpectations,
    StatevectorSwapTest,
    compact_swap_circuit,
    interference_circuit,
    variational_circuit,
)

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
        (changed(lambda overlap: overlap * 0 + 7.0), "overlaps beyond -1 to 1, such as 7: an overlap"),
        (changed(lambda overlap: overlap * 0 - 3.0), "overlaps beyond -1 to 1, such as -3: an overlap"),
        (changed(lambda overlap: np.where(overlap == overlap.max(), 1.01, overlap)), "overlaps beyond .* as 1.01"),
        (changed(lambda overlap: overlap + 0j), "as overlap holds complex numbers.*: return real ones"),
    ],
    ids=["one number", "one row", "NaN", "an array", "seven", "minus three", "a little beyond", "complex"],
)
def test_overlaps_of_another_kind_decide_nothing(fitted, name, swap_test, message):
    with pytest.raises((ModelError, DataError), match=message):
        fitted[name].measured_by(swap_test).predict(X[::30])


@pytest.mark.parametrize("name", ["evidence", "nearest", "medoid"])
def test_overlaps_that_shots_read_below_zero_are_taken(fitted, name):
    measured = fitted[name].measured_by(changed(lambda overlap: overlap - 0.1)).predict(X[::30])
    assert len(measured) == 5


@pytest.mark.parametrize("as_saved", [False, True])
def test_backends_of_the_other_kind_are_found_out_before_any_work(fitted, as_saved):
    def measured_by(name, **backends):
        model = SavedModel(fitted[name].model_) if as_saved else super(VariationalClassifier, fitted[name]) \
            if name == "variational" else fitted[name]  # fmt: skip
        return model.measured_by(**backends)

    called = r"parameter of measured_by is called with \(.*SWAP tests go to 'swap_test', backends of expectation"
    for swap_test in (StatevectorExpectations(), SamplerExpectations(seed=0), lambda rows: rows):
        with pytest.raises(ParameterError, match=called):
            measured_by("evidence", swap_test=swap_test)
    for expectations in (StatevectorSwapTest(), SamplerSwapTest(seed=0), compact_swap_test):
        with pytest.raises(ParameterError, match=called):
            measured_by("variational", expectations=expectations)
    with pytest.raises(ParameterError, match="no trained circuit that 'expectations' could run: leave it out"):
        measured_by("evidence", expectations=StatevectorExpectations())
    with pytest.raises(ParameterError, match="circuit alone, and has no distances that a 'swap_test' could measure"):
        measured_by("variational", swap_test=compact_swap_test)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values + 1.5, "beyond the eigenvalues of their observables, such as "),
        (lambda values: values + 0j, "holds complex numbers"),
        (lambda values: values[:1], r"of shape \(1, \d\) instead of \(5, "),
        (lambda values: values * np.nan, "expectation values that are no numbers"),
        (lambda values: values.T, "instead of"),
    ],
    ids=["beyond", "complex", "one row", "NaN", "transposed"],
)
def test_expectation_values_of_another_kind_decide_nothing(fitted, change, message):
    measured = fitted["variational"].measured_by(lambda *asked: change(StatevectorExpectations()(*asked)))
    with pytest.raises(DataError, match=message):
        measured.predict(X[::30])


@pytest.mark.parametrize(
    "call",
    [
        compact_swap_circuit,
        interference_circuit,
        lambda x, y: compact_swap_test([x], [y]),
        lambda x, y: StatevectorSwapTest()([x], [y]),
        lambda x, y: SamplerSwapTest(seed=0)([y], [x]),
        lambda x, _: variational_circuit(Ansatz(n_qubits=2, n_inputs=2, n_reps=1), inputs=x),
        lambda x, _: StatevectorExpectations()(
            Ansatz(n_qubits=2, n_inputs=2, n_reps=1), np.zeros((1, 2)), [x], np.eye(4)
        ),
    ],
)
def test_complex_vectors_are_refused_in_one_sentence_and_no_part_of_them_is_lost(call):
    for x in (np.array([1.0 + 2.0j, 0.5]), [1.0j, 2.0]):
        with pytest.raises(DataError, match=r"holds complex numbers, and imaginary parts would be lost: numpy.hstack"):
            call(x, [1.0, 1.0])
    with pytest.raises(DataError, match="is no array of real numbers"):
        call(["1", "two"], [1.0, 1.0])
    # What the sentence advises keeps distances.
    x, y = np.array([[1.0 + 2.0j, 0.5]]), np.array([[0.3j, -1.0]])
    distance = compact_swap_test(*(np.hstack([one.real, one.imag]) for one in (x, y))).distance
    np.testing.assert_allclose(distance, np.linalg.norm(x - y), rtol=1e-12)


def test_seed_and_qubits_of_a_given_device_are_its_own(fitted):
    """Repeats with other seeds would scatter by exactly 0 if the device's seed were taken in silence."""
    model, device = fitted["evidence"], Device(n_qubits=6, seed=3)
    for name, value in (("seed", 1), ("n_qubits", 40)):
        with pytest.raises(ParameterError, match=rf"{name}={value} was given with a Device whose own is [36]: leave"):
            model.measurement_plan(X[:3], device, **{name: value})
    plan = model.measurement_plan(X[:3], device, shots=64)
    assert plan.settings.seed == plan.device.seed == 3
    margins = [
        model.measurement_plan(X[:3], Device(n_qubits=6, seed=seed), shots=64).run().decided.margins
        for seed in range(3)
    ]
    assert (np.std(margins, axis=0) > 0).all()
    same = model.measurement_plan(X[:3], shots=64, n_qubits=6, seed=3).run()
    np.testing.assert_array_equal(plan.run().decided.margins, same.decided.margins)
