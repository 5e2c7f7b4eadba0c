"""Jobs of a device that drifts between them."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer")

from toy_deciders import toy_plan, toy_table

N_SEEDS = 20


@pytest.fixture(scope="module")
def plan():
    table = toy_table(n=60)
    found = toy_plan(table=table, calibrate=True, circuits_per_job=20, calibration_circuits=40, shots=1024, draws=4)
    assert len(found.jobs) > 3
    return found


def counts_of(plan, rng, shifts):
    """Counts of a device that reads a + b·s, with its own a and b in every job."""
    found = []
    for job, (a, b) in zip(plan.jobs, shifts, strict=True):
        parts = []
        for part in job.batches:
            overlaps = np.append(plan.tests[part.shape].overlaps, 0.5)[part.tests]
            if part.known is not None:
                overlaps = part.known.reshape(part.tests.shape)
            parts.append(rng.binomial(part.shots, a + b * overlaps))
        found.append(parts)
    return found


def test_a_drift_is_noticed_undone_and_said(plan):
    deviations, raw = [], []
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        shifts = [(0.02 + 0.03 * place / len(plan.jobs), 0.95 - 0.1 * place / len(plan.jobs))
                  for place in range(len(plan.jobs))]  # fmt: skip
        result = plan.read_out(counts_of(plan, rng, shifts))
        assert "the device drifted" in " ".join(result.notes)
        assert result.estimates[0].drift > 0.01
        deviations.append(np.std(result.overlap_scores))
        raw.append(np.sqrt(np.mean(result.overlap_errors**2)))
    assert 0.9 < np.mean(deviations) < 1.15
    # As small as the shots leave it: s(1 - s)/shots on average, shrunk by the slope.
    overlaps = plan.tests[0].overlaps
    by_shots = np.sqrt(np.mean(overlaps * (1 - overlaps) + 0.03) / 1024) / 0.9
    assert np.mean(raw) < 1.15 * by_shots


def test_no_drift_is_seen_where_there_is_none(plan):
    seen = 0
    for seed in range(N_SEEDS):
        result = plan.read_out(counts_of(plan, np.random.default_rng(seed), [(0.03, 0.93)] * len(plan.jobs)))
        seen += result.estimates[0].drift > 0
    assert seen <= 1
