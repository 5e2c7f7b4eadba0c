"""What a line leaves unexplained is common to similar pairs: draws, and errors of sums."""

import numpy as np
import pytest

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
from qmedoid.quantum.measurement.calibration import (
    Readings,
    directions_of,
    drawn_alike,
    estimated,
    fit_lines,
)


def some_directions(rng, n, d=4):
    return directions_of(*rng.standard_normal((2, n, d)))


def of_one_record(rng, n, d=4):
    """A record, and medoids that resemble each other."""
    record, medoids = rng.standard_normal((2, d)), rng.standard_normal((n, d))
    return directions_of(np.tile(record[0], (n, 1)), record[1] + 0.5 * medoids)


def test_draws_have_the_correlations_that_are_stated():
    rng = np.random.default_rng(1)
    directions = some_directions(rng, 6)
    left, right = directions
    c = (left @ left.T) * (right @ right.T)
    drawn = np.array([drawn_alike(directions, rng) for _ in range(20_000)])
    np.testing.assert_allclose(drawn.T @ drawn / len(drawn), 0.2 * c + 0.8 * c**3, atol=0.09)
    np.testing.assert_allclose(drawn.mean(axis=0), 0.0, atol=0.04)


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_directions_have_length_one_at_any_scale(size):
    rng = np.random.default_rng(4)
    found = directions_of(size * rng.standard_normal((5, 3)), rng.standard_normal((5, 3)))
    np.testing.assert_allclose(np.linalg.norm(found, axis=2), 1.0, rtol=1e-12)


def test_single_columns_have_no_directions():
    assert directions_of(np.ones((3, 1)), np.ones((3, 1))) is None


def test_errors_of_sums_are_honest_where_similar_pairs_are_off_alike():
    """The sum of the overlaps of one record with many medoids: what decisions are made of."""
    rng, shots, n, scores, independent = np.random.default_rng(5), 4096, 200, [], []
    for _ in range(40):
        directions = np.concatenate([some_directions(rng, n), of_one_record(rng, n)], axis=1)
        overlaps = rng.uniform(0.2, 0.8, 2 * n)
        off = 0.02 * drawn_alike(directions, rng)
        ones = rng.binomial(shots, 0.05 + 0.8 * overlaps + off)
        place = np.zeros(n, dtype=np.intp)
        known, tests = (
            Readings(ones[part] / shots, float(shots), place, 1.0, 0.0, directions=directions[:, part])
            for part in (slice(None, n), slice(n, None))
        )
        estimates = estimated(tests, fit_lines(known, overlaps[:n], 1))
        drawn = np.array([estimates.draw(rng).sum() for _ in range(100)])
        error = estimates.overlaps.sum() - overlaps[n:].sum()
        scores.append(error / np.sqrt(np.mean((drawn - estimates.overlaps.sum()) ** 2)))
        independent.append(error / np.sqrt(np.sum(estimates.errors**2)))
    assert 0.6 < np.sqrt(np.mean(np.square(scores))) < 1.5
    assert np.sqrt(np.mean(np.square(independent))) > 2.0
