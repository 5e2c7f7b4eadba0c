"""Importances: exact contributions row by row, and their mean sizes."""

import json

import numpy as np
import pandas as pd
import pytest

import qmedoid
from few_trees import few_trees
from qmedoid import (
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    RareEventClassifier,
    SumClassifier,
    VariationalClassifier,
)
from qmedoid.exceptions import ModelError
from qmedoid.explain.explaining import explain
from qmedoid.model.importance import MOST_ROWS, class_contributions, column_contributions

SMALL = EvidenceClassifier(n_medoids=12, n_pairs=3, n_triples=2, random_state=0)
QUICK = VariationalClassifier(n_steps=20, n_seeds=1, n_reps=1, cv=2)
METHODS = {
    "evidence": (2, SMALL),
    "evidence, three classes": (3, SMALL),
    "sum": (2, SumClassifier(n_medoids=12, n_neighbors=0, random_state=0)),
    "sum, three classes": (3, SumClassifier(n_medoids=12, n_neighbors=0, random_state=0)),
    "rare": (2, RareEventClassifier(n_common=50, n_hard=20, comparisons=False, random_state=0)),
    "nearest": (2, NearestMedoidClassifier(max_passes=0, cv=2, random_state=0)),
    "nearest, three classes": (
        3, NearestMedoidClassifier(n_medoids=3, max_passes=0, cv=2, score_weight={0: 1, 1: 2, 2: 0.5}, random_state=0)
    ),
    "printed angle": (2, NearestMedoidClassifier(angle="printed", max_passes=0, cv=2, random_state=0)),
}  # fmt: skip


def rows_of(n_classes, n=240, columns=6):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, size=n)
    return rng.normal(size=(n, columns)) + codes[:, None] * np.linspace(0.2, 1.5, columns), codes


@pytest.fixture(scope="module", params=METHODS)
def fitted(request):
    n_classes, method = METHODS[request.param]
    X, y = rows_of(n_classes)
    with few_trees():
        return MedoidClassifier(method=method, refine="never", random_state=0).fit(X, y), X, y


def test_contributions_of_many_rows_are_those_of_explanations(fitted):
    classifier, X, _ = fitted
    model = classifier.model_
    decided = model.decide(list(X.T))
    others = model.decision.runners_up(decided.scores, decided.codes)
    found = column_contributions(model, list(X.T), decided.codes, others)
    for row in range(0, len(X), 12):
        why = explain(model, [column[row : row + 1] for column in X.T])
        assert (why.winner, why.other) == (decided.codes[row], others[row])
        np.testing.assert_allclose(found[row], why.columns, rtol=1e-9, atol=1e-10)
        terms = sum(why.terms.values())
        assert found[row].sum() + terms == pytest.approx(why.margin, abs=1e-9)


def test_importances_add_up_to_the_mean_size_of_all_contributions(fitted):
    classifier, X = fitted[0], fitted[1][:40]
    model = classifier.model_
    sizes = []
    for row in range(len(X)):
        why = explain(model, [column[row : row + 1] for column in X.T])
        sizes.append(np.abs(why.columns))
    found = classifier.importances(X)
    assert list(found.values()) == pytest.approx(sorted(np.mean(sizes, axis=0), reverse=True))
    assert sum(found.values()) == pytest.approx(np.sum(sizes, axis=1).mean())
    assert {f"x{place}": value for place, value in enumerate(np.mean(sizes, axis=0))} == pytest.approx(found)


def test_importances_do_not_depend_on_block_or_batch(fitted, monkeypatch):
    classifier, X, _ = fitted
    found = classifier.importances(X)
    monkeypatch.setattr("qmedoid.model.importance._BLOCK_ROWS", 7)
    monkeypatch.setattr("qmedoid.model.importance._EXPLAINED_ROWS", 3)
    assert classifier.importances(X) == pytest.approx(found)


def test_contributions_for_one_class_add_up_against_the_others(fitted):
    classifier, X, _ = fitted
    model = classifier.model_
    n_classes = len(classifier.classes_)
    every = [class_contributions(model, X[:20], code) for code in range(n_classes)]
    if n_classes == 2:
        np.testing.assert_allclose(every[0], -every[1], atol=1e-12)
    winner, other = np.zeros(20, dtype=int), np.ones(20, dtype=int)
    pairs = [column_contributions(model, list(X[:20].T), winner, np.full(20, code)) for code in range(1, n_classes)]
    np.testing.assert_allclose(every[0], np.mean(pairs, axis=0), atol=1e-12)
    turned = column_contributions(model, list(X[:20].T), other, winner)
    np.testing.assert_allclose(column_contributions(model, list(X[:20].T), winner, other), -turned, atol=1e-9)


# --- of tables --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    n = 300
    town = rng.choice(["Rom", "Oslo", "Bern"], n)
    paid = rng.normal(size=n)
    y = np.where(2 * (town == "Oslo") + paid + 0.3 * rng.normal(size=n) > 1, "yes", "no")
    frame = pd.DataFrame({"id": np.arange(n), "noise": rng.normal(size=n), "town": town, "paid": paid})
    frame.loc[rng.random(n) < 0.1, "paid"] = np.nan
    return frame, y


@pytest.fixture(scope="module")
def of_frame(frame):
    return MedoidClassifier(method=SMALL, random_state=0).fit(*frame)


def test_importances_are_by_column_of_the_table(frame, of_frame):
    assert of_frame.feature_names_in_.tolist() == ["id", "noise", "town", "paid"]
    of_id, of_noise, of_town, of_paid = of_frame.feature_importances_
    assert of_id == 0.0
    assert 0 < 4 * of_noise < min(of_town, of_paid)
    assert list(of_frame.importances(frame[0]))[2:] == ["noise"]


def test_importances_are_saved(frame, of_frame, tmp_path):
    path = of_frame.save(tmp_path / "m.qmedoid")
    saved = qmedoid.load(path)
    np.testing.assert_array_equal(saved.feature_importances_, of_frame.feature_importances_[1:])
    assert saved.importances(frame[0]) == pytest.approx(of_frame.importances(frame[0]))
    json.dumps(saved.importances(frame[0]))


def test_importances_are_of_a_bounded_sample(monkeypatch):
    seen = []
    original = column_contributions

    def counted(model, columns, *pair):
        seen.append(len(columns[0]))
        return original(model, columns, *pair)

    monkeypatch.setattr("qmedoid.model.importance.column_contributions", counted)
    X, y = rows_of(2, n=MOST_ROWS + 200)
    EvidenceClassifier(n_medoids=6, n_neighbors=0, random_state=0).fit(X, y)
    assert seen == [MOST_ROWS]


def test_a_circuit_alone_has_no_importances(tmp_path):
    X, y = rows_of(2)
    circuit = QUICK.fit(X[:, :2], y)
    assert not hasattr(circuit, "feature_importances_")
    saved = qmedoid.load(circuit.save(tmp_path / "c"))
    assert saved.feature_importances_ is None
    with pytest.raises(ModelError, match="circuit alone"):
        saved.importances(X[:, :2])
