"""What a plan expects of the overlaps that it will measure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from qmedoid.arrays import Array
from qmedoid.quantum.circuits.compact_swap import CircuitForm
from qmedoid.quantum.measurement.calibration import Estimates, Readings, expected_lines, guessed_lines
from qmedoid.quantum.measurement.packing import PackedBatch

if TYPE_CHECKING:
    from qmedoid.quantum.measurement.plan import MeasurementPlan


def expected_estimates(plan: "MeasurementPlan") -> tuple[Estimates, ...]:
    """Overlaps and their expected errors, shape by shape."""
    form, found = plan.settings.form, []
    for shape, (tests, shots, positions, pack, known) in enumerate(
        zip(plan.tests, plan.test_shots, plan.positions, plan.packs, plan.lines, strict=True)
    ):
        lines = known or guessed_lines(
            pack.shrink, float(form.overlap(0.5)), form.template(tests.n_features).num_qubits
        )
        expected = lines.intercepts[positions] + lines.slopes[positions] * tests.overlaps
        if plan.settings.calibrate:
            pairs = [part for job in plan.jobs for part in job.parts if part.shape == shape]
            lines = expected_lines(lines, *_known_pairs(pairs, form))
        # An outcome that never comes has no shot noise: equal values read 0 without noise, whatever the shots.
        share = np.clip(form.chance(expected), 0.0, 1.0)
        by_shots = form.slope**2 * share * (1.0 - share) / shots
        if lines.used and plan.settings.calibrate:
            own = np.sqrt(by_shots + lines.own_scatter(tests.directions)) / np.abs(lines.slopes[positions])
            found.append(Estimates(tests.overlaps, own, positions, lines, tests.directions))
        else:
            found.append(Estimates(expected, np.sqrt(by_shots + lines.excess**2), positions, None))
    return tuple(found)


def _known_pairs(parts: Sequence[PackedBatch], form: CircuitForm) -> tuple[Readings, Array]:
    """Shots and positions of known pairs, which are not read yet, and their overlaps."""
    exact, shots, positions = [], [], []
    for part in parts:
        used = np.isfinite(part.known)
        exact.append(part.known[used])
        shots.append(np.full(len(exact[-1]), float(part.batch.shots)))
        positions.append(np.nonzero(used)[1])
    overlaps = np.concatenate(exact)
    return Readings(overlaps, np.concatenate(shots), np.concatenate(positions), form.slope, form.at_zero), overlaps
