"""Backends that run the compact SWAP test, or interference, pair by pair, exactly or by shots.

They are called like the closed form, ``backend(X, Y)``. Every pair of a row of X and a row of Y is one circuit, and the
norms are known beforehand. A pair with a zero vector has no circuit and takes the value that
:func:`~qmedoid.compact_swap_test` gives it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from qiskit.primitives import BaseSamplerV2, BitArray, StatevectorSampler
from qiskit.quantum_info import Statevector
from qiskit.transpiler import PassManager

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError
from qmedoid.geometry.overlap import (
    AngleKind,
    SwapTest,
    check_angle_kind,
    compact_swap_test,
    from_overlap,
    row_norms,
)
from qmedoid.quantum.circuits.forms import FormName, form_named
from qmedoid.quantum.circuits.rotations import OUTCOME
from qmedoid.quantum.circuits.templates import Template, Templates


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """What both sampling backends share: one template circuit is run for many rows of angles.

    A backend keeps its sampler, so that draws go on from call to call, and its templates, so that a pass manager
    rewrites each of them once.
    """

    shots: int = 1024
    sampler: BaseSamplerV2 | None = None
    seed: int | np.random.Generator | None = None
    pass_manager: PassManager | None = None
    on_job: Callable[[int, int], None] | None = None
    _sampler: BaseSamplerV2 = field(init=False, repr=False, compare=False)
    _templates: Templates = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_count("shots")
        if self.sampler is None and self.seed is None:
            raise ParameterError("The default sampler needs a 'seed': pass an int or a numpy.random.Generator.")
        if self.sampler is not None and self.seed is not None:
            raise ParameterError("'seed' is for the default sampler: give the sampler its own seed and leave this out.")
        # A generator goes on from draw to draw; the sampler would start an integer afresh for every row.
        default = StatevectorSampler(seed=np.random.default_rng(self.seed)) if self.sampler is None else self.sampler
        object.__setattr__(self, "_sampler", default)
        object.__setattr__(self, "_templates", Templates(self.pass_manager))

    def _check_count(self, name: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(
                f"The {name!r} parameter of {type(self).__name__} must be an int >= 1. Got {value!r} instead."
            )

    def _outcomes(
        self, template: Template, angles: Callable[[int, int], Array], total: int, per_job: int
    ) -> Iterator[BitArray]:
        """What each job measured; ``angles(start, stop)`` gives the template's parameters, a row per run."""
        for start in range(0, total, per_job):
            stop = min(start + per_job, total)
            job = self._sampler.run([(template.circuit, template.bound(angles(start, stop)))], shots=int(self.shots))
            yield job.result()[0].data[OUTCOME]
            if self.on_job is not None:
                self.on_job(stop, total)


@dataclass(frozen=True)
class StatevectorSwapTest:
    """The circuit's exact expectation, from its statevector.

    The overlap comes from a probability and so is known to about 1e-15. For vectors that nearly coincide this leaves
    the distance uncertain by about 1e-7·√Z; the closed form has no such limit.

    Parameters
    ----------
    angle : {"true", "printed"}
        As in :func:`~qmedoid.compact_swap_test`.
    circuit : {"compact_swap", "interference"}
        The circuit that measures the overlap.

    Examples
    --------
    >>> from qmedoid.quantum.circuits import StatevectorSwapTest
    >>> StatevectorSwapTest()([[3.0, 0.0]], [[0.0, 4.0]]).distance.round(6)
    array([[5.]])
    """

    angle: AngleKind = "true"
    circuit: FormName = "compact_swap"

    def __post_init__(self) -> None:
        check_angle_kind(self.angle)
        form_named(self.circuit)

    def __call__(self, X: ArrayLike, Y: ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        return _by_circuit(X, Y, self.angle, self._overlaps)

    def _overlaps(self, left: Array, right: Array) -> Array:
        form = form_named(self.circuit)
        template = form.template(left.shape[1], measure=False)
        states = (Statevector(template.assign_parameters(angles)) for angles in form.angles(left, right))
        return form.overlap([state.probabilities([0])[1] for state in states])


@dataclass(frozen=True, kw_only=True)
class SamplerSwapTest(Sampling):
    """The circuit run for a number of shots through a sampler, a simulator's or a machine's.

    One template circuit serves all pairs; each job is given the rotation angles of up to `pairs_per_job` of them.

    Parameters
    ----------
    shots : int
        Measurements per pair.
    angle : {"true", "printed"}
        As in :func:`~qmedoid.compact_swap_test`.
    circuit : {"compact_swap", "interference"}
        The circuit that measures the overlap; interference takes fewer gates and has smaller errors.
    sampler : BaseSamplerV2 or None
        Whose ``run([(circuit, angles)], shots=shots)`` takes the measurements. None is
        ``qiskit.primitives.StatevectorSampler``.
    seed : int, numpy.random.Generator or None
        Source of randomness of the default sampler, and required for it; draws go on from call to call. A sampler
        passed in brings its own.
    pass_manager : PassManager or None
        Rewrites the template for the machine at hand, once per number of entries. None leaves its gates as they are:
        ry, cx, h and, in the SWAP test, cswap, which the simulators know.
    pairs_per_job : int
        Pairs of rows sent in one job.
    on_job : callable or None
        Called as ``on_job(done, total)`` with numbers of pairs after each job.

    Notes
    -----
    A sampler that starts afresh from one seed in every job repeats its noise from job to job (Aer does, given
    ``seed``); ``StatevectorSampler(seed=int)`` repeats it from pair to pair. The default sampler does neither.

    Pairs are run as they are asked for, one in a circuit. `MedoidClassifier.measurement_plan` plans a batch of records
    as a whole: repeats are measured once, tests run side by side, and noise is calibrated.

    Examples
    --------
    >>> from qmedoid.quantum.circuits import SamplerSwapTest
    >>> measured = SamplerSwapTest(shots=4096, seed=7)([[3.0, 0.0]], [[0.0, 4.0]])
    >>> bool(abs(measured.distance - 5).max() < 0.5)
    True
    """

    angle: AngleKind = "true"
    circuit: FormName = "compact_swap"
    pairs_per_job: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_angle_kind(self.angle)
        form_named(self.circuit)
        self._check_count("pairs_per_job")

    def __call__(self, X: ArrayLike, Y: ArrayLike, /) -> SwapTest:
        """Overlap, distance and angle of every pair of rows, each of shape (n_X, n_Y)."""
        return _by_circuit(X, Y, self.angle, self._overlaps)

    def _overlaps(self, left: Array, right: Array) -> Array:
        form, n_features = form_named(self.circuit), left.shape[1]
        template = self._templates.get(n_features, lambda: form.template(n_features))
        rows = form.angles(left, right)
        outcomes = self._outcomes(template, lambda start, stop: rows[start:stop], len(rows), self.pairs_per_job)
        return form.overlap(
            np.concatenate(
                [outcome.bitcount().sum(axis=-1, dtype=np.int64) / outcome.num_shots for outcome in outcomes]
            )
        )


def _by_circuit(X: ArrayLike, Y: ArrayLike, angle: AngleKind, measure: Callable[[Array, Array], Array]) -> SwapTest:
    """Let `measure` find the overlap of pairs that can be prepared; the others keep the classical values."""
    classical = compact_swap_test(X, Y, angle=angle)
    left, right = (np.atleast_2d(np.asarray(rows, dtype=np.float64)) for rows in (X, Y))
    x_norms, y_norms = row_norms(left), row_norms(right)
    prepared = (x_norms > 0)[:, None] & (y_norms > 0)[None, :]
    overlap = classical.overlap.copy()
    if prepared.any():
        rows, columns = np.nonzero(prepared)
        overlap[prepared] = measure(left[rows], right[columns])
    measured = from_overlap(overlap, x_norms, y_norms, angle=angle)
    return SwapTest(*(np.where(prepared, m, c) for m, c in zip(measured, classical, strict=True)))
