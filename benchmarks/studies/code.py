"""What some functions compute, as one hash of the code that they reach: of what it does, not of where it lies.

The rule: begin with the modules of the functions, and follow the imports of project modules, those within functions
included. A string that names a project module (``"qmedoid.methods.rare.part:RarePart"``) is an import, too, and
a module that imports a name made by an f-string reaches its whole folder, with the sources of its compiled kernels. The
statements at the top level of all reached modules, as syntax trees and in sorted order, are hashed. So

- comments, layout and docstrings do not count, nor do type-checking imports;
- the names of modules and the order of their statements do not count: a module that is moved or renamed, or a function
  that moves between reached modules, keeps the hash;
- a changed constant, expression, default or name of a function counts, and so does another name that is imported;
- a module that is not reached does not count.

Where reached modules define the same name differently, an import of it counts with the definition that it leads to.
"""

import ast
import hashlib
import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from qmedoid._version import __version__
from qmedoid.kernels._backend import compiled

COMPILED = (".pyx", ".c", ".h")
"""Endings of the sources of compiled kernels."""
_MODULE = ast.Name("<module>")


class Project:
    """The modules of some packages, by their dotted names; `folders` says where the packages lie."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders
        # Asked for again and again while a digest is made.
        self.file = cache(self._file)
        self.module = cache(lambda name: _Module(self, name))

    def _file(self, module: str) -> Path | None:
        """The source of a module, or None where it is none of the project's."""
        package, *parts = module.split(".")
        if package not in self._folders:
            return None
        place = self._folders[package].joinpath(*parts)
        return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)

    def named(self, text: Any) -> str | None:
        """The module that a string names: ``"package.module"``, or ``"package.module:name"``."""
        if not isinstance(text, str) or "." not in text or not text.replace(".", "").replace(":", "").isidentifier():
            return None
        module = text.partition(":")[0]
        return module if self.file(module) is not None else None


class _Import(NamedTuple):
    """A project module that is imported, the name in it (empty for the module itself), and what it is called here."""

    module: str
    name: str
    called: str


class _Module(ast.NodeTransformer):
    """What a module does: its statements without words, imports and names of modules; and what it imports."""

    def __init__(self, project: Project, name: str) -> None:
        self._project = project
        self._modules: dict[str, str] = {}
        self.imports: list[_Import] = []
        file = project.file(name)
        assert file is not None
        source = file.read_text(encoding="utf-8")
        self.reaches_folder = 'import_module(f"' in source
        contents = map(self.visit, ast.parse(source).body)
        statements = {ast.dump(content): content for content in contents if content is not None}
        self.statements = list(statements)
        self.definitions = {name: text for text, node in statements.items() for name in _bound(node)}

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_typing else self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        for alias in node.names:
            if self._project.file(alias.name) is not None:
                self._add(alias.name, "", alias.asname or alias.name)
        node.names = [alias for alias in node.names if self._project.file(alias.name) is None]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        source = node.module or ""
        if self._project.file(source) is None:
            return node
        for alias in node.names:
            inner = f"{source}.{alias.name}"
            is_module = self._project.file(inner) is not None
            self._add(*((inner, "") if is_module else (source, alias.name)), alias.asname or alias.name)
        return None

    def _add(self, module: str, name: str, called: str) -> None:
        self.imports.append(_Import(module, name, called))
        if not name:
            self._modules[called] = module

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if not isinstance(node.value, ast.Name) or node.value.id not in self._modules:
            return self.generic_visit(node)
        self._add(self._modules[node.value.id], node.attr, node.attr)
        return ast.Attribute(_MODULE, node.attr, node.ctx)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        module = self._project.named(node.value)
        if module is None:
            return node
        name = str(node.value).partition(":")[2]
        self._add(module, name, name)
        return ast.Constant(name)


def _bound(node: ast.stmt) -> list[str]:
    """Names that a statement binds."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def reached(project: Project, modules: Iterable[str]) -> tuple[list[str], list[Path]]:
    """All modules that some modules reach by imports, and the sources of the compiled kernels that they reach."""
    found: set[str] = set()
    kernels: set[Path] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        file = project.file(module)
        if module in found or file is None:
            continue
        found.add(module)
        content = project.module(module)
        waiting += [one.module for one in content.imports]
        if content.reaches_folder:
            package = module if file.name == "__init__.py" else module.rpartition(".")[0]
            waiting += [f"{package}.{one.stem}" for one in file.parent.glob("*.py")]
            kernels.update(one for one in file.parent.rglob("*") if one.suffix in COMPILED)
    return sorted(found), sorted(kernels)


def code_digest(project: Project, modules: Iterable[str]) -> str:
    """SHA-256 of what the code of some modules and of all that they reach does."""
    names, kernels = reached(project, modules)
    found = {name: project.module(name) for name in names}
    parts = [text for module in found.values() for text in module.statements]
    parts += [hashlib.sha256(one.read_bytes()).hexdigest() for one in kernels]
    meanings: dict[str, set[str]] = {}
    for module in found.values():
        for name, text in module.definitions.items():
            meanings.setdefault(name, set()).add(text)
    for one in (one for module in found.values() for one in module.imports if one.name):
        meaning = found[one.module].definitions.get(one.name, "") if len(meanings.get(one.name, ())) > 1 else ""
        if meaning or one.called != one.name:
            parts.append(f"{one.called} is {one.name} {meaning}")
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


@cache
def module_digest(module: str) -> str:
    """`code_digest` of a module of this package or of another."""
    packages = {name.partition(".")[0] for name in (module, __name__, compiled.__module__)}
    return code_digest(Project({name: _folder_of(name) for name in packages}), [module])


def _folder_of(package: str) -> Path:
    spec = find_spec(package)
    places = [] if spec is None else [*(spec.submodule_search_locations or []), spec.origin]
    if not places or places[0] is None:
        raise ValueError(f"The code of {package!r} cannot be found, so results of it cannot be kept.")
    return Path(places[0])


@cache
def versions() -> dict[str, str]:
    """Versions of the interpreter and of the packages that fit and measure, and which kernels are used."""
    kernels = "numpy" if compiled("search") is None else "compiled"
    found = {"qmedoid": __version__, "kernels": kernels, "python": platform.python_version()}
    found["machine"] = platform.machine()
    return found | {
        package: version_of(package) for package in ("numpy", "scipy", "scikit-learn", "lightgbm", "imbalanced-learn")
    }


def version_of(package: str) -> str:
    """The version of an installed package, or ``"none"``."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
