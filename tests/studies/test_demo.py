"""`qmedoid demo`: every method on every data set, as tables or as one JSON document."""

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from qmedoid import GeometricClassifier, NearestMedoidClassifier, __version__
from qmedoid.cli import demo as demo_module
from qmedoid.cli.app import app
from qmedoid.studies.comparison import METHODS, Outcome, baseline, compare, fusion, fusion_with_validation
from qmedoid.studies.datasets import Dataset, load_dataset
from qmedoid.studies.paper import PAPER
from qmedoid.studies.splits import paper_split

DATA = ["Heart disease", "Breast cancer", "Wine"]


def nearest_mean(data, split, _seed):
    """A method that is as fast as it is plain."""
    scale = data.X[split.fit].std(axis=0)
    classes = np.unique(data.y)
    means = np.array([data.X[split.fit][data.y[split.fit] == c].mean(axis=0) for c in classes])
    return classes[(((data.X[split.test][:, None] - means) / scale) ** 2).sum(axis=2).argmin(axis=1)]


def majority(data, split, _seed):
    return np.full(len(split.test), np.bincount(data.y[split.fit]).argmax())


@pytest.fixture
def quick_methods(monkeypatch):
    """The demo with methods that take no time; the search has tests of its own."""
    methods = {"qmedoid": nearest_mean, "qmedoid, as printed": majority, "LogReg": majority}
    monkeypatch.setattr(demo_module, "METHODS", methods)
    return methods


def run(*arguments):
    result = CliRunner().invoke(app, ["demo", "--fraud-splits", "0", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_holds_every_method_on_every_data_set(quick_methods):
    parts = json.loads(run("--splits", "2", "--json"))
    assert set(parts) == {"small", "fraud"}
    assert parts["fraud"] == []
    outcomes = parts["small"]
    assert [(o["data"], o["method"]) for o in outcomes] == [(d, m) for d in DATA for m in quick_methods]
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


@pytest.mark.usefixtures("quick_methods")
def test_tables_show_the_figures_of_the_paper_and_say_who_is_ahead():
    text = run("--splits", "2")
    for name in DATA:
        assert f"{name}: test rows of 2 stratified splits" in text
        assert f"{PAPER[name]['Fusion'].accuracy:.4f}" in text
        assert f"{PAPER[name]['LogReg'].macro_f1:.4f}" in text
        assert f"{name}: the best plain baseline, LogReg, is behind by" in text


def test_findings_do_not_hide_a_baseline_that_is_ahead():
    def outcome(method, score):
        return Outcome("Wine", method, 1, score, 0.0, score, 0.0)

    sentences = demo_module.findings([outcome("qmedoid", 0.9), outcome("A", 0.8), outcome("B", 0.95)])
    assert list(sentences) == ["Wine: the best plain baseline, B, is ahead by 0.050 in macro-F1."]
    for score in (0.9, 0.9004, 0.8996):
        sentences = demo_module.findings([outcome("qmedoid", 0.9), outcome("A", score)])
        assert list(sentences) == ["Wine: the best plain baseline, A, is level with ours in macro-F1."]


def test_the_demo_compares_the_front_door_the_convex_fusion_and_the_print_with_the_paper_s_baselines():
    ours = ["qmedoid", "qmedoid, convex", "qmedoid, as printed"]
    assert list(METHODS)[:3] == ours
    assert set(METHODS) == {*ours, *(set(PAPER["Wine"]) - {"Fusion"})}


@pytest.mark.parametrize(
    ("method", "make"), [("qmedoid", GeometricClassifier), ("qmedoid, convex", NearestMedoidClassifier)]
)
def test_ours_are_fitted_on_all_but_the_test_rows(method, make):
    data, split = load_dataset("wine"), paper_split(load_dataset("wine").y, 4)
    expected = make(random_state=4).fit(data.X[split.fit], data.y[split.fit]).predict(data.X[split.test])
    np.testing.assert_array_equal(METHODS[method](data, split, 4), expected)


def test_zero_splits_are_refused():
    result = CliRunner().invoke(app, ["demo", "--splits", "0"])
    assert result.exit_code == 2


def test_the_version():
    result = CliRunner().invoke(app, ["--version"])
    assert result.stdout.strip() == f"qmedoid {__version__}"


# --- comparison -------------------------------------------------------------------------------------------------


def test_an_outcome_is_the_mean_and_standard_error_over_the_same_splits():
    data, seeds, seen = load_dataset("wine"), [0, 1, 2], []

    def method(data, split, seed):
        seen.append((seed, split.test.tolist()))
        return nearest_mean(data, split, seed)

    (outcome,) = compare(data, {"m": method}, seeds)
    assert seen == [(seed, paper_split(data.y, seed).test.tolist()) for seed in seeds]
    scores = [
        (data.y[split.test] == nearest_mean(data, split, 0)).mean() for split in (paper_split(data.y, s) for s in seeds)
    ]
    assert outcome.accuracy == pytest.approx(np.mean(scores))
    assert outcome.accuracy_se == pytest.approx(np.std(scores, ddof=1) / math.sqrt(3))


class Spy:
    """A classifier that tells what it was fitted on."""

    def __init__(self):
        self.calls = {}

    def set_params(self, **parameters):
        self.calls["parameters"] = parameters
        return self

    def fit(self, X, y, **validation):
        self.calls |= {"X": X, "y": y} | validation
        return self

    def predict(self, X):
        self.calls["test"] = X
        return np.zeros(len(X))


def test_methods_never_see_test_rows_and_use_the_others_as_they_say():
    rows = np.arange(40.0)[:, None]
    data = Dataset("rows", rows, np.arange(40) % 2, ("row",), ("a", "b"))
    split = paper_split(data.y, 0)
    for make, fitted in ((fusion, split.fit), (fusion_with_validation, split.train), (baseline, split.fit)):
        spy = Spy()
        make(lambda *_, spy=spy: spy)(data, split, 11)
        np.testing.assert_array_equal(spy.calls["X"], rows[fitted])
        np.testing.assert_array_equal(spy.calls["test"], rows[split.test])
        if make is fusion_with_validation:
            np.testing.assert_array_equal(spy.calls["X_val"], rows[split.val])
        if make is not baseline:
            assert spy.calls["parameters"] == {"random_state": 11}


def test_standard_errors_are_those_of_a_mean_of_draws():
    """Of methods that are right about another share of the rows on every split."""
    data, seeds = load_dataset("wine"), [0, 1, 2, 3]

    def method(data, split, seed):
        right = np.arange(len(split.test)) % 5 <= seed
        return np.where(right, data.y[split.test], data.y[split.test][::-1])

    (outcome,) = compare(data, {"m": method}, seeds)
    alone = [next(compare(data, {"m": method}, [seed])) for seed in seeds]
    for name in ("accuracy", "macro_f1"):
        scores = np.array([getattr(one, name) for one in alone])
        assert np.ptp(scores) > 0.1
        assert getattr(outcome, name) == pytest.approx(scores.mean())
        unbiased = ((scores - scores.mean()) ** 2).sum() / 3
        assert getattr(outcome, f"{name}_se") == pytest.approx(np.sqrt(unbiased / 4))
