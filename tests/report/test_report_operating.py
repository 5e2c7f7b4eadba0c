"""Stops of the slider: every text is what ``qmedoid evaluate`` prints at that threshold, and every count its count."""

import io
import math
import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import mixed_table, model_of, write_csv

from qmedoid.cli import main
from qmedoid.metrics.classification import roc_auc
from qmedoid.metrics.texts import figure_text, interval_text
from qmedoid.metrics.thresholds import counts_at
from qmedoid.model.decision import Decision
from qmedoid.model.operating_point import Counts, OperatingSummary, curve_rows
from qmedoid.model.storage.model_file import save_model
from qmedoid.model.training_summary import HeldOutCurve
from qmedoid.report.evaluation import ONE_BY_ONE, operating, threshold_text
from qmedoid.report.reading import look_at_file
from qmedoid.report.summary import ReportSettings, summarize
from qmedoid.tables.evaluating import labeled_report

TWO = Decision(("no", "yes"))


def rows_of(n=400, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.3
    log_odds = rng.normal(size=n) + 1.5 * positive
    return positive, log_odds if decimals is None else log_odds.round(decimals)


def printed(*arguments):
    """What a command prints on standard output."""
    kept = sys.argv, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = ["qmedoid", *map(str, arguments)], io.StringIO(), io.StringIO()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "200")  # wide enough that no cell is wrapped
            with pytest.raises(SystemExit) as stop:
                main()
        text, said = sys.stdout.getvalue(), sys.stderr.getvalue()
    finally:
        sys.argv, sys.stdout, sys.stderr = kept
    assert not stop.value.code, said
    return text


def cells(text):
    """Cells of the lines of printed grids, by the first of each line."""
    rows = [[cell.strip() for cell in re.split("[│┃]", line)[1:-1]] for line in text.splitlines() if "│" in line]
    return {row[0]: row[1:] for row in rows}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A model of two classes, a table that it has not seen, and its summary."""
    folder = tmp_path_factory.mktemp("stops")
    model = model_of(mixed_table(160, seed=0))
    save_model(model, folder / "model.qmedoid")
    file = write_csv(mixed_table(120, seed=1), folder / "new.csv")
    summary = summarize(model, look_at_file(model, str(file)), settings=ReportSettings(cost=3.0))
    return model, folder / "model.qmedoid", file, summary


def test_every_stop_prints_what_evaluate_prints(case):
    _, path, file, summary = case
    point = summary["operating"]
    stops = point["stops"]
    places = sorted({0, len(stops["alerts"]) - 1, point["start"], *range(0, len(stops["alerts"]), 9)})
    for place in places:
        found = cells(printed("evaluate", path, file, *stops["command"][place].split()))
        texts = {name: values[place] for name, values in stops["texts"].items()}
        named = {"alert rate": "alert_rate", "precision of 'yes'": "precision", "recall of 'yes'": "recall"}
        for name, key in {**named, "accuracy": "accuracy"}.items():  # followed by its interval
            assert found[name][0].split(" (")[0] == texts[key]


def test_intervals_of_a_stop_are_those_of_a_budget(case):
    _, path, file, summary = case
    stops = summary["operating"]["stops"]
    for alerts in (1, 10, 50):
        place = stops["alerts"].index(alerts)
        found = cells(printed("evaluate", path, file, "--budgets", alerts))[str(alerts)]
        assert found[-2:] == [stops["texts"]["precision_interval"][place], stops["texts"]["recall_interval"][place]]


def test_every_threshold_reproduces_its_counts(case):
    model, _, file, summary = case
    looked = look_at_file(model, str(file))
    stops = summary["operating"]["stops"]
    positive, log_odds = looked.codes == 1, looked.decided.scores[:, 1] - looked.decided.scores[:, 0]
    for place, text in enumerate(stops["threshold_text"]):
        decision = model.at_operating_point(float(text)).decision
        counts = counts_at(positive, log_odds, decision.cut)
        assert counts == {name: stops[name][place] for name in ("tp", "fp", "fn", "tn")}
        codes, _, margins = decision.decide(looked.decided.scores)
        moved = replace(model, decision=decision)
        report = labeled_report(moved, looked.codes, looked.decided._replace(codes=codes, margins=margins))
        texts = {name: values[place] for name, values in stops["texts"].items()}
        for key in ("alert_rate", "precision", "recall", "f1", "accuracy"):
            assert figure_text(report[key]) == texts[key]
        assert texts["cost"] == f"{3 * counts['fn'] + counts['fp']:,}"


def test_stops_have_both_ends_and_every_number_of_alerts(case):
    *_, summary = case
    point = summary["operating"]
    alerts = point["stops"]["alerts"]
    assert alerts[0] == 0
    assert alerts[-1] == point["rows"]
    assert alerts == sorted(set(alerts))
    assert point["stops"]["texts"]["precision"][0] == "–"
    assert point["stops"]["texts"]["recall"][-1] == "1.0000"


def test_the_start_is_the_present_cut(case):
    model, _, file, summary = case
    looked = look_at_file(model, str(file))
    point = summary["operating"]
    assert point["stops"]["alerts"][point["start"]] == int((looked.decided.codes == 1).sum())
    assert point["stops"]["threshold_text"][point["start"]] == "0.5"


@given(st.lists(st.integers(-6, 6), min_size=2, max_size=40), st.data())
def test_equal_scores_are_one_stop(scores, data):
    log_odds = np.array(scores, dtype=np.float64) / 2
    positive = np.array(data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores))))
    found = operating(positive, log_odds, TWO)
    stops = found["stops"]
    if positive.any() and not positive.all():  # rows of one score are one step of a curve
        assert len(found["curves"]["roc"]) == 1 + len(set(scores))
    possible = {0, len(scores), *(int((log_odds > cut).sum()) for cut in log_odds), int((log_odds > 0).sum())}
    assert {*stops["alerts"]} == possible
    for place, chance in enumerate(stops["threshold"]):
        counts = counts_at(positive, log_odds, math.log(chance) - math.log1p(-chance))
        assert counts == {name: stops[name][place] for name in ("tp", "fp", "fn", "tn")}


@settings(max_examples=300)
@given(st.floats(-40, 40), st.floats(-40, 40))
def test_threshold_text_is_the_shortest_probability_between(a, b):
    low, high = sorted((a, b))
    text = threshold_text(low, high)
    if text is None:
        # No float separates them: next to 1 probabilities are coarse.
        assert high - low < 1e-6 or low > 36
        return
    chance = float(text)
    assert low <= math.log(chance) - math.log1p(-chance) < high


def test_threshold_text_takes_a_given_probability_and_refuses_what_no_float_is():
    assert threshold_text(-1.0, 1.0) == "0.5"
    assert threshold_text(-1.0, 1.0, 0.3) == "0.3"
    assert threshold_text(-0.1, 0.1, 0.3) == "0.5"
    assert threshold_text(5.0, 9.0, 0.9993665162635321) == "0.999367"
    assert threshold_text(7.3636, 7.36365, 0.9993665162635321) == "0.9993665"
    assert threshold_text(-9.0, 9.0, 1 / 3) == "0.3333"
    assert threshold_text(800.0, 900.0) is None


def test_stops_go_one_by_one_and_then_on_a_log_scale():
    rng = np.random.default_rng(0)
    few = np.array(operating(rng.random(20_000) < 0.1, rng.normal(size=20_000), TWO)["stops"]["alerts"])
    assert few[: ONE_BY_ONE + 1].tolist() == list(range(ONE_BY_ONE + 1))
    assert few[-1] == 20_000
    assert len(few) < ONE_BY_ONE + 250
    steps = few[ONE_BY_ONE + 1 :] / few[ONE_BY_ONE:-1]
    assert steps.max() < 1.05


def test_stops_of_a_compressed_curve_are_exact_just_below_its_thresholds():
    positive, log_odds = rows_of(20_000)
    curve = HeldOutCurve.of(positive, log_odds, most=64)
    point = operating(*curve_rows(curve), TWO, is_compressed=True, is_held_out=True)
    stops = point["stops"]
    off = []
    for place, chance in enumerate(stops["threshold"]):
        counts = counts_at(positive, log_odds, math.log(chance) - math.log1p(-chance))
        off.append(abs(counts["tp"] + counts["fp"] - stops["alerts"][place]))
    # The cut lies within 1/64 of the way to the next threshold, and so do the rows that it adds.
    assert max(off) < 20_000 / 64 / 8


def test_held_out_intervals_count_draws_and_expected_prevalence():
    positive, log_odds = rows_of()
    curve = HeldOutCurve.of(positive, log_odds)
    expected = OperatingSummary("likeliest", None, 0.0, Counts(1, 1, 1, 1), draws_per_row=0.25)
    few = operating(*curve_rows(curve), replace(TWO, operating=expected), is_held_out=True)
    many = operating(*curve_rows(curve), TWO, is_held_out=True)
    place = many["stops"]["alerts"].index(100)
    tp, fp, fn, tn = (many["stops"][name][place] for name in ("tp", "fp", "fn", "tn"))
    wide = OperatingSummary("likeliest", None, 0.0, Counts(tp, fp, fn, tn), draws_per_row=0.25)
    assert few["stops"]["texts"]["recall_interval"][place] == interval_text(wide.recall)
    assert many["stops"]["texts"]["recall_interval"][place] != interval_text(wide.recall)


def test_curves_end_where_they_must_and_keep_their_area():
    positive, log_odds = rows_of(3000)
    found = operating(positive, log_odds, TWO)["curves"]
    roc = np.array(found["roc"])
    assert len(roc) <= 200
    assert roc[0].tolist() == [0.0, 0.0]
    assert roc[-1].tolist() == [1.0, 1.0]
    assert np.trapezoid(roc[:, 1], roc[:, 0]) == pytest.approx(roc_auc(positive, log_odds), abs=0.01)
    assert found["pr"][-1] == [1.0, pytest.approx(positive.mean(), abs=1e-5)]
    assert found["recall_by_alert_rate"][-1] == [1.0, 1.0]
