"""The hash of code: it changes with what the reached code does, and not with words, layout, or where it lies."""

import pytest
from benchmarks.studies.code import Project, code_digest

SOURCES = {
    "__init__": '''
"""A package."""
_HOMES = {"lazy": "toy.lazily"}
''',
    "start": '''
"""The start."""
from toy import lazy
from toy.deep.formula import double as twice
from toy.deep import shapes


def run(x):
    """Run it."""
    from toy.later import third

    return twice(x) + shapes.side(x) + third(x) + lazy(x)
''',
    "deep/__init__": "",
    "deep/formula": '''
"""Formulas."""
FACTOR = 2
"""A constant."""


def double(x):
    # why
    return FACTOR * x


def triple(x):
    return 3 * x
''',
    "deep/shapes": "def side(x):\n    return x ** 0.5\n",
    "later": 'HOME = "toy.named:Thing"\n\n\ndef third(x):\n    return x / 3\n',
    "lazily": "def lazy(x):\n    return x\n",
    "named": "class Thing:\n    size = 4\n",
    "kernels/__init__": "",
    "kernels/backend": (
        "from importlib import import_module\n\n\ndef compiled(name):\n"
        '    return import_module(f"{__package__}._{name}")\n'
    ),
    "kernels/_twin": "ONE = 1\n",
    "elsewhere": "from toy.start import run\n\nOTHER = 5\n",
}


@pytest.fixture
def toy(tmp_path):
    """A small package; `toy(**changes)` writes it with changed, added and left out modules, and hashes its start."""

    def digest(changes=None, start="toy.start", sources=None):
        folder = tmp_path / f"copy{len(list(tmp_path.iterdir()))}"
        for name, text in ({**SOURCES, "kernels/fast.pyx": "x = 1\n"} | (sources or {}) | (changes or {})).items():
            if text is not None:
                file = folder / (name if "." in name else f"{name}.py")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        return code_digest(Project({"toy": folder}), [start])

    return digest


def renamed(old, new):
    """Changes that move a module and all that name it."""
    module, target = old.replace("/", "."), new.replace("/", ".")
    changes = {old: None, new: SOURCES[old]}
    for name, text in SOURCES.items():
        moved = text.replace(f"toy.{module}", f"toy.{target}")
        package, _, leaf = module.rpartition(".")
        to_package, _, to_leaf = target.rpartition(".")
        moved = moved.replace(
            f"from toy.{package} import {leaf}\n", f"from toy{'.' if to_package else ''}{to_package} import {to_leaf}\n"
        )
        if leaf != to_leaf:
            moved = moved.replace(f"{leaf}.side", f"{to_leaf}.side")
        if moved != text and name != old:
            changes[name] = moved
    return changes


class TestKept:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("deep/formula", "formula"),
            ("deep/formula", "deep/laws"),
            ("deep/shapes", "deep/figures"),
            ("deep/shapes", "shapes"),
            ("later", "deep/sooner"),
            ("lazily", "kernels/lazily"),
            ("named", "deep/called"),
        ],
    )
    def test_a_moved_or_renamed_module(self, toy, old, new):
        changes = renamed(old, new)
        assert len(changes) > 2
        assert toy(changes) == toy()

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ('"""Formulas."""', '"""Other words,\n\nmore of them."""'),
            ('"""Formulas."""\n', ""),
            ('"""A constant."""', '"""Two."""'),
            ("# why", "# therefore"),
            ("return FACTOR * x", "return (\n        FACTOR\n        * x\n    )"),
            ("def double(x):\n", 'def double(x):\n    """Now said."""\n'),
        ],
    )
    def test_changed_words_and_layout(self, toy, old, new):
        assert old in SOURCES["deep/formula"]
        assert toy({"deep/formula": SOURCES["deep/formula"].replace(old, new)}) == toy()

    def test_a_function_that_moves_to_another_reached_module(self, toy):
        before, triple = SOURCES["deep/formula"].split("def triple")
        shapes = f"{SOURCES['deep/shapes']}\n\ndef triple{triple}"
        assert toy({"deep/formula": before, "deep/shapes": shapes}) == toy()

    def test_two_reached_modules_made_one(self, toy):
        start = SOURCES["start"].replace("toy.later", "toy.deep.formula")
        merged = SOURCES["deep/formula"] + SOURCES["later"]
        assert toy({"start": start, "deep/formula": merged, "later": None}) == toy()

    @pytest.mark.parametrize("name", ["elsewhere", "kernels/_twin", "kernels/backend"])
    def test_a_module_that_is_not_reached(self, toy, name):
        assert toy({name: "OTHER = 6\n"}) == toy()
        assert toy({name: None}) == toy()

    def test_imports_for_type_checkers(self, toy):
        typed = f"{SOURCES['deep/shapes']}\nif TYPE_CHECKING:\n    from toy.elsewhere import OTHER\n"
        assert toy({"deep/shapes": typed}) == toy()


class TestChanged:
    @pytest.mark.parametrize(
        ("name", "old", "new"),
        [
            ("deep/formula", "FACTOR = 2", "FACTOR = 3"),
            ("deep/formula", "FACTOR * x", "FACTOR + x"),
            ("deep/formula", "def double(x)", "def double(x=1)"),
            ("deep/shapes", "0.5", "0.25"),
            ("later", "x / 3", "x / 4"),
            ("lazily", "return x", "return -x"),
            ("named", "size = 4", "size = 5"),
            ("start", "double as twice", "triple as twice"),
            ("start", "twice(x) +", "twice(x) -"),
        ],
    )
    def test_a_constant_an_expression_or_an_import(self, toy, name, old, new):
        assert old in SOURCES[name]
        assert toy({name: SOURCES[name].replace(old, new)}) != toy()

    def test_a_string_that_is_no_docstring(self, toy):
        said = SOURCES["deep/shapes"].replace("x ** 0.5", "str(x) + 'a'")
        assert toy({"deep/shapes": said}) != toy({"deep/shapes": said.replace("'a'", "'b'")})

    @pytest.mark.parametrize("how", ["from toy.{0} import side", "from toy import {0}"])
    def test_an_import_of_the_same_name_from_another_reached_module(self, toy, how):
        body = "\n\ndef run(x):\n    return {}(x)\n"
        called = "side" if how.endswith("side") else "{0}.side"
        sources = {name: f"def side(x):\n    return x ** {name[-1]}\n" for name in ("a1", "b2")}
        both = "import toy.a1\nimport toy.b2\n"
        first, second = (
            toy({"start": both + how.format(name) + body.format(called.format(name))}, sources=sources)
            for name in ("a1", "b2")
        )
        assert first != second

    @pytest.mark.parametrize("name", ["kernels/fast.pyx", "kernels/c/inner.h", "kernels/_twin"])
    def test_a_module_that_makes_the_names_it_imports_reaches_its_folder_and_compiled_sources(self, toy, name):
        reached = {"start": SOURCES["start"] + "\nfrom toy.kernels.backend import compiled\n"}
        assert toy(reached | {name: "x = 2\n"}) != toy(reached)
        assert toy({name: "x = 2\n"}) == toy()
