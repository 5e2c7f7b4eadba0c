"""What a user has who installed the package with some extras: other packages that are here are hidden.

A second virtual environment would be slow to make; a server hides what no requirement asks for (`plain_server.py`).
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
SERVER = Path(__file__).with_name("plain_server.py")
NEEDS = re.compile(r"^Needs:? .*?`(?:python -m )?pip install ([^`]+)`", flags=re.MULTILINE)
"""The line of a page that names the extras of its blocks: ``Needs `pip install 'qmedoid[pandas]'`.``"""


def needs_of(text: str) -> list[str]:
    """What a page asks to be installed: the package alone, where it asks for nothing."""
    found = [word.strip("'\"") for words in NEEDS.findall(text) for word in re.findall(r"'[^']*'|\S+", words)]
    return ["qmedoid", *found]


@cache
def own_requirements() -> dict[str, list[Requirement]]:
    """What the package requires, by extra; what is always required under the empty name.

    Of the project's file, as what is installed may be from before it was changed.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [Requirement(one) for one in lines] for extra, lines in named.items()}


def distributions(needs: Iterable[str]) -> set[str]:
    """Names of the distributions that an installer would install, dependencies among them."""
    found: set[tuple[str, str]] = set()
    queue = [Requirement(one) for one in needs]
    while queue:
        asked = queue.pop()
        name = normal(asked.name)
        for extra in ("", *asked.extras):
            if (name, extra) not in found:
                found.add((name, extra))
                queue += _required(name, extra)
    return {name for name, _ in found}


def _required(name: str, extra: str) -> Iterator[Requirement]:
    if name == "qmedoid":
        if extra not in own_requirements():
            raise KeyError(
                f"There is no extra {extra!r} in pyproject.toml. The extras are {[*own_requirements()][1:]}."
            )
        yield from own_requirements()[extra]
        return
    try:
        lines = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        one = Requirement(line)
        of_extra = one.marker is not None and "extra" in str(one.marker)
        if of_extra == bool(extra) and (one.marker is None or one.marker.evaluate({"extra": extra})):
            yield one


def missing(needs: Iterable[str]) -> list[str]:
    """Distributions of these requirements that are not installed here."""
    there = {owner for owners in _modules().values() for owner in owners}
    return sorted(distributions(needs) - there)


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def hidden(needs: Iterable[str]) -> tuple[list[str], list[str]]:
    """Modules and distributions that are installed here and that these requirements do not install."""
    there = distributions(needs)
    modules = _modules()
    return (
        sorted(module for module, owners in modules.items() if not owners & there),
        sorted({owner for owners in modules.values() for owner in owners} - there),
    )


@cache
def _modules() -> dict[str, set[str]]:
    """The installed modules, with the distributions that have them."""
    return {module: set(map(normal, owners)) for module, owners in metadata.packages_distributions().items()}


class Plain:
    """Runs code as it would run after an install of the package with some extras."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._server = folder, None

    def run(
        self, needs: Sequence[str], folder: Path, page: str, **asked: Any
    ) -> tuple[int, str]:  # fmt: skip
        """Run blocks, or `code`, in a folder; the exit code, and what was printed."""
        if self._server is None:
            command = [sys.executable, str(SERVER), str(self._file(["qmedoid"])), "SERVE"]
            surroundings = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
            self._server = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=surroundings
            )
        request = {"hidden": hidden(needs), "executable": str(self.python(needs)), "folder": str(folder), "page": page,
                   "environment": {"QMEDOID_CACHE": str(folder / "cache")}, **asked}  # fmt: skip
        print(json.dumps(request), file=self._server.stdin, flush=True)
        reply = json.loads(self._server.stdout.readline())
        return reply["code"], reply["printed"]

    def python(self, needs: Sequence[str]) -> Path:
        """A program that is Python with these packages."""
        file = self._file(needs)
        program = file.with_suffix("")
        if not program.exists():
            program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{SERVER}" "{file}" "$@"\n')
            program.chmod(0o755)
        return program

    def _file(self, needs: Sequence[str]) -> Path:
        file = self._folder / (re.sub(r"\W+", "-", "-".join(sorted(set(needs)))) + ".json")
        if not file.exists():
            file.write_text(json.dumps(hidden(needs)))
        return file

    def close(self) -> None:
        """End the server."""
        if self._server is not None:
            self._server.stdin.close()
            self._server.wait(timeout=60)
            self._server.stdout.close()
