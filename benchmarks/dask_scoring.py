"""Scoring a folder of Parquet: the plain command, a pool of 2 processes, and Dask with 1 and 2 workers.

Run as ``QMEDOID_DATA=... python benchmarks/dask_scoring.py`` (10 million rows by default; ``--rows 200000`` is a small
run). All score the same tasks, one file each, and must leave the same bytes; workers and processes are started before
the time begins, and the plain command is started with its interpreter. Seconds, and ratios to one worker and to the
command, are written to ``results/dask_scoring.csv``, and what the scheduler holds of a 2 MB model and 1,000 partitions.
"""

import argparse
import csv
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pyarrow.parquet as pq
from distributed import Client, LocalCluster

from benchmarks import dask_kills
from qmedoid import MedoidClassifier
from qmedoid.large.score_files import PartResult, ScoreTask, plan_scoring, score_part
from qmedoid.large.workers import results_by
from qmedoid.model.storage.model_file import load_file
from qmedoid.tables.results import Cut, ScoreSettings

RESULTS = Path(__file__).parent / "results" / "dask_scoring.csv"
SETTINGS: dict[str, Any] = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None, "silence_logs": 60}


def on_worker(_: Any, task: ScoreTask) -> PartResult:
    return score_part(task)


def length(_: Any, number: int) -> int:
    time.sleep(0.001)
    return number


def scheduler_bytes(n_partitions: int, n_bytes: int) -> int:
    """The most that tasks of one round take on the scheduler, pickled, with something of so many bytes shared."""
    most, tasks = 0, [(number,) for number in range(n_partitions)]
    with LocalCluster(n_workers=1, **SETTINGS) as cluster, Client(cluster) as client:
        for place, _ in results_by(client)("size", length, os.urandom(n_bytes), tasks):
            if place % 25 == 0:
                specs = [one.run_spec for one in [*cluster.scheduler.tasks.values()]]
                most = max(most, sum(len(cloudpickle.dumps(one)) for one in specs))
    return most


def timed(run: Callable[[], Any], out: Path) -> tuple[float, str]:
    """Seconds of a run, and the hash of all that it has written."""
    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    run()
    seconds = time.perf_counter() - began
    files = sorted(out.glob("*.parquet"))
    assert files, "nothing was written"
    return seconds, hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


def measure(model: Path, inputs: Path, out: Path) -> dict[str, tuple[float, str]]:
    task = ScoreTask(str(model), load_file(model).sha256, Cut(), ScoreSettings(("id",)))

    def tasks() -> tuple[ScoreTask, ...]:
        return plan_scoring(task, str(inputs), out, force=True)[0]

    command = [sys.executable, "-m", "qmedoid", "score", str(model), str(inputs), "-o", f"{out}/", "--columns", "id"]
    found = {"command": timed(lambda: subprocess.run(command, check=True, capture_output=True), out)}
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(abs, range(8)))
        found["pool of 2"] = timed(lambda: list(pool.map(score_part, tasks())), out)
    for n in (1, 2):
        with LocalCluster(n_workers=n, **SETTINGS) as cluster, Client(cluster) as client:
            client.wait_for_workers(n)
            results = results_by(client)
            found[f"dask, {n}"] = timed(
                lambda results=results: list(results("score", on_worker, None, [(one,) for one in tasks()])),
                out,
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        inputs, out, model = Path(place) / "in", Path(place) / "out", Path(place) / "card.qmedoid"
        inputs.mkdir()
        dask_kills.write_rows(inputs, asked.rows)
        rows = pq.read_table(next(inputs.iterdir())).slice(0, 20_000)
        known = rows.drop_columns(["fraud", "id"])
        MedoidClassifier(method="evidence", random_state=0).fit(known, rows["fraud"].to_pylist()).save(model)
        found = measure(model, inputs, out)
    assert len({digest for _, digest in found.values()}) == 1, "results differ"
    held = scheduler_bytes(1000, 2_000_000)
    one, plain = found["dask, 1"][0], found["command"][0]
    with asked.output.open("w", newline="") as file:
        file.write(f"# python benchmarks/dask_scoring.py --rows {asked.rows}\n")
        file.write(f"# bytes on the scheduler, 1,000 partitions with 2,000,000 shared: {held}\n")
        writer = csv.writer(file)
        writer.writerow(["how", "rows", "seconds", "speed-up over one worker", "time over the command"])
        for name, (seconds, _) in found.items():
            writer.writerow([name, asked.rows, f"{seconds:.2f}", f"{one / seconds:.2f}", f"{seconds / plain:.2f}"])
    print(asked.output.read_text())


if __name__ == "__main__":
    main()
