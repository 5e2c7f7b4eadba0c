"""The study of quality: its protocol, its judging, its keys and its tables."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata, wilcoxon
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, brier_score_loss, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.quality import again, card_tables, comparison, goals, picture, writing
from benchmarks.quality.card import METHODS as PAYMENT_METHODS
from benchmarks.quality.card import Payments, Shifted, judge_payments, recall_at_alerts, tune_by_pr_auc
from benchmarks.quality.card_tables import Ranking, resampled
from benchmarks.quality.cells import ORDER, STUDY, planned
from benchmarks.quality.figures import METHODS, Figures, Place, by_group, by_size, read_cells, write_cells
from benchmarks.quality.judging import Thresholds, judge, macro_f1
from benchmarks.quality.ours import OURS, as_table, build, our_metrics, recipes
from benchmarks.quality.protocol import LEAST, MAX_TEST, SIZES, SPLITS, Rows, make_split, split_rows, takes_part
from benchmarks.quality.ranks import Ranks, rank_table, run_at
from benchmarks.quality.rivals import FOLDS, RIVALS, rival_metrics, tune
from benchmarks.quality.tables import LOOKED_AT, NEVER_SEEN, Table, load_table

from qmedoid.estimators._parameters import check_parameters
from qmedoid.studies.code import Project, reached
from qmedoid.studies.splits import Cell


@pytest.fixture
def two_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = rng.normal(size=(400, 3)) + 1.2 * y[:, None]
    columns = {f"x{place}": column for place, column in enumerate(X.T)}
    return Rows(
        {name: own[:250] for name, own in columns.items()},
        {name: own[250:] for name, own in columns.items()},
        y[:250],
        y[250:],
        2,
    )


@pytest.mark.parametrize("n_classes", [2, 4])
def test_macro_f1_is_that_of_scikit_learn(n_classes):
    rng = np.random.default_rng(1)
    y, called = rng.integers(n_classes, size=(2, 300))
    assert macro_f1(y, called) == pytest.approx(f1_score(y, called, average="macro"))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_measures_are_those_of_scikit_learn(n_classes):
    rng = np.random.default_rng(1)
    y = rng.choice(n_classes, size=500, p=np.arange(n_classes, 0, -1) / (n_classes * (n_classes + 1) / 2))
    probabilities = rng.dirichlet(np.ones(n_classes), size=500)
    found = judge(y, probabilities, y, y)
    rarer = n_classes - 1
    scores = probabilities[:, 1] if n_classes == 2 else probabilities
    by_class = [average_precision_score(y == code, probabilities[:, code]) for code in range(n_classes)]
    assert found["log_loss"] == pytest.approx(log_loss(y, probabilities))
    assert found["roc_auc"] == pytest.approx(roc_auc_score(y, scores, multi_class="ovr"))
    assert found["pr_auc"] == pytest.approx(by_class[rarer] if n_classes == 2 else np.mean(by_class))
    assert found["brier"] == pytest.approx(brier_score_loss(y, probabilities, scale_by_half=False))
    assert found["macro_f1"] == pytest.approx(f1_score(y, probabilities.argmax(axis=1), average="macro"))
    assert found["macro_f1_tuned"] == 1.0
    sure = np.eye(n_classes)[(y + 1) % n_classes]
    assert judge(y, sure, y, y)["log_loss"] == pytest.approx(-np.log(1e-15))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tuned_thresholds_find_a_class_that_is_never_the_likeliest(n_classes):
    rng = np.random.default_rng(3)
    y = rng.choice(n_classes, size=3000, p=[0.92, *np.full(n_classes - 1, 0.08 / (n_classes - 1))])
    scores = 0.9 * np.eye(n_classes)[y] + rng.normal(scale=0.4, size=(3000, n_classes))
    scores[:, 0] += 2.0
    probabilities = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    tuned = Thresholds(y[:1500], probabilities[:1500])
    likeliest = macro_f1(y[1500:], probabilities[1500:].argmax(axis=1))
    assert macro_f1(y[1500:], tuned.call(probabilities[1500:])) > likeliest + 0.1


def test_splits_are_disjoint_stratified_capped_and_repeatable():
    y = np.repeat([0, 1], [54_000, 6_000])
    for size in SIZES[:3]:
        fit, test = make_split(y, size, 3)
        assert len(fit) == size
        assert len(test) == MAX_TEST
        assert not set(fit) & set(test)
        assert y[fit].mean() == pytest.approx(0.1)
        assert y[test].mean() == pytest.approx(0.1)
        np.testing.assert_array_equal(fit, make_split(y, size, 3).fit)
        np.testing.assert_array_equal(test, make_split(y, 1_000, 3).test)  # one test for all sizes
    assert set(test) != set(make_split(y, 1_000, 4).test)
    small = make_split(y[::400], 1_000, 3)
    assert sorted(np.concatenate(small)) == list(range(150))


def make_table(rng, n=200, n_classes=2):
    numbers = rng.normal(size=n)
    numbers[rng.random(n) < 0.2] = np.nan
    three = rng.choice(["x", "y", "z"], size=n).astype(object)
    three[:3] = "x", "y", "z"
    columns = {
        "number": numbers,
        "two": rng.choice(["a", "b"], size=n).astype(object),
        "three": np.where(rng.random(n) < 0.1, None, three),
    }
    y = rng.integers(n_classes, size=n)
    return Table("made up", columns, y, tuple(map(str, range(n_classes))), "nowhere")


def test_a_table_takes_part_where_it_has_rows_enough():
    for size in SIZES[1:]:
        least = LEAST[size]
        for rows, expected in ((4 * least // 3 + 2, True), (4 * least // 3 - 2, False)):
            table = Table("made up", {}, np.zeros(rows, dtype=int), ("0",), "nowhere")
            assert takes_part(table, size) is expected
    assert takes_part(load_table("iris"), 1_000)


def test_forms_of_the_rows_know_the_fit_rows_alone():
    table = make_table(np.random.default_rng(2))
    before = split_rows(table, 1_000, 0)
    fit, test = make_split(table.y, 1_000, 0)
    assert before.one_hot.fit.shape[1] == 2 + 1 + 4  # number and where it is missing, one of two levels, four levels
    known = table.columns["number"][fit]
    np.testing.assert_array_equal(before.one_hot.fit[:, 0], np.where(np.isnan(known), np.nanmedian(known), known))
    np.testing.assert_array_equal(before.one_hot.fit[:, 1], np.isnan(known))
    np.testing.assert_array_equal(before.one_hot.fit[:, 3:].sum(axis=1), 1)
    np.testing.assert_array_equal(before.is_category, [False, True, True])
    np.testing.assert_array_equal(before.coded.fit[:, 0], known)
    for level in ("x", "y", "z", None):
        of_level = [cell is level or cell == level for cell in table.columns["three"][fit]]
        assert len(np.unique(before.coded.fit[of_level, 2])) == 1
    table.columns["number"][test] = 1e6
    table.columns["three"][test] = "never seen"
    after = split_rows(table, 1_000, 0)
    np.testing.assert_array_equal(after.one_hot.fit, before.one_hot.fit)
    np.testing.assert_array_equal(after.coded.fit, before.coded.fit)
    np.testing.assert_array_equal(after.one_hot.test[:, 3:], 0)
    assert np.isnan(after.coded.test[:, 2]).all()


def test_ours_gets_the_table_as_it_is():
    table = make_table(np.random.default_rng(2))
    arrow = as_table(split_rows(table, 1_000, 0).fit)
    fit = make_split(table.y, 1_000, 0).fit
    assert arrow["number"].null_count == np.isnan(table.columns["number"][fit]).sum() > 0
    assert arrow["three"].null_count == sum(cell is None for cell in table.columns["three"][fit]) > 0
    assert arrow["two"].to_pylist() == table.columns["two"][fit].tolist()


# Rivals whose package is installed.
HERE = [name for name, rival in RIVALS.items() if not rival.release.startswith("no ")]
FEW = {
    "CatBoost": {"settings": ({"iterations": 5},)},
    "EBM": {"settings": ({"outer_bags": 1, "max_rounds": 5, "interactions": 0},)},
    "RandomForest": {"settings": ({"n_estimators": 10},), "trials": {"n_estimators": 5}},
    "ExtraTrees": {"settings": ({"n_estimators": 10},), "trials": {"n_estimators": 5}},
}


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_rival_takes_categories_and_missing_cells(name, n_classes):
    rng = np.random.default_rng(5)
    table = make_table(rng, 300, n_classes)
    table.columns["signal"] = table.y + 0.5 * rng.normal(size=300)
    rival = RIVALS[name]
    few = FEW.get(name, {"settings": rival.settings[:2], "trees": (3, 5) if rival.trees else ()})
    found = rival_metrics(replace(rival, **few), split_rows(table, 1_000, 0), 0, margins=name == "RBF-SVM")
    assert all(np.isfinite(value) for value in found.values() if isinstance(value, float))
    assert found["roc_auc"] > 0.75
    assert found["fit_rows"] == 225


def test_first_trees_of_a_boosted_fit_are_the_smaller_fit(two_classes):
    X, X_test = two_classes.coded
    for name in set(HERE) & {"LightGBM", "XGBoost", "HistGradientBoosting"}:
        rival = RIVALS[name]
        large, small = (
            rival.fit(X, two_classes.y, two_classes.is_category, 5, {**rival.settings[0], "n_estimators": trees})
            for trees in (12, 4)
        )
        np.testing.assert_allclose(large(X_test, 4), small(X_test, None), rtol=1e-6)
        assert not np.allclose(large(X_test, 12), small(X_test, None))


def test_a_setting_is_chosen_by_the_log_loss_of_rows_held_out_of_the_fit_rows(two_classes):
    rival, y = RIVALS["LogReg"], two_classes.y
    X = two_classes.one_hot.fit
    tuned = tune(rival, X, two_classes, 7)
    by_hand, shares = [], []
    for setting in rival.settings:
        said = np.empty((len(y), 2))
        for inner, outer in StratifiedKFold(FOLDS, shuffle=True, random_state=7).split(X, y):
            model = make_pipeline(StandardScaler(), LogisticRegression(**setting)).fit(X[inner], y[inner])
            said[outer] = model.predict_proba(X[outer])
        by_hand.append(log_loss(y, said))
        shares.append(said)
    best = int(np.argmin(by_hand))
    assert tuned.score == pytest.approx(by_hand[best])
    assert tuned.setting == rival.settings[best]
    expected = Thresholds(y, shares[best]).call(shares[best])
    np.testing.assert_array_equal(tuned.thresholds.call(shares[best]), expected)


def test_one_fold_tunes_what_has_much_to_fit_but_lightgbm_has_all(two_classes, monkeypatch):
    import benchmarks.quality.rivals as rivals

    fits = []

    def fit(_, y, *__):
        fits.append(len(y))
        return lambda new, _: np.full((len(new), 2), 0.5)

    rival = replace(RIVALS["LogReg"], fit=fit, settings=({},))
    numbers = []
    for much, folds in ((1_000, "by size"), (500, "by size"), (500, "all"), (1_000, "one")):
        monkeypatch.setattr(rivals, "MUCH", much)
        fits.clear()
        tune(replace(rival, folds=folds), two_classes.one_hot.fit, two_classes, 0)
        numbers.append(len(fits))
    assert numbers == [3, 1, 3, 1]
    assert RIVALS["LightGBM"].folds == "all"
    assert not RIVALS["LightGBM"].large


def test_margins_become_probabilities_by_rows_that_were_held_out(two_classes):
    found = rival_metrics(RIVALS["RBF-SVM"], two_classes, 0, margins=True)
    plain = rival_metrics(RIVALS["LogReg"], two_classes, 0)
    assert found["log_loss"] == pytest.approx(plain["log_loss"], abs=0.08)
    assert found["ece"] < 3 * found["chance_ece"]


def test_test_labels_have_no_part_in_what_a_rival_decides(two_classes):
    first = rival_metrics(RIVALS["LogReg"], two_classes, 0)
    second = rival_metrics(RIVALS["LogReg"], replace(two_classes, y_test=1 - two_classes.y_test), 0)
    assert first["setting"] == second["setting"]
    assert first["roc_auc"] == pytest.approx(1 - second["roc_auc"])
    assert first["macro_f1_tuned"] > 0.8 > 0.3 > second["macro_f1_tuned"]


def test_ours_is_judged_as_the_others_are(two_classes):
    found = our_metrics(recipes("tables")[OURS], two_classes, 0)
    rival = rival_metrics(RIVALS["LogReg"], two_classes, 0)
    assert found["macro_f1"] > 0.8
    assert found["macro_f1_tuned"] > 0.8
    assert set(rival) - set(found) == {"setting", "tune_s", "cv_log_loss"}


@pytest.mark.parametrize("part", ["tables", "card"])
def test_every_recipe_names_parameters_that_there_are(part):
    for own in recipes(part).values():
        made = build(own, 0)
        assert made.get_params()["random_state"] == 0
        check_parameters("ours", made.get_params(deep=False), made._constraints)
        if not isinstance(made.method, str):
            check_parameters("ours", made.method.get_params(deep=False), made.method._constraints)
            base = next(kind for kind in type(made.method).__mro__ if kind.__module__.startswith("qmedoid."))
            plain = base()
            assert (made.method._settings(), made.method.get_params()) != (plain._settings(), plain.get_params())


def test_rivals_do_not_depend_on_ours_and_ours_depends_on_its_settings():
    root = Path(__file__).parents[2]
    project = Project({"qmedoid": root / "src" / "qmedoid", "benchmarks": root / "benchmarks"})
    for part, own in STUDY.methods.items():
        for name, method in own.items():
            modules, kernels = reached(project, [method.run.__module__])
            is_ours = any(module.startswith(("qmedoid.estimators", "qmedoid.methods")) for module in modules)
            assert is_ours == bool(kernels) == name.startswith(OURS), (part, name)
    change = next(name for name in STUDY.methods["4000"] if name.startswith(f"{OURS}, "))
    rival, ours, changed = (Cell("4000", "wine", "random", 0, name) for name in ("LogReg", OURS, change))
    others = (replace(rival, seed=1), replace(rival, part="1000"), ours, changed)
    assert len({STUDY.key(cell) for cell in (rival, *others)}) == 5
    methods = {"4000": {OURS: STUDY.method(changed)}}
    assert replace(STUDY, methods=methods).key(ours) != STUDY.key(ours)
    of_another_release = {**STUDY.methods["4000"], "LogReg": replace(STUDY.method(rival), settings={"release": "9"})}
    assert replace(STUDY, methods={"4000": of_another_release}).key(rival) != STUDY.key(rival)


def test_cells_are_run_seed_by_seed_and_size_by_size(monkeypatch):
    import benchmarks.quality.cells as cells

    sizes = {"small": 500, "large": 200_000}
    tables = {name: Table(name, {}, np.zeros(n, dtype=int), ("0",), "nowhere") for name, n in sizes.items()}
    monkeypatch.setattr(cells, "available", lambda: (list(tables), {}))
    monkeypatch.setattr(cells, "load_table", tables.get)
    found = planned("tables", "report")
    order = list(dict.fromkeys((cell.seed, int(cell.part)) for cell in found))
    assert order == [(60 + place, size) for place in range(3) for size in ORDER if place < SPLITS[size]]
    assert {cell.method for cell in found} == set(METHODS)  # changes are run where they are asked for
    assert {cell.part for cell in found if cell.data == "small"} == {"1000"}
    assert {cell.method for cell in found if cell.part == "100000"} == {
        *(OURS, "CatBoost", "LightGBM", "XGBoost", "HistGradientBoosting")
    }
    assert len(planned("tables", "tuning", methods=["baselines"], splits=1, sizes=[1_000], sets=["small"])) == len(
        RIVALS
    )
    changes = planned("tables", "report", methods=["changes"], splits=1)
    assert {cell.part for cell in changes} == {"4000"}
    assert all(cell.method.startswith(f"{OURS}, ") for cell in changes)


def test_no_table_is_both_looked_at_and_never_seen():
    assert not set(LOOKED_AT) & set(NEVER_SEEN)
    assert len({*LOOKED_AT, *NEVER_SEEN}) == len(LOOKED_AT) + len(NEVER_SEEN)


def test_a_table_changes_its_digest_with_any_cell():
    table, other = (make_table(np.random.default_rng(3)) for _ in range(2))
    assert table.digest == other.digest
    other.columns["two"][17] = "c"
    assert table.digest != other.digest


MADE_UP = {"wine": (1_000,), "iris": (1_000,), "ring": (1_000, 4_000), "covertype": (4_000, 20_000, 100_000)}


def made_up_figures(gap=0.02):
    """Four tables, on which a method is the worse the later it comes; ours leads by the gap."""
    rng = np.random.default_rng(4)
    rows = []
    for data, sizes in MADE_UP.items():
        for size in sizes:
            methods = [name for name in METHODS if name == OURS or size <= RIVALS[name].most]
            for place, method in enumerate((*methods, f"{OURS}, halved")):
                for seed in range(60, 60 + SPLITS[size]):
                    loss = 0.3 + (gap * (place > 0) + 0.01 * place) + 0.002 * rng.normal()
                    row = {"data": data, "source": "here", "rows": 2 * size, "columns": 3, "classes": 2, "size": size}
                    row |= {"fit_rows": size, "seed": seed, "method": method, "log_loss": loss, "brier": loss / 2}
                    row |= dict.fromkeys(("roc_auc", "pr_auc", "macro_f1", "macro_f1_tuned"), 1 - loss)
                    row |= {"ece": 0.02, "chance_ece": 0.025, "fit_s": 0.5 + place, "predict_s": 0.1, "seconds": 9.0}
                    row["tune_s"] = None if method.startswith(OURS) else 2.0
                    rows.append(row)
    return Figures(rows)


def test_a_table_counts_once_up_to_4000_rows_and_at_every_size_from_20000_on():
    found = by_size(made_up_figures().places)
    small = {("wine", 1_000), ("iris", 1_000), ("ring", 4_000), ("covertype", 4_000)}
    assert set(found["≤ 4,000"]) == small
    assert set(found["≥ 20,000"]) == {("covertype", 20_000), ("covertype", 100_000)}
    assert set(found["1,000"]) == {("wine", 1_000), ("iris", 1_000), ("ring", 1_000)}
    groups = by_group(found["≤ 4,000"])
    assert set(groups["never seen"]) == {("iris", 1_000), ("ring", 4_000)}
    assert set(groups["all"]) == small
    assert list(by_group(found["≥ 20,000"])) == ["all"]


def test_ranks_share_what_there_is_and_their_average_is_over_tables():
    figures = made_up_figures()
    places = by_size(figures.places)["≤ 4,000"]
    found = Ranks.of(figures, "log_loss", places, METHODS)
    np.testing.assert_allclose(found.ranks.sum(axis=1), len(METHODS) * (len(METHODS) + 1) / 2)
    means = [np.mean([row["log_loss"] for row in figures.of(places[0], name).values()]) for name in METHODS]
    np.testing.assert_array_equal(found.ranks[0], rankdata(means))
    other = Ranks.of(figures, "roc_auc", places, METHODS)
    np.testing.assert_array_equal(found.ranks, other.ranks)  # more is better there, less is better here
    assert run_at(figures, by_size(figures.places)["≥ 20,000"]) == METHODS[:5]
    line = next(line for line in rank_table(figures) if (line["size"], line["group"]) == ("≤ 4,000", "never seen"))
    assert line["tables"] == 2
    assert line["CatBoost"] == pytest.approx(found.ranks[[1, 2]][:, 1].mean())


def test_the_critical_difference_is_that_of_nemenyi():
    # Demšar (2006): q is 2.343 for three methods and 3.164 for ten.
    for k, q in ((3, 2.343), (10, 3.164)):
        ranks = Ranks("log_loss", METHODS[:k], [Place("a", 1)] * 14, np.tile(np.arange(1.0, k + 1), (14, 1)))
        assert ranks.critical == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * 14)), abs=2e-3)


def test_bars_join_the_ranks_that_are_level():
    assert picture.level([1.0, 1.5, 2.2, 4.0], 1.0) == [(1.0, 1.5), (1.5, 2.2)]
    assert picture.level([1.0, 1.5, 1.9, 4.0], 1.0) == [(1.0, 1.9)]
    assert picture.level([1.0, 3.0], 1.0) == []


def test_the_picture_has_every_method_and_is_the_same_again(tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("first", "second"):
        assert picture.draw_ranks(made_up_figures(), tmp_path / f"{name}.svg")
    text = (tmp_path / "first.svg").read_text(encoding="utf-8")
    assert text == (tmp_path / "second.svg").read_text(encoding="utf-8")
    for method in (OURS, "CatBoost", "EBM", "critical difference"):
        assert method in text
    assert not picture.draw_ranks(Figures([]), tmp_path / "none.svg")


def test_paired_differences_have_corrected_errors_and_count_as_better():
    figures = made_up_figures()
    lines = comparison.paired_table(figures)
    for measure, sign in (("log-loss", 1), ("ROC-AUC", -1)):
        line = next(
            line for line in lines if (line["set"], line["rival"], line["measure"]) == ("wine", "LogReg", measure)
        )
        name = "log_loss" if sign > 0 else "roc_auc"
        ours, theirs = figures.values(Place("wine", 1_000), [OURS, "LogReg"], name)
        assert line["ours better by"] == pytest.approx(sign * (theirs - ours).mean())
        assert line["ours better by"] > 0
        assert line["±"] == pytest.approx((theirs - ours).std(ddof=1) * np.sqrt(1 / 3 + 1 / 3))
        assert line["splits we win"] == "3 of 3"


def test_differences_over_tables_have_an_interval_and_a_test():
    figures = made_up_figures()
    key = ("log-loss", "≤ 4,000", "all", "CatBoost")
    line = next(
        line
        for line in comparison.over_tables(figures)
        if (line["measure"], line["size"], line["group"], line["rival"]) == key
    )
    places = by_size(figures.places)["≤ 4,000"]
    leads = [comparison.lead(comparison.pair(figures, place, "CatBoost", "log_loss")) for place in places]
    assert line["ours better by"] == pytest.approx(np.mean(leads))
    assert line["low"] < line["ours better by"] < line["high"]
    assert line["Wilcoxon p"] == pytest.approx(wilcoxon(leads).pvalue)
    assert line["tables we win"] == 4
    ratios = [np.log(figures.mean(at, "CatBoost", "log_loss") / figures.mean(at, OURS, "log_loss")) for at in places]
    assert line["mean log of theirs over ours"] == pytest.approx(np.mean(ratios))


def test_rivals_that_win_are_told_table_by_table():
    assert comparison.rival_wins(made_up_figures()) == []
    lines = comparison.rival_wins(made_up_figures(gap=-0.05))
    assert {(line["set"], line["size"]) for line in lines} == {(d, s) for d, sizes in MADE_UP.items() for s in sizes}
    wine = next(line for line in lines if line["set"] == "wine")
    assert wine["best rival"] == "CatBoost"
    assert wine["rivals ahead"].startswith("CatBoost, LightGBM, ")
    assert "LogReg" not in wine["rivals ahead"]
    assert wine["more than two errors"] == "yes"


def test_goals_are_met_by_a_leader_and_missed_by_one_behind():
    ahead, behind = (goals.goal_table(made_up_figures(gap)) for gap in (0.02, -0.05))
    assert {line["goal"] for line in ahead} == {line["goal"] for line in behind}
    assert all(line["met"] == "yes" for line in ahead)
    missed = {str(line["goal"]).split(",")[0] for line in behind if line["met"] == "no"}
    assert "average rank among the three by log-loss" in missed
    assert "covertype (20" in {name[:13] for name in missed}
    assert any(name.startswith("tables whose log-loss is worse") for name in missed)
    far = next(line for line in behind if str(line["goal"]).startswith("tables whose log-loss"))
    assert str(far["found"]).startswith("4: ")
    cost = next(line for line in ahead if str(line["goal"]).startswith("core time"))
    assert cost["found"] == "0.11 (worst: ring 0.11)"  # 0.5 against 2 of tuning and 2.5 of the fit


def test_an_ablation_is_the_change_against_ours():
    figures = made_up_figures()
    (line,) = comparison.ablation_table(figures)
    found = [figures.values(place, [OURS, f"{OURS}, halved"], "log_loss") for place in figures.places]
    assert line["change"] == "halved"
    assert line["log-loss: ours better by"] == pytest.approx(np.mean([own[1].mean() - own[0].mean() for own in found]))
    assert line["log-loss: tables it makes worse"] == len(figures.places)


def test_an_unfinished_run_is_a_study_of_fewer_splits():
    figures = made_up_figures()
    fewer = Figures([row for row in figures.rows if row["method"] != "LogReg" or row["seed"] == 60])
    place = Place("wine", 1_000)
    pair = comparison.pair(fewer, place, "LogReg", "log_loss")
    assert len(pair.ours.values) == 1
    assert pair.error is None
    whole = Ranks.of(fewer, "log_loss", [place], METHODS)
    assert whole.places == [place]
    without = Figures([row for row in figures.rows if row["method"] != "LogReg" or row["data"] == "ring"])
    assert "LogReg" not in run_at(without, by_size(without.places)["≤ 4,000"])


def test_tables_are_the_same_from_the_file_of_cells(tmp_path):
    figures = made_up_figures()
    write_cells(tmp_path / "cells.csv", "made up", figures.rows)
    again_read = Figures(read_cells(tmp_path / "cells.csv"))
    assert (tmp_path / "cells.csv").read_text().startswith("# made up\n")
    assert rank_table(again_read) == rank_table(figures)
    first, second = (comparison.paired_table(one) for one in (again_read, figures))
    assert [line["ours"] for line in first] == pytest.approx([line["ours"] for line in second], abs=1e-5)


def test_a_run_writes_the_tables_that_its_file_gives_again_and_keeps_rivals(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(writing, "folder", lambda _: tmp_path)
    rng = np.random.default_rng(8)
    measured = ("log_loss", "roc_auc", "pr_auc", "brier", "macro_f1", "macro_f1_tuned", "fit_s", "predict_s", "ece")
    found = {
        Cell("1000", data, "random", seed, method): {
            **dict(zip(measured, rng.random(len(measured)).tolist(), strict=True)),
            "chance_ece": 0.01,
            "fit_rows": 100,
        }
        for data in ("wine", "iris")
        for method in METHODS
        for seed in range(60, 63)
    }
    writing.write_results("tables", "report", found)
    first = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    writing.write_from_csv("report")
    assert {"cells.csv", "means.csv", "paired.csv", "goals.csv", "ranks.csv", "over_tables.csv"} <= set(first)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == first
    writing.write_results("tables", "report", {cell: own for cell, own in found.items() if cell.method == OURS})
    assert (tmp_path / "cells.csv").read_bytes() == first["cells.csv"]
    assert "average rank" in capsys.readouterr().out


def test_the_splits_of_the_earlier_reports_are_those_of_their_cells():
    found = again.cells()
    for data in again.WANTED:
        own = {cell.seed for cell in found if cell.data == data}
        assert own == {*range(20), *range(20, 40), *range(40, 60)}
        known = again.rivals("cells.csv", "macro_f1")
        assert {seed for name, seed in known if name == data} == own
    ours = dict.fromkeys(range(60), 0.9)
    line = again.line("macro-F1, wine", 0.8, ours, dict.fromkeys(ours, 0.6))
    assert (line["ours"], line["third recipe"], line["ours − theirs"]) == ("0.9000", "0.9927", "0.3000")


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
    family, X, y = PAYMENT_METHODS["LogReg, raw columns"], two_classes.one_hot.fit, two_classes.y
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y))

    def held_out(setting, inner, outer):
        fitted = family.make(0, **setting).fit(X[inner], y[inner])
        return average_precision_score(y[outer], fitted.decision_function(X[outer]))

    by_hand = [np.mean([held_out(setting, *fold) for fold in folds]) for setting in family.settings]
    assert tune_by_pr_auc(family, X, y, 0) == family.settings[int(np.argmax(by_hand))]


def test_sets_of_scikit_learn_are_here():
    wine = load_table("wine")
    assert (len(wine), len(wine.columns), len(wine.class_names)) == (178, 13, 3)
