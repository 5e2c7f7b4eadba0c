"""Laws of the fit of an evidence model: what it says of its rows, its bags, its medoids and its scalings."""

from dataclasses import replace

import numpy as np
import pytest

from qmedoid.methods.evidence import fit as fit_module
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence

SMALL = EvidenceSettings(n_medoids=16, n_pairs=3, n_triples=2, n_terms=300)


def table(n_classes=2, n=160, columns=5, seed=3):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, columns)) + 0.8 * codes[:, None] * np.linspace(-1.0, 1.0, columns)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = X[:, 2] > 0
    return X, codes


def outputs(model, X):
    return model.outputs(model.evidence(X))


@pytest.fixture
def bags(monkeypatch):
    """The bags of every fit that follows."""
    seen, fit_bags = [], fit_module.fit_bags

    def noted(*given):
        found = fit_bags(*given)
        seen.extend(found[0])
        return found

    monkeypatch.setattr(fit_module, "fit_bags", noted)
    return seen


@pytest.mark.parametrize(("n_classes", "multinomial"), [(2, False), (3, False), (3, True)])
def test_the_model_is_the_mean_of_what_its_bags_say_of_their_designs(bags, n_classes, multinomial):
    X, codes = table(n_classes, n=150)
    model = fit_evidence(X, codes, n_classes, replace(SMALL, n_medoids=24, multinomial=multinomial), 0).model
    assert len(bags) == 2
    own = []
    for bag in bags:
        design, first = bag.design, 0
        total = np.tile(bag.intercepts, (len(X), 1))
        for part, scale, weights in zip(design.parts, design.scales, bag.weights, strict=True):
            last = first + part.n_features
            # Weights of features from those of terms: mixing has full column rank.
            mixing = np.eye(part.n_features) if part.mixing is None else part.mixing
            of_features = np.linalg.lstsq(scale * mixing, weights, rcond=None)[0]
            total += design.features[:, first:last] @ of_features
            first = last
        own.append(total)
    mean, found = np.mean(own, axis=0), outputs(model, X)
    # Two classes have log-odds, the outputs of the ridge in another unit.
    unit = float((found * mean).sum() / (mean * mean).sum()) if n_classes == 2 else 1.0
    np.testing.assert_allclose(found, unit * mean, atol=1e-8 * max(1.0, unit))


def test_held_out_scores_tell_less_than_fitted_ones_and_still_something():
    X, codes = table()
    fitted = fit_evidence(X, codes, 2, SMALL, 0)
    sign = 2.0 * codes - 1.0
    own, held = sign * outputs(fitted.model, X)[:, 0], sign * (fitted.out_of_fold[:, 0] - fitted.out_of_fold[:, 1])
    assert (held <= own + 1e-9).mean() > 0.95
    # Chance would tell half of the 160 rows, give or take 0.04.
    assert (held > 0).mean() > 0.62


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_same_seed_gives_the_same_model_and_another_seed_another(n_classes):
    X, codes = table(n_classes)
    one, two, other = (fit_evidence(X, codes, n_classes, SMALL, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.model.terms.weights, two.model.terms.weights)
    np.testing.assert_array_equal(one.out_of_fold, two.out_of_fold)
    assert not np.array_equal(one.model.medoid_rows, other.model.medoid_rows)


def test_an_affine_change_of_columns_changes_no_decision():
    X, codes = table()
    one, other = (fit_evidence(rows, codes, 2, SMALL, 0) for rows in (X, X * [2.0, 0.5, 4.0, 8.0, 1.0] + 3.0))
    np.testing.assert_allclose(one.out_of_fold, other.out_of_fold, atol=1e-6)


def test_medoids_are_training_rows_of_their_class_and_no_more_than_asked():
    for n_classes, n_medoids in ((2, 64), (2, 6), (3, 20), (5, 7)):
        X, codes = table(n_classes)
        model = fit_evidence(X, codes, n_classes, replace(SMALL, n_medoids=n_medoids), 0).model
        assert len(model.medoids) <= n_medoids
        np.testing.assert_array_equal(model.medoids, X[model.medoid_rows])
        np.testing.assert_array_equal(model.medoid_classes, codes[model.medoid_rows])
        assert len(set(model.medoid_rows.tolist())) == len(model.medoids)
        assert set(model.medoid_classes.tolist()) == set(range(n_classes))


def test_there_is_a_medoid_of_every_class_even_beyond_the_budget():
    X, codes = table(50, n=200)
    model = fit_evidence(X, codes, 50, replace(SMALL, n_medoids=6), 0).model
    np.testing.assert_array_equal(np.sort(model.medoid_classes), np.arange(50))


def test_terms_keep_to_their_budget_and_no_term_is_there_twice():
    X, codes = table(columns=12, n=300)
    model = fit_evidence(X, codes, 2, EvidenceSettings(n_terms=900), 0).model
    assert 500 < len(model.terms) <= 900
    keys = np.column_stack([model.terms.group, model.terms.medoid, model.terms.channel, model.terms.length])
    assert len(np.unique(keys, axis=0)) == len(keys)


def test_single_columns_groups_and_all_columns_have_terms():
    X, codes = table()
    fitted = fit_evidence(X, codes, 2, SMALL, 0)
    assert {len(group.columns) for group in fitted.model.groups} == {1, 2, 3, 5}
    assert {group.by_rank for group in fitted.model.groups if len(group.columns) == 1} == {True, False}
    assert fitted.path.errors.min() < 1.0


def test_a_pair_that_alone_tells_the_classes_is_found_and_used():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 12))
    codes = (X[:, 3] * X[:, 8] > 0).astype(np.intp)
    fitted = fit_evidence(X, codes, 2, replace(SMALL, n_medoids=32, n_pairs=2, n_triples=0), 0)
    assert (3, 8) in fitted.model.facts["groups"]
    told = fitted.out_of_fold[:, 0] > fitted.out_of_fold[:, 1]
    assert (told == codes).mean() > 0.85


@pytest.mark.parametrize(
    ("X", "codes", "n_classes"),
    [
        (np.zeros((4, 1)), [0, 0, 1, 1], 2),
        (np.arange(4.0)[:, None], [0, 0, 1, 1], 2),
        (np.column_stack([np.zeros(6), np.arange(6.0)]), [0, 1, 2, 0, 1, 2], 3),
        (np.repeat(np.eye(3), 4, axis=0), np.repeat([0, 1, 2], 4), 3),
        (np.repeat([[0.0, 1.0], [1.0, 0.0]], 5, axis=0), np.repeat([0, 1], 5), 2),
        (np.tile([[0.5, 1.0]], (8, 1)), [0, 1] * 4, 2),
        (np.random.default_rng(0).normal(size=(8, 40)), [0, 1] * 4, 2),
        (np.column_stack([np.r_[np.zeros(39), 1e6], np.arange(40.0) % 7]), [0, 1] * 20, 2),
    ],
    ids=["constant", "one column", "three classes", "one-hot", "two rows", "equal rows", "wide", "outlier"],
)
@pytest.mark.parametrize("settings", [EvidenceSettings(), EvidenceSettings(n_medoids=6)])
def test_poor_tables_give_finite_models(X, codes, n_classes, settings):
    codes = np.asarray(codes)
    fitted = fit_evidence(X, codes, n_classes, settings, 0)
    assert np.isfinite(fitted.out_of_fold).all()
    assert np.isfinite(outputs(fitted.model, X)).all()
    assert fitted.out_of_fold.shape == (len(X), n_classes)


def test_rows_beyond_the_sample_are_judged_by_a_model_that_has_not_seen_them():
    X, codes = table(n=500)
    fitted = fit_evidence(X, codes, 2, replace(SMALL, max_rows=200), 0)
    scores = fitted.model.class_scores(outputs(fitted.model, X))
    same = np.isclose(fitted.out_of_fold, scores, rtol=0, atol=1e-12).all(axis=1)
    assert 290 <= same.sum() <= 310
    assert not same[fitted.model.medoid_rows].any()


@pytest.mark.parametrize("max_rows", [160, 80])
def test_progress_rises_to_one_and_moves_with_every_penalty(max_rows):
    X, codes = table()
    told: list[float] = []
    fitted = fit_evidence(X, codes, 2, replace(SMALL, max_rows=max_rows), 0, told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
    # One ridge of single columns, and one of each of two bags.
    assert len(set(told)) > 3 * len(fitted.path.penalties)


def test_medoids_grow_with_the_rows_if_asked_to():
    small = EvidenceSettings(n_medoids=4, n_pairs=0, n_triples=0, n_bags=1, n_terms=50, n_neighbors=0)
    for n, grows, expected in ((1999, True, 4), (2000, True, 8), (2000, False, 4)):
        X = np.random.default_rng(0).normal(size=(n, 2))
        fitted = fit_evidence(X, (X[:, 0] > 0).astype(np.intp), 2, replace(small, grows=grows), 0)
        assert len(fitted.model.medoid_rows) == expected
