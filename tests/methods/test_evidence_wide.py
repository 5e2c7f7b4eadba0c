"""Evidence of tables with more columns than have terms: laws of the choice, and what is said out of fold."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from qmedoid.arrays import Array, Codes
from qmedoid.geometry.groups import MOST_COLUMNS
from qmedoid.geometry.row_groups import equal_rows
from qmedoid.methods.comparisons.fit import fit_comparisons
from qmedoid.methods.comparisons.growing import BoostingSettings
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import FittedEvidence, fit_evidence

N_COLUMNS = MOST_COLUMNS + 60
SIGNAL = 37


def made(n_rows: int = 80, n_classes: int = 2) -> tuple[Array, Codes]:
    """One column with a signal among many without."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n_rows, N_COLUMNS))
    cuts = np.quantile(X[:, SIGNAL], np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(cuts, X[:, SIGNAL] + 0.3 * rng.standard_normal(n_rows)).astype(np.intp)


def fitted(X: Array, codes: Codes, groups: Codes | None = None, **settings: bool) -> FittedEvidence:
    return fit_evidence(X, codes, int(codes.max()) + 1, EvidenceSettings(**settings), 0, groups=groups)


@cache
def two_classes() -> FittedEvidence:
    return fitted(*made())


def area(scores: Array, codes: Codes) -> float:
    """The share of pairs of rows of two classes that scores put in order."""
    own, other = scores[codes == 1, 0], scores[codes == 0, 0]
    return float((own[:, None] > other).mean())


def test_terms_are_of_few_columns_and_of_the_one_with_the_signal() -> None:
    model = two_classes().model
    columns = {column for group in model.groups for column in group.columns}
    assert SIGNAL in columns
    assert len(columns) < N_COLUMNS
    # All columns count in the distance to the medoids.
    assert (model.column_weights == 1).all()
    assert area(two_classes().out_of_fold, made()[1]) > 0.85


def test_note_says_how_many_columns_have_terms() -> None:
    note = two_classes().note
    assert note is not None
    assert f"of {N_COLUMNS} columns that vary, each of the 5 models" in note
    assert fitted(made()[0][:, :20], made()[1]).note is None


def test_order_of_the_columns_does_not_matter() -> None:
    (X, codes), order = made(), np.random.default_rng(0).permutation(N_COLUMNS)
    other = fitted(np.ascontiguousarray(X[:, order]), codes)
    assert np.array_equal(other.out_of_fold, two_classes().out_of_fold)
    assert other.model.score(X[:, order]).scores == pytest.approx(
        two_classes().model.score(X).scores, rel=1e-9, abs=1e-9
    )


def test_noise_says_nothing_out_of_fold() -> None:
    X, codes = made()[0], np.random.default_rng(1).permutation(80) % 2
    # Terms that were chosen by the rows that they are judged by put nearly all of these in order.
    assert 0.3 < area(fitted(X, codes).out_of_fold, codes) < 0.7


def test_copies_of_all_rows_are_told_the_same() -> None:
    X, codes = made(40)
    once = fitted(X, codes)
    twice = fitted(np.vstack([X, X]), np.append(codes, codes), equal_rows(np.vstack([X, X])))
    chosen = [{column for group in one.model.groups for column in group.columns} for one in (once, twice)]
    assert chosen[0] == chosen[1]
    assert area(twice.out_of_fold[:40], codes) == pytest.approx(area(once.out_of_fold, codes), abs=0.1)


@pytest.mark.parametrize("change", [lambda X: X, lambda X: (X > 0).astype(np.float64)], ids=["numbers", "flags"])
def test_more_classes_and_columns_of_two_values_are_fitted(change: Callable[[Array], Array]) -> None:
    X, codes = made(60, 3)
    found = fitted(change(X), codes, multinomial=True)
    assert np.isfinite(found.out_of_fold).all()
    assert np.isfinite(found.model.score(change(X)).scores).all()


def test_trees_compare_columns_of_the_whole_table() -> None:
    X, codes = made(120)
    settings = BoostingSettings(n_iterations=5, n_folds=2, n_seeds=1)
    found = fit_comparisons(X, codes, 2, settings, 0, lambda _: None)
    assert found is not None
    assert SIGNAL in found.model.columns
    assert len(found.model.scaling.center) == N_COLUMNS
    assert area(found.model.score(X).scores, codes) > 0.9
    order = np.random.default_rng(0).permutation(N_COLUMNS)
    other = fit_comparisons(np.ascontiguousarray(X[:, order]), codes, 2, settings, 0, lambda _: None)
    assert other is not None
    assert np.array_equal(other.out_of_fold, found.out_of_fold)
