"""Neighbors of an evidence model: a sum over the nearest known records, measurable, explained, kept as it is."""

import zipfile

import numpy as np
import pytest

from qmedoid import EvidenceClassifier, MedoidClassifier, load
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.evidence.part import CLIP, added, weights
from qmedoid.model.storage.strict import CARD

SMALL = EvidenceSettings(n_medoids=12, n_pairs=1, n_triples=0)


def checkerboard(n_classes, n=500, seed=4):
    """Classes in small squares: what lies next to a record tells its class, and little else does."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 5, size=(n, 2)), np.ones(n)])
    codes = (np.floor(X[:, 0]) + np.floor(X[:, 1])).astype(int) % n_classes
    return X, codes


@pytest.fixture(scope="module", params=[2, 3])
def fitted(request):
    X, codes = checkerboard(request.param)
    model = fit_evidence(X, codes, request.param, SMALL, 0).model
    assert model.neighbors is not None
    return model, X, codes


def test_what_neighbors_add_is_the_sum_written_out_record_by_record(fitted):
    model, X, _ = fitted
    known, rows = model.neighbors, X[:40] + 0.03
    assert model.compared.tolist() == [0, 1]
    spaces = (
        [values[:, :2] for values in (model.rank_scaling.apply(rows), model.rank_scaling.apply(known.records))]
        if known.by_rank
        else [np.clip(model.linear_scaling.apply(part), -CLIP, CLIP)[:, :2] for part in (rows, known.records)]
    )
    expected = model.outputs(model.evidence(rows))
    for number, row in enumerate(spaces[0]):
        distances = np.sqrt(((spaces[1] - row) ** 2).sum(axis=1))
        nearest = np.argsort(distances, kind="stable")[: known.n_nearest]
        near = [(distances[place] / known.length + 0.05) ** -3 for place in nearest]
        for place, weight in zip(nearest, near, strict=True):
            expected[number] += weight / (1 + sum(near)) * known.amounts[place]
    np.testing.assert_allclose(model.score(rows).scores, model.class_scores(expected), rtol=1e-9, atol=1e-9)


def test_far_from_all_that_is_known_nothing_is_added():
    distances = np.array([[0.0, 0.0, 0.0], [0.5, 0.5, 0.5], [1e3, 1e3, 1e3], [np.inf, np.inf, np.inf]])
    total = added(distances, np.zeros((4, 3), dtype=np.intp), 0.5, np.ones((3, 1)))[:, 0]
    assert total[0] > 0.999
    assert 0.5 < total[1] < 0.9
    assert 0 < total[2] < 1e-8
    assert total[3] == 0
    np.testing.assert_allclose(weights(distances[:1], 0.5).sum(), total[0])


def test_a_loaded_model_knows_the_same_records_bit_for_bit(fitted, tmp_path):
    _, X, codes = fitted
    classifier = MedoidClassifier(method=EvidenceClassifier(n_medoids=12), random_state=0).fit(X, codes)
    assert classifier.estimator_.model_.parts[0].neighbors is not None
    classifier.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), classifier.predict_proba(X))
    assert loaded.model.n_neighbors == 500
    card = zipfile.ZipFile(tmp_path / "model").read(CARD).decode()
    assert "keeps 500 training rows" in card
    why = loaded.explain(X, row=3)
    neighbors = why["neighbors"]
    assert neighbors[0]["training_row"] == 3  # the record itself, at distance 0
    assert neighbors[0]["distance"] == 0
    assert neighbors[0]["class"] == codes[3]
    assert sum(one["contribution"] for one in neighbors) == pytest.approx(why["terms"]["neighbors"])
    for parts in (why["groups"], why["columns"]):
        total = sum(one["contribution"] for one in parts) + sum(why["terms"].values())
        assert total == pytest.approx(why["margin"], abs=1e-9)
