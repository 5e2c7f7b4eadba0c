"""A report as one page of HTML that loads nothing and runs nothing but its own script."""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from qmedoid.exports.javascript import engine
from qmedoid.markup.html import Html, element, join, plain
from qmedoid.markup.page import style
from qmedoid.markup.policy import data_block, policy_element, script_element, style_element
from qmedoid.model_report import sections
from qmedoid.model_report.controls import operating_section, what_if_section
from qmedoid.model_report.sections import Section

SCRIPTS = ("base.js", "slider.js", "controls.js", "medoids.js", "whatif.js")
"""Files of the page's script, in the order in which they run."""
_LONG = {"card": 100_000, "drawing": 100_000, "text": 20_000, "command": 2_000, "about": 2_000}
"""Characters that are shown of longer texts, by their keys; all others are names, cells and sentences."""
_SENTENCE = 1_000
_SENTENCES = frozenset({"why", "do", "title", "holds", "reason", "absent", "encoding", "decided_by"})


def asset(name: str) -> str:
    """A file of the page's style or script."""
    return files("qmedoid.model_report").joinpath("assets", name).read_text(encoding="utf-8")


def script(*, is_live: bool) -> str:
    """The page's script, with the engine before it where a model is in the page."""
    parts = [engine()] if is_live else []
    return "\n".join([*parts, *(asset(name) for name in SCRIPTS)])


def shown(value: Any, key: str = "") -> Any:
    """A summary in which every text is fit to be shown: short, and without characters that steer what follows."""
    if isinstance(value, str):
        most = _LONG.get(key, _SENTENCE if key in _SENTENCES else 120)
        return plain(value, most, keep="\n" if key in _LONG else "")
    if isinstance(value, Mapping):
        return {plain(name): shown(one, name) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [shown(one, key) for one in value]
    return value


def render(summary: Mapping[str, Any]) -> str:
    """The page of a summary (see `qmedoid.model_report.summary`).

    Every text of the summary is escaped, and shortened where it is long: nothing in a name, a level or a cell is
    markup. A policy within the page lets the browser run this script and nothing else. The same summary gives the same
    text.
    """
    document = summary["live"].get("document")
    parts = shown({name: value for name, value in summary.items() if name not in ("live", "start_record")})
    found = [
        sections.findings(parts),
        sections.fitted(parts),
        sections.figures(parts),
        operating_section(parts),
        what_if_section(parts, shown(summary["live"].get("absent"), "absent")),
        sections.columns(parts),
        sections.medoids(parts),
        sections.circuit(parts),
        sections.stability(parts),
        sections.card(parts),
        sections.made(parts),
    ]
    kept = [one for one in found if one is not None]
    data = {"operating": parts["operating"] and {**parts["operating"], "curves": None}, "whatIf": None}
    blocks = []
    if document is not None:
        ranked = sorted(summary["columns"], key=lambda column: -(column["importance"] or 0.0))
        names = [column["name"] for column in ranked]
        data["whatIf"] = {
            "start": summary["start_record"],
            "order": names,
            "positive": summary["model"].get("positive"),
        }
        blocks.append(data_block("live-data", document))
    blocks.append(data_block("report-data", data))
    css, javascript = style(), script(is_live=document is not None)
    head = _head(_title(parts), css, javascript)
    body = _body(parts, kept, [*blocks, script_element(javascript)])
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _title(summary: Mapping[str, Any]) -> str:
    target = summary["model"]["target"]
    return "Model report" if target is None else f"Model report: {target}"


def _head(title: str, css: str, javascript: str) -> Html:
    return element(
        "head",
        Html("\n"),
        # Browsers look for the encoding within the first kilobyte, and the policy must come before what it rules.
        element("meta", charset="utf-8"),
        policy_element([javascript], [css]),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        style_element(css),
    )


def _body(summary: Mapping[str, Any], parts: list[Section], scripts: list[Html]) -> Html:
    made = summary["made"]
    of = [made["model"], made["table"] and f"on {made['table']}", f"qmedoid {made['qmedoid']}", made["time"]]
    links = [element("li", element("a", part.title, href=f"#{part.anchor}")) for part in parts]
    return element(
        "body",
        element("a", "Skip to the findings", href="#findings", class_="skip"),
        element("header", element("h1", _title(summary)), element("p", " · ".join(filter(None, of)), class_="note")),
        element("nav", element("ol", *links), aria_label="Contents"),
        element("main", join([part.html for part in parts], "\n"), id="main"),
        *scripts,
        class_="qmedoid",
    )
