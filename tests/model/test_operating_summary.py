"""Operating summaries: figures from counts, another prevalence by simulation, and drift."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.metrics.intervals import share_interval
from qmedoid.metrics.thresholds import counts_at
from qmedoid.model.operating_point import (
    DRIFT_WIDTH,
    KEPT_PROBABILITIES,
    RULES,
    Counts,
    OperatingSummary,
    probability,
)

counts = st.builds(Counts, *[st.integers(0, 400)] * 4).filter(lambda drawn: sum(drawn) > 0)


@given(counts, st.floats(-30, 30))
@settings(max_examples=40, deadline=None)
def test_figures_are_those_of_the_counts(drawn, cut):
    summary = OperatingSummary("alert_rate", 0.1, cut, drawn)
    tp, fp, fn, tn = drawn
    assert summary.precision == (share_interval(tp, tp + fp) if tp + fp else None)
    assert summary.recall == (share_interval(tp, tp + fn) if tp + fn else None)
    assert summary.alert_rate == share_interval(tp + fp, tp + fp + fn + tn)
    assert np.log(summary.threshold / (1 - summary.threshold)) == pytest.approx(cut, abs=1e-2)
    assert json.loads(json.dumps(summary.as_dict())) == summary.as_dict()


@given(counts.filter(lambda c: c.tp + c.fn > 0 and c.fp + c.tn > 0))
@settings(max_examples=30, deadline=None)
def test_the_prevalence_of_the_held_out_rows_changes_no_figure(drawn):
    plain = OperatingSummary("min_recall", 0.9, 1.0, drawn)
    prevalence = (drawn.tp + drawn.fn) / sum(drawn)
    same = plain.at_prevalence(prevalence, 0.0)
    assert same.log_odds == plain.log_odds
    for name in ("alert_rate", "precision", "recall"):
        figure, before = getattr(same, name), getattr(plain, name)
        assert (figure is None) == (before is None)  # no precision without alerts
        if before is not None:
            assert figure.value == pytest.approx(before.value, abs=1e-12)
            assert figure.low <= figure.value <= figure.high
    assert same.at_prevalence(0.5, 2.0).log_odds == plain.log_odds + 2.0


def test_rules_about_a_probability_keep_their_cut():
    for rule in RULES:
        summary = OperatingSummary(rule, 0.3, -1.0, Counts(5, 5, 5, 85))
        shifted = summary.at_prevalence(0.3, 2.0)
        assert (shifted.log_odds == -1.0) == (rule in KEPT_PROBABILITIES)
        assert (shifted.counts is None) == (rule in KEPT_PROBABILITIES)


def test_another_prevalence_by_simulation():
    rng = np.random.default_rng(0)

    def drawn(n, prevalence):
        positive = rng.random(n) < prevalence
        return positive, rng.normal(size=n) + 2 * positive

    held_out, new = (Counts(**counts_at(*drawn(200_000, share), 1.5)) for share in (0.3, 0.006))
    expected, alerts = OperatingSummary("f1", None, 1.5, held_out).at_prevalence(0.006, -4.0), new.tp + new.fp
    assert expected.alert_rate.value == pytest.approx(alerts / 200_000, rel=0.1)
    assert expected.precision.value == pytest.approx(new.tp / alerts, rel=0.1)
    assert expected.recall.value == pytest.approx(new.tp / (new.tp + new.fn), rel=0.1)
    assert expected.drift(alerts, 200_000).direction == "none"
    assert OperatingSummary("f1", None, 1.5, held_out).drift(alerts, 200_000).direction == "down"


@pytest.mark.parametrize("prevalence", [None, 0.005, 0.4])
def test_drift_is_hardly_ever_seen_where_there_is_none(prevalence):
    rng = np.random.default_rng(1)
    beyond = []
    for _ in range(500):
        tp, fp = rng.binomial(100, 0.8), rng.binomial(900, 0.02)
        summary = OperatingSummary("alert_rate", 0.1, 0.0, Counts(tp, fp, 100 - tp, 900 - fp), prevalence)
        positive = rng.binomial(2000, 0.1 if prevalence is None else prevalence)
        if prevalence is None:
            # Held-out rows are draws as well: how many are positive is not fixed.
            of_held_out = rng.binomial(1000, 0.1)
            tp, fp = rng.binomial(of_held_out, 0.8), rng.binomial(1000 - of_held_out, 0.02)
            summary = OperatingSummary("f1", None, 0.0, Counts(tp, fp, of_held_out - tp, 1000 - of_held_out - fp))
        drift = summary.drift(rng.binomial(positive, 0.8) + rng.binomial(2000 - positive, 0.02), 2000)
        beyond.append(abs(drift.standard_errors) > DRIFT_WIDTH)
        assert (drift.direction == "none") == (not beyond[-1])
    assert np.mean(beyond) < 0.015


def test_drift_has_a_direction_and_needs_something_to_expect():
    summary = OperatingSummary("alert_rate", 0.1, 0.0, Counts(50, 50, 10, 890))
    assert summary.drift(300, 1000).direction == "up"
    assert summary.drift(10, 1000).direction == "down"
    assert summary.drift(105, 1000).direction == "none"
    assert summary.drift(1, 1).direction == "none"
    up = summary.drift(300, 1000)
    assert (up.alerts, up.rows, up.alert_rate, up.expected) == (300, 1000, 0.3, 0.1)
    assert up.low < 0.1 < up.high < 0.3
    assert summary.drift(0, 0) is None
    assert OperatingSummary("likeliest", None, 0.0).drift(1, 10) is None


def test_extreme_log_odds_have_a_probability():
    assert probability(-1000.0) == 0.0
    assert probability(1000.0) == 1.0
    assert probability(0.0) == 0.5


def test_shares_of_nothing_are_not_known():
    silent = OperatingSummary("likeliest", None, 0.0, Counts(tp=0, fp=0, fn=7, tn=90))
    assert silent.precision is None
    assert silent.recall == share_interval(0, 7)
    assert silent.as_dict()["precision"] is None
    moved = OperatingSummary("alert_rate", 0.1, 0.0, Counts(tp=0, fp=0, fn=7, tn=90)).at_prevalence(0.2, 0.5)
    assert moved.precision is None
    assert OperatingSummary("likeliest", None, 0.0, Counts(tp=0, fp=3, fn=0, tn=90)).recall is None
