"""A report as one page of HTML that loads nothing: style and pictures are within it, and it has no scripts."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from qmedoid.reporting.document import Document, Picture, Section, Table
from qmedoid.reporting.page_style import STYLE
from qmedoid.reporting.page_table import html_table


def html_page(document: Document) -> str:
    """The page of a report.

    Findings come first, then links, the sections with their tables and pictures, and how the report was made. All
    text is escaped: nothing in a title or a cell is markup.

    Parameters
    ----------
    document : Document

    Returns
    -------
    str
        Complete HTML; the same document gives the same text.
    """
    lines = [
        "<!DOCTYPE html>",
        '<html lang="en">',
        *_head(document.title),
        "<body>",
        "<header>",
        f"<h1>{escape(document.title)}</h1>",
        *_paragraphs(document.introduction),
        *_findings(document.findings),
        "</header>",
        *_contents(document),
        "<main>",
        *(line for number, section in enumerate(document.sections, start=1) for line in _section(number, section)),
        *_provenance(document.provenance),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(lines) + "\n"


def _head(title: str) -> list[str]:
    return [
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title>",
        f"<style>\n{STYLE}</style>",
        "</head>",
    ]


def _contents(document: Document) -> Iterator[str]:
    """Links to all that has a heading."""
    yield '<nav aria-label="Contents">'
    yield "<p>Contents</p>"
    yield "<ol>"
    if document.findings:
        yield '<li><a href="#findings">Findings</a></li>'
    for number, section in enumerate(document.sections, start=1):
        parts = "".join(f"<li>{_link(_anchor(part), part.title)}</li>" for part in section.parts)
        yield f"<li>{_link(f'section-{number}', section.title)}{f'<ul>{parts}</ul>' if parts else ''}</li>"
    if document.provenance:
        yield '<li><a href="#provenance">How this was made</a></li>'
    yield "</ol>"
    yield "</nav>"


def _link(anchor: str, title: str) -> str:
    return f'<a href="#{anchor}">{escape(title)}</a>'


def _anchor(part: Table | Picture) -> str:
    """The id of a part; its name is plain, and unlike that of any other part of its kind."""
    return f"{'table' if isinstance(part, Table) else 'picture'}-{part.name}"


def _paragraphs(paragraphs: Sequence[str]) -> Iterator[str]:
    return (f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs)


def _findings(findings: Sequence[str]) -> Iterator[str]:
    if findings:
        yield '<section class="findings" id="findings">'
        yield "<h2>Findings</h2>"
        yield "<ul>"
        yield from (f"<li>{escape(finding)}</li>" for finding in findings)
        yield "</ul>"
        yield "</section>"


def _section(number: int, section: Section) -> Iterator[str]:
    yield f'<section id="section-{number}">'
    yield f"<h2>{escape(section.title)}</h2>"
    yield from _paragraphs(section.paragraphs)
    for part in section.parts:
        yield f'<figure id="{_anchor(part)}">'
        yield from html_table(part) if isinstance(part, Table) else _picture(part)
        if part.note:
            yield f'<p class="note">{escape(part.note)}</p>'
        yield "</figure>"
    yield "</section>"


def _picture(picture: Picture) -> Iterator[str]:
    source = base64.b64encode(picture.svg).decode("ascii")
    yield f"<figcaption>{escape(picture.title)}</figcaption>"
    # The box can be reached and moved by keys where it is narrower than what it holds.
    yield f'<div class="box drawn" tabindex="0" role="group" aria-label="{escape(picture.title)}">'
    yield f'<img src="data:image/svg+xml;base64,{source}" alt="{escape(picture.title)}">'
    yield "</div>"


def _provenance(provenance: Mapping[str, str]) -> Iterator[str]:
    if provenance:
        yield '<section class="provenance" id="provenance">'
        yield "<h2>How this was made</h2>"
        yield "<table>"
        for key, value in provenance.items():
            yield f'<tr><th scope="row">{escape(key)}</th><td>{escape(value)}</td></tr>'
        yield "</table>"
        yield "</section>"
