"""VariationalClassifier as users meet it: tables, labels, decisions, meta-estimators, circuits, and what it learns."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    PredefinedSplit,
)

from qmedoid import VariationalClassifier, load
from qmedoid.exceptions import QMedoidWarning
from qmedoid.geometry.row_groups import ranks, row_order
from qmedoid.methods.variational import training as variational_selection
from qmedoid.methods.variational.readout import DirectReadout, ParityReadout
from qmedoid.metrics.thresholds import THRESHOLD_METRICS, chosen_threshold

rng = np.random.default_rng(0)
NAMES = ["delta", "angle", "fused"]
Y2 = (np.arange(90) % 3 == 0).astype(int)
X2 = rng.normal(size=(90, 3)) + 0.9 * Y2[:, None]
WINE = load_wine()
X3, Y3 = WINE.data[:, [6, 9, 12]], WINE.target


def quick(**changes):
    """A classifier that trains little."""
    small = {
        "n_steps": 30,
        "n_reps": 1,
        "n_seeds": 1,
        "batch_size": 32,
        "cv": 3,
        "learning_rate": 0.2,
        "random_state": 0,
    }
    return VariationalClassifier(**(small | changes))


def same(a, b):
    for name in ("weights_", "input_scales_", "readout_weights_", "seed_losses_", "loss_curve_"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    assert a.threshold_ == b.threshold_


# --- tables and labels ------------------------------------------------------------------------------------------


def test_simulation_in_single_precision_is_close():
    double, single = quick(n_steps=5).fit(X2, Y2), quick(n_steps=5, precision="float32").fit(X2, Y2)
    np.testing.assert_allclose(single.predict_proba(X2), double.predict_proba(X2), atol=1e-4)
    assert (single.weights_ != double.weights_).any()
    assert single.predict_proba(X2).dtype == np.float64


# --- decisions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("readout", ["strings", "direct", "parity"])
def test_without_an_operating_point_the_likeliest_class_is_predicted(readout):
    for X, y in [(X2, Y2), (X3, np.array(["c", "a", "b"])[Y3])]:
        if readout == "parity" and len(set(y)) > 2:
            continue
        fitted = quick(readout=readout).fit(X, y)
        p = fitted.predict_proba(X)
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        assert (p >= 0).all()
        np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[p.argmax(axis=1)])
        assert len(set(fitted.predict(X))) > 1
        assert fitted.threshold_ == 0.5
        assert fitted.cv_scores_ is None
        values = fitted.decision_function(X)
        if len(fitted.classes_) == 2:
            np.testing.assert_allclose(values, np.log(p[:, 1] / p[:, 0]), rtol=1e-7, atol=1e-9)
            np.testing.assert_array_equal(values > 0, p[:, 1] > 0.5)
        else:
            assert values.shape == p.shape
            np.testing.assert_array_equal(values.argmax(axis=1), p.argmax(axis=1))


@pytest.mark.parametrize("operating_point", [*sorted(THRESHOLD_METRICS), 0.3, 0.9])
def test_operating_point_cuts_the_decision_values_at_zero(operating_point):
    fitted = quick(operating_point=operating_point).fit(X2, np.array(["no", "yes"])[Y2])
    values, called = fitted.decision_function(X2), fitted.predict(X2) == "yes"
    np.testing.assert_array_equal(called, values > 0)
    p = fitted.predict_proba(X2)[:, 1]
    np.testing.assert_array_equal(called, p > fitted.threshold_)
    t = fitted.threshold_
    np.testing.assert_allclose(values, np.log(p / (1 - p)) - np.log(t / (1 - t)), rtol=1e-7, atol=1e-9)
    if isinstance(operating_point, float):
        assert t == pytest.approx(operating_point, rel=1e-12)


def test_zero_itself_is_the_first_class():
    fitted = quick(operating_point=0.5).fit(X2, Y2)
    # The value of a record is now the threshold itself.
    cut = float(fitted.decision_function(X2[:1])[0])
    fitted.model_ = replace(fitted.model_, decision=replace(fitted.model_.decision, cut=cut))
    assert fitted.decision_function(X2[:1])[0] == 0
    assert fitted.predict(X2[:1])[0] == 0


def test_probabilities_do_not_depend_on_the_operating_point():
    plain, cut = quick().fit(X2, Y2), quick(operating_point="f2").fit(X2, Y2)
    np.testing.assert_array_equal(plain.predict_proba(X2), cut.predict_proba(X2))
    assert (plain.predict(X2) != cut.predict(X2)).any()


def test_threshold_is_the_best_on_rows_that_were_held_out(monkeypatch):
    kept, original = [], variational_selection.out_of_fold

    def spy(*arguments):
        kept.append(original(*arguments))
        return kept[-1]

    monkeypatch.setattr(variational_selection, "out_of_fold", spy)
    fitted = quick(operating_point="f1").fit(X2, Y2)
    (found,) = kept
    margin = found.scores[:, 1] - found.scores[:, 0]
    labels = Y2[row_order(ranks(X2), Y2)]
    assert fitted.model_.decision.cut == chosen_threshold("f1", 0.0, labels == 1, margin)
    assert f1_score(labels, margin > fitted.model_.decision.cut) >= f1_score(labels, margin > 0)
    own = fitted.decision_function(X2) + fitted.model_.decision.cut
    assert fitted.model_.decision.cut != chosen_threshold("f1", 0.0, Y2 == 1, own)


def test_rows_that_are_never_held_out_do_not_move_the_threshold():
    """One split whose training part is a fixed set of rows: the labels of the held-out rows alone set the cut."""
    split = PredefinedSplit(np.where(np.arange(90) < 45, -1, 0))
    fitted = quick(operating_point="accuracy", cv=split).fit(X2, Y2)
    half = quick().fit(X2[:45], Y2[:45])
    # The circuit of that split is trained on those rows, though from another seed; held-out labels all 1 pull the
    # threshold below every score, whatever the circuit.
    all_ones = np.where(np.arange(90) < 45, Y2, 1)
    pulled = quick(operating_point="accuracy", cv=split).fit(X2, all_ones)
    assert pulled.threshold_ < fitted.threshold_
    assert pulled.threshold_ <= half.predict_proba(X2[45:])[:, 1].max()


# --- the same seed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["adam", "spsa"])
def test_threads_change_no_bit(monkeypatch, optimizer):
    models = []
    for threads in ("1", "2"):
        monkeypatch.setenv("QMEDOID_THREADS", threads)
        grid = {"n_reps": [1, 2]}
        models.append(quick(optimizer=optimizer, n_seeds=3, grid=grid, operating_point="f1").fit(X2, Y2))
    same(*models)
    np.testing.assert_array_equal(models[0].cv_scores_, models[1].cv_scores_)
    np.testing.assert_array_equal(models[0].predict_proba(X2), models[1].predict_proba(X2))


def test_units_of_the_features_do_not_matter():
    unit = np.array([1e-3, 1.0, 4e6])
    plain, scaled = quick().fit(X2, Y2), quick().fit(X2 * unit + 7.0 * unit, Y2)
    np.testing.assert_allclose(
        scaled.predict_proba(X2 * unit + 7.0 * unit), plain.predict_proba(X2), rtol=1e-6, atol=1e-9
    )


# --- the grid ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operating_point", [None, "macro_f1"])
def test_best_of_the_grid_is_trained_on_all_rows(operating_point):
    grid = {"n_steps": [1, 40], "learning_rate": [1e-6, 0.1]}
    fitted = quick(grid=grid, operating_point=operating_point).fit(X2, Y2)
    assert fitted.cv_scores_.shape == (4,)
    points = [{"n_steps": s, "learning_rate": r} for s in (1, 40) for r in (1e-6, 0.1)]
    assert fitted.best_params_ == points[int(np.argmax(fitted.cv_scores_))]
    if operating_point is None:
        assert fitted.best_params_ == {"n_steps": 40, "learning_rate": 0.1}
    chosen = quick(**fitted.best_params_).fit(X2, Y2)
    np.testing.assert_array_equal(chosen.weights_, fitted.weights_)
    assert fitted.get_params()["n_steps"] == 30  # parameters are left as they were given


# --- what a fit leaves behind -----------------------------------------------------------------------------------


def test_there_is_a_qubit_for_a_feature_up_to_four():
    shapes = [quick().fit(np.tile(X2, n), Y2).weights_.shape for n in (1, 3)]
    assert shapes == [(1, 3), (1, 4)]
    assert quick(n_qubits=2, n_reps=2, final_rz=True).fit(X2, Y2).weights_.shape == (4, 2)


def test_kept_seed_is_the_one_with_the_lowest_loss():
    fitted = quick(n_seeds=4).fit(X2, Y2)
    log_p = np.log(fitted.predict_proba(X2))[np.arange(90), Y2]
    assert -log_p.mean() == pytest.approx(fitted.seed_losses_.min(), rel=1e-9)
    assert fitted.seed_losses_.min() < fitted.seed_losses_.max()


def test_paper_preset_is_the_printed_procedure():
    paper = VariationalClassifier.paper(n_steps=20, random_state=0).fit(X2, Y2)
    assert paper.optimizer == "spsa"
    assert paper.span == np.pi
    np.testing.assert_array_equal(paper.input_scales_, np.ones(3))
    assert paper.weights_.shape == (6, 3)
    extreme = paper.model_.circuit.angle_map.center + np.array([[3.0], [-3.0]]) * paper.model_.circuit.angle_map.scale
    p = paper.predict_proba(extreme)
    np.testing.assert_allclose(p[0], p[1], atol=1e-12)  # fact 15: both ends are the same state
    mine = quick(clip=3.0, n_steps=150).fit(X2, Y2).predict_proba(extreme)
    assert np.abs(mine[0] - mine[1]).max() > 0.01


def test_paper_preset_reads_two_classes_by_parity_and_three_by_basis_states():
    two, three = (VariationalClassifier.paper(n_steps=5, random_state=0).fit(X, Y) for X, Y in ((X2, Y2), (X3, Y3)))
    assert type(two.model_.circuit.network.readout) is ParityReadout
    assert type(three.model_.circuit.network.readout) is DirectReadout
    same(two, VariationalClassifier.paper(readout="parity", n_steps=5, random_state=0).fit(X2, Y2))
    # As printed, the likeliest of three classes is called; "macro_f1" adds biases.
    assert three.model_.decision.biases is not None
    printed = VariationalClassifier.paper(operating_point=None, n_steps=5, random_state=0).fit(X3, Y3)
    np.testing.assert_array_equal(printed.predict(X3), printed.classes_[printed.predict_proba(X3).argmax(axis=1)])


def test_paper_preset_stops_early_only_if_asked():
    """Without a patience it is algorithm 18 with one of at least n_steps, since the first loss is below infinity."""
    preset, patient, impatient = (
        VariationalClassifier.paper(n_steps=30, operating_point=None, random_state=0, patience=p).fit(X2, Y2)
        for p in (None, 30, 3)
    )
    same(preset, patient)
    assert len(preset.loss_curve_) == 30
    assert 3 < len(impatient.loss_curve_) < 30
    np.testing.assert_array_equal(impatient.loss_curve_, preset.loss_curve_[: len(impatient.loss_curve_)])


@pytest.mark.parametrize(("X", "Y"), [(X2, Y2), (X3, Y3)], ids=["two", "three"])
def test_metrics_of_out_of_fold_rows_are_saved(X, Y, tmp_path):
    fitted = VariationalClassifier.paper(n_steps=15, random_state=0).fit(X, Y)
    fitted.save(tmp_path / "model")
    kept = load(tmp_path / "model").model.metrics
    assert kept["loss"] == fitted.seed_losses_.min()
    assert kept["threshold"] == fitted.threshold_
    found = kept["out_of_fold"]
    confusion = np.array(found["confusion"])
    np.testing.assert_array_equal(confusion.sum(axis=1), np.bincount(Y))
    assert found["rows"] == len(Y)
    assert found["accuracy"] == pytest.approx(np.trace(confusion) / len(Y))
    true, decided = (np.repeat(place, confusion.ravel()) for place in np.indices(confusion.shape).reshape(2, -1))
    assert found["macro_f1"] == pytest.approx(f1_score(true, decided, average="macro"))
    if len(confusion) == 2:
        counts = fitted.expected_.counts
        assert confusion.tolist() == [[counts.tn, counts.fp], [counts.fn, counts.tp]]
        assert "out_of_fold" not in fitted.at_operating_point(0.3).model_.metrics
    # Figures are of the decision of the fit, and of rows that were held out.
    assert "out_of_fold" not in fitted.prior_shift(np.full(len(confusion), 1 / len(confusion))).model_.metrics
    assert "out_of_fold" not in quick().fit(X, Y).model_.metrics


# --- circuits --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("readout", ["strings", "direct", "parity"])
def test_circuit_in_qiskit_gives_the_same_probabilities(readout):
    pytest.importorskip("qiskit")
    from qiskit.quantum_info import Statevector

    from qmedoid.quantum import StatevectorExpectations

    fitted = quick(readout=readout, n_reps=2).fit(X2, Y2)
    rows, expected = X2[:8], fitted.predict_proba(X2[:8])
    measured = fitted.measured_by(StatevectorExpectations())
    np.testing.assert_allclose(measured.predict_proba(rows), expected, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(measured.model_.circuit.encoded(X2), fitted.model_.circuit.encoded(X2))
    again = measured.measured_by(StatevectorExpectations())
    np.testing.assert_allclose(again.decision_function(rows), fitted.decision_function(rows), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(fitted.predict_proba(rows), expected)  # the first is left as it was

    circuit = measured.circuit()
    for row, p in zip(fitted.model_.circuit.encoded(rows), expected, strict=True):
        free = {parameter.name: parameter for parameter in circuit.parameters}
        bound = circuit.assign_parameters({free[f"x[{j}]"]: value for j, value in enumerate(row)})
        basis = Statevector(bound).probabilities()
        odd = np.array([bin(index).count("1") % 2 for index in range(8)])
        if readout == "parity":
            np.testing.assert_allclose([basis[odd == 0].sum(), basis[odd == 1].sum()], p, atol=1e-10)
        elif readout == "direct":
            np.testing.assert_allclose(basis[:2] / basis[:2].sum(), p, atol=1e-10)
        else:
            signs = [[1 - 2 * (index >> q & 1) for q in range(3)] for index in range(8)]
            strings = [[1, a, b, c, a * b, a * c, b * c, a * b * c] for a, b, c in signs]
            score = basis @ np.array(strings) @ fitted.readout_weights_
            np.testing.assert_allclose(1 / (1 + np.exp(-score)), p[1], atol=1e-10)
    assert fitted.circuit(measure=True).num_clbits == 3


# --- callbacks and interrupts -----------------------------------------------------------------------------------


class Listener:
    """Keeps the metadata of every report, and may do something at one of them."""

    def __init__(self, act=lambda _: None):
        self.reports, self.act, self.tasks = [], act, []

    def setup(self, estimator, context):  # noqa: ARG002
        self.tasks.append(("setup", context.max_subtasks))

    def teardown(self, estimator, context):  # noqa: ARG002
        self.tasks.append(("teardown", None))

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context, *, metadata=None):  # noqa: ARG002
        if metadata is None:
            return None
        self.reports.append(metadata)
        return self.act(metadata)


def test_callbacks_are_told_the_loss():
    listener = Listener()
    fitted = quick(n_steps=120).set_callbacks(listener).fit(X2, Y2)
    assert [report["step"] for report in listener.reports] == list(range(2, 121, 2))
    assert {(report["seed"], report["steps"]) for report in listener.reports} == {(0, 120)}
    assert [report["loss"] for report in listener.reports] == fitted.loss_curve_[1::2].tolist()
    assert listener.tasks == [("setup", 60), ("teardown", None)]


@pytest.mark.parametrize("changes", [{}, {"n_seeds": 3}, {"grid": {"n_steps": [7, 130], "n_reps": [1, 2]}, "cv": 2}])
def test_number_of_reports_is_known_before(changes):
    listener = Listener()
    fitted = quick(**changes).set_callbacks(listener).fit(X2, Y2)
    announced = listener.tasks[0][1]
    # The last training is counted at its longest, as the choice is not known yet.
    assert len(listener.reports) == announced - (65 - 7 if fitted.best_params_.get("n_steps") == 7 else 0)


def test_callback_can_stop_the_fit_and_the_best_so_far_is_used():
    listener = Listener(lambda report: report["step"] == 10)
    with pytest.warns(QMedoidWarning, match=r"The training was stopped after 10 steps; the best weights so far"):
        fitted = quick(n_steps=50).set_callbacks(listener).fit(X2, Y2)
    assert len(fitted.loss_curve_) == 10
    assert np.isfinite(fitted.predict_proba(X2)).all()
    assert fitted.score(X2, Y2) > 0.6


def test_stop_while_candidates_are_judged_uses_the_best_so_far():
    listener = Listener(lambda _: len(listener.reports) == 3 * 30 + 5)
    with pytest.warns(QMedoidWarning, match=r"The choice was interrupted: 1 of 2 candidates were judged"):
        fitted = quick(grid={"n_reps": [1, 2]}, operating_point="f1").set_callbacks(listener).fit(X2, Y2)
    assert fitted.best_params_ == {"n_reps": 1}
    assert len(fitted.cv_scores_) == 1
    same(fitted, quick(n_reps=1, operating_point="f1").fit(X2, Y2))


def test_stop_before_any_was_judged_uses_the_first_and_even_odds():
    listener = Listener(lambda _: len(listener.reports) == 5)
    with pytest.warns(QMedoidWarning) as caught:
        fitted = quick(grid={"n_reps": [1, 2]}, operating_point="f1").set_callbacks(listener).fit(X2, Y2)
    messages = [str(warning.message) for warning in caught]
    assert messages == [
        "The choice was interrupted: 0 of 2 candidates were judged.",
        "No row was held out to choose the threshold by: it stays at even odds.",
    ]
    assert fitted.threshold_ == 0.5
    assert fitted.best_params_ == {"n_reps": 1}
    assert fitted.cv_scores_ is None


# --- what it learns ---------------------------------------------------------------------------------------------


def checkerboard(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("readout", ["strings", "parity"])
def test_it_learns_what_a_line_cannot(readout):
    X, y = checkerboard(300, 0)
    X_new, y_new = checkerboard(500, 1)
    fitted = VariationalClassifier(n_steps=150, readout=readout, random_state=0).fit(X, y)
    assert LogisticRegression().fit(X, y).score(X_new, y_new) < 0.6
    assert fitted.score(X_new, y_new) > 0.8


def rare(n=5000, seed=0):
    y = (np.arange(n) % 100 == 0).astype(int)
    return np.random.default_rng(seed).normal(size=(n, 2)) + 2.0 * y[:, None], y


@pytest.mark.parametrize("sampling", ["importance", "uniform"])
def test_probabilities_keep_the_prior_of_a_rare_class(sampling):
    X, y = rare()
    fitted = VariationalClassifier(n_steps=150, n_seeds=1, n_reps=2, sampling=sampling, random_state=0).fit(X, y)
    mean = fitted.predict_proba(X)[:, 1].mean()
    assert 0.01 / 1.5 < mean < 0.01 * 1.5
    assert fitted.predict_proba(X[y == 1])[:, 1].mean() > 5 * mean


def test_balanced_weights_make_both_classes_count_alike():
    X, y = rare()
    fitted = VariationalClassifier(
        n_steps=300, n_seeds=1, n_reps=1, class_weight="balanced", batch_size=10**4, random_state=0
    )
    with pytest.warns(QMedoidWarning, match="batch_size=10000 is more than the 5000 rows"):
        p = fitted.fit(X, y).predict_proba(X)[:, 1]
    # Where a bias is trained on equal weights, the mean of p over both classes, counted alike, is one half.
    assert (p[y == 1].mean() + p[y == 0].mean()) / 2 == pytest.approx(0.5, abs=0.03)
    as_given = clone(fitted).set_params(class_weight={0: 100 / 99, 1: 100}, batch_size=5000).fit(X, y)
    np.testing.assert_allclose(as_given.predict_proba(X)[:, 1], p, atol=1e-6)


def test_grid_may_hold_the_default_beside_values():
    grid = {"clip": [None, 2.0], "n_qubits": [None, 1], "batch_size": [None]}
    assert quick(grid=grid).fit(X2, Y2).cv_scores_.shape == (4,)
