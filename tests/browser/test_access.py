"""Pages can be read and used by everyone: axe-core, keys alone, narrow screens, print, and without a script."""

import re
import unicodedata
import zlib
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
    "What was fitted", "Medoids", "Stability", "Model card", "How this page was made",
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


def pdf_text(pdf: bytes) -> str:
    """The text of a PDF of Chromium, without spaces: glyphs by the map of their font."""
    objects = {int(number): body for number, body in re.findall(rb"(\d+) 0 obj\b(.*?)endobj", pdf, re.DOTALL)}

    def stream(body: bytes) -> str:
        found = re.search(rb"stream\r?\n(.*?)\r?\nendstream", body, re.DOTALL)
        if found is None:
            return ""
        return (zlib.decompress(found[1]) if b"FlateDecode" in body else found[1]).decode("latin-1")

    maps: dict[str, dict[int, str]] = {}
    for number, body in objects.items():
        unicode = re.search(rb"/ToUnicode (\d+) 0 R", body)
        if unicode is not None:
            own = maps.setdefault(f"F{number}", {})
            said = stream(objects[int(unicode[1])])
            for block in re.findall(r"beginbfchar(.*?)endbfchar", said, re.DOTALL):
                own |= {int(a, 16): letters(b) for a, b in re.findall(r"<(\w+)> <(\w+)>", block)}
            for block in re.findall(r"beginbfrange(.*?)endbfrange", said, re.DOTALL):
                for low, high, start in re.findall(r"<(\w+)> <(\w+)> <(\w+)>", block):
                    for place in range(int(low, 16), int(high, 16) + 1):
                        own[place] = chr(int(start, 16) + place - int(low, 16))
    shown = []
    for body in objects.values():
        font = ""
        if b"/Length" not in body or b"/FontFile" in body:
            continue
        try:
            content = stream(body)
        except zlib.error:
            continue
        for name, glyphs in re.findall(r"/(F\d+) [\d.]+ Tf|<([0-9A-Fa-f]+)>(?=[^/]*?T[jJ])", content):
            if name:
                font = name
            else:
                places = [int(glyphs[i : i + 4], 16) for i in range(0, len(glyphs), 4)]
                shown += [maps.get(font, {}).get(place, "") for place in places]
    return re.sub(r"\s", "", unicodedata.normalize("NFKC", "".join(shown)))


def letters(code: str) -> str:
    return bytes.fromhex(code).decode("utf-16-be")


def test_print_has_every_section_and_what_is_folded(open_page):
    opened = open_page(whole_page())
    text = pdf_text(opened.page.pdf())
    folded = ["Parameters of the fit", "Calibration by bins", "ROC: 13 of 13 points of the curve", "Why: city"]
    for title in [*SECTIONS, *folded, "A card of age", "Sum: log-odds"]:
        assert title.replace(" ", "") in text, title
    opened.assert_clean()


def test_print_opens_what_is_folded_and_folds_it_again(open_page):
    page = open_page(render(summary())).page
    folded = page.locator("details:not([open])").count()
    assert folded > 5
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
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
