"""What every backend that measures by shots shares: its settings, their checks and the loop over jobs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from qiskit import QuantumCircuit
from qiskit.primitives import BaseSamplerV2, BitArray, StatevectorSampler
from qiskit.transpiler import PassManager

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError

#: Name of the classical register that holds what is measured.
OUTCOME = "outcome"


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Settings of a backend that runs one template circuit for many rows of angles.

    Parameters
    ----------
    shots : int
        Measurements per row of angles.
    sampler : BaseSamplerV2 or None
        Whose ``run([(circuit, angles)], shots=shots)`` takes the measurements. None stands for
        ``qiskit.primitives.StatevectorSampler``.
    seed : int, numpy.random.Generator or None
        Source of randomness of the default sampler, and required for it. A sampler passed in brings its own.
    pass_manager : PassManager or None
        Rewrites the template for the machine at hand, once per call.
    on_job : callable or None
        Called as ``on_job(done, total)`` with numbers of rows after each job.
    """

    shots: int = 1024
    sampler: BaseSamplerV2 | None = None
    seed: int | np.random.Generator | None = None
    pass_manager: PassManager | None = None
    on_job: Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        self._check_count("shots")
        if self.sampler is None and self.seed is None:
            raise ParameterError("The default sampler needs a 'seed': pass an int or a numpy.random.Generator.")
        if self.sampler is not None and self.seed is not None:
            raise ParameterError("'seed' is for the default sampler: give the sampler its own seed and leave this out.")

    def _check_count(self, name: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(
                f"The {name!r} parameter of {type(self).__name__} must be an int >= 1. Got {value!r} instead."
            )

    def _outcomes(
        self, template: QuantumCircuit, angles: Callable[[int, int], Array], total: int, per_job: int
    ) -> Iterator[BitArray]:
        """What each job measured; ``angles(start, stop)`` gives the template's parameters, a row per run."""
        if self.pass_manager is not None:
            template = self.pass_manager.run(template)
        sampler = self.sampler
        if sampler is None:
            # A generator goes on from draw to draw; the sampler would start an integer afresh for every row.
            sampler = StatevectorSampler(seed=np.random.default_rng(self.seed))
        for start in range(0, total, per_job):
            stop = min(start + per_job, total)
            job = sampler.run([(template, angles(start, stop))], shots=int(self.shots))
            yield job.result()[0].data[OUTCOME]
            if self.on_job is not None:
                self.on_job(stop, total)
