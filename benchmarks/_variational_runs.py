"""The circuits, rows and trainings that the variational speed benchmark gives to every library."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from qmedoid.kernels.cross_entropy import cross_entropy
from qmedoid.methods.variational.ansatz import Ansatz
from qmedoid.methods.variational.model import Batch, Network
from qmedoid.methods.variational.readout import ReadoutKind, make_readout
from qmedoid.optimize.minimizers import Stopping, TrainingState, minimize_spsa

Array = npt.NDArray[np.float64]
Expectations = Callable[[Array, Array], Array]
"""From angles (rows, n) and rotations (layers, n) to the expectation values of the read-out, (rows, K)."""

BATCH_ROWS, STEPS = 256, 300
WEIGHTS = np.full(BATCH_ROWS, 1.0 / BATCH_ROWS)


def make_network(n_qubits: int, n_reps: int, readout: ReadoutKind) -> Network:
    """Two classes, one input for each qubit, inputs in every repetition."""
    ansatz = Ansatz(n_qubits, n_qubits, n_reps)
    return Network(ansatz, make_readout(readout, n_qubits, 2), np.ones(n_qubits), learn_scales=False)


def make_angles(n_rows: int, n_qubits: int) -> Array:
    return np.random.default_rng(n_qubits).uniform(0.0, np.pi, size=(n_rows, n_qubits))


def make_codes(angles: Array) -> npt.NDArray[np.intp]:
    """Two classes that the first angle tells apart."""
    return (angles[:, 0] > 1.5).astype(np.intp)


def make_batch(angles: Array, codes: npt.NDArray[np.intp], rng: np.random.Generator) -> Batch:
    """Rows at random, all with the same weight."""
    rows = rng.integers(0, len(angles), size=BATCH_ROWS)
    return Batch(angles.take(rows, axis=0), codes[rows], WEIGHTS)


class Training:
    """A loss for the minimizer; expectation values come from the network itself or from another library."""

    def __init__(self, network: Network, expectations: Expectations | None = None) -> None:
        self.network, self.expectations = network, expectations
        self.angles = make_angles(2000, network.ansatz.n_qubits)
        self.codes = make_codes(self.angles)

    def draw(self, rng: np.random.Generator) -> Batch:
        return make_batch(self.angles, self.codes, rng)

    def value(self, theta: Array, batch: Batch) -> float:
        if self.expectations is None:
            return self.network.loss(theta, batch)
        parts = self.network.split(theta)
        scores = self.network.readout.scores(self.expectations(batch.inputs, parts.rotations), parts.readout)
        return cross_entropy(scores, batch.codes, batch.weights)[0]

    def run(self, steps: int = STEPS) -> Array:
        """Batch losses of a training by SPSA, two evaluations a step."""
        state = TrainingState(self.network.start(np.random.default_rng(0)), np.random.default_rng(1))
        return minimize_spsa(self, state, Stopping(steps, average=0.0))[1]
