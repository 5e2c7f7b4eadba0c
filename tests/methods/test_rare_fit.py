"""Laws of the fit of a rare-event model: nobody is compared with itself, and nothing hangs on the order of the rows."""

from dataclasses import replace

import numpy as np
import pytest

from qmedoid.exceptions import DataError
from qmedoid.methods.rare import fit as rare_fit
from qmedoid.methods.rare.fit import METRICS, RareSettings, fit_rare, hardest, make_metric

SMALL = RareSettings(n_common=60, n_hard=20)


def logits_of(model, X):
    """Log-odds of the rare class."""
    scores = model.score(X).scores
    return scores[:, 1 - model.rare_class] - scores[:, model.rare_class]


def table(n=600, n_rare=24, m=5, seed=0):
    """Rare rows lie a little off, in some of the columns."""
    rng = np.random.default_rng(seed)
    codes = np.zeros(n, dtype=np.intp)
    codes[rng.choice(n, n_rare, replace=False)] = 1
    X = rng.normal(size=(n, m)) * np.arange(1, m + 1)
    X[codes == 1, :2] += 2.5
    return X, codes


def rows_of(geometry, rows, rare, common):
    """The features of rows that stand at these places among the prototypes."""
    own = np.array([rare, common], dtype=np.intp)
    return geometry.evidence(np.atleast_2d(rows), own)


def test_a_prototype_sees_what_it_would_if_it_were_none():
    X, codes = table()
    geometry = fit_rare(X, codes, SMALL, 0).model.geometry
    assert geometry.hard.any()
    assert not geometry.hard.all()
    for place in (0, 7):
        without = replace(geometry, rare=np.delete(geometry.rare, place, axis=0))
        here = rows_of(geometry, geometry.rare[place], [place], [-1])
        there = replace(without, counts=geometry.counts).evidence(geometry.rare[place][None])
        n_deltas, m, *_ = geometry.n_features
        np.testing.assert_array_equal(here[0][:, :n_deltas], there[0][:, :n_deltas])
        np.testing.assert_array_equal(here[1], there[1])
        np.testing.assert_allclose(here[0][:, n_deltas : n_deltas + m], there[0][:, n_deltas : n_deltas + m], rtol=1e-9)
    for place in (int(np.flatnonzero(geometry.hard)[0]), int(np.flatnonzero(~geometry.hard)[3])):
        without = replace(
            geometry, common=np.delete(geometry.common, place, axis=0), hard=np.delete(geometry.hard, place)
        )
        here = rows_of(geometry, geometry.common[place], [-1], [place])
        there = without.evidence(geometry.common[place][None])
        np.testing.assert_allclose(here[0][:, : n_deltas + m], there[0][:, : n_deltas + m], rtol=1e-9)


def test_prototypes_know_their_own_class_only_if_they_are_compared_with_themselves(monkeypatch):
    X, codes = table()
    alone = fit_rare(X, codes, SMALL, 0)
    monkeypatch.setattr(rare_fit, "own_places", lambda rare, common, n, groups=None: np.full((2, n), -1))  # noqa: ARG005
    with_itself = fit_rare(X, codes, SMALL, 0)
    nearest = alone.model.feature_names.index("nearest rare row against nearest common row (plain metric)")
    # With itself, that is all that a rare row is told by, and new rows have nothing like it.
    assert with_itself.model.weights[nearest] > 2.0 * abs(alone.model.weights[nearest])


def test_held_out_rows_are_described_and_scored_by_the_model_of_the_other_folds():
    X, codes = table()
    fitted = fit_rare(X, codes, SMALL, 0)
    assert abs(np.bincount(fitted.fold[codes == 1]) - 8).max() == 0
    for number in range(3):
        # Whatever the labels and the places of the rows of a fold, others decide about them.
        own = np.flatnonzero(fitted.fold == number)[:40]
        moved = X.copy()
        moved[own] = X[own][::-1]
        again = fit_rare(moved, codes, SMALL, 0)
        same = np.flatnonzero(fitted.fold == number)[40:]
        np.testing.assert_allclose(again.out_of_fold[same], fitted.out_of_fold[same], atol=1e-9)
        np.testing.assert_allclose(again.out_of_fold[own], fitted.out_of_fold[own][::-1], atol=1e-9)


def test_the_order_of_the_rows_means_nothing_when_all_are_prototypes():
    X, codes = table(n=200, n_rare=20)
    settings = RareSettings(n_common=200, n_hard=0)
    order = np.random.default_rng(1).permutation(len(X))
    first, second = fit_rare(X, codes, settings, 0).model, fit_rare(X[order], codes[order], settings, 0).model
    new, _ = table(seed=5)
    np.testing.assert_allclose(logits_of(first, new), logits_of(second, new), atol=1e-6)
    np.testing.assert_array_equal(np.sort(first.medoid_rows), np.sort(order[second.medoid_rows]))


def test_either_code_may_be_the_rare_one():
    X, codes = table()
    one, zero = fit_rare(X, codes, SMALL, 0), fit_rare(X, 1 - codes, SMALL, 0)
    assert (one.model.rare_class, zero.model.rare_class) == (1, 0)
    np.testing.assert_array_equal(one.out_of_fold, zero.out_of_fold[:, ::-1])
    np.testing.assert_array_equal(one.model.medoid_classes, 1 - zero.model.medoid_classes)
    here, there = one.model.score(X, channels=True), zero.model.score(X, channels=True)
    np.testing.assert_array_equal(here.scores, there.scores[:, ::-1])
    np.testing.assert_array_equal(here.nearest, there.nearest[:, ::-1])
    np.testing.assert_array_equal(here.channels.distance, there.channels.distance[:, ::-1])


@pytest.mark.parametrize("n_rare", [2, 3])
def test_two_rare_rows_constant_columns_and_duplicates_are_enough(n_rare):
    X, codes = table(n=100, n_rare=n_rare)
    X = np.repeat(np.column_stack([X, np.full(len(X), 3.0)]), 2, axis=0)[: 2 * len(X) - 2]
    codes = np.repeat(codes, 2)[: len(X)]
    # Two rows of different classes at the same place.
    X[np.flatnonzero(codes == 1)[0]] = X[np.flatnonzero(codes == 0)[0]]
    fitted = fit_rare(X, codes, SMALL, 0)
    assert np.isfinite(fitted.out_of_fold).all()
    assert np.isfinite(fitted.circuit_features).all()
    assert np.isfinite(logits_of(fitted.model, X + 1e6)).all()
    contributions = fitted.model.contributions(X[:1], 1, 0)
    assert contributions.groups[-1].contribution == 0.0  # the position on the constant column


def test_a_class_of_one_row_is_refused():
    X, codes = table(n_rare=1)
    with pytest.raises(DataError, match=r"\[599, 1\] rows"):
        fit_rare(X, codes, SMALL, 0)


@pytest.mark.parametrize(
    "change",
    [
        {"n_hard": 0},
        {"n_rare": 10},
        {"metrics": ("plain",)},
        {"counts": (3,)},
        {"deltas_strength": 0.0},
        {"nearness_strength": 0.0},
        {"position_strength": 0.0},
        {"middle_strength": 0.0},
    ],
)
def test_every_part_can_be_switched_off(change):
    X, codes = table()
    usual, other = fit_rare(X, codes, SMALL, 0), fit_rare(X, codes, replace(SMALL, **change), 0)
    assert not np.allclose(logits_of(usual.model, X), logits_of(other.model, X), atol=1e-3)


def test_hard_rows_are_the_common_ones_with_the_highest_logits():
    logits = np.array([5.0, 9.0, 1.0, 8.0, 3.0, 7.0])
    is_rare = np.array([True, False, False, False, False, False])
    np.testing.assert_array_equal(hardest(logits, is_rare, np.array([3]), 2), [1, 5])


@pytest.mark.parametrize("name", METRICS)
def test_metrics_prefer_what_they_say(name):
    rng = np.random.default_rng(0)
    is_rare = np.arange(400) < 40
    scaled = rng.normal(size=(400, 3))
    scaled[is_rare, 0] += 3.0
    weights = make_metric(name, scaled, is_rare, rng)
    assert (weights > 0).all()
    order = {"plain": None, "contrast": 0}[name]
    assert np.ptp(weights) == 0 if order is None else weights.argmax() == order
