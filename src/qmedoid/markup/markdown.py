"""The little Markdown that model cards use, as HTML: headings, lists, tables, blocks of code, code and bold words."""

import re
from collections.abc import Iterator, Sequence

from qmedoid.markup.html import Html, element, escape, join
from qmedoid.markup.page import render

_INLINE = re.compile(r"\\(?P<plain>[^A-Za-z0-9\s])|`(?P<code>[^`]+)`|\*\*(?P<bold>[^*]+)\*\*")
_RULE = re.compile(r"\|[\s:|-]+\|?")


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
    return join(_blocks(text.split("\n"), level), "\n")


def _blocks(lines: Sequence[str], level: int) -> Iterator[Html]:
    place, title = 0, "Table"
    while place < len(lines):
        line = lines[place]
        begin = place
        if line.startswith("```"):
            place += 1
            while place < len(lines) and not lines[place].startswith("```"):
                place += 1
            yield element("pre", element("code", "\n".join(lines[begin + 1 : place])), tabindex=0)
            place += 1
        elif line.startswith("#"):
            depth = len(line) - len(line.lstrip("#"))
            title = line.strip("# ")
            yield element(f"h{min(level + max(depth - 2, 0), 6)}", inline(title))
            place += 1
        elif line.startswith("- "):
            items, place = _while(lines, place, ("- ", "  "))
            yield element("ul", *(element("li", inline(item)) for item in _joined(items)))
        elif line.startswith("|"):
            rows, place = _while(lines, place, ("|",))
            cells = [_cells(row) for row in rows if not _RULE.fullmatch(row.strip())]
            yield Html(render("table.html", caption=title, head=cells[0], rows=cells[1:]))
        elif line.strip():
            while place < len(lines) and lines[place].strip() and not lines[place].startswith(("#", "- ", "|", "```")):
                place += 1
            yield element("p", inline(" ".join(lines[begin:place])))
        else:
            place += 1


def _while(lines: Sequence[str], place: int, starts: tuple[str, ...]) -> tuple[list[str], int]:
    begin = place
    while place < len(lines) and lines[place].startswith(starts):
        place += 1
    return list(lines[begin:place]), place


def _joined(lines: Sequence[str]) -> list[str]:
    """Items of a list, each with the lines that go on with it."""
    items: list[str] = []
    for line in lines:
        if line.startswith("- "):
            items.append(line[2:])
        else:
            items[-1] += " " + line.strip()
    return items


def _cells(row: str) -> list[Html]:
    inside = re.split(r"(?<!\\)\|", row.strip().strip("|"))
    return [inline(cell.strip()) for cell in inside]
