"""What is chosen, weighed or calibrated by rows that are called out-of-fold has not seen them: a law for each place."""

from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest

from qmedoid.estimators.folds import TrainingTable
from qmedoid.estimators.rare import RareEventClassifier
from qmedoid.estimators.recipes import FitReport, calibrated
from qmedoid.estimators.refining import held_out_scored, training_data
from qmedoid.geometry.channels import Channels
from qmedoid.kernels.ties import order_by_content
from qmedoid.methods.calibration import fit_calibration
from qmedoid.methods.evidence import bag as bag_module
from qmedoid.methods.evidence.design import EvidenceSettings, Scaled
from qmedoid.methods.evidence.fit import choose_neighbors, fit_evidence
from qmedoid.methods.evidence.ridge import fit_ridge
from qmedoid.methods.nearest.problem import NearestSettings, prepare_folds
from qmedoid.methods.part import FittedParts, Scored
from qmedoid.methods.rare.fit import RareSettings, fit_rare
from qmedoid.model.refinement import CircuitInputs

SMALL = EvidenceSettings(n_medoids=16, n_pairs=3, n_triples=0, n_terms=300, n_neighbors=0)


def table(n=150, columns=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % 2
    return rng.normal(size=(n, columns)) + 0.6 * codes[:, None] * np.linspace(-1.0, 1.0, columns), codes


# --- evidence: groups, λ, weights ------------------------------------------------------------------------------------


@pytest.fixture
def seen(monkeypatch):
    """What groups are chosen by, and what λ is judged by, in every fit that follows."""
    found = {"ranks": [], "residuals": [], "judged": [], "ridges": []}

    def chosen(values, residuals, *counts):
        found["ranks"].append(values)
        found["residuals"].append(residuals)
        return chosen_groups(values, residuals, *counts)

    def ridge(features, targets, judged=None, *others, **named):
        if judged is not None:
            found["judged"].append(judged)
        found["ridges"].append((fit_ridge(features, targets, judged, *others, **named), targets))
        return found["ridges"][-1][0]

    chosen_groups = bag_module.chosen_groups
    monkeypatch.setattr(bag_module, "chosen_groups", chosen)
    monkeypatch.setattr(bag_module, "fit_ridge", ridge)
    return found


def test_no_row_that_chose_a_group_judges_lambda(seen):
    X, codes = table()
    model = fit_evidence(X, codes, 2, SMALL, 0).model
    ranks = model.rank_scaling.apply(X)[:, order_by_content(X)]
    assert len(seen["ranks"]) == len(seen["judged"]) >= 2
    for values, judged in zip(seen["ranks"], seen["judged"], strict=True):
        chose = {int(np.flatnonzero((ranks == row).all(axis=1))[0]) for row in values}
        assert len(chose) == len(values) > len(X) / 2
        assert len(judged) > len(X) / 4
        assert not chose & set(judged.tolist())
    assert not np.array_equal(seen["judged"][0], seen["judged"][1])


def test_groups_are_chosen_by_out_of_fold_residuals(seen):
    """Residuals of weights that have not seen the row are larger than those of weights that have, and not theirs."""
    X, codes = table()
    fit_evidence(X, codes, 2, SMALL, 0)
    ridge, targets = seen["ridges"][0]
    unseen, fitted = targets - ridge.out_of_fold, targets - ridge.means - ridge.rotated @ ridge.coefficients
    assert (np.abs(unseen) > np.abs(fitted)).all()
    for residuals in seen["residuals"]:
        assert np.isin(residuals, unseen).all()


def test_a_row_beyond_the_sample_moves_nothing_but_its_own_score():
    """Scalings, medoids, groups and weights are those of the sample: others score as before, bit for bit."""
    X, codes = table(n=300)
    settings = replace(SMALL, max_rows=150)
    before = fit_evidence(X, codes, 2, settings, 0)
    beyond = 0
    for row in range(0, 300, 23):
        changed = X.copy()
        changed[row] += 50.0
        after = fit_evidence(changed, codes, 2, settings, 0)
        others = np.arange(300) != row
        if np.array_equal(after.model.linear_scaling.center, before.model.linear_scaling.center):
            np.testing.assert_array_equal(after.out_of_fold[others], before.out_of_fold[others])
            np.testing.assert_array_equal(after.model.rank_scaling.values, before.model.rank_scaling.values)
            beyond += 1
    # About half of the rows lie beyond the sample.
    assert 3 <= beyond <= 10


# --- neighbors -------------------------------------------------------------------------------------------------------


def test_what_a_neighbor_adds_is_its_class_less_a_quarter_of_what_evidence_is_sure_of():
    """A record that evidence is sure of still adds: at full confidence it would add next to nothing."""
    rng = np.random.default_rng(4)
    places = rng.uniform(0, 5, size=(400, 2))
    codes = (np.floor(places).sum(axis=1) % 2).astype(np.intp)
    wrong = rng.random(400) < 0.2
    margins = np.where(wrong, -1.0, 1.0) * (2.0 * codes - 1.0) * rng.gamma(2.0, 1.5, size=400)
    dissimilarities = np.column_stack([margins / 2, -margins / 2])
    found = choose_neighbors(dissimilarities, 1, codes, Scaled(places, places), np.arange(400))
    assert found is not None
    calibration = fit_calibration(dissimilarities, codes, "logistic")
    scores = calibration.apply(dissimilarities)
    quarter = (scores[:, 1] - scores[:, 0]) / 4.0
    surprise = codes - 1.0 / (1.0 + np.exp(-quarter))
    amounts = found[0][:, 0]
    ratio = amounts / surprise
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-9)
    sure = (surprise * margins > 0) & (np.abs(margins) > np.quantile(np.abs(margins), 0.9))
    assert (np.abs(amounts[sure]) > 0.1 * np.abs(amounts).max()).all()


# --- rare events -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rare", [3, 5])
@pytest.mark.parametrize("n_folds", [3, 10])
def test_every_fold_of_a_rare_class_holds_out_rows_of_both_classes(n_rare, n_folds):
    X, codes = table(n=120)
    codes = (np.arange(120) < n_rare).astype(np.intp)
    X[codes == 1] += 2.0
    settings = RareSettings(n_common=40, n_hard=10, n_folds=n_folds)
    fold = fit_rare(X, codes, settings, 0).fold
    assert fold.max() + 1 == min(n_folds, n_rare)
    for number in range(fold.max() + 1):
        assert set(codes[fold == number]) == {0, 1}
        assert set(codes[fold != number]) == {0, 1}


def test_deltas_of_rows_that_a_split_holds_out_are_those_of_the_model_of_its_other_rows():
    X, codes = table(n=160)
    codes = (np.arange(160) % 8 == 0).astype(np.intp)
    X[codes == 1] += 1.5
    train, held_out = np.flatnonzero(np.arange(160) % 3), np.flatnonzero(np.arange(160) % 3 == 0)
    method = RareEventClassifier(cv=[(train, held_out)], refit=False, random_state=0)
    (found,) = method.fit_parts(TrainingTable(X, codes, np.array([0, 1])), FitReport(None, MagicMock()))
    expected = found.score(X[held_out], channels=True)
    np.testing.assert_array_equal(found.out_of_fold.features[held_out], expected.features)
    np.testing.assert_array_equal(found.out_of_fold.scores[held_out], expected.scores)
    # A flipped label of a held-out row moves neither its deltas nor its scores, nor those of any other row.
    turned = codes.copy()
    turned[held_out[::5]] = 1 - turned[held_out[::5]]
    (other,) = method.fit_parts(TrainingTable(X, turned, np.array([0, 1])), FitReport(None, MagicMock()))
    np.testing.assert_array_equal(other.out_of_fold.features, found.out_of_fold.features)
    np.testing.assert_array_equal(other.out_of_fold.scores, found.out_of_fold.scores)


# --- folds of the nearest medoids, and the circuit -------------------------------------------------------------------


def test_the_scaling_of_a_fold_has_not_seen_the_rows_that_it_holds_out():
    X, codes = table()
    rows = np.arange(150)
    splits = [(np.flatnonzero(rows % 3 != number), np.flatnonzero(rows % 3 == number)) for number in range(3)]

    def folds(values):
        return prepare_folds(values, codes, splits, 2, NearestSettings(), np.random.default_rng(0))

    before = folds(X)
    for number, fold in enumerate(before):
        changed = X.copy()
        changed[fold.rows_val] *= 100.0
        after = folds(changed)[number]
        np.testing.assert_array_equal(after.train.X, fold.train.X)
        np.testing.assert_array_equal(after.train.correlation, fold.train.correlation)
        np.testing.assert_array_equal(after.train.scaling.apply(X), fold.train.scaling.apply(X))


class Stub:
    """A part that is not asked for anything."""


def measured(rng, scores):
    channels = Channels(rng.random(scores.shape), rng.random(scores.shape))
    return Scored(scores, np.zeros(scores.shape, dtype=np.intp), *channels)


@pytest.mark.parametrize("inputs", [CircuitInputs("pairs"), CircuitInputs("nearest")], ids=["pairs", "nearest"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_in_sample_scores_tell_a_residual_circuit_nothing(n_classes, inputs):
    """What a circuit is trained on, and what it corrects, follows from out-of-fold measurements alone."""
    rng = np.random.default_rng(0)
    codes = np.arange(90) % n_classes
    out_of_fold = measured(rng, rng.random((90, n_classes)) - 0.2 * np.eye(n_classes)[codes])
    found = []
    for _ in range(2):
        in_sample = measured(rng, rng.random((90, n_classes)) - 5.0 * np.eye(n_classes)[codes])
        folds = [np.flatnonzero(np.arange(90) % 3 == number) for number in range(3)]
        fitted = FittedParts((Stub(),), np.ones(1), np.zeros(n_classes), out_of_fold, folds)
        data = TrainingTable(np.zeros((90, 1)), codes, np.arange(n_classes))
        fit, known = calibrated(fitted, "logistic", data), held_out_scored(fitted, in_sample, inputs, data)
        scores = fit.calibration.apply(known.scores)
        found.append((fit, *training_data(inputs, True, known, scores, codes, np.ones(n_classes))))
    (one, data, rows), (other, same_data, same_rows) = found
    np.testing.assert_array_equal(rows, same_rows)
    for part, same_part in zip(data, same_data, strict=True):
        np.testing.assert_array_equal(part, same_part)
    np.testing.assert_array_equal(one.held_out.scores, other.held_out.scores)
    assert one.calibration.slope == other.calibration.slope
    if n_classes == 2:
        np.testing.assert_array_equal(data.offset, one.calibration.apply(out_of_fold.scores))
