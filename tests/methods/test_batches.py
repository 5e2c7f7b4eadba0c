"""Batches: every class in each of them, and on average the loss over all rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.methods.variational.model import Batch
from qmedoid.methods.variational.training import CircuitSettings, batch_counts, batch_objective


def problem(sizes, class_weights=None, seed=0):
    """Angles and codes with so many rows of each class, in random order."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    weights = np.ones(len(sizes)) if class_weights is None else np.array(class_weights, dtype=float)
    data = Batch(rng.normal(size=(len(codes), 2)), codes, weights[codes] / weights[codes].sum())
    return CircuitSettings(n_reps=1).network(2, len(sizes)), data, weights


many_classes = st.lists(st.integers(1, 400), min_size=2, max_size=6)


@given(many_classes, st.integers(1, 500))
@settings(max_examples=40, deadline=None)
def test_counts_are_in_proportion_but_for_rare_classes(sizes, batch_size):
    sizes = np.array(sizes)
    counts = batch_counts(sizes, batch_size)
    floor = -(-batch_size // (3 * len(sizes)))
    for count, size in zip(counts, sizes, strict=True):
        share = round(batch_size * size / sizes.sum())
        assert count == min(size, max(share, floor))
        assert 1 <= count <= size


@given(many_classes, st.integers(1, 300), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_an_importance_batch_has_every_class_once_per_row_and_its_prior(sizes, batch_size, seed):
    network, data, class_weights = problem(sizes, seed=seed)
    objective = batch_objective(network, data, class_weights, batch_size, "importance")
    rows, weights = objective.draw_rows(np.random.default_rng(seed))
    assert len(set(rows.tolist())) == len(rows)
    shares = np.bincount(data.codes[rows], weights, minlength=len(sizes))
    np.testing.assert_allclose(shares, np.array(sizes) / sum(sizes), rtol=1e-12)
    assert weights.sum() == pytest.approx(1, rel=1e-12)
    if batch_size < len(data.codes):
        drawn = np.bincount(data.codes[rows], minlength=len(sizes))
        np.testing.assert_array_equal(drawn, batch_counts(np.array(sizes), batch_size))


@pytest.mark.parametrize("sampling", ["importance", "uniform"])
@pytest.mark.parametrize("class_weights", [None, [1.0, 30.0, 2.0]])
def test_the_expected_loss_of_a_batch_is_the_loss_over_all_rows(sampling, class_weights):
    network, data, class_weights = problem([150, 5, 45], class_weights)
    theta = network.start(np.random.default_rng(1), spread=1.0)
    full = network.loss(theta, data)
    objective = batch_objective(network, data, class_weights, 24, sampling)
    rng = np.random.default_rng(2)
    draws, total, losses = 1500, np.zeros(200), []
    for _ in range(draws):
        batch = objective.draw(rng)
        losses.append(objective.value(theta, batch))
    error = np.std(losses) / np.sqrt(draws)
    assert abs(np.mean(losses) - full) < 4 * error
    assert error < 0.02 * full
    for _ in range(draws):
        rows, weights = objective.draw_rows(rng)
        np.add.at(total, rows, weights)
    for c in range(3):
        mine = data.codes == c
        assert total[mine].sum() / draws == pytest.approx(data.weights[mine].sum(), rel=0.1 if c != 1 else 0.25)


def test_importance_batches_vary_less_where_a_class_is_rare():
    """Why they are the default: of uniform batches most have no rare row at all."""
    network, data, class_weights = problem([990, 10])
    theta = network.start(np.random.default_rng(1), spread=1.0)
    spread = {}
    for sampling in ["importance", "uniform"]:
        objective = batch_objective(network, data, class_weights, 32, sampling)
        rng = np.random.default_rng(0)
        batches = [objective.draw(rng) for _ in range(300)]
        with_rare = np.mean([(batch.codes == 1).any() for batch in batches])
        assert with_rare == 1 if sampling == "importance" else with_rare < 0.5
        spread[sampling] = np.std([objective.value(theta, batch) for batch in batches])
    assert spread["importance"] < spread["uniform"]


def test_uniform_batches_are_distinct_rows_of_equal_weight():
    network, data, class_weights = problem([60, 40])
    objective = batch_objective(network, data, class_weights, 16, "uniform")
    rows, weights = objective.draw_rows(np.random.default_rng(0))
    assert len(set(rows.tolist())) == 16
    np.testing.assert_allclose(weights, 1 / 16)
    seen = {row for seed in range(60) for row in objective.draw_rows(np.random.default_rng(seed))[0].tolist()}
    assert seen == set(range(100))


@pytest.mark.parametrize("sampling", ["importance", "uniform"])
@pytest.mark.parametrize("batch_size", [50, 51, 10**6])
def test_a_batch_no_smaller_than_the_table_is_the_table(sampling, batch_size):
    network, data, class_weights = problem([45, 5], [1.0, 3.0])
    objective = batch_objective(network, data, class_weights, batch_size, sampling)
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    for part, whole in zip(objective.draw(rng), data, strict=True):
        np.testing.assert_array_equal(part, whole)
    assert rng.bit_generator.state == state  # nothing is left to chance


def test_an_offset_goes_with_its_rows():
    network, data, class_weights = problem([45, 5])
    offset = np.arange(100.0).reshape(50, 2)
    objective = batch_objective(network, data._replace(offset=offset), class_weights, 12, "importance")
    batch = objective.draw(np.random.default_rng(0))
    rows = (batch.offset[:, 0] / 2).astype(int)
    np.testing.assert_array_equal(batch.inputs, data.inputs[rows])
    np.testing.assert_array_equal(batch.codes, data.codes[rows])
