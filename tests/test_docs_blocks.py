"""Blocks of Python and of the shell run as their page has them, with the package and the extras that it names.

A page names extras in one line, such as ``Needs `pip install 'qmedoid[pandas]'`.``; without it the plain install does.
"""

import importlib
import re
import shutil
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv
from tests.plain_environment import missing, needs_of

from qmedoid import EvidenceClassifier, MedoidClassifier
from qmedoid.datasets import table_of
from qmedoid.model.storage.model_file import save_model

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<code>.*?)^ *```", flags=re.MULTILINE | re.DOTALL)
SHELL = ("sh", "shell")
SHOWN = ("text", "toml", "js", "json", "sql")
"""Languages of blocks that nothing runs here: what is printed, files, and programs with tests of their own."""
MARKED = re.compile(r"<!-- begin: (\w+) -->\n$")

NOT_RUN = {
    r"^(python -m )?pip install ": "needs a package registry",
    r"^make ": "makes a virtual environment",
    r"^qmedoid data fetch creditcard$": "downloads the table of payments",
    r"^qmedoid reproduce all ": "takes an hour",
    r"^qmedoid reproduce wine --quick": "runs as long as all other commands; `make smoke` runs it for all data sets",
    r"^qmedoid reproduce devices ": "takes minutes; tests/studies/test_devices_study.py runs its parts",
    r"--dask tcp://": "needs a cluster; tests/large/test_dask_runner.py has one",
    r"--backend fake_torino": "takes a quarter of a minute; `python docs/make_command_line.py --check` runs it",
    r"--medoid 77": "names a medoid of the reader's model; tests/cli/test_cli_circuit.py has one of its model",
    r"records.csv --row 3 --format qasm ": "needs a trained circuit; tests/cli/test_cli_circuit_trained.py has one",
}
"""Commands of the shell that do not run here, each with the reason."""
RUN_ELSEWHERE = {
    "docs/how-to/engines.md": "test_engines_page.py",
    "docs/how-to/other-tools.md": "test_other_tools_page.py",
    "docs/start.md": "test_tutorials.py",
    "README.md": "test_tutorials.py",
} | {f"docs/tutorials/{page.name}": "test_tutorials.py" for page in (DOCS / "tutorials").glob("*.md")}
"""Pages whose Python another test runs in the same environment, and compares with what they show."""

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="pages are run by forks and a POSIX shell")


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks_of(page):
    """The blocks that run here: language, line, and the code of Python or the commands of the shell, with its value."""
    text, found = page.read_text(encoding="utf-8"), []
    for match in FENCE.finditer(text):
        line, code = text[: match.start()].count("\n") + 1, textwrap.dedent(match["code"])
        if match["language"] == "python" and name_of(page) not in RUN_ELSEWHERE:
            shown = re.findall(r"^# ?(\s*\[.*)$", code, flags=re.MULTILINE)
            found.append(("python", line, code, "\n".join(shown) or None))
        elif match["language"] in SHELL:
            commands = [command for command in commands_of(code) if reason(command) is None]
            found += [("sh", line, commands, None)] if commands else []
    return found


def commands_of(code):
    return [line.strip() for line in code.replace("\\\n", " ").splitlines() if line.strip(" #")]


def reason(command):
    """Why a command does not run here, if so."""
    words = re.sub(r"\s+#.*$", "", command)
    return next((why for pattern, why in NOT_RUN.items() if re.search(pattern, words)), None)


@pytest.fixture(scope="module")
def stand_ins(cli, tmp_path_factory):
    """Files that commands of the pages name, small."""
    folder = tmp_path_factory.mktemp("stand-ins")
    heart = table_of("heart")
    cli.ok("data", "fetch", "heart", "-o", folder / "heart.csv")
    places = np.arange(len(heart))
    known, new = heart.take(places[places % 5 != 0]), heart.take(places[places % 5 == 0])
    for name in ("new.csv", "records.csv", "labeled.csv"):
        csv.write_csv(new, folder / name)
    csv.write_csv(heart.rename_columns([*heart.column_names[:-1], "y"]), folder / "table.csv")
    (folder / "roles.toml").write_text('Age = "keep"\n')
    payments = table_of("creditcard-sample")
    labels = payments["Class"].to_numpy()
    chosen = np.sort(np.append(np.flatnonzero(labels == 0)[::12], np.flatnonzero(labels == 1)[::4]))
    payments = payments.take(chosen)
    part = payments.append_column("id", pa.array(np.arange(len(payments))))
    for name, rows in {"payments.csv": payments, "later.csv": payments.slice(300), "today.csv": payments}.items():
        csv.write_csv(rows, folder / name)
    pq.write_table(payments, folder / "payments.parquet")
    for name, table in {"payments": part, "incoming": new.append_column("id", pa.array(np.arange(len(new))))}.items():
        (folder / name).mkdir()
        half = len(table) // 2
        for number, rows in enumerate((table.slice(0, half), table.slice(half))):
            pq.write_table(rows, folder / name / f"part-{number}.parquet")
    tables = {"heart": (known, "HeartDisease", None), "card": (payments, "Class", {"alert_rate": 0.05})}
    for name, (table, target, point) in tables.items():
        model = MedoidClassifier(method=EvidenceClassifier(), operating_point=point, random_state=0)
        model = model.fit(table.drop_columns(target), table[target].to_numpy()).model_
        contract = replace(model.contract, target=target)
        save_model(replace(model, contract=contract), folder / f"{name}.qmedoid")
    shutil.copy(folder / "card.qmedoid", folder / "champion.qmedoid")
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=name_of)
def test_blocks_run_with_the_extras_that_the_page_names(page, plain, stand_ins, tmp_path):
    """Blocks run in order, in a folder with what ``qmedoid data fetch heart`` writes."""
    text = page.read_text(encoding="utf-8")
    needs, blocks = needs_of(text), blocks_of(page)
    if missing(needs):
        pytest.skip(f"needs {', '.join(missing(needs))}: pip install {' '.join(map(repr, needs))}")
    shutil.copy(stand_ins / "heart.csv", tmp_path)
    shows_values = any(shown is not None for *_, shown in blocks)
    code, printed = plain.run(
        needs, tmp_path, name_of(page), blocks=blocks, quick=not shows_values, stand_ins=str(stand_ins)
    )
    assert code == 0, printed[-6000:]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_block_is_left_out(page):
    """Every block runs here or in the test that is named; what a script prints stands between its markers."""
    text = page.read_text(encoding="utf-8")
    scripts = [importlib.import_module(name) for name in ("make_command_line", "make_tutorials", "make_stability")]
    made = {name for one in scripts for name in sections_of(one)}
    for match in FENCE.finditer(text):
        where = f"{page.name}, line {text[: match.start()].count(chr(10)) + 1}"
        if match["language"] == "console":
            marker = MARKED.search(text[: match.start()])
            assert marker is not None, f"{where}: a block of the console stands between markers of a script."
            assert marker[1] in made, f"{where}: no script makes the section {marker[1]!r}."
        else:
            assert match["language"] in ("python", *SHELL, *SHOWN), f"{where}: nothing runs {match['language']!r}."
            assert match["language"] != "python" or not match["indent"], f"{where}: Python within a list."


def sections_of(script):
    pages = getattr(script, "PAGES", {})
    return {name for sections in pages.values() for name in sections} | set(
        getattr(script, "ANALYST_SECTIONS", ()) or getattr(script, "SECTIONS", ())
    )  # fmt: skip


@pytest.fixture(autouse=True)
def docs_scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    yield
    for script in DOCS.glob("*.py"):
        sys.modules.pop(script.stem, None)


def test_commands_that_do_not_run_are_on_a_page():
    commands = [
        re.sub(r"\s+#.*$", "", command)
        for page in PAGES
        for match in FENCE.finditer(page.read_text(encoding="utf-8"))
        if match["language"] in SHELL
        for command in commands_of(match["code"])
    ]
    assert [pattern for pattern in NOT_RUN if not any(re.search(pattern, one) for one in commands)] == []
    assert all((ROOT / "tests" / name).exists() for name in RUN_ELSEWHERE.values())
