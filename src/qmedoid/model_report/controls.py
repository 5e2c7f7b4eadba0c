"""The parts of a report's page that answer: the operating-point slider and the what-if panel."""

from collections.abc import Mapping
from typing import Any

from qmedoid.markup.html import Html, element, join, table
from qmedoid.markup.svg import count
from qmedoid.model_report.charts import curve_charts
from qmedoid.model_report.sections import Section, paragraph

FIGURES = {
    "alerts": "Alerts",
    "alert_rate": "Alert rate",
    "per_day": "Alerts per day",
    "precision": "Precision",
    "recall": "Recall",
    "f1": "F1",
    "accuracy": "Accuracy",
    "cost": "Cost, in false alerts",
}
"""Figures of a stop by their keys, as they stand in the page; one that a summary does not have is left out."""


def operating_section(summary: Mapping[str, Any]) -> Section | None:
    """The slider with figures, counts, the command and the curves, at the present cut."""
    found = summary["operating"]
    if found is None:
        return None
    start, stops = found["start"], found["stops"]
    content = [
        paragraph(found.get("about")),
        _slider(found, start),
        element("div", _figures(found, start), _matrix(found, start), class_="side"),
        _command(stops["command"][start]),
        element("p", "", id="op-said", role="status", class_="hidden"),
    ]
    curves = curve_charts(found)
    if curves:
        content += [element("h3", "Curves"), element("p", "The diamond is the operating point.", class_="note")]
        content.append(element("div", *curves, class_="charts"))
    return Section("operating", "Operating point", join(content))


def _button(name: str, words: str, label: str | None = None) -> Html:
    return element("button", words, type="button", id=name, aria_label=label)


def _slider(found: Mapping[str, Any], start: int) -> Html:
    stops = found["stops"]
    alerts = stops["alerts"]
    slide = element(
        "input", type="range", id="op-stop", min=0, max=len(alerts) - 1, step=1, value=start,
        aria_valuetext=f"{count(alerts[start])} alerts", aria_describedby="op-keys",
    )  # fmt: skip
    field = element("input", type="number", id="op-alerts", min=alerts[0], max=alerts[-1], step=1, value=alerts[start])
    return element(
        "div",
        element("label", "Cut: from few alerts to many", for_="op-stop"),
        element("div", _button("op-less", "−", "One stop fewer alerts"), slide,
                _button("op-more", "+", "One stop more alerts"), class_="slide"),
        element("div", element("label", "Number of alerts", for_="op-alerts"), field,
                _button("op-back", "Back to the model's own cut"), class_="row"),
        element("p", f"Arrow keys move by one of {count(len(alerts))} stops, Home and End to the ends. Alerts are of "
                f"{count(found['rows'])} rows, of which {count(found['positives'])} are {found['positive']}.",
                id="op-keys", class_="note"),
        class_="controls", role="group", aria_labelledby="operating-title",
    )  # fmt: skip


def _figures(found: Mapping[str, Any], start: int) -> Html:
    stops = found["stops"]
    texts = stops["texts"]
    rows = [("Threshold", element("span", stops["threshold_text"][start], id="at-threshold"), "")]
    for key, name in FIGURES.items():
        if key in texts:
            interval = texts.get(f"{key}_interval")
            within = "" if interval is None else element("span", interval[start], id=f"at-{key}_interval")
            rows.append((name, element("span", texts[key][start], id=f"at-{key}"), within))
    return table("At this cut", ("figure", "value", "95 % interval"), rows, numbers=(1,))


def _matrix(found: Mapping[str, Any], start: int) -> Html:
    stops, positive, negative = found["stops"], found["positive"], found["negative"]

    def cell(key: str) -> Html:
        return element("span", count(stops[key][start]), id=f"at-{key}")

    rows = [(str(positive), cell("tp"), cell("fn")), (str(negative), cell("fp"), cell("tn"))]
    head = ("true class", f"called {positive}", f"called {negative}")
    return table("Confusion matrix at this cut", head, rows, numbers=(1, 2))


def _command(command: str) -> Html:
    return element(
        "div", element("span", "To decide so: "), element("code", command, id="at-command", tabindex=0),
        _button("op-copy", "Copy"), element("span", "", id="op-copied", role="status"), class_="row command",
    )  # fmt: skip


def what_if_section(summary: Mapping[str, Any], absent: str | None) -> Section:
    """The panel that scores a record with the model itself; its script fills it."""
    title = "What if"
    if absent is not None:
        return Section("what-if", title, element("p", absent))
    about = (
        "Change cells of a record and see what the model says. The model itself is in this page and computes the "
        "answer here: nothing leaves your computer."
    )
    content = [
        element("p", about),
        element("noscript", element("p", "This panel needs JavaScript.")),
        element("div", element("p", "The model is being loaded.", id="wi-state", role="status"), id="wi-panel"),
    ]
    del summary
    return Section("what-if", title, join(content))
