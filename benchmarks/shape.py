"""Count the shape of the library: its size, the steps of a command, and the places that know a method by name.

Run as ``python benchmarks/shape.py``; ``--json`` prints all figures and lists, ``--places`` the places that know a
method, ``--steps`` the functions, and ``--column after`` adds a column to ``benchmarks/results/shape.csv``.

Lines are lines of files, empty ones included. The steps of a command are counted while it runs in a process of its
own, on a table of 300 rows with four numbers, a category and two classes, on one thread per library, threads of our
own included. A **step** is a distinct function or method of the package, by file, first line and name, that is entered
from another module: nobody has to open another file to follow a call within one. The caller is the nearest frame of
the package; a function that only other packages call (Typer, scikit-learn, a pool of threads) counts, too. Properties
and special methods such as ``__init__`` count. Not counted are what runs while a module is imported (module and class
bodies, decorators), comprehensions, lambdas and generator expressions, and what is generated or compiled (methods of
dataclasses, kernels). ``score`` is the whole command; ``fit`` ends when the fitted classifier is there, before
figures of held-out rows are taken and the model is saved; ``fit, all of it`` goes on to the end. This rule gives 117
functions in 44 modules and 153 in 76 for the state (259 modules, 31,931 lines) of which 116 in 45 and 151 in 73 are
known. **Functions entered at all** are those that are entered from their own module, too.

A **place that knows a method** is a check of the type, a case of a match, a comparison with the name, or a list of
names, outside the registry and outside the files of the method itself: what a new method would have to be added to.
"""

import argparse
import ast
import csv
import importlib.util
import inspect
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from _method_names import DISPATCH, Place, method_places
from _timing import RESULTS

OUT = RESULTS / "shape.csv"
FRONT_DOORS = ("MedoidClassifier",)
"""The class whose `fit` ends the steps of a fit: the first of these that there is."""
Function = tuple[str, int, str]


def package_folder() -> Path:
    """Where the package lies."""
    found = importlib.util.find_spec("qmedoid")
    if found is None or found.origin is None:
        raise SystemExit("qmedoid is not installed.")
    return Path(found.origin).resolve().parent


def size(package: Path) -> dict[str, int]:
    """Modules, their lines, and class names that are defined more than once."""
    paths = sorted(package.rglob("*.py"))
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in paths]
    return {
        "modules": len(paths),
        "lines of Python": sum(lines),
        "median module": statistics.median_low(lines),
        "longest module": max(lines),
        "class names defined twice": len(doubled_classes(package)),
    }


def doubled_classes(package: Path) -> dict[str, list[str]]:
    """Class names that are defined in more than one place, with those."""
    places: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(f"{path.relative_to(package).as_posix()}:{node.lineno}")
    return {name: found for name, found in sorted(places.items()) if len(found) > 1}


class Tracer:
    """Notes the functions of the package that are entered, and which of them from another module."""

    def __init__(self, package: Path) -> None:
        self.root = f"{package}{os.sep}"
        self.entered: set[CodeType] = set()
        self.crossed: set[CodeType] = set()
        self.last: CodeType | None = None
        self.until_last: tuple[set[CodeType], set[CodeType]] | None = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """What `sys.setprofile` takes."""
        code = frame.f_code
        if event == "return" and code is self.last and self.until_last is None:
            self.until_last = set(self.entered), set(self.crossed)
        if event != "call" or not code.co_filename.startswith(self.root) or code in self.crossed:
            return
        if code.co_name.startswith("<") or not code.co_flags & inspect.CO_OPTIMIZED:  # no class body
            return
        caller, is_import = self._caller(frame)
        if is_import:
            return
        self.entered.add(code)
        if caller != code.co_filename:
            self.crossed.add(code)

    def _caller(self, frame: FrameType) -> tuple[str, bool]:
        """The file of the nearest frame of the package, and whether a module is being imported."""
        caller, above = "", frame.f_back
        while above is not None:
            code = above.f_code
            if code.co_filename.startswith(self.root):
                if code.co_name == "<module>":
                    return caller, True
                caller = caller or code.co_filename
            above = above.f_back
        return caller, False

    def plain(self, codes: set[CodeType]) -> list[Function]:
        """Functions by file, line and name."""
        cut = len(self.root)
        return sorted((code.co_filename[cut:], code.co_firstlineno, code.co_qualname) for code in codes)


def trace(package: Path, arguments: Sequence[str]) -> dict[str, list[Function]]:
    """Run a command in this process and list the functions that it entered."""
    tracer = Tracer(package)
    if arguments[0] == "fit":
        import qmedoid

        door = next(getattr(qmedoid, name) for name in FRONT_DOORS if hasattr(qmedoid, name))
        tracer.last = inspect.unwrap(door.fit).__code__
    from qmedoid.cli import main

    sys.argv = ["qmedoid", *arguments]
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        main()
    except SystemExit as left:
        if left.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    found = {"entered": tracer.plain(tracer.entered), "steps": tracer.plain(tracer.crossed)}
    if tracer.until_last is not None:
        entered, crossed = tracer.until_last
        found |= {"entered until fitted": tracer.plain(entered), "steps until fitted": tracer.plain(crossed)}
    return found


def steps() -> dict[str, dict[str, list[Function]]]:
    """The functions of ``fit`` and ``score``, each in a separate process."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        table, model, output = (str(Path(folder) / name) for name in ("table.csv", "model", "scored.csv"))
        write_csv(Path(table))
        commands = {
            "fit": ["fit", table, "--target", "target", "-o", model],
            "score": ["score", model, table, "-o", output],
        }
        found = {}
        for name, command in commands.items():
            listed = Path(folder) / f"{name}.json"
            call = [sys.executable, __file__, "--trace", str(listed), *command]
            done = subprocess.run(call, env=os.environ | threads, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"qmedoid {name} failed: {done.stderr}")
            found[name] = json.loads(listed.read_text())
    return found


def write_csv(path: Path) -> None:
    """A small table."""
    rng = np.random.default_rng(0)
    numbers, kinds = np.round(rng.normal(size=(300, 4)), 3), rng.integers(3, size=300)
    positive = numbers[:, 0] + 0.5 * (kinds == 1) + rng.normal(size=300) > 0
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "c", "d", "kind", "target"])
        for row, kind, is_positive in zip(numbers.tolist(), kinds, positive, strict=True):
            writer.writerow([*row, "xyz"[kind], "yes" if is_positive else "no"])


def figures(package: Path, found: dict[str, dict[str, list[Function]]], places: Sequence[Place]) -> dict[str, Any]:
    """All counts by name."""
    counts: dict[str, Any] = dict(size(package))
    parts = {
        "score": (found["score"]["steps"], found["score"]["entered"]),
        "fit": (found["fit"]["steps until fitted"], found["fit"]["entered until fitted"]),
        "fit, all of it": (found["fit"]["steps"], found["fit"]["entered"]),
    }
    for name, (crossed, entered) in parts.items():
        counts[f"{name}: steps"] = len(crossed)
        counts[f"{name}: modules"] = len({function[0] for function in entered})
        counts[f"{name}: functions entered at all"] = len(entered)
    dispatch = [place for place in places if place.kind in DISPATCH]
    counts["places that know a method: functions"] = len({(place.file, place.inside) for place in dispatch})
    counts["places that know a method: lines"] = len({(place.file, place.line) for place in dispatch})
    counts["places that know a method: modules"] = len({place.file for place in dispatch})
    counts["other uses of a method's class: lines"] = len({place[:2] for place in places if place not in dispatch})
    return counts


def write_column(counts: dict[str, Any], column: str) -> None:
    """Add the counts to the table of results, or replace them there."""
    table: dict[str, dict[str, Any]] = {}
    if OUT.exists():
        with OUT.open(newline="") as file:
            table = {row.pop("figure"): dict(row) for row in csv.DictReader(line for line in file if line[0] != "#")}
    names = list(dict.fromkeys([*(name for row in table.values() for name in row), column]))
    for figure, value in counts.items():
        table.setdefault(figure, {})[column] = value
    with OUT.open("w", newline="") as file:
        file.write("# python benchmarks/shape.py --column before|after\n")
        writer = csv.DictWriter(file, ["figure", *names], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({"figure": figure, **row} for figure, row in table.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print figures and lists as one JSON document")
    parser.add_argument("--places", action="store_true", help="list the places that know a method by name")
    parser.add_argument("--steps", action="store_true", help="list the functions that commands enter by module")
    parser.add_argument("--column", help="write the figures to this column of the table of results")
    asked = parser.parse_args()
    package = package_folder()
    places, found = method_places(package), steps()
    counts = figures(package, found, places)
    doubled = doubled_classes(package)
    if asked.json:
        lists = {"doubled classes": doubled, "places": [place._asdict() for place in places], "functions": found}
        print(json.dumps({"figures": counts, **lists}, indent=1))
    else:
        width = max(map(len, counts))
        print("\n".join(f"{name.ljust(width)}  {value:>8,}" for name, value in counts.items()))
    if asked.places:
        print("\n".join(f"{one.file}:{one.line} {one.inside}  {one.kind}: {', '.join(one.names)}" for one in places))
    if asked.steps:
        for name, listed in (("score", found["score"]["steps"]), ("fit", found["fit"]["steps until fitted"])):
            by_module = Counter(function[0] for function in listed)
            print(name, *(f" {module}: {count}" for module, count in by_module.items()), sep="\n")
    if asked.column:
        write_column(counts, asked.column)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trace"]:
        _, _, target, *command = sys.argv
        Path(target).write_text(json.dumps(trace(package_folder(), command)))
    else:
        main()
