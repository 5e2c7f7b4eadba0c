"""The groups of a NearestMedoidClassifier: which columns anchor them, and what they do not depend on."""

import numpy as np
import pytest
from sklearn.datasets import load_wine

from qmedoid import NearestMedoidClassifier
from qmedoid.geometry.groups import correlation_ratio

X, Y = load_wine(return_X_y=True)


def groups(X, y, **settings):
    """Of a fit without a search."""
    return NearestMedoidClassifier(max_passes=0, cv=2, random_state=0, **settings).fit(X, y).groups_


def test_anchors_are_ordered_as_asked():
    found = groups(X, Y, n_anchors=None)
    np.testing.assert_allclose(found.correlation, np.corrcoef(X.T), atol=1e-12)
    assert found.anchors == tuple(np.argsort(-correlation_ratio(X, Y), kind="stable"))
    strength = np.abs([np.corrcoef(column, Y)[0, 1] for column in X.T])
    assert groups(X, Y, anchor_order="codes").anchors == tuple(np.argsort(-strength, kind="stable"))
    assert groups(X, Y, anchor_order="columns").anchors == tuple(range(13))


@pytest.mark.parametrize("names", [[5, -1, 3], ["x", "a", "m"]])
def test_names_of_classes_do_not_matter(names):
    """Fact 8."""
    assert groups(X, np.array(names)[Y]).anchors == groups(X, Y).anchors


def test_rows_and_units_do_not_matter():
    order = np.random.default_rng(1).permutation(len(X))
    plain = groups(X, Y)
    for other in (groups(X[order], Y[order]), groups(X * 1000 + 7, Y)):
        assert other.members == plain.members
        np.testing.assert_allclose(other.correlation, plain.correlation, rtol=0, atol=1e-9)


def test_group_no_larger_than_asked():
    assert [len(members) for members in groups(X, Y, group_size=5, n_anchors=4).members] == [5] * 4
    assert [len(members) for members in groups(X, Y).members] == [8] * 13
    assert [len(members) for members in groups(X[:, :3], Y).members] == [3] * 3
