"""What the next table will show: as far apart as tables are, and the model's rate where there are very many rows."""

import numpy as np
import pytest

from qmedoid.exceptions import ParameterError
from qmedoid.metrics.intervals import next_table, share_interval
from qmedoid.model.operating_point import Counts, OperatingSummary

COUNTS = (40.0, 20.0, 10.0, 430.0)
FIGURES = ("alert_rate", "precision", "recall", "f1", "accuracy", "prevalence")


def width(figure):
    return figure.high - figure.low


def figures_of(tp, fp, fn, tn):
    n = tp + fp + fn + tn
    return {
        "alert_rate": (tp + fp) / n,
        "precision": tp / (tp + fp),
        "recall": tp / (tp + fn),
        "f1": 2 * tp / (2 * tp + fp + fn),
    }


def test_next_tables_of_one_model_lie_inside_19_times_in_20():
    """Counts of held-out rows and of a next table are drawn from the same shares, 400 times."""
    rng, inside = np.random.default_rng(0), {name: [] for name in ("alert_rate", "precision", "recall", "f1")}
    for _ in range(400):
        shares = rng.dirichlet([4.0, 2.0, 2.0, 20.0])
        held_out, following = rng.multinomial(300, shares), rng.multinomial(300, shares)
        forecast = next_table(tuple(held_out.tolist()), 300)
        if following[0] and held_out[0]:
            for name, value in figures_of(*following).items():
                inside[name].append(forecast[name].low <= value <= forecast[name].high)
    for name, found in inside.items():
        assert 0.92 < np.mean(found) < 0.985, name


@pytest.mark.parametrize("name", FIGURES)
def test_more_next_rows_are_nearer_together_and_never_nearer_than_the_rate(name):
    few, many, most = (next_table(COUNTS, rows)[name] for rows in (50, 500, 10_000_000))
    assert width(few) > width(many) > width(most)
    assert few.low <= most.low <= most.value <= most.high <= few.high


def test_very_many_next_rows_show_the_rate_of_the_model():
    found = next_table(COUNTS, 10_000_000)["recall"]
    rate = share_interval(40, 50)
    assert found.low == pytest.approx(rate.low, abs=0.02)
    assert found.high == pytest.approx(rate.high, abs=0.02)


def test_a_cut_that_was_chosen_on_the_rows_is_less_sure_the_farther_out_it_lies():
    widths = [width(next_table(COUNTS, 500, cut)["alert_rate"]) for cut in (None, 0.0, 3.0, -6.0)]
    assert widths == sorted(widths)
    assert len(set(widths)) == 4


def test_figures_that_are_not_defined_are_left_out():
    assert "precision" not in next_table((0.0, 0.0, 5.0, 95.0), 100)
    assert next_table((0.0, 0.0, 5.0, 95.0), 100)["recall"].low == 0.0
    assert "cost" not in next_table(COUNTS, 100)


def test_cost_counts_missed_positives_by_their_price():
    found = next_table(COUNTS, 500, None, None, 7.0)["cost"]
    assert found.value == pytest.approx((7 * 10 + 20) / 500)
    assert found.low < found.value < found.high


def test_another_prevalence_changes_precision_and_keeps_recall():
    plain, rarer = next_table(COUNTS, 500), next_table(COUNTS, 500, None, 0.01)
    assert rarer["recall"].value == pytest.approx(plain["recall"].value)
    assert rarer["precision"].value < plain["precision"].value
    assert rarer["prevalence"].value == pytest.approx(0.01)


def test_forecast_is_for_as_many_rows_as_were_held_out_unless_others_are_asked_for():
    point = OperatingSummary("likeliest", None, 0.0, Counts(40, 20, 10, 430))
    assert point.forecast() == point.forecast(500)
    assert width(point.forecast(50)["recall"]) > width(point.forecast()["recall"])
    assert OperatingSummary("likeliest", None, 0.0).forecast() == {}
    half = OperatingSummary("likeliest", None, 0.0, Counts(40, 20, 10, 430), draws_per_row=0.5)
    assert half.forecast() == next_table((20.0, 10.0, 5.0, 215.0), 250, 0.0)
    document = point.as_dict(50)
    assert document["forecast_rows"] == 50
    assert document["forecast"]["recall"] == point.forecast(50)["recall"].as_dict()
    assert "cost" in OperatingSummary("cost", 4.0, 0.0, Counts(40, 20, 10, 430)).forecast()


@pytest.mark.parametrize("rows", [0, -3, 1.5, True, "100"])
def test_rows_of_a_forecast_are_a_whole_number_from_1_up(rows):
    with pytest.raises(ParameterError, match="The 'rows' parameter must be None or an int >= 1"):
        OperatingSummary("likeliest", None, 0.0, Counts(40, 20, 10, 430)).forecast(rows)
