"""The sum: evidence and comparisons, weighted by out-of-fold rows."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss

from qmedoid import EvidenceClassifier, MedoidClassifier, SumClassifier, load
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.methods.calibration import fit_sum
from qmedoid.methods.part import Backends
from qmedoid.model.storage.card import model_card


def stepped(n=1500, seed=0):
    """A table where a step in one column says which steps in two others count: distances follow it badly."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    inside = np.where(X[:, 0] > 0.5, (X[:, 1] > 0) & (X[:, 2] < 0.7), (X[:, 3] > 0.2) & (X[:, 4] > -0.3))
    return X, np.where(rng.random(n) < 0.03, rng.integers(2, size=n), inside).astype(int)


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, y = stepped()
    y = y if request.param == 2 else y + (X[:, 1] > 1)
    return X, y, SumClassifier(random_state=0).fit(X[::2], y[::2])


def test_sum_is_likelier_than_evidence_where_classes_change_in_steps(fitted):
    X, y, classifier = fitted
    evidence = EvidenceClassifier(random_state=0).fit(X[::2], y[::2])
    assert classifier.weights_["comparisons"] > 0.2
    new, labels = X[1::2], y[1::2]
    assert log_loss(labels, classifier.predict_proba(new)) < 0.9 * log_loss(labels, evidence.predict_proba(new))


def test_sum_without_comparisons_orders_records_as_evidence_does(fitted):
    X, y, _ = fitted
    alone = SumClassifier(comparisons=False, random_state=0).fit(X[::2], y[::2])
    assert set(alone.weights_) == {"evidence"}
    model = alone.model_
    np.testing.assert_array_equal(
        model.score(X).scores, model.weights[0] * model.parts[0].score(X).scores - model.biases
    )
    if len(np.unique(y)) == 2:
        evidence = EvidenceClassifier(random_state=0).fit(X[::2], y[::2])
        np.testing.assert_array_equal(model.parts[0].score(X).scores, evidence.model_.score(X).scores)


def test_what_weighs_nothing_is_not_measured(fitted):
    X, _, classifier = fitted
    model, widths = classifier.model_, []

    def swap_test(rows, medoids):
        widths.append(rows.shape[1])
        return compact_swap_test(rows, medoids)

    for kept in range(len(model.weights)):
        one = replace(model, weights=np.where(np.arange(len(model.weights)) == kept, 1.0, 0.0))
        widths.clear()
        measured = replace(one, backends=Backends(swap_test)).score(X[1:40:2])
        assert (max(widths, default=0) > 1) == (kept == 0)
        np.testing.assert_allclose(measured.scores, one.score(X[1:40:2]).scores, atol=1e-9)


def test_sum_does_not_depend_on_the_order_of_the_columns(fitted):
    X, y, classifier = fitted
    order = np.array([3, 0, 4, 2, 1])
    again = SumClassifier(random_state=0).fit(X[::2][:, order], y[::2])
    np.testing.assert_allclose(again.predict_proba(X[1::2][:, order]), classifier.predict_proba(X[1::2]), atol=1e-9)


def test_sum_of_rounded_numbers_is_the_same_when_they_are_nudged(fitted):
    X, y, _ = fitted
    rounded, rng = np.round(X, 1), np.random.default_rng(0)
    nudged = np.where(rng.random(X.shape) < 0.5, np.nextafter(rounded, np.inf), rounded)
    plain, other = (SumClassifier(random_state=0).fit(one[::2], y[::2]) for one in (rounded, nudged))
    np.testing.assert_allclose(other.predict_proba(nudged[1::2]), plain.predict_proba(rounded[1::2]), atol=1e-6)


def test_card_of_a_sum_says_that_cells_of_training_rows_are_kept(fitted):
    _, _, classifier = fitted
    comparisons = classifier.model_.parts[1]
    card = model_card(classifier.model_, raw_rows=False)
    assert f"keep single cells of {len(comparisons.row_numbers)} training rows" in card
    assert f"comparisons {classifier.weights_['comparisons']:.3g}" in card


def test_front_door_takes_the_sum_by_name_and_numbers_its_real_rows(fitted, tmp_path):
    X, y, _ = fitted
    front = MedoidClassifier(method="sum", random_state=0).fit(X[::2], y[::2])
    assert front.method_ == "sum"
    explained = load(front.save(tmp_path / "front.qmedoid")).explain(X[1:2])
    compared = [group for group in explained["groups"] if group.get("name") == "comparisons"]
    assert compared
    rows = {record["training_row"] for group in compared for record in group["records"]}
    assert rows <= set(range(len(X[::2])))


def test_weights_of_a_sum_drop_scores_that_say_nothing():
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=400)
    told = np.column_stack([codes, 1 - codes]) * 2.0 + rng.normal(size=(400, 2))
    found = fit_sum([told, rng.normal(size=(400, 2))], codes)
    assert found.weights[0] > 0.3
    assert found.weights[1] == 0.0
    np.testing.assert_allclose(found.scores, found.weights[0] * told - found.biases)


def test_sum_takes_learnt_neighbors_where_classes_are_checkered(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2000, 6))
    y = (np.floor(4 * X[:, :2]).sum(axis=1) % 2).astype(int)
    classifier = SumClassifier(comparisons=False, random_state=0).fit(X[::2], y[::2])
    assert classifier.weights_.get("neighbors", 0.0) > 0.05
    assert (
        "neighbors" not in SumClassifier(comparisons=False, n_neighbors=0, random_state=0).fit(X[::2], y[::2]).weights_
    )
    loaded = load(classifier.save(tmp_path / "checkered.qmedoid"))
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    model = classifier.model_
    assert len(model.parts[-1].row_numbers) == 1000
    assert model.facts["vector_length"] >= len(model.parts[-1].columns)
    card = model_card(classifier.model_, raw_rows=False)
    assert "keeps 1000 training rows" in card
    assert "fit with n_neighbors=0" in card
    measured = model.score(X[1:2], channels=True)
    winner, other = np.argsort(measured.scores[0])
    parts = model.contributions(X[1:2], int(winner), int(other))
    total = parts.columns.sum() + sum(parts.terms.values())
    assert total == pytest.approx(measured.scores[0, other] - measured.scores[0, winner], abs=1e-10)
