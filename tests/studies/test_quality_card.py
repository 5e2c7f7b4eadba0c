"""The part of the study on the frauds: resampled figures, comparisons, and what is judged."""

import numpy as np
import pytest
from benchmarks.quality import card_tables
from benchmarks.quality.card import METHODS as PAYMENT_METHODS
from benchmarks.quality.card import Payments, Shifted, judge_payments, recall_at_alerts, tune_by_pr_auc
from benchmarks.quality.card_ours import log_odds_of
from benchmarks.quality.card_tables import Ranking
from benchmarks.quality.ours import OURS
from benchmarks.quality.rivals import FOLDS
from benchmarks.studies.cells import Cell
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold

from qmedoid import MedoidClassifier


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_figures_of_resamples_are_those_of_the_rows_they_repeat(seed):
    rng = np.random.default_rng(seed)
    y, scores = (rng.random(300) < 0.1).astype(int), np.round(rng.normal(size=300), 1)
    y[0] = 1
    times = rng.integers(0, 3, size=300)
    times[0] = 1
    pr_auc, recall = Ranking(y, scores).figures(times.astype(float))
    y_all, scores_all = np.repeat(y, times), np.repeat(scores, times)
    assert pr_auc == pytest.approx(average_precision_score(y_all, scores_all))
    assert recall == pytest.approx(recall_at_alerts(y_all, scores_all))


def made_up_payments(_, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(3000) < 0.01).astype(int)
    return Payments(np.zeros((3000, 1)), y, np.zeros((3000, 1)), y)


def made_up_results(gains):
    """Results of ours and of two others on two splits, where scores know the class by so much."""
    found = {}
    for seed in (0, 1):
        data, rng = made_up_payments("random", seed), np.random.default_rng(seed + 10)
        for method, gain in gains.items():
            log_odds = gain * data.y_test + rng.normal(size=3000) - 4
            result = judge_payments(data, log_odds) | {"fit_s": 1.0, "rows_per_s": 1e6}
            found[Cell("card", "creditcard", "random", seed, method)] = result
    return found


def test_payments_are_compared_split_by_split_and_over_the_splits(monkeypatch):
    monkeypatch.setattr(card_tables, "make_payments", made_up_payments)
    monkeypatch.setattr(card_tables, "RESAMPLES", 50)
    found = made_up_results({"LightGBM, raw columns": 1.0, OURS: 3.0, "ours, worse": 2.9})
    lines = card_tables.paired_lines("random", found)
    values = {(cell.method, cell.seed): result["pr_auc"] for cell, result in found.items()}
    gaps = [values[OURS, seed] - values["LightGBM, raw columns", seed] for seed in (0, 1)]
    own = [line for line in lines if (line["rival"], line["figure"]) == ("LightGBM, raw columns", "PR-AUC")]
    assert [line["seed"] for line in own] == ["0", "1", "mean"]
    assert [line["ours − theirs"] for line in own] == pytest.approx([*gaps, np.mean(gaps)])
    assert own[-1]["± over splits (Nadeau–Bengio)"] == pytest.approx(np.std(gaps, ddof=1) * np.sqrt(1 / 2 + 1 / 3))
    assert {line["verdict"] for line in own} == {"ours better"}
    assert all(line["low"] < line["ours − theirs"] < line["high"] for line in own)
    goals = {line["goal"]: line["met"] for line in card_tables.goal_lines("random", found, lines)}
    assert goals["PR-AUC against LightGBM"] == "yes"
    worse = made_up_results({"LightGBM, raw columns": 3.0, OURS: 1.0})
    goals = card_tables.goal_lines("random", worse, card_tables.paired_lines("random", worse))
    assert {line["goal"]: line["met"] for line in goals}["PR-AUC against LightGBM"] == "no"


def test_right_log_odds_follow_a_shift_of_prevalence():
    rng = np.random.default_rng(6)
    log_odds = rng.normal(-7, 2, size=400_000)
    y = (rng.random(len(log_odds)) < 1 / (1 + np.exp(-log_odds))).astype(int)
    # The fit rows only say how frequent the second class was: as among the test rows.
    found = Shifted.of(Payments(log_odds[:, None], y, log_odds[:, None], y), log_odds)
    assert found.told == pytest.approx(1.0, abs=0.03)
    assert found.estimated == pytest.approx(1.0, abs=0.05)
    assert found.unaware < 0.5


def test_settings_for_rare_classes_are_chosen_by_pr_auc(two_classes):
    family, X, y = PAYMENT_METHODS["LogReg, raw columns"], two_classes.one_hot.fit, two_classes.y
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))

    def held_out(setting, inner, outer):
        fitted = family.make(0, **setting).fit(X[inner], y[inner])
        return average_precision_score(y[outer], fitted.decision_function(X[outer]))

    by_hand = [np.mean([held_out(setting, *fold) for fold in folds]) for setting in family.settings]
    assert tune_by_pr_auc(family, X, y, 0) == family.settings[int(np.argmax(by_hand))]


def test_judged_log_odds_are_those_of_the_probabilities_whatever_the_threshold():
    X, y = load_breast_cancer(return_X_y=True)
    fitted = MedoidClassifier(operating_point={"alert_rate": 0.1}, positive=1, random_state=0).fit(X[::3], y[::3])
    found = fitted.predict_proba(X)
    np.testing.assert_allclose(log_odds_of(fitted, X), np.log(found[:, 1] / found[:, 0]), atol=1e-6)
