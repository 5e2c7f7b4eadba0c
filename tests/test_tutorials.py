"""The first steps and the tutorials run as they are printed, and print what they show."""

import importlib
import shutil
import sys
from pathlib import Path

import pytest
from tests.plain_environment import missing, needs_of

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ["../README.md", "start.md", *(f"tutorials/{page.name}" for page in sorted((DOCS / "tutorials").glob("*.md")))]


@pytest.fixture(scope="module")
def script():
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module("make_tutorials")
    sys.path.remove(str(DOCS))
    for path in DOCS.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.skipif(shutil.which("sh") is None, reason="the commands of the pages are those of a POSIX shell")
@pytest.mark.parametrize("name", PAGES)
def test_page_prints_what_it_shows(script, plain, tmp_path, name):
    """It runs in an environment with the extras that it names."""
    page = DOCS / name
    shown = page.read_text(encoding="utf-8")
    needs = needs_of(shown)
    if missing(needs):
        pytest.skip(f"needs {', '.join(missing(needs))}: pip install {' '.join(map(repr, needs))}")
    assert page.resolve() in (script.ANALYST, *script.PYTHON_PAGES)
    made = (
        f"import sys; sys.path.insert(0, {str(DOCS)!r})\n"
        f"import make_tutorials, pathlib\n"
        f"made = make_tutorials.made(pathlib.Path({str(page.resolve())!r}))\n"
        "pathlib.Path('made.md').write_text(made, encoding='utf-8')\n"
    )
    code, printed = plain.run(needs, tmp_path, name, code=made)
    assert code == 0, printed[-6000:]
    assert (tmp_path / "made.md").read_text(encoding="utf-8") == shown
