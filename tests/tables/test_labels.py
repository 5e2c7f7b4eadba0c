"""Labels as class codes, however a file spells them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import DataError
from qmedoid.tables.targets import MISSING, UNKNOWN, class_labels, label_codes, rest_label

texts = st.text(st.characters(codec="utf-8"), max_size=6)
labels = st.one_of(
    st.lists(texts.filter(lambda text: text.strip()), min_size=2, max_size=5, unique=True),
    st.lists(st.integers(-(2**60), 2**60), min_size=2, max_size=5, unique=True),
    st.just([False, True]),
)


@given(labels, st.data())
@settings(deadline=None)
def test_every_class_is_found_again(classes, data):
    codes = data.draw(st.lists(st.integers(0, len(classes) - 1), max_size=20))
    column = pa.array([classes[code] for code in codes], pa.array(classes).type)
    assert label_codes(column, tuple(classes)).tolist() == codes


@given(st.lists(st.integers(-(10**15), 10**15), min_size=2, max_size=4, unique=True))
@settings(deadline=None)
def test_whole_numbers_may_be_written_in_any_way(classes):
    expected = list(range(len(classes)))
    for written in (classes, list(map(float, classes)), list(map(str, classes)), [f" {n}.0 " for n in classes]):
        assert label_codes(pa.array(written), tuple(classes)).tolist() == expected
        assert label_codes(pa.array(classes), tuple(written)).tolist() == expected


def test_truth_values_may_be_written_in_any_way():
    for written in ([False, True], ["false", "true"], ["False", "True"], [" FALSE", "TRUE "]):
        assert label_codes(pa.array(written), (False, True)).tolist() == [0, 1]
        assert label_codes(pa.array([False, True]), tuple(written)).tolist() == [0, 1]


def test_spaces_around_do_not_matter_and_those_within_do():
    assert label_codes(pa.array([" yes", "yes ", "y es"]), ("no", "yes")).tolist() == [1, 1, UNKNOWN]


@pytest.mark.parametrize("classes", [("1", "01"), ("1_2", "12"), ("yes", "yes "), ("1", "1.0"), ("true", "True")])
def test_classes_that_look_alike_stay_apart(classes):
    assert label_codes(pa.array(list(classes)), classes).tolist() == [0, 1]


def test_what_could_be_either_of_two_classes_is_neither():
    assert label_codes(pa.array([1.0]), ("1", "01")).tolist() == [UNKNOWN]


def test_big_numbers_are_told_apart():
    one, other = 2**53 + 1, 2**53
    assert label_codes(pa.array([str(one), str(other)]), (other, one)).tolist() == [1, 0]


@pytest.mark.parametrize(
    "column",
    [pa.array([None, "a"]), pa.array(["", "a"]), pa.array(["  ", "a"]), pa.array(["NaN", "a"])],
)
def test_missing_labels(column):
    assert label_codes(column, ("a", "b")).tolist() == [MISSING, 0]
    assert class_labels(pa.chunked_array([column]), "y")[0].tolist() == [1]


def test_numbers_that_are_none_are_missing():
    assert label_codes(pa.array([float("nan"), 1.0, 7.0, None]), (0, 1)).tolist() == [MISSING, 1, UNKNOWN, MISSING]


def test_against_the_rest_every_other_label_is_the_rest():
    classes = (rest_label("b"), "b")
    assert label_codes(pa.array(["a", "b", "c", None, "not b"]), classes).tolist() == [0, 1, 0, MISSING, 0]


@given(st.lists(st.sampled_from(["a", "b", None, "c"]), max_size=30), st.integers(0, 30))
@settings(deadline=None)
def test_chunks_and_dictionaries_make_no_difference(cells, cut):
    column = pa.array(cells, pa.string())
    expected = label_codes(column, ("a", "b"))
    chunked = pa.chunked_array([column[:cut], column[cut:]], pa.string())
    for other in (chunked, column.dictionary_encode(), chunked.dictionary_encode()):
        np.testing.assert_array_equal(label_codes(other, ("a", "b")), expected)


def test_targets_that_are_labels_pass():
    for values, kind in ((["a", "b"], pa.string()), ([1, 2], pa.int8()), ([True, False], pa.bool_())):
        assert class_labels(pa.chunked_array([values], kind), "y")[1].to_pylist() == values
    blanks = pa.chunked_array([["yes ", " yes", "no"]])
    for column in (blanks, blanks.dictionary_encode()):
        assert class_labels(column, "y")[1].to_pylist() == ["yes", "yes", "no"]
    assert class_labels(pa.chunked_array([[1.0, 2.0]]), "y")[1].to_pylist() == [1, 2]


@pytest.mark.parametrize("values", [[0.5, 1.0], [1e300, 1.0], [float("inf"), 1.0], [[1], [2]], [b"a", b"b"]])
def test_targets_that_are_not_are_refused(values):
    with pytest.raises(DataError, match=r"The target 'y'|A target of type list"):
        class_labels(pa.chunked_array([values]), "y")
