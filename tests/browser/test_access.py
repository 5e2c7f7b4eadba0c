"""Pages can be read and used by everyone: axe-core, keys alone, narrow screens, print, and without a script."""

from functools import cache
from pathlib import Path

import pytest
from summaries import HOSTILE, renamed, summary, with_model

from model_kinds import exported
from qmedoid.report.summary import render

MIXED = "categories, dates and missing cells"
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"
SECTIONS = [
    "Operating point", "What if", "Errors", "Slices", "Columns and learned shapes", "All figures", "Checks",
    "What was fitted", "Medoids", "How this page was made",
]  # fmt: skip
FOCUSABLE = "a[href], button:not([tabindex='-1']), input, select, summary, [tabindex='0']"


@cache
def whole_page() -> str:
    """Every section, and a live model."""
    found = exported(MIXED, 1000)
    return render(with_model(found.saved, found.records[0]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(scheme, open_page):
    axe = pytest.importorskip("axe_playwright_python", reason="not installed: pip install axe-playwright-python")
    (source,) = Path(axe.__file__).parent.glob("**/axe.min.js")
    opened = open_page(whole_page(), color_scheme=scheme)
    page = opened.page
    page.evaluate(OPEN_ALL)
    page.evaluate(source.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert len(found["passes"]) > 20
    assert [
        (one["id"], [node["target"] for node in one["nodes"]][:3], one["nodes"][0]["failureSummary"])
        for one in found["violations"]
    ] == []


def test_keys_alone_reach_everything_and_the_focus_is_seen(open_page):
    page = open_page(whole_page()).page
    page.evaluate("""(focusable) => {
      window.seen = new Set();
      window.unseen = [];
      document.addEventListener("focusin", (event) => {
        window.seen.add(event.target);
        const look = getComputedStyle(event.target);
        if (look.outlineStyle === "none") window.unseen.push(event.target.outerHTML.slice(0, 80));
      });
      window.missed = () => [...document.querySelectorAll(focusable)]
        .filter((one) => one.checkVisibility({ contentVisibilityAuto: true }) && !window.seen.has(one))
        .map((one) => one.outerHTML.slice(0, 80));
    }""", FOCUSABLE)  # fmt: skip
    count = page.locator(FOCUSABLE).count()
    for _ in range(count + 30):
        page.keyboard.press("Tab")
        if not page.evaluate("window.missed().length"):
            break
    assert page.evaluate("window.missed()") == []
    assert page.evaluate("window.unseen") == []
    # What is folded opens by a key.
    page.focus("details:not([open]) > summary")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open")


def test_parts_are_folded_and_a_link_to_one_opens_it(open_page):
    page = open_page(whole_page(), unfold=False).page
    parts = page.eval_on_selector_all("details.part h2", "(all) => all.map((one) => one.textContent)")
    assert parts == SECTIONS
    assert page.locator("details.part[open]").count() == 0
    page.click(".look a[href='#checks'] >> nth=-1")
    assert page.evaluate("document.getElementById('checks').open")


@pytest.mark.parametrize("kind", ["plain", "hostile"])
def test_nothing_scrolls_sideways_at_320_pixels(kind, open_page):
    if kind == "plain":
        html = whole_page()
    else:
        found = exported(MIXED, 1000)
        html = render(renamed(found.saved, found.records[0], [text[:2000] for text in HOSTILE]))
    page = open_page(html, width=320).page
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_print_opens_what_is_folded_and_folds_it_again(open_page):
    page = open_page(render(summary())).page
    folded = page.locator("details:not([open])").count()
    assert folded > 5
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    printed = page.inner_text("body")
    assert [
        title for title in [*SECTIONS, "Parameters of the fit", "Calibration by bins"] if title not in printed
    ] == []
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == folded


def test_pictures_and_figures_need_no_script(open_page):
    opened = open_page(render(summary()), java_script_enabled=False)
    page = opened.page
    assert page.locator("figure svg").count() >= 7
    assert page.locator(".sq").count() == 40
    assert page.text_content("#at-precision") == "precision 40 &lt;"
    assert page.text_content("#at-tp") == f"{summary()['operating']['stops']['tp'][40]:,}"


def test_every_picture_has_a_table_twin(open_page):
    page = open_page(render(summary())).page
    for chart in page.query_selector_all("figure.chart"):
        assert chart.query_selector("svg[role='img'][aria-label]") is not None
        assert chart.query_selector("details table tbody tr") is not None


def test_colors_that_are_forced_leave_the_pictures_readable(open_page):
    page = open_page(render(summary()), forced_colors="active").page
    strokes = page.eval_on_selector_all(".curve", "(all) => all.map((one) => getComputedStyle(one).stroke)")
    assert strokes
    assert all(stroke != "none" for stroke in strokes)
