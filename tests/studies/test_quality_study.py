"""The study of quality: its protocol, its judging, its keys and its tables."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score
from sklearn.model_selection import StratifiedKFold

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.quality import card_tables, comparison, writing
from benchmarks.quality.baselines import FAMILIES, FOLDS, boosted_scores, tune, tuned_metrics
from benchmarks.quality.card import Payments, Shifted, judge_payments, tune_by_pr_auc
from benchmarks.quality.card_tables import Ranking, resampled
from benchmarks.quality.cells import STUDY
from benchmarks.quality.figures import BEST, Figures, groups, read_cells, write_cells
from benchmarks.quality.judging import best_cut, macro_f1, recall_at_alerts
from benchmarks.quality.ours import OURS, build, our_metrics, recipes
from benchmarks.quality.protocol import MAX_FIT, MAX_TEST, Encoded, encode_split, make_split
from benchmarks.quality.tables import Table, load_table

from qmedoid.estimators._parameters import check_parameters
from qmedoid.studies.code import Project, reached
from qmedoid.studies.metrics import scores_of
from qmedoid.studies.splits import Cell


@pytest.fixture
def two_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = rng.normal(size=(400, 3)) + 1.2 * y[:, None]
    return Encoded(X[:250], y[:250], X[250:], y[250:], 2)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_macro_f1_is_that_of_scikit_learn(n_classes):
    rng = np.random.default_rng(1)
    y, called = rng.integers(n_classes, size=(2, 300))
    assert macro_f1(y, called) == pytest.approx(f1_score(y, called, average="macro"))


def test_splits_are_disjoint_stratified_capped_and_repeatable():
    y = np.repeat([0, 1], [36_000, 4_000])
    fit, test = make_split(y, 3)
    assert len(fit) == MAX_FIT
    assert len(test) == MAX_TEST
    assert not set(fit) & set(test)
    assert y[fit].mean() == pytest.approx(0.1)
    assert y[test].mean() == pytest.approx(0.1)
    np.testing.assert_array_equal(fit, make_split(y, 3).fit)
    assert set(test) != set(make_split(y, 4).test)
    small = make_split(y[::400], 3)
    assert sorted(np.concatenate(small)) == list(range(100))
    assert len(small.test) == 25


def make_table(rng, n=200):
    numbers = rng.normal(size=n)
    numbers[rng.random(n) < 0.2] = np.nan
    columns = {
        "number": numbers,
        "two": rng.choice(["a", "b"], size=n).astype(object),
        "three": rng.choice(["x", "y", "z"], size=n).astype(object),
    }
    return Table("made up", columns, rng.integers(2, size=n), ("0", "1"), "nowhere")


def test_the_encoding_knows_the_fit_rows_alone():
    table = make_table(np.random.default_rng(2))
    before = encode_split(table, 0)
    fit, test = make_split(table.y, 0)
    assert before.X.shape[1] == 2 + 1 + 3  # number and where it is missing, one of two levels, three levels
    known = table.columns["number"][fit]
    np.testing.assert_array_equal(before.X[:, 0], np.where(np.isnan(known), np.nanmedian(known), known))
    np.testing.assert_array_equal(before.X[:, 1], np.isnan(known))
    np.testing.assert_array_equal(before.X[:, 3:].sum(axis=1), 1)
    table.columns["number"][test] = 1e6
    table.columns["three"][test] = "never seen"
    after = encode_split(table, 0)
    np.testing.assert_array_equal(after.X, before.X)
    np.testing.assert_array_equal(after.X_test[:, 3:], 0)


def test_first_trees_of_a_boosted_fit_are_the_smaller_fit(two_classes):
    family = FAMILIES["LightGBM"]
    few = min(family.trees)
    scored = family.scored(family.settings[0], two_classes.X, two_classes.y, two_classes.X_test, 5)
    by_prefix = {setting["n_estimators"]: scores for setting, scores in scored}
    small = family.make(5, **family.settings[0], n_estimators=few).fit(two_classes.X, two_classes.y)
    np.testing.assert_allclose(by_prefix[few], boosted_scores(small, two_classes.X_test))


def test_a_setting_is_chosen_by_rows_held_out_of_the_fit_rows(two_classes):
    family, X, y = FAMILIES["LogReg"], two_classes.X, two_classes.y
    tuned = tune(family, X, y, 7)
    by_hand = []
    for setting in family.settings:
        scores = np.empty(len(y))
        for inner, outer in StratifiedKFold(FOLDS, shuffle=True, random_state=7).split(X, y):
            scores[outer] = scores_of(family.make(7, **setting).fit(X[inner], y[inner]), X[outer])
        by_hand.append(best_cut(y, scores)[1])
    assert tuned.score == pytest.approx(max(by_hand))
    assert tuned.setting == family.settings[int(np.argmax(by_hand))]


def test_test_labels_have_no_part_in_what_a_baseline_decides(two_classes):
    first = tuned_metrics(FAMILIES["LinearSVM"], two_classes, 0)
    turned = Encoded(two_classes.X, two_classes.y, two_classes.X_test, 1 - two_classes.y_test, 2)
    second = tuned_metrics(FAMILIES["LinearSVM"], turned, 0)
    assert first["setting"] == second["setting"]
    assert first["roc_auc"] == pytest.approx(1 - second["roc_auc"])
    assert first["macro_f1"] > 0.8 > 0.3 > second["macro_f1"]


def test_ours_is_judged_as_the_others_are(two_classes):
    found = our_metrics(recipes("tables")[OURS], two_classes, 0)
    assert found["macro_f1"] > 0.8
    assert {"roc_auc", "pr_auc", "ece", "chance_ece", "fit_s", "predict_s"} <= set(found)
    assert 2 <= found["medoids"] <= 64


@pytest.mark.parametrize("part", ["tables", "card"])
def test_every_recipe_names_parameters_that_there_are(part):
    for own in recipes(part).values():
        made = build(own, 0)
        assert made.get_params()["random_state"] == 0
        check_parameters("ours", made.get_params(deep=False), made._constraints)
        if not isinstance(made.method, str):
            check_parameters("ours", made.method.get_params(deep=False), made.method._constraints)
            base = next(kind for kind in type(made.method).__mro__ if kind.__module__.startswith("qmedoid."))
            assert made.method._settings() != base()._settings()


def test_baselines_do_not_depend_on_ours_and_ours_depends_on_its_settings():
    root = Path(__file__).parents[2]
    project = Project({"qmedoid": root / "src" / "qmedoid", "benchmarks": root / "benchmarks"})
    for part, own in STUDY.methods.items():
        for name, method in own.items():
            modules, kernels = reached(project, [method.run.__module__])
            is_ours = any(module.startswith(("qmedoid.estimators", "qmedoid.methods")) for module in modules)
            assert is_ours == bool(kernels) == name.startswith(OURS), (part, name)
    rival, ours, change = (Cell("tables", "wine", "random", 0, name) for name in ("LogReg", OURS, f"{OURS}, one bag"))
    assert len({STUDY.key(cell) for cell in (rival, replace(rival, seed=1), ours, change)}) == 4
    methods = {"tables": {OURS: STUDY.method(change)}}
    assert replace(STUDY, methods=methods).key(ours) != STUDY.key(ours)


def test_a_table_changes_its_digest_with_any_cell():
    table, other = (make_table(np.random.default_rng(3)) for _ in range(2))
    assert table.digest == other.digest
    other.columns["two"][17] = "c"
    assert table.digest != other.digest


def made_up_figures():
    """Two sets of three splits: on `iris` the baseline that seems best before the test is not the best after it."""
    rng = np.random.default_rng(4)
    rows = []
    for data in ("wine", "iris"):
        for place, method in enumerate((*FAMILIES, OURS, f"{OURS}, halved")):
            for seed in range(3):
                value = 0.9 - 0.01 * place + 0.005 * rng.normal()
                row = {"data": data, "source": "here", "rows": 100, "columns": 3, "classes": 2, "seed": seed}
                row |= {"method": method, "macro_f1": value, "fit_s": 0.5 + place, "ece": 0.02, "chance_ece": 0.025}
                row["cv_macro_f1"] = None if method.startswith(OURS) else 0.5 + 0.1 * ((place + seed) % 3)
                rows.append(row)
    return Figures(rows)


def test_the_best_by_cv_is_chosen_split_by_split_without_the_test():
    figures = made_up_figures()
    for seed, value in enumerate(figures.values("iris", BEST)):
        own = [row for row in figures.rows if (row["data"], row["seed"]) == ("iris", seed) and row["cv_macro_f1"]]
        assert value == max(own, key=lambda row: row["cv_macro_f1"])["macro_f1"]


def test_ranks_share_what_there_is_and_their_average_is_over_sets():
    methods, complete, ranks = comparison.ranked(made_up_figures())
    np.testing.assert_allclose(ranks.sum(axis=1), len(methods) * (len(methods) + 1) / 2)
    last = comparison.rank_table(made_up_figures())[-1]
    assert last["set"] == f"average, all ({len(complete)})"
    assert last[OURS] == pytest.approx(ranks[:, methods.index(OURS)].mean())


def test_paired_differences_have_corrected_errors():
    figures = made_up_figures()
    line = next(line for line in comparison.paired_table(figures) if (line["set"], line["rival"]) == ("wine", "LogReg"))
    differences = figures.values("wine", OURS) - figures.values("wine", "LogReg")
    assert line["ours − theirs"] == pytest.approx(differences.mean())
    assert line["±"] == pytest.approx(differences.std(ddof=1) * np.sqrt(1 / 3 + 1 / 3))
    assert line["worse by more than 0.02"] == ("yes" if differences.mean() < -0.02 else "no")


def test_an_ablation_is_the_change_against_ours():
    figures = made_up_figures()
    (line,) = comparison.ablation_table(figures)
    changes = [np.mean(figures.values(name, f"{OURS}, halved") - figures.values(name, OURS)) for name in figures.sets]
    assert line["change"] == "halved"
    assert line["mean change of macro-F1"] == pytest.approx(np.mean(changes))
    assert line["wine"] == pytest.approx(changes[0])


def test_an_ablation_of_some_splits_is_compared_on_those():
    figures = made_up_figures()
    fewer = Figures([row for row in figures.rows if row["method"] != f"{OURS}, halved" or row["seed"] != 1])
    (line,) = comparison.ablation_table(fewer)
    changes = figures.values("wine", f"{OURS}, halved") - figures.values("wine", OURS)
    assert line["wine"] == pytest.approx(changes[[0, 2]].mean())
    assert line["splits"] == 4
    unfinished = Figures([row for row in figures.rows if row["method"] != "LogReg" or row["seed"] != 1])
    assert "LogReg" not in {line["rival"] for line in comparison.paired_table(unfinished)}


def test_a_set_counts_to_its_groups():
    found = groups(["wine", "iris", "magic", "vehicle"])
    assert found["tuned"] == ["wine"]
    assert found["never seen"] == ["iris", "magic", "vehicle"]
    assert found["main"] == ["wine", "magic"]


def test_tables_are_the_same_from_the_file_of_cells(tmp_path):
    figures = made_up_figures()
    write_cells(tmp_path / "cells.csv", "made up", figures.rows)
    again = Figures(read_cells(tmp_path / "cells.csv"))
    assert (tmp_path / "cells.csv").read_text().startswith("# made up\n")
    assert comparison.rank_table(again) == comparison.rank_table(figures)
    first, second = (comparison.paired_table(one) for one in (again, figures))
    assert [line["ours"] for line in first] == pytest.approx([line["ours"] for line in second], abs=1e-5)


def test_a_run_writes_the_tables_that_its_file_of_cells_gives_again(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "folder", lambda _: tmp_path)
    rng = np.random.default_rng(8)
    found = {
        Cell("tables", data, "random", seed, method): {
            **dict(zip(("macro_f1", "fit_s", "ece", "chance_ece", "cv_macro_f1"), rng.random(5).tolist(), strict=True))
        }
        for data in ("wine", "iris")
        for method in (*FAMILIES, OURS)
        for seed in range(3)
    }
    writing.write_results("tables", "report", found)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    writing.write_from_csv("report")
    assert {"cells.csv", "macro_f1.csv", "paired.csv"} <= set(first)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first


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


def test_a_method_against_itself_has_no_difference_in_any_resample():
    rng = np.random.default_rng(5)
    y, scores = (rng.random(500) < 0.1).astype(int), rng.normal(size=500)
    found = resampled(y, [scores, 2 * scores, -scores], 0, resamples=20)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    assert found[:, 0, 0].std() > 0


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
    family, X, y = FAMILIES["LogReg"], two_classes.X, two_classes.y
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))

    def held_out(setting, inner, outer):
        fitted = family.make(0, **setting).fit(X[inner], y[inner])
        return average_precision_score(y[outer], fitted.decision_function(X[outer]))

    by_hand = [np.mean([held_out(setting, *fold) for fold in folds]) for setting in family.settings]
    assert tune_by_pr_auc(family, X, y, 0) == family.settings[int(np.argmax(by_hand))]


def test_sets_of_scikit_learn_are_here():
    wine = load_table("wine")
    assert (len(wine), len(wine.columns), len(wine.class_names)) == (178, 13, 3)
