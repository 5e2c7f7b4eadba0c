"""Scoring from file to file: against reading alone, against pandas and NumPy, in bounded memory, from a fresh process.

Run as ``QMEDOID_DATA=... python benchmarks/speed_files.py`` (some minutes; needs creditcard.parquet, pandas and about
6 GB of disk for the large file, or ``--rows 1000000`` for a smaller one). The model is a convex fusion model of the
credit-card table; the output has prediction, score, margin, nearest medoids and stage.

- ``csv`` and ``parquet``: core-seconds of 284,807 rows file to file, beside reading the file into memory (PyArrow)
  and beside pandas and NumPy doing the same by the definition of the score.
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

from _timing import RESULTS, core_seconds, write_table
from qmedoid import GeometricClassifier, load
from qmedoid.models.table import TableModel
from qmedoid.tables.files import score_file

HEAVY = ("sklearn", "pandas", "qiskit", "scipy", "polars")


def fitted_model(table: pa.Table, folder: Path) -> TableModel:
    """A fusion model of a tenth of the table, saved and loaded."""
    part = table.take(np.arange(0, len(table), 10))
    names = [name for name in table.column_names if name != "Class"]
    frame = part.select(names).to_pandas()
    GeometricClassifier(refine="never", random_state=0).fit(frame, part["Class"].to_numpy()).save(folder)
    return load(folder).model


def by_pandas(model: TableModel, frame: pd.DataFrame) -> pd.DataFrame:
    """The same results by the definition, one array operation after the other."""
    best, fusion = model.best, model.fusion
    X = frame[list(model.contract.names)].to_numpy(dtype=np.float64)
    features = fusion.features(X)
    distance = np.sqrt(((features[:, None, :] - fusion.medoids[None]) ** 2).sum(axis=2))
    norms = np.linalg.norm(features, axis=1)[:, None] * np.linalg.norm(fusion.medoids, axis=1)
    angle = np.arccos(np.clip(features @ fusion.medoids.T / norms, -1.0, 1.0))
    shares = distance / (distance.sum(axis=1, keepdims=True) + 1e-12)
    if fusion.use_angular:
        turned = angle / (angle.sum(axis=1, keepdims=True) + 1e-12)
        shares = fusion.alpha * shares + (1 - fusion.alpha) * turned
    scores = best.calibration.apply(shares * fusion.multipliers)
    margin = scores[:, 1] - scores[:, 0]
    probability = 1 / (1 + np.exp(-margin))
    rows = fusion.medoid_rows
    return pd.DataFrame(
        {
            "prediction": np.array(model.classes)[(margin > 0).astype(int)],
            "score": probability,
            "margin": margin,
            f"nearest_{model.classes[0]}": rows[0],
            f"nearest_{model.classes[1]}": rows[1],
            "stage": "fusion",
        }
    )


def check_same(ours: Path, theirs: pd.DataFrame) -> None:
    """Both ways must have come to the same decisions."""
    found = pd.read_parquet(ours) if ours.suffix == ".parquet" else pd.read_csv(ours)
    np.testing.assert_allclose(found["score"], theirs["score"], atol=1e-9)
    assert (found["prediction"] == theirs["prediction"]).mean() > 0.999999


def file_rows(model: TableModel, form: str, source: Path, folder: Path) -> list[dict[str, object]]:
    """Core-seconds of the three ways for one format."""
    out, other = folder / f"out.{form}", folder / f"other.{form}"
    if form == "csv":
        read = lambda: pyarrow.csv.read_csv(source)  # noqa: E731
        plain = lambda: by_pandas(model, pd.read_csv(source)).to_csv(other, index=False)  # noqa: E731
    else:
        read = lambda: pq.read_table(source)  # noqa: E731
        plain = lambda: by_pandas(model, pd.read_parquet(source)).to_parquet(other, index=False)  # noqa: E731
    score = lambda: score_file(model, str(source), str(out))  # noqa: E731
    score(), read()
    # Turn by turn, so that a slow minute of the machine meets all three.
    turns = [(core_seconds(read, 1), core_seconds(score, 1)) for _ in range(9)]
    pandas = core_seconds(plain, 3)
    check_same(out, by_pandas(model, pd.read_parquet(source) if form == "parquet" else pd.read_csv(source)))
    reading = statistics.median(turn[0].core for turn in turns)
    scoring = statistics.median(turn[1].core for turn in turns)
    wanted = {"csv": ("<= 1.2", ">= 2"), "parquet": ("<= 1.5", ">= 6")}[form]
    return [
        {"task": form, "method": "reading alone (PyArrow)", "seconds": reading, "ratio": 1.0, "wanted": ""},
        {"task": form, "method": "qmedoid, file to file", "seconds": scoring, "ratio": scoring / reading,
         "wanted": wanted[0] + " x reading"},
        {"task": form, "method": "pandas + NumPy", "seconds": pandas.core, "ratio": pandas.core / scoring,
         "wanted": wanted[1] + " x qmedoid"},
    ]  # fmt: skip


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
        model = fitted_model(table, folder / "model")
        pyarrow.csv.write_csv(table, folder / "table.csv")
        del table
        rows = file_rows(model, "csv", folder / "table.csv", folder)
        rows += file_rows(model, "parquet", source, folder)
        rows.append(start_row(folder / "model", source, folder))
        rows.append(memory_row(folder / "model", source, folder, n_rows))
    command = "python benchmarks/speed_files.py" + ("" if n_rows == 10_000_000 else f" --rows {n_rows}")
    write_table(RESULTS / "speed_files.csv", command, rows, ("numpy", "pyarrow", "pandas"))


if __name__ == "__main__":
    main()
