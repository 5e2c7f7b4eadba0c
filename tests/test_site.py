"""The documentation builds as a site: no warning, every page reached, nothing loaded from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"([^\"]+)\"|url\(([^)]+)\)|@import ([^;]+);")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for package in ("sphinx", "myst_parser", "furo", "qiskit"):
        pytest.importorskip(package, reason="needs the extra 'docs'")
    folder = tmp_path_factory.mktemp("site")
    options = ["--nitpicky", "--fail-on-warning", "--quiet", "--doctree-dir", str(folder / "read")]
    command = [sys.executable, "-m", "sphinx", *options, "--conf-dir", "docs/site", ".", str(folder / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def test_site_loads_nothing_from_elsewhere(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 20
    for page in pages:
        for target in filter(None, (one for match in LOADED.findall(page.read_text("utf-8")) for one in match)):
            assert not re.match(r"[\"']?(https?:)?//", target), f"{page.name} loads {target}."


def test_site_has_a_way_in_and_folders_have_lists(site):
    assert 'url=docs/index.html"' in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "docs" / "index.html").exists()
    results = (site / "benchmarks" / "results" / "quality" / "index.html").read_text(encoding="utf-8")
    assert 'href="ranks.csv"' in results


def test_site_has_every_command_with_its_options(site):
    page = (site / "docs" / "reference" / "commands.html").read_text(encoding="utf-8")
    for name in ("check", "fit", "score", "evaluate", "explain", "inspect", "data-fetch"):
        assert f'id="{name}"' in page
    assert "--operating-point" in page
    assert "Share of the records to be called positive." in page
