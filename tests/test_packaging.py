"""Without a C compiler the package builds all the same, works on its NumPy twins, and says so."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
        assert (package / "studies" / "data" / name).exists()
    assert (package / "cli" / "schemas" / "score.json").exists()


def test_it_works_and_says_once_that_it_is_slower(built_without_compiler):
    warned, *result = run(FIT, built_without_compiler)
    assert warned.count("were not built") == 1
    assert "install a C compiler" in warned
    assert result == run(FIT, ROOT / "src")[1:]


def test_the_twins_on_request_give_the_same_model_without_a_word():
    asked = run(FIT, ROOT / "src", QMEDOID_KERNELS="numpy")
    assert asked[0] == "[]"
    assert asked[1:] == run(FIT, ROOT / "src")[1:]
