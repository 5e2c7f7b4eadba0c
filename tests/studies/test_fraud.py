"""The fraud part of the demo: rankings, alerts and probabilities, as a table or as JSON."""

import json
import math
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from qmedoid import GeometricClassifier, NearestMedoidClassifier
from qmedoid.cli import demo as demo_module
from qmedoid.cli import fraud as fraud_cli
from qmedoid.cli.app import app
from qmedoid.estimators._refinement import first_stage_for, policy_for
from qmedoid.studies.datasets import Dataset, load_creditcard_sample
from qmedoid.studies.fraud import ALERT_BUDGET, METHODS, RareOutcome, compare_rare, recall_at
from qmedoid.studies.splits import paper_split

FIGURES = ["pr_auc", "recall", "log_loss"]


class Weakest:
    """Everything is as likely as everywhere else."""

    def fit(self, X, y):  # noqa: ARG002
        self.share = np.mean(y)
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.share, self.share], (len(X), 1))


def logistic(_seed):
    return make_pipeline(StandardScaler(), LogisticRegression())


def geometric(seed):
    return GeometricClassifier(
        method=NearestMedoidClassifier(max_passes=0, subset_sizes=(2, 2)), refine="never", random_state=seed
    )


@pytest.fixture
def quick_methods(monkeypatch):
    methods = {"qmedoid": geometric, "LogReg": logistic, "Weakest": lambda _seed: Weakest()}
    monkeypatch.setattr(fraud_cli, "METHODS", methods)
    monkeypatch.setattr(demo_module, "METHODS", dict.fromkeys(("qmedoid", "LogReg"), majority))
    return methods


def majority(data, split, _seed):
    return np.full(len(split.test), np.bincount(data.y[split.fit]).argmax())


def run(*arguments):
    result = CliRunner().invoke(app, ["demo", "--splits", "1", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_holds_every_method_with_its_figures_and_stage(quick_methods):
    outcomes = json.loads(run("--fraud-splits", "2", "--json"))["fraud"]
    assert [outcome["method"] for outcome in outcomes] == list(quick_methods)
    by_method = {outcome["method"]: outcome for outcome in outcomes}
    for outcome in outcomes:
        assert outcome["splits"] == 2
        assert outcome["alert_budget"] == ALERT_BUDGET
        assert outcome["prevalence"] == pytest.approx(492 / 14_707)
        assert all(outcome[f"{name}_se"] >= 0 for name in FIGURES)
    weakest = by_method["Weakest"]
    assert weakest["pr_auc"] == pytest.approx(weakest["prevalence"], abs=1e-3)
    assert weakest["recall"] == pytest.approx(ALERT_BUDGET, abs=1e-3)
    assert by_method["LogReg"]["pr_auc"] > 0.8
    assert by_method["LogReg"]["log_loss"] < weakest["log_loss"] / 2
    assert (by_method["qmedoid"]["stage"], by_method["qmedoid"]["by_circuit"]) == ("fusion", 0.0)
    assert (by_method["LogReg"]["stage"], by_method["LogReg"]["by_circuit"]) == (None, None)


@pytest.mark.usefixtures("quick_methods")
def test_the_table_names_the_budget_the_prevalence_and_who_is_ahead():
    text = " ".join(run("--fraud-splits", "1").split())
    assert "Credit-card fraud (sample): test rows of one stratified split" in text
    assert "among the 4 % most suspicious test rows" in text
    assert "3.3 % of the rows are frauds; in the whole table it is 0.17 %" in text
    assert "Records decided by the circuit: 0 % in 'qmedoid' (stage: fusion)." in text
    assert "the best plain baseline, LogReg, is ahead by" in text
    assert "nan" not in text


@pytest.mark.usefixtures("quick_methods")
def test_no_fraud_splits_leave_the_part_out():
    assert "fraud" not in run("--fraud-splits", "0")


def test_findings_do_not_hide_a_baseline_that_is_ahead():
    def outcome(method, score, by_circuit=None):
        return RareOutcome(
            "Frauds", method, 1, 0.03, 0.04, score, None, 0.5, None, 0.1, None, "variational", by_circuit
        )

    decided, ahead = fraud_cli.fraud_findings([outcome("qmedoid", 0.8, 0.25), outcome("A", 0.7), outcome("B", 0.85)])
    assert decided == "Records decided by the circuit: 25 % in 'qmedoid' (stage: variational)."
    assert ahead == "Frauds: the best plain baseline, B, is ahead by 0.050 in PR-AUC."


def test_the_demo_compares_both_stages_the_print_and_plain_baselines():
    made = {name: make(3) for name, make in METHODS.items()}
    ours = {name: model for name, model in made.items() if isinstance(model, GeometricClassifier)}
    assert {name: (model.method, model.refine) for name, model in ours.items() if "printed" not in name} == {
        "qmedoid": ("auto", "auto"),
        "qmedoid, without circuit": ("auto", "never"),
        "qmedoid, convex": ("convex", "auto"),
    }
    assert repr(ours["qmedoid, as printed"]) == repr(GeometricClassifier.paper(random_state=3))
    assert all(made[name].random_state == 3 for name in ours)
    assert set(made) - set(ours) == {"LogReg", "RandomForest"}


def test_the_fraud_sample_is_one_of_rare_events_and_large_enough_for_a_circuit():
    codes = load_creditcard_sample().y
    fitted = codes[paper_split(codes, 0).fit]
    assert first_stage_for(fitted) == "rare"
    assert policy_for(GeometricClassifier().refine, fitted, "rare") == "auto"
    assert policy_for(GeometricClassifier().refine, fitted, "convex") == "always"


# --- the comparison -------------------------------------------------------------------------------------------------


def test_an_outcome_is_the_mean_and_standard_error_over_the_same_splits():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.1).astype(np.intp)
    data = Dataset("toy", rng.standard_normal((400, 2)) + y[:, None], y, ("a", "b"), ("no", "yes"))
    (outcome,) = compare_rare(data, {"LogReg": logistic}, [0, 1, 2])
    expected = []
    for seed in (0, 1, 2):
        split = paper_split(y, seed)
        p = logistic(seed).fit(data.X[split.fit], y[split.fit]).predict_proba(data.X[split.test])[:, 1]
        truth = y[split.test]
        expected.append((average_precision_score(truth, p), recall_at(truth, p, ALERT_BUDGET), log_loss(truth, p)))
    for name, values in zip(FIGURES, np.transpose(expected), strict=True):
        assert getattr(outcome, name) == pytest.approx(values.mean())
        assert getattr(outcome, f"{name}_se") == pytest.approx(values.std(ddof=1) / math.sqrt(3))


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=2, max_size=5), st.floats(0.01, 1.0))
def test_recall_is_the_mean_over_all_orders_of_the_ties(rows, budget):
    codes, scores = np.array(rows).T
    codes[0] = 1
    alerts = int(budget * len(codes))
    orders = [order for order in permutations(range(len(codes))) if (np.diff(scores[list(order)]) <= 0).all()]
    found = np.mean([codes[list(order[:alerts])].sum() for order in orders]) / codes.sum()
    assert recall_at(codes, scores.astype(float), budget) == pytest.approx(found)


def test_recall_of_a_perfect_a_blind_and_a_reversed_ranking():
    codes = np.repeat([1, 0], [30, 970])
    assert recall_at(codes, codes.astype(float), 0.04) == 1.0
    assert recall_at(codes, codes.astype(float), 0.015) == 0.5
    assert recall_at(codes, np.zeros(1000), 0.04) == pytest.approx(0.04)
    assert recall_at(codes, -codes.astype(float), 0.04) == 0.0
    assert recall_at(codes, codes.astype(float), 0.0005) == 0.0
