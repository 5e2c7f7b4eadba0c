"""The text of a page, without a browser: its policy, what it loads, and that the same summary gives the same page."""

import json
import re

import pytest
from summaries import HOSTILE, HUGE, effect, summary

from qmedoid.markup.charts import effect as effect_chart
from qmedoid.markup.charts import odds_factor
from qmedoid.markup.page import source_hash, style
from qmedoid.report.summary import render, script, shown
from qmedoid.report.verdict import opening


@pytest.fixture(scope="module")
def page():
    return render(summary(HOSTILE))


def test_policy_has_the_hashes_of_the_only_script_and_style(page):
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    policy = policy.replace("&#39;", "'")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(scripts) == len(styles) == 1
    assert f"script-src {source_hash(scripts[0])};" in policy
    assert f"style-src {source_hash(styles[0])};" in policy
    assert "unsafe" not in policy


def test_policy_comes_before_everything_that_it_rules(page):
    places = [
        page.index(text)
        for text in ('<meta charset="utf-8">', "Content-Security-Policy", "<title>", "<style>", "<body")
    ]
    assert places == sorted(places)
    assert places[0] < 1024


def test_page_loads_nothing(page):
    own = page.replace("http://www.w3.org/2000/svg", "")
    tags = re.findall(r"<[a-z][^>]*>", re.sub(r"<(script|style)[^>]*>.*?</\1>", "", own, flags=re.DOTALL))
    for tag in tags:
        names = re.sub(r'"[^"]*"', '""', tag)
        assert not re.search(r"\s(src|srcset|action|poster|xlink:href|style|on\w+)\s*=", names), tag
        assert not re.search(r'\shref="(?!#)', tag), tag
    assert "@import" not in style()
    assert "url(" not in style()


def test_scripts_make_no_markup_of_texts_and_send_nothing():
    own = script(is_live=False)
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "fetch(",
                 "XMLHttpRequest", "import(", ".style", "WebSocket"):  # fmt: skip
        assert word not in own, word


def test_data_block_holds_the_stops_as_they_are(page):
    (text,) = re.findall(r'<script id="report-data" type="application/json">(.*?)</script>', page)
    assert json.loads(text)["operating"]["stops"] == json.loads(json.dumps(summary()["operating"]["stops"]))


def test_parts_that_are_not_known_are_left_out():
    empty = {"operating": None, "figures": None, "baselines": None, "confusion": None, "calibration": None,
             "effects": [], "medoids": None,
             "findings": [], "left_out": [], "squares": None, "errors": None,
             "slices": []}  # fmt: skip
    base = {**summary(), **empty}
    base["columns"] = [{**column, "importance": None} for column in base["columns"]]
    base["model"] = {**base["model"], "target": None, "class_shares": None}
    base["opening"] = opening(base)
    titles = re.findall(r"<h2[^>]*>([^<]*)", render(base))
    assert titles == ["To look at", "What if", "Checks", "What was fitted", "How this page was made"]


@pytest.mark.parametrize(
    ("log_odds", "said"), [(0.0, "×1"), (1.0, "×2.7"), (-1.0, "÷2.7"), (5.0, "×148"), (-10.0, "÷2e4"), (30.0, "×1e13")]
)
def test_factors_of_odds_are_short(log_odds, said):
    assert odds_factor(log_odds) == said


def test_shapes_of_dates_have_dates_and_those_of_scores_no_odds():
    shape = {**effect("day", ["a", "b"], has_numbers=True), "kind": "date"}
    ends = [("2022-01-01", "2022-01-02"), ("2023-01-01", "2023-01-02")]
    shape["bins"] = [{**one, "low": low, "high": high} for one, (low, high) in zip(shape["bins"], ends, strict=True)]
    assert re.findall(r">(\d{4}-\d\d-\d\d)<", effect_chart(shape)) == ["2021-12-25", "2023-01-08"]
    for has_numbers in (True, False):
        plain = effect("a", ["x", "y"], has_numbers=has_numbers)
        assert ">odds<" in effect_chart(plain)
        assert ">odds<" not in effect_chart({**plain, "unit": "score"})


def test_texts_that_are_shown_are_short_and_plain():
    found = shown({"text": "a\nb", "name": HUGE, HUGE: ["x\ny"], "u": "a\u202eb", "n": 1.5, "none": None})
    assert found["text"] == "a\nb"
    assert len(found["name"]) == 120
    assert max(map(len, found)) == 300
    assert list(found.values())[2:] == [["x y"], "a b", 1.5, None]
