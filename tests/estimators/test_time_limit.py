"""A time limit leaves out what would end later and says so; where it does not bite, nothing changes."""

import warnings

import numpy as np
import pytest

import qmedoid
from few_trees import few_trees
from qmedoid import MedoidClassifier, SumClassifier
from qmedoid.estimators.recipes import is_time_for, part_in_time, time_is_up, time_limit
from qmedoid.exceptions import InterruptedWarning


class Clock:
    """A clock that stands still unless it is moved."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_without_a_limit_there_is_always_time():
    assert not time_is_up()
    assert is_time_for("anything")
    assert part_in_time("a part", 1e9, lambda report: report(0.5) or "done") == "done"


def test_a_part_that_is_expected_to_end_later_is_not_begun(clock):
    with time_limit(10.0, clock) as limit:
        assert part_in_time("short", 10.0, lambda _: "done") == "done"
        with pytest.warns(InterruptedWarning, match="The time limit of 10 s left out: long"):
            assert part_in_time("long", 10.1, lambda _: pytest.fail("it began")) is None
    assert limit.left_out == ["long"]


def test_a_part_is_given_up_once_its_pace_would_take_it_beyond(clock):
    seen = []

    def fit(seconds_each):
        def run(report):
            for done in (0.25, 0.5, 0.75, 1.0):
                clock.now += seconds_each
                report(done)
            return "done"

        return run

    with time_limit(10.0, clock) as limit:
        assert part_in_time("steady", 1.0, fit(1.0), seen.append) == "done"
        assert seen == [0.25, 0.5, 0.75, 1.0]
        with pytest.warns(InterruptedWarning, match="slow"):
            assert part_in_time("slow", 1.0, fit(2.0), seen.append) is None
    assert seen[4:] == [0.25]  # at 2 s a quarter it would take 8, and 6 are left
    assert limit.left_out == ["slow"]
    assert not limit.is_up


def test_the_end_of_a_block_is_the_end_of_its_limit(clock):
    with time_limit(1.0, clock):
        clock.now += 2.0
        assert time_is_up()
    assert not time_is_up()


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=1200) > 0).astype(int)


def test_a_sum_without_time_is_its_evidence(rows):
    with (
        few_trees(),
        time_limit(1e-9) as limit,
        pytest.warns(InterruptedWarning, match="trees"),
    ):
        fitted = SumClassifier(random_state=0).fit(*rows)
    assert list(fitted.weights_) == ["evidence"]
    assert limit.left_out == [
        "1 of 2 bags of the evidence", "neighbors of the evidence", "trees of comparisons",
        "neighbors under a learnt metric",
    ]  # fmt: skip


def test_evidence_of_the_first_bag_is_a_model_like_any_other(rows, tmp_path):
    X, y = rows[0][:200], rows[1][:200]
    with time_limit(1e-9), pytest.warns(InterruptedWarning, match="bags of the evidence"):
        fitted = MedoidClassifier(method="evidence", random_state=0).fit(X, y)
    fitted.save(tmp_path / "m")
    loaded = qmedoid.load(tmp_path / "m")
    np.testing.assert_allclose(loaded.predict_proba(X), fitted.predict_proba(X), atol=1e-12)
    explained = loaded.explain(X, 3)
    total = sum(group["contribution"] for group in explained["groups"]) + sum(explained["terms"].values())
    assert total == pytest.approx(explained["margin"])


def test_a_limit_that_does_not_bite_changes_no_bit(rows):
    with few_trees(), warnings.catch_warnings():
        warnings.simplefilter("error", InterruptedWarning)
        plain = SumClassifier(random_state=0).fit(*rows)
        with time_limit(1e6) as limit:
            limited = SumClassifier(random_state=0).fit(*rows)
    np.testing.assert_array_equal(plain.predict_proba(rows[0]), limited.predict_proba(rows[0]))
    assert len(plain.weights_) > 1
    assert limit.left_out == []


def test_a_circuit_is_left_out(rows):
    X, y = rows[0][:150], rows[1][:150]
    with time_limit(1e-9), pytest.warns(InterruptedWarning, match="the circuit"):
        fitted = MedoidClassifier(method="nearest", refine="always", random_state=0).fit(X, y)
    assert fitted.refinement_ == "none"
