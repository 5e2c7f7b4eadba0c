"""Ansatz and read-out as one function of a parameter vector: scores, loss and exact gradient."""

from itertools import product

import numpy as np
import pytest
from dense_circuit import dense_expectations

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.methods.variational.model import Batch, Network
from qmedoid.methods.variational.readout import READOUT_KINDS, make_readout


def make(kind="strings", n_qubits=3, n_inputs=4, n_reps=2, n_classes=2, network=None, **ansatz):
    return Network(
        Ansatz(n_qubits, n_inputs, n_reps, **ansatz),
        make_readout(kind, n_qubits, n_classes),
        np.linspace(0.5, 1.5, n_inputs),
        **(network or {}),
    )


def random_theta(network, seed=0):
    rng = np.random.default_rng(seed)
    theta = rng.normal(size=network.n_parameters)
    network.split(theta).rotations[:] = rng.uniform(-np.pi, np.pi, network.ansatz.weight_shape)
    return theta


def random_batch(network, seed=0, rows=6, offset=False):
    rng = np.random.default_rng(seed)
    c = network.readout.n_classes
    weights = rng.uniform(0.5, 2, rows)
    return Batch(
        rng.uniform(-np.pi / 2, np.pi / 2, (rows, network.ansatz.n_inputs)),
        rng.integers(c, size=rows),
        weights / weights.sum(),
        rng.normal(size=(rows, c)) if offset else None,
    )


# --- scores ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reupload", [False, True])
@pytest.mark.parametrize("kind", READOUT_KINDS)
@pytest.mark.parametrize("n_qubits", range(1, 7))
def test_scores_are_those_of_the_dense_matrices(n_qubits, kind, reupload):
    for n_inputs, final_rz in ((max(1, n_qubits - 1), False), (n_qubits + 2, True)):
        network = make(kind, n_qubits, n_inputs, reupload=reupload, final_rz=final_rz)
        theta, inputs = random_theta(network), random_batch(network, rows=2).inputs
        rotations, scales, readout = network.split(theta)
        dense = dense_expectations(network.ansatz, rotations, inputs * scales, network.readout.observables)
        want = network.readout.scores(dense, readout)
        np.testing.assert_allclose(network.scores(theta, inputs), want, rtol=0, atol=1e-12)
        # The same matrices as a backend: scales, rotations and read-out reach it unchanged.
        np.testing.assert_array_equal(network.measured_scores(theta, inputs, dense_expectations), want)


# --- loss and gradient ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "n_classes"), [("parity", 2), ("direct", 3), ("strings", 2), ("strings", 3)])
@pytest.mark.parametrize(
    ("reupload", "final_rz", "learn_scales", "offset"),
    [*product([False, True], [False, True], [True], [True]), (True, False, False, False)],
)
def test_gradients_are_central_differences(kind, n_classes, reupload, final_rz, learn_scales, offset):
    network = make(
        kind, n_classes=n_classes, network={"learn_scales": learn_scales}, reupload=reupload, final_rz=final_rz
    )
    theta, batch = random_theta(network, 3), random_batch(network, 4, offset=offset)
    loss, gradient = network.loss_and_gradient(theta, batch)
    assert loss == pytest.approx(network.loss(theta, batch), rel=1e-13)
    assert gradient.shape == theta.shape
    steps = 1e-5 * np.eye(len(theta))
    want = [(network.loss(theta + step, batch) - network.loss(theta - step, batch)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, want, rtol=0, atol=1e-7)
    for part in network.split(gradient) if learn_scales else (network.split(gradient).rotations,):
        assert part.size == 0 or np.abs(part).max() > 1e-4


@pytest.mark.parametrize("n_inputs", [1, 2, 7])
def test_gradients_by_scales_when_qubits_share_inputs_or_have_none(n_inputs):
    network = make(n_inputs=n_inputs)
    theta, batch = random_theta(network), random_batch(network)
    gradient = network.loss_and_gradient(theta, batch)[1]
    steps = 1e-5 * np.eye(len(theta))
    want = [(network.loss(theta + step, batch) - network.loss(theta - step, batch)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, want, rtol=0, atol=1e-7)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("kind", READOUT_KINDS)
def test_single_precision_is_within_1e_5_of_double(kind, offset):
    double, single = make(kind), make(kind, network={"precision": "float32"})
    theta, batch = random_theta(double, 5), random_batch(double, 6, rows=50, offset=offset)
    p, q = (np.exp(log_softmax(n.scores(theta, batch.inputs).astype(float))) for n in (double, single))
    assert single.scores(theta, batch.inputs).dtype == np.float32
    np.testing.assert_allclose(q, p, rtol=0, atol=1e-5)
    assert not np.array_equal(p, q)
    (loss, gradient), (got_loss, got_gradient) = (n.loss_and_gradient(theta, batch) for n in (double, single))
    assert got_loss == pytest.approx(loss, abs=1e-5)
    assert got_gradient.dtype == np.float64
    # The direct read-out divides by probabilities of single basis states, which may be small.
    np.testing.assert_allclose(got_gradient, gradient, rtol=0, atol=1e-4 if kind == "direct" else 1e-5)


def test_offset_adds_to_the_scores():
    """With an offset the network corrects a decision: its own scores zero, the loss is that of the offset."""
    network = make()
    theta, batch = random_theta(network), random_batch(network, offset=True)
    network.split(theta).readout[:] = 0.0
    want = -batch.weights @ log_softmax(batch.offset)[np.arange(6), batch.codes]
    assert network.loss(theta, batch) == pytest.approx(want, rel=1e-13)
    assert network.loss(theta, batch._replace(offset=None)) == pytest.approx(np.log(2), rel=1e-13)


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_loss_and_gradient_are_finite_where_no_class_state_is_ever_measured(precision):
    """Fact 17: both qubits turned to |11⟩, and the three classes are the other basis states."""
    network = make("direct", 2, 2, 1, n_classes=3, network={"precision": precision, "learn_scales": False})
    theta = np.array([np.pi, np.pi])
    inputs = np.zeros((4, 2))
    np.testing.assert_allclose(np.exp(log_softmax(network.scores(theta, inputs))), 1 / 3, rtol=1e-6)
    loss, gradient = network.loss_and_gradient(theta, Batch(inputs, np.array([0, 1, 2, 0]), np.full(4, 0.25)))
    assert loss == pytest.approx(np.log(3), rel=1e-6)
    assert np.isfinite(gradient).all()


# --- parameters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learn_scales", [False, True])
def test_vector_is_rotations_scales_and_read_out(learn_scales):
    network = make(n_classes=3, network={"learn_scales": learn_scales})
    theta = np.arange(network.n_parameters, dtype=float)
    rotations, scales, readout = network.split(theta)
    assert rotations.shape == network.ansatz.weight_shape
    assert readout.shape == (3 * (1 + 7),)
    own = [rotations.ravel(), scales, readout] if learn_scales else [rotations.ravel(), readout]
    np.testing.assert_array_equal(np.concatenate(own), theta)
    if not learn_scales:
        np.testing.assert_array_equal(scales, network.scales)


def test_training_starts_small_with_the_scales_as_given():
    network = make(n_qubits=6, n_reps=5)
    first, again = (network.start(np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(network.split(first).scales, network.scales)
    assert network.split(first).rotations.std() == pytest.approx(0.1, rel=0.5)
    wide = network.start(np.random.default_rng(1), spread=1.0)
    np.testing.assert_allclose(network.split(wide).rotations, 10 * network.split(first).rotations, rtol=1e-12)


def test_vectors_and_rows_of_another_size_are_refused():
    network = make()
    theta = random_theta(network)
    for wrong in (theta[:-1], np.append(theta, 0.0), theta[None]):
        with pytest.raises(ParameterError, match=rf"one vector of {len(theta)} numbers\. Got shape"):
            network.scores(wrong, np.zeros((2, 4)))
    for inputs in (np.zeros((2, 1)), np.zeros((2, 5)), np.zeros(4)):
        for run in (network.scores, lambda t, i: network.measured_scores(t, i, dense_expectations)):
            with pytest.raises(DataError, match=r"must be of shape \(rows, 4\)\. Got shape"):
                run(theta, inputs)
