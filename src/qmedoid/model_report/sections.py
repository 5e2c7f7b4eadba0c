"""The parts of a report's page that need no script: what was found, fitted and measured, and what matters."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from qmedoid.markup.charts import ODDS
from qmedoid.markup.html import Child, Html, element, folded, join, table
from qmedoid.markup.markdown import html_of_markdown
from qmedoid.markup.svg import count, label, percent
from qmedoid.model_report.charts import bar_chart, calibration_chart, effect_chart, groups_chart, line_chart

Summary = Mapping[str, Any]
_STATUS = {
    "problem": ("Problems", "✕"),
    "tip": ("Tips", "!"),
    "passed": ("Passed", "✓"),
    "not applicable": ("Not applicable", "–"),
    "ignored": ("Ignored", "–"),
}
_MOST_BARS = 15


class Section(NamedTuple):
    """A part of the page with a heading and a place in the contents."""

    anchor: str
    title: str
    content: Html

    @property
    def html(self) -> Html:
        """The section as an element."""
        heading = element("h2", self.title, id=f"{self.anchor}-title")
        return element("section", heading, self.content, id=self.anchor, aria_labelledby=f"{self.anchor}-title")


def paragraph(text: str | None, class_: str | None = None) -> Html | None:
    """A paragraph, or nothing where there is no text."""
    return element("p", text, class_=class_) if text else None


def findings(summary: Summary) -> Section:
    """Problems first and open, then tips, and what is fine folded."""
    parts: list[Html] = []
    counted = []
    for status, (title, sign) in _STATUS.items():
        own = [one for one in summary["findings"] if one["status"] == status]
        if not own:
            continue
        counted.append(f"{len(own)} {status if len(own) == 1 else title.lower()}")
        listed = [_finding(one, sign) for one in own]
        kind = status.replace(" ", "-")
        if status in ("problem", "tip"):
            parts.append(element("div", element("h3", title), *listed, class_=f"finds {kind}"))
        else:
            parts.append(folded(f"{title} ({len(own)})", *listed, class_=f"finds {kind}"))
    said = ", ".join(counted) if counted else "No check was made"
    return Section("findings", "Findings", join([element("p", f"{said}."), *parts]))


def _finding(one: Mapping[str, Any], sign: str) -> Html:
    mark = element("span", sign, class_="sign", aria_hidden="true")
    title = join([mark, element("span", one["code"], class_="code"), " ", element("span", one["title"])])
    what = [element("p", element("strong", "Why: "), one["why"])] if one.get("why") else []
    what += [element("p", element("strong", "What to do: "), one["do"])] if one.get("do") else []
    return folded(title, *what, is_open=one["status"] == "problem", class_="finding", id=f"finding-{one['code']}")


def fitted(summary: Summary) -> Section:
    """What was fitted on what."""
    model = summary["model"]
    facts: list[tuple[str, Child]] = [("Target", _text(model["target"]))]
    facts.append(("Classes", _classes(model)))
    if model.get("positive") is not None:
        facts.append(("Positive class", _text(model["positive"])))
    facts.append(("Decided by", model["decided_by"]))
    for part in model["parts"]:
        facts.append((f"Part: {part['name']}", part["text"]))
    for key, name in (("training_rows", "Training rows"), ("n_medoids", "Medoids"), ("n_neighbors", "Neighbors")):
        if model.get(key):
            facts.append((name, count(model[key])))
    content = [definition_list(facts), _columns(summary), _left_out(summary)]
    if model.get("parameters"):
        rows = [(name, "none" if value is None else _text(value)) for name, value in model["parameters"].items()]
        content.append(folded("Parameters of the fit", table("Parameters", ("parameter", "value"), rows)))
    return Section("fitted", "What was fitted", join([*content, paragraph(model.get("holds"), "note")]))


def _text(value: Any) -> str:
    if value is None:
        return "not known"
    if isinstance(value, str):
        return value
    return label(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False, default=str)


def _classes(model: Mapping[str, Any]) -> Html:
    shares = model.get("class_shares") or [None] * len(model["classes"])
    return element(
        "ul",
        *(
            element("li", _text(name) if share is None else f"{_text(name)} ({percent(share)})")
            for name, share in zip(model["classes"], shares, strict=True)
        ),
        class_="plain",
    )


def definition_list(facts: Sequence[tuple[Child, Child]]) -> Html:
    """Names with what is said of them."""
    return element("dl", *(element("div", element("dt", name), element("dd", what)) for name, what in facts))


def _columns(summary: Summary) -> Html:
    rows = [
        (
            one["name"], one["kind"], "yes" if one["read"] else "no", one["encoding"],
            one["missing_text"] or "–", one["text"] or "–",
        )
        for one in summary["columns"]
    ]  # fmt: skip
    head = ("column", "kind", "read", "how it is read", "missing", "importance")
    shown, every = len(rows), summary["n_columns"]
    title = f"Columns ({count(every)})" if shown == every else f"Columns ({count(shown)} of {count(every)})"
    return folded(title, table("Columns of the table", head, rows, numbers=(4, 5)))


def _left_out(summary: Summary) -> Html | None:
    if not summary["left_out"]:
        return None
    rows = [(one["name"], one["reason"]) for one in summary["left_out"]]
    return folded(f"Left out ({count(len(rows))})", table("Columns that were left out", ("column", "reason"), rows))


def figures(summary: Summary) -> Section | None:
    """Figures with intervals, baselines, the confusion matrix and calibration."""
    found, parts, drawn = summary["figures"], [], []
    if found is not None:
        parts.append(paragraph(found["about"]))
        rows = [(one["name"], one["text"]) for one in found["figures"]]
        drawn.append(table("Figures", ("figure", "value and 95 % interval"), rows))
    beside = [None if summary["confusion"] is None else _confusion(summary["confusion"], found and found["about"])]
    beside.append(calibration_chart(summary["calibration"]) if summary["calibration"] is not None else None)
    if any(one is not None for one in beside):
        drawn.append(element("div", *beside, class_="stack"))
    if summary["baselines"] is not None:
        parts.append(_baselines(summary["baselines"]))
    if drawn:
        parts.append(element("div", *drawn, class_="side"))
    parts.append(None if summary.get("table") is None else _table(summary["table"], is_open=found is None))
    kept = [one for one in parts if one is not None]
    return Section("figures", "Figures", join(kept)) if kept else None


def _baselines(baselines: Mapping[str, Any]) -> Html:
    rows = [
        (one["name"], *(element("strong", value, " (best)") if best else value
                        for value, best in zip(one["values"], one["best"], strict=True)))
        for one in baselines["rows"]
    ]  # fmt: skip
    head = ("model", *baselines["figures"])
    made = table("Next to plain baselines", head, rows, numbers=range(1, len(head)))
    return join([element("h3", "Plain baselines"), paragraph(baselines["about"]), made])


def _confusion(confusion: Mapping[str, Any], said: str | None) -> Html:
    """Counts; a cell is the darker, the larger its share of its row."""
    labels = [_text(one) for one in confusion["labels"]]
    rows = []
    for name, counts in zip(labels, confusion["counts"], strict=True):
        total = sum(counts) or 1
        cells = (element("td", count(one), class_=f"num heat{round(10 * one / total)}") for one in counts)
        rows.append(element("tr", element("th", name, scope="row"), *cells))
    head = element("tr", element("th", "true class", scope="col"),
                   *(element("th", f"called {name}", scope="col", class_="num") for name in labels))  # fmt: skip
    made = element("table", element("caption", "Confusion matrix"), element("thead", head), element("tbody", *rows))
    boxed = element("div", made, class_="box", tabindex=0, role="group", aria_label="Confusion matrix")
    return element("figure", element("figcaption", "Confusion matrix"), boxed,
                   None if confusion.get("about") == said else paragraph(confusion.get("about"), "note"),
                   class_="matrix")  # fmt: skip


def _table(about: Mapping[str, Any], *, is_open: bool) -> Html:
    """How the table was decided, and how it differs from what the model knows."""
    rows = [(f"called {one['class']}", one["text"]) for one in about["called"]]
    counts = table("Decisions", ("decision", "rows"), [("all", count(about["rows"])), *rows], numbers=(1,))
    lines = [*about["difference"]["lines"], *about["novelty"]["lines"]] if about.get("novelty") else []
    said = element("ul", *(element("li", line) for line in lines)) if lines else None
    return folded("The table and its decisions", counts, said, is_open=is_open)


def columns(summary: Summary) -> Section | None:
    """Which columns and pairs matter, and their learnt shapes."""
    parts: list[Html] = []
    ranked = sorted((one for one in summary["columns"] if one["importance"]), key=lambda one: -one["importance"])
    if ranked:
        rows = [(one["name"], label(one["importance"])) for one in ranked]
        twin = table("Importance of columns", ("column", "importance"), rows, numbers=(1,))
        top = ranked[:_MOST_BARS]
        title = "Importance of columns" if len(top) == len(ranked) else f"The {len(top)} most important columns"
        bars = [(one["name"], one["importance"], label(one["importance"])) for one in top]
        parts.append(bar_chart(title, bars, twin))
    if summary["pairs"]:
        rows = [(" × ".join(map(str, one["columns"])), one["text"]) for one in summary["pairs"]]
        twin = table("Columns that count together", ("columns", "importance"), rows, numbers=(1,))
        top = summary["pairs"][:_MOST_BARS]
        bars = [(" × ".join(map(str, one["columns"])), one["importance"], label(one["importance"])) for one in top]
        parts.append(bar_chart("Columns that count together", bars, twin, are_long=True))
    if summary["groups"] and summary["groups"]["nodes"]:
        parts.append(_groups(summary["groups"]))
    shapes: list[Html] = []
    if summary["effects"]:
        toward = summary["effects"][0]["toward"]
        about = (
            f"What a column adds toward {toward}, by its value: the mean, the span of 10 % to 90 % of the rows, and "
            "how many rows there are."
        )
        if summary["effects"][0]["unit"] == ODDS:
            about += " Log-odds on one axis, the factor of the odds on the other."
        charts = element("div", *map(effect_chart, summary["effects"]), class_="charts")
        shapes = [element("h3", "Learnt shapes"), element("p", about, class_="note"), charts]
    if not parts and not shapes:
        return None
    unit = "log-odds" if summary["model"].get("probabilistic", True) else "scores"
    about = f"Importance: how far a column moves the {unit}, on average over the rows."
    return Section(
        "columns", "What matters", join([paragraph(about, "note"), element("div", *parts, class_="charts"), *shapes])
    )


def _groups(groups: Mapping[str, Any]) -> Html:
    nodes = groups["nodes"]
    rows = [(f"{nodes[one['a']]['name']} – {nodes[one['b']]['name']}", label(one["weight"])) for one in groups["edges"]]
    twin = table("Columns that are compared together", ("columns", "weight"), rows, numbers=(1,))
    return groups_chart(groups, twin)


def medoids(summary: Summary) -> Section | None:
    """Medoids as the training rows that they are."""
    found = summary["medoids"]
    if found is None:
        return None
    head = ("training row", "class", *found["columns"])
    rows = [
        ("–" if one["training_row"] is None else one["training_row"], _text(one["class"]), *one["cells"])
        for one in found["rows"]
    ]
    about = "Records are decided by their distances from these training rows."
    return Section("medoids", "Medoids", join([element("p", about), table("Medoids", head, rows)]))


def circuit(summary: Summary) -> Section | None:
    """The drawing of a circuit and the loss of its training."""
    found = summary["circuit"]
    if found is None:
        return None
    drawing = element("pre", found["drawing"], tabindex=0, role="group", aria_label="Drawing of the circuit")
    loss = found.get("loss")
    chart = line_chart("Loss of the training", ("step", "loss"), loss, label) if loss else None
    return Section("circuit", "Circuit", join([paragraph(found.get("about")), drawing, chart]))


def stability(summary: Summary) -> Section | None:
    """How much changes when the training rows do."""
    found = summary["stability"]
    if found is None:
        return None
    return Section(
        "stability", "Stability", element("pre", found["text"], tabindex=0, role="group", aria_label="Stability")
    )


def card(summary: Summary) -> Section | None:
    """The model card."""
    text = summary["model"].get("card")
    if not text:
        return None
    return Section("card", "Model card", folded("Show the card", html_of_markdown(text, 3)))


def made(summary: Summary) -> Section:
    """How the page was made, and how to make it again."""
    about = summary["made"]
    facts: list[tuple[Child, Child]] = [
        (name, element("code", about[key]) if key in ("sha256", "command") else about[key])
        for key, name in (
            ("qmedoid", "qmedoid"), ("time", "Made at"), ("model", "Model"), ("sha256", "SHA-256 of the model"),
            ("table", "Table"), ("command", "Command"),
        )
        if about.get(key)
    ]  # fmt: skip
    return Section("made", "How this page was made", definition_list(facts))
