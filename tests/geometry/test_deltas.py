"""Deltas: how much nearer a record lies to one class than to another (algorithm 13)."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.geometry.channels import (
    Channels,
    class_pairs,
    delta_features,
    delta_names,
    fusion_scores,
    nearest_two,
    normalize_channel,
)


@st.composite
def records(draw, n_classes=None):
    shape = draw(st.integers(1, 8)), n_classes or draw(st.integers(2, 5))
    channels = Channels(*(draw(arrays(float, shape, elements=st.floats(0.01, 3))) for _ in range(2)))
    return channels, scores_of(channels)


def scores_of(channels, alpha=0.7):
    return fusion_scores(channels, alpha, use_angular=True)


def some_records(n=40, c=4, seed=0):
    rng = np.random.default_rng(seed)
    channels = Channels(rng.uniform(0.1, 5, (n, c)), rng.uniform(0, np.pi, (n, c)))
    return channels, scores_of(channels)


def test_negative_means_nearer_class_1():
    near_1, near_0 = [4.0, 1.0], [1.0, 4.0]
    channels = Channels(np.array([near_1, near_0]), np.array([near_1, near_0]) / 4)
    deltas = delta_features(channels, scores_of(channels), fused=True)
    np.testing.assert_allclose(deltas, [[-0.6] * 3, [0.6] * 3])


@given(records(), st.sampled_from(["pairs", "nearest"]), st.booleans(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_deltas_lie_between_minus_one_and_one_and_have_a_name_each(record, kind, angular, fused):
    channels, scores = record
    deltas = delta_features(channels, scores, kind=kind, angular=angular, fused=fused)
    assert (np.abs(deltas) <= 1).all()
    c = scores.shape[1]
    n_pairs = 1 if kind == "nearest" else c * (c - 1) // 2
    assert deltas.shape == (len(scores), n_pairs * (1 + angular + fused))
    names = delta_names([str(i) for i in range(c)], kind=kind, angular=angular, fused=fused)
    assert len(set(names)) == deltas.shape[1]


def test_all_pairs_with_the_later_class_first():
    assert class_pairs(2) == [(1, 0)]
    assert class_pairs(4) == [(1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (3, 2)]
    channels, scores = some_records()
    deltas = delta_features(channels, scores, fused=True)
    shares = [normalize_channel(channels.distance), normalize_channel(channels.angle), scores]
    for p, (b, a) in enumerate(class_pairs(4)):
        for q, share in enumerate(shares):
            np.testing.assert_array_equal(deltas[:, 3 * p + q], share[:, b] - share[:, a])


def test_nearest_compares_the_runner_up_with_the_best():
    channels, scores = some_records()
    best, second = nearest_two(scores)
    for row in range(len(scores)):
        assert [best[row], second[row]] == np.argsort(scores[row])[:2].tolist()
    deltas = delta_features(channels, scores, kind="nearest", fused=True)
    assert (deltas[:, 2] >= 0).all()
    shares = normalize_channel(channels.distance)
    rows = np.arange(len(scores))
    np.testing.assert_array_equal(deltas[:, 0], shares[rows, second] - shares[rows, best])


@given(st.integers(3, 5).flatmap(records), st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_best_against_runner_up_forgets_which_classes_they_are(record, random):
    """Fact 14: records of other classes have the very same deltas; those of all pairs tell them apart."""
    channels, scores = record
    order = list(range(scores.shape[1]))
    random.shuffle(order)
    moved = Channels(channels.distance[:, order], channels.angle[:, order])
    ranked = np.sort(scores, axis=1)
    clear = (np.diff(ranked, axis=1) > 1e-9).all(axis=1)
    here = delta_features(channels, scores, kind="nearest", fused=True)
    there = delta_features(moved, scores[:, order], kind="nearest", fused=True)
    np.testing.assert_allclose(there[clear], here[clear], atol=1e-12)


@given(records())
@settings(max_examples=40, deadline=None)
def test_record_s_deltas_do_not_depend_on_others_or_on_the_unit(record):
    channels, scores = record
    whole = delta_features(channels, scores)
    alone = delta_features(Channels(channels.distance[:1], channels.angle[:1]), scores[:1])
    np.testing.assert_array_equal(alone, whole[:1])
    scaled = delta_features(Channels(1000 * channels.distance, channels.angle), scores)
    np.testing.assert_allclose(scaled, whole, atol=1e-9)


def test_names_say_quantity_and_classes():
    assert delta_names(["no", "yes"]) == ["delta_distance[yes-no]", "delta_angle[yes-no]"]
    assert delta_names(["a", "b", "c"], angular=False, fused=True) == [
        "delta_distance[b-a]", "delta_score[b-a]",
        "delta_distance[c-a]", "delta_score[c-a]",
        "delta_distance[c-b]", "delta_score[c-b]",
    ]  # fmt: skip
    assert delta_names(["a", "b", "c"], kind="nearest") == ["delta_distance[second-best]", "delta_angle[second-best]"]
    assert delta_names(["a", "b"], kind="nearest") == ["delta_distance[b-a]", "delta_angle[b-a]"]


def test_another_ranking_says_which_two_classes_are_compared_and_nothing_else():
    channels, scores = some_records()
    ranking = -scores
    found = delta_features(channels, scores, kind="nearest", fused=True, ranking=ranking)
    rows = np.arange(len(scores))
    order = np.argsort(ranking, axis=1)
    values = (normalize_channel(channels.distance), normalize_channel(channels.angle), scores)
    expected = [value[rows, order[:, 1]] - value[rows, order[:, 0]] for value in values]
    np.testing.assert_allclose(found, np.column_stack(expected))
    np.testing.assert_array_equal(
        delta_features(channels, scores, kind="nearest", ranking=scores),
        delta_features(channels, scores, kind="nearest"),
    )
