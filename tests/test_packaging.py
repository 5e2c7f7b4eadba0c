"""Without a C compiler the package builds all the same, works on its NumPy twins, and says so."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from qmedoid import __version__

ROOT = Path(__file__).parents[1]

FIT = """
import warnings
import numpy as np
from sklearn.datasets import load_wine
from qmedoid import NearestMedoidClassifier
X, y = load_wine(return_X_y=True)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = NearestMedoidClassifier(max_passes=1, subset_sizes=(2, 2), random_state=0).fit(X[:, :5], y)
print([str(w.message) for w in caught if "not built" in str(w.message)])
print(model.configuration_)
print(model.medoid_indices_.tolist(), model.alpha_)
print(model.predict(X[:, :5]).tolist())
"""


def run(code: str, path: Path, **environment: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if k != "QMEDOID_KERNELS"} | {"PYTHONPATH": str(path)} | environment
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def built_without_compiler(tmp_path_factory):
    pytest.importorskip("Cython", reason="needs Cython to build: install the dev extra")
    folder = tmp_path_factory.mktemp("build")
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info"))
    if (ROOT / "build" / "cython").exists():  # what Cython made of these sources is not made again
        shutil.copytree(ROOT / "build" / "cython", folder / "build" / "cython")
    missing = {"CC": "no-such-compiler", "CXX": "no-such-compiler"}
    command = [sys.executable, "setup.py", "--quiet", "build", "--build-lib", "lib"]
    done = subprocess.run(command, cwd=folder, env=os.environ | missing, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "lib"


def test_the_build_has_no_kernels_but_all_else(built_without_compiler):
    package = built_without_compiler / "qmedoid"
    assert not list(package.rglob("*.so"))
    assert (package / "py.typed").exists()
    for name in ("heart.csv", "creditcard_sample.parquet", "README.md"):
        assert (package / "data" / name).exists()
    for name in ("style.css", "templates/base.html", "templates/notebook/view.html"):
        assert (package / "markup" / name).exists()


def test_the_build_has_none_of_the_experiments_and_says_how_to_get_them(built_without_compiler):
    assert [path.name for path in built_without_compiler.iterdir()] == ["qmedoid"]
    assert not list(built_without_compiler.rglob("study*"))
    env = os.environ | {"PYTHONPATH": str(built_without_compiler)}
    command = [sys.executable, "-W", "ignore", "-m", "qmedoid", "reproduce", "wine"]
    done = subprocess.run(command, cwd=built_without_compiler, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: The paper's experiments are not part of the installed package: run this")
    assert done.stderr.count("\n") == 1


@cache
def fitted_here() -> list[str]:
    return run(FIT, ROOT / "src")


def test_it_works_and_says_once_that_it_is_slower(built_without_compiler):
    warned, *result = run(FIT, built_without_compiler)
    assert warned.count("were not built") == 1
    assert "install a C compiler" in warned
    assert result == fitted_here()[1:]


def test_the_twins_on_request_give_the_same_model_without_a_word():
    asked = run(FIT, ROOT / "src", QMEDOID_KERNELS="numpy")
    assert asked[0] == "[]"
    assert asked[1:] == fitted_here()[1:]


def test_kernels_are_plain_c_for_other_compilers(tmp_path):
    """Without the extensions of GCC every file is C11 without variable-length arrays, as MSVC needs it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    strict = ["-std=c11", "-pedantic-errors", "-Werror=vla", "-Wno-unknown-pragmas", "-DQM_PORTABLE", "-fsyntax-only"]
    sources = sorted((ROOT / "src" / "qmedoid" / "kernels" / "c").glob("*.c"))
    done = subprocess.run([compiler, *strict, *sources], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert sources
    assert done.returncode == 0, done.stderr


def test_extensions_of_gcc_are_behind_one_switch():
    for file in (ROOT / "src" / "qmedoid" / "kernels" / "c").glob("*.[ch]"):
        text, deep = file.read_text(encoding="utf-8"), []
        for line in text.splitlines():
            if line.startswith(("#if", "#else")):
                deep = [*deep[: -1 if line.startswith("#else") else None], line]
            elif line.startswith("#endif"):
                deep.pop()
            guarded = any("QM_GNU" in one or "__GNUC__" in one for one in deep)
            foreign = re.search(r"__attribute__|__builtin_|__asm__|_Pragma|#pragma GCC", line)
            assert guarded or not foreign, f"{file.name}: {line}"
        if "QM_GNU" in text and file.name != "dispatch.h":
            assert re.search(r'#include "(dispatch|angle|exp|sincos|nearest_keep)\.h"', text.partition("QM_GNU")[0])


def test_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "qmedoid._version.__version__"}
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.+)$", citation, flags=re.MULTILINE)[1] == __version__
    assert re.search(r"^license: (.+)$", citation, flags=re.MULTILINE)[1] == project["project"]["license"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, flags=re.MULTILINE)[1] == __version__
