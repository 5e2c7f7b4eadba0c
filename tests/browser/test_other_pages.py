"""Pages of explanations, studies and runs, and views of notebooks: accessible, narrow, and without effect of texts."""

from functools import cache
from pathlib import Path

import pytest
from benchmarks.studies.document import Document, Heading, Section, Table, html_page
from benchmarks.studies.panels import Curve, CurvePanel, confusion_grid, curve_grid
from summaries import HOSTILE

from model_kinds import exported
from qmedoid.markup.page import render

MIXED = "categories, dates and missing cells"
OPEN_ALL = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


def explanation() -> str:
    found = exported(MIXED, 300)
    return found.saved.explain(found.table, 0).to_html()


def study() -> str:
    text = HOSTILE[0]
    table = Table("t", text, [Heading(text), Heading("a", text), Heading("±", text, is_error=True)], [[text, 1.0, 0.1]])
    curves = curve_grid("c", text, [CurvePanel(text, [0, 1], [Curve(text, [0, 1])])], x_label=text, y_label=text)
    matrix = confusion_grid("m", text, [(text, [[1, 2], [3, 4]], [text[:20], "b"])], text)
    return html_page(Document(text, [text], [text], [Section(text, [text], [table, curves, matrix])], {text: text}))


def views() -> str:
    """Views of a notebook, as a page has them."""
    found = exported(MIXED, 300)
    saved, rows = found.saved, found.table.slice(0, 60)
    shown = [saved, saved.explain(rows, 0)]
    shown += [saved.effect(rows, name, bins=3) for name in saved.contract.names[:3]]
    parts = "".join(one._repr_html_() for one in shown)
    return f'<!DOCTYPE html><html lang="en"><title>x</title><body><main><h1>x</h1>{parts}</main></body></html>'


MADE = {"explanation": cache(explanation), "study": cache(study), "views": cache(views)}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", MADE)
def test_axe_finds_nothing(kind, scheme, open_page):
    axe = pytest.importorskip("axe_playwright_python", reason="not installed: pip install axe-playwright-python")
    (source,) = Path(axe.__file__).parent.glob("**/axe.min.js")
    opened = open_page(MADE[kind](), color_scheme=scheme)
    opened.page.evaluate(OPEN_ALL)
    opened.page.evaluate(source.read_text(encoding="utf-8"))
    found = opened.page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert [(one["id"], one["nodes"][0]["target"]) for one in found["violations"]] == []
    opened.assert_clean()


@pytest.mark.parametrize("kind", MADE)
def test_nothing_scrolls_sideways_at_360_pixels(kind, open_page):
    page = open_page(MADE[kind](), width=360).page
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_texts_of_a_study_have_no_effect(open_page):
    opened = open_page(study())
    assert opened.page.evaluate("document.querySelectorAll('script, img, iframe').length") == 0
    assert HOSTILE[0] in opened.page.evaluate("document.body.textContent")


def test_policy_blocks_what_a_template_would_let_in(open_page):
    bad = "<script>window.hacked = 1</script>"
    html = html_page(Document("D", [], [], [])).replace('<main id="main">', f'<main id="main">{bad}')
    opened = open_page(html)
    assert bad in html
    assert opened.page.evaluate("typeof window.hacked") == "undefined"
    assert opened.violations


def test_view_keeps_its_style_to_itself(open_page):
    view = render("notebook/model.html", title="t", facts=[("a", "b")])
    page = open_page(f"<!DOCTYPE html><html lang='en'><body><p id='x'>x</p>{view}</body></html>").page
    alone = open_page("<!DOCTYPE html><html lang='en'><body><p id='x'>x</p></body></html>").page
    look = "(() => { const s = getComputedStyle(document.getElementById('x')); return [s.font, s.margin, s.color]; })()"
    assert page.evaluate(look) == alone.evaluate(look)
