"""Sections of a Markdown page that a script writes, between ``<!-- begin: name -->`` and ``<!-- end -->``."""

import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

Row = list[object]

_SECTION = re.compile(r"<!-- begin: (\w+) -->\n.*?<!-- end -->", flags=re.DOTALL)


def marked(page: str) -> list[str]:
    """Names of the marked sections of a page."""
    return _SECTION.findall(page)


def fill(page: str, sections: Mapping[str, str], others: Collection[str] = ()) -> str:
    """The page with every marked section written anew; each name must be known, and each section used.

    Sections that are named as `others` are another script's, and stay as they are.
    """
    own = sorted(name for name in marked(page) if name not in others)
    if own != sorted(sections):
        raise ValueError(f"The page marks the sections {own}, and {sorted(sections)} were made.")
    return _SECTION.sub(
        lambda match: (
            f"<!-- begin: {match[1]} -->\n{sections[match[1]]}\n<!-- end -->" if match[1] in sections else match[0]
        ),
        page,
    )


def write_or_check(path: Path, sections: Mapping[str, str], *, check: bool, others: Collection[str] = ()) -> None:
    """Write the sections into a page, or end the program with an error if they are not there already."""
    page = path.read_text(encoding="utf-8")
    filled = fill(page, sections, others)
    if not check:
        path.write_text(filled, encoding="utf-8")
    elif filled != page:
        sys.exit(f"{path.name} is out of date: run the script that makes it, without --check.")


def table(header: list[str], rows: list[Row], numbers_from: int = 1) -> str:
    """A Markdown table whose columns from `numbers_from` on are aligned to the right."""
    rule = ["---"] * numbers_from + ["---:"] * (len(header) - numbers_from)
    return "\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in [header, rule, *rows])


def number(value: float, digits: int = 4) -> str:
    """A rounded number with a true minus sign, and no minus before zero."""
    text = f"{value:.{digits}f}"
    text = text.lstrip("-") if float(text) == 0 else text
    return text.replace("-", "−")
