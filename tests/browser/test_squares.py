"""Squares of rows: why each was decided so, other colors at another cut, and a start of the what-if panel."""

import numpy as np
import pytest
from summaries import summary, with_model

from model_kinds import exported
from qmedoid.report.summary import render

MIXED = "categories, dates and missing cells"
CLASSES = "(all) => all.map((one) => one.className.replace('sq ', ''))"


def outcomes(found, alerts):
    """What becomes of each square at a number of alerts, by the definition."""
    names = {(1, True): "found", (1, False): "missed", (0, True): "false", (0, False): "alone"}
    return [names[code, rank < alerts] for code, rank in zip(found["class"], found["rank"], strict=True)]


@pytest.fixture
def opened(open_page):
    return open_page(render(summary()))


def test_squares_have_the_colors_of_the_cut_and_follow_the_slider(opened):
    found, page = summary(), opened.page
    squares, stops = found["squares"], found["operating"]["stops"]
    assert page.eval_on_selector_all(".sq", CLASSES) == outcomes(squares, found["operating"]["start"])
    for by, place in (("op-stop", 3), ("sq-cut", 150), ("op-stop", 200)):
        page.evaluate("([id, place]) => { const one = document.getElementById(id); one.value = place; "
                      "one.dispatchEvent(new Event('input')); }", [by, place])  # fmt: skip
        assert page.eval_on_selector_all(".sq", CLASSES) == outcomes(squares, stops["alerts"][place])
        assert page.input_value("#op-stop") == page.input_value("#sq-cut") == str(place)
        counts = [page.inner_text(f"#sq-{name}") for name in ("found", "missed", "false", "alone")]
        assert counts == [f"{stops[name][place]:,}" for name in ("tp", "fn", "fp", "tn")]
        label = page.get_attribute(".sq >> nth=0", "aria-label")
        assert ("found" in label) == (stops["alerts"][place] > squares["rank"][0])
    opened.assert_clean()


def test_a_square_says_why_by_click_and_by_keys(opened):
    page, names = opened.page, summary()["squares"]["columns"]
    page.click(".sq >> nth=4")
    text = page.inner_text("#sq-why")
    assert text.startswith("Row 4: probability of age: 96 %, called age, but it is no.")
    assert f"{names[0]} {names[1]} ×2.0" in text
    assert f"{names[1]} ÷2.0" in text
    # Keys move along the line, to the next line, and to both ends; one square is in the order of the tab key.
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert page.inner_text("#sq-why").startswith("Row 5:")
    page.keyboard.press("End")
    page.keyboard.press("Space")
    assert page.inner_text("#sq-why").startswith("Row 39:")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    tops = page.evaluate("[document.activeElement, document.querySelector('.sq')].map((one) => one.offsetTop)")
    assert tops[0] > tops[1] or page.evaluate("document.activeElement.previousElementSibling !== null")
    assert page.locator(".sq[tabindex='0']").count() == 1
    opened.assert_clean()


def test_a_row_of_the_table_starts_the_what_if_panel(open_page):
    found = exported(MIXED, 300)
    base = summary()
    names = [column.name for column in found.saved.model.contract.columns]
    record = found.records[5]
    base["squares"] |= {
        "columns": names, "used": list(range(len(names))), "why": None,
        "cells": [[record.get(name) for name in names]] * 40,
    }  # fmt: skip
    opened = open_page(render(with_model(found.saved, found.records[0], base)), unfold=False)
    page = opened.page
    page.click(".sq >> nth=7")
    page.click("#sq-change")
    assert page.evaluate("document.getElementById('what-if').open")
    expected = found.saved.predict_proba(found.table.slice(5, 1))[0]
    answer = page.evaluate("JSON.parse(document.getElementById('wi-panel').dataset.answer)")
    np.testing.assert_allclose(answer, expected, atol=1e-9, rtol=0)
    opened.assert_clean()
