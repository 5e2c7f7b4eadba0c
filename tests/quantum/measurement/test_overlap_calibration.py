"""Self-calibration on synthetic readings whose lines are known: recovery, honest errors, and when it is left out."""

import numpy as np
import pytest
from scipy.special import chdtrc

pytest.importorskip("qiskit_aer", reason='needs Qiskit and Aer: pip install "qmedoid[quantum]"')
from qmedoid.quantum.circuits.compact_swap import FORMS, form_named
from qmedoid.quantum.measurement.calibration import Readings, estimated, fit_lines, guessed_lines

INTERFERENCE, SWAP = form_named("interference"), form_named("compact_swap")


def read(rng, form, overlaps, positions, lines, shots, excess=0.0):
    """Readings of overlaps by a device with lines (intercepts, slopes), which scatter about them."""
    intercepts, slopes = (np.asarray(one, dtype=np.float64) for one in lines)
    scatter = excess * rng.standard_normal(len(overlaps))
    expected = intercepts[positions] + slopes[positions] * overlaps + scatter
    ones = rng.binomial(shots, np.clip(form.chance(expected), 0.0, 1.0))
    return Readings(form.overlap(ones / shots), float(shots), positions, form.slope, form.at_zero)


def known_pairs(rng, n_positions, n_circuits):
    """Overlaps near 0, near 1 and others in turn at every position: no share of ones is cut off by scatter."""
    turn = (np.arange(n_circuits)[:, None] + np.arange(n_positions)) % 4
    overlaps = 0.1 + 0.8 * np.where(turn % 2 == 1, rng.random(turn.shape), turn / 2).ravel()
    return overlaps, np.tile(np.arange(n_positions), n_circuits)


def fitted(rng, form, lines, *, n_circuits=32, shots=4096, excess=0.0):
    n = len(lines[0])
    overlaps, positions = known_pairs(rng, n, n_circuits)
    return fit_lines(read(rng, form, overlaps, positions, lines, shots, excess), overlaps, n)


def one_line(n, intercept, slope):
    return np.full(n, intercept), np.full(n, slope)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("overlap", [0.0, 0.02, 0.5, 0.97])
def test_shots_have_the_variance_that_is_stated(form, overlap):
    rng, shots, n = np.random.default_rng(1), 500, 4000
    positions = np.zeros(n, dtype=np.intp)
    readings = read(rng, form, np.full(n, overlap), positions, one_line(1, 0.0, 1.0), shots)
    binomial = form.slope**2 * form.chance(overlap) * (1.0 - form.chance(overlap)) / shots
    chi_square = np.sum((readings.overlaps - overlap) ** 2) / binomial if binomial > 0 else n
    assert chdtrc(n, chi_square) > 1e-3
    assert chdtrc(n, chi_square) < 0.999
    np.testing.assert_allclose(readings.variances.mean(), binomial, rtol=0.03, atol=2.0 * form.slope**2 / shots**2)
    np.testing.assert_allclose(
        readings.variances_at(np.full(n, overlap)), binomial, rtol=0.06, atol=2.0 * form.slope**2 / shots**2
    )


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_no_ones_and_all_ones_have_an_error_above_zero(form):
    overlaps = form.overlap([0.0, 1.0])
    readings = Readings(overlaps, 100.0, np.zeros(2, dtype=np.intp), form.slope, form.at_zero)
    least = form.slope**2 * 0.4 / 100**2
    assert (readings.variances > least).all()
    assert (readings.variances < 2 * least).all()
    np.testing.assert_allclose(readings.variances, readings.variances_at(overlaps))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("excess", [0.0, 0.02])
def test_lines_of_positions_are_recovered_within_their_errors(form, excess):
    rng, n = np.random.default_rng(2), 8
    truth = rng.uniform(0.0, 0.05, n), rng.uniform(0.6, 0.9, n)
    scores = []
    for _ in range(40):
        lines = fitted(rng, form, truth, excess=excess)
        assert lines.by_position
        assert lines.used
        of_both = np.stack([lines.intercepts - truth[0], lines.slopes - truth[1]], axis=1)
        scores.append(np.einsum("pi,pij,pj->p", of_both, np.linalg.inv(lines.covariances), of_both))
        assert lines.excess == pytest.approx(excess, abs=0.011)
    # Chi-square of two degrees of freedom each, if the stated covariances are the actual ones.
    scores = np.concatenate(scores)
    assert scores.mean() == pytest.approx(2.0, rel=0.25)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("n", "excess"), [(7, 0.0), (7, 0.02), (40, 0.0), (40, 0.02)])
def test_one_line_for_all_positions_unless_it_matters(form, n, excess):
    rng = np.random.default_rng(3)
    repeats = 100
    found = [fitted(rng, form, one_line(n, 0.04, 0.88), n_circuits=8, excess=excess) for _ in range(repeats)]
    assert sum(lines.by_position for lines in found) <= 0.05 * repeats  # 1 % of false alarms
    scores = [(lines.slopes[0] - 0.88) / np.sqrt(lines.covariances[0, 1, 1]) for lines in found]
    assert 0.75 < np.std(scores) < 1.25
    # A tenth of the positions that shrinks more is noticed.
    slopes = np.where(np.arange(n) % 10 == 0, 0.7, 0.88)
    assert fitted(rng, form, (np.full(n, 0.04), slopes), n_circuits=8, excess=excess).by_position


def test_counts_of_a_few_are_no_reason_for_lines_of_positions():
    rng = np.random.default_rng(4)
    found = [fitted(rng, INTERFERENCE, one_line(30, 0.0005, 0.999), n_circuits=6, shots=1024) for _ in range(60)]
    assert sum(lines.by_position for lines in found) <= 3


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_without_a_change_no_calibration_is_used(form):
    rng = np.random.default_rng(5)
    found = [fitted(rng, form, one_line(7, 0.0, 1.0), n_circuits=8, shots=512) for _ in range(100)]
    assert sum(lines.used for lines in found) <= 5
    lines = next(lines for lines in found if not lines.used)
    overlaps, positions = known_pairs(rng, 7, 4)
    readings = read(rng, form, overlaps, positions, one_line(7, 0.0, 1.0), 512)
    estimates = estimated(readings, lines)
    np.testing.assert_array_equal(estimates.overlaps, readings.overlaps)
    np.testing.assert_array_equal(estimates.errors, np.sqrt(readings.variances))
    np.testing.assert_array_equal(estimates.errors, estimated(readings, None).errors)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("lines", [(0.0, 1.0), (0.05, 0.85)], ids=["no change", "shrunk"])
@pytest.mark.parametrize("excess", [0.0, 0.03])
@pytest.mark.parametrize("n", [1, 6])
def test_errors_of_overlaps_are_honest(form, lines, excess, n):
    rng, scores = np.random.default_rng(6), []
    truth = one_line(n, *lines)
    for _ in range(60):
        overlaps, positions = rng.random(60) ** 2, rng.integers(n, size=60)
        found = fitted(rng, form, truth, excess=excess, n_circuits=36 // n, shots=1000)
        estimates = estimated(read(rng, form, overlaps, positions, truth, 1000, excess), found)
        scores.append((estimates.overlaps - overlaps) / estimates.errors)
    assert 0.9 < np.sqrt(np.mean(np.square(scores))) < 1.15


@pytest.mark.parametrize("by_position", [False, True])
def test_drawn_overlaps_have_the_stated_errors_and_those_of_a_line_in_common(by_position):
    rng, n = np.random.default_rng(7), 3
    truth = np.linspace(0.0, 0.05 * by_position, n), np.linspace(0.8, 0.8 - 0.3 * by_position, n)
    lines = fitted(rng, INTERFERENCE, truth, n_circuits=8, shots=300)
    assert lines.by_position == by_position
    overlaps, positions = np.array([0.1, 0.9, 0.1, 0.9, 0.5]), np.array([0, 0, 1, 1, 2])
    readings = read(rng, INTERFERENCE, overlaps, positions, truth, 10_000)
    estimates = estimated(readings, lines)
    drawn = np.array([estimates.draw(rng) for _ in range(20_000)])
    np.testing.assert_allclose(drawn.mean(axis=0), estimates.overlaps, atol=4 * estimates.errors.max() / 141)
    covariance = np.cov(drawn.T)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), estimates.errors, rtol=0.03)
    # Two tests of a line share its error: s = (r − a)/b.
    at = np.stack([np.ones(5), estimates.overlaps], axis=1) / lines.slopes[positions, None]
    common = at @ lines.covariances[0] @ at.T if not by_position else np.zeros((5, 5))
    if by_position:
        for place in range(n):
            own = positions == place
            common[np.ix_(own, own)] = at[own] @ lines.covariances[place] @ at[own].T
    expected = common + np.diag(estimates.own**2)
    np.testing.assert_allclose(covariance, expected, atol=0.04 * np.diag(expected).max())


def test_pairs_of_one_overlap_show_a_shift_alone():
    rng = np.random.default_rng(8)
    for n in (1, 20):
        overlaps, positions = np.full(n, 0.3), np.zeros(n, dtype=np.intp)
        lines = fit_lines(read(rng, INTERFERENCE, overlaps, positions, one_line(1, 0.1, 1.0), 4096), overlaps, 1)
        assert lines.slopes[0] == pytest.approx(1.0, abs=0.01)
        assert lines.at(np.array([0.3]), positions[:1]) == pytest.approx(0.4, abs=0.03)
        assert np.sqrt(lines.covariances[0, 1, 1]) == pytest.approx(0.5, rel=0.01)


def test_position_without_different_pairs_shares_the_line_of_all():
    rng = np.random.default_rng(9)
    overlaps, positions = known_pairs(rng, 2, 12)
    overlaps[positions == 1] = 0.0
    readings = read(rng, INTERFERENCE, overlaps, positions, ([0.0, 0.3], [0.9, 0.5]), 4096)
    lines = fit_lines(readings, overlaps, 2)
    assert not lines.by_position
    assert lines.excess > 0.05
    assert np.isfinite(lines.covariances).all()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("slope", [0.0, 0.01, -0.4])
def test_slopes_of_next_to_nothing_have_large_errors_and_never_nan(form, slope):
    at_noise = float(form.overlap(0.5))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = one_line(2, (1.0 - slope) * at_noise, slope)
        lines = fitted(rng, form, truth, n_circuits=8, shots=1000)
        overlaps = rng.random(50)
        estimates = estimated(read(rng, form, overlaps, np.zeros(50, dtype=np.intp), truth, 1000), lines)
        for values in (lines.slopes, lines.covariances, estimates.overlaps, estimates.errors, estimates.draw(rng)):
            assert np.isfinite(values).all()
        if slope <= 0.01 and slope >= 0:
            assert (estimates.errors > 0.3).all()
    assert np.abs((estimates.overlaps - overlaps) / estimates.errors).max() < 5.0


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_guessed_lines_lead_to_what_noise_alone_reads(form):
    shrink = np.array([1.0, 0.8, 0.01])
    lines = guessed_lines(shrink, float(form.overlap(0.5)), 1)
    assert lines.used
    assert lines.excess == 0.0 < guessed_lines(shrink, 0.5, 2).excess
    np.testing.assert_allclose(lines.intercepts[2] + lines.slopes[2] * 0.3, form.overlap(0.5), atol=0.01)
    assert not guessed_lines(np.ones(3), 0.5, 4).used
