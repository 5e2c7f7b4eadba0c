r"""The gradient of the loss through any backend, by shifts of the angles of the circuit.

An expectation value is a trigonometric polynomial of every angle. A rotation occurs once, so the degree is 1 and two
circuits give the derivative:

.. math:: \partial_\theta f = \tfrac12\bigl(f(\theta + \tfrac\pi2) - f(\theta - \tfrac\pi2)\bigr)

The angle of a qubit's inputs occurs in each of R repetitions (1 without re-uploading), and the degree is R. Its
derivative needs as many circuits as shifts of the single places would, two for each, and no circuit of another form
(Wierichs et al., Quantum 6, 677, 2022):

.. math::

   \partial_\varphi f = \sum_{\mu=1}^{2R} \frac{(-1)^{\mu-1}}{4R\sin^2(x_\mu/2)}\,f(\varphi + x_\mu), \qquad
   x_\mu = \frac{(2\mu-1)\pi}{2R}

Inputs of one qubit add up, so one derivative by qubit gives those by all input scales. That of the read-out needs no
circuit but the one that is not shifted. So the gradient covers all that is trained, and is exact where the backend is:
also under noise, as long as that does not depend on the angles. Shot noise of variance σ² in every expectation value
becomes one of σ²/2 in a derivative by a rotation, and of (2R² + 1)/6·σ² in one by a qubit's angle.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from qmedoid.arrays import Array
from qmedoid.kernels.cross_entropy import cross_entropy, cross_entropy_value
from qmedoid.methods.variational.batches import BatchObjective
from qmedoid.methods.variational.expectations import expectations_of_settings
from qmedoid.methods.variational.model import Batch, ExpectationFunction, Network


class ShiftRule(NamedTuple):
    """Shifts of an angle, and the factors with which the shifted values add up to the derivative."""

    shifts: Array
    factors: Array


def shift_rule(degree: int) -> ShiftRule:
    """The rule for a trigonometric polynomial with whole frequencies up to `degree`: twice as many shifts.

    Examples
    --------
    >>> from qmedoid.methods.variational.parameter_shift import shift_rule
    >>> shift_rule(1).factors.round(12)
    array([ 0.5, -0.5])
    """
    number = np.arange(1, 2 * degree + 1)
    shifts = (2 * number - 1) * np.pi / (2 * degree)
    signs = 1.0 - 2.0 * ((number - 1) % 2)
    return ShiftRule(shifts, signs / (4 * degree * np.sin(shifts / 2) ** 2))


def gradient_circuits(network: Network, n_rows: int = 1) -> int:
    """Circuits that the loss of a number of rows and its gradient take: each row at every setting of the angles.

    Examples
    --------
    >>> from qmedoid.methods.variational.training import CircuitSettings
    >>> from qmedoid.methods.variational.parameter_shift import gradient_circuits
    >>> gradient_circuits(CircuitSettings(n_reps=2).network(n_inputs=3, n_classes=2), n_rows=10)
    310
    """
    return n_rows * (1 + 2 * _n_rotations(network) + 2 * _degree(network) * _n_input_qubits(network))


def measured_loss(network: Network, theta: Array, batch: Batch, backend: ExpectationFunction) -> float:
    """Weighted cross-entropy of the scores that a backend measures, by a circuit for every row."""
    scores = network.measured_scores(theta, batch.inputs, backend)
    scores = scores if batch.offset is None else scores + batch.offset
    return cross_entropy_value(scores, batch.codes, batch.weights)


def measured_loss_and_gradient(
    network: Network, theta: Array, batch: Batch, backend: ExpectationFunction
) -> tuple[float, Array]:
    """Weighted cross-entropy of the scores that a backend measures, and its gradient by parameter shift.

    Parameters
    ----------
    network : Network
    theta : ndarray
        Its parameters: rotations, learned scales and read-out.
    batch : Batch
        Rows, for each of which ``gradient_circuits(network)`` circuits are run.
    backend : callable (ansatz, rotations, inputs, observables) -> expectation values
        Given all settings in one call where it has ``by_row``.

    Returns
    -------
    loss : float
    gradient : ndarray like `theta`

    Notes
    -----
    With shots, derivatives of the expectation values are free of bias, and measured apart from the values at which the
    loss is differentiated. What bias there is comes from the curvature of the loss, and falls as 1/shots.
    """
    parts, inputs = network.split(theta), network.encoded(theta, batch.inputs)
    rotations, shifted = _settings(network, parts.rotations, inputs)
    measured = expectations_of_settings(backend, network.ansatz, rotations, shifted, network.readout.observables)
    values, measured = measured[0], measured[1:]
    scores = network.readout.scores(values, parts.readout)
    scores = scores if batch.offset is None else scores + batch.offset
    loss, by_scores = cross_entropy(scores, batch.codes, batch.weights)
    by_values, by_readout = network.readout.gradient(values, parts.readout, by_scores)
    # The derivative of the loss along every setting, row by row.
    along = np.einsum("snk,nk->sn", measured, by_values)
    n_rotations, n_places = _n_rotations(network), parts.rotations.size
    gradient = np.zeros(network.n_parameters)
    turned = along[: 2 * n_rotations].reshape(2, n_rotations, -1)
    gradient[:n_rotations] = 0.5 * (turned[0] - turned[1]).sum(axis=1)
    n_qubits = _n_input_qubits(network)
    if n_qubits:
        rule = shift_rule(_degree(network))
        by_angles = np.einsum("u,uqn->qn", rule.factors, along[2 * n_rotations :].reshape(-1, n_qubits, len(inputs)))
        by_inputs = by_angles[network.ansatz.input_qubits].T * batch.inputs
        gradient[n_places : n_places + network.ansatz.n_inputs] = by_inputs.sum(axis=0)
    gradient[network.n_parameters - len(by_readout) :] = by_readout
    return loss, gradient


def _settings(network: Network, rotations: Array, inputs: Array) -> tuple[Array, Array]:
    """Rotations (S, layers, n) and inputs (S, n_rows, m) at every setting: unshifted, rotations, angles of qubits."""
    n_rotations, n_qubits = _n_rotations(network), _n_input_qubits(network)
    rule = shift_rule(_degree(network))
    turns = np.zeros((2, n_rotations, rotations.size))
    for sign, turn in zip((1.0, -1.0), turns, strict=True):
        turn[:, :n_rotations] = sign * np.pi / 2 * np.eye(n_rotations)
    # A qubit's angle is shifted by its first input, wherever that enters.
    moves = rule.shifts[:, None, None] * np.eye(n_qubits, network.ansatz.n_inputs)
    n_moves = len(rule.shifts) * n_qubits
    turned = np.concatenate([np.zeros((1, rotations.size)), *turns, np.zeros((n_moves, rotations.size))])
    moved = np.zeros((len(turned), 1, network.ansatz.n_inputs))
    if n_moves:
        moved[-n_moves:, 0] = moves.reshape(n_moves, -1)
    return rotations + turned.reshape(-1, *rotations.shape), inputs + moved


def _n_rotations(network: Network) -> int:
    """Rotations with a derivative: a last layer of R_z, where it is kept, changes no expectation value."""
    layers, qubits = network.ansatz.weight_shape
    return (layers - network.ansatz.final_rz) * qubits


def _degree(network: Network) -> int:
    """How often the inputs enter the circuit."""
    return network.ansatz.n_reps if network.ansatz.reupload else 1


def _n_input_qubits(network: Network) -> int:
    """Qubits whose angle is differentiated: those with an input, where scales are learned."""
    return min(network.ansatz.n_qubits, network.ansatz.n_inputs) if network.learn_scales else 0


@dataclass(frozen=True)
class MeasuredObjective(BatchObjective):
    """The loss of a network on batches of a data set, as a backend measures it.

    Attributes
    ----------
    backend : callable
        An `ExpectationFunction`.
    """

    backend: ExpectationFunction = field(kw_only=True)

    def value(self, theta: Array, batch: Batch) -> float:
        """Loss on a batch, by a circuit for every row."""
        return measured_loss(self.network, theta, batch, self.backend)

    def value_and_gradient(self, theta: Array, batch: Batch) -> tuple[float, Array]:
        """Loss on a batch and its gradient by parameter shift."""
        return measured_loss_and_gradient(self.network, theta, batch, self.backend)
