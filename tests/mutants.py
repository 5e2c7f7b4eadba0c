"""Small faults put into a copy of the source one by one, to see whether the tests that should notice them do.

    python tests/mutants.py [--only NAME] [--file PATH] [--jobs N] [--check]

The faults lie in ``tests/faults``, one TOML file for each area. A fault is

    [[fault]]
    name = "what is wrong, in a few words"
    file = "metrics/ranking.py"          # below src/qmedoid, or benchmarks/…; another if the text has moved there
    old = '''text that occurs once in it'''
    new = '''what stands there instead'''
    tests = ["metrics/test_ranking.py"]  # below tests; files or single tests, the smallest that will do
    harmless = "why no test need notice" # only where none does

The repository is copied to a temporary folder for each job, with its compiled kernels, and never changed itself. Named
tests must pass without a fault: this is tried first. A fault is *noticed* when one of its tests fails, *survives* when
all pass, and is *stale* when its old text no longer occurs just once, or its tests are not there. The exit code is 0
if nothing is stale, no survivor lacks a reason and at most 5 % survive. This is not part of ``make test``.
"""

import argparse
import contextlib
import multiprocessing
import os
import queue
import re
import shutil
import signal
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
FAULTS = ROOT / "tests" / "faults"
MOST_SURVIVORS = 0.05
# Seconds after which a test that hangs counts as one that noticed.
_LONGEST = 600
_LEFT_OUT = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "*.egg-info")
# Exit codes of pytest, and ours where it was not the copy that was imported.
_PASSED, _FAILED, _ELSEWHERE = 0, 1, 99
# Before SciPy and NumPy are imported, as the tests want it.
os.environ |= {"SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
# Imported once, in the process that all others are forked from: they take longer than most tests.
_HEAVY = ("pytest", "hypothesis.strategies", "numpy", "scipy.optimize", "scipy.stats", "scipy.spatial.distance",
          "sklearn.model_selection", "sklearn.preprocessing", "sklearn.datasets", "pyarrow.compute", "pyarrow.csv",
          "pyarrow.parquet", "safetensors.numpy", "rich.console")  # fmt: skip
_SERVER = multiprocessing.get_context("forkserver")
Outcome = Literal["noticed", "survived", "stale", "broken"]


@dataclass(frozen=True)
class Fault:
    """A small change of one source file for the worse; see the head of this file."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    harmless: str = ""

    def place(self, root: Path) -> Path | None:
        """The source file that holds the old text just once: the named one, or the one that it has moved to."""
        package = root / "src" / "qmedoid"
        named = (root if self.file.startswith("benchmarks/") else package) / self.file
        counts = {named: _count(named, self.old)}
        if not counts[named]:
            counts = {file: _count(file, self.old) for file in package.rglob("*.py")}
        found = [file for file, count in counts.items() if count]
        return found[0] if len(found) == 1 and counts[found[0]] == 1 else None

    def stale(self, root: Path) -> str:
        """Why the fault no longer fits the source, or nothing."""
        if self.place(root) is None:
            return "its old text does not occur once, and once only"
        absent = [test for test in self.tests if not _is_there(root / "tests", test)]
        return f"tests/{absent[0]} is not there" if absent else ""


def _is_there(folder: Path, test: str) -> bool:
    """Whether a file of tests is there, and has the class and the function that are named after it."""
    file, *names = test.partition("[")[0].split("::")
    kinds = {name: "class" if name[0].isupper() else "def" for name in names}
    return (folder / file).is_file() and all(_count(folder / file, f"{kind} {name}") for name, kind in kinds.items())


def _count(file: Path, text: str) -> int:
    return file.read_text().count(text) if file.is_file() else 0


@dataclass(frozen=True)
class Result:
    """What came of a fault, and how that is known."""

    fault: Fault
    outcome: Outcome
    by: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether somebody must look at it."""
        return self.outcome in ("stale", "broken") or (self.outcome == "survived" and not self.fault.harmless)


def read_faults(folder: Path = FAULTS) -> list[Fault]:
    """All faults, file by file; names are not used twice, and every fault names its tests."""
    entries = [entry for file in sorted(folder.glob("*.toml")) for entry in tomllib.loads(file.read_text())["fault"]]
    faults = [Fault(**(entry | {"tests": tuple(entry["tests"])})) for entry in entries]
    twice = [name for name, count in Counter(fault.name for fault in faults).items() if count > 1]
    empty = [fault.name for fault in faults if not fault.tests or fault.old == fault.new]
    if twice or empty:
        raise SystemExit(f"Faults need names of their own, tests and a change: {', '.join(twice + empty)}")
    return faults


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A copy of the repository, removed at the end."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        root = Path(folder) / "copy"
        shutil.copytree(ROOT, root, ignore=_LEFT_OUT, symlinks=True)
        yield root


def run_tests(
    root: Path, tests: Sequence[str], *options: str, longest: float | None = _LONGEST
) -> tuple[int | None, str]:
    """Run tests against a copy, in a process that has the heavy packages already but none of the copy's modules.

    Returns the exit code, None where they hung, and what was printed.
    """
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        log = Path(folder) / "log"
        arguments = ["-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *options]
        arguments += [f"tests/{test}" for test in tests]
        process = _SERVER.Process(target=_tested, args=(root, arguments, log))
        process.start()
        process.join(longest)
        if process.exitcode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()
            return None, ""
        return process.exitcode, log.read_text(errors="replace")


def _tested(root: Path, arguments: Sequence[str], log: Path) -> None:
    """Run pytest in this process, and what it prints to a file."""
    os.setsid()
    os.chdir(root)
    paths = [str(root / "src"), str(root)]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    # A fault of the same length within a second would be read from the cache.
    sys.dont_write_bytecode = True
    sys.path[:] = [*paths, *(path for path in sys.path if path not in (str(ROOT / "src"), str(ROOT / "tests"), ""))]
    with log.open("wb", buffering=0) as out:
        for handle in (1, 2):
            os.dup2(out.fileno(), handle)
    import pytest

    code = int(pytest.main(list(arguments)))
    import qmedoid

    if not Path(qmedoid.__file__).is_relative_to(root):
        code = _ELSEWHERE
    sys.stdout.flush()
    os._exit(code)


def try_fault(root: Path, fault: Fault, failing: frozenset[str]) -> Result:
    """Put a fault into a copy, run its tests, and take it out again."""
    reason, source = fault.stale(root), fault.place(root)
    if reason or source is None:
        return Result(fault, "stale", reason)
    already = [test for test in fault.tests if test in failing]
    if already:
        return Result(fault, "broken", f"tests/{already[0]} fails, or is not there, without any fault")
    text = source.read_text()
    try:
        source.write_text(text.replace(fault.old, fault.new))
        code, printed = run_tests(root, fault.tests, "-x")
    finally:
        source.write_text(text)
    if code is None:
        return Result(fault, "noticed", "no end")
    if code == _PASSED:
        return Result(fault, "survived", fault.harmless)
    failed = re.search(r"^FAILED (\S+?)(?:\[| - |$)", printed, re.MULTILINE)
    if code == _FAILED:
        return Result(fault, "noticed", failed[1] if failed else "")
    return Result(fault, "broken", f"pytest ended with {code}: {printed.strip()[-200:]}")


def failing_tests(root: Path, faults: Sequence[Fault]) -> frozenset[str]:
    """Named tests that fail, or are not there, without any fault."""
    named = sorted({test for fault in faults if not fault.stale(root) for test in fault.tests})
    code, printed = run_tests(root, named, longest=None) if named else (_PASSED, "")
    if code == _PASSED:
        return frozenset()
    if code != _FAILED:  # a test that is not there keeps all others from being run
        return frozenset(test for test in named if run_tests(root, [test], "-x")[0] != _PASSED)
    failed = re.findall(r"^(?:FAILED|ERROR) tests/(\S+)", printed, re.MULTILINE)
    return frozenset(test for test in named if any(one.startswith(test) for one in failed))


def run_all(faults: Sequence[Fault], jobs: int, *, tried_first: bool) -> Iterator[Result]:
    """Try faults side by side, each worker in a copy of its own, in their order."""
    _SERVER.set_forkserver_preload(list(_HEAVY))
    with contextlib.ExitStack() as stack:
        roots: queue.SimpleQueue[Path] = queue.SimpleQueue()
        copies = [stack.enter_context(workplace()) for _ in range(jobs)]
        failing = failing_tests(copies[0], faults) if tried_first else frozenset()
        for copy in copies:
            roots.put(copy)

        def attempt(fault: Fault) -> Result:
            root = roots.get()
            try:
                return try_fault(root, fault, failing)
            finally:
                roots.put(root)

        with ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(attempt, faults)


def shown(result: Result) -> str:
    """A line of the report."""
    return f"{result.outcome:9}{result.fault.file:34} {result.fault.name}" + (f"  [{result.by}]" if result.by else "")


def verdict(results: Sequence[Result]) -> tuple[bool, str]:
    """Whether all is well, and a sentence with the counts."""
    counts = Counter(result.outcome for result in results)
    survived = counts["survived"]
    well = not any(result.is_bad for result in results) and survived <= MOST_SURVIVORS * max(len(results), 20)
    words = ", ".join(f"{counts[outcome]} {outcome}" for outcome in ("noticed", "survived", "stale", "broken"))
    return well, f"{len(results)} faults: {words}; {100 * survived / max(len(results), 1):.1f} % survive."


def arguments() -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="NAME", help="faults whose name contains this")
    parser.add_argument("--file", metavar="PATH", help="faults of source files whose path contains this")
    parser.add_argument("--jobs", type=int, default=2, help="faults that are tried side by side (2)")
    parser.add_argument("--check", action="store_true", help="run no tests: say which faults are stale")
    parser.add_argument("--trust", action="store_true", help="do not try first whether tests pass without a fault")
    return parser.parse_args()


def main() -> int:
    """Try the faults that are asked for; 0 if the tests notice them."""
    asked = arguments()
    faults = [
        fault
        for fault in read_faults()
        if (asked.only or "") in fault.name and (asked.file or "").removeprefix("src/qmedoid/") in fault.file
    ]
    results = []
    if asked.check:
        found = ((fault, fault.stale(ROOT)) for fault in faults)
        results = [Result(fault, "stale", reason) for fault, reason in found if reason]
        print(*map(shown, results), f"{len(results)} of {len(faults)} faults are stale.", sep="\n")
        return int(bool(results))
    for result in run_all(faults, max(1, asked.jobs), tried_first=not asked.trust):
        results.append(result)
        print(shown(result), flush=True)
    well, words = verdict(results)
    print(words)
    return int(not well)


if __name__ == "__main__":
    raise SystemExit(main())
