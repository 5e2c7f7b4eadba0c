"""``qmedoid circuit run -o FOLDER``, killed at random moments and with jobs that fail: nothing is run or paid twice.

Run as ``python benchmarks/kills_circuit_run.py``. A model of the heart data measures some records in many small jobs.
The command is killed (SIGKILL) 20 times and started again, on the simulator and at a stand-in for the service
(``tests/quantum/devices/runtime_standin.py``), which also loses its client between the arrival of a job and
the note of its name. Then 10 jobs fail at the stand-in, and 30, so that ten of them fail as often as they may.

After every kill each file of counts should be what it is without kills, and those that were there should not have been
written again; at the end files and decisions should be the same, and no job sent twice, but for those that failed.
What is otherwise is counted. A run that is complete before it was killed often enough begins anew in an empty folder.
The figures are written to ``results/kills_circuit_run.csv``.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
KILLS, FAILURES = 20, (10, 30)
RECORDS = 20
QUICK = ("--limit", str(RECORDS), "--shots", "64", "--n-qubits", "12", "--circuits-per-job", "4")
# A child of this script runs a command at the stand-in in this folder, and kills itself after so many jobs.
SERVICE, DIES, SLOW = "QMEDOID_STANDIN", "QMEDOID_STANDIN_DIES", "QMEDOID_STANDIN_SLOW"


class Case(NamedTuple):
    """A run that is disturbed: its name, its command, and the folder of the service if there is one."""

    name: str
    command: Sequence[str]
    folder: Path
    service: Path | None = None


def started(case: Case, **environment: str) -> "subprocess.Popen[bytes]":
    """The command of a case as a process; at the stand-in it is run by this script."""
    how = [sys.executable, "-m", "qmedoid"] if case.service is None else [sys.executable, __file__, "--standin"]
    more = {} if case.service is None else {SERVICE: str(case.service)}
    return subprocess.Popen(
        [*how, *case.command], env={**os.environ, **more, **environment}, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def finished(case: Case) -> float:
    """Seconds of a run that nobody disturbs."""
    began = time.perf_counter()
    child = started(case)
    _, said = child.communicate(timeout=600)
    assert child.returncode == 0, said.decode()
    return time.perf_counter() - began


def kept(folder: Path) -> dict[str, str]:
    """The hash of every file of counts and of the decisions, by its name."""
    files = [*folder.glob("jobs/*.npz"), *folder.glob("records.csv")]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def written(folder: Path) -> dict[str, int]:
    """When each file of counts was written."""
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("jobs/*.npz")}


def sent(case: Case, *, failed: bool = False) -> list[str]:
    """Keys of the jobs that the service has, one for each time that they were sent."""
    from tests.quantum.devices.runtime_standin import StandinService

    if case.service is None:
        return []
    service = StandinService(case.service)
    return [service.read(job.job_id())["tags"][0] for job in service.jobs(limit=None) if failed or not job.errored()]


def disturbed(case: Case, kills: int, seed: int) -> dict[str, Any]:
    """Kill a run again and again, and check what it leaves."""
    took = finished(case)
    wanted, choose = kept(case.folder), random.Random(seed)
    jobs = len(written(case.folder))
    empty(case)
    done = before_note = rounds = whole = other = twice = 0
    while done < kills:
        there = written(case.folder)
        # At the service, every third process dies by itself right after a job has arrived there.
        dies = case.service is not None and done % 3 == 2
        child = started(case, **({DIES: str(choose.randint(1, 4))} if dies else {}))
        if not dies:
            # Every fourth kill comes at any time, also while the command still starts.
            while done % 4 and child.poll() is None and len(written(case.folder)) == len(there):
                time.sleep(0.001)
            time.sleep(choose.uniform(0.0, took / 8 if done % 4 else took))
            if child.poll() is None:
                child.kill()
        _, said = child.communicate()
        assert child.returncode in (0, -signal.SIGKILL), said.decode()
        now = written(case.folder)
        other += len(kept(case.folder).items() - wanted.items())
        twice += len(there.items() - now.items()) + repeats(sent(case))
        if child.returncode == 0:
            other += len(wanted.items() - kept(case.folder).items())
            empty(case)
            rounds += 1
            continue
        done, whole, before_note = done + 1, whole + len(now), before_note + dies
    finished(case)
    other += len(wanted.items() ^ kept(case.folder).items())
    twice += repeats(sent(case))
    return row(
        case, jobs, took, kills=done, rounds=rounds, whole=whole, before_note=before_note, other=other, twice=twice
    )


def repeats(keys: Sequence[str]) -> int:
    """How many of the keys were there before."""
    return len(keys) - len({*keys})


def failing(case: Case, failures: int) -> dict[str, Any]:
    """Let jobs fail at the service, go on, and check that no other job was sent again."""
    from tests.quantum.devices.runtime_standin import StandinService

    assert case.service is not None
    took = finished(case)
    wanted, jobs = kept(case.folder), len(written(case.folder))
    empty(case)
    StandinService(case.service).fail_next(failures)
    attempts = 0
    while True:
        attempts += 1
        child = started(case)
        _, said = child.communicate(timeout=600)
        if child.returncode == 0:
            break
        assert child.returncode == 1, said.decode()
        assert b"the same command goes on from there" in said, said.decode()
    failed = len(sent(case, failed=True)) - len(sent(case))
    other = len(wanted.items() ^ kept(case.folder).items())
    return row(case, jobs, took, failed=failed, rounds=attempts - 1, other=other, twice=repeats(sent(case)))


def row(case: Case, jobs: int, took: float, **seen: int) -> dict[str, Any]:
    """A line of the table."""
    return {
        "where": case.name,
        "kills": seen.get("kills", 0),
        "of them before the name was noted": seen.get("before_note", 0),
        "failed jobs": seen.get("failed", 0),
        "jobs": jobs,
        "records": RECORDS,
        "files of counts after kills": seen.get("whole", 0),
        "begun anew or gone on": seen["rounds"],
        "counts or decisions that differ": seen["other"],
        "finished jobs run or sent twice": seen["twice"],
        "undisturbed seconds": f"{took:.1f}",
    }


def empty(case: Case) -> None:
    """Remove a run, and forget what the service had."""
    shutil.rmtree(case.folder)
    if case.service is not None:
        shutil.rmtree(case.service)


def run_at_standin(arguments: Sequence[str]) -> None:
    """A command of qmedoid whose device is one of the stand-in; a process that runs it may kill itself."""
    from tests.quantum.devices.runtime_standin import StandinBackend, StandinJob, StandinSampler, StandinService

    from qmedoid import cli
    from qmedoid.quantum.devices import device

    backend = StandinBackend(StandinService(Path(os.environ[SERVICE])), num_qubits=12)
    left = int(os.environ.get(DIES, -1))

    def on_submitted(_: StandinJob) -> None:
        nonlocal left
        left -= 1
        time.sleep(float(os.environ.get(SLOW, "0.02")))
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sampler = StandinSampler(backend, on_submitted)
    device._backend_named = {"standin": backend}.__getitem__  # type: ignore[assignment]
    device._runtime_sampler = lambda _: sampler  # type: ignore[assignment]
    sys.argv = ["qmedoid", *arguments]
    cli.main()


def make_files(folder: Path) -> tuple[Path, Path]:
    """A model and a table."""
    table, model = folder / "heart.csv", folder / "heart.qmedoid"
    for command in (
        ["data", "fetch", "heart", "-o", str(table)],
        ["fit", str(table), "--target", "HeartDisease", "--method", "evidence", "--medoids", "8", "--neighbors", "0",
         "--refine", "never", "-o", str(model)],
    ):  # fmt: skip
        subprocess.run([sys.executable, "-m", "qmedoid", *command], check=True, capture_output=True, timeout=600)
    return model, table


def main() -> None:
    from _timing import RESULTS, write_table

    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, table = make_files(folder)
        call = ["circuit", "run", str(model), str(table), *QUICK]
        simulator = Case("simulator", [*call, "-o", str(folder / "run")], folder / "run")
        at_service = Case("stand-in for the service", [*call, "-o", str(folder / "sent"), "--backend", "standin"],
                          folder / "sent", folder / "service")  # fmt: skip
        rows.append(disturbed(simulator, KILLS, seed=1))
        rows.append(disturbed(at_service, KILLS, seed=2))
        for failures in FAILURES:
            empty(at_service)
            rows.append(failing(at_service, failures))
    write_table(RESULTS / "kills_circuit_run.csv", "python benchmarks/kills_circuit_run.py", rows, ("numpy", "qiskit"))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    if sys.argv[1:2] == ["--standin"]:
        run_at_standin(sys.argv[2:])
    else:
        main()
