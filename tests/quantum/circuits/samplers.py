"""Samplers that tests look into."""

import numpy as np
from qiskit.primitives import StatevectorSampler


class CountingSampler:
    """A sampler that notes the jobs it was given."""

    def __init__(self):
        self.inner, self.jobs = StatevectorSampler(seed=np.random.default_rng(0)), []

    def run(self, pubs, *, shots=None):
        pubs = list(pubs)
        self.jobs.append(([angles.shape for _, angles in pubs], shots))
        return self.inner.run(pubs, shots=shots)
