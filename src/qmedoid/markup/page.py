"""Pages and views of pages: a template with plain values becomes text of HTML that loads nothing.

A page has a Content-Security-Policy by hashes: it runs its own script and nothing else.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from qmedoid.markup import charts
from qmedoid.markup.charts import plain

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST = 2_000
"""Characters of a text that are shown, where a template does not ask for fewer (``cut``) or more (``whole``)."""
_WHOLE = 1_000_000
# What a template shows only where it is given.
_OPTIONAL: dict[str, Any] = {"notes": (), "settings": (), "importances": (), "columns": (), "more": 0}
# Points of a curve that its table has, at most.
_TWIN = 40
_DRAWINGS = "/* Drawings: "
_NOTEBOOK_ENDS = "/* Pages: "


def render(template: str | Path, *, script: str = "", data: Mapping[str, Any] | None = None, **context: Any) -> str:
    """A page, or a part of one, from a template and plain values.

    Every text is escaped, shortened if it is very long, and cleaned of characters that steer what follows; floats have
    four significant digits. A page holds its style and its script, and a policy that lets the browser run these and
    nothing else.

    Parameters
    ----------
    template : str or Path
        A file of the folder ``templates``, such as ``"report.html"``, or the path of another, which may extend these.
    script : str
        JavaScript of the page.
    data : mapping
        Plain values by the id of their element, as JSON that the script reads.
    **context : Any
        What the template shows, under the names that it uses.

    Raises
    ------
    jinja2.UndefinedError
        The template shows a value that was not given.
    ValueError
        The script would end its element.
    """
    given = {**_OPTIONAL, "script": Markup(check_raw("script", script)), "data": data or {}, "contents": []}
    environment = _environment()
    if isinstance(template, Path):
        return environment.from_string(template.read_text(encoding="utf-8")).render(given | context)
    return environment.get_template(template).render(given | context)


def style(*, is_page: bool = True) -> str:
    """The style sheet of pages, or the part of it that views within a notebook have."""
    sheet = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return sheet if is_page else sheet[: sheet.index(_NOTEBOOK_ENDS)]


def picture_file(drawing: str) -> str:
    """A drawing as a file of its own: it has the rules of drawings, in the colors of a light page."""
    sheet = style()
    rules = sheet[sheet.index(_DRAWINGS) : sheet.index("/* End of drawings")].partition("*/")[2]
    colors = dict(re.findall(r"--([\w-]+): ([^;]+);", sheet[sheet.index("body.qmedoid {") :].partition("@media")[0]))
    flat = " ".join(re.sub(r"var\(--([\w-]+)\)", lambda found: colors[found[1]], rules).split())
    before, _, after = drawing.removeprefix("<svg ").partition(">")
    _, _, width, height = before.partition('viewBox="')[2].partition('"')[0].split()
    size = f'xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
    return f"<svg {size} {before}><style>{flat}</style>{after}"


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("qmedoid.markup"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(
        {
            "number": charts.label,
            "known": lambda value: "–" if value is None else charts.label(value),
            "percent": lambda share: "–" if share is None else charts.percent(share),
            "signed": lambda value, digits=3: f"{value:+.{digits}f}".replace("-", "−"),
            "count": "{:,}".format,
            "cut": lambda text, most: plain(str(text), most),
            "whole": lambda text: escape(plain(str(text), _WHOLE, keep="\n")),
            "json": lambda value: Markup(script_json(value)),
        }
    )
    sheet = style()
    made.globals.update(
        charts=charts,
        some=lambda points: points[:: -(-len(points) // _TWIN)],
        style=Markup(check_raw("style", sheet)),
        view_style=Markup(check_raw("style", style(is_page=False))),
        policy=lambda script: content_policy([script] if script else [], [sheet]),
    )
    return made


def _shown(value: Any) -> Any:
    """What stands for a value of a template: nothing for None, a short number for a float."""
    if value is None:
        return ""
    if isinstance(value, float):
        return charts.label(value)
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return plain(value, LONGEST, keep="\n")


def source_hash(text: str) -> str:
    """What a policy calls a script or a style of exactly this text."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def content_policy(scripts: Sequence[str], styles: Sequence[str]) -> str:
    """The policy of a page that holds these scripts and styles, and loads, runs and sends nothing else.

    A text that becomes markup or script by mistake has no effect: it has no hash here, and the trusted types leave no
    way to make elements of texts.
    """
    script, style = (" ".join(map(source_hash, texts)) or "'none'" for texts in (scripts, styles))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; img-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def check_raw(tag: str, text: str) -> str:
    """The text of a script or a style, as it is within its element; raise ValueError where it would end it."""
    lower = text.lower()
    if f"</{tag}" in lower or "<!--" in lower or "\r" in text:
        raise ValueError(f"The text of a {tag} must not end it, begin a comment or hold a carriage return.")
    return text


def script_json(value: Any) -> str:
    """JSON that may stand within a script of a page: it is ASCII, and no tag can end it.

    Raises
    ------
    ValueError
        A number is not finite: JSON has no such number.
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
