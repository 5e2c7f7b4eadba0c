"""The operating-point slider prints what the summary says, within a frame."""

import numpy as np
import pytest
from summaries import operating, summary

from qmedoid.report.summary import render

N_ROWS = 2000
READ = """() => Object.fromEntries(
  [...document.querySelectorAll("[id^='at-']")].map((one) => [one.id.slice(3), one.textContent]))"""
MOVE = """(places) => {
  const slide = document.getElementById("op-stop"), times = [];
  for (const place of places) {
    const begin = performance.now();
    slide.value = String(place);
    slide.dispatchEvent(new Event("input", { bubbles: true }));
    document.body.offsetHeight;
    document.querySelector(".marker").getBoundingClientRect();
    times.push(performance.now() - begin);
  }
  return times;
}"""


def expected(found: dict, place: int) -> dict:
    stops = found["stops"]
    return {
        **{name: texts[place] for name, texts in stops["texts"].items()},
        # The figure itself has a cell of its own.
        **{name: f"&lt;{place} to 9" for name in stops["texts"] if name.endswith("_interval")},
        **{name: f"{stops[name][place]:,}" for name in ("tp", "fp", "fn", "tn")},
        "threshold": stops["threshold_text"][place],
        "command": stops["command"][place],
    }


def markers(page) -> dict[str, tuple[float, float]]:
    """Where each marker is, as values on its axes."""
    found = {}
    for mark in page.query_selector_all(".marker"):
        x, y = mark.get_attribute("transform").removeprefix("translate(").rstrip(")").split()
        values = []
        for name, at in (("data-x", float(x)), ("data-y", float(y))):
            low, high, start, end, is_log = map(float, mark.get_attribute(name).split())
            share = (at - start) / (end - start)
            values.append(low * (high / low) ** share if is_log else low + share * (high - low))
        found[mark.get_attribute("data-curve")] = tuple(values)
    return found


@pytest.fixture
def opened(open_page):
    return open_page(render(summary(n_rows=N_ROWS)))


def test_slider_prints_the_texts_of_the_summary_at_every_stop(opened):
    found, page = operating(N_ROWS), opened.page
    last = len(found["stops"]["alerts"]) - 1
    assert page.evaluate(READ) == expected(found, found["start"])
    for place in np.linspace(0, last, 50).round().astype(int).tolist():
        page.evaluate(MOVE, [place])
        assert page.evaluate(READ) == expected(found, place)
        assert page.input_value("#op-alerts") == str(found["stops"]["alerts"][place])
        assert page.get_attribute("#op-stop", "aria-valuetext").startswith(
            f"{place:,} alerts, precision precision {place}"
        )
    opened.assert_clean()


def test_slider_moves_within_a_frame(opened):
    times = opened.page.evaluate(MOVE, list(range(0, 2000, 20)))
    assert np.median(times) <= 16.0


def test_slider_moves_by_one_stop_with_arrow_keys_and_to_the_ends(opened):
    page = opened.page
    page.focus("#op-stop")
    places = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "ArrowRight", "Home", "ArrowLeft"):
        page.keyboard.press(key)
        places.append(page.inner_text("#at-threshold"))
    assert places == ["T401<", "T402<", "T401<", "T2000<", "T2000<", "T0<", "T0<"]


def test_slider_follows_buttons_and_the_number_field(opened):
    page = opened.page
    page.click("#op-more")
    assert page.inner_text("#at-threshold") == "T401<"
    page.click("#op-less")
    page.click("#op-less")
    assert page.inner_text("#at-threshold") == "T399<"
    page.fill("#op-alerts", "1234")
    assert page.inner_text("#at-threshold") == "T1234<"
    assert page.input_value("#op-stop") == "1234"
    page.fill("#op-alerts", "999999")
    page.press("#op-alerts", "Tab")
    assert page.input_value("#op-alerts") == "2000"
    page.click("#op-back")
    assert page.inner_text("#at-threshold") == "T400<"


def test_slider_moves_the_markers_of_the_curves(opened):
    found, page = operating(N_ROWS), opened.page
    stops, n = found["stops"], found["rows"]
    for place in (100, 700):
        page.evaluate(MOVE, [place])
        tp, fp, fn, tn = (stops[name][place] for name in ("tp", "fp", "fn", "tn"))
        recall = tp / (tp + fn)
        at = markers(page)
        assert at["pr"] == pytest.approx((recall, tp / (tp + fp)), abs=1e-3)
        assert at["roc"] == pytest.approx((fp / (fp + tn), recall), abs=1e-3)
        assert at["recall_by_alert_rate"] == pytest.approx((place / n, recall), abs=1e-3)
    # Without an alert there is no precision, and no place for its marker.
    page.evaluate(MOVE, [0])
    assert page.evaluate("[...document.querySelectorAll('.marker')].map((one) => one.hasAttribute('hidden'))") == [
        True, False, False,
    ]  # fmt: skip


def test_slider_says_where_it_is_once_it_rests(opened):
    page = opened.page
    page.evaluate(MOVE, [5, 6, 7])
    assert page.text_content("#op-said") in ("", page.get_attribute("#op-stop", "aria-valuetext"))
    opened.wait("document.getElementById('op-said').textContent.startsWith('7 alerts')")


def test_slider_copies_its_command(opened):
    page = opened.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#op-more")
    page.click("#op-copy")
    opened.wait("document.getElementById('op-copied').textContent !== ''")
    assert page.inner_text("#op-copied") == "Copied."
    assert page.evaluate("navigator.clipboard.readText()") == "--threshold 0.0401"
