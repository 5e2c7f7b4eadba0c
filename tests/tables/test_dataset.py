"""The rows of a fit as one table: parts have the kinds and numbers of the whole, and what belongs together stays so."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from qmedoid import MedoidClassifier
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.geometry.row_groups import row_order
from qmedoid.tables.cells import cell_ranks
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.targets import Target, meant_labels


def made(table, labels, **given):
    classes, codes = np.unique(labels, return_inverse=True)
    return Dataset.of(pa.table(table), Target("y", classes, codes.astype(np.intp)), DatasetSettings(), **given)


def small(n=60, **more):
    rng = np.random.default_rng(0)
    table = {"x": rng.normal(size=n), "town": rng.choice(["A", "B", "C"], n), **more}
    return made(table, rng.choice(["no", "yes"], n))


@given(npst.arrays(np.int64, (30, 2), elements=st.integers(0, 4)), st.sets(st.integers(0, 29), min_size=6))
def test_cells_of_a_part_order_and_group_its_rows_as_if_it_were_a_table(values, chosen):
    rows = np.array(sorted(chosen))
    table = {"a": values[:, 0] / 3.0, "b": np.array(["v", "w", None, "x", "y"], dtype=object)[values[:, 1]]}
    try:
        data = made(table, np.arange(30) % 2)
    except DataError:  # no column is left
        return
    data.cells  # noqa: B018
    part = data.take(rows)
    fresh, is_level = cell_ranks(part.table, part.kinds.columns)
    codes = part.target.codes
    np.testing.assert_array_equal(
        row_order(part.cells, codes, is_level=is_level), row_order(fresh, codes, is_level=is_level)
    )
    assert part.rows.tolist() == rows.tolist()


@pytest.mark.parametrize("test", [0.25, 0.6])
def test_split_keeps_groups_and_about_the_shares(test):
    groups = np.random.default_rng(0).integers(0, 150, 600)
    data = made({"x": np.random.default_rng(1).normal(size=600)}, groups % 3 == 0, groups=groups)
    parts = [part.rows for part in data.split(test, 0)]
    assert sorted(np.concatenate(parts)) == list(range(600))
    for part, share in zip(parts, (1 - test, test), strict=True):
        assert abs(len(part) / 600 - share) < 0.03
        assert all(set(groups[part]).isdisjoint(groups[other]) for other in parts if other is not part)


def test_split_leaves_a_class_of_one_group_in_training_and_something_to_train_on():
    data = small()
    train, test = replace(data, groups=data.target.codes).split(0.9, 0)
    assert test is None
    assert len(train.rows) == 60
    with pytest.raises(ParameterError, match="takes 1 of the rows: nothing is left to train on"):
        data.split(1.0, 0)


def test_target_of_a_part_has_its_classes():
    target = Target("y", np.array(["a", "b", "c"]), np.array([0, 1, 2, 0]), np.array([5, 6, 7]))
    part = target.take(np.array([3, 2]))
    assert (part.classes.tolist(), part.codes.tolist(), part.counts.tolist()) == (["a", "c"], [0, 1], [5, 7])
    rest = target.against_rest(1)
    assert (rest.classes.tolist(), rest.codes.tolist(), rest.counts.tolist()) == (["b", "not b"], [1, 0, 1, 1], [6, 12])
    assert target.codes_in(["c", "a"]).tolist() == [1, -1, 0, 1]
    with pytest.raises(ParameterError, match=r"'d' is no class in 'y'\. The classes are 'a', 'b', 'c'"):
        target.place_of("d")


def test_estimator_fits_a_dataset_as_it_fits_the_table():
    data = small()
    labels = data.target.classes[data.target.codes]
    plain, given_whole = (MedoidClassifier(method="evidence", random_state=0) for _ in range(2))
    plain.fit(data.table, labels)
    given_whole.fit(data)
    np.testing.assert_array_equal(plain.predict_proba(data.table), given_whole.predict_proba(data.table))
    part = MedoidClassifier(method="evidence", random_state=0).fit(data.take(np.arange(20, 60)))
    assert part.model_.medoids.numbers.min() >= 20
    with pytest.raises(ParameterError, match="A Dataset has a target"):
        plain.fit(data, labels)
    with pytest.raises(DataError, match="of one class only, 'no'"):
        plain.fit(data.take(np.flatnonzero(labels == "no")))


def test_labels_mean_the_class_that_stands_against_the_rest_or_the_rest():
    labels = np.array([3, 7, 3, 1])
    assert meant_labels(labels, np.array(["3", "not 3"], dtype=object)).tolist() == ["3", "not 3", "3", "not 3"]
    np.testing.assert_array_equal(meant_labels(labels, np.array([3, 7])), labels)


def test_rows_are_equal_that_differ_in_the_last_digits_of_a_number():
    x = np.repeat(np.arange(20.0) / 7.0, 2)
    x[1::2] = np.nextafter(x[1::2], np.inf)
    data = made({"x": x, "z": np.repeat(np.arange(20) ** 2, 2) / 3.0}, np.arange(40) % 4 // 2)
    assert data.together().tolist() == np.repeat(np.arange(20), 2).tolist()
