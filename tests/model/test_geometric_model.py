"""The hybrid model and its making: who decides, what a circuit may move, and how held-out rows judge it."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.calibration_curve import Calibration
from qmedoid.methods.variational.selection import OutOfFold, out_of_fold_score
from qmedoid.model.hybrid import (
    DeltaSettings,
    HybridModel,
    score_margins,
    shared_out,
    two_nearest,
    two_nearest_scores,
)
from qmedoid.model.refinement import CalibratedMethod, circuit_pays


@st.composite
def scored(draw):
    n, c = draw(st.integers(1, 6)), draw(st.integers(3, 5))
    tables = [draw(arrays(float, shape, elements=st.floats(-5, 5))) for shape in ((n, c), (n, c), (n, 2))]
    return tuple(tables)


@given(scored())
@settings(max_examples=40, deadline=None)
def test_sharing_out_moves_probability_between_the_two_nearest_alone(tables):
    scores, ranking, between = tables
    before, after = (np.exp(log_softmax(s)) for s in (scores, shared_out(scores, ranking, between)))
    np.testing.assert_allclose(after.sum(axis=1), 1, rtol=1e-12)
    best, second = two_nearest(ranking)
    rows = np.arange(len(scores))
    others = np.ones_like(scores, dtype=bool)
    others[rows, best] = others[rows, second] = False
    np.testing.assert_allclose(after[others], before[others], rtol=1e-9)
    both = before[rows, best] + before[rows, second]
    np.testing.assert_allclose(after[rows, best] + after[rows, second], both, rtol=1e-9)
    odds = np.log(after[rows, best]) - np.log(after[rows, second])
    np.testing.assert_allclose(odds, between[:, 1] - between[:, 0], atol=1e-9)


@given(scored())
@settings(max_examples=40, deadline=None)
def test_sharing_out_by_their_own_scores_changes_nothing(tables):
    scores = tables[0]
    same = shared_out(scores, scores, two_nearest_scores(scores))
    np.testing.assert_allclose(same, log_softmax(scores), atol=1e-9)


def test_a_margin_is_the_best_score_minus_the_second():
    np.testing.assert_array_equal(score_margins(np.array([[3.0, 1.0, 2.5], [1.0, 1.0, 0.0]])), [0.5, 0.0])


@given(scored())
@settings(max_examples=40, deadline=None)
def test_a_margin_lies_between_the_two_nearest(tables):
    between = two_nearest_scores(tables[0])
    # Scores that are equal up to rounding have no order.
    np.testing.assert_allclose(between[:, 1] - between[:, 0], score_margins(tables[0]), atol=1e-12)


# --- held-out rows --------------------------------------------------------------------------------------------------


def stage_of(held_out, fused, deltas):
    """A stage whose final scores are those of its held-out rows."""
    model = HybridModel(SimpleNamespace(rare_class=None), Calibration(1.0, np.zeros(fused.shape[1])), deltas)  # type: ignore[arg-type]
    folds = np.zeros(len(fused), dtype=np.intp)
    measured = SimpleNamespace(features=np.zeros((len(fused), 2)))
    return CalibratedMethod(model, -fused, -fused, measured, OutOfFold(held_out, folds))  # type: ignore[arg-type]


def test_rows_of_neither_of_their_two_nearest_classes_are_judged_by_what_fusion_says_of_them():
    """The circuit never sees them, and cannot help them; leaving them out would flatter a bad fusion model."""
    fused = np.array([[0.1, 0.2, 0.7], [0.2, 0.1, 0.7], [0.1, 0.3, 0.6]])
    codes = np.array([0, 1, 2])
    stage = stage_of(-fused, fused, DeltaSettings("nearest"))
    data, rows = stage.training_data(codes, np.ones(3))
    assert rows.tolist() == [0, 1]
    assert data.codes.tolist() == [1, 1]
    circuit = OutOfFold(np.array([[0.0, 2.0], [0.0, 2.0]]), np.array([0, 1]))
    refined = stage.refined_held_out(circuit, rows, np.inf)
    assert refined.judged.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(refined.scores[2], -fused[2])
    model = shared_out(-fused, -fused, np.array([[0.0, 2.0]] * 3))
    own = log_softmax(model)[np.arange(3), codes]
    assert out_of_fold_score(refined, codes, None) == pytest.approx(own.mean())


def test_only_rows_of_a_small_margin_get_the_circuit_s_scores():
    fused = np.array([[0.1, 0.9], [0.45, 0.55], [0.5, 0.5]])
    stage = stage_of(-fused, fused, DeltaSettings())
    circuit = OutOfFold(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.zeros(3, dtype=np.intp))
    refined = stage.refined_held_out(circuit, np.arange(3), 0.2)
    np.testing.assert_array_equal(refined.scores, [-fused[0], [3.0, 4.0], [5.0, 6.0]])


def test_rows_that_no_fold_held_out_are_not_judged():
    fused = np.array([[0.1, 0.9], [0.45, 0.55], [0.5, 0.5], [0.2, 0.8]])
    stage = stage_of(-fused, fused, DeltaSettings())
    stage.held_out.fold[0] = -1
    circuit = OutOfFold(np.full((4, 2), np.nan), np.full(4, -1))
    circuit.scores[:2] = 1.0
    assert stage.refined_held_out(circuit, np.arange(4), np.inf).judged.tolist() == [1]
    assert stage.refined_held_out(circuit, np.arange(4), 0.2).judged.tolist() == [1, 3]


def test_a_circuit_pays_when_changed_rows_are_likelier_by_more_than_a_standard_error():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=200)
    before = OutOfFold(np.zeros((200, 2)), np.zeros(200, dtype=np.intp))
    right = np.where(codes[:, None] == [0, 1], 1.0, -1.0)

    def after(scores):
        return OutOfFold(scores, before.fold)

    assert circuit_pays(before, after(right), codes)
    assert not circuit_pays(before, after(-right), codes)
    assert not circuit_pays(before, before, codes)
    lucky_once = np.zeros((200, 2))
    lucky_once[0] = right[0]
    assert not circuit_pays(before, after(lucky_once), codes)
    noise = right * rng.choice([-1.0, 1.0], size=200)[:, None]
    assert not circuit_pays(before, after(noise), codes)
    # A row that was never held out has no say.
    unseen = OutOfFold(before.scores, np.where(np.arange(200) < 2, 0, -1))
    assert not circuit_pays(unseen, after(np.where(np.arange(200)[:, None] < 2, -right, right)), codes)


def test_without_a_circuit_nobody_is_picked():
    model = HybridModel(SimpleNamespace(rare_class=None), Calibration(1.0, np.zeros(2)), refine_below=np.inf)  # type: ignore[arg-type]
    assert not model.picks(np.zeros((3, 2))).any()
