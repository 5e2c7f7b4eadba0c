"""Places of the library that know a method by its name, found in the syntax trees."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

WORDS = {"evidence": "evidence", "rare": "rare", "nearest": "nearest", "method": "nearest"}
"""Texts that name a method, and which one."""
CLASSES = re.compile(r"(Evidence|Rare|Nearest)(Event|Medoid)?(Part|Classifier|Method)?")
"""Classes of methods: their parts, estimators and settings."""
REGISTRY = ("methods/registry.py", "estimators/recipes.py")
"""Where methods may be listed by name."""
DISPATCH = ("isinstance", "match", "comparison", "list")
"""Kinds of places that a new method would have to be added to."""

_OWNERS = {"Evidence": "evidence", "Rare": "rare", "Nearest": "nearest"}
_FOLDERS = {"evidence": ("evidence",), "rare": ("rare",), "nearest": ("nearest",)}
# Texts that are compared with these are no methods: kinds of deltas, and the columns of a table.
_OTHER_THINGS = re.compile(r"kind|deltas|column|blocks?\b")


class Place(NamedTuple):
    """One place.

    Attributes
    ----------
    file : str
        Below the package.
    line : int
    inside : str
        The function or class that it stands in; empty for the module.
    kind : {"isinstance", "match", "comparison", "list", "mention"}
        A check of the type, a case of a match, a comparison with a name, a tuple, list, dict or `Literal` of two names
        or more, or any other use of a class, such as its construction.
    names : tuple of str
        What is named.
    """

    file: str
    line: int
    inside: str
    kind: str
    names: tuple[str, ...]


def method_places(package: Path) -> list[Place]:
    """All places outside the registry and outside the files of the method itself, in order."""
    found: list[Place] = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        if file in REGISTRY:
            continue
        places = [_foreign(place) for place in _places(ast.parse(path.read_text(encoding="utf-8")), file)]
        found += sorted(place for place in set(places) if place.names)
    return found


def _foreign(place: Place) -> Place:
    """The place without names of the method that the file belongs to."""
    return place._replace(names=tuple(name for name in place.names if not _is_own(name, place.file)))


def _is_own(name: str, file: str) -> bool:
    match = CLASSES.fullmatch(name)
    owner = _OWNERS[match[1]] if match else WORDS[name]
    parts = [part.removeprefix("_").removesuffix(".py").split("_")[0] for part in file.split("/")]
    return any(folder in parts for folder in _FOLDERS[owner])


def _places(tree: ast.Module, file: str) -> Iterator[Place]:
    """Those of a module; what stands within a check is not found again as a mention."""
    taken: set[ast.AST] = set()
    inside = _homes(tree)
    for node in ast.walk(tree):
        kind, names = _dispatch(node)
        if names:
            taken.update(ast.walk(node) if kind in ("isinstance", "list", "match") else [])
            yield Place(file, node.lineno, inside[node], kind, names)  # type: ignore[attr-defined]
    taken |= _annotations(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node not in taken and _is_class(node.id):
            yield Place(file, node.lineno, inside[node], "mention", (node.id,))


def _homes(tree: ast.Module) -> dict[ast.AST, str]:
    """For every node the function or class that it stands in, with those around it."""
    homes: dict[ast.AST, str] = {}

    def note(node: ast.AST, home: str) -> None:
        homes[node] = home
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            home = f"{home}.{node.name}" if home else node.name
        for child in ast.iter_child_nodes(node):
            note(child, home)

    note(tree, "")
    return homes


def _dispatch(node: ast.AST) -> tuple[str, tuple[str, ...]]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "issubclass"):
        return "isinstance", _classes(node.args[1])
    if isinstance(node, ast.MatchClass):
        return "match", _classes(node.cls)
    if isinstance(node, ast.MatchValue):
        return "match", _texts([node.value])
    if isinstance(node, ast.Compare):
        if _OTHER_THINGS.search(ast.unparse(node)):
            return "comparison", ()
        parts = [part for side in (node.left, *node.comparators) for part in _elements(side)]
        return "comparison", _texts(parts)
    if isinstance(node, ast.Dict):
        keys = [key for key in node.keys if key is not None]
        names = _texts(keys) + tuple(key.id for key in keys if isinstance(key, ast.Name) and _is_class(key.id))
        return "list", names if len(names) > 1 else ()
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        names = _texts(node.elts)
        return "list", names if len(names) > 1 else ()
    return "", ()


def _elements(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]


def _texts(nodes: list[ast.expr]) -> tuple[str, ...]:
    return tuple(node.value for node in nodes if isinstance(node, ast.Constant) and node.value in WORDS)


def _classes(node: ast.AST) -> tuple[str, ...]:
    return tuple(part.id for part in ast.walk(node) if isinstance(part, ast.Name) and _is_class(part.id))


def _is_class(name: str) -> bool:
    return CLASSES.fullmatch(name) is not None and name not in ("Evidence", "Rare", "Nearest")


def _annotations(tree: ast.Module) -> set[ast.AST]:
    """Nodes of type annotations."""
    roots: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg):
            roots.append(node.annotation)
        elif isinstance(node, ast.FunctionDef):
            roots.append(node.returns)
    return {part for root in roots if root is not None for part in ast.walk(root)}
