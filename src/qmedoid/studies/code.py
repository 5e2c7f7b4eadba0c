"""What some functions compute, as one hash of the code that they reach: of what it does, not of where it lies.

The rule: begin with the modules of the functions, and follow the imports of project modules, those within functions
included. A string that names a project module (``"qmedoid.methods.rare.model:RareEventModel"``) is an import, too, and
a module that imports a name made by an f-string reaches its whole folder, with the sources of its compiled kernels. A
name that a package imports on first use leads to the module that defines it. Each statement at the top level of a
reached module is hashed as a syntax tree, and the sorted hashes are hashed again. So

- comments, layout and docstrings do not count, nor do type-checking imports;
- the names of modules and the order of their statements do not count: a module that is moved or renamed, or a function
  that moves between reached modules, keeps the hash;
- a changed constant, expression, default or name of a function counts, and so does another name that is imported;
- a module that is not reached does not count.

Where two reached modules define the same name, an import of it counts with the definition that it leads to.
"""

import ast
import hashlib
import platform
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from qmedoid._version import __version__
from qmedoid.kernels._backend import compiled

COMPILED = (".pyx", ".c", ".h")
"""Endings of the sources of compiled kernels."""
_MODULE = "<module>"
Definitions = dict[str, dict[str, ast.stmt]]
"""By name, the reached modules that define it, and their statements that do."""


class Project:
    """The modules of some packages, by their dotted names; `folders` says where the packages lie."""

    def __init__(self, folders: dict[str, Path]) -> None:
        self._folders = folders
        # Asked for again and again while a digest is made.
        self.file, self.tree, self._lazy = cache(self._file), cache(self.parsed), cache(self._lazy_homes)

    def _file(self, module: str) -> Path | None:
        """The source of a module, or None where it is none of the project's."""
        package, *parts = module.split(".")
        if package not in self._folders:
            return None
        place = self._folders[package].joinpath(*parts)
        return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)

    def parsed(self, module: str) -> ast.Module:
        """A new syntax tree of a module, without docstrings and type-checking imports."""
        file = self.file(module)
        assert file is not None
        tree: ast.Module = _WithoutWords().visit(ast.parse(file.read_text(encoding="utf-8")))
        return tree

    def home(self, module: str, name: str) -> tuple[str, str | None]:
        """The module and the name there that ``from module import name`` leads to; no name for a module."""
        if self.file(f"{module}.{name}") is not None:
            return f"{module}.{name}", None
        return self._lazy(module).get(name, module), name

    def _lazy_homes(self, module: str) -> dict[str, str]:
        """The modules of names that a package imports on first use: a dictionary of strings says where they are."""
        found = {}
        for node in ast.walk(self.tree(module)):
            for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
                home = self.named(value.value) if isinstance(value, ast.Constant) else None
                if isinstance(key, ast.Constant) and home is not None:
                    found[str(key.value)] = home
        return found

    def named(self, text: Any) -> str | None:
        """The module that a string names: ``"package.module"``, or ``"package.module:name"``."""
        if not isinstance(text, str) or "." not in text or not text.replace(".", "").replace(":", "").isidentifier():
            return None
        module = text.partition(":")[0]
        return module if self.file(module) is not None else None

    def folder(self, module: str) -> list[str]:
        """All modules of a module's folder and of those below."""
        file = self.file(module)
        assert file is not None
        package = module if file.name == "__init__.py" else module.rpartition(".")[0]
        found = sorted(file.parent.rglob("*.py"))
        parts = (one.relative_to(file.parent).with_suffix("").parts for one in found)
        return [".".join((package, *(part for part in own if part != "__init__"))) for own in parts]


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
        imports, has_computed = _imports(project, module)
        waiting += imports
        if has_computed:
            waiting += project.folder(module)
            kernels.update(one for one in file.parent.rglob("*") if one.suffix in COMPILED)
    return sorted(found), sorted(kernels)


def code_digest(project: Project, modules: Iterable[str]) -> str:
    """SHA-256 of what the code of some modules and of all that they reach does."""
    found, kernels = reached(project, modules)
    definitions: Definitions = {}
    for module in found:
        for name, statement in _definitions(project.tree(module)):
            definitions.setdefault(name, {})[module] = statement
    parts = [text for module in found for text in _Content(project, module, definitions).statements()]
    parts += [hashlib.sha256(one.read_bytes()).hexdigest() for one in kernels]
    return hashlib.sha256("\n".join(sorted(parts)).encode()).hexdigest()


@cache
def module_digest(module: str) -> str:
    """`code_digest` of a module of this package or of another."""
    packages = {name.partition(".")[0] for name in (module, __name__)}
    return code_digest(Project({name: _folder_of(name) for name in packages}), [module])


def _folder_of(package: str) -> Path:
    spec = find_spec(package)
    places = [] if spec is None else [*(spec.submodule_search_locations or []), spec.origin]
    if not places or places[0] is None:
        raise ValueError(f"The code of {package!r} cannot be found, so results of it cannot be kept.")
    return Path(places[0])


class _WithoutWords(ast.NodeTransformer):
    """Drops docstrings, those of attributes included, and what only type checkers run."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            node.body = [ast.Pass()]  # type: ignore[attr-defined]
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_typing = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_typing else self.generic_visit(node)


def _imports(project: Project, module: str) -> tuple[list[str], bool]:
    """Project modules that a module imports or names, and whether it imports a name made by an f-string."""
    found, has_computed = [], False
    for node in ast.walk(project.tree(module)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if project.file(alias.name) is not None]
        elif isinstance(node, ast.ImportFrom) and project.file(node.module or "") is not None:
            found += [project.home(node.module or "", alias.name)[0] for alias in node.names]
        elif isinstance(node, ast.Constant):
            named = project.named(node.value)
            found += [named] if named is not None else []
        elif isinstance(node, ast.Call) and any(isinstance(one, ast.JoinedStr) for one in node.args):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            has_computed |= called == "import_module"
    return found, has_computed


def _definitions(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Names that the statements of a module bind, and these statements."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((one.id, node) for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


class _Content(ast.NodeTransformer):
    """The statements of a module without names of modules."""

    def __init__(self, project: Project, module: str, definitions: Definitions) -> None:
        self._project, self._module, self._definitions = project, module, definitions
        self._modules: dict[str, str] = {}
        """Project modules by the names that this module gives them."""

    def statements(self) -> Iterator[str]:
        """A hash of each statement."""
        tree = self._project.parsed(self._module)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and self._project.file(node.module or "") is not None:
                for alias in node.names:
                    home, name = self._project.home(node.module or "", alias.name)
                    if name is None:
                        self._modules[alias.asname or alias.name] = home
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname and self._project.file(alias.name) is not None:
                        self._modules[alias.asname] = alias.name
        for node in tree.body:
            content = self.visit(node)
            if content is not None:
                yield hashlib.sha256(ast.dump(content).encode()).hexdigest()

    def visit_Import(self, node: ast.Import) -> ast.AST | None:
        node.names = [alias for alias in node.names if self._project.file(alias.name) is None]
        return node if node.names else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        if self._project.file(node.module or "") is None:
            return node
        names = []
        for alias in node.names:
            home, name = self._project.home(node.module or "", alias.name)
            said = None if name is None else self._said(home, name)
            if name is not None and (said or alias.asname not in (None, name)):
                names.append(ast.alias(f"{name} {said or ''}", alias.asname))
        return ast.ImportFrom(_MODULE, names, 0) if names else None

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self._modules:
            said = self._said(self._modules[node.value.id], node.attr)
            return ast.Attribute(ast.Name(_MODULE), f"{node.attr} {said or ''}", node.ctx)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if self._project.named(node.value) is None:
            return node
        return ast.Constant(str(node.value).partition(":")[2] or _MODULE)

    def _said(self, module: str, name: str) -> str | None:
        """The hash of a definition, where other reached modules define the same name otherwise."""
        known = self._definitions.get(name, {})
        texts = {place: ast.dump(statement) for place, statement in known.items()} if len(known) > 1 else {}
        if len(set(texts.values())) < 2 or module not in texts:
            return None
        return hashlib.sha256(texts[module].encode()).hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of the interpreter and of the packages that fit and measure, and which kernels are used."""
    kernels = "numpy" if compiled("search") is None else "compiled"
    found = {"qmedoid": __version__, "kernels": kernels, "python": platform.python_version()}
    found["machine"] = platform.machine()
    for package in ("numpy", "scipy", "scikit-learn", "lightgbm", "imbalanced-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found
