"""Weights of a long table: sums over blocks are those of one block, and all rows count."""

from dataclasses import replace

import numpy as np
import pytest

from qmedoid.geometry.row_groups import numbered
from qmedoid.methods.evidence import bag as bag_module
from qmedoid.methods.evidence import fit as fit_module
from qmedoid.methods.evidence import long_table
from qmedoid.methods.evidence.design import EvidenceSettings
from qmedoid.methods.evidence.fit import fit_evidence
from qmedoid.methods.evidence.long_table import row_blocks

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
@pytest.mark.parametrize("kind", ["alone", "copies", "mixed"])
@pytest.mark.parametrize("block_rows", [37, 4096])
def test_sums_over_blocks_are_those_of_one_block(monkeypatch, n_classes, kind, block_rows):
    X, codes = table(n_classes)
    groups = row_labels(kind, X)
    groups = None if groups is None else numbered(groups)
    settings = replace(SMALL, multinomial=True)
    monkeypatch.setattr(long_table, "_BLOCK_ROWS", block_rows)
    expected = fit_evidence(X, codes, n_classes, settings, 0, groups=groups)
    fit_bags = bag_module.fit_bags

    def of_blocks(blocks, targets, places, together, rng, report, none):
        assert none is None
        whole = long_table.LongTable(
            X[:, order], targets, None if together is None else together.groups, np.arange(len(X)),
            *scalings, list(row_blocks(X[:, order], None if together is None else together.groups)),
        )  # fmt: skip
        return fit_bags(blocks, targets, places, together, rng, report, whole)

    order = fit_module.order_by_content(X)
    scalings = fit_module.fit_rank_scaling(X[:, order]), fit_module.fit_standard(X[:, order])
    monkeypatch.setattr(fit_module, "fit_bags", of_blocks)
    # Judging rows are drawn without a change of what is drawn after them.
    monkeypatch.setattr(
        long_table.LongTable, "_errors",
        lambda self, *arguments, plain=long_table.LongTable._errors: plain(
            self, *arguments[:-1], np.random.default_rng(0)
        ),
    )  # fmt: skip
    found = fit_evidence(X, codes, n_classes, settings, 0, groups=groups)
    assert found.regularization == expected.regularization
    np.testing.assert_allclose(found.path.errors, expected.path.errors, rtol=1e-8)
    np.testing.assert_allclose(found.path.standard_errors, expected.path.standard_errors, rtol=1e-8)
    np.testing.assert_allclose(found.model.terms.center, expected.model.terms.center, rtol=1e-9)
    # Directions are stored in single precision, and a multinomial search ends within its tolerance.
    tolerance = 2e-3 if n_classes == 3 else 1e-4
    np.testing.assert_allclose(found.out_of_fold, expected.out_of_fold, atol=tolerance)
    np.testing.assert_allclose(found.model.scores(X), expected.model.scores(X), atol=tolerance)
