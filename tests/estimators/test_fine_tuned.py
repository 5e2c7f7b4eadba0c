"""Classifiers whose circuit is tuned for a noisy backend: which rows tune and judge, what is kept and what is saved."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError

import qmedoid
from qmedoid import MedoidClassifier, VariationalClassifier
from qmedoid.exceptions import DataError, ModelError, ParameterError, QMedoidWarning
from qmedoid.methods.variational.expectations import exact_expectations


class Shrinking:
    """A device whose expectation values are halved, with the rows that it was given."""

    def __init__(self, factor=0.5):
        self.factor, self.rows = factor, []

    def __call__(self, ansatz, rotations, inputs, observables, /):
        self.rows.append(np.array(inputs))
        return self.factor * exact_expectations(ansatz, rotations, inputs, observables)


@pytest.fixture(scope="module")
def table():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:300, [0, 1, 4]], np.array(["benign", "malignant"])[1 - y[:300]]


@pytest.fixture(scope="module")
def fitted(table):
    return VariationalClassifier(n_qubits=2, n_reps=1, n_steps=80, n_seeds=1, random_state=0).fit(*table)


def loss(model, X, y):
    p = model.predict_proba(X)
    return -np.log(p[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean()


def test_weights_make_up_for_noise(fitted, table):
    before = fitted.readout_weights_.copy()
    tuned = fitted.fine_tuned(*table, Shrinking(), random_state=1)
    assert tuned.fine_tuning_.kept
    np.testing.assert_array_equal(tuned.weights_, fitted.weights_)
    np.testing.assert_array_equal(tuned.readout_weights_, tuned.model_.parameters.readout)
    assert loss(tuned.measured_by(Shrinking()), *table) < loss(fitted.measured_by(Shrinking()), *table) - 0.01
    # The one that it was made from is as it was, and has no report.
    np.testing.assert_array_equal(fitted.readout_weights_, before)
    assert not hasattr(fitted, "fine_tuning_")


@pytest.mark.parametrize("optimizer", ["spsa", "adam"])
def test_all_parameters_can_be_tuned(fitted, table, optimizer):
    tuned = fitted.fine_tuned(*table, Shrinking(), optimizer=optimizer, n_steps=3, batch_size=20, random_state=1)
    report = tuned.fine_tuning_
    assert (report.optimizer, report.n_steps, report.batch_size) == (optimizer, 3, 20)
    assert report.kept
    assert not np.array_equal(tuned.weights_, fitted.weights_)


def test_half_of_the_rows_judge_and_none_of_them_tunes(fitted, table):
    device = Shrinking()
    report = fitted.fine_tuned(*table, device, random_state=1).fine_tuning_
    tuning, judging = device.rows
    assert (len(tuning), len(judging)) == (report.n_tuning_rows, report.n_held_out_rows) == (150, 150)
    assert report.n_circuits == 300
    assert not {row.tobytes() for row in tuning} & {row.tobytes() for row in judging}


def test_rows_that_judge_can_be_limited(fitted, table):
    device = Shrinking()
    fitted.fine_tuned(*table, device, max_held_out=40, batch_size=30, random_state=1)
    assert [len(rows) for rows in device.rows] == [30, 40]


def test_groups_tune_or_judge_together(fitted, table):
    """Rows in groups of ten neighbors; copies of rows are groups by themselves."""
    X, y = table
    encoded = fitted.model_.encoded(X)
    place = {row.tobytes(): number for number, row in enumerate(encoded)}
    device = Shrinking()
    fitted.fine_tuned(X, y, device, groups=np.arange(300) // 10, random_state=1)
    tuning, judging = ({place[row.tobytes()] // 10 for row in rows} for rows in device.rows)
    assert not tuning & judging
    device, twice = Shrinking(), (np.concatenate([X, X]), np.concatenate([y, y]))
    with pytest.warns(QMedoidWarning, match="300 of 600 rows are equal to an earlier row"):
        fitted.fine_tuned(*twice, device, random_state=1)
    tuning, judging = ({row.tobytes() for row in rows} for rows in device.rows)
    assert not tuning & judging


def test_order_of_the_rows_changes_nothing(fitted, table):
    X, y = table
    order = np.random.default_rng(0).permutation(300)
    first = fitted.fine_tuned(X, y, Shrinking(), random_state=1)
    again = fitted.fine_tuned(X[order], y[order], Shrinking(), random_state=1)
    np.testing.assert_array_equal(first.readout_weights_, again.readout_weights_)
    other = fitted.fine_tuned(X, y, Shrinking(), random_state=2)
    assert not np.array_equal(first.readout_weights_, other.readout_weights_)


def test_weights_that_do_not_help_are_not_kept_and_that_is_said(fitted, table):
    with pytest.warns(QMedoidWarning, match="weights were not kept: the held-out loss under noise rose by"):
        same = fitted.fine_tuned(*table, Shrinking(), learning_rate=50.0, n_steps=2, random_state=1)
    assert not same.fine_tuning_.kept
    np.testing.assert_array_equal(same.readout_weights_, fitted.readout_weights_)
    assert "fine_tuning" not in same.table_model().metrics


def test_tuned_classifiers_are_saved_with_a_note(fitted, table, tmp_path):
    X, _ = table
    tuned = fitted.measured_by(Shrinking()).fine_tuned(*table, Shrinking(), random_state=1)
    saved = qmedoid.load(tuned.save(tmp_path / "tuned.qmedoid"))
    np.testing.assert_array_equal(saved.predict_proba(X), tuned.predict_proba(X))
    about = saved.model.metrics["fine_tuning"]
    assert about["kept"] is True
    assert about["loss_after"] == tuned.fine_tuning_.loss_after
    assert "loss" not in saved.model.metrics
    assert "loss" in fitted.table_model().metrics
    from qmedoid.model.storage.card import model_card

    assert "tuned for a noisy backend" in model_card(tuned.table_model(), raw_rows=True)
    assert "tuned for a noisy backend" not in model_card(fitted.table_model(), raw_rows=True)


def test_a_new_fit_forgets_the_tuning(fitted, table):
    tuned = fitted.fine_tuned(*table, Shrinking(), random_state=1)
    assert not hasattr(clone(tuned), "fine_tuning_")
    tuned.fit(*table)
    assert not hasattr(tuned, "fine_tuning_")
    np.testing.assert_array_equal(tuned.readout_weights_, fitted.readout_weights_)


# --- the circuit of a MedoidClassifier ------------------------------------------------------------------------------


def medoid(**settings):
    circuit = VariationalClassifier(n_steps=60, n_seeds=1, n_reps=1)
    return MedoidClassifier(method="nearest", variational=circuit, random_state=0, **settings)


def test_circuit_of_a_medoid_classifier_is_tuned_on_new_rows(table):
    X, y = table
    model = medoid(refine="always").fit(X[::2], y[::2])
    device = Shrinking()
    tuned = model.fine_tuned(X[1::2], y[1::2], device, random_state=1)
    assert tuned.fine_tuning_.kept
    assert tuned.fine_tuning_.n_circuits == sum(map(len, device.rows)) == 150
    assert tuned.model_.variational is tuned.models_[0].variational is tuned.variational_.model_
    np.testing.assert_array_equal(tuned.variational_.readout_weights_, tuned.model_.variational.parameters.readout)
    assert model.model_.variational is model.variational_.model_
    rows = X[1::2], y[1::2]
    gain = loss(model.measured_by(expectations=Shrinking()), *rows) - loss(
        tuned.measured_by(expectations=Shrinking()), *rows
    )
    assert gain > 0.01
    assert tuned.table_model().metrics["fine_tuning"]["kept"] is True
    # Judged rows have the loss that predictions have.
    before = model.measured_by(expectations=Shrinking())
    assert abs(tuned.fine_tuning_.loss_before - loss(before, *rows)) < 4 * tuned.fine_tuning_.loss_before_error


def test_rows_of_the_fit_do_not_tune_a_medoid_classifier(table):
    X, y = table
    model = medoid(refine="always").fit(X[::2], y[::2])
    with pytest.raises(DataError, match="150 of 150 rows have the cells of rows that the classifier was fitted on"):
        model.fine_tuned(X[::2], y[::2], Shrinking())
    with pytest.warns(QMedoidWarning, match=r"fitted on: 10\."):
        tuned = model.fine_tuned(
            np.concatenate([X[1::2], X[:20:2]]), np.concatenate([y[1::2], y[:20:2]]), Shrinking(), random_state=1
        )
    assert tuned.fine_tuning_.n_tuning_rows + tuned.fine_tuning_.n_held_out_rows == 150


def test_circuit_of_some_records_between_two_classes_is_tuned_on_these():
    X, y = load_iris(return_X_y=True)
    model = medoid(refine=0.5, deltas="nearest", residual=True).fit(X[::2], y[::2])
    device = Shrinking()
    new = X[1::2], y[1::2]
    tuned = model.fine_tuned(*new, device, random_state=1, groups=np.arange(75))
    decided = (model.decided_by(new[0]) == "circuit").sum()
    assert 10 < tuned.fine_tuning_.n_tuning_rows + tuned.fine_tuning_.n_held_out_rows <= decided < 75


def test_no_circuit_nothing_to_tune(table):
    X, y = table
    model = medoid(refine="never").fit(X[::2], y[::2])
    with pytest.raises(ModelError, match="has no circuit that could be tuned"):
        model.fine_tuned(X[1::2], y[1::2], Shrinking())


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("optimizer", "newton", "one of 'readout', 'adam', 'spsa'"),
        ("n_steps", 0, "None or an int >= 1"),
        ("batch_size", 2.5, "None or an int >= 1"),
        ("learning_rate", -1.0, "None or a number above 0"),
        ("max_held_out", 1, "an int >= 2"),
        ("random_state", "x", "numpy.random.RandomState"),
    ],
)
def test_parameters_out_of_range(fitted, table, name, value, text):
    with pytest.raises(ParameterError, match=rf"'{name}' parameter of fine_tuned must be .*{text}"):
        fitted.fine_tuned(*table, Shrinking(), **{name: value})


def test_rows_that_cannot_be_used(fitted, table):
    X, y = table
    with pytest.raises(NotFittedError):
        VariationalClassifier().fine_tuned(X, y, Shrinking())
    with pytest.raises(DataError, match="classes that the classifier was not fitted on: 'unsure'"):
        fitted.fine_tuned(X, np.where(np.arange(300) == 7, "unsure", y), Shrinking())
    with pytest.raises(DataError, match="X has 300 rows and y has 5"):
        fitted.fine_tuned(X, y[:5], Shrinking())
    one_of_each = [np.flatnonzero(y == label)[0] for label in fitted.classes_]
    with pytest.raises(DataError, match="2 of the rows, which cannot be split"):
        fitted.fine_tuned(X[one_of_each], y[one_of_each], Shrinking())
    benign = y == "benign"
    with pytest.raises(DataError, match="cannot be split into some that tune and some that judge"):
        fitted.fine_tuned(X[benign], y[benign], Shrinking())
