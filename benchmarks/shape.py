"""Count the shape of the library: its size, its imports, and the steps of a command.

Run as ``python benchmarks/shape.py``; ``--json`` prints all figures and lists, ``--steps`` the functions of each
command, ``--column after`` writes a column of ``benchmarks/results/shape.csv`` and of docs/architecture.md, and
``--lower`` lowers the budgets that the check compares with.

Lines are lines of files, empty ones included; lines of code have neither documentation nor comments. A container is a
dataclass or a named tuple. The steps of a command are counted while it runs in a process of its own, on a table of 300
rows with four numbers, a category and two classes, on one thread per library, threads of our own included. A **step**
is a distinct function or method of the package, by file, first line and name, that is entered from another module:
nobody has to open another file to follow a call within one. The caller is the nearest frame of the package; a function
that only other packages call (Typer, scikit-learn, a pool of threads) counts, too. Properties and special methods such
as ``__init__`` count. Not counted are what runs while a module is imported (module and class bodies, decorators),
comprehensions, lambdas and generator expressions, and what is generated or compiled (methods of dataclasses, kernels).
``fit`` ends when the fitted classifier is there, before figures of held-out rows are taken and the model is saved;
``fit, all of it`` goes on to the end.

A **line that knows a method** is a check of the type, a case of a match, a comparison with the name, or a list of
names, outside the registry and outside the files of the method itself: what a new method would have to be added to.
"""

import argparse
import csv
import importlib.util
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks._method_names import method_places
from benchmarks._shape_counts import (
    Source,
    containers,
    counts,
    doubled_classes,
    lines_by_folder,
    seldom_called,
    single_importers,
)
from benchmarks._timing import RESULTS

PROJECT = Path(__file__).resolve().parent.parent
OUT = RESULTS / "shape.csv"
PAGE, PAGE_MARKS = PROJECT / "docs" / "architecture.md", ("<!-- begin: shape -->", "<!-- end -->")
BUDGETS = PROJECT / "benchmarks" / "shape_budgets.toml"
BUDGETS_HEAD = (
    "# What each figure of `python benchmarks/shape.py` may be at most. The check compares; `--lower` lowers all of\n"
    "# them to the figures of today. Whoever raises one does it in the same commit, and says why.\n"
)
COMMANDS = ("fit", "score", "explain", "report")
FRONT_DOORS = ("MedoidClassifier",)
"""The class whose `fit` ends the steps of a fit: the first of these that there is."""
Function = tuple[str, int, str]


def package_folder() -> Path:
    """Where the package lies."""
    found = importlib.util.find_spec("qmedoid")
    if found is None or found.origin is None:
        raise SystemExit("qmedoid is not installed.")
    return Path(found.origin).resolve().parent


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
    """The functions of every command, each in a separate process."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as folder:
        names = ("table.csv", "model", "scored.csv", "decision.html", "report.html")
        table, model, output, decision, page = (str(Path(folder) / name) for name in names)
        write_csv(Path(table))
        commands = {
            "fit": [table, "--target", "target", "-o", model],
            "score": [model, table, "-o", output],
            "explain": [model, table, "--row", "3", "--html", decision],
            "report": [model, table, "-o", page],
        }
        found = {}
        for name in COMMANDS:
            listed = Path(folder) / f"{name}.json"
            call = [sys.executable, __file__, "--trace", str(listed), name, *commands[name]]
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


def figures(package: Path, project: Path, found: dict[str, dict[str, list[Function]]]) -> dict[str, int]:
    """All counts by name."""
    figures = counts(package, project)
    for name in COMMANDS:
        until = " until fitted" if name == "fit" else ""
        figures[f"{name}: steps"] = len(found[name]["steps" + until])
        figures[f"{name}: modules"] = len({function[0] for function in found[name]["entered" + until]})
    figures["fit, all of it: steps"] = len(found["fit"]["steps"])
    return figures


def budgets() -> dict[str, Any]:
    """What every figure may be at most."""
    return tomllib.loads(BUDGETS.read_text(encoding="utf-8"))


def write_budgets(figures: dict[str, int], package: Path) -> None:
    """Lower every budget to the figure of today; none is raised."""
    old = budgets() if BUDGETS.exists() else {"figures": {}, "lines": {}}
    today = {"figures": figures, "lines": {name: size[1] for name, size in lines_by_folder(package).items()}}
    text = BUDGETS_HEAD
    for table, found in today.items():
        text += f"\n[{table}]\n"
        for name, value in found.items():
            text += f'"{name}" = {min(value, old[table].get(name, value))}\n'
    BUDGETS.write_text(text, encoding="utf-8")


def write_column(figures: dict[str, int], column: str) -> None:
    """Write the figures to a column of the table of results, and the table to the page on the architecture."""
    table: dict[str, dict[str, str]] = {}
    if OUT.exists():
        with OUT.open(newline="") as file:
            table = {row.pop("figure"): dict(row) for row in csv.DictReader(line for line in file if line[0] != "#")}
    names = list(dict.fromkeys([*(name for row in table.values() for name in row), column]))
    table = {figure: table.get(figure, {}) | {column: str(value)} for figure, value in figures.items()}
    with OUT.open("w", newline="") as file:
        file.write("# python benchmarks/shape.py --column before|after\n")
        writer = csv.DictWriter(file, ["figure", *names], restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({"figure": figure, **row} for figure, row in table.items())
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for figure, row in table.items():
        lines.append(f"| {figure} | {' | '.join(f'{int(row[name]):,}' if row.get(name) else '' for name in names)} |")
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(PAGE_MARKS[0])
    tail = rest.partition(PAGE_MARKS[1])[2]
    PAGE.write_text("\n".join([head + PAGE_MARKS[0], *lines, PAGE_MARKS[1] + tail]), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print figures and lists as one JSON document")
    parser.add_argument("--lists", action="store_true", help="list what was counted: classes, modules, functions")
    parser.add_argument("--steps", action="store_true", help="list the functions that commands enter by module")
    parser.add_argument("--column", help="write the figures to this column of the table of results")
    parser.add_argument("--lower", action="store_true", help="lower the budgets of the check to the figures of today")
    arguments = parser.parse_args()
    package, found = package_folder(), steps()
    counted = figures(package, PROJECT, found)
    source = Source(package)
    lists = {
        "containers": containers(source),
        "class names defined twice": doubled_classes(source),
        "modules with a single importer": single_importers(source),
        "module-level functions called at most once": seldom_called(source),
        "lines that know a method by name": [place._asdict() for place in method_places(package)],
    }
    if arguments.json:
        print(json.dumps({"figures": counted, **lists, "functions": found}, indent=1))
    else:
        width = max(map(len, counted))
        print("\n".join(f"{name.ljust(width)}  {value:>8,}" for name, value in counted.items()))
    if arguments.lists:
        print(json.dumps(lists, indent=1))
    if arguments.steps:
        for name in COMMANDS:
            by_module = Counter(function[0] for function in found[name]["steps"])
            print(name, *(f" {module}: {count}" for module, count in by_module.items()), sep="\n")
    if arguments.column:
        write_column(counted, arguments.column)
    if arguments.lower:
        write_budgets(counted, package)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trace"]:
        _, _, target, *command = sys.argv
        Path(target).write_text(json.dumps(trace(package_folder(), command)))
    else:
        main()
