"""What every part keeps to: a row is scored alike however it comes, the split adds up, bad tables are refused."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from qmedoid.exceptions import DataError
from qmedoid.geometry.overlap import compact_swap_test
from qmedoid.geometry.scaling import Scaling
from qmedoid.methods.comparisons.fit import fit_comparisons
from qmedoid.methods.comparisons.growing import BoostingSettings
from qmedoid.methods.evidence.design import EvidenceSettings, fit_rank_scaling
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.nearest.part import NearestPart
from qmedoid.methods.neighbors.fit import fit_neighbors
from qmedoid.methods.rare.fit import RareSettings, fit_rare
from qmedoid.quantum.circuits.backends import StatevectorSwapTest
from qmedoid.schema import renumbered


def table(n_classes, n=500, seed=4):
    """Classes in small squares of two columns, a coarse column, a flag and a constant."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 4, (n, 2)), rng.normal(size=n).round(), rng.random(n) < 0.5, np.ones(n)])
    codes = (np.floor(X[:, 0]) + np.floor(X[:, 1])).astype(np.intp) % n_classes
    return X.astype(np.float64), codes


def evidence(n_classes):
    settings = EvidenceSettings(n_medoids=12, n_pairs=2, n_triples=1)
    return fit_evidence(*table(n_classes), n_classes, settings, 0).model


def rare(n_classes):
    X, codes = table(n_classes)
    return fit_rare(X, (codes * (X[:, 2] > 1)).astype(np.intp), RareSettings(n_common=80, n_hard=30), 0).model


def nearest(n_classes, angle="true"):
    X, codes = table(n_classes)
    rows = np.array([np.flatnonzero(codes == c)[place] for c in range(n_classes) for place in (0, 3)])
    scaling, weights = Scaling(X.mean(axis=0), X.std(axis=0) + (X.std(axis=0) == 0)), (np.ones(2), np.ones(1))
    part = NearestPart(
        input_scaling=scaling, configuration=((0, 2), (1,)), weights=weights, signed=True,
        feature_scaling=Scaling(np.zeros(2), np.ones(2)), medoids=np.zeros((len(rows), 2)), medoid_classes=codes[rows],
        medoid_rows=rows, multipliers=np.ones(n_classes), alpha=0.7, use_angular=True, angle=angle,
    )  # fmt: skip
    return replace(part, medoids=part.features(X[rows]))


def comparisons(n_classes):
    settings = BoostingSettings(n_iterations=12, n_folds=3, n_deals=2)
    return fit_comparisons(*table(n_classes), n_classes, settings, 0, lambda _: None).model


def neighbors(n_classes):
    X, codes = table(n_classes, n=1200)
    scores = np.zeros((len(codes), n_classes))
    return fit_neighbors(X, codes, scores, fit_rank_scaling(X), np.random.default_rng(0), None)[0]


MAKERS = {
    **{f"{make.__name__}, {n} classes": partial(make, n) for make in (evidence, nearest, comparisons, neighbors)
       for n in (2, 3)},
    "rare": partial(rare, 2), "nearest, printed angle": partial(nearest, 2, "printed"),
}  # fmt: skip
HAVE_POINTS = ("evidence", "nearest", "rare")


@pytest.fixture(scope="module", params=MAKERS)
def part(request):
    made = MAKERS[request.param]()
    assert made is not None
    return made


def rows_of(n=5000):
    return table(2, n, seed=1)[0] + np.array([0.03, 0.01, 0.0, 0.0, 0.0])


def parts_of(found):
    return [one for one in (found.scores, found.nearest, found.features) if one is not None]


def test_rows_are_scored_alike_alone_together_by_columns_and_on_any_threads(part):
    X = rows_of()
    whole = part.score(X, channels=True, threads=1)
    columns = [np.ascontiguousarray(column) for column in X.T]
    for found in (
        part.score(X, channels=True, threads=2),
        part.score(columns, channels=True, threads=1),
        part.score(np.asfortranarray(X), channels=True),
    ):
        for one, other in zip(parts_of(found), parts_of(whole), strict=True):
            np.testing.assert_array_equal(one, other)
    for place in (slice(0, 1), slice(2047, 2048), slice(100, 113), slice(4999, 5000)):
        for one, other in zip(parts_of(part.score(X[place], channels=True)), parts_of(whole), strict=True):
            np.testing.assert_allclose(one, other[place], rtol=1e-12)
    np.testing.assert_array_equal(part.score(X).scores, whole.scores)
    assert part.score(X[:0]).scores.shape == (0, whole.scores.shape[1])


@pytest.mark.parametrize("swap_test", [compact_swap_test, StatevectorSwapTest()], ids=["closed form", "statevector"])
def test_measured_scores_are_those_of_the_closed_form(part, swap_test):
    X = rows_of(8)
    np.testing.assert_allclose(part.score_measured(X, swap_test).scores, part.score(X).scores, rtol=1e-5, atol=1e-5)
    assert part.score_measured(X[:0], swap_test).scores.shape == part.score(X[:0]).scores.shape


def test_contributions_add_up_to_the_difference_of_the_scores(part):
    X = rows_of(20)
    scores = part.score(X).scores
    for row, own in zip(X, scores, strict=True):
        winner, other = np.argsort(own)[:2]
        found = part.contributions(row[None], int(winner), int(other))
        total = found.columns.sum() + sum(found.terms.values())
        assert total == pytest.approx(own[other] - own[winner], abs=1e-9)
        assert sum(one.contribution for one in found.groups) == pytest.approx(found.columns.sum(), abs=1e-9)


def test_rows_have_new_numbers_in_a_larger_table(part):
    rows = np.arange(1200) * 3 + 7
    other = renumbered(part, rows)
    np.testing.assert_array_equal(other.rows.numbers, rows[part.rows.numbers])
    if getattr(part, "neighbors", None) is not None:
        np.testing.assert_array_equal(other.neighbors.rows, rows[part.neighbors.rows])


def test_part_that_was_used_can_be_sent(part):
    X = rows_of(50)
    before = part.score(X).scores
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(part)).score(X).scores, before)


@pytest.mark.parametrize("name", HAVE_POINTS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_value_is_named_by_row_and_column(name, bad):
    made, X = MAKERS.get(name, MAKERS.get(f"{name}, 2 classes"))(), rows_of(4000)
    X[3123, 1] = bad
    for given in (X, list(X.T)):
        with pytest.raises(DataError, match=f"Row 3123 holds {bad} in column 1"):
            made.score(given, channels=True)
    with pytest.raises(DataError, match="has 4 columns; the model was fitted on 5"):
        made.score(X[:, :4], channels=True)
