"""Fusion of distance and angle: the smallest score decides (algorithm 8)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.geometry.channels import (
    EPSILON,
    Channels,
    class_channels,
    fusion_scores,
    normalize_channel,
    printed_multipliers,
    prior_multipliers,
)
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.kernels.ties import first_smallest_of_rows

MATRICES = arrays(float, st.tuples(st.integers(1, 8), st.integers(2, 5)), elements=st.floats(0, 100))


@st.composite
def channel_pairs(draw):
    shape = draw(st.integers(1, 8)), draw(st.integers(2, 5))
    return Channels(*(draw(arrays(float, shape, elements=st.floats(0.01, 3))) for _ in range(2)))


def random_channels(n=50, c=3, seed=0):
    rng = np.random.default_rng(seed)
    return Channels(rng.uniform(0.1, 5, (n, c)), rng.uniform(0, np.pi, (n, c)))


@given(MATRICES)
@settings(max_examples=40, deadline=None)
def test_normalized_channel_is_shares_of_almost_one(channel):
    """Fact 11: Σ C / (Σ C + ε)."""
    shares = normalize_channel(channel)
    total = channel.sum(axis=1)
    assert ((shares >= 0) & (shares <= 1)).all()
    np.testing.assert_allclose(shares.sum(axis=1), total / (total + EPSILON), rtol=1e-14)
    np.testing.assert_array_equal(shares[total == 0], 0)


@pytest.mark.parametrize("medoid_classes", [[0, 1, 2], [0, 0, 1, 1, 1, 2], [2, 1, 0, 1, 2, 0], [1, 1, 0]])
def test_channels_of_a_class_are_those_of_its_nearest_medoid(medoid_classes):
    """Fact 13: and the angle is the nearest medoid's too, not the smallest angle."""
    classes = np.array(medoid_classes)
    raw = random_channels(c=len(classes))
    n_classes = classes.max() + 1
    channels, nearest = class_channels(raw.distance, raw.angle, classes, n_classes)
    for row in range(len(raw.distance)):
        for c in range(n_classes):
            own = [m for m in range(len(classes)) if classes[m] == c]
            best = min(own, key=lambda m: raw.distance[row, m])
            assert nearest[row, c] == best
            assert channels.distance[row, c] == raw.distance[row, best]
            assert channels.angle[row, c] == raw.angle[row, best]


@given(channel_pairs(), st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_score_is_the_formula(channels, alpha):
    D, T = (channel / (channel.sum(axis=1, keepdims=True) + EPSILON) for channel in channels)
    expected = alpha * D + (1 - alpha) * T
    np.testing.assert_allclose(fusion_scores(channels, alpha, use_angular=True), expected, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_without_the_angle_the_distance_decides_alone(alpha):
    """Fact 11."""
    channels = random_channels()
    other = Channels(channels.distance, np.full_like(channels.angle, np.nan))
    for given_channels in (channels, other):
        scores = fusion_scores(given_channels, alpha, use_angular=False)
        np.testing.assert_array_equal(scores, normalize_channel(channels.distance))
        np.testing.assert_array_equal(first_smallest_of_rows(scores), channels.distance.argmin(axis=1))


@given(channel_pairs(), st.floats(0, 1), st.data())
@settings(max_examples=30, deadline=None)
def test_larger_multiplier_makes_a_class_less_likely(channels, alpha, data):
    """Fact 4."""
    n_classes = channels.distance.shape[1]
    c = data.draw(st.integers(0, n_classes - 1))
    before = first_smallest_of_rows(fusion_scores(channels, alpha, use_angular=True, multipliers=np.ones(n_classes)))
    for factor in (1.5, 4.0):
        multipliers = np.where(np.arange(n_classes) == c, factor, 1.0)
        after = first_smallest_of_rows(fusion_scores(channels, alpha, use_angular=True, multipliers=multipliers))
        # Nobody joins the class, and nobody who was elsewhere moves at all.
        np.testing.assert_array_equal(after[before != c], before[before != c])
        before = after


def test_printed_weights_are_one_over_the_root_of_the_prior_and_hold_rare_classes_back():
    """Fact 4."""
    np.testing.assert_allclose(printed_multipliers(np.array([0.64, 0.36])), [1.25, 1 / 0.6])
    w = printed_multipliers(np.array([0.9, 0.09, 0.01]))
    assert w[0] < w[1] < w[2]


@pytest.mark.parametrize("exponent", [0.25, 0.5, 1.0])
def test_prior_weights_shrink_the_scores_of_rare_classes(exponent):
    w = prior_multipliers(np.array([0.9, 0.09, 0.01]), exponent)
    np.testing.assert_allclose(w, [1, 0.1**exponent, (1 / 90) ** exponent])
    np.testing.assert_array_equal(prior_multipliers(np.array([0.9, 0.1]), 0.0), [1, 1])


@given(arrays(float, st.tuples(st.integers(1, 10), st.just(2)), elements=st.floats(0, 1)))
@settings(max_examples=40, deadline=None)
def test_sign_of_a_margin_is_the_decision(scores):
    np.testing.assert_array_equal(first_smallest_of_rows(scores), scores[:, 0] - scores[:, 1] > 0)


@given(arrays(float, (3, 4), elements=st.floats(-5, 5)), arrays(float, (2, 4), elements=st.floats(-5, 5)))
@settings(max_examples=30, deadline=None)
def test_distance_part_of_a_margin_is_a_sum_over_anchors(v, medoids):
    """Fact 20."""
    D = compact_swap_test(v, medoids).distance
    total = D.sum(axis=1)
    clear = total > 1e-3
    parts = ((v - medoids[1]) ** 2 - (v - medoids[0]) ** 2)[clear] / total[clear, None] ** 2
    from_parts = parts.sum(axis=1)
    np.testing.assert_allclose((D[:, 1] - D[:, 0])[clear] / total[clear], from_parts, rtol=0, atol=1e-9)
    # And with the distance alone it is the margin, turned round: s_0 − s_1 = (D_0 − D_1) / (D_0 + D_1 + ε).
    scores = fusion_scores(Channels(D, D), 1.0, use_angular=False)
    np.testing.assert_allclose((scores[:, 0] - scores[:, 1])[clear], -from_parts, rtol=0, atol=1e-8)
