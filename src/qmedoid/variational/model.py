"""The variational model: features to angles, a trained circuit, class scores (algorithms 14, 15 and 17)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.variational.angles import AngleMap
from qmedoid.variational.network import ExpectationFunction, Network, Parameters

# Rows per block: enough to keep the simulator's threads busy, few enough that temporaries stay small.
_BLOCK_ROWS = 2**16
# Amplitudes per block where states are kept to be sampled.
_BLOCK_AMPLITUDES = 2**20


@dataclass(frozen=True)
class VariationalModel:
    """A trained variational quantum classifier.

    Attributes
    ----------
    angle_map : AngleMap
        Of the m features, fitted on training rows.
    network : Network
        The circuit and its read-out.
    theta : ndarray
        Their parameters.
    """

    angle_map: AngleMap
    network: Network
    theta: Array

    @property
    def parameters(self) -> Parameters:
        """The parameters by what they do: rotations, input scales, read-out."""
        return self.network.split(self.theta)

    def scores(self, features: Array, offset: Array | None = None, *, threads: int | None = None) -> Array:
        """Class scores, shape (n, C); the largest decides. An offset (n, C) is what the circuit corrects."""
        self._check_width(features)
        scores = np.empty((len(features), self.network.readout.n_classes))
        for start in range(0, len(features), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            scores[rows] = self.network.scores(self.theta, self.angle_map.apply(features[rows]), threads=threads)
        return scores if offset is None else scores + offset

    def sampled_scores(
        self, features: Array, offset: Array | None = None, *, shots: int, rng: np.random.Generator
    ) -> Array:
        """Class scores from so many measurements of every record's circuit."""
        self._check_width(features)
        scores = np.empty((len(features), self.network.readout.n_classes))
        # The states themselves are held, so the blocks are smaller; rows are drawn in order, whatever their size.
        step = max(1, _BLOCK_AMPLITUDES >> self.network.ansatz.n_qubits)
        for start in range(0, len(features), step):
            rows = slice(start, start + step)
            angles = self.angle_map.apply(features[rows])
            scores[rows] = self.network.sampled_scores(self.theta, angles, shots=shots, rng=rng)
        return scores if offset is None else scores + offset

    def probabilities(self, features: Array, offset: Array | None = None) -> Array:
        """Class probabilities, shape (n, C)."""
        probabilities: Array = np.exp(log_softmax(self.scores(features, offset)))
        return probabilities

    def encoded(self, features: Array) -> Array:
        """What enters the circuit for every record, λ_j·a_j, shape (n, m)."""
        return self.angle_map.apply(features) * self.parameters.scales

    def _check_width(self, features: npt.NDArray[Any]) -> None:
        m = self.network.ansatz.n_inputs
        if features.ndim != 2 or features.shape[1] != m:
            raise DataError(f"The circuit takes {m} features. Got a table of shape {features.shape} instead.")


@dataclass(frozen=True)
class MeasuredVariational:
    """A variational model whose circuits are run by another backend than the simulator."""

    model: VariationalModel
    backend: ExpectationFunction

    def scores(self, features: Array, offset: Array | None = None) -> Array:
        """Class scores, shape (n, C); the largest decides."""
        angles = self.model.angle_map.apply(features)
        scores: Array = self.model.network.measured_scores(self.model.theta, angles, self.backend)
        return scores if offset is None else scores + offset

    def encoded(self, features: Array) -> Array:
        """What enters the circuit for every record, λ_j·a_j, shape (n, m)."""
        return self.model.encoded(features)
