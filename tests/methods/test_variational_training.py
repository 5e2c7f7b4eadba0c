"""Trainings side by side: the same bits however they run, the best is kept, and nothing is lost when cut short."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.metrics import f1_score, recall_score

from qmedoid.exceptions import DataError
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.part import OutOfFold
from qmedoid.methods.variational import training as variational_selection
from qmedoid.methods.variational.model import Batch
from qmedoid.methods.variational.training import (
    CircuitSettings,
    Trained,
    TrainingData,
    Watch,
    out_of_fold,
    out_of_fold_score,
    select_variational,
    train_candidate,
    train_variational,
)
from qmedoid.metrics.thresholds import THRESHOLD_METRICS, all_cuts, metric_at
from qmedoid.optimize.minimizers import Stopping

SEEDS = [[7, 0], [7, 1], [7, 2]]


def settings(steps=12, **changes):
    return CircuitSettings(
        **({"n_reps": 1, "stopping": Stopping(steps), "batch_size": 16, "learning_rate": 0.1} | changes)
    )


def data(n=60, seed=0, n_classes=2):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    return TrainingData(rng.normal(size=(n, 2)) + 0.7 * codes[:, None], codes, np.ones(n_classes))


def bits(trained: Trained) -> tuple[bytes, ...]:
    return tuple(theta.tobytes() + losses.tobytes() for theta, losses, _ in trained.minima)


# --- the same bits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["adam", "spsa"])
@pytest.mark.parametrize("sampling", ["importance", "uniform"])
def test_threads_change_no_bit(monkeypatch, optimizer, sampling):
    outcomes = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("QMEDOID_THREADS", threads)
        outcomes.append(train_variational(data(), settings(optimizer=optimizer, sampling=sampling), SEEDS, Watch()))
    assert bits(outcomes[0]) == bits(outcomes[1]) == bits(outcomes[2])
    assert len(set(bits(outcomes[0]))) == 3  # and every seed is a training of its own
    np.testing.assert_array_equal(outcomes[0].model.theta, outcomes[1].model.theta)


def test_a_seed_does_not_know_the_others():
    together = train_variational(data(), settings(), SEEDS, Watch())
    turned = train_variational(data(), settings(), SEEDS[::-1], Watch())
    assert bits(turned) == bits(together)[::-1]
    np.testing.assert_array_equal(turned.seed_losses, together.seed_losses[::-1])
    np.testing.assert_array_equal(turned.model.theta, together.model.theta)
    alone = train_variational(data(), settings(), SEEDS[1:2], Watch())
    assert bits(alone) == bits(together)[1:2]


def test_the_seed_with_the_lowest_loss_on_all_rows_is_kept():
    table = data(n_classes=3)._replace(class_weights=np.array([1.0, 2.0, 0.5]))
    trained = train_variational(table, settings(5), [[i] for i in range(5)], Watch())
    weights = table.class_weights[table.codes] / table.class_weights[table.codes].sum()
    for model, (theta, *_), loss in zip(trained.models, trained.minima, trained.seed_losses, strict=True):
        np.testing.assert_array_equal(model.theta, theta)
        rows = Batch(model.angle_map.apply(table.features), table.codes, weights)
        assert model.network.loss(model.theta, rows) == loss
        log_p = log_softmax(model.scores(table.features))[np.arange(60), table.codes]
        assert -weights @ log_p == pytest.approx(loss, rel=1e-9)
    assert len(set(trained.seed_losses)) == 5
    assert trained.model is trained.models[int(np.argmin(trained.seed_losses))]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_training_that_diverged_is_never_kept():
    trained = train_variational(data(), settings(), SEEDS, Watch())
    spoilt = Trained(trained.models, np.array([np.nan, 0.7, 0.6]), trained.minima)
    assert spoilt.best == 2
    with pytest.raises(DataError, match=r"diverged: no loss is finite after 12 steps\. Lower the step size"):
        train_variational(data(), settings(learning_rate=1e308), SEEDS, Watch())


def test_scores_to_be_corrected_are_part_of_the_loss():
    table = data()
    truth = np.where(np.arange(2) == table.codes[:, None], 4.0, -4.0)
    known = train_variational(table._replace(offset=truth), settings(), SEEDS, Watch())
    wrong = train_variational(table._replace(offset=-truth), settings(), SEEDS, Watch())
    assert known.seed_losses.max() < 0.05
    assert wrong.seed_losses.min() > 2


def test_input_scales_of_another_number_are_refused():
    with pytest.raises(DataError, match="There are 3 input scales for 2 features: pass one, or one for each"):
        settings(scales=(1.0, 2.0, 3.0)).network(2, 2)


# --- cut short --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["process", "thread"])
@pytest.mark.parametrize("threads", ["1", "2"])
def test_an_interrupt_stops_every_training_with_its_best(monkeypatch, threads, to):
    """The signal of Ctrl-C while trainings run on their threads, whichever of them the system wakes with it."""
    monkeypatch.setenv("QMEDOID_THREADS", threads)
    sent = []

    def interrupt(_seed, step, *_):
        if step == 5 and not sent:
            sent.append(step)
            if to == "process":
                os.kill(os.getpid(), signal.SIGINT)
            else:
                signal.raise_signal(signal.SIGINT)

    table = data()
    trained = train_variational(table, settings(20_000), SEEDS, Watch(interrupt))
    assert sent
    assert trained.stopped
    assert all(ended == "stopped" and 1 <= len(losses) < 20_000 for _, losses, ended in trained.minima)
    assert np.isfinite(trained.model.scores(table.features)).all()
    # Another training may be asked for right after: the interrupt was used up.
    assert not train_variational(table, settings(), SEEDS, Watch()).stopped


def test_a_callback_stops_all_trainings_and_is_told_every_step_until_then():
    reports = []

    def stop(*report):
        reports.append(report)
        return report[:2] == (0, 4)

    trained = train_variational(data(), settings(20_000), SEEDS[:2], Watch(stop))
    assert len(trained.minima[0][1]) == 4
    for number, (_, losses, _) in enumerate(trained.minima):
        mine = [report for report in reports if report[0] == number]
        assert mine == [(number, step, 20_000, loss) for step, loss in enumerate(losses.tolist(), start=1)]


def test_reports_come_one_at_a_time(monkeypatch):
    monkeypatch.setenv("QMEDOID_THREADS", "3")
    inside, threads = threading.Lock(), set()

    def alone(*_report):
        assert inside.acquire(blocking=False)
        threads.add(threading.get_ident())
        time.sleep(0.0005)
        inside.release()

    train_variational(data(), settings(20), SEEDS, Watch(alone))
    assert len(threads) > 1


def test_an_error_in_one_training_stops_the_others_and_is_raised(monkeypatch):
    monkeypatch.setenv("QMEDOID_THREADS", "2")
    others = []

    def fail(seed, step, *_):
        if (seed, step) == (0, 3):
            raise ZeroDivisionError
        others.append(step)

    with pytest.raises(ZeroDivisionError):
        train_variational(data(), settings(20_000), SEEDS, Watch(fail))
    assert max(others) < 20_000


# --- selection --------------------------------------------------------------------------------------------------

SPLITS = [(np.flatnonzero(np.arange(60) % 3 != fold), np.flatnonzero(np.arange(60) % 3 == fold)) for fold in range(3)]
CANDIDATE = settings()


def held_out(table, candidate=CANDIDATE, splits=SPLITS):
    return out_of_fold(table, candidate, splits, [5], 2, Watch())


@pytest.mark.parametrize("fold", [0, 1, 2])
def test_a_row_is_scored_by_a_circuit_that_never_saw_it(fold):
    table = data()
    before = held_out(table)
    mine = SPLITS[fold][1]
    labels, features = table.codes.copy(), table.features.copy()
    labels[mine] = 1 - labels[mine]
    features[mine[1:]] += 100.0
    after = held_out(table._replace(codes=labels, features=features))
    # Neither its label nor the other held-out rows matter to a row, not even through the scaling ...
    assert after.scores[mine[0]].tobytes() == before.scores[mine[0]].tobytes()
    # ... but they do to the circuits of the other folds.
    others = np.flatnonzero(np.arange(60) % 3 != fold)
    assert (after.scores[others] != before.scores[others]).any(axis=1).all()


def test_every_row_is_scored_by_its_own_fold():
    table = data()
    found = held_out(table)
    np.testing.assert_array_equal(found.fold, np.arange(60) % 3)
    np.testing.assert_array_equal(np.flatnonzero(found.fold >= 0), np.arange(60))
    for number, (train, held) in enumerate(SPLITS):
        model = train_candidate(table.part(train), CANDIDATE, [5, number], 2, Watch()).model
        np.testing.assert_array_equal(found.scores[held], model.scores(table.features[held]))


def test_rows_that_are_never_held_out_are_not_judged():
    table = data()
    found = held_out(table, splits=SPLITS[:1])
    np.testing.assert_array_equal(np.flatnonzero(found.fold >= 0), SPLITS[0][1])
    assert np.isnan(found.scores[SPLITS[0][0]]).all()
    other = table.codes.copy()
    other[SPLITS[0][0]] = 0
    for metric in (None, "f1"):
        assert out_of_fold_score(found, table.codes, metric) == out_of_fold_score(found, other, metric)


@pytest.mark.parametrize("metric", sorted(THRESHOLD_METRICS))
def test_a_fold_is_judged_at_the_threshold_of_the_other_folds(metric):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=60)
    margin = rng.normal(size=60) + codes
    fold = np.arange(60) % 3
    found = OutOfFold(np.column_stack([0.3 - margin / 2, 0.3 + margin / 2]), fold)
    margin = found.scores[:, 1] - found.scores[:, 0]
    called = np.zeros(60)
    for number in range(3):
        threshold = all_cuts(codes[fold != number], margin[fold != number]).best(metric)
        called[fold == number] = margin[fold == number] > threshold
    assert out_of_fold_score(found, codes, metric) == pytest.approx(metric_at(codes, called, 0.5, metric), rel=1e-12)


@pytest.mark.parametrize(("metric", "judge"), [("macro_f1", f1_score), ("balanced_accuracy", recall_score)])
def test_of_more_than_two_classes_the_likeliest_is_judged(metric, judge):
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=60)
    scores = rng.normal(size=(60, 3)) + np.eye(3)[codes]
    fold = np.where(np.arange(60) < 50, np.arange(60) % 3, -1)
    scores[fold < 0] = np.nan
    expected = judge(codes[:50], scores[:50].argmax(axis=1), average="macro")
    assert out_of_fold_score(OutOfFold(scores, fold), codes, metric) == pytest.approx(expected, rel=1e-12)


def test_scores_without_information_are_not_rewarded():
    """The best of all cuts of a fold's own noise is better than chance; that of the other folds' is not."""
    honest, own = [], []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        codes, margin = rng.integers(2, size=40), rng.normal(size=40)
        fold = np.arange(40) % 2
        found = OutOfFold(np.column_stack([np.zeros(40), margin]), fold)
        honest.append(out_of_fold_score(found, codes, "balanced_accuracy"))
        for number in range(2):
            c, m = codes[fold == number], margin[fold == number]
            own.append(metric_at(c, m, all_cuts(c, m).best("balanced_accuracy"), "balanced_accuracy"))
    assert np.mean(own) > 0.6
    assert abs(np.mean(honest) - 0.5) < 0.02


def test_without_a_metric_it_is_the_mean_log_likelihood():
    table = data(n_classes=3)
    found = held_out(table)
    p = np.exp(found.scores) / np.exp(found.scores).sum(axis=1, keepdims=True)
    expected = np.log(p[np.arange(60), table.codes]).mean()
    assert out_of_fold_score(found, table.codes, None) == pytest.approx(expected, rel=1e-9)


CANDIDATES = [settings(steps) for steps in (1, 60, 2)]


@pytest.mark.parametrize("metric", [None, "macro_f1"])
def test_the_candidate_with_the_best_score_is_chosen(metric):
    table = data()
    chosen = select_variational(table, CANDIDATES, SPLITS, [5], 2, metric, Watch())
    each = [out_of_fold(table, candidate, SPLITS, [5, i], 2, Watch()) for i, candidate in enumerate(CANDIDATES)]
    scores = [out_of_fold_score(found, table.codes, metric) for found in each]
    best, chosen_by, kept = chosen
    np.testing.assert_array_equal(chosen_by, scores)
    assert best == int(np.argmax(scores))
    np.testing.assert_array_equal(kept.scores, each[best].scores)
    assert len(set(scores)) > 1


def test_of_equal_candidates_the_first_is_chosen(monkeypatch):
    monkeypatch.setattr(variational_selection, "out_of_fold_score", lambda *_: 0.5)
    assert select_variational(data(), CANDIDATES, SPLITS, [5], 1, None, Watch())[0] == 0


@pytest.mark.parametrize(("steps", "judged"), [(1, 0), (5, 0), (6, 1), (20, 1)])
def test_a_choice_that_was_stopped_keeps_the_candidates_judged_before(steps, judged):
    """Candidate 0 takes 6 steps: three folds, two seeds, one step."""
    seen, watch = [], Watch()
    watch.on_step = lambda *report: seen.append(report) or len(seen) > steps
    found = select_variational(data(), CANDIDATES, SPLITS, [5], 2, None, watch)
    if judged == 0:
        assert found is None
    else:
        full = select_variational(data(), CANDIDATES[:1], SPLITS, [5], 2, None, Watch())
        assert found[0] == 0
        np.testing.assert_array_equal(found[1], full[1])
        np.testing.assert_array_equal(found[2].scores, full[2].scores)
