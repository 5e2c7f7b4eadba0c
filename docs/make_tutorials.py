"""Runs what the README, the first steps and the tutorials show, and writes what it prints into their pages.

``python docs/make_tutorials.py`` runs the blocks of every page in order, in one empty folder for each page, and writes
the text block below each of them; a page of the shell has marked sections instead, whose commands are listed here.
``python docs/make_tutorials.py --check`` writes nothing and fails when a page differs from what would be written.
"""

import argparse
import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import make_command_line
from marked_sections import fill

FOLDER = Path(__file__).parent
ANALYST = FOLDER / "tutorials" / "analyst.md"
README = FOLDER.parent / "README.md"
PYTHON_PAGES = (
    README,
    FOLDER / "start.md",
    FOLDER / "tutorials" / "data-scientist.md",
    FOLDER / "tutorials" / "quantum-researcher.md",
)
BLOCK = re.compile(
    r"^```(?P<language>python|sh)\n(?P<code>.*?)^```\n(?P<shown>\n```text\n.*?^```\n)?", flags=re.MULTILINE | re.DOTALL
)
"""Code of Python, or a command of the shell, and below it what it prints."""
ANALYST_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "table": (
        "qmedoid data fetch heart",
        "head -3 heart.csv",
        "awk 'NR == 1 || NR % 5' heart.csv > known.csv",
        "awk 'NR == 1 || NR % 5 == 0' heart.csv > new.csv",
    ),
    "look": ("qmedoid check known.csv --target HeartDisease",),
    "fitted": (
        "qmedoid fit known.csv --target HeartDisease --positive 1 --min-recall 0.95 --method evidence -o heart.qmedoid",
    ),
    "scored": ("qmedoid score heart.qmedoid new.csv --columns Age,Sex -o alerts.csv", "head -4 alerts.csv"),
    "compared": ("qmedoid evaluate heart.qmedoid new.csv | head -2",),
    "explained": ("qmedoid explain heart.qmedoid new.csv --row 1",),
}
"""The commands of the analyst's page, in the order in which they run."""


def made(page: Path) -> str:
    """The page as it is written when everything in it has run."""
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        if page == ANALYST:
            run = make_command_line.section
            return fill(text, {name: run(commands, Path(folder)) for name, commands in ANALYST_SECTIONS.items()})
        with contextlib.chdir(folder):
            names: dict[str, object] = {"__name__": "tutorial"}
            return BLOCK.sub(lambda block: run_block(block, names, page), text)


def run_block(block: re.Match[str], names: dict[str, object], page: Path) -> str:
    """A block with what it prints below it; of the shell, only commands of the package are run."""
    code = block["code"]
    if block["language"] == "sh":
        if page == README:  # its commands are an outline of those that other pages run
            return block[0]
        return block[0] if not code.startswith("qmedoid ") else _block("sh", code, run_command(code))
    line = block.string[: block.start()].count("\n") + 1
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile("\n" * line + code, page.name, "exec"), names)  # an error names the line of the page
    return _block("python", code, printed.getvalue().splitlines())


def run_command(command: str) -> list[str]:
    """What a command prints, run in this folder."""
    code, lines = make_command_line.run(command, Path.cwd())
    if code:
        sys.exit("\n".join([f"A command failed with {code}: {command}", *lines]))
    return lines


def _block(language: str, code: str, printed: list[str]) -> str:
    shown = "\n".join(line.rstrip() for line in printed).rstrip()
    return f"```{language}\n{code}```\n" + (f"\n```text\n{shown}\n```\n" if shown else "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    os.environ |= {"NO_COLOR": "1", "COLUMNS": "100"}
    for page in (ANALYST, *PYTHON_PAGES):
        text = made(page)
        if not arguments.check:
            page.write_text(text, encoding="utf-8")
        elif text != page.read_text(encoding="utf-8"):
            sys.exit(f"{page.name} is out of date: run the script that makes it, without --check.")
