"""The documentation builds as a site without a warning, loads nothing from elsewhere, and finds the right page."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=\"([^\"]+)\"|url\(([^)]+)\)|@import ([^;]+);")


FIRST = {
    "deploy": "docs/how-to/deploy",
    "monitor": "docs/how-to/monitor",
    "imbalanced": "docs/how-to/rare-events",
    "multiclass": "docs/how-to/multiclass",
    "threshold": "docs/how-to/operating-point",
    "regression": "docs/limits",
    "feature importance": "docs/saved-models",
    "cross-validation": "docs/faq",
    "drift": "docs/how-to/monitor",
}
"""The page that the search of the site shows first."""


def test_site_builds_without_a_warning_and_stands_alone(tmp_path):
    """One test, as the build takes ten seconds; the examples are shown and not run."""
    for package in ("sphinx", "sphinx_gallery", "myst_parser", "furo", "qiskit"):
        pytest.importorskip(package, reason="needs the extra 'docs'")
    site = tmp_path / "site"
    options = ["--nitpicky", "--fail-on-warning", "--quiet", "-D", "plot_gallery=0", "--conf-dir", "docs/site"]
    command = [sys.executable, "-m", "sphinx", *options, "--doctree-dir", str(tmp_path / "read"), ".", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_way_in(site)
    assert "Explain a decision, and what would turn it" in (site / "docs" / "gallery" / "index.html").read_text("utf-8")
    check_commands((site / "docs" / "reference" / "commands.html").read_text(encoding="utf-8"))
    assert "<strong>class_priors_</strong>" in (site / "docs" / "reference" / "api.html").read_text(encoding="utf-8")
    check_loads_nothing([*site.rglob("*.html"), *site.rglob("*.css")])
    if shutil.which("node") is None:
        pytest.skip("the site is in order; to see what its search finds needs Node: apt-get install nodejs")
    check_search(site)


def check_search(site):
    files = [str(site / "_static"), str(site / "searchindex.js")]
    command = ["node", str(ROOT / "tests" / "site_search.js"), *files, *FIRST]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {word: pages[0] for word, pages in json.loads(done.stdout).items()} == FIRST


def check_way_in(site):
    assert 'url=docs/index.html"' in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "docs" / "index.html").exists()
    results = (site / "benchmarks" / "results" / "quality" / "index.html").read_text(encoding="utf-8")
    assert 'href="ranks.csv"' in results  # a link to a folder leads to a list of its files
    assert (site / "benchmarks" / "results" / "quality" / "ranks.csv").exists()


def check_commands(page):
    for name in ("check", "fit", "score", "evaluate", "explain", "inspect", "data-fetch"):
        assert f'id="{name}"' in page
    assert "--install-completion" in page
    assert "--operating-point" in page
    assert "Share of the records to call positive" in page


def check_loads_nothing(pages):
    assert len(pages) > 20
    for page in pages:
        for target in filter(None, (one for match in LOADED.findall(page.read_text("utf-8")) for one in match)):
            assert not re.match(r"[\"']?(https?:)?//", target), f"{page.name} loads {target}."
