"""Raw table to labels: the scoring kernel against a NumPy loop, reading the memory, and Qiskit pair by pair.

Run as ``python benchmarks/speed_scoring.py``. With ``QMEDOID_DATA`` set, the table is ``creditcard.parquet`` in that
folder (284,807 rows, 30 columns); otherwise random numbers of the same shape.
"""

import argparse
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from _timing import RESULTS, core_seconds, write_table
from qmedoid.geometry.medoids import medoid_index
from qmedoid.geometry.overlap import AngleKind
from qmedoid.geometry.scaling import Scaling, fit_standard
from qmedoid.methods.nearest.part import NearestPart

Array = npt.NDArray[np.float64]

N_ROWS, N_COLUMNS, SUBSET_SIZE, ALPHA = 284_807, 30, 3, 0.9
THREADS = 2
QISKIT_PAIRS = 200

# Sums all numbers in four vector lanes at a time: nothing but the speed of the memory limits it.
READ_KERNEL = r"""
#include <stddef.h>
double read_all(const double *x, ptrdiff_t n)
{
    double lanes[32] = {0}, total = 0.0;
    for (ptrdiff_t i = 0; i + 32 <= n; i += 32)
        for (int l = 0; l < 32; l++) lanes[l] += x[i + l];
    for (int l = 0; l < 32; l++) total += lanes[l];
    return total;
}
"""


def load_table() -> tuple[Array, npt.NDArray[np.intp], str]:
    """Rows, class codes, and where they come from."""
    folder = os.environ.get("QMEDOID_DATA")
    if folder is None:
        rng = np.random.default_rng(0)
        return rng.standard_normal((N_ROWS, N_COLUMNS)), rng.integers(2, size=N_ROWS), "random (QMEDOID_DATA is unset)"
    import pyarrow.parquet as pq

    table = pq.read_table(Path(folder) / "creditcard.parquet")
    columns = [table[name].to_numpy() for name in table.column_names if name != "Class"]
    return np.column_stack(columns).astype(np.float64), table["Class"].to_numpy().astype(np.intp), "credit card"


def make_model(X: Array, y: npt.NDArray[np.intp], angle: AngleKind) -> NearestPart:
    """Each column an anchor, with the two columns most correlated to it; the medoids of 2,000 rows of each class."""
    scaling = fit_standard(X)
    rho = np.corrcoef(X, rowvar=False)
    configuration = tuple(tuple(int(f) for f in np.argsort(-np.abs(row))[:SUBSET_SIZE]) for row in rho)
    model = NearestPart(
        input_scaling=scaling,
        configuration=configuration,
        weights=tuple(rho[subset[0], list(subset)] for subset in configuration),
        signed=False,
        feature_scaling=Scaling(np.zeros(N_COLUMNS), np.ones(N_COLUMNS)),
        medoids=np.empty((0, N_COLUMNS)),
        medoid_classes=np.array([0, 1]),
        medoid_rows=np.array([0, 0]),
        multipliers=np.ones(2),
        alpha=ALPHA,
        use_angular=True,
        angle=angle,
    )
    model = replace(model, feature_scaling=fit_standard(model.features(X)))
    samples = [np.flatnonzero(y == c)[:2000] for c in range(2)]
    rows = [sample[medoid_index(model.features(X[sample]))] for sample in samples]
    return replace(model, medoids=model.features(X[rows]), medoid_rows=np.array(rows))


def numpy_loop(X: Array, model: NearestPart) -> npt.NDArray[np.intp]:
    """What one writes without a kernel: a loop over the anchors, then whole-array distances, angles and scores."""
    Z = (X - model.input_scaling.center) / model.input_scaling.scale
    V = np.empty((len(X), len(model.configuration)))
    for a, (subset, weights) in enumerate(zip(model.configuration, model.weights, strict=True)):
        V[:, a] = np.sqrt(np.sum((weights * Z[:, subset]) ** 2, axis=1))
    V = (V - model.feature_scaling.center) / model.feature_scaling.scale
    D = np.stack([np.linalg.norm(V - mu, axis=1) for mu in model.medoids], axis=1)
    norms, medoid_norms = np.linalg.norm(V, axis=1)[:, None], np.linalg.norm(model.medoids, axis=1)
    if model.angle == "true":
        theta = np.arccos(np.clip(V @ model.medoids.T / (norms * medoid_norms), -1.0, 1.0))
    else:
        theta = np.arccos(np.sqrt(np.clip(D**2 / (2.0 * (norms**2 + medoid_norms**2)), 0.0, 1.0)))
    shares = [channel / (channel.sum(axis=1, keepdims=True) + 1e-12) for channel in (D, theta)]
    return np.argmin(model.multipliers * (model.alpha * shares[0] + (1.0 - model.alpha) * shares[1]), axis=1)


def memory_reader(folder: Path) -> tuple[Callable[[Array, int], Any], str]:
    """A function that reads an array on some threads: compiled here where there is a compiler, else NumPy's max."""
    compiler = shutil.which("cc")
    if compiler is None:
        read_part, how = np.max, "NumPy max"
    else:
        (folder / "read.c").write_text(READ_KERNEL)
        flags = ["-O3", "-march=native", "-shared", "-fPIC"]
        subprocess.run([compiler, *flags, str(folder / "read.c"), "-o", str(folder / "read.so")], check=True)
        kernel = ctypes.CDLL(str(folder / "read.so")).read_all
        kernel.restype, kernel.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_ssize_t]

        def read_part(part: Array) -> float:
            return float(kernel(part.ctypes.data, part.size))

        how = "sum in C"

    def read(X: Array, threads: int) -> None:
        parts = np.array_split(X.ravel(order="K"), threads)
        if threads == 1:
            read_part(parts[0])
            return
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(read_part, parts))

    return read, how


def qiskit_pair_seconds(model: NearestPart, X: Array) -> float:
    """Core-seconds of one SWAP test: build the circuit of a row and a medoid, simulate it, read the ancilla."""
    from qiskit.quantum_info import Statevector

    from qmedoid.quantum import compact_swap_circuit

    features = model.features(X[: QISKIT_PAIRS // 2])

    def run() -> None:
        for v in features:
            for mu in model.medoids:
                Statevector(compact_swap_circuit(v, mu, measure=False)).probabilities([0])

    return core_seconds(run, repeats=3).core / QISKIT_PAIRS


def in_fresh_process(task: str, path: Path) -> float:
    """The number that one of the tasks below prints when it runs in a separate process."""
    command = [sys.executable, __file__, "--task", task, "--table", str(path)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def first_call(X: Array, model: NearestPart) -> float:
    """Seconds of the first call, before which nothing was scored or compiled."""
    start = time.perf_counter()
    model.predict(X, threads=THREADS)
    return time.perf_counter() - start


def extra_memory(X: Array, model: NearestPart) -> float:
    """Megabytes by which the peak memory of the process exceeds what it held before scoring (Linux only)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _kilobytes(status, "VmRSS")
    model.predict(X, threads=THREADS)
    return (_kilobytes(status, "VmHWM") - before) / 1024.0


def _kilobytes(status: Path, field: str) -> float:
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return float(line.split()[1])


TASKS: dict[str, Callable[[Array, NearestPart], float]] = {"first-call": first_call, "extra-memory": extra_memory}


def run_task(task: str, path: str) -> None:
    X = np.load(path)
    print(TASKS[task](X, make_model(X[:5000], np.arange(5000) % 2, "true")))


def main() -> None:
    X, y, source = load_table()
    print(f"{source}: {X.shape[0]:,} rows, {X.shape[1]} columns; angles with alpha = {ALPHA}, {SUBSET_SIZE} per subset")
    layouts: dict[str, Any] = {
        "rows float64": np.ascontiguousarray(X),
        "columns float64": np.asfortranarray(X),
        "rows float32": X.astype(np.float32),
        "columns float32": np.asfortranarray(X, dtype=np.float32),
    }
    rows: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        read, how = memory_reader(folder)
        read_one, read_two = (core_seconds(lambda t=t: read(layouts["rows float64"], t), 41) for t in (1, THREADS))

        def add(task: str, angle: str, one: Any, two: Any | None, loop: Any | None) -> None:
            wall = None if two is None else two.wall
            rows.append(
                {
                    "task": task,
                    "angle": angle,
                    "core ms, 1 thread": 1e3 * one.core,
                    f"wall ms, {THREADS} threads": "" if wall is None else 1e3 * wall,
                    "million rows/s": len(X) / (one.wall if wall is None else wall) / 1e6,
                    "x NumPy loop (core)": "" if loop is None else loop.core / one.core,
                    "x NumPy loop (wall)": "" if loop is None or wall is None else loop.wall / wall,
                    "/ read (core)": one.core / read_one.core,
                    "/ read (wall)": "" if wall is None else wall / read_two.wall,
                    "peak extra MB": "",
                }
            )

        add(f"read the float64 matrix ({how})", "", read_one, read_two, None)
        for angle in ("true", "printed"):
            model = make_model(X, y, angle)
            loop = core_seconds(lambda m=model: numpy_loop(X, m), 7)
            add("NumPy loop over anchors", angle, loop, None, loop)
            for label, table in layouts.items():
                one, two = (
                    core_seconds(lambda t=t, x=table, m=model: m.predict(x, threads=t), 41) for t in (1, THREADS)
                )
                add(label, angle, one, two, loop)
                if label.endswith("64") and not np.array_equal(one.result, loop.result):
                    print(
                        f"{label}, {angle}: {np.count_nonzero(one.result != loop.result)} labels differ from the loop"
                    )
        best = min(row["core ms, 1 thread"] for row in rows[1:] if row["task"] == "columns float64")
        pair = qiskit_pair_seconds(model, X)
        whole = pair * 2 * len(X)
        print(
            f"Qiskit: {1e3 * pair:.2f} core-ms a pair, so {whole:,.0f} core-s for all: {1e3 * whole / best:,.0f} x ours"
        )
        np.save(folder / "table.npy", X)
        empty = dict.fromkeys(rows[0], "")
        rows.append(
            empty
            | {
                "task": "first call in a fresh process, rows float64",
                "angle": "true",
                f"wall ms, {THREADS} threads": 1e3 * in_fresh_process("first-call", folder / "table.npy"),
                "peak extra MB": in_fresh_process("extra-memory", folder / "table.npy"),
            }
        )
        rows.append(
            empty
            | {
                "task": "Qiskit, one pair at a time (extrapolated)",
                "core ms, 1 thread": 1e3 * whole,
                "million rows/s": len(X) / whole / 1e6,
            }
        )
    write_table(RESULTS / "speed_scoring.csv", f"python benchmarks/speed_scoring.py ({source})", rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", choices=list(TASKS), help=argparse.SUPPRESS)
    parser.add_argument("--table", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.task:
        run_task(arguments.task, arguments.table)
    else:
        main()
