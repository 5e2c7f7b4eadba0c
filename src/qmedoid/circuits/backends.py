"""Ways to run the compact SWAP test circuit, each called like the closed form: ``backend(X, Y)``.

Every pair of a row of X and a row of Y is one circuit, and the norms are known beforehand. A pair with a zero vector
has no circuit and takes the value that :func:`~qmedoid.geometry.overlap.compact_swap_test` gives it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from qiskit.quantum_info import Statevector

from qmedoid.arrays import Array
from qmedoid.circuits._sampling import Sampling
from qmedoid.circuits.compact_swap import compact_swap_angles, compact_swap_circuit, compact_swap_template
from qmedoid.geometry.overlap import (
    AngleKind,
    SwapTest,
    check_angle_kind,
    compact_swap_test,
    from_overlap,
    row_norms,
)

Pairs = list[tuple[Array, Array]]


@dataclass(frozen=True)
class StatevectorSwapTest:
    """The circuit's exact expectation, from its statevector.

    The overlap is the difference of two probabilities and so is known to about 1e-15. For vectors that nearly
    coincide this leaves the distance uncertain by about 1e-7·√Z; the closed form has no such limit.

    Parameters
    ----------
    angle : {"true", "printed"}
        As in :func:`~qmedoid.geometry.overlap.compact_swap_test`.
    """

    angle: AngleKind = "true"

    def __post_init__(self) -> None:
        check_angle_kind(self.angle)

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        return _by_circuit(X, Y, self.angle, lambda pairs: np.array([_probability_of_zero(x, y) for x, y in pairs]))


@dataclass(frozen=True, kw_only=True)
class SamplerSwapTest(Sampling):
    """The circuit run for a number of shots through a sampler, a simulator's or a machine's.

    One template circuit serves all pairs; each job is given the rotation angles of up to `pairs_per_job` of them.

    Parameters
    ----------
    shots : int
        Measurements of the ancilla per pair.
    angle : {"true", "printed"}
        As in :func:`~qmedoid.geometry.overlap.compact_swap_test`.
    sampler : BaseSamplerV2 or None
        Whose ``run([(circuit, angles)], shots=shots)`` takes the measurements. None stands for
        ``qiskit.primitives.StatevectorSampler``.
    seed : int, numpy.random.Generator or None
        Source of randomness of the default sampler, and required for it. A sampler passed in brings its own.
    pass_manager : PassManager or None
        Rewrites the template for the machine at hand, once per call. None leaves its gates as they are: ry, cx, h
        and cswap, which the simulators know.
    pairs_per_job : int
        Pairs of rows sent in one job.
    on_job : callable or None
        Called as ``on_job(done, total)`` with numbers of pairs after each job.

    Notes
    -----
    A sampler that starts afresh from one seed in every job repeats its noise from job to job (Aer does, given
    ``seed``); ``StatevectorSampler(seed=int)`` repeats it from pair to pair. The default sampler does neither.
    """

    angle: AngleKind = "true"
    pairs_per_job: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_angle_kind(self.angle)
        self._check_count("pairs_per_job")

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        return _by_circuit(X, Y, self.angle, self._share_of_zeros)

    def _share_of_zeros(self, pairs: Pairs) -> Array:
        def angles(start: int, stop: int) -> Array:
            return np.stack([compact_swap_angles(x, y) for x, y in pairs[start:stop]])

        template = compact_swap_template(len(pairs[0][0]))
        shares = []
        for outcome in self._outcomes(template, angles, len(pairs), self.pairs_per_job):
            ones = outcome.bitcount().sum(axis=-1, dtype=np.int64)
            shares.append((outcome.num_shots - ones) / outcome.num_shots)
        return np.concatenate(shares)


def _probability_of_zero(x: Array, y: Array) -> float:
    """Probability that the ancilla, the first qubit of the circuit, reads 0."""
    return float(Statevector(compact_swap_circuit(x, y, measure=False)).probabilities([0])[0])


def _by_circuit(X: npt.ArrayLike, Y: npt.ArrayLike, angle: AngleKind, measure: Callable[[Pairs], Array]) -> SwapTest:
    """Let `measure` find p0 for the pairs that can be prepared; the others keep the classical values."""
    classical = compact_swap_test(X, Y, angle=angle)
    left, right = (np.atleast_2d(np.asarray(rows, dtype=np.float64)) for rows in (X, Y))
    x_norms, y_norms = row_norms(left), row_norms(right)
    prepared = (x_norms > 0)[:, None] & (y_norms > 0)[None, :]
    overlap = classical.overlap.copy()
    if prepared.any():
        p0 = measure([(left[i], right[j]) for i, j in np.argwhere(prepared)])
        overlap[prepared] = np.clip(2.0 * p0 - 1.0, 0.0, 1.0)
    measured = from_overlap(overlap, x_norms, y_norms, angle=angle)
    return SwapTest(*(np.where(prepared, m, c) for m, c in zip(measured, classical, strict=True)))
