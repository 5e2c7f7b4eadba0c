"""Notes on targets that are not what a classifier is for."""

import pytest

from qmedoid.model.operating_point import Counts
from qmedoid.tables.targets import seldom_note, target_notes


def messages(labels, counts):
    return [message for _, message in target_notes(labels, counts)]


@pytest.mark.parametrize(("n", "each"), [(21, 100), (74, 600), (11, 5), (20, 9)])
def test_many_numbers_are_a_quantity(n, each):
    (note,) = messages(list(range(18, 18 + n)), [each] * n)
    assert f"{n} different numbers" in note
    assert "ranges" in note
    assert messages([f"city {k}" for k in range(n)], [each] * n) == []


def test_classes_of_one_row_are_named():
    (note,) = messages(["a", "b", "c"], [5, 1, 7])
    assert "'b' has one row only" in note
    (note,) = messages([f"c{k}" for k in range(9)] + ["z"], [1] * 9 + [50])
    assert note.startswith("9 classes ('c0'")
    assert "4 more" in note


@pytest.mark.parametrize("labels", [("No", "no"), ("no", "no "), ("New York", "new  york"), ("A", "b", "a")])
def test_classes_that_differ_by_case_or_blanks_only_are_told(labels):
    (note,) = messages(labels, [9] * len(labels))
    assert "differ by case or blanks only" in note
    assert repr(labels[0]) in note


def test_rare_class_that_is_hardly_ever_called():
    note = seldom_note(("legit", "fraud"), Counts(tp=1, fp=0, fn=56, tn=3798))
    assert "57 of 3,855 rows are 'fraud', and the model predicts 'fraud' for 1 row:" in note
    assert "--alert-rate 0.015, --min-recall or --cost (in Python operating_point={'alert_rate': 0.015})" in note
    # The same rows with the classes in the other order.
    assert seldom_note(("fraud", "legit"), Counts(tp=3798, fp=56, fn=0, tn=1)) == note
    assert seldom_note(("legit", "fraud"), Counts(tp=30, fp=0, fn=27, tn=3798)) is None
    assert seldom_note(("a", "b"), Counts(tp=50, fp=1, fn=2, tn=50)) is None
