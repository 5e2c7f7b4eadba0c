"""Writes what somebody sees first, before and after it was made again: ``docs/first-hour.md`` and its pictures.

``python docs/make_first_hour.py after`` runs this version, and ``before FOLDER`` a checkout of commit eb16f0bc with its
kernels; each fills its own sections. A browser takes the pictures. Nothing checks the page later: it is a record of one
day.
"""

import argparse
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import make_command_line
from make_report_pictures import OPTIONS, chromium, save_small
from markdown_it import MarkdownIt
from marked_sections import fill, marked
from playwright.sync_api import sync_playwright

PAGE = Path(__file__).parent / "first-hour.md"
PICTURES = Path(__file__).parent / "pictures"
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "fit": (
        "qmedoid data fetch heart",
        "qmedoid fit heart.csv --target HeartDisease -o heart.qmedoid --report report.html",
    ),
    "fraud": (
        "qmedoid data fetch creditcard-sample",
        "qmedoid fit creditcard-sample.parquet --target Class --alert-rate 1% -o fraud.qmedoid",
    ),
    "explain": ("qmedoid explain heart.qmedoid heart.csv --row 3",),
}
SIZES = {"": (1280, 800), "-phone": (390, 844)}
STYLE = """<style>body { margin: 24px auto; max-width: 900px; font: 15px/1.5 sans-serif; color: #1f2328 }
pre { background: #f6f8fa; padding: 12px; white-space: pre-wrap } code { font-size: 13px } img { max-width: 100% }
table { border-collapse: collapse } td, th { border: 1px solid #d1d9e0; padding: 4px 8px }
a { color: #0969da }</style>"""


def take_pictures(browser: Any, root: Path, folder: Path, side: str) -> None:
    """The first screen of the README and of the report."""
    readme = root / "build" / "first-hour.html"
    readme.parent.mkdir(exist_ok=True)
    html = MarkdownIt("gfm-like", {"linkify": False}).render((root / "README.md").read_text(encoding="utf-8"))
    readme.write_text(STYLE + html.replace('src="docs/', 'src="../docs/'), encoding="utf-8")
    for name, page, sizes in (("readme", readme, {"": (1000, 800)}), ("report", folder / "report.html", SIZES)):
        for end, (width, height) in sizes.items():
            view = browser.new_context(viewport={"width": width, "height": height}, color_scheme="light").new_page()
            view.goto(page.as_uri())
            view.wait_for_timeout(1500)
            save_small(view.screenshot(), PICTURES / f"{name}{end}-{side}.png", width=900)
    readme.unlink()


def main() -> None:
    """Run one side, and fill its sections."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=("before", "after"))
    parser.add_argument("root", nargs="?", type=Path, default=PAGE.parents[1])
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    os.environ["PYTHONPATH"] = str(root / "src")
    with tempfile.TemporaryDirectory() as path, sync_playwright() as playwright:
        folder = Path(path)
        made = {
            f"{name}_{arguments.side}": make_command_line.section(commands, folder).replace("```console", "```text", 1)
            for name, commands in COMMANDS.items()
        }
        browser = playwright.chromium.launch(executable_path=chromium(), args=OPTIONS)
        take_pictures(browser, root, folder, arguments.side)
        browser.close()
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(fill(page, made, [name for name in marked(page) if name not in made]), encoding="utf-8")


if __name__ == "__main__":
    main()
