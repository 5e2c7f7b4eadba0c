"""Views for notebooks: HTML without scripts, in the colors of the notebook around it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from qmedoid.markup.html import Child, Html, element, escape, join, plain
from qmedoid.markup.policy import style_element
from qmedoid.markup.svg import label

STYLE = """\
.qmedoid-view { color: var(--jp-content-font-color1, var(--vscode-editor-foreground, inherit)); max-width: 60rem;
  font: .95rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
.qmedoid-view .title { font-weight: 600; margin: .3rem 0; }
.qmedoid-view svg { max-width: max(100%, 34rem); height: auto; }
.qmedoid-view svg rect { fill-opacity: .85; }
.qmedoid-view .box { overflow-x: auto; }
.qmedoid-view details caption { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
.qmedoid-view table { border-collapse: collapse; margin: .5rem 0; font-size: .9rem; }
.qmedoid-view caption, .qmedoid-view summary { text-align: left; font-weight: 600; padding: .3rem 0; }
.qmedoid-view th, .qmedoid-view td { text-align: left; padding: .2rem .7rem; background: none;
  border-bottom: 1px solid var(--jp-border-color2, var(--vscode-panel-border, #8888)); }
.qmedoid-view .num { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.qmedoid-view .differs { font-weight: 600; text-decoration: underline; }
.qmedoid-view .stamp { font-size: .8rem; opacity: .8; }
"""
_ROW, _LABELS, _WIDTH, _NUMBERS = 20, 200, 560, 70


class Bar(NamedTuple):
    """A bar of a chart: what it stands for, how long it is, and its number in print."""

    name: str
    value: float
    text: str


def view(title: str, *children: Child) -> Html:
    """A view with its own style."""
    return element("div", style_element(STYLE), element("p", title, class_="title"), *children, class_="qmedoid-view")


def facts(rows: Iterable[tuple[str, Child]]) -> Html:
    """Facts by name, those that are None left out."""
    lines = [
        element("tr", element("th", name, scope="row"), element("td", value))
        for name, value in rows
        if value is not None
    ]
    return element("table", element("tbody", *lines))


def bars(about: str, given: Sequence[Bar]) -> Html:
    """Bars from the left, each with its name and its number; values are at least 0."""
    height, longest = _ROW * len(given) + 4, max((bar.value for bar in given), default=0.0) or 1.0
    room = _WIDTH - _LABELS - _NUMBERS
    lines = []
    for place, bar in enumerate(given):
        y = _ROW * place
        lines += [
            element("text", plain(bar.name, 32), x=_LABELS - 6, y=y + 15, text_anchor="end"),
            element(
                "rect",
                fill="#2374b8",
                x=_LABELS,
                y=y + 4,
                width=f"{max(room * bar.value / longest, 1):.1f}",
                height=_ROW - 7,
            ),
            element("text", bar.text, x=_WIDTH - 4, y=y + 15, text_anchor="end"),
        ]
    # The names of these two attributes have capitals and no dash.
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(about)}" fill="currentColor" font-size="12" '
        'font-family="system-ui, sans-serif">'
    )
    return element("div", Html(f"{start}<title>{escape(about)}</title>{join(lines)}</svg>"), class_="box")


def with_interval(value: float, low: float, high: float) -> str:
    """A figure with its 95 % interval."""
    return f"{label(value)} (95 %: {label(low)} to {label(high)})"
