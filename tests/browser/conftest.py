"""One browser for all tests of pages, and pages that must be clean: no console error, no violation, no request."""

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "exports"))  # the kinds of models that exports are tried on

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
WATCH = """
window.watched = { violations: [] };
document.addEventListener("securitypolicyviolation", (event) => {
  window.watched.violations.push(event.violatedDirective + " " + event.blockedURI);
});
"""


@dataclass
class Opened:
    """A page in the browser, and what it complained about."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    blocked: list[tuple[str, str]] = field(default_factory=list)

    @property
    def violations(self) -> list[str]:
        return self.page.evaluate("window.watched.violations")

    def wait(self, expression: str, seconds: float = 10.0) -> None:
        """Wait until an expression is true; playwright's own way is against the page's policy."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(expression):
            assert time.monotonic() < end, expression
            self.page.wait_for_timeout(10)

    def assert_clean(self) -> None:
        assert self.console == []
        assert self.violations == []
        assert len(self.requests) == 1, self.requests  # the page itself


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright axe-playwright-python"
    )
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no browser is installed: apt-get install chromium, or make browser")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=OPTIONS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens the text of a page from a file with its parts unfolded, once its live model is there."""
    contexts = []

    def opened(html: str, *, width: int = 1200, unfold: bool = True, **options: Any) -> Opened:
        file = tmp_path / f"page{len(contexts)}.html"
        file.write_text(html, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        context.add_init_script(WATCH)
        found = Opened(context.new_page())
        found.page.on("console", lambda said: found.console.append(f"{said.type}: {said.text}"))
        found.page.on("pageerror", lambda error: found.console.append(f"error: {error}"))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("requestfailed", lambda request: found.blocked.append((request.url, request.failure)))
        found.page.goto(file.as_uri())
        if 'id="live-data"' in html:
            found.wait("report.live !== null")
        if unfold and options.get("java_script_enabled", True):
            found.page.evaluate("document.querySelectorAll('details.part').forEach((one) => { one.open = true; })")
        return found

    yield opened
    for context in contexts:
        context.close()
