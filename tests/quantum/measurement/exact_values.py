"""Values of all tests of a plan without shots: what infinitely many measurements of its circuits would show."""

import numpy as np
from qiskit_aer.noise import NoiseModel

from qmedoid.arrays import Array
from qmedoid.quantum.devices import BlockSampler
from qmedoid.quantum.devices.sampling import CircuitBatch
from qmedoid.quantum.measurement import MeasurementPlan


def exact_shares(batch: CircuitBatch, noise=None) -> Array:
    """Probability that each copy reads 1, shape (circuits, copies)."""
    sampler = BlockSampler(NoiseModel() if noise is None else noise, seed=0)
    circuit, angles, _ = batch.pub
    shares = np.full((len(angles), batch.pack.n_copies), np.nan)
    for clbits, probabilities in sampler.block_probabilities(circuit, angles):
        (clbit,) = clbits
        shares[:, clbit] = probabilities[:, 1]
    return shares


def exact_values(plan: MeasurementPlan, noise=None) -> Array:
    """Overlap of every test in the order of the plan."""
    found = [np.full(len(tests), np.nan) for tests in plan.tests]
    for job in plan.jobs:
        for part in job.parts:
            circuit, copy = np.nonzero(part.tests >= 0)
            overlaps = plan.settings.form.overlap(exact_shares(part.batch, noise)[circuit, copy])
            found[part.shape][part.tests[circuit, copy]] = overlaps
    return np.concatenate(found)
