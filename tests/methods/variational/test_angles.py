"""Features to rotation angles (algorithm 14), and why the printed span folds them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.exceptions import ParameterError
from qmedoid.kernels import statevector
from qmedoid.methods.variational.ansatz import PRINTED_SPAN, SPAN, AngleMap, Ansatz

FEATURES = arrays(float, st.tuples(st.integers(1, 6), st.just(3)), elements=st.floats(-50, 50))
CENTER, SCALE = np.array([1.0, -2.0, 0.5]), np.array([2.0, 0.5, 1.0])


def angle_map(**changes):
    return AngleMap(CENTER, SCALE, **changes)


@given(FEATURES, st.floats(0.1, 10), st.floats(0.1, 4))
@settings(max_examples=30, deadline=None)
def test_angles_are_clipped_standardized_values_in_units_of_the_span(features, clip, span):
    angles = angle_map(clip=clip, span=span).apply(features)
    standardized = (features - CENTER) / SCALE
    assert (np.abs(angles) <= span * (1 + 1e-15)).all()
    np.testing.assert_allclose(angles, np.clip(standardized / clip, -1, 1) * span, rtol=1e-12)
    # Odd about the centre, and the ends are the span itself.
    np.testing.assert_allclose(angle_map(clip=clip, span=span).apply(2 * CENTER - features), -angles, atol=1e-12)
    ends = angle_map(clip=clip, span=span).apply(CENTER + np.array([[2], [-2]]) * clip * SCALE)
    np.testing.assert_allclose(ends, [[span] * 3, [-span] * 3], rtol=1e-14)


def test_default_is_three_deviations_and_a_quarter_turn():
    np.testing.assert_allclose(angle_map().apply(CENTER + 3 * SCALE[None]), [[np.pi / 2] * 3], rtol=1e-15)
    assert pytest.approx(SPAN) == np.pi / 2
    assert pytest.approx(PRINTED_SPAN) == np.pi


# --- fact 15 --------------------------------------------------------------------------------------------------------


def probabilities_at_both_ends(span, n_qubits, n_inputs, n_reps, reupload, seed):
    """Of two rows whose first feature is clipped below and above, the others being equal."""
    rng = np.random.default_rng(seed)
    ansatz = Ansatz(n_qubits, n_inputs, n_reps, reupload=reupload, final_rz=True)
    features = np.repeat(rng.normal(size=(1, n_inputs)), 2, axis=0)
    features[:, 0] = -4.0, 7.0
    angles = AngleMap(np.zeros(n_inputs), np.ones(n_inputs), span=span).apply(features)
    weights = rng.uniform(-np.pi, np.pi, ansatz.weight_shape)
    states = statevector.states(ansatz.qubit_angles(angles), weights, reupload=reupload)
    return np.abs(states) ** 2


CIRCUITS = st.tuples(st.integers(1, 5), st.integers(1, 7), st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))


@given(CIRCUITS)
@settings(max_examples=30, deadline=None)
def test_printed_span_folds_both_extremes_onto_each_other(circuit):
    """R_y(π) = −R_y(−π): the sign is the same for every amplitude, so no weights, depth or re-uploading see it."""
    low, high = probabilities_at_both_ends(PRINTED_SPAN, *circuit)
    np.testing.assert_allclose(low, high, rtol=0, atol=1e-12)


@pytest.mark.parametrize("reupload", [False, True])
@pytest.mark.parametrize("n_reps", [1, 2, 3])
@pytest.mark.parametrize("n_qubits", [1, 2, 5])
def test_default_span_tells_the_extremes_apart(n_qubits, n_reps, reupload):
    apart = [
        np.abs(np.subtract(*probabilities_at_both_ends(SPAN, n_qubits, 2, n_reps, reupload, seed))).sum()
        for seed in range(10)
    ]
    # Weights that happen to be blind to the first feature are rare, but for the case below.
    assert (np.median(apart) > 0.1) == ((n_qubits, n_reps, reupload) != (1, 2, True))


@pytest.mark.parametrize(("scale", "folds"), [(1.0, True), (0.9, False)])
def test_one_qubit_that_is_uploaded_twice_folds_at_a_quarter_turn_too(scale, folds):
    """The ends differ by half a turn, −iY. The two meet across an R_z, whose sense they reverse: a conjugate state."""
    for seed in range(5):
        low, high = probabilities_at_both_ends(scale * SPAN, 1, 1, 2, True, seed)
        assert (np.abs(low - high).max() < 1e-12) == folds


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [0.0, -1.0, np.nan, np.inf])
def test_clip_must_be_above_zero(clip):
    with pytest.raises(ParameterError, match=r"'clip' of an angle map must be a number above 0\. Got"):
        angle_map(clip=clip)


@pytest.mark.parametrize("span", [0.0, np.nan, np.inf])
def test_span_must_not_be_zero(span):
    with pytest.raises(ParameterError, match=r"'span' of an angle map must be a number other than 0\. Got"):
        angle_map(span=span)
