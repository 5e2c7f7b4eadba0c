"""The shape of the package: no figure is above its budget, and the script that counts is right on a small package."""

import importlib
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from benchmarks import shape
from benchmarks._method_names import method_places
from benchmarks._shape_counts import counts, lines_by_folder

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def package(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("def f(x):\n    return isinstance(x, int | EvidencePart)", "isinstance"),
        ("def f(x):\n    match x:\n        case RarePart():\n            return 1", "match"),
        ("def f(x):\n    match x:\n        case 'rare':\n            return 1", "match"),
        ("def f(x):\n    return x.method == 'evidence'", "comparison"),
        ("def f(x):\n    return x in ('nearest', 'other')", "comparison"),
        ("NAMES = {'evidence': 1, 'rare': 2}", "list"),
        ("HOW = {EvidencePart: 1, NearestPart: 2}", "list"),
        ("def f():\n    return NearestMedoidClassifier()", "mention"),
    ],
)
def test_method_places_are_found_outside_the_registry_and_the_method(tmp_path, text, kind):
    assert {place.kind for place in method_places(package(tmp_path, {"model/decision.py": text}))} == {kind}
    assert not method_places(package(tmp_path / "registry", {"methods/registry.py": text}))


def test_tracer_counts_functions_that_are_entered_from_another_module(tmp_path, monkeypatch):
    files = {
        "toy_shape/__init__.py": "",
        "toy_shape/first.py": (
            "from toy_shape.second import Thing, at_import\n"
            "at_import()\n"
            "def start():\n    helper()\n    return [one for one in (Thing().value, sorted([2, 1], key=lambda x: x))]\n"
            "def helper():\n    pass\n"
        ),
        "toy_shape/second.py": (
            "def at_import():\n    pass\n"
            "class Thing:\n    def __init__(self):\n        self._x = inner()\n"
            "    @property\n    def value(self):\n        return self._x\n"
            "def inner():\n    return 1\n"
        ),
    }
    monkeypatch.syspath_prepend(str(package(tmp_path, files)))
    tracer = shape.Tracer(tmp_path / "toy_shape")
    sys.setprofile(tracer)
    try:
        importlib.import_module("toy_shape.first").start()
    finally:
        sys.setprofile(None)
    names = {kind: {function[2] for function in tracer.plain(getattr(tracer, kind))} for kind in ("entered", "crossed")}
    assert names["crossed"] == {"start", "Thing.__init__", "Thing.value"}
    assert names["entered"] == names["crossed"] | {"helper", "inner"}


def test_figures_of_a_small_package(tmp_path):
    files = {
        "pyproject.toml": """
            [[tool.importlinter.contracts]]
            type = "layers"
            layers = ["toy.high", "toy.low : toy.other", "toy.words"]
        """,
        "toy/words.py": "",
        "toy/high/a.py": (
            '"""A module."""\n\nfrom dataclasses import dataclass\nfrom typing import NamedTuple\n\n'
            "from toy.low.b import often\n\n\n"
            "@dataclass(frozen=True)\nclass A:\n    x: int\n\n\nclass B(NamedTuple):\n    y: int  # fmt: skip\n\n\n"
            "def once():\n    return often() + often()\n"
        ),
        "toy/low/b.py": "# A comment.\nclass A:\n    pass\n\n\ndef often():\n    return (\n        1\n    )\n",
        "toy/other/schemas/c.json": "{\n}\n",
        "tests/test_a.py": "from toy.high import a\nfrom toy.low.b import _private\n",
    }
    package(tmp_path, {name: textwrap.dedent(text) for name, text in files.items()})
    assert counts(tmp_path / "toy", tmp_path) == {
        "folders": 2,
        "ranks": 2,
        "imports from folder to folder": 1,
        "modules": 3,
        "lines of Python": 28,
        "lines of code": 16,
        "longest module": 19,
        "containers": 2,
        "class names defined twice": 1,
        "modules with a single importer": 1,
        "module-level functions": 2,
        "module-level functions called at most once": 1,
        "lines that know a method by name": 0,
        "lines of schema by hand": 2,
        "lines where the formatter is overruled": 1,
        "lines of tests": 2,
        "test files that import private names": 1,
    }
    assert lines_by_folder(tmp_path / "toy") == {"": (1, 0, 0), "high": (1, 19, 10), "low": (1, 9, 6)}


# --- the package itself ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def figures():
    """What benchmarks/shape.py counts, the steps of commands included."""
    return shape.figures(shape.package_folder(), shape.PROJECT, shape.steps())


def test_no_figure_of_the_package_is_above_its_budget(figures):
    allowed = tomllib.loads((BENCHMARKS / "shape_budgets.toml").read_text())["figures"]
    assert set(allowed) == set(figures)
    above = {name: (value, allowed[name]) for name, value in figures.items() if value > allowed[name]}
    assert not above, f"Figures above their budgets in benchmarks/shape_budgets.toml (counted, allowed): {above}"


def test_no_folder_has_more_lines_than_its_budget():
    allowed = tomllib.loads((BENCHMARKS / "shape_budgets.toml").read_text())["lines"]
    lines = {name: size[1] for name, size in lines_by_folder(BENCHMARKS.parent / "src" / "qmedoid").items()}
    assert set(lines) <= set(allowed), "a folder without a budget"
    above = {name: (value, allowed[name]) for name, value in lines.items() if value > allowed[name]}
    assert not above, f"Folders above their budgets in benchmarks/shape_budgets.toml (counted, allowed): {above}"
