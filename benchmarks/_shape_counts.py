"""Figures of a package from its source text: sizes, imports between folders, classes that only hold values."""

import ast
import io
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks._method_names import DISPATCH, method_places


class Source:
    """The modules of a package, parsed once.

    Attributes
    ----------
    texts, trees : dict of str
        Text and syntax tree of every module, by path below the package.
    names : dict of str
        Path by dotted name, as in ``tables.reading``.
    """

    def __init__(self, package: Path) -> None:
        self.package = package
        paths = sorted(path for path in package.rglob("*.py") if "__pycache__" not in path.parts)
        self.texts = {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in paths}
        self.trees = {file: ast.parse(text) for file, text in self.texts.items()}
        self.names = {_dotted(file): file for file in self.texts}

    def classes(self) -> Iterator[tuple[str, ast.ClassDef]]:
        """All classes with their files."""
        for file, tree in self.trees.items():
            yield from ((file, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))

    def imports(self) -> dict[str, set[str]]:
        """Files that each file imports, imports within functions included."""
        root = self.package.name
        found: dict[str, set[str]] = {}
        for file, tree in self.trees.items():
            names = set()
            for node in ast.walk(tree):
                if isinstance(node, ast.Import):
                    names |= {one.name for one in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names |= {node.module} | {f"{node.module}.{one.name}" for one in node.names}
            below = {name.removeprefix(f"{root}.") for name in names if name.startswith(f"{root}.")}
            found[file] = {self.names[name] for name in below if name in self.names} - {file}
        return found


def _dotted(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _folder(file: str) -> str:
    """The folder of the package that a file lies in; empty for modules at the top."""
    return file.split("/")[0] if "/" in file else ""


def code_lines(text: str) -> int:
    """Lines that hold code: no blank lines, comments or documentation."""
    strings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            strings.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            lines.update(range(token.start[0], token.end[0] + (token.type != tokenize.ENDMARKER)))
    return len(lines - strings)


def containers(source: Source) -> list[str]:
    """Classes that are dataclasses or named tuples."""
    return [f"{file}:{node.name}" for file, node in source.classes() if _is_container(node)]


def _is_container(node: ast.ClassDef) -> bool:
    made = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
    return "dataclass" in map(_last_name, made) or "NamedTuple" in map(_last_name, node.bases)


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def doubled_classes(source: Source) -> dict[str, list[str]]:
    """Class names that are defined more than once, with their places."""
    places: dict[str, list[str]] = {}
    for file, node in source.classes():
        places.setdefault(node.name, []).append(f"{file}:{node.lineno}")
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


def single_importers(source: Source) -> dict[str, str]:
    """Modules that only one other module imports, with that one."""
    users: dict[str, set[str]] = {}
    for file, imported in source.imports().items():
        for one in imported:
            users.setdefault(one, set()).add(file)
    return {
        file: next(iter(users[file]))
        for file in source.texts
        if len(users.get(file, ())) == 1 and not file.endswith("__init__.py")
    }


def folder_edges(source: Source) -> set[tuple[str, str]]:
    """Pairs of folders of which the first imports the second; modules at the top are not counted."""
    pairs = {(_folder(file), _folder(one)) for file, imported in source.imports().items() for one in imported}
    return {(one, other) for one, other in pairs if one and other and one != other}


def seldom_called(source: Source) -> list[str]:
    """Module-level functions that the package calls at most once, by name."""
    calls = Counter(
        _last_name(node.func) for tree in source.trees.values() for node in ast.walk(tree) if isinstance(node, ast.Call)
    )
    return [f"{file}:{node.name}" for file, node in _functions(source) if calls[node.name] <= 1]


def _functions(source: Source) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions at the level of modules."""
    for file, tree in source.trees.items():
        yield from ((file, node) for node in tree.body if isinstance(node, ast.FunctionDef))


def ranks(project: Path, folders: set[str]) -> int:
    """Ranks of folders in the import contract of the layers."""
    with (project / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    layers = max((one["layers"] for one in contracts if one["type"] == "layers"), key=len)
    names = [{name.strip(" ()").split(".")[-1] for name in re.split(r"[|:]", layer)} for layer in layers]
    return sum(bool(layer & folders) for layer in names)


def counts(package: Path, project: Path) -> dict[str, int]:
    """All figures that are counted without running anything."""
    source = Source(package)
    folders = {_folder(file) for file in source.texts} - {""}
    tests = [path.read_text(encoding="utf-8") for path in sorted((project / "tests").rglob("*.py"))]
    private = re.compile(rf"^\s*(from {package.name}[\w.]* import .*\b_[a-z]|from {package.name}[\w.]*\._[a-z])", re.M)
    schemas = [path.read_text(encoding="utf-8") for path in package.rglob("schemas/*.json")]
    dispatch = [place for place in method_places(package) if place.kind in DISPATCH]
    return {
        "folders": len(folders),
        "ranks": ranks(project, folders),
        "imports from folder to folder": len(folder_edges(source)),
        "modules": len(source.texts),
        "lines of Python": sum(len(text.splitlines()) for text in source.texts.values()),
        "lines of code": sum(code_lines(text) for text in source.texts.values()),
        "longest module": max(len(text.splitlines()) for text in source.texts.values()),
        "containers": len(containers(source)),
        "class names defined twice": len(doubled_classes(source)),
        "modules with a single importer": len(single_importers(source)),
        "module-level functions": sum(1 for _ in _functions(source)),
        "module-level functions called at most once": len(seldom_called(source)),
        "lines that know a method by name": len({(place.file, place.line) for place in dispatch}),
        "lines of schema by hand": sum(len(text.splitlines()) for text in schemas),
        "lines where the formatter is overruled": sum(text.count("# fmt: skip") for text in source.texts.values()),
        "lines of tests": sum(len(text.splitlines()) for text in tests),
        "test files that import private names": sum(private.search(text) is not None for text in tests),
    }


def lines_by_folder(package: Path) -> dict[str, tuple[int, int, int]]:
    """Modules, lines and lines of code of every folder; the modules at the top are the folder of the name ''."""
    found: dict[str, tuple[int, int, int]] = {}
    for file, text in Source(package).texts.items():
        modules, lines, code = found.get(_folder(file), (0, 0, 0))
        found[_folder(file)] = (modules + 1, lines + len(text.splitlines()), code + code_lines(text))
    return found
