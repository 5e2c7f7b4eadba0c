"""`qmedoid demo --compare`: every method on every data set, as tables or as one JSON document."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, log_loss
from tests.printed_json import check_printed
from typer.testing import CliRunner

from qmedoid import NearestMedoidClassifier, __version__
from qmedoid.cli import studies as commands
from qmedoid.cli.app import app
from qmedoid.estimators._methods import auto_method
from qmedoid.methods.registry import estimator_class
from qmedoid.metrics.classification import confusion_matrix
from qmedoid.studies import baselines, ours, plan
from qmedoid.studies.datasets import Dataset, load_creditcard_sample
from qmedoid.studies.metrics import ALERT_BUDGET, recall_at
from qmedoid.studies.paper import PAPER
from qmedoid.studies.plan import NEAREST, SMALL_METHODS
from qmedoid.studies.results import Spread, StudyResults
from qmedoid.studies.splits import Cell, StudyMethod, paper_split

DATA = ["Heart disease", "Breast cancer", "Wine"]
RARE_METRICS = ["pr_auc", "recall", "log_loss"]


def decided(data, split, decisions):
    classes, codes = np.unique(data.y, return_inverse=True)
    matrix = confusion_matrix(codes[split.test], np.searchsorted(classes, decisions), len(classes))
    return {"test": {"confusion": matrix.astype(int).tolist()}}


def nearest_mean(data, cell):
    """A method that is as fast as it is plain."""
    split, classes = paper_split(data.y, cell.seed), np.unique(data.y)
    scale = data.X[split.fit].std(axis=0)
    means = np.array([data.X[split.fit][data.y[split.fit] == c].mean(axis=0) for c in classes])
    return decided(data, split, classes[(((data.X[split.test][:, None] - means) / scale) ** 2).sum(axis=2).argmin(1)])


def majority(data, cell):
    split = paper_split(data.y, cell.seed)
    return decided(data, split, np.full(len(split.test), np.bincount(data.y[split.fit]).argmax()))


def small_search(data, cell):
    """Ours without a search and without a circuit."""
    nearest = NearestMedoidClassifier(max_passes=0, subset_sizes=(2, 2))
    return ours.run_front_rare(data, cell, method=nearest, refine="never")


class Weakest:
    """Everything is as likely as everywhere else."""

    def fit(self, X, y):  # noqa: ARG002
        self.share = np.mean(y)
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.share, self.share], (len(X), 1))


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("QMEDOID_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def quick_methods(monkeypatch):
    """The demo with methods that take no time; ours have tests of their own."""
    monkeypatch.setitem(baselines.BASELINES, "Weakest", lambda _seed: Weakest())
    rare = {
        "qmedoid": StudyMethod(small_search),
        **{name: StudyMethod(baselines.run_rare, {"name": name}) for name in ("LogReg", "Weakest")},
    }
    small = {"default": StudyMethod(nearest_mean), "printed": StudyMethod(majority), "LogReg": StudyMethod(majority)}
    names = {"qmedoid": "default", "qmedoid, as printed": "printed", "LogReg": "LogReg"}
    monkeypatch.setattr(plan, "DEMO_SMALL", names)
    monkeypatch.setattr(plan, "DEMO_RARE", rare)
    monkeypatch.setattr(plan, "STUDY", replace(plan.STUDY, methods={"small": small, "rare": rare}))
    return names, rare


def run(*arguments, fraud_splits=0):
    result = CliRunner().invoke(app, ["demo", "--compare", "--fraud-splits", str(fraud_splits), *arguments])
    assert result.exit_code == 0, result.output
    check_printed(["demo", *arguments], result.stdout)
    return result.stdout


def test_json_holds_every_method_on_every_data_set(quick_methods):
    parts = json.loads(run("--splits", "2", "--json"))
    assert set(parts) == {"small", "fraud", "notes"}
    assert parts["fraud"] == []
    outcomes = parts["small"]
    assert [(o["data"], o["method"]) for o in outcomes] == [(d, m) for d in DATA for m in quick_methods[0]]
    for outcome in outcomes:
        assert set(outcome) == {
            "data", "method", "splits", "accuracy", "accuracy_se", "macro_f1", "macro_f1_se"
        }  # fmt: skip
        assert outcome["splits"] == 2
        assert 0 < outcome["macro_f1"] <= outcome["accuracy"] + 0.1 <= 1.1
    wine = {o["method"]: o for o in outcomes if o["data"] == "Wine"}
    assert wine["qmedoid"]["accuracy"] > 0.9
    assert wine["LogReg"]["accuracy"] == pytest.approx(18 / 45)  # 71 of 178 wines are of the second kind


@pytest.mark.usefixtures("quick_methods")
def test_one_split_has_no_standard_error_and_is_still_json():
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    outcomes = json.loads(run("--splits", "1", "--json"), parse_constant=refuse)["small"]
    assert {outcome["splits"] for outcome in outcomes} == {1}
    assert {outcome["accuracy_se"] for outcome in outcomes} == {None}
    text = run("--splits", "1")
    assert "Wine: test rows of one stratified split" in text
    assert "nan" not in text
    assert "±" not in text


@pytest.mark.usefixtures("quick_methods")
def test_the_seed_moves_the_splits():
    first, again, other = (run("--splits", "1", "--json", "--seed", seed) for seed in ("0", "0", "5"))
    assert first == again
    assert first != other


def test_a_second_run_runs_nothing_and_prints_the_same(quick_methods, monkeypatch, empty_cache):
    first = run("--splits", "2")
    assert len(list(empty_cache.rglob("*.json.gz"))) == 3 * 2 * len(quick_methods[0])
    monkeypatch.setattr("qmedoid.studies.runner._run_and_keep", None)
    assert run("--splits", "2") == first


@pytest.mark.usefixtures("quick_methods")
def test_a_cache_that_takes_no_files_costs_a_note(monkeypatch, tmp_path):
    first = run("--splits", "1")
    (tmp_path / "file").write_text("mine")
    monkeypatch.setenv("QMEDOID_CACHE", str(tmp_path / "file"))
    result = CliRunner().invoke(app, ["demo", "--compare", "--fraud-splits", "0", "--splits", "1"])
    assert result.exit_code == 0
    assert result.stdout == first
    assert "cannot be written" in result.stderr
    assert "not kept" in result.stderr


@pytest.mark.usefixtures("quick_methods")
def test_tables_show_the_figures_of_the_paper_and_say_who_is_ahead():
    text = run("--splits", "2")
    for name in DATA:
        assert f"{name}: test rows of 2 stratified splits" in text
        assert f"{PAPER[name]['Fusion'].accuracy:.4f}" in text
        assert f"{PAPER[name]['LogReg'].macro_f1:.4f}" in text
        assert f"{name}: the best plain baseline, LogReg, is behind by" in text


def outcome(method, score, by_circuit=None):
    about = {"chosen_method": "rare", "by_circuit": by_circuit}
    return plan.Outcome("Wine", method, {"macro_f1": Spread(np.array([score]))}, about)


def test_findings_do_not_hide_a_baseline_that_is_ahead():
    outcomes = [outcome("qmedoid", 0.9, 0.25), outcome("A", 0.8), outcome("B", 0.95)]
    sentences = commands.findings(outcomes, "macro_f1", "macro-F1")
    assert list(sentences) == ["Wine: the best plain baseline, B, is ahead by 0.050 in macro-F1."]
    for score in (0.9, 0.9004, 0.8996):
        sentences = commands.findings([outcome("qmedoid", 0.9), outcome("A", score)], "macro_f1", "macro-F1")
        assert list(sentences) == ["Wine: the best plain baseline, A, is level with ours in macro-F1."]
    (decided_by,) = commands.circuit_findings(outcomes)
    assert decided_by == "Records decided by the circuit: 25 % in 'qmedoid' (method: rare)."


def test_the_demo_compares_cells_of_the_paper_s_experiments_with_its_baselines():
    ours_first = {"qmedoid": "default", "qmedoid, nearest": NEAREST, "qmedoid, as printed": "printed"}
    assert dict(list(plan.DEMO_SMALL.items())[:3]) == ours_first
    assert set(plan.DEMO_SMALL) == {*ours_first, *(set(PAPER["Wine"]) - {"Fusion"})}
    assert set(plan.DEMO_SMALL.values()) <= set(SMALL_METHODS)
    assert set(plan.DEMO_RARE) >= {*ours_first, "qmedoid, without circuit", "LogReg"}


def test_zero_splits_are_refused():
    result = CliRunner().invoke(app, ["demo", "--compare", "--splits", "0"])
    assert result.exit_code == 2


def test_the_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout.splitlines()[0] == f"qmedoid {__version__}"


def test_an_outcome_is_the_mean_and_standard_error_over_the_splits():
    numbers = [0.2, 0.5, 0.9, 0.4]
    cells = {
        Cell("rare", "creditcard-sample", "random", seed, name): {"test": dict.fromkeys(RARE_METRICS, x + place)}
        for place, name in enumerate(plan.DEMO_RARE)
        for seed, x in enumerate(numbers)
    }
    for place, found in enumerate(plan.rare_outcomes(StudyResults(cells))):
        own = found.as_dict()
        assert own["splits"] == 4
        for name in RARE_METRICS:
            assert own[name] == pytest.approx(np.mean(numbers) + place)
            assert own[f"{name}_se"] == pytest.approx(np.std(numbers, ddof=1) / math.sqrt(4))


# --- rare events ----------------------------------------------------------------------------------------------------


def test_json_of_the_frauds_holds_every_method_with_its_metrics_and_who_decides(quick_methods):
    outcomes = json.loads(run("--splits", "1", "--json", fraud_splits=2))["fraud"]
    assert [outcome["method"] for outcome in outcomes] == list(quick_methods[1])
    by_method = {outcome["method"]: outcome for outcome in outcomes}
    for own in outcomes:
        assert own["splits"] == 2
        assert own["alert_budget"] == ALERT_BUDGET
        assert own["prevalence"] == pytest.approx(492 / 14_707)
        assert all(own[f"{name}_se"] >= 0 for name in RARE_METRICS)
    weakest = by_method["Weakest"]
    assert weakest["pr_auc"] == pytest.approx(weakest["prevalence"], abs=1e-3)
    assert weakest["recall"] == pytest.approx(ALERT_BUDGET, abs=1e-3)
    assert by_method["LogReg"]["pr_auc"] > 0.8
    assert by_method["LogReg"]["log_loss"] < weakest["log_loss"] / 2
    assert (by_method["qmedoid"]["chosen_method"], by_method["qmedoid"]["by_circuit"]) == ("nearest", 0.0)
    assert (by_method["LogReg"]["chosen_method"], by_method["LogReg"]["by_circuit"]) == (None, None)
    text = " ".join(run("--splits", "1", fraud_splits=1).split())
    assert "Credit-card fraud (sample): test rows of one stratified split" in text
    assert "among the 4 % most suspicious test rows" in text
    assert "3.3 % of the rows are frauds; in the whole table it is 0.17 %" in text
    assert "Records decided by the circuit: 0 % in 'qmedoid' (method: nearest)." in text
    assert "the best plain baseline, LogReg, is" in text
    assert "nan" not in text


@pytest.mark.usefixtures("quick_methods")
def test_no_fraud_splits_leave_the_part_out():
    assert "fraud" not in run("--splits", "1")


def test_the_fraud_sample_is_one_of_rare_events_and_large_enough_for_a_circuit():
    codes = load_creditcard_sample().y
    fitted = codes[paper_split(codes, 0).fit]
    counts = np.bincount(fitted)
    assert auto_method(counts) == "rare"
    assert estimator_class("rare").auto_refine(counts) == "auto"
    assert estimator_class("nearest").auto_refine(counts) == "always"


def test_rare_events_are_measured_on_test_rows_and_fitted_on_all_others():
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.1).astype(np.intp)
    data = Dataset("toy", rng.standard_normal((400, 2)) + y[:, None], y, ("a", "b"), ("no", "yes"))
    for seed in (0, 1, 2):
        found = baselines.run_rare(data, Cell("rare", "toy", "random", seed, ""), name="LogReg")["test"]
        split = paper_split(y, seed)
        model = baselines.BASELINES["LogReg"](seed).fit(data.X[split.fit], y[split.fit])
        p, truth = model.predict_proba(data.X[split.test])[:, 1], y[split.test]
        assert found["pr_auc"] == pytest.approx(average_precision_score(truth, p))
        assert found["recall"] == recall_at(truth == 1, p, int(ALERT_BUDGET * len(p)))
        assert found["log_loss"] == pytest.approx(log_loss(truth, p))


@pytest.mark.parametrize(("refine", "share"), [("always", 1.0), ("never", 0.0)])
def test_the_share_of_the_circuit_is_that_of_the_rows_it_decides(refine, share):
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [160, 40])
    data = Dataset("toy", rng.standard_normal((200, 3)) + y[:, None], y, ("a", "b", "c"), ("no", "yes"))
    cell = Cell("rare", "toy", "random", 0, "")
    found = ours.run_front_rare(data, cell, method="nearest", refine=refine)
    assert (found["by_circuit"], found["chosen_method"]) == (share, "nearest")
