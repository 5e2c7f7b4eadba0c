"""Values of all tests of a plan without shots: what infinitely many measurements of its circuits would show."""

import numpy as np
from tests.quantum.counts import chances_of

from qmedoid.arrays import Array
from qmedoid.quantum import Device, MeasurementPlan


def exact_values(plan: MeasurementPlan) -> Array:
    """Overlap of every test in the order of the plan."""
    found = [np.full(len(tests), np.nan) for tests in plan.tests]
    for batch in (batch for job in plan.jobs for batch in job.batches):
        circuit, copy = np.nonzero(batch.tests >= 0)
        overlaps = plan.settings.form.overlap(chances_of(Device(), batch)[circuit, copy])
        found[batch.shape][batch.tests[circuit, copy]] = overlaps
    return np.concatenate(found)
