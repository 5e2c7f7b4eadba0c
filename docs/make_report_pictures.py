"""Makes the pictures of a report: the heart data, fitted on four rows of five and judged on the fifth.

``python docs/make_report_pictures.py`` needs a browser (``make browser``) and writes ``docs/pictures/report-*.png``.
"""

import shutil
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from qmedoid import MedoidClassifier
from qmedoid.datasets import table_of
from qmedoid.report.reading import look_at_data
from qmedoid.report.summary import Names, summarize, write_report

PICTURES = Path(__file__).parent / "pictures"
TARGET = "HeartDisease"
OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def chromium() -> str | None:
    """The browser of this machine; None takes the one that playwright brings."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def save_small(picture: bytes, path: Path, *, width: int | None = None) -> None:
    """Write a screenshot with 64 colors, shrunk to a width where it is given."""
    image = Image.open(BytesIO(picture)).convert("RGB")
    if width is not None and image.width > width:
        image = image.resize((width, round(image.height * width / image.width)), Image.Resampling.LANCZOS)
    image.quantize(64, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(path, optimize=True)


def heart_report(folder: Path) -> Path:
    """The page of a model of the heart data, with rows that the fit has not seen."""
    table = table_of("heart")
    is_new = np.arange(table.num_rows) % 5 == 4
    known = table.filter(~is_new)
    fitted = MedoidClassifier(random_state=0).fit(known.drop([TARGET]), known[TARGET])
    saved = fitted.to_saved()
    looked = look_at_data(saved.model, table.filter(is_new), target=TARGET)
    names = Names(model="heart.qmedoid", table="new.csv", command="qmedoid report heart.qmedoid new.csv -o report.html")
    return write_report(summarize(saved.model, looked, names=names), folder / "report.html").path


def opened(browser: Any, page: Path, *, width: int, height: int, scheme: str) -> Page:
    """The page at a size and in a scheme of colors, with its model loaded."""
    view = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme).new_page()
    view.goto(page.as_uri())
    while view.evaluate("report.live === null"):
        view.wait_for_timeout(20)
    return view


def scroll_to(view: Page, section: str) -> None:
    """A section, opened, at the upper edge."""
    view.evaluate(
        """(name) => {
        const section = document.getElementById(name);
        const inside = [section, section.closest("details"), section.querySelector("details")];
        for (const one of inside) if (one) one.open = true;
        section.scrollIntoView({ behavior: "instant" });
        }""",
        section,
    )
    view.wait_for_timeout(100)


def main() -> None:
    """Fit, draw, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = heart_report(Path(folder))
        browser = playwright.chromium.launch(executable_path=chromium(), args=OPTIONS)
        light = opened(browser, page, width=1280, height=860, scheme="light")
        save_small(light.screenshot(), PICTURES / "report-light.png")
        dark = opened(browser, page, width=1280, height=940, scheme="dark")
        scroll_to(dark, "what-if")
        dark.get_by_label("ST_Slope", exact=True).select_option(label="Up")
        dark.wait_for_timeout(100)
        save_small(dark.screenshot(), PICTURES / "report-dark.png")
        phone = opened(browser, page, width=360, height=760, scheme="light")
        save_small(phone.screenshot(), PICTURES / "report-phone.png")
        browser.close()


if __name__ == "__main__":
    main()
