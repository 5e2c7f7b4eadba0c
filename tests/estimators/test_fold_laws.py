"""Splits name the rows that they mean, also of a part of a table, and say where they judge what they trained on."""

import warnings

import numpy as np
import pytest

from qmedoid import EvidenceClassifier, MedoidClassifier
from qmedoid.estimators.folds import splits_of_part, stratified_splits
from qmedoid.exceptions import QMedoidWarning


def test_splits_of_a_part_are_the_splits_of_the_table_without_the_other_rows():
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(40, size=15, replace=False))
    order = rng.permutation(40)
    splits = [(order[:25], order[25:]), (np.arange(40) % 2 == 0, np.arange(40) % 2 == 1)]
    for (train, held_out), own in zip(splits, splits_of_part(splits, rows, 40), strict=True):
        for part, own_part in zip((train, held_out), own, strict=True):
            meant = np.arange(40)[part]
            np.testing.assert_array_equal(rows[own_part], meant[np.isin(meant, rows)])
    assert splits_of_part(5, rows, 40) == 5


def test_class_of_one_group_is_never_held_out_and_folds_are_as_many_as_groups():
    codes = np.repeat([0, 1, 2], [20, 6, 6])
    # The rows of class 1 are copies of one, and those of class 2 of two.
    groups = np.concatenate([np.arange(20), np.full(6, 20), np.repeat([21, 22], 3)])
    rng, X = np.random.default_rng(0), np.zeros((32, 1))
    with pytest.warns(QMedoidWarning, match="cv=5 folds need 5 rows of every class, and class 2 has 2: 2 were used"):
        splits = stratified_splits(5, X, codes, np.arange(3), rng, groups)
    assert len(splits) == 2
    for train, held_out in splits:
        assert set(np.flatnonzero(codes == 1)) <= set(train)
        assert set(codes[held_out]) == {0, 2}


@pytest.mark.parametrize("shared", [0, 1, 7])
def test_split_that_judges_rows_it_trained_on_is_told_of(shared):
    rng = np.random.default_rng(1)
    y = np.arange(60) % 2
    X = rng.normal(size=(60, 3)) + y[:, None]
    train, held_out = np.arange(40), np.arange(40 - shared, 60)
    classifier = MedoidClassifier(method=EvidenceClassifier(n_medoids=6, cv=[(train, held_out)]), random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", QMedoidWarning)
        classifier.fit(X, y)
    told = [str(one.message) for one in caught if "of its" in str(one.message)]
    assert len(told) == bool(shared)
    if shared:
        assert f"trains on {shared} of its {20 + shared} validation rows" in told[0]
