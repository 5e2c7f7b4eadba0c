"""What the speed benchmarks share: timing in core-seconds, and tables that say how they were made."""

import csv
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

RESULTS = Path(__file__).parent / "results"


class Timing(NamedTuple):
    """Medians over the repeats; core-seconds add up what all threads of the process used."""

    core: float
    wall: float
    result: Any


def core_seconds(fn: Callable[[], Any], repeats: int = 5) -> Timing:
    """Call ``fn`` ``repeats`` times; return the median core-seconds and wall seconds and the last result."""
    cores, walls, result = [], [], None
    for _ in range(repeats):
        core, wall = time.process_time(), time.perf_counter()
        result = fn()
        cores.append(time.process_time() - core)
        walls.append(time.perf_counter() - wall)
    return Timing(statistics.median(cores), statistics.median(walls), result)


def versions(*packages: str) -> str:
    """Return the interpreter, the machine and the versions of the given packages on one line."""
    return ", ".join(
        [f"Python {platform.python_version()}", platform.machine(), *(f"{p} {version(p)}" for p in packages)]
    )


def write_table(
    path: Path,
    command: str,
    rows: Sequence[Mapping[str, object]],
    packages: Sequence[str] = ("numpy", "scipy"),
    *,
    shown: bool = True,
) -> None:
    """Print rows as a table and write them as CSV below a comment line: the command and the versions it ran with."""
    names = list(rows[0])
    cells = [names, *([_text(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(names))]
    for line in cells if shown else ():
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        file.write(f"# {command} | {versions(*packages)}\n")
        csv.writer(file, lineterminator="\n").writerows(cells)


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
