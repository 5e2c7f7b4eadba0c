"""Pages and views of pages: a template with plain values becomes text of HTML that loads nothing.

A page may show the little Markdown that model cards use: headings, lists, tables, blocks of code, code and bold words.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmedoid.markup import charts
from qmedoid.markup.html import Html, check_raw, content_policy, element, escape, join, plain, script_json

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST = 2_000
"""Characters of a text that are shown, where a template does not ask for fewer (``cut``) or more (``whole``)."""
_WHOLE = 1_000_000
# What a template shows only where it is given.
_OPTIONAL: dict[str, Any] = {"notes": (), "settings": (), "importances": (), "columns": (), "more": 0}
_INLINE = re.compile(r"\\(?P<plain>[^A-Za-z0-9\s])|`(?P<code>[^`]+)`|\*\*(?P<bold>[^*]+)\*\*")
_RULE = re.compile(r"\|[\s:|-]+\|?")
_BLOCK = re.compile(
    r"""^(?: ```[^\n]*\n (?P<code>.*?) (?:^```[^\n]*$ | \Z)
      | (?P<depth>\#+) (?P<title>[^\n]*)
      | -\  (?P<items>[^\n]* (?:\n(?:-\ |\ \ )[^\n]*)*)
      | (?P<rows>\|[^\n]* (?:\n\|[^\n]*)*)
      | (?P<words>[^\n]*\S[^\n]* (?:\n(?!\#|-\ |\||```)[^\n]*\S[^\n]*)*) )""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
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
        A file of the folder ``templates``, such as ``"run.html"``, or the path of another one, which may extend these.
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
    given = {**_OPTIONAL, "script": Html(check_raw("script", script)), "data": data or {}, "contents": []}
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
            "short": charts.short,
            "cut": lambda text, most: plain(str(text), most),
            "whole": lambda text: escape(plain(str(text), _WHOLE, keep="\n")),
            "json": lambda value: Html(script_json(value)),
        }
    )
    sheet = style()
    made.globals.update(
        charts=charts,
        style=Html(check_raw("style", sheet)),
        view_style=Html(check_raw("style", style(is_page=False))),
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


def inline(text: str) -> Html:
    """Words of a line: code, bold ones, and signs after a backslash, which mean themselves."""
    made, end = [], 0
    for found in _INLINE.finditer(text):
        made.append(escape(text[end : found.start()]))
        if found["code"] is not None:
            made.append(element("code", found["code"]))
        elif found["bold"] is not None:
            made.append(element("strong", found["bold"]))
        else:
            made.append(escape(found["plain"]))
        end = found.end()
    return join([*made, escape(text[end:])])


def html_of_markdown(text: str, level: int = 3) -> Html:
    """A text of Markdown as HTML; its first headings are of this level."""
    made, title = list[Html](), "Table"
    for found in _BLOCK.finditer(text):
        if found["code"] is not None:
            made.append(element("pre", element("code", found["code"].removesuffix("\n")), tabindex=0))
        elif found["depth"]:
            title = found["title"].strip("# ")
            made.append(element(f"h{min(level + max(len(found['depth']) - 2, 0), 6)}", inline(title)))
        elif found["items"] is not None:
            items = [" ".join(map(str.strip, item.split("\n"))) for item in found["items"].split("\n- ")]
            made.append(element("ul", *(element("li", inline(item)) for item in items)))
        elif found["rows"]:
            rows = [row.strip() for row in found["rows"].split("\n") if not _RULE.fullmatch(row.strip())]
            head, *cells = ([inline(one.strip()) for one in re.split(r"(?<!\\)\|", row.strip("|"))] for row in rows)
            made.append(Html(render("table.html", caption=title, head=head, rows=cells)))
        else:
            made.append(element("p", inline(" ".join(found["words"].split("\n")))))
    return join(made, "\n")
