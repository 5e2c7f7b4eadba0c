"""Foreign texts are shown as texts, and a page that held a foreign script would not run it."""

import pytest
from summaries import HOSTILE, HUGE, renamed, summary, with_model

from model_kinds import exported
from qmedoid.report.summary import render

MIXED = "categories, dates and missing cells"
ATTACKS = {
    "a script in the page": "<script>window.hacked = 1</script>",
    "a handler": '<img src="data:," onerror="window.hacked = 1"><p onclick="window.hacked = 1">x</p>',
    "a script from elsewhere": '<script src="https://example.com/x.js"></script>',
    "a picture from elsewhere": '<img src="https://example.com/x.png">',
    "a style": '<p style="color: red">x</p><style>body { display: none }</style>',
    "a frame": '<iframe src="https://example.com/"></iframe>',
}


@pytest.fixture(scope="module")
def hostile_page():
    found = exported(MIXED, 1000)
    return render(renamed(found.saved, found.records[0], HOSTILE))


def test_hostile_texts_are_shown_as_texts(hostile_page, open_page):
    opened = open_page(hostile_page)
    page = opened.page
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.scripts.length") == 3  # two blocks of data and the page's own script
    assert page.evaluate("document.querySelectorAll('img, iframe, object, embed, form, svg [onload]').length") == 0
    assert page.evaluate("[...document.links].every((one) => one.getAttribute('href').startsWith('#'))")
    text = page.evaluate("document.body.textContent")
    for sign in HOSTILE[:5]:
        assert sign in text, sign
    opened.assert_clean()


@pytest.mark.parametrize("kind", ["live", "huge"])
def test_long_texts_are_shortened_wherever_they_are_shown(kind, hostile_page, open_page):
    """A text of 10 MB is nowhere in a page without a live model, which has names and levels as they are."""
    html = hostile_page if kind == "live" else render(summary([HUGE, *HOSTILE]))
    assert len(html) < 2_000_000
    page = open_page(html).page
    longest = page.evaluate("""() => {
      const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      let most = 0;
      while (walk.nextNode())
        if (walk.currentNode.parentElement.localName !== "script") most = Math.max(most, walk.currentNode.data.length);
      return most;
    }""")
    assert longest <= 2000
    labels = page.evaluate("[...document.querySelectorAll('[aria-label]')].map((one) => one.ariaLabel.length)")
    assert max(labels) <= 600


def test_hostile_levels_are_chosen_whole(hostile_page, open_page):
    """An option is cut for the eye; the record has the level itself, and its answer has no issue."""
    opened = open_page(hostile_page)
    options = opened.page.locator(".field select").filter(has_text="window.hacked = 1").first
    options.select_option(index=5)
    opened.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert opened.page.get_attribute("#wi-panel", "data-answer") != ""
    assert opened.page.locator(".issues li").count() == 0
    assert opened.page.evaluate("window.hacked") is None


@pytest.mark.parametrize("attack", ATTACKS)
def test_policy_blocks_what_escaping_would_have_let_through(attack, open_page):
    html = render(summary()).replace("<main", f"{ATTACKS[attack]}<main")
    opened = open_page(html)
    opened.page.evaluate("document.querySelectorAll('p[onclick]').forEach((one) => one.click())")
    assert opened.page.evaluate("window.hacked") is None
    assert opened.page.is_visible("main")
    assert opened.violations
    # What the policy blocks is asked for and refused within the browser: nothing was sent.
    asked = [url for url in opened.requests if url.startswith("http")]
    assert [(url, "csp") for url in asked] == opened.blocked


def test_policy_blocks_markup_and_scripts_made_of_texts(open_page):
    page = open_page(render(summary())).page
    attempts = """() => [
      () => { document.body.innerHTML += "<p>x</p>"; },
      () => {
        const one = document.createElement("script");
        one.textContent = "window.hacked = 1";
        document.body.append(one);
      },
      () => { document.body.setAttribute("onclick", "window.hacked = 1"); document.body.click(); },
      () => { document.write("<p>x</p>"); },
    ].map((attempt) => { try { attempt(); return "ran"; } catch (error) { return error.name; } })"""
    outcomes = page.evaluate(attempts)
    assert page.evaluate("window.hacked") is None
    assert outcomes.count("TypeError") >= 3, outcomes


def test_page_without_a_live_model_says_why(open_page):
    opened = open_page(render(summary()))
    assert opened.page.inner_text("#what-if p") == "There is no live model here."
    assert opened.page.evaluate("typeof qmedoid") == "undefined"
    opened.assert_clean()


def test_page_says_when_its_model_cannot_be_loaded(open_page):
    found = exported(MIXED, 1000)
    broken = with_model(found.saved, found.records[0])
    broken["live"] = {"document": {**broken["live"]["document"], "format": 99}}
    html = render(broken)
    opened = open_page(html.replace('id="live-data"', "id='live-data'"))  # not waited for
    opened.wait("document.getElementById('wi-panel').textContent.includes('could not be loaded')")
