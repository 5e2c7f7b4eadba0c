"""Fine-tuning through a noisy device: circuits as planned, and new weights only if held-out rows are likelier there."""

import numpy as np
import pytest
from noisy_circuit import NoisyDevice

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.methods.variational.fine_tuning import (
    TUNING_OPTIMIZERS,
    TuningSettings,
    _judged,
    _mean_and_error,
    fine_tune,
    fine_tuning_circuits,
)
from qmedoid.methods.variational.training import (
    CircuitSettings,
    TrainingData,
    TrainingSettings,
    Watch,
    train_variational,
)
from qmedoid.optimize.training import Stopping

NOISE = {"rate": 0.12, "misread": 0.05}


def rows(n, seed, n_classes=2):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_classes, n)
    return TrainingData(rng.normal(size=(n, 2)) + 1.5 * codes[:, None], codes, np.ones(n_classes))


@pytest.fixture(scope="module")
def trained():
    training = TrainingSettings(stopping=Stopping(150), learning_rate=0.05)
    return train_variational(rows(400, 0), CircuitSettings(n_reps=2), training, [[0]], Watch()).model


def tuned(model, settings, *, device=None, seed=3, held_out=None, groups=None):
    device = NoisyDevice(**NOISE, shots=1024, seed=5) if device is None else device
    held_out = rows(200, 2) if held_out is None else held_out
    return fine_tune(model, rows(200, 1), held_out, device, settings, np.random.default_rng(seed), groups)


@pytest.mark.parametrize("optimizer", TUNING_OPTIMIZERS)
def test_circuits_are_those_that_were_planned(trained, optimizer):
    device, settings = NoisyDevice(shots=64), TuningSettings(optimizer, n_steps=3, batch_size=10)
    _, report = tuned(trained, settings, device=device)
    planned = fine_tuning_circuits(trained.network, rows(200, 1).codes, 200, settings)
    assert device.rows == report.n_circuits == planned
    # Two qubits, two repetitions: six rotations, four places of inputs.
    assert planned == {"readout": 10 + 200, "spsa": 3 * 20 + 400, "adam": 3 * 10 * (1 + 12 + 8) + 400}[optimizer]
    assert len(report.batch_losses) == report.n_steps == 3


@pytest.mark.parametrize("optimizer", TUNING_OPTIMIZERS)
def test_what_noise_takes_is_partly_won_back_on_rows_that_nobody_saw(trained, optimizer):
    model, report = tuned(trained, TuningSettings(optimizer))
    assert report.kept
    assert report.gain == pytest.approx(report.loss_before - report.loss_after)
    assert report.gain > report.gain_error > 0
    fresh, exact_noise = rows(1000, 9), NoisyDevice(**NOISE)
    losses = [
        row_losses(
            one.network.measured_scores(one.theta, one.angle_map.apply(fresh.features), exact_noise), fresh.codes
        )
        for one in (trained, model)
    ]
    assert losses[1].mean() < losses[0].mean() - 0.005
    # The reports agree with these rows, by four of their errors.
    assert abs(report.loss_before - losses[0].mean()) < 4 * report.loss_before_error
    assert abs(report.loss_after - losses[1].mean()) < 4 * report.loss_after_error


def test_read_out_leaves_the_circuit_as_it_is(trained):
    model, _ = tuned(trained, TuningSettings())
    np.testing.assert_array_equal(model.parameters.rotations, trained.parameters.rotations)
    np.testing.assert_array_equal(model.parameters.scales, trained.parameters.scales)
    assert not np.array_equal(model.parameters.readout, trained.parameters.readout)
    assert model.angle_map is trained.angle_map


@pytest.mark.parametrize("optimizer", TUNING_OPTIMIZERS)
def test_steps_that_harm_are_not_kept(trained, optimizer):
    model, report = tuned(trained, TuningSettings(optimizer, n_steps=3, learning_rate=30.0))
    assert model is trained
    assert not report.kept
    assert report.gain < 0
    assert report.reason.startswith("the held-out loss under noise rose by")


@pytest.mark.parametrize(
    ("gain", "error", "kept", "reason"),
    [
        (0.02, 0.01, True, "fell by 0.02, more than its standard error of 0.01"),
        (0.01, 0.01, False, "fell by 0.01, no more than its standard error of 0.01"),
        (-0.005, 0.01, False, "rose by 0.005, no more than its standard error of 0.01"),
        (-0.02, 0.01, False, "rose by 0.02, more than its standard error of 0.01"),
        (0.5, np.inf, False, "fell by 0.5, no more than its standard error of inf"),
    ],
)
def test_gains_of_more_than_an_error_are_kept(gain, error, kept, reason):
    assert _judged(gain, error) == (kept, f"the held-out loss under noise {reason}")


def test_same_seeds_same_weights(trained):
    first, again, other = (tuned(trained, TuningSettings("spsa", n_steps=4), seed=seed)[0].theta for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_error_of_a_mean_counts_groups_as_draws():
    rng = np.random.default_rng(0)
    values, groups = rng.normal(size=50), np.arange(50)
    even = np.full(50, 1 / 50)
    mean, error = _mean_and_error(values, even, None)
    assert (mean, error) == pytest.approx((values.mean(), values.std(ddof=1) / np.sqrt(50)))
    # Copies say nothing new.
    copied = _mean_and_error(np.tile(values, 4), np.tile(even, 4) / 4, np.tile(groups, 4))
    assert copied == pytest.approx((mean, error))
    assert _mean_and_error(np.tile(values, 4), np.tile(even, 4) / 4, None)[1] < 0.6 * error
    # A weight of two is two rows.
    twice = np.where(groups < 25, 2.0, 1.0)
    assert _mean_and_error(values, twice / twice.sum(), None)[0] == pytest.approx(
        np.concatenate([values, values[:25]]).mean()
    )
    assert _mean_and_error(values[:1], np.ones(1), None)[1] == np.inf


def test_class_weights_count_in_steps_and_judgement(trained):
    device = NoisyDevice(**NOISE)
    heavy = np.array([1.0, 9.0])
    plain, weighted = (
        fine_tune(
            trained, rows(200, 1)._replace(class_weights=weights), rows(200, 2)._replace(class_weights=weights),
            device, TuningSettings(), np.random.default_rng(0),
        )
        for weights in (np.ones(2), heavy)
    )  # fmt: skip
    # Scores of the second class rise where its rows weigh more.
    scores = [one.network.scores(one.theta, np.zeros((1, 2))) for one, _ in (plain, weighted)]
    assert np.diff(scores[1])[0, 0] > np.diff(scores[0])[0, 0]
    held_out = rows(200, 2)
    losses = row_losses(
        trained.network.measured_scores(trained.theta, trained.angle_map.apply(held_out.features), device),
        held_out.codes,
    )
    assert weighted[1].loss_before == pytest.approx(np.average(losses, weights=heavy[held_out.codes]))


def test_read_outs_without_weights_have_other_ways():
    training = TrainingSettings(stopping=Stopping(20))
    parity = train_variational(rows(60, 0), CircuitSettings(readout="parity"), training, [[0]], Watch()).model
    with pytest.raises(ParameterError, match=r"read-out without weights.*optimizer='spsa' or 'adam'"):
        tuned(parity, TuningSettings())
    _, report = tuned(parity, TuningSettings("spsa", n_steps=2, batch_size=5))
    assert report.n_steps == 2


def test_nothing_to_judge_by_and_values_that_are_no_numbers(trained):
    with pytest.raises(DataError, match="needs held-out rows"):
        tuned(trained, TuningSettings(), held_out=rows(0, 0))
    with pytest.raises(DataError, match="expectation values that are no numbers"):
        tuned(trained, TuningSettings(), device=lambda *args: np.full((len(args[2]), len(args[3])), np.nan))
    with (
        pytest.raises(DataError, match="diverged: the weights are not finite"),
        np.errstate(over="ignore", invalid="ignore"),
    ):
        tuned(trained, TuningSettings(learning_rate=1e308))
