"""Labels as class codes, however a file spells them; which class is looked for; and targets that are odd."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import DataError
from qmedoid.model.operating_point import Counts
from qmedoid.tables.targets import (
    MISSING,
    UNKNOWN,
    choose_positive,
    class_labels,
    label_codes,
    meant_positive,
    refuse_quantity,
    rest_label,
    seldom_note,
    target_notes,
)

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


PAIRS = [
    ("yes", "no"), ("Yes", "NO "), ("true", "false"), (True, False), (1, 0), ("1", "0"), (1.0, 0.0), (1, -1),
    ("Y", "N"), ("T", "F"), ("+", "-"), ("positive", "negative"), ("fraud", "legit"), ("Fraud", "Not Fraud"),
    ("fraud", "non-fraud"), ("bad", "good"), ("sick", "healthy"), ("churned", "retained"), ("churn", "no churn"),
    ("default", "paid"), ("unpaid", "paid"), ("abnormal", "normal"), ("spam", "ham"), ("malignant", "benign"),
    ("hypothyroid", "negative"), ("died", "survived"), ("fail", "pass"), ("Charged Off", "Fully Paid"),
    ("recurrence-events", "no-recurrence-events"),
]  # fmt: skip
NO_MEANING = [("a", "b"), (1, 2), ("<=50K", ">50K"), ("left", "right"), ("M", "F"), ("g", "h"), ("fraud", "spam"),
              ("good", "normal"), ("3", "7"), ("", "x")]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("counts", [(30, 70), (70, 30), (50, 50)])
def test_words_with_a_meaning_come_first(pair, counts):
    positive, other = pair
    for labels, place in (((positive, other), 0), ((other, positive), 1)):
        assert meant_positive(labels) == place
        chosen, note, is_plain = choose_positive(labels, counts, "alert rate")
        assert chosen == place
        assert repr(positive) in note.partition(":")[0]
        # Frequencies that speak against the words are told.
        assert ("although" in note) == (counts[place] > counts[1 - place])
        if counts[place] > counts[1 - place] or place == 0:
            assert not is_plain


@pytest.mark.parametrize("labels", NO_MEANING)
def test_else_it_is_the_rarer_class(labels):
    assert meant_positive(labels) is None
    assert choose_positive(labels, (3, 7), "cost")[0] == 0
    assert choose_positive(labels, (7, 3), "cost")[0] == 1
    place, note, _ = choose_positive(labels, (5, 5), "cost")
    assert place == 1
    assert "equally frequent" in note


@given(st.text(), st.text(), st.integers(1, 99))
def test_order_of_the_labels_does_not_matter(first, second, count):
    if first == second or count == 50:
        return
    one = choose_positive((first, second), (count, 100 - count), "cost")
    other = choose_positive((second, first), (100 - count, count), "cost")
    assert one[0] == 1 - other[0]
    assert one[1] == other[1]


def messages(labels, counts):
    return [message for _, message in target_notes(labels, counts)]


@pytest.mark.parametrize(("n", "each"), [(21, 100), (74, 600), (11, 5), (20, 9)])
def test_many_numbers_are_a_quantity(n, each):
    (note,) = messages(list(range(18, 18 + n)), [each] * n)
    assert f"{n} different numbers" in note
    assert "ranges" in note
    assert messages([f"city {k}" for k in range(n)], [each] * n) == []


@pytest.mark.parametrize(
    ("numbers", "each", "is_code"),
    [
        (range(1, 27), 60, True),
        (range(40), 10, True),
        (range(40), 9, False),
        ([100, 101, 110, 205, 300, 301, 302, 400, 401, 403, 404, 409, 410, 418, 429, 500, 501, 502, 503, 504, 505],
         30, True),
        (range(18, 91), 600, False),
        (range(0, 500, 20), 60, False),
        (range(1, 102), 60, False),
    ],
    ids=["letters", "counted", "few-rows", "gaps", "ages", "steps", "many"],
)  # fmt: skip
def test_many_numbers_are_codes_where_they_look_like_it(numbers, each, is_code):
    """The command line, the check and the classifier decide alike."""
    labels = list(numbers)
    (code, note), *others = target_notes(labels, [each] * len(labels))
    assert (code, others) == ("target_codes" if is_code else "target_quantity", [])
    assert f"{len(labels)} different numbers" in note
    assert "ranges" in note
    if is_code:
        refuse_quantity("y", labels, [each] * len(labels))
    else:
        with pytest.raises(DataError, match=r"that is a quantity.*insist on a class for each number with --classes"):
            refuse_quantity("y", labels, [each] * len(labels))
    # One number with few rows is the end of a range, and texts are names.
    (code, _), *_ = target_notes(labels, [3, *[each] * (len(labels) - 1)])
    assert code == "target_quantity"
    assert target_notes([str(label) for label in labels], [each] * len(labels)) == []


def test_classes_of_one_row_are_named():
    (note,) = messages(["a", "b", "c"], [5, 1, 7])
    assert "'b' has one row only" in note
    (note,) = messages([f"c{k}" for k in range(9)] + ["z"], [1] * 9 + [50])
    assert note.startswith("9 classes ('c0'")
    assert "4 more" in note


@pytest.mark.parametrize("labels", [("No", "no"), ("no", "no "), ("New York", "new  york"), ("A", "b", "a")])
def test_classes_that_differ_by_case_or_blanks_only_are_told(labels):
    (note,) = messages(labels, [9] * len(labels))
    assert "differ by case, blanks or odd letters only" in note
    assert repr(labels[0]) in note


def test_rare_class_that_is_hardly_ever_called():
    note = seldom_note(("legit", "fraud"), Counts(tp=1, fp=0, fn=56, tn=3798))
    assert "57 of 3,855 rows are 'fraud', and the model predicts 'fraud' for 1 row:" in note
    assert "--alert-rate 0.015, --min-recall or --cost (in Python operating_point={'alert_rate': 0.015})" in note
    # The same rows with the classes in the other order.
    assert seldom_note(("fraud", "legit"), Counts(tp=3798, fp=56, fn=0, tn=1)) == note
    assert seldom_note(("legit", "fraud"), Counts(tp=30, fp=0, fn=27, tn=3798)) is None
    assert seldom_note(("a", "b"), Counts(tp=50, fp=1, fn=2, tn=50)) is None
