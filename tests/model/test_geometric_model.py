"""The refinement by a circuit, and its making: who decides, what a circuit may move, and how held-out rows judge it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qmedoid.estimators.refining import refined_held_out, training_data
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.part import OutOfFold, Scored
from qmedoid.methods.variational.training import out_of_fold_score
from qmedoid.model.refinement import (
    CircuitInputs,
    Refinement,
    refinement_margins,
    shared_out,
    two_nearest,
    two_nearest_scores,
)


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
def test_a_margin_lies_between_the_two_nearest(tables):
    between = two_nearest_scores(tables[0])
    # Scores that are equal up to rounding have no order.
    np.testing.assert_allclose(between[:, 1] - between[:, 0], refinement_margins(tables[0]), atol=1e-12)


# --- held-out rows --------------------------------------------------------------------------------------------------


def refined(fused, circuit, rows, *, refine_below=np.inf, fold=None, inputs=CircuitInputs()):  # noqa: B008
    """Out-of-fold scores after the circuit, of rows whose scores before are these dissimilarities with their sign."""
    before = OutOfFold(-fused, np.zeros(len(fused), dtype=np.intp) if fold is None else fold)
    return refined_held_out(before, -fused, Refinement(object(), inputs, refine_below), circuit, rows)


def test_rows_of_neither_of_their_two_nearest_classes_are_judged_by_what_fusion_says_of_them():
    """The circuit never sees them, and cannot help them; leaving them out would flatter a bad fusion model."""
    fused = np.array([[0.1, 0.2, 0.7], [0.2, 0.1, 0.7], [0.1, 0.3, 0.6]])
    codes = np.array([0, 1, 2])
    inputs, found = CircuitInputs("nearest"), Scored(fused, distance=fused, angle=fused)
    data, rows = training_data(inputs, False, found, -fused, codes, np.ones(3))
    assert rows.tolist() == [0, 1]
    assert data.codes.tolist() == [1, 1]
    circuit = OutOfFold(np.array([[0.0, 2.0], [0.0, 2.0]]), np.array([0, 1]))
    found = refined(fused, circuit, rows, inputs=inputs)
    assert np.flatnonzero(found.fold >= 0).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.scores[2], -fused[2])
    model = shared_out(-fused, -fused, np.array([[0.0, 2.0]] * 3))
    own = log_softmax(model)[np.arange(3), codes]
    assert out_of_fold_score(found, codes, None) == pytest.approx(own.mean())


def test_only_rows_of_a_small_margin_get_the_circuit_s_scores():
    fused = np.array([[0.1, 0.9], [0.45, 0.55], [0.5, 0.5]])
    circuit = OutOfFold(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), np.zeros(3, dtype=np.intp))
    found = refined(fused, circuit, np.arange(3), refine_below=0.2)
    np.testing.assert_array_equal(found.scores, [-fused[0], [3.0, 4.0], [5.0, 6.0]])


def test_rows_that_no_fold_held_out_are_not_judged():
    fused = np.array([[0.1, 0.9], [0.45, 0.55], [0.5, 0.5], [0.2, 0.8]])
    fold = np.array([-1, 0, 0, 0])
    circuit = OutOfFold(np.full((4, 2), np.nan), np.full(4, -1))
    circuit.scores[:2] = 1.0
    assert np.flatnonzero(refined(fused, circuit, np.arange(4), fold=fold).fold >= 0).tolist() == [1]
    wider = refined(fused, circuit, np.arange(4), refine_below=0.2, fold=fold)
    assert np.flatnonzero(wider.fold >= 0).tolist() == [1, 3]
