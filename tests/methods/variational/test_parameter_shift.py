"""The gradient by parameter shift is the exact one: of the simulator to rounding, of a noisy device by differences."""

import numpy as np
import pytest
from noisy_circuit import NoisyDevice

from qmedoid.exceptions import DataError
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.methods.variational.batches import batch_objective
from qmedoid.methods.variational.expectations import exact_expectations, expectations_of_settings
from qmedoid.methods.variational.model import Batch, Network
from qmedoid.methods.variational.parameter_shift import (
    MeasuredObjective,
    gradient_circuits,
    measured_loss,
    measured_loss_and_gradient,
    shift_rule,
)
from qmedoid.methods.variational.readout import READOUT_KINDS, make_readout


def make(kind="strings", n_qubits=2, n_inputs=3, n_reps=3, n_classes=2, *, learn_scales=True, **ansatz):
    scales = np.linspace(0.5, 1.5, n_inputs)
    circuit = Ansatz(n_qubits, n_inputs, n_reps, **ansatz)
    return Network(circuit, make_readout(kind, n_qubits, n_classes), scales, learn_scales)


def random_case(network, seed=0, rows=5, *, offset=True):
    rng = np.random.default_rng(seed)
    n_classes = network.readout.n_classes
    batch = Batch(
        rng.uniform(-1.5, 1.5, (rows, network.ansatz.n_inputs)),
        rng.integers(0, n_classes, rows),
        rng.uniform(0.1, 1.0, rows),
        rng.normal(size=(rows, n_classes)) if offset else None,
    )
    return rng.normal(size=network.n_parameters), batch


class Rowwise:
    """A backend that takes the rotations of every row, and counts its calls."""

    def __init__(self):
        self.calls = []

    def __call__(self, *_):
        raise AssertionError("all settings fit into one call")

    def by_row(self, ansatz, rotations, inputs, observables, /):
        self.calls.append(len(inputs))
        rows = [exact_expectations(ansatz, r, x[None], observables) for r, x in zip(rotations, inputs, strict=True)]
        return np.concatenate(rows)


@pytest.mark.parametrize("degree", range(1, 8))
def test_rule_differentiates_trigonometric_polynomials(degree):
    rng = np.random.default_rng(degree)
    cosines, sines, at = rng.normal(size=degree + 1), rng.normal(size=degree + 1), 0.7
    frequencies = np.arange(degree + 1)
    rule = shift_rule(degree)
    assert len(rule.shifts) == 2 * degree
    angles = (at + rule.shifts)[:, None] * frequencies
    values = np.cos(angles) @ cosines + np.sin(angles) @ sines
    want = frequencies @ (sines * np.cos(at * frequencies) - cosines * np.sin(at * frequencies))
    assert rule.factors @ values == pytest.approx(want, abs=1e-10)
    # What shot noise becomes.
    assert rule.factors @ rule.factors == pytest.approx((2 * degree**2 + 1) / 6)


@pytest.mark.parametrize("kind", READOUT_KINDS)
@pytest.mark.parametrize("reupload", [False, True])
@pytest.mark.parametrize(("n_qubits", "n_inputs", "n_reps"), [(1, 1, 1), (1, 3, 4), (2, 3, 3), (3, 2, 2), (4, 4, 3)])
def test_exact_values_give_the_gradient_of_the_simulator(kind, reupload, n_qubits, n_inputs, n_reps):
    for final_rz, learn_scales in ((False, True), (True, True), (True, False)):
        network = make(
            kind, n_qubits, n_inputs, n_reps, learn_scales=learn_scales, reupload=reupload, final_rz=final_rz
        )
        theta, batch = random_case(network, seed=n_qubits)
        want_loss, want = network.loss_and_gradient(theta, batch)
        loss, gradient = measured_loss_and_gradient(network, theta, batch, exact_expectations)
        assert loss == pytest.approx(want_loss, rel=1e-12)
        np.testing.assert_allclose(gradient, want, rtol=0, atol=1e-10)
        assert measured_loss(network, theta, batch, exact_expectations) == pytest.approx(want_loss, rel=1e-12)


def test_three_classes_without_an_offset():
    network = make(n_classes=3)
    theta, batch = random_case(network, offset=False)
    want = network.loss_and_gradient(theta, batch)[1]
    np.testing.assert_allclose(
        measured_loss_and_gradient(network, theta, batch, exact_expectations)[1], want, atol=1e-10
    )


@pytest.mark.parametrize("reupload", [False, True])
def test_gradient_is_exact_under_noise(reupload):
    """Against central differences of the loss on a device with depolarized gates and read-out errors."""
    network, device = make(n_reps=2, reupload=reupload), NoisyDevice(rate=0.1, misread=0.05)
    theta, batch = random_case(network)
    step, gradient = 1e-5, measured_loss_and_gradient(network, theta, batch, device)[1]
    for place, derivative in enumerate(gradient):
        aside = step * np.eye(len(theta))[place]
        up, down = (measured_loss(network, theta + sign * aside, batch, device) for sign in (1, -1))
        assert derivative == pytest.approx((up - down) / (2 * step), abs=1e-6)
    # Noise changes the gradient: the simulator's would not do.
    assert np.abs(gradient - network.loss_and_gradient(theta, batch)[1]).max() > 0.01


@pytest.mark.parametrize("learn_scales", [False, True])
@pytest.mark.parametrize("reupload", [False, True])
@pytest.mark.parametrize("final_rz", [False, True])
def test_number_of_circuits_is_known_before(learn_scales, reupload, final_rz):
    network, device = make(learn_scales=learn_scales, reupload=reupload, final_rz=final_rz), NoisyDevice()
    theta, batch = random_case(network, rows=4)
    measured_loss_and_gradient(network, theta, batch, device)
    # Ten rotations with a derivative, two qubits with inputs in three repetitions or in one.
    inputs = 2 * 2 * (3 if reupload else 1) if learn_scales else 0
    assert device.rows == gradient_circuits(network, 4) == 4 * (1 + 2 * 10 + inputs)


def test_all_settings_go_into_one_call_of_a_backend_that_takes_them():
    network, backend = make(), Rowwise()
    theta, batch = random_case(network)
    gradient = measured_loss_and_gradient(network, theta, batch, backend)[1]
    assert backend.calls == [gradient_circuits(network, len(batch.codes))]
    np.testing.assert_allclose(gradient, network.loss_and_gradient(theta, batch)[1], atol=1e-10)


def test_shots_scatter_around_the_exact_gradient():
    """Mean over draws within five of its standard errors, for every parameter of the circuit."""
    network = make("strings", 2, 2, 2)
    theta, batch = random_case(network, rows=2)
    device = NoisyDevice(rate=0.0, misread=0.0, shots=2000, seed=3)
    drawn = np.array([measured_loss_and_gradient(network, theta, batch, device)[1] for _ in range(25)])
    error = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    assert (error > 0).all()
    assert (np.abs(drawn.mean(axis=0) - network.loss_and_gradient(theta, batch)[1]) < 5 * error).all()


def test_objective_draws_the_batches_of_the_simulator():
    network = make()
    theta, rows = random_case(network, rows=30, offset=False)
    plain = batch_objective(network, rows, np.ones(2), 8, "importance")
    measured = MeasuredObjective(network, rows, plain.draw_rows, backend=exact_expectations)
    batch, other = plain.draw(np.random.default_rng(1)), measured.draw(np.random.default_rng(1))
    np.testing.assert_array_equal(batch.inputs, other.inputs)
    assert measured.value(theta, other) == pytest.approx(plain.value(theta, batch), rel=1e-12)
    np.testing.assert_allclose(
        measured.value_and_gradient(theta, other)[1], plain.value_and_gradient(theta, batch)[1], atol=1e-10
    )


def test_values_of_another_shape_are_refused():
    network = make()
    theta, batch = random_case(network)
    with pytest.raises(DataError, match=r"gave expectation values of shape \(\d+, 1\) instead of \(\d+, 3\)"):
        measured_loss_and_gradient(network, theta, batch, lambda *args: np.zeros((len(args[2]), 1)))


def test_settings_are_measured_each_with_its_rotations_and_inputs():
    ansatz, rng = Ansatz(2, 2, 2), np.random.default_rng(0)
    rotations, inputs = rng.normal(size=(3, *ansatz.weight_shape)), rng.normal(size=(3, 4, 2))
    found = expectations_of_settings(exact_expectations, ansatz, rotations, inputs, np.eye(4))
    assert found.shape == (3, 4, 4)
    for place in range(3):
        want = exact_expectations(ansatz, rotations[place], inputs[place], np.eye(4))
        np.testing.assert_array_equal(found[place], want)
    np.testing.assert_allclose(
        expectations_of_settings(Rowwise(), ansatz, rotations, inputs, np.eye(4)), found, atol=1e-12
    )
