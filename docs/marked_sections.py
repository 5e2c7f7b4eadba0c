"""Sections of a Markdown page that a script writes, between ``<!-- begin: name -->`` and ``<!-- end -->``."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

Row = list[object]

_SECTION = re.compile(r"<!-- begin: (\w+) -->\n.*?<!-- end -->", flags=re.DOTALL)


def fill(page: str, sections: Mapping[str, str]) -> str:
    """The page with every marked section written anew; each name must be known, and each section used."""
    marked = _SECTION.findall(page)
    if sorted(marked) != sorted(sections):
        raise ValueError(f"The page marks the sections {sorted(marked)}, and {sorted(sections)} were made.")
    return _SECTION.sub(lambda match: f"<!-- begin: {match[1]} -->\n{sections[match[1]]}\n<!-- end -->", page)


def write_or_check(path: Path, sections: Mapping[str, str], *, check: bool) -> None:
    """Write the sections into a page, or end the program with an error if they are not there already."""
    page = path.read_text(encoding="utf-8")
    filled = fill(page, sections)
    if not check:
        path.write_text(filled, encoding="utf-8")
    elif filled != page:
        sys.exit(f"docs/{path.name} is out of date: run the script that makes it, without --check.")


def table(header: list[str], rows: list[Row], numbers_from: int = 1) -> str:
    """A Markdown table whose columns from `numbers_from` on are aligned to the right."""
    rule = ["---"] * numbers_from + ["---:"] * (len(header) - numbers_from)
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in [header, rule, *rows])


def number(value: float, digits: int = 4) -> str:
    """A rounded number with a true minus sign, and no minus before zero."""
    text = f"{value:.{digits}f}"
    text = text.lstrip("-") if float(text) == 0 else text
    return text.replace("-", "−")
