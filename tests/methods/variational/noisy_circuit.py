"""A small device with noise, simulated by density matrices: depolarized gates and read-out errors."""

from dataclasses import dataclass

import numpy as np

from qmedoid.kernels.statevector import entangler


def _turned(rho, qubit, n, matrices):
    """Apply a matrix for each row (rows, 2, 2), or one for all, to a qubit, from the left and from the right."""
    low, high = 2**qubit, 2 ** (n - qubit - 1)
    shape = (len(rho), high, 2, low, high, 2, low)
    matrices = np.broadcast_to(matrices, (len(rho), 2, 2))
    split = rho.reshape(shape)
    turned = np.einsum("rab,rxbyzcw,rdc->rxayzdw", matrices, split, matrices.conj(), optimize=True)
    return turned.reshape(rho.shape)


def _mixed(rho, qubit, n, rate):
    """Replace the state of a qubit by the even mixture, with some probability."""
    low, high = 2**qubit, 2 ** (n - qubit - 1)
    split = rho.reshape(len(rho), high, 2, low, high, 2, low)
    half = 0.5 * np.einsum("rxayzaw->rxyzw", split)
    mixed = (1.0 - rate) * split
    mixed[:, :, 0, :, :, 0] += rate * half
    mixed[:, :, 1, :, :, 1] += rate * half
    return mixed.reshape(rho.shape)


def _y(angles):
    c, s = np.cos(np.asarray(angles) / 2), np.sin(np.asarray(angles) / 2)
    return np.moveaxis(np.array([[c, -s], [s, c]]), (0, 1), (-2, -1)).astype(complex)


def _z(angle):
    return np.diag(np.exp([-0.5j * angle, 0.5j * angle]))


@dataclass
class NoisyDevice:
    """An `ExpectationFunction`: each qubit is depolarized after every entangling step, and bits are read wrongly.

    Without shots the values are exact expectations under noise. `rows` counts the circuits that were run.
    """

    rate: float = 0.05
    misread: float = 0.03
    shots: int | None = None
    seed: int = 0
    rows: int = 0

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)

    def __call__(self, ansatz, rotations, inputs, observables, /):
        n, angles = ansatz.n_qubits, ansatz.qubit_angles(np.asarray(inputs, dtype=float))
        self.rows += len(angles)
        rho = np.zeros((len(angles), 2**n, 2**n), dtype=complex)
        rho[:, 0, 0] = 1.0
        source, sign = entangler(n)
        signs = sign[:, None] * sign[None, :]
        for rep in range(ansatz.n_reps):
            if rep == 0 or ansatz.reupload:
                for q in range(n):
                    rho = _turned(rho, q, n, _y(angles[:, q]))
            rho = signs * rho[:, source][:, :, source]
            for q in range(n):
                rho = _mixed(rho, q, n, self.rate)
                rho = _turned(rho, q, n, _y(rotations[2 * rep][q]))
                if 2 * rep + 1 < len(rotations):
                    rho = _turned(rho, q, n, _z(rotations[2 * rep + 1][q]))
        shares = np.einsum("rss->rs", rho).real
        for q in range(n):
            flipped = shares[:, np.arange(2**n) ^ (1 << q)]
            shares = (1 - self.misread) * shares + self.misread * flipped
        if self.shots is not None:
            shares = np.clip(shares, 0.0, None)
            shares = self.rng.multinomial(self.shots, shares / shares.sum(axis=1, keepdims=True)) / self.shots
        return shares @ np.asarray(observables).T
