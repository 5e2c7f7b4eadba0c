"""Who decides at a bound, what values beyond all that was seen can do, and that every way to a decision agrees."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from qmedoid import NearestMedoidClassifier
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.evidence.part import CLIP
from qmedoid.methods.part import Calibration, KeptRows, Part, Scored
from qmedoid.methods.rare.fit import RareSettings, fit_rare
from qmedoid.methods.rare.part import CLIP as RARE_CLIP
from qmedoid.model.contract import Column, Contract, Numbers
from qmedoid.model.decision import Decision
from qmedoid.model.model import Model
from qmedoid.model.refinement import Refinement, refinement_margins


def logits_of(model, X):
    """Log-odds of the rare class."""
    scores = model.score(X).scores
    return scores[:, 1 - model.rare_class] - scores[:, model.rare_class]


@dataclass(frozen=True)
class FixedPart(Part):
    """Fixed dissimilarities: a column for each class."""

    n_classes: int
    name = "fixed"
    score_measured = contributions = column_contributions = facts = None
    columns = property(lambda self: np.arange(self.n_classes))
    rows = property(lambda self: KeptRows(self.columns, self.columns))

    def score(self, X, *, channels=False, threads=None):
        del channels, threads
        scores = np.column_stack(X)
        return Scored(scores, np.zeros(scores.shape, dtype=np.intp))


def table_model(n_classes, **changes):
    columns = tuple(Column(f"x{place}", "number", False) for place in range(n_classes))
    encodings, decision = (Numbers(0.0),) * n_classes, Decision(tuple("abcd"[:n_classes]), **changes)
    return Model(
        Contract(columns, None, {}), encodings, decision, "fixed", (FixedPart(n_classes),), np.ones(1),
        np.zeros(n_classes), Calibration.plain(n_classes),
    )  # fmt: skip


def test_the_circuit_decides_records_up_to_its_margin_and_at_it():
    model = Refinement(object(), refine_below=0.5)
    scores = np.array([[1.0, 0.5, 0.0], [1.0, 0.25, 0.0], [0.0, 2.0, 1.75], [3.0, 3.0, 0.0]])
    assert model.picks(scores).tolist() == [True, False, True, True]
    assert replace(model, refine_below=np.inf).picks(scores).all()
    assert not replace(model, refine_below=-np.inf).picks(scores).any()


@pytest.mark.parametrize("rare", [0, 1])
def test_of_rare_events_the_likeliest_go_to_the_circuit_first(rare):
    scores = np.random.default_rng(rare).normal(size=(50, 2))
    margins = refinement_margins(scores, rare)
    odds = np.exp(scores[:, rare]) / np.exp(scores[:, 1 - rare])
    np.testing.assert_array_equal(np.argsort(margins), np.argsort(-odds))


@pytest.mark.parametrize("cut", [None, 0.0, 1.25, -2.5])
def test_a_record_is_positive_above_the_cut_and_not_at_it(cut):
    """Log-odds are the first dissimilarity minus the second."""
    bound = cut or 0.0
    log_odds = bound + np.array([-1.0, -1e-6, 0.0, 1e-6, 1.0])
    decided = table_model(2, cut=cut).decide([log_odds, np.zeros(5)])
    assert decided.codes.tolist() == [0, 0, 0, 1, 1]
    np.testing.assert_allclose(decided.margins, log_odds - bound, atol=1e-12)


@pytest.mark.parametrize("n_classes", [3, 4])
def test_the_margin_of_more_classes_is_that_to_the_runner_up(n_classes):
    values = np.random.default_rng(0).normal(size=(n_classes, 30))
    decided = table_model(n_classes).decide(list(values))
    ranked = np.sort(values, axis=0)
    np.testing.assert_allclose(decided.margins, ranked[1] - ranked[0])
    np.testing.assert_array_equal(decided.codes, values.argmin(axis=0))


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    return rng.normal(size=(n, 3)) + codes[:, None], codes


def test_values_beyond_all_bounds_move_no_evidence_further():
    """However far a value lies, it counts as one at the clip: a typing error of ten orders rules no decision."""
    X, codes = rows()
    model = fit_evidence(X, codes, 2, EvidenceSettings(n_medoids=8, n_neighbors=0), 0).model
    _, standardized = model.scaled(np.vstack([1e3 * X, 1e9 * X]))
    assert np.abs(standardized).max() == CLIP
    far, farther = X[:5].copy(), X[:5].copy()
    far[:, 1], farther[:, 1] = 1e4, 1e12
    np.testing.assert_allclose(model.score(far).scores, model.score(farther).scores, atol=1e-9)
    np.testing.assert_allclose(model.outputs(model.evidence(far)), model.outputs(model.evidence(farther)), atol=1e-9)


def test_values_beyond_all_bounds_move_a_rare_event_by_no_more_than_the_clip():
    X, codes = rows()
    codes = (np.arange(120) % 12 == 0).astype(np.intp)
    model = fit_rare(X, codes, RareSettings(n_common=40, n_hard=10), 0).model
    assert np.abs(model.standardized(1e9 * model.features(X))).max() == RARE_CLIP
    most = RARE_CLIP * np.abs(model.weights).sum()
    assert (np.abs(logits_of(model, 1e9 * X) - model.intercept) <= most + 1e-9).all()


def test_nearest_medoids_are_the_same_by_every_way_also_of_rows_beyond_the_kernel():
    X, codes = rows()
    model = NearestMedoidClassifier(max_passes=0, n_medoids=2, random_state=0).fit(X, codes).model_.parts[0]
    far = np.vstack([X, 1e145 * X[:20], -1e148 * X[:20]])
    scores, nearest, *_ = model.score(far)
    measured = model.score(far, channels=True)
    np.testing.assert_array_equal(nearest, measured.nearest)
    np.testing.assert_array_equal(scores, measured.scores)
    for code in (0, 1):
        assert (model.medoid_classes[nearest[:, code]] == code).all()


def test_neighbors_of_an_explanation_are_named_by_their_rows_in_the_table():
    """Of a model that keeps some of the rows: the row of that name lies at the distance that is told."""
    X = np.random.default_rng(4).uniform(0, 5, size=(600, 2))
    codes = (np.floor(X).sum(axis=1) % 2).astype(np.intp)
    model = fit_evidence(X, codes, 2, EvidenceSettings(n_medoids=12, n_neighbors=150), 0).model
    known = model.neighbors
    assert known is not None
    assert known.rows.max() >= 150
    space = model.scaled(X)[0 if known.by_rank else 1][:, model.compared]
    for row in (3, 77):
        named = model.contributions(X[[row]], 1, 0).neighbors
        assert len(named) == known.n_nearest
        for one in named:
            assert one.row in known.rows
            assert one.code == codes[one.row]
            assert one.distance == pytest.approx(np.sqrt(((space[one.row] - space[row]) ** 2).sum()))
