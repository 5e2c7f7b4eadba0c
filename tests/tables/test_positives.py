"""Which class of two an operating point is about: what words mean comes first, then the rarer class."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.tables.targets import choose_positive, meant_positive

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
