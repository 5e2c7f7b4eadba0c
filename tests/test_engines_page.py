"""The recipes for other engines run as they stand on their page, and give what the saved model says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.plain_environment import needs_of

from qmedoid import load
from qmedoid.datasets import locate

PAGE = Path(__file__).parent.parent / "docs" / "how-to" / "engines.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
PACKAGES = {"Spark": "pyspark", "Ray Data": "ray", "DuckDB": "duckdb", "Polars": "polars"}


def blocks() -> dict[str, list[str]]:
    """Blocks of Python by the heading that they stand below; those of the setup below none."""
    first, *rest = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {"": BLOCK.findall(first)}
    return found | {part.partition("\n")[0]: BLOCK.findall(part) for part in rest if BLOCK.search(part)}


RECIPES = [(engine, place) for engine, found in blocks().items() if engine for place in range(len(found))]


@pytest.fixture(scope="module")
def made(tmp_path_factory, plain):
    """A folder with the model and the table of the page."""
    folder = tmp_path_factory.mktemp("engines")
    shutil.copy(locate("heart"), folder / "heart.csv")
    run(plain, folder, blocks()[""])
    return folder


def run(plain, folder, found):
    """Run blocks with what the page needs."""
    needs = needs_of(PAGE.read_text(encoding="utf-8"))
    code, printed = plain.run(needs, folder, PAGE.name, code="\n".join(found))
    assert code == 0, printed[-3000:]


def test_every_engine_has_a_recipe_of_about_ten_lines():
    assert {engine for engine, _ in RECIPES} == set(PACKAGES)
    assert all(len(block.strip().splitlines()) <= 12 for found in blocks().values() for block in found)


@pytest.mark.parametrize(("engine", "place"), RECIPES)
def test_recipes_give_the_results_of_the_saved_model(engine, place, made, plain, tmp_path):
    package = PACKAGES[engine]
    pytest.importorskip(package, reason=f"{engine} is not installed: pip install {package}")
    if package == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java: apt-get install default-jre-headless")
    for name in ("heart.qmedoid", "patients.parquet"):
        shutil.copy(made / name, tmp_path)
    block = blocks()[engine][place]
    if package in ("pyspark", "ray"):  # they leave processes behind until their own ends
        surroundings = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", block]
        done = subprocess.run(
            command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=240, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
    else:
        run(plain, tmp_path, [block])
    expected = load(made / "heart.qmedoid").score_table(pq.read_table(made / "patients.parquet"), columns=["Age"])
    found = pq.read_table(tmp_path / "decisions.parquet")
    assert len(found) == 918
    assert found.cast(expected.schema).equals(expected)
