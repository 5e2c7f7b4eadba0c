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


def test_another_figure_in_the_study_is_another_sentence(docs_scripts, monkeypatch, tmp_path):
    results, tables, frauds = (docs_scripts(f"quality_{name}") for name in ("results", "tables", "frauds"))
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    header = "measure,size,group,among,tables,ours,CatBoost,EBM,critical difference,Friedman p"
    for rank in ("1.2", "2.6"):
        rows = [f'log-loss,"≤ 4,000",all,{among},12,{rank},1.5,,0.9,0.01' for among in ("three", "all")]
        (tmp_path / "ranks.csv").write_text("\n".join(["# made", header, *rows]), encoding="utf-8")
        order = "ours 1.20, CatBoost 1.50" if rank == "1.2" else "CatBoost 1.50, ours 2.60"
        assert tables.rank_sentence("≤ 4,000", "log-loss") == (
            f"≤ 4,000 rows, average rank by log-loss over 12 tables (1 is best): {order}."
        )
        assert tables.rank_sentence("≥ 20,000", "log-loss") == ""
        bold = "**1.20** | 1.50" if rank == "1.2" else "2.60 | **1.50**"
        assert tables.ranks("all").splitlines()[-1] == f"| log-loss | ≤ 4,000 | all | 12 | {bold} | 0.90 |"
    header = "measure,size,group,rival,tables,tables we win,ours better by,low,high,Wilcoxon p"
    rows = [f'log-loss,"≤ 4,000",all,{rival},12,9,0.01,-0.002,0.02,0.0312' for rival in ("CatBoost", "EBM")]
    (tmp_path / "over_tables.csv").write_text("\n".join(["# made", header, *rows]), encoding="utf-8")
    assert tables.strong_sentence("≤ 4,000") == (
        "≤ 4,000 rows: the log-loss of ours is smaller than CatBoost's on 9 of 12 tables (Wilcoxon p 0.031)."
    )
    assert "| +0.0100 (−0.0020 to +0.0200) | 9 of 12 | 0.031 |" in tables.over_tables()
    header = "split,seed,rival,figure,ours − theirs,low,high,verdict"
    rows = [
        "random,0,ours,PR-AUC,9,9,9,level",
        "random,mean,{},PR-AUC,0.002,-0.001,0.005,level",
        "time,0,{},PR-AUC,-0.01,-0.02,-0.001,ours worse",
    ]
    without = '"ours, without its circuit"'
    (tmp_path / "card_paired.csv").write_text("\n".join(["# made", header, *(row.format(without) for row in rows)]))
    assert frauds.card_sentences(["ours, without its circuit"]).splitlines() == [
        "- Random splits, PR-AUC: ours minus ours without its circuit is +0.0020 (95 %: −0.0010 to +0.0050), level.",
        "- Time split, PR-AUC: ours minus ours without its circuit is −0.0100 (95 %: −0.0200 to −0.0010), "
        "ours is worse.",
    ]


def test_without_a_study_the_pages_say_how_to_run_it(docs_scripts, monkeypatch, tmp_path):
    script, results = docs_scripts("make_quality"), docs_scripts("quality_results")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "nothing")
    for made in script.sections().values():
        assert not made.sections
        assert all(results.COMMAND in why for why in made.waiting.values())
    page = script.QUALITY.read_text(encoding="utf-8")
    waiting = script.sections()[script.QUALITY].waiting
    assert set(waiting) == set(script.PAGES[script.QUALITY])
    assert docs_scripts("marked_sections").fill(page, {}, tuple(waiting)) == page


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
    section = re.split(r"^\w+\n-+\n", inspect.getdoc(estimator), flags=re.MULTILINE)[1]
    documented = {}
    for parameters, defaults in re.findall(r"^(\w+(?:, \w+)*) : .*?default=(.+)$", section, flags=re.MULTILINE):
        values = [math.pi / 2 if value == "π/2" else ast.literal_eval(value) for value in defaults.split(" and ")]
        documented |= dict(zip(parameters.split(", "), values, strict=True))
    assert documented == defaults_of(estimator)


def test_defaults_in_the_tables_of_the_pages_are_those_of_the_code():
    from qmedoid.cli.app import load_command

    evidence = defaults_of(qmedoid.EvidenceClassifier)
    shown = table_defaults(DOCS / "evidence.md")
    assert shown == {name: evidence[name] for name in shown}
    options = {
        option: one.default
        for name in ("circuit run", "fit")
        for one in load_command(name).params
        for option in one.opts
    }
    shown = table_defaults(DOCS / "command-line.md")
    assert shown == {name: options[name] for name in shown} | {"--medoids": evidence["n_medoids"]}
    assert {"--test", "--method", "--refine", "--seed", "--shots", "--n-qubits"} < shown.keys()


def defaults_of(estimator: type) -> dict[str, object]:
    parameters = inspect.signature(estimator).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty}


def table_defaults(page: Path) -> dict[str, object]:
    """Values in a page's tables of parameters or options, where they are code or numbers and not words."""
    defaults = {}
    for table in re.findall(
        r"^\| \w+ \| meaning \| default \|\n(?:\|.*\n)+", page.read_text("utf-8"), flags=re.MULTILINE
    ):
        for names, values in re.findall(r"^\| (`.*?) \| .* \| (.*?) ?\|$", table, flags=re.MULTILINE):
            for name, value in zip(re.findall(r"`(.*?)`", names), re.split(r", ", values), strict=False):
                if re.fullmatch(r"`.+`|[\d.,]+", value):
                    text = value.strip("`").replace(",", "")
                    defaults[name] = text if name in ("--test", "--method", "--refine") else ast.literal_eval(text)
    return defaults


def test_the_glossary_has_at_most_thirty_words_in_order():
    words = re.findall(r"^\| (?!word |---)([\w -]+) \|", (DOCS / "glossary.md").read_text("utf-8"), flags=re.MULTILINE)
    assert 20 < len(words) <= 30
    assert words == sorted(words, key=str.casefold)


def test_pictures_are_small_and_all_shown():
    shown = {Path(m[1] or m[2]).name for page in PAGES for m in LINK.finditer(page.read_text(encoding="utf-8"))}
    for picture in (DOCS / "pictures").iterdir():
        assert picture.stat().st_size < 150_000, f"{picture.name} is too large for a page."
        assert picture.name in shown, f"No page shows {picture.name}."
