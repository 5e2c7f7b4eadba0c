"""The documentation keeps its word: links resolve, named tests exist, code runs, tables are what scripts compute."""

import ast
import importlib
import inspect
import math
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

import qmedoid

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|<img[^>]*src=\"([^\"]+)\"")
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
SHELL_BLOCK = re.compile(r"^ *```(?:sh|shell)\n(.*?)^ *```", flags=re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def heading_anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_pictures_and_named_tests_are_there(page):
    text = page.read_text(encoding="utf-8")
    for match in LINK.finditer(text):
        target = match[1] or match[2]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = page if not path else page.parent / path
        assert file.exists(), f"{page.name} links to {target}, which does not exist."
        if anchor and file.suffix == ".md":
            assert anchor in heading_anchors(file), f"{page.name} links to {target}, and there is no such heading."
    for path, name in NAMED_TEST.findall(text):
        file = ROOT / path
        assert file.exists(), f"{page.name} names {path}, which does not exist."
        functions = {node.name for node in ast.parse(file.read_text(encoding="utf-8")).body if hasattr(node, "name")}
        assert name in functions, f"{page.name} names {path}::{name}, which does not exist."


def test_every_finding_has_a_test_or_says_that_it_has_none():
    page = (DOCS / "findings.md").read_text(encoding="utf-8")
    findings = re.split(r"^## (?=\d+\. )", page, flags=re.MULTILINE)[1:]
    assert [int(finding.split(".")[0]) for finding in findings] == list(range(1, 21))
    for finding in findings:
        assert bool(NAMED_TEST.search(finding)) != ("no test" in finding), finding.splitlines()[0]


@pytest.mark.parametrize("page", [page for page in PAGES if SHELL_BLOCK.search(page.read_text("utf-8"))], ids=name_of)
def test_commands_of_the_shell_can_be_called_so(page):
    """Commands that no script runs still name options that exist, with values of the right kind."""
    from qmedoid.cli.app import COMMANDS, load_command

    names = {name for commands in COMMANDS.values() for name in commands}
    for block in SHELL_BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in re.findall(r"^ *qmedoid (.*)$", block.replace("\\\n", " "), flags=re.MULTILINE):
            words = shlex.split(line, comments=True)
            name = next(name for name in (" ".join(words[:2]), words[0]) if name in names)
            load_command(name).make_context(name, words[len(name.split()) :])


@pytest.fixture
def docs_scripts(monkeypatch):
    """The scripts of the docs folder as modules."""
    monkeypatch.syspath_prepend(str(DOCS))
    yield importlib.import_module
    for script in DOCS.glob("*.py"):
        sys.modules.pop(script.stem, None)


def test_the_walkthrough_says_what_its_script_computes(docs_scripts):
    script, marked = docs_scripts("make_walkthrough"), docs_scripts("marked_sections")
    page = script.PAGE.read_text(encoding="utf-8")
    walk = script.compute()
    assert page == marked.fill(page, script.sections(walk))
    assert sum(walk.margin_parts.values()) == pytest.approx(walk.scores[0] - walk.scores[1], abs=1e-12)


@pytest.mark.parametrize("name", ["json", "export", "engines", "report", "reproduction", "variational"])
def test_the_page_says_what_its_script_makes_of_code_and_results(docs_scripts, name):
    script, marked = docs_scripts(f"make_{name}"), docs_scripts("marked_sections")
    page = script.PAGE.read_text(encoding="utf-8")
    made = script.sections(script.compute()) if hasattr(script, "compute") else script.sections()
    assert page == marked.fill(page, made)


def test_the_findings_say_what_their_script_measures(docs_scripts):
    """Two tables that are quick to measure; ``python docs/make_findings.py --check`` compares all of them."""
    script = docs_scripts("make_findings")
    page = script.PAGE.read_text(encoding="utf-8")
    for name in ("printed", "weights"):
        assert f"<!-- begin: {name} -->\n{script.SECTIONS[name]()}\n<!-- end -->" in page


def test_the_page_on_the_paper_names_its_files_its_plan_and_the_command(docs_scripts, monkeypatch, tmp_path):
    from benchmarks.studies.report import PAPER_TABLES

    script = docs_scripts("make_reproduction")
    page = script.PAGE.read_text(encoding="utf-8")
    for file in script.RESULTS.iterdir():
        assert f"`{file.name}`" in page, f"The page does not say what {file.name} is."
    assert f"<!-- begin: settings -->\n{script.settings()}\n<!-- end -->" in page
    told = re.findall(r"^\| (\d), .*? \| `(\w+)\.csv`", page, flags=re.MULTILINE)
    assert told == [(str(number), name) for number, name in enumerate(PAPER_TABLES, start=1)]
    monkeypatch.setattr(script, "RESULTS", tmp_path / "nothing")
    with pytest.raises(SystemExit, match=re.escape(script.COMMAND)):
        script.sections()


def test_the_pages_on_quality_say_what_the_study_left(docs_scripts):
    script, marked, results = (docs_scripts(name) for name in ("make_quality", "marked_sections", "quality_results"))
    shown = ""
    for page, made in script.sections().items():
        text = page.read_text(encoding="utf-8")
        assert text == marked.fill(text, made.sections, made.waiting)
        shown += text
    for file in results.RESULTS.iterdir():
        assert f"`{file.name}`" in shown, f"No page says what {file.name} is."


@pytest.mark.skipif(shutil.which("sh") is None, reason="the commands of the pages are those of a POSIX shell")
def test_the_commands_print_what_the_pages_show(docs_scripts, plain, monkeypatch):
    """All but those that take long; ``python docs/make_command_line.py --check`` runs these too.

    They run as after a plain install: the extras that the pages name are for the others.
    """
    monkeypatch.setattr(sys, "executable", str(plain.python(["qmedoid"])))
    script, marked = docs_scripts("make_command_line"), docs_scripts("marked_sections")
    shown = {page: page.read_text(encoding="utf-8") for page in script.PAGES}
    for page, sections in script.PAGES.items():
        assert [name for name in marked.marked(shown[page]) if name in sections] == list(sections)  # they run in order
    made = script.compute(name for names in script.PAGES.values() for name in names if name not in script.SLOW)
    for page, sections in script.PAGES.items():
        for name in sections:
            if name in made:
                assert f"<!-- begin: {name} -->\n{made[name]}\n<!-- end -->" in shown[page]


def test_every_command_and_option_is_told():
    from qmedoid.cli.app import COMMANDS, load_command

    page = "".join((DOCS / f"{name}.md").read_text(encoding="utf-8") for name in ("command-line", "saved-models"))
    for name in (name for commands in COMMANDS.values() for name in commands if " " not in name):
        assert f"`{name} " in page or f"`{name}`" in page, f"The command {name} is not told."
        if name == "demo":  # a show of its own, with --help
            continue
        for parameter in load_command(name).params:
            spelt = "|".join(map(re.escape, [*parameter.opts, *parameter.secondary_opts]))
            told = re.search(rf"(?<![\w-])({spelt})(?![\w-])", page)
            assert told or parameter.param_type_name == "argument", f"{name} {spelt} is not told."


ESTIMATORS = [name for name in qmedoid.__all__ if hasattr(getattr(qmedoid, name), "get_params")]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_documented_defaults_are_those_of_the_code(name):
    estimator = getattr(qmedoid, name)
    assert documented_defaults(estimator) == defaults_of(estimator)


def documented_defaults(estimator: type) -> dict[str, object]:
    """Defaults in the section of parameters, those of another estimator by the sentence that refers to it."""
    section = re.split(r"^\w+\n-+\n", inspect.getdoc(estimator), flags=re.MULTILINE)[1]
    documented = {}
    for parameters, defaults in re.findall(r"^(\w+(?:, \w+)*) : .*?default=(.+)$", section, flags=re.MULTILINE):
        values = [math.pi / 2 if value == "π/2" else ast.literal_eval(value) for value in defaults.split(" and ")]
        documented |= dict(zip(parameters.split(", "), values, strict=True))
    for parameters, other in re.findall(r"^(\w+(?:, \w+)*)\n    As of `(\w+)`", section, flags=re.MULTILINE):
        of_other = documented_defaults(getattr(qmedoid, other))
        documented |= {name: of_other[name] for name in parameters.split(", ")}
    return documented


def defaults_of(estimator: type) -> dict[str, object]:
    parameters = inspect.signature(estimator).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty}


def test_pictures_are_small_and_all_shown():
    shown = {Path(m[1] or m[2]).name for page in PAGES for m in LINK.finditer(page.read_text(encoding="utf-8"))}
    for picture in (DOCS / "pictures").iterdir():
        assert picture.stat().st_size < 150_000, f"{picture.name} is too large for a page."
        assert picture.name in shown, f"No page shows {picture.name}."
