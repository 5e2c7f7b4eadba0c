"""Weights of a long table: sums over blocks are those of one block, and all rows count."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from qmedoid.geometry.row_groups import numbered
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.methods.evidence import bag as bag_module
from qmedoid.methods.evidence import fit as fit_module
from qmedoid.methods.evidence import long_table, multinomial
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.evidence.long_table import row_blocks
from qmedoid.methods.evidence.multinomial import fit_multinomial

SMALL = EvidenceSettings(n_medoids=16, n_pairs=3, n_triples=2, n_terms=300, n_neighbors=0)


def table(n_classes=2, n=400, seed=3):
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, 5)) + 0.8 * codes[:, None] * np.linspace(-1.0, 1.0, 5)
    X[:, 1] = np.round(X[:, 1])
    return X, codes


def row_labels(kind, X):
    """Groups of rows: none, copies, or rows that differ."""
    if kind == "alone":
        return None
    if kind == "copies":
        X[1::4] = X[::4]
        return numbered(np.unique(X, axis=0, return_inverse=True)[1].ravel())
    return np.random.default_rng(0).integers(0, len(X) // 3, len(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["alone", "copies", "mixed", "weighted"])
@pytest.mark.parametrize("block_rows", [37, 1024])
def test_sums_over_blocks_are_those_of_one_block(monkeypatch, n_classes, kind, block_rows):
    X, codes = table(n_classes)
    groups = row_labels(kind, X)
    groups = None if groups is None else numbered(groups)
    u = np.random.default_rng(1).uniform(0.1, 3.0, len(X)) if kind == "weighted" else None
    u = u if u is None else u / u.mean()
    settings = replace(SMALL, multinomial=True)
    monkeypatch.setattr(long_table, "_BLOCK_ROWS", block_rows)
    expected = fit_evidence(X, codes, n_classes, settings, 0, groups=groups, row_weights=u)
    fit_bags = bag_module.fit_bags

    def of_blocks(blocks, targets, places, together, rng, report, none, may_begin):
        assert none is None
        whole = long_table.LongTable(
            X[:, order], targets, None if together is None else together.groups, np.arange(len(X)), scalings, u
        )
        return fit_bags(blocks, targets, places, together, rng, report, whole, may_begin)

    order = fit_module.order_by_content(X)
    scalings = fit_module.fit_rank_scaling(X[:, order]), fit_module.fit_standard(X[:, order])
    monkeypatch.setattr(fit_module, "fit_bags", of_blocks)
    # Judging rows are drawn without a change of what is drawn after them.
    monkeypatch.setattr(
        long_table.LongTable, "_errors",
        lambda self, *arguments, plain=long_table.LongTable._errors: plain(
            self, *arguments[:-2], np.random.default_rng(0), arguments[-1]
        ),
    )  # fmt: skip
    found = fit_evidence(X, codes, n_classes, settings, 0, groups=groups, row_weights=u)
    assert found.regularization == expected.regularization
    np.testing.assert_allclose(found.path.errors, expected.path.errors, rtol=1e-8)
    np.testing.assert_allclose(found.model.terms.center, expected.model.terms.center, rtol=1e-9)
    # Directions are stored in single precision, and a multinomial search ends within its tolerance.
    tolerance = 2e-3 if n_classes == 3 else 1e-4
    np.testing.assert_allclose(found.out_of_fold, expected.out_of_fold, atol=tolerance)
    np.testing.assert_allclose(found.model.score(X).scores, expected.model.score(X).scores, atol=tolerance)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_only_rows_outside_of_the_sample_show_is_learnt(monkeypatch, n_classes):
    n, n_sample = 900, 120
    X = np.random.default_rng(0).normal(size=(n, 4))
    codes = np.arange(n) % n_classes
    X[:, 3] = 0.0
    X[n - 150 :, 3] = codes[n - 150 :]
    # Only the last rows have a value in the last column.
    monkeypatch.setattr(
        fit_module, "stratified_sample",
        lambda codes, _, max_rows, *__: np.arange(min(max_rows, len(codes))),
    )  # fmt: skip
    settings = replace(SMALL, multinomial=True)
    seen = fit_evidence(X, codes, n_classes, replace(settings, sample_rows=n_sample), 0)
    not_seen = fit_evidence(X, codes, n_classes, replace(settings, max_rows=n_sample), 0)
    asked = np.column_stack([np.zeros((n_classes, 3)), np.arange(n_classes)])[1:]
    assert (seen.model.score(asked).scores.argmin(axis=1) == np.arange(1, n_classes)).all()
    assert np.ptp(not_seen.model.score(asked).scores, axis=0).max() < 1e-9
    assert (seen.model.medoid_rows < n_sample).all()
    assert seen.out_of_fold.shape == (n, n_classes)
    late = np.flatnonzero(X[:, 3] > 0)
    assert (seen.out_of_fold[late].argmin(axis=1) == codes[late]).mean() > 0.9


def test_memory_is_bounded_where_a_design_of_all_rows_would_not_be():
    rng = np.random.default_rng(0)
    n, n_terms = 16_000, 500
    X = rng.normal(size=(n, 6))
    codes = (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0).astype(np.intp)
    settings = EvidenceSettings(n_bags=1, n_terms=n_terms, n_neighbors=0, sample_rows=500)
    tracemalloc.start()
    fitted = fit_evidence(X, codes, 2, settings, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(fitted.model.terms) > 0.8 * n_terms
    # A design takes 8 n p bytes, and a fit that keeps it several times as many.
    assert peak < 0.95 * 8 * n * len(fitted.model.terms)


def test_rows_in_single_precision_have_the_weights_of_those_in_double_precision():
    rng = np.random.default_rng(2)
    rotated = rng.normal(size=(500, 8)) * np.linspace(0.1, 1.0, 8)
    codes = (rotated @ rng.normal(size=(8, 3)) + rng.normal(size=(500, 3))).argmax(axis=1)
    folds = np.arange(500) % 5
    start = np.zeros(3), np.zeros((8, 3))
    one, other = (fit_multinomial(rows, codes, 0.1, start, folds) for rows in (rotated, rotated.astype(np.float32)))
    for found, expected in zip(one[1:], other[1:], strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-3)


def test_a_multinomial_refit_finds_the_penalty_that_held_out_rows_ask_for(monkeypatch):
    rng = np.random.default_rng(3)
    rotated = rng.normal(size=(200, 60))
    codes = (2.0 * rotated[:, :3] + rng.normal(size=(200, 3))).argmax(axis=1)
    start = np.zeros(3), np.zeros((60, 3))
    folds = rng.permutation(np.arange(200) % 5)
    found = row_losses(fit_multinomial(rotated, codes, 0.05, start, folds)[2], codes)
    monkeypatch.setattr(multinomial, "_STRENGTHS", (1.0,))
    as_given = row_losses(fit_multinomial(rotated, codes, 0.05, start, folds)[2], codes)
    assert found.mean() < 0.8 * as_given.mean()


def test_blocks_hold_whole_groups_and_every_row_once(monkeypatch):
    monkeypatch.setattr(long_table, "_BLOCK_ROWS", 10)
    groups = numbered(np.random.default_rng(1).integers(0, 30, 100))
    blocks = list(row_blocks(np.zeros((100, 1)), groups))
    assert len(blocks) > 4
    np.testing.assert_array_equal(np.sort(np.concatenate([rows for rows, _ in blocks])), np.arange(100))
    of_blocks = [set(groups[rows].tolist()) for rows, _ in blocks]
    assert sum(len(one) for one in of_blocks) == len(set(groups.tolist()))


def test_medoids_grow_with_the_rows_if_asked_to():
    assert EvidenceSettings(grows=True).for_rows(1999).n_medoids == 64
    assert EvidenceSettings(grows=True).for_rows(2000).n_medoids == 128
    assert EvidenceSettings().for_rows(10**6).n_medoids == 64
