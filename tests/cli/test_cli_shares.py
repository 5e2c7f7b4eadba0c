"""Shares on the command line: numbers and percentages mean the same, and nothing else is taken for one."""

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.cli.options import share


@given(st.integers(0, 10_000))
def test_a_percentage_is_a_hundredth_of_its_number(hundredths):
    assert share(f"{hundredths / 100}%") == pytest.approx(share(f"{hundredths / 10_000}"), abs=1e-15)


def test_plain_percentages_are_the_same_numbers():
    assert [share(f"{percent} %") for percent in range(101)] == [percent / 100 for percent in range(101)]


@pytest.mark.parametrize("text", ["5", "-0.1", "101%", "nan", "inf", "five", "", "%", "5%%"])
def test_what_is_no_share_is_refused_with_both_spellings(text):
    with pytest.raises(typer.BadParameter, match=r"such as 0\.05, or a percentage, such as 5%"):
        share(text)


def test_a_whole_number_is_not_guessed_to_be_a_percentage_but_the_error_shows_how_to_write_it():
    with pytest.raises(typer.BadParameter, match="5 percent is 5%"):
        share("5")
    with pytest.raises(typer.BadParameter, match=r"Got '101%' instead\.$"):
        share("101%")


def test_fit_and_score_take_percentages(cli, two, tmp_path):
    fit = ("fit", two.file, "--target", "y", "--method", "evidence", "--json", "-o", tmp_path / "m")
    # The same share in both spellings is the same split and the same rule.
    spelled = [cli.ok(*fit, "--alert-rate", rate, "--test", test).json for rate, test in (("5%", "20%"), (0.05, 0.2))]
    for key in ("operating", "held_out", "training_rows"):
        assert spelled[0][key] == spelled[1][key]
    scores = [
        cli.ok("score", tmp_path / "m", two.file, "-o", tmp_path / "s.csv", "--prevalence", text, "--json").json
        for text in ("10%", "0.1")
    ]
    assert scores[0]["prevalence"] == scores[1]["prevalence"]
    assert cli(*fit, "--alert-rate", "5").code == 2
    assert "25%" in cli(*fit, "--test", "120%").json["error"]
