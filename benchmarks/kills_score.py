"""``qmedoid score -o FOLDER/ --resume``, killed at random moments: what is in the folder in between and at the end.

Run as ``python benchmarks/kills_score.py``. A model of the heart data scores 40 files of 4,000 rows each. The command
is killed (SIGKILL) 20 times and started again, then the same as two shards side by side. After every kill each file of
results must have the bytes that it has without kills; at the end all must be there, with every row once. Whenever a
folder is complete before it was killed often enough, scoring begins anew in an empty one. The figures are written to
``results/kills_score.csv``.
"""

import hashlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

QMEDOID = (sys.executable, "-m", "qmedoid")
KILLS, FILES, ROWS = 20, 40, 4_000


class Killed(NamedTuple):
    """What kills did: moments at which there were hidden files, files that were there whole, rounds that ended."""

    kills: int
    while_writing: int
    whole_files: int
    rounds: int


def run(command: Sequence[str]) -> float:
    """Seconds that a command takes which nobody kills."""
    began = time.perf_counter()
    subprocess.run([*QMEDOID, *command], check=True, capture_output=True, timeout=600)
    return time.perf_counter() - began


def results(folder: Path) -> dict[str, str]:
    """The hash of every file of results, by its name."""
    found = folder.glob("*.parquet") if folder.is_dir() else ()
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def kill_resumed(commands: Sequence[Sequence[str]], folder: Path, kills: int, seconds: float, seed: int = 0) -> Killed:
    """Start commands that write to a folder side by side, kill all at a random moment, and again; check every time.

    Parameters
    ----------
    commands : sequence of commands
        All that is to be done, with ``--resume``.
    folder : Path
        Holds what the commands leave when nobody kills them; it is emptied first.
    seconds : float
        A kill comes up to so long after the first file is being written.
    """
    wanted, choose = results(folder), random.Random(seed)
    assert wanted, "the folder must hold the results of an undisturbed run"
    shutil.rmtree(folder)
    done = hidden = whole = rounds = 0
    while done < kills:
        children = [subprocess.Popen([*QMEDOID, *one], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    for one in commands]  # fmt: skip
        # Every fourth kill comes at any time, also while the command still starts.
        if done % 4:
            _wait_for_writing(children, folder)
        time.sleep(choose.uniform(0.0, seconds))
        alive = [child for child in children if child.poll() is None]
        for child in alive:
            child.kill()
        for child in children:
            child.wait()
        assert all(child.returncode in (0, -9) for child in children)
        there = results(folder)
        assert there.items() <= wanted.items(), "a file of results is not what it is without kills"
        if not alive:
            assert there == wanted
            shutil.rmtree(folder)
            rounds += 1
            continue
        done, whole = done + 1, whole + len(there)
        hidden += any(folder.glob(".*.part")) if folder.is_dir() else 0
    for one in commands:
        run(one)
    assert results(folder) == wanted
    assert {path.name for path in folder.iterdir()} == {*wanted, "_manifest.json"}
    return Killed(done, hidden, whole, rounds)


def _wait_for_writing(children: Sequence["subprocess.Popen[bytes]"], folder: Path) -> None:
    while any(child.poll() is None for child in children) and not any(folder.glob(".*.part")):
        time.sleep(0.002)


def make_files(folder: Path) -> Path:
    """A model, and files of patients with noise and a number; returns the path of the model."""
    run(["data", "fetch", "heart", "-o", str(folder / "heart.parquet")])
    model = folder / "heart.qmedoid"
    run(["fit", str(folder / "heart.parquet"), "--target", "HeartDisease", "--refine", "never", "-o", str(model)])
    table, rng = pq.read_table(folder / "heart.parquet").drop_columns(["HeartDisease"]), np.random.default_rng(0)
    (folder / "in").mkdir()
    for number in range(FILES):
        part = table.take(pa.array(rng.integers(0, len(table), ROWS)))
        part = part.append_column("id", pa.array(np.arange(ROWS) + number * ROWS))
        pq.write_table(part, folder / "in" / f"part-{number:02d}.parquet")
    return model


def main() -> None:
    from _timing import RESULTS, write_table

    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = make_files(folder)
        score = ["score", str(model), str(folder / "in"), "-o", f"{folder}/out/", "--columns", "id"]
        for shards in (1, 2):
            commands = [[*score, "--resume", "--shard", f"{one}/{shards}"] for one in range(1, shards + 1)]
            shutil.rmtree(folder / "out", ignore_errors=True)
            took = run(score)
            seen = kill_resumed(commands, folder / "out", KILLS, took / 8, seed=shards)
            ids = pq.read_table(folder / "out", columns=["id"]).column("id").to_numpy()
            assert np.array_equal(np.sort(ids), np.arange(FILES * ROWS)), "a row is there twice or not at all"
            rows.append(
                {"processes": shards, **seen._asdict(), "files": FILES, "rows": len(ids), "rows twice or missing": 0,
                 "files with other bytes": 0, "undisturbed seconds": f"{took:.1f}"}
            )  # fmt: skip
    write_table(RESULTS / "kills_score.csv", "python benchmarks/kills_score.py", rows, ("numpy", "pyarrow"))


if __name__ == "__main__":
    main()
