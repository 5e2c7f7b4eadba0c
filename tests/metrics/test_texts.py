"""Texts of effects, cells and classes: they say what the numbers are, and never more."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.metrics.texts import cell_text, chance_texts, class_name, column_text, effect_text, odds_text


@given(st.floats(-13.0, 13.0))
def test_factor_of_the_odds_is_that_of_the_log_odds(log_odds):
    text = odds_text(log_odds)
    assert text[0] == ("×" if log_odds >= 0 else "÷")
    factor = float(text[1:].replace(",", ""))
    assert factor == pytest.approx(math.exp(abs(log_odds)), rel=0.06)
    # Nothing but what is next to nothing reads as none.
    assert factor > 1 or abs(log_odds) < 0.0006


def test_factor_beyond_all_measure_has_no_digits():
    assert odds_text(50.0) == "×1,000,000 or more"
    assert odds_text(-50.0) == "÷1,000,000 or more"
    assert (odds_text(0.003), odds_text(math.log(12.3))) == ("×1.003", "×12")


@given(st.floats(-1e3, 1e3))
def test_part_of_a_score_keeps_its_sign_and_a_digit(value):
    text = effect_text(value, odds=False)
    found = float(text.replace("−", "-"))
    assert math.copysign(1, found) == math.copysign(1, value) or value == 0
    assert found == pytest.approx(value, abs=0.0051)
    assert found != 0 or value == 0


@given(st.floats(0, 1), st.floats(0, 1))
def test_different_chances_look_different_and_none_is_certain(one, other):
    texts = chance_texts(one, other)
    assert not {"0 %", "100 %"} & set(texts)
    if abs(one - other) > 1e-4 and all(0.001 < chance < 0.998 for chance in (one, other)):
        assert texts[0] != texts[1]


@pytest.mark.parametrize(
    ("label", "target", "text"),
    [
        (1, "sick", "sick = 1"), ("yes", "churn", "churn = yes"), (True, "churn", "churn = True"),
        ("M", None, "class M"),
        ("fraud", "Class", "fraud"), ("not paid", None, "not paid"), (0.5, None, "class 0.5"), ("", "y", "y = "),
    ],
)  # fmt: skip
def test_class_without_a_name_is_told_by_its_column(label, target, text):
    assert class_name(label, target) == text


def test_cells_read_as_words_and_numbers_do_not_run_together():
    assert column_text("Age", cell_text(61)) == "Age 61"
    assert column_text("V14", cell_text(-3.2)) == "V14 = -3.2"
    assert column_text("new customer", cell_text(True)) == "new customer True"
    assert cell_text("2024-02-29T00:00:00") == "2024-02-29"
    assert cell_text("2024-02-29T08:00:00") == "2024-02-29T08:00:00"
    assert re.fullmatch(r"x{27}…x{12}", cell_text("x" * 1000))
    assert "\n" not in cell_text("a\nb")
