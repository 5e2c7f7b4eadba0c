"""Recalibration: right probabilities after new labels, nothing else changed, figures of rows that fitted nothing."""

import numpy as np
import pytest
from gaussian_classes import drawn
from quick_medoids import CIRCUIT, FUSION
from tests.few_trees import few_trees

import qmedoid
from qmedoid import EvidenceClassifier, MedoidClassifier, NearestMedoidClassifier, VariationalClassifier
from qmedoid.exceptions import DataError, ModelError, ParameterError
from qmedoid.kernels.cross_entropy import log_softmax
from qmedoid.methods.calibration import fit_calibration
from qmedoid.metrics.classification import calibration_error
from qmedoid.model.storage.forms import write

LABELS = {2: ["no", "yes"], 3: ["a", "b", "c"]}


def frame(X, y=None):
    table = {f"x{column}": X[:, column] for column in range(X.shape[1])}
    return table if y is None else table | {"y": y}


def make(kind, n_classes, **changes):
    """A classifier that is quick to fit."""
    if kind == "circuit":
        changes |= {"variational": VariationalClassifier(**CIRCUIT), "refine": 0.3}
    method = {"nearest": NearestMedoidClassifier(**FUSION), "sum": "sum", "rare": "rare"}.get(
        kind, EvidenceClassifier(n_medoids=6, n_neighbors=0)
    )
    settings = {"random_state": 0, "refine": "never"} | changes
    X, y = drawn(240, [1 / n_classes] * n_classes, labels=LABELS[n_classes])
    with few_trees():
        return MedoidClassifier(method=method, **settings).fit(frame(X), y)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """``saved(kind, n_classes)``, a model that was loaded from its file; each is fitted once."""
    made = {}

    def load(kind="evidence", n_classes=2):
        if (kind, n_classes) not in made:
            path = tmp_path_factory.mktemp("saved") / "m.qmedoid"
            made[kind, n_classes] = qmedoid.load(make(kind, n_classes).save(path))
        return made[kind, n_classes]

    return load


def labeled(n, priors, seed=1):
    X, y = drawn(n, priors, seed, labels=LABELS[len(priors)])
    return frame(X), y


CASES = [
    *(("evidence", 2), ("evidence", 3), ("nearest", 2), ("nearest", 3), ("circuit", 2), ("circuit", 3)),
    *(("sum", 2), ("rare", 2)),
]


def error(model, table, y):
    """The calibration error of the class that is off the most."""
    chances, rng = model.predict_proba(table), np.random.default_rng(0)
    return max(calibration_error(y == c, chances[:, k], rng=rng)["error"] for k, c in enumerate(model.classes_))


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_probabilities_are_right_where_class_frequencies_have_changed(saved, kind, n_classes):
    model = saved(kind, n_classes)
    priors = [0.85, 0.15] if n_classes == 2 else [0.7, 0.2, 0.1]
    found = qmedoid.recalibrate(model, *labeled(400, priors))
    assert found.helps
    table, y = labeled(4000, priors, seed=2)
    before, after = error(model, table, y), error(found.model, table, y)
    assert after < 0.5 * before
    assert after < 0.05
    assert found.after["log_loss"] < found.before["log_loss"]
    means = found.model.predict_proba(table).mean(axis=0)
    np.testing.assert_allclose(means, [(y == label).mean() for label in LABELS[n_classes]], atol=0.05)


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_rows_like_those_of_the_fit_change_little(saved, kind, n_classes):
    model, table = saved(kind, n_classes), labeled(2000, [1 / n_classes] * n_classes, seed=3)[0]
    found = qmedoid.recalibrate(model, *labeled(1000, [1 / n_classes] * n_classes))
    assert np.abs(found.model.predict_proba(table) - model.predict_proba(table)).mean() < 0.05
    assert abs(found.gain.value) < 0.03


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_nothing_but_calibration_priors_curve_and_decision_changes(saved, kind, n_classes, tmp_path):
    model, data = saved(kind, n_classes), labeled(300, [0.6, 0.4] if n_classes == 2 else [0.5, 0.3, 0.2])
    new = qmedoid.recalibrate(model, *data).model
    stored = [{}, {}]
    described = [write(one.model, arrays) for one, arrays in zip((model, new), stored, strict=True)]
    last = "refinement.recalibration." if kind == "circuit" else "calibration."
    changed = (last, "decision.", "training.curve.", "importances")
    for name in {*stored[0], *stored[1]}:
        if not name.startswith(changed):
            assert stored[0][name].tobytes() == stored[1][name].tobytes(), name
    assert any(name.startswith(last) for name in stored[1])
    stretched = new.model.slope / model.model.slope
    np.testing.assert_allclose(new.feature_importances_, stretched * model.feature_importances_)
    for one in described:
        for name in ("decision", "metrics", "parent"):
            del one[name]
        one["training"].pop("curve")
        (one["refinement"] if kind == "circuit" else one).pop(last.split(".")[-2])
    assert described[0] == described[1]
    assert new.model.parent == model.sha256
    assert new.model.records == model.model.records
    again = qmedoid.load(new.save(tmp_path / "new.qmedoid"))
    np.testing.assert_array_equal(again.predict_proba(data[0]), new.predict_proba(data[0]))
    qmedoid.recalibrate(model, *data).model.save(tmp_path / "twice.qmedoid")
    assert (tmp_path / "new.qmedoid").read_bytes() == (tmp_path / "twice.qmedoid").read_bytes()


@pytest.mark.parametrize(("kind", "n_classes"), [("evidence", 2), ("circuit", 2), ("circuit", 3)])
def test_explanations_add_up(saved, kind, n_classes):
    new = qmedoid.recalibrate(saved(kind, n_classes), *labeled(300, [0.7] + [0.3 / (n_classes - 1)] * (n_classes - 1)))
    table, _ = labeled(30, [1 / n_classes] * n_classes, seed=6)
    by_circuit, sizes = new.model.decide(table).by_circuit, []
    for row in range(30):
        why = new.model.explain(table, row=row)
        sizes.append({column["name"]: abs(column["contribution"]) for column in why["columns"]})
        total = sum(column["contribution"] for column in why["columns"]) + sum(why["terms"].values())
        assert total == pytest.approx(why["margin"], abs=1e-9)
        assert ("recalibration" in why["terms"]) == (kind == "circuit")
        if not by_circuit[row]:
            assert why["terms"]["circuit"] == pytest.approx(0.0, abs=1e-9)
    mean = {name: np.mean([one[name] for one in sizes]) for name in sizes[0]}
    assert new.model.importances(table) == pytest.approx(mean)


def test_circuit_keeps_the_scores_that_it_was_trained_on(saved):
    model = saved("circuit")
    new = qmedoid.recalibrate(model, *labeled(300, [0.7, 0.3]))
    table = labeled(200, [0.5, 0.5], seed=7)[0]
    np.testing.assert_array_equal(new.model.decide(table).by_circuit, model.decide(table).by_circuit)
    assert new.model.model.refinement.recalibration is not None
    # Another one replaces it.
    twice = qmedoid.recalibrate(new.model, *labeled(300, [0.7, 0.3]))
    np.testing.assert_array_equal(twice.model.predict_proba(table), new.model.predict_proba(table))


def test_figures_after_are_of_rows_that_did_not_fit(saved):
    model = saved()
    table, y = labeled(60, [0.5, 0.5], seed=3)
    found = qmedoid.recalibrate(model, table, y)
    codes = np.searchsorted(model.classes_, y)
    raw = model.model.score(np.column_stack(list(table.values()))).scores
    fitted = log_softmax(fit_calibration(raw, codes, "curve").apply(raw))[np.arange(60), codes]
    assert found.after["log_loss"] > -fitted.mean()
    assert found.gain.value == pytest.approx(found.before["log_loss"] - found.after["log_loss"], abs=1e-9)
    assert not found.helps
    assert "does not help beyond chance" in found.verdict


def test_operating_point_is_chosen_on_the_labeled_rows(saved):
    model, data = saved(), labeled(500, [0.8, 0.2])
    same = qmedoid.recalibrate(model, *data).model.expected_
    assert (same.rule, same.n_rows) == ("likeliest", 500)
    asked = qmedoid.recalibrate(model, *data, operating_point={"alert_rate": 0.1}).model
    assert asked.expected_.alert_rate.value == pytest.approx(0.1)
    assert (asked.predict(data[0]) == "yes").mean() == pytest.approx(0.1)
    # The rule of a model is kept.
    again = qmedoid.recalibrate(asked, *data).model
    assert again.expected_ == asked.expected_
    three = saved("evidence", 3)
    data = labeled(300, [0.6, 0.3, 0.1])
    chosen = qmedoid.recalibrate(three, *data, operating_point="macro_f1").model
    assert chosen.model.decision.biases is not None
    with pytest.raises(ParameterError, match="does not hold the rule"):
        qmedoid.recalibrate(chosen, *data)


def test_priors_are_those_of_the_labeled_rows(saved):
    table, y = labeled(200, [0.7, 0.3])
    decision = qmedoid.recalibrate(saved().prior_shift(0.5), table, y).model.model.decision
    np.testing.assert_allclose(decision.priors, [(y == "no").mean(), (y == "yes").mean()])
    assert decision.shift is None


def test_known_rows_are_left_out_or_refused(saved):
    model = saved()
    X, y = drawn(240, [0.5, 0.5], labels=LABELS[2])  # those of the fit
    new, labels = labeled(100, [0.5, 0.5])
    mixed = {name: np.concatenate([frame(X)[name][:40], new[name]]) for name in new}
    with pytest.warns(match="40 rows were in the fit"):
        found = qmedoid.recalibrate(model, mixed, np.concatenate([y[:40], labels]))
    assert (found.rows, found.left_out["known"]) == (100, 40)
    alone = qmedoid.recalibrate(model, new, labels)
    np.testing.assert_array_equal(found.model.predict_proba(new), alone.model.predict_proba(new))
    with pytest.raises(DataError, match="240 of 240 labeled rows were in the fit"):
        qmedoid.recalibrate(model, frame(X), y)


def test_what_cannot_be_calibrated_is_refused(saved, tmp_path):
    model, (table, y) = saved(), labeled(60, [0.5, 0.5])
    few = {name: column[:15] for name, column in table.items()}
    with pytest.raises(DataError, match=r"needs 10 different new rows of every class: 'no' has \d, 'yes' has \d"):
        qmedoid.recalibrate(model, few, y[:15])
    with pytest.raises(DataError, match="'no' has 60, 'yes' has 0"):
        qmedoid.recalibrate(model, table, np.full(60, "no"))
    with pytest.raises(DataError, match="'yes' has 1"):  # copies of a row are one
        qmedoid.recalibrate(model, {n: np.append(c, np.full(20, c[0])) for n, c in table.items()},
                            np.append(np.full(60, "no"), np.full(20, "yes")))  # fmt: skip
    with pytest.raises(
        DataError, match=r"No row has a class of the model \('no', 'yes'\): 0 are missing, 60 are others"
    ):
        qmedoid.recalibrate(model, table, np.full(60, "maybe"))
    with pytest.raises(ParameterError, match="does not know the name of the target"):
        qmedoid.recalibrate(model, table)
    with pytest.raises(DataError, match="There is no column 'y' with the classes"):
        qmedoid.recalibrate(model, table, target="y")
    with pytest.raises(DataError, match="60 rows and y has 59"):
        qmedoid.recalibrate(model, table, y[1:])
    with pytest.raises(ParameterError, match="'operating_point' parameter of recalibrate must be 'same', None"):
        qmedoid.recalibrate(model, table, y, operating_point="best")
    X, labels = drawn(60, [0.5, 0.5])
    plain = NearestMedoidClassifier(**FUSION).fit(X, labels)
    with pytest.raises(ModelError, match="without probabilities: it has no calibration"):
        qmedoid.recalibrate(qmedoid.load(plain.save(tmp_path / "plain")), X, labels)
    circuit = VariationalClassifier(**CIRCUIT).fit(X, labels)
    with pytest.raises(ModelError, match="a circuit alone: it has no calibration"):
        qmedoid.recalibrate(qmedoid.load(circuit.save(tmp_path / "circuit")), X, labels)


def test_labels_may_be_spelled_otherwise_and_unknown_ones_are_left_out(saved):
    model, (table, y) = saved(), labeled(80, [0.5, 0.5])
    odd = y.astype(object)
    odd[:3] = [None, "maybe", " no "]
    with pytest.warns(match="left out: 1 rows without a class, 1 of other classes"):
        found = qmedoid.recalibrate(model, table | {"y": odd}, target="y")
    assert found.rows == 78
    assert found.left_out == {"missing": 1, "unknown": 1, "known": 0, "sampled": 0}


def test_longest_tables_are_sampled_with_equal_rows_together(saved):
    import pyarrow as pa

    from qmedoid.tables.difference import Issues
    from qmedoid.tables.evaluating import LabeledTally

    model, (table, y) = saved().model, labeled(200, [0.5, 0.5])
    table = pa.table(table | {"y": y})
    table = pa.concat_tables([table, table])
    tally = LabeledTally(model, most=100)
    for start in range(0, 400, 40):
        part = table.slice(start, 40)
        tally.add(part, part["y"], Issues())
    rows = tally.rows()
    assert tally.labeled == 400
    assert len(rows.codes) == 100
    assert (np.unique(rows.hashes, return_counts=True)[1] == 2).all()
    whole = LabeledTally(model)
    whole.add(table, table["y"], Issues())
    assert set(rows.hashes) == set(np.sort(np.unique(whole.rows().hashes))[:50])
