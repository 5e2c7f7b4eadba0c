"""What both minimizers share: the end of a training, what it keeps, and a state that can be taken up anywhere."""

import pickle

import numpy as np
import pytest
from toy_losses import Quadratic, Scripted

from qmedoid.optimize.minimizers import Stopping, TrainingState, clipped, minimize_adam, minimize_spsa

BOTH = pytest.mark.parametrize("minimize", [minimize_adam, minimize_spsa], ids=["adam", "spsa"])
START = np.array([3.0, 1.0, -1.0])


def followed(minimize, stopping, seed=0, objective=None, stop_at=None):
    """The minimum, and the parameters after every step."""
    path = []

    def on_step(state):
        path.append(state.theta.copy())
        return state.step == stop_at

    state = TrainingState(START, np.random.default_rng(seed))
    return minimize(objective or Quadratic(), state, stopping, on_step=on_step), np.array(path)


# --- what is kept -----------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("average", "last"), [(0.3, 12), (0.5, 20), (1.0, 40), (0.01, 1), (0.26, 10)])
def test_average_is_over_the_last_share_of_the_steps(minimize, average, last):
    found, path = followed(minimize, Stopping(40, average=average))
    np.testing.assert_allclose(found[0], path[-last:].mean(axis=0), rtol=1e-12)
    if 1 < last < 40:
        assert np.abs(found[0] - path[-last - 1 :].mean(axis=0)).max() > 1e-6
    assert (found[2], len(found[1])) == ("steps", 40)


def best_by_running_mean(losses):
    smooth = [losses[0]]
    for loss in losses[1:]:
        smooth.append(0.9 * smooth[-1] + 0.1 * loss)
    return int(np.argmin(smooth))


@pytest.mark.parametrize("average", [0.3, 0.0])
def test_training_stopped_early_keeps_its_best(average):
    # Falls, then rises for long: the last parameters are bad ones.
    losses = [1.0, 0.5, 0.2, 0.1, 0.1, 3.0, 3.0, 3.0, 3.0, 3.0]
    objective = Scripted([*losses, *[9.0] * 90])
    found, path = followed(minimize_adam, Stopping(100, average=average), objective=objective, stop_at=10)
    best = best_by_running_mean(losses)
    assert best == 4
    assert (found[2], len(found[1])) == ("stopped", 10)
    np.testing.assert_array_equal(found[1], losses)
    np.testing.assert_array_equal(found[0], path[best - 1])  # the loss of a step is that of where it began


def test_training_that_only_gets_worse_keeps_its_start():
    losses = [1.0, 2.0, 3.0, 4.0, 5.0]
    for stop_at in (1, 5):
        found, _ = followed(minimize_adam, Stopping(100), objective=Scripted(losses), stop_at=stop_at)
        np.testing.assert_array_equal(found[0], START)


def test_patience_before_the_average_begins_keeps_the_best():
    losses = [1.0, 0.5, 0.6, 0.7, 0.7]
    found, path = followed(minimize_adam, Stopping(100, patience=3), objective=Scripted([*losses, 0.0]))
    assert (found[2], len(found[1])) == ("patience", 5)
    np.testing.assert_array_equal(found[0], path[best_by_running_mean(losses) - 1])


@BOTH
def test_global_random_state_is_neither_read_nor_changed(minimize):
    np.random.seed(0)  # noqa: NPY002
    before = pickle.dumps(np.random.get_state())  # noqa: NPY002
    first, _ = followed(minimize, Stopping(10))
    assert pickle.dumps(np.random.get_state()) == before  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    second, _ = followed(minimize, Stopping(10))
    assert first[0].tobytes() == second[0].tobytes()
    other, _ = followed(minimize, Stopping(10), seed=1)
    assert first[0].tobytes() != other[0].tobytes()


def test_gradient_is_shortened_and_never_lengthened_or_turned():
    long, short = np.array([3.0, -4.0]), np.array([0.3, -0.4])
    np.testing.assert_allclose(clipped(long, 1.0), [0.6, -0.8])
    np.testing.assert_array_equal(clipped(short, 1.0), short)
    np.testing.assert_array_equal(clipped(long, None), long)
    np.testing.assert_array_equal(clipped(np.zeros(2), 1.0), np.zeros(2))


@BOTH
def test_last_keeps_the_last(minimize):
    found, path = followed(minimize, Stopping(40, average=0.0))
    np.testing.assert_array_equal(found[0], path[-1])
