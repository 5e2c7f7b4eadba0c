"""Reports from a table to the browser: fitted, summarized, drawn, opened."""

import json

import numpy as np
import pyarrow as pa
import pytest
from summaries import HOSTILE, HUGE

from few_trees import few_trees
from qmedoid import MedoidClassifier, SavedModel
from qmedoid.report.reading import look_at_data
from qmedoid.report.summary import ReportSettings, summarize, write_report

NAMES = ["<script>window.hacked = 1</script>", '"><img src=x onerror=hack()>', "javascript:hack()", "=1+1", "{{7*7}}"]


def hostile_table(longest: str) -> tuple[pa.Table, pa.Array]:
    """Names, levels, cells and classes that would do harm in a page that does not escape them."""
    rng, n = np.random.default_rng(0), 300
    y = rng.integers(0, 2, n)
    levels = np.array([*HOSTILE[:5]], dtype=object)
    cells = levels[(rng.integers(0, 4, n) + y) % 5]
    cells[:4] = longest
    columns = {
        NAMES[0]: rng.normal(size=n) + y,
        NAMES[1]: pa.array(cells.tolist(), mask=np.arange(n) % 20 == 19),
        NAMES[2]: rng.normal(size=n) - y,
        NAMES[3]: pa.array(levels[rng.integers(0, 3, n)].tolist()),
        NAMES[4]: rng.normal(size=n),
    }
    return pa.table(columns), pa.array([["</title><script>hack()</script>", "&amp;<b>yes"][one] for one in y])


@pytest.mark.parametrize("longest", ["short", "huge"])
def test_report_of_a_hostile_table_shows_its_texts_as_texts(longest, open_page, tmp_path):
    table, y = hostile_table(HOSTILE[5] if longest == "short" else HUGE)
    with few_trees():
        saved = SavedModel(MedoidClassifier(random_state=0).fit(table, y).model_)
    data = table.append_column("<svg onload=hack()>", y)
    looked = look_at_data(saved.model, data, target="<svg onload=hack()>")
    names = {"model": "<b>model", "table": "../<i>table", "command": "qmedoid report '<u>'"}
    summary = summarize(saved.model, looked, names=names, settings=ReportSettings(all_rows=True))
    written = write_report(summary, tmp_path / "report.html")
    assert written.bytes <= 3_000_000
    html = written.path.read_text(encoding="utf-8")
    opened = open_page(html)
    page = opened.page
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.evaluate("document.querySelectorAll('img, b, i, u, svg[onload]').length") == 0
    text = page.evaluate("document.body.innerText + document.title")
    for name in NAMES:
        assert name in page.evaluate("document.body.textContent")
    assert "<b>model" in text
    # A model with a text of 10 MB is too large for a page, which then says so.
    assert ('id="live-data"' in html) == (longest == "short")
    if longest == "short":
        records = table.slice(0, 50).to_pylist()
        found = page.evaluate("(all) => all.map((one) => report.live.score(one).probabilities)", records)
        np.testing.assert_allclose(found, saved.predict_proba(table.slice(0, 50)), atol=1e-9, rtol=0)
        assert json.loads(page.get_attribute("#wi-panel", "data-answer"))
    opened.assert_clean()
