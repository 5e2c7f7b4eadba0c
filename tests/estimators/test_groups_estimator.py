"""CorrelationGroups as users meet it: tables of every make, names, weights, pipelines."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from qmedoid import CorrelationGroups
from qmedoid.geometry.groups import FEATURE_KINDS, correlation_ratio, feature_matrix

WINE = load_wine()
X, Y = WINE.data, WINE.target
NAMES = list(WINE.feature_names)


def test_features_are_those_of_the_formulas():
    groups = CorrelationGroups(group_size=4, subset_size=3, standardize=False).fit(X, Y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(groups.groups_.correlation, np.corrcoef(X.T), atol=1e-12)
    assert groups.groups_.anchors == tuple(np.argsort(-correlation_ratio(X, Y), kind="stable"))
    expected = feature_matrix(Z, groups.configuration_, np.corrcoef(X.T), "signed")
    np.testing.assert_allclose(groups.transform(X), expected, rtol=1e-9)
    assert all(len(subset) == 3 for subset in groups.configuration_)


@pytest.mark.parametrize("kind", FEATURE_KINDS)
@pytest.mark.parametrize("input_scaling", ["standard", "minmax", "none"])
def test_features_are_standardized_on_the_training_rows(kind, input_scaling):
    u = CorrelationGroups(kind=kind, input_scaling=input_scaling).fit(X, Y).transform(X)
    np.testing.assert_allclose(u.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(u.std(axis=0), 1, rtol=1e-10)


def test_names_out_are_the_anchors_in_order():
    fitted = CorrelationGroups(n_anchors=3).fit(pd.DataFrame(X, columns=NAMES), Y)
    assert list(fitted.get_feature_names_out()) == [f"{NAMES[a]}_group" for a in fitted.groups_.anchors]
    assert fitted.get_feature_names_out()[0] == "flavanoids_group"
    unnamed = CorrelationGroups(n_anchors=2, anchor_order="columns").fit(X)
    assert list(unnamed.get_feature_names_out()) == ["x0_group", "x1_group"]
    assert list(unnamed.get_feature_names_out(NAMES)) == ["alcohol_group", "malic_acid_group"]


# --- targets ----------------------------------------------------------------------------------------------------


def test_names_of_classes_do_not_matter():
    """Fact 8."""
    by_number = CorrelationGroups().fit(X, Y)
    renumbered = CorrelationGroups().fit(X, np.array([5, -1, 3])[Y])
    by_word = CorrelationGroups().fit(X, np.array(["x", "a", "m"])[Y])
    assert by_number.groups_.anchors == renumbered.groups_.anchors == by_word.groups_.anchors
    np.testing.assert_array_equal(by_number.transform(X), by_word.transform(X))


def test_label_codes_are_the_printed_rule_and_depend_on_the_numbers():
    by_codes = [CorrelationGroups(anchor_order="codes").fit(X, np.array(n)[Y]) for n in ((0, 1, 2), (1, 0, 2))]
    assert by_codes[0].groups_.anchors != by_codes[1].groups_.anchors


def test_numeric_target_orders_by_correlation():
    target = X[:, 5] + 0.1 * X[:, 3]
    fitted = CorrelationGroups().fit(X, target)
    strength = np.abs([np.corrcoef(column, target)[0, 1] for column in X.T])
    assert fitted.groups_.anchors == tuple(np.argsort(-strength, kind="stable"))


def test_without_a_target_the_columns_keep_their_order():
    expected = tuple(range(13))
    assert CorrelationGroups().fit(X).groups_.anchors == expected
    assert CorrelationGroups(anchor_order="columns").fit(X, Y).groups_.anchors == expected


# --- order ----------------------------------------------------------------------------------------------------


def test_rows_and_units_do_not_matter():
    order = np.random.default_rng(1).permutation(len(X))
    plain = CorrelationGroups().fit(X, Y)
    shuffled = CorrelationGroups().fit(X[order], Y[order])
    metric = CorrelationGroups().fit(X * 1000 + 7, Y)
    np.testing.assert_allclose(shuffled.transform(X), plain.transform(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(metric.transform(X * 1000 + 7), plain.transform(X), rtol=0, atol=1e-9)


def test_group_no_larger_than_asked():
    fitted = CorrelationGroups(group_size=5, n_anchors=4).fit(X, Y)
    assert fitted.transform(X).shape == (178, 4)
    assert [len(members) for members in fitted.groups_.members] == [5] * 4
    assert fitted.configuration_ == fitted.groups_.members
    assert [len(m) for m in CorrelationGroups().fit(X, Y).groups_.members] == [8] * 13
    assert [len(m) for m in CorrelationGroups().fit(X[:, :3], Y).groups_.members] == [3] * 3
