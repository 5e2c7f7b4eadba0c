"""The script that counts the shape of the library: what it finds in a small package that is made for it."""

import importlib
import sys
from pathlib import Path

import pytest
from benchmarks._method_names import DISPATCH, method_places

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def shape(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("shape")
    for name in ("shape", "_method_names", "_timing"):
        sys.modules.pop(name, None)


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


@pytest.mark.parametrize(
    "text",
    [
        "def f(kind):\n    return kind == 'nearest'",
        "def f(x: EvidencePart) -> RarePart:\n    return x",
        "from methods.evidence import EvidencePart",
        "NearestRows()",
    ],
)
def test_method_places_are_not_other_things(tmp_path, text):
    assert not method_places(package(tmp_path, {"model/decision.py": text}))


def test_method_places_of_another_method_count(tmp_path):
    text = "def f(x):\n    return isinstance(x, EvidencePart)"
    assert not method_places(package(tmp_path / "one", {"methods/evidence/part.py": text}))
    (place,) = method_places(package(tmp_path / "other", {"methods/rare/part.py": text}))
    assert place.kind in DISPATCH
    assert place.inside == "f"


def test_tracer_counts_functions_that_are_entered_from_another_module(shape, tmp_path, monkeypatch):
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


def test_size_counts_lines_and_classes_defined_twice(shape, tmp_path):
    folder = package(tmp_path, {"a.py": "class A:\n    pass\n", "b/c.py": "\n\nclass A:\n    pass\n"})
    assert shape.size(folder) == {
        "modules": 2,
        "lines of Python": 6,
        "median module": 2,
        "longest module": 4,
        "class names defined twice": 1,
    }
