"""The study of quality: ranks, differences, goals and tables, from figures that nobody measured."""

import numpy as np
import pytest
from benchmarks.quality import comparison, goals, writing
from benchmarks.quality.figures import METHODS, Figures, Place, by_group, by_size
from benchmarks.quality.ours import OURS
from benchmarks.quality.protocol import SPLITS
from benchmarks.quality.ranks import Ranks, rank_table, run_at
from benchmarks.quality.rivals import RIVALS
from benchmarks.studies.cells import Cell
from scipy.stats import rankdata, wilcoxon

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
