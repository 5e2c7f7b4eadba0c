"""Ways to run the compact SWAP test circuit, each called like the closed form: ``backend(X, Y)``.

Every pair of a row of X and a row of Y is one circuit, and the norms are known beforehand. A pair with a zero vector
has no circuit and takes the value that :func:`~qmedoid.geometry.overlap.compact_swap_test` gives it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from qiskit import QuantumCircuit
from qiskit.primitives import BaseSamplerV2, StatevectorSampler
from qiskit.quantum_info import Statevector
from qiskit.transpiler import PassManager

from qmedoid.circuits.compact_swap import OUTCOME, compact_swap_angles, compact_swap_circuit, compact_swap_template
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.overlap import (
    AngleKind,
    Array,
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
class SamplerSwapTest:
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

    shots: int = 1024
    angle: AngleKind = "true"
    sampler: BaseSamplerV2 | None = None
    seed: int | np.random.Generator | None = None
    pass_manager: PassManager | None = None
    pairs_per_job: int = 100
    on_job: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        check_angle_kind(self.angle)
        for name in ("shots", "pairs_per_job"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ParameterError(
                    f"The {name!r} parameter of SamplerSwapTest must be an int >= 1. Got {value!r} instead."
                )
        if self.sampler is None and self.seed is None:
            raise ParameterError("The default sampler needs a 'seed': pass an int or a numpy.random.Generator.")
        if self.sampler is not None and self.seed is not None:
            raise ParameterError("'seed' is for the default sampler: give the sampler its own seed and leave this out.")

    def __call__(self, X: npt.ArrayLike, Y: npt.ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        return _by_circuit(X, Y, self.angle, self._share_of_zeros)

    def _share_of_zeros(self, pairs: Pairs) -> Array:
        template = compact_swap_template(len(pairs[0][0]))
        if self.pass_manager is not None:
            template = self.pass_manager.run(template)
        sampler = self.sampler
        if sampler is None:
            # A generator goes on from draw to draw; the sampler would start an integer afresh for every pair.
            sampler = StatevectorSampler(seed=np.random.default_rng(self.seed))
        shares = []
        for start in range(0, len(pairs), self.pairs_per_job):
            job_pairs = pairs[start : start + self.pairs_per_job]
            shares.append(self._run_job(sampler, template, job_pairs))
            if self.on_job is not None:
                self.on_job(start + len(job_pairs), len(pairs))
        return np.concatenate(shares)

    def _run_job(self, sampler: BaseSamplerV2, template: QuantumCircuit, pairs: Pairs) -> Array:
        angles = np.stack([compact_swap_angles(x, y) for x, y in pairs])
        outcome = sampler.run([(template, angles)], shots=int(self.shots)).result()[0].data[OUTCOME]
        ones = outcome.bitcount().sum(axis=-1, dtype=np.int64)
        share: Array = (outcome.num_shots - ones) / outcome.num_shots
        return share


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
