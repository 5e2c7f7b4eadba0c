"""Seconds and peak memory of a command, its child processes counted."""

import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_POLL = 0.02


class TooLargeError(RuntimeError):
    """A command was stopped because it took more memory than it was allowed to."""


class Run(NamedTuple):
    """What a command took: core-seconds add up all threads and processes; the peak is resident memory in MB."""

    wall: float
    core: float
    peak: float
    output: str


def resident(pid: int) -> float:
    """Resident memory of a process and all its descendants now, in MB; pages that they share count for each."""
    total, waiting = 0.0, [pid]
    while waiting:
        folder = Path(f"/proc/{waiting.pop()}")
        try:
            total += int((folder / "statm").read_text().split()[1]) * _PAGE_MB
            for task in (folder / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:  # it has ended
            continue
    return total


def own_peak(pid: int) -> float:
    """Largest resident memory of a process so far in MB, which a poll may have missed."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), default=0.0)


def measured(command: Sequence[str], most: float = float("inf")) -> Run:
    """Run a command to its end in a process of its own; stop it where it takes more than `most` MB."""
    with tempfile.TemporaryFile("w+") as output:
        began, peak = time.perf_counter(), 0.0
        process = subprocess.Popen(command, stdout=output)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            peak = max(peak, resident(process.pid), own_peak(process.pid))
            if peak > most:
                process.kill()
                process.wait()
                raise TooLargeError(f"{peak:.0f} MB")
            time.sleep(_POLL)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}.")
        output.seek(0)
        return Run(wall, usage.ru_utime + usage.ru_stime, peak, output.read())
