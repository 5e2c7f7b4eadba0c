"""Scoring from file to file: against reading alone, against pandas and NumPy, in bounded memory, from a fresh process.

Run as ``QMEDOID_DATA=... python benchmarks/speed_files.py`` (some minutes; needs creditcard.parquet, pandas and about
6 GB of disk for the large file, or ``--rows 1000000`` for a smaller one). The model is a nearest-medoid model of the
credit-card table; the output has prediction, score, margin, nearest medoids and decided_by.

- ``csv`` and ``parquet``: core-seconds of 284,807 rows file to file, against reading the file into memory (PyArrow)
  and against pandas and NumPy doing the same; each in a separate process, without imports. The first call is what a
  command costs; in a second one of the same process the memory is there already, which helps most what reads whole
  files.
- ``memory``: peak resident size of ``qmedoid score`` on a Parquet file of 10 million rows, made by repeating the table.
- ``start``: wall time of ``qmedoid score`` on 1,000 rows in a fresh process, and whether it imported what it must not.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier

TURNS = 9
HEAVY = ("sklearn", "pandas", "qiskit", "scipy", "polars")


def save_model(table: pa.Table, path: Path) -> None:
    """A nearest-medoid model of a tenth of the table."""
    part = table.take(np.arange(0, len(table), 10))
    names = [name for name in table.column_names if name != "Class"]
    frame = part.select(names).to_pandas()
    model = MedoidClassifier(method="nearest", refine="never", random_state=0)
    model.fit(frame, part["Class"].to_numpy()).save(path)


def check_same(ours: Path, theirs: Path) -> None:
    """Both ways must have come to the same decisions."""
    read = pd.read_parquet if ours.suffix == ".parquet" else pd.read_csv
    found, expected = read(ours), read(theirs)
    assert list(found) == list(expected)
    np.testing.assert_allclose(found["score"], expected["score"], atol=1e-9)
    assert (found["prediction"] == expected["prediction"]).mean() > 0.999999


def core_seconds_of(task: str, model: Path, source: Path, out: Path) -> tuple[float, float]:
    """Core-seconds of one way in a separate process, without imports: of the first call and of a second."""
    script = Path(__file__).with_name("_file_runs.py")
    command = [sys.executable, str(script), task, str(model), str(source), str(out)]
    first, second = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return float(first), float(second)


def file_rows(model: Path, form: str, source: Path, folder: Path) -> list[dict[str, object]]:
    """Core-seconds of the three ways for one format, in turns: a slow minute of the machine meets all of them."""
    outs = {task: folder / f"{task}.{form}" for task in ("read", "score", "pandas")}
    turns = [{task: core_seconds_of(task, model, source, out) for task, out in outs.items()} for _ in range(TURNS)]
    check_same(outs["score"], outs["pandas"])
    wanted = {"csv": ("<= 1.2", ">= 2"), "parquet": ("<= 1.5", ">= 6")}[form]
    rows: list[dict[str, object]] = []
    for call, name in enumerate((form, f"{form}, second call")):
        seconds = {task: statistics.median(turn[task][call] for turn in turns) for task in outs}
        over_reading = statistics.median(turn["score"][call] / turn["read"][call] for turn in turns)
        of_pandas = statistics.median(turn["pandas"][call] / turn["score"][call] for turn in turns)
        rows += [
            {"task": name, "method": "reading alone (PyArrow)", "seconds": seconds["read"], "ratio": 1.0, "wanted": ""},
            {"task": name, "method": "qmedoid, file to file", "seconds": seconds["score"], "ratio": over_reading,
             "wanted": wanted[0] + " x reading"},
            {"task": name, "method": "pandas + NumPy", "seconds": seconds["pandas"], "ratio": of_pandas,
             "wanted": wanted[1] + " x qmedoid"},
        ]  # fmt: skip
    return rows


def resident_peak(pid: int) -> float:
    """Largest resident size of a process so far in MB; what its parent had before it began does not count."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return max((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), default=0.0)


def memory_row(model: Path, source: Path, folder: Path, n_rows: int) -> dict[str, object]:
    """Peak resident size of a process that scores a large file."""
    large, table = folder / "large.parquet", pq.read_table(source)
    with pq.ParquetWriter(large, table.schema) as writer:
        for start in range(0, n_rows, len(table)):
            writer.write_table(table.slice(0, min(len(table), n_rows - start)))
    del table
    began = time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "qmedoid",
        "score",
        str(model),
        str(large),
        "-o",
        str(folder / "large.out.parquet"),
    ]
    process = subprocess.Popen(command)
    peak = 0.0
    while process.poll() is None:
        peak = max(peak, resident_peak(process.pid))
        time.sleep(0.01)
    if process.returncode:
        raise SystemExit("qmedoid score failed.")
    seconds = time.perf_counter() - began
    return {
        "task": "memory", "method": f"qmedoid score, {n_rows:,} rows ({n_rows / seconds:,.0f} rows/s)",
        "seconds": seconds, "ratio": peak, "wanted": "< 1000 MB (peak, in the column ratio)",
    }  # fmt: skip


def start_row(model: Path, source: Path, folder: Path) -> dict[str, object]:
    """A fresh process on 1,000 rows of CSV."""
    small = folder / "small.csv"
    pyarrow.csv.write_csv(pq.read_table(source).slice(0, 1000), small)
    command = [sys.executable, "-m", "qmedoid", "score", str(model), str(small), "-o", str(folder / "small.out.csv")]
    # Byte code is kept, as it is of an installed package; the first run makes it.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env=environment)
    walls = []
    for _ in range(9):
        began = time.perf_counter()
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL, env=environment)
        walls.append(time.perf_counter() - began)
    listed = subprocess.run(
        [sys.executable, "-X", "importtime", *command[1:]], check=True, capture_output=True, text=True
    ).stderr
    # Parts of packages: a package that was asked for and not found is listed as well.
    loaded = {line.rsplit("|", 1)[-1].strip().partition(".")[0] for line in listed.splitlines() if "." in line}
    heavy = sorted(loaded & set(HEAVY))
    wall = statistics.median(walls)
    method = "qmedoid score, 1,000 rows" + (f" (imports {', '.join(heavy)})" if heavy else "")
    return {"task": "start", "method": method, "seconds": wall, "ratio": 1.0, "wanted": "< 0.6 s"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the large file")
    n_rows = parser.parse_args().rows
    source = Path(os.environ.get("QMEDOID_DATA", "")) / "creditcard.parquet"
    if not source.is_file():
        raise SystemExit("This needs creditcard.parquet: set QMEDOID_DATA to the folder that holds it.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = pq.read_table(source)
        save_model(table, folder / "model")
        pyarrow.csv.write_csv(table, folder / "table.csv")
        del table
        rows = file_rows(folder / "model", "csv", folder / "table.csv", folder)
        rows += file_rows(folder / "model", "parquet", source, folder)
        rows.append(start_row(folder / "model", source, folder))
        rows.append(memory_row(folder / "model", source, folder, n_rows))
    command = "python benchmarks/speed_files.py" + ("" if n_rows == 10_000_000 else f" --rows {n_rows}")
    write_table(RESULTS / "speed_files.csv", command, rows, ("numpy", "pyarrow", "pandas"))


if __name__ == "__main__":
    main()
