"""Bad input of VariationalClassifier: what was given, what is allowed and what to do; odd input gets a warning."""

import warnings

import numpy as np
import pandas as pd
import pytest

from qmedoid import VariationalClassifier
from qmedoid.exceptions import DataError, ParameterError, QMedoidWarning

NAMES = ["age", "pulse", "sugar"]
rng = np.random.default_rng(0)
Y = np.arange(60) % 2
X = rng.normal(size=(60, 3)) + Y[:, None]
Y3 = np.arange(60) % 3


def quick(**changes):
    small = {"n_steps": 5, "n_reps": 1, "n_seeds": 1, "cv": 2, "random_state": 0}
    return VariationalClassifier(**(small | changes))


def spoilt(value, row=7, column=2):
    table = X.copy()
    table[row, column] = value
    return table


@pytest.fixture
def caught():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield seen


def one_warning(caught):
    """The only warning, which must point at this file and not at some wrapper."""
    assert len(caught) == 1, [str(w.message) for w in caught]
    assert caught[0].category is QMedoidWarning
    assert caught[0].filename == __file__
    return str(caught[0].message)


# --- the table --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e149, 1e-300])
def test_largest_and_smallest_values_that_are_taken_are_learnt_from(size, caught):
    table = X / np.abs(X).max() * size
    fitted = quick(n_steps=40).fit(table, Y)
    assert np.isfinite(fitted.predict_proba(table)).all()
    assert fitted.score(table, Y) > 0.7
    assert caught == []


def test_records_far_beyond_the_training_rows_are_clipped():
    fitted = quick().fit(X, Y)
    far, farther = fitted.predict_proba(np.full((1, 3), 1e6)), fitted.predict_proba(np.full((1, 3), 1e140))
    np.testing.assert_array_equal(far, farther)


def test_constant_feature_is_named(caught):
    frame = pd.DataFrame(X, columns=NAMES).assign(pulse=3.7)
    fitted = quick().fit(frame, Y)
    assert one_warning(caught) == "Feature column 'pulse' (number 1) is constant: its qubit is turned by nothing."
    assert np.isfinite(fitted.predict_proba(frame)).all()


def test_features_that_are_all_constant_leave_the_prior(caught):
    fitted = quick(n_steps=50).fit(np.ones((60, 3)), np.arange(60) % 4 == 0)
    assert one_warning(caught) == "Every feature is constant: nothing can be learned but how frequent the classes are."
    np.testing.assert_allclose(fitted.predict_proba(np.ones((2, 3)))[:, 1], 0.25, atol=0.05)


def test_batch_larger_than_the_table_is_the_table(caught):
    fitted = quick(batch_size=1000).fit(X, Y)
    assert one_warning(caught) == "batch_size=1000 is more than the 60 rows: every step uses all of them."
    caught.clear()
    np.testing.assert_array_equal(fitted.weights_, quick(batch_size=60).fit(X, Y).weights_)
    quick(batch_size=None).fit(X, Y)
    assert caught == []


# --- labels and folds -------------------------------------------------------------------------------------------


def test_fold_without_a_class_is_refused():
    rows = np.arange(60)
    splits = [(rows[Y == 0], rows[Y == 1]), (rows[::2], rows[1::2])]
    for changes in ({"operating_point": "f1"}, {"grid": {"n_reps": [1, 2]}}):
        with pytest.raises(DataError, match=r"Split 0 of 'cv' has no training row of class 1\. Use stratified splits"):
            quick(cv=splits, **changes).fit(X, Y)
    quick(cv=splits).fit(X, Y)  # nothing is chosen, so no fold is made


def test_held_out_rows_that_are_all_of_one_class_still_give_a_threshold():
    rows = np.arange(60)
    held = rows[Y == 1][:10]
    fitted = quick(cv=[(np.setdiff1d(rows, held), held)], operating_point="macro_f1").fit(X, Y)
    assert 0 < fitted.threshold_ < 1
    assert (fitted.predict(X) == 1).any()


def test_one_row_per_class_leaves_nothing_to_choose_the_threshold_by(caught):
    fitted = quick(operating_point="f1").fit(X[:2], ["a", "b"])
    assert one_warning(caught) == "No row was held out to choose the threshold by: it stays at even odds."
    assert fitted.threshold_ == 0.5


# --- the circuit ------------------------------------------------------------------------------------------------


def test_direct_read_out_needs_a_state_for_every_class():
    with pytest.raises(ParameterError, match=r"1 qubits have 2, and there are 3 classes\. Use at least 2 qubits"):
        quick(readout="direct", n_qubits=1).fit(X, Y3)
    nine = np.arange(60) % 9
    with pytest.raises(ParameterError, match=r"3 qubits have 8, and there are 9 classes\. Use at least 4 qubits"):
        quick(readout="direct").fit(X, nine)
    assert quick(readout="direct", n_qubits=4).fit(X, nine).predict_proba(X).shape == (60, 9)


def test_every_point_of_the_grid_is_checked_before_any_is_trained():
    with pytest.raises(ParameterError, match="1 qubits have 2, and there are 3 classes"):
        quick(readout="direct", grid={"n_qubits": [3, 1]}, n_steps=10**9).fit(X, Y3)


@pytest.mark.parametrize("scales", [[1.0, 2.0], np.ones(4), (1.0,) * 5])
def test_input_scales_of_another_number_are_refused(scales):
    with pytest.raises(DataError, match=f"There are {len(scales)} input scales for 3 features: pass one, or one for"):
        quick(input_scales=scales).fit(X, Y)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_training_that_diverges_says_what_to_do():
    with pytest.raises(DataError, match=r"diverged: .* Lower the step size \(learning_rate"):
        quick(learning_rate=1e308).fit(X, Y)


# --- parameters -------------------------------------------------------------------------------------------------


def test_unknown_name_in_the_grid_is_answered_with_the_known_ones():
    with pytest.raises(ParameterError, match=r"'n_reps': an int >= 1; 'reupload': True or False; .*'learning_rate'"):
        quick(grid={"depth": [1]}).fit(X, Y)


def test_numbers_of_numpy_are_numbers():
    fitted = quick(
        n_qubits=np.int64(2), n_reps=np.int32(1), reupload=np.True_, input_scales=np.float64(1.5), n_steps=np.int64(5),
        learning_rate=np.float32(0.05), operating_point=np.float64(0.4), n_seeds=np.int64(2), cv=np.int64(2),
        grid={"n_reps": [np.int64(1), np.int64(2)]},
    ).fit(X, Y)  # fmt: skip
    np.testing.assert_array_equal(fitted.input_scales_, [1.5, 1.5, 1.5])
    assert fitted.threshold_ == pytest.approx(0.4)
    np.testing.assert_array_equal(quick(input_scales=np.array([1.0, 2.0, 3.0])).fit(X, Y).input_scales_, [1, 2, 3])
