"""Whether a fit is the same on other processors, with kernels and twins, on 1 and 2 threads, and from nudged cells.

Run as ``QMEDOID_DATA=... python benchmarks/same_model.py`` (hours; ``--quick`` takes some minutes). From every table of
the folder's MANIFEST.json samples of 200 to 600 rows are drawn. Every method is fitted to each of them, in processes
for each core type of OpenBLAS that this processor can run, and to copies of the first one in which every cell has moved
by up to 4 units in the last place. All are compared with the fit of the first core type with compiled kernels on 1
thread.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from _fingerprints import Array, Difference, Fingerprint, difference, fingerprint, methods_for, nudged
from _timing import RESULTS, write_table

CORES = ("Haswell", "Zen", "SkylakeX", "Sandybridge", "Prescott")
DROPPED = {"adult": ("split",), "stroke": ("id",)}
MOST_LEVELS = 10
# Rows of a class at least, and new rows.
FEWEST, NEW = 12, 400


class Sample(NamedTuple):
    """Rows to fit, their classes, and new rows."""

    X: Array
    y: Any
    new: Array


class Setting(NamedTuple):
    """How a process computes, and which samples and nudges it fits."""

    core: str
    kernels: str
    threads: int
    samples: int
    nudges: int

    @property
    def environment(self) -> dict[str, str]:
        """Environment of a process, which must be set before NumPy is imported."""
        threads = str(self.threads)
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "QMEDOID_THREADS")
        return {"OPENBLAS_CORETYPE": self.core, "QMEDOID_KERNELS": self.kernels} | dict.fromkeys(names, threads)


def read_numbers(folder: Path, name: str) -> tuple[Array, Any]:
    """A table as numbers: medians for missing ones, few levels as columns of their own, many as their places."""
    about = json.loads((folder / "MANIFEST.json").read_text())[name]
    file = folder / about["file"]
    table = pq.read_table(file) if file.suffix == ".parquet" else pyarrow.csv.read_csv(file)
    y = np.unique(np.array([str(value) for value in table[about["target"]].to_pylist()]), return_inverse=True)[1]
    columns: list[Array] = []
    for heading in table.column_names:
        if heading == about["target"] or heading in DROPPED.get(name, ()):
            continue
        column = table[heading]
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            numbers = column.cast(pa.float64()).to_numpy()
            columns.append(np.where(np.isnan(numbers), np.nanmedian(numbers), numbers))
            continue
        levels, code = np.unique([str(value) for value in column.to_pylist()], return_inverse=True)
        split = 2 < len(levels) <= MOST_LEVELS
        columns += [(code == level).astype(float) for level in range(len(levels))] if split else [code.astype(float)]
    return np.column_stack(columns), y


def draw(X: Array, y: Any, seed: int) -> Sample:
    """A sample of 200 to 600 rows, with some of every class, and new rows."""
    rng = np.random.default_rng(seed)
    count, order = int(rng.integers(200, 601)), rng.permutation(len(y))
    enough = [rng.permutation(np.flatnonzero(y == code))[:FEWEST] for code in np.unique(y)]
    lacks = np.bincount(y[order[:count]], minlength=len(enough)).min() < FEWEST
    kept = rng.permutation(np.unique(np.concatenate([order[:count], *enough]))) if lacks else order[:count]
    new = np.setdiff1d(order[count : count + NEW], kept)
    return Sample(X[kept], y[kept], X[new])


def fits(samples: Sequence[Sample], setting: Setting) -> Iterator[tuple[tuple[str, int, int], Fingerprint]]:
    """Fingerprints by method, sample and nudge; nudge 0 is the sample as it is."""
    for number, (X, y, new) in enumerate(samples[: setting.samples]):
        for method in methods_for(len(np.unique(y))):
            yield (method, number, 0), fingerprint(method, X, y, new)
            for nudge in range(1, 1 + (setting.nudges if number == 0 else 0)):
                rng = np.random.default_rng(nudge)
                yield (method, number, nudge), fingerprint(method, nudged(X, rng), y, nudged(new, rng))


def run(file: Path, setting: Setting) -> dict[tuple[str, int, int], Fingerprint] | None:
    """The fits of one setting in a process of their own; None where this processor cannot run it."""
    command = [sys.executable, __file__, "--fit", str(file), json.dumps(setting)]
    done = subprocess.run(command, env=os.environ | setting.environment, capture_output=True, check=False)
    if done.returncode in (-4, 132):  # an illegal instruction
        return None
    if done.returncode:
        raise SystemExit(f"{setting}: {done.stderr.decode()}")
    return {key: Fingerprint(*one) for key, one in pickle.loads(done.stdout)}


def settings(cores: Sequence[str], samples: int, nudges: int, quick: bool) -> list[Setting]:
    """The one that all are compared with, then the others."""
    first = Setting(cores[0], "", 1, samples, nudges)
    others = [Setting(core, "", 1, samples, 0) for core in cores[1:]]
    twins = [Setting(core, "numpy", 2, samples, 0) for core in (cores[:1] if quick else cores)]
    return [first, *others, *twins]


def compare(table: str, found: Sequence[dict[tuple[str, int, int], Fingerprint] | None]) -> list[dict[str, object]]:
    """A row for each method."""
    first, others = found[0], [one for one in found[1:] if one is not None]
    if first is None:
        raise SystemExit("The processor cannot run the first core type: name others by --cores.")
    lines = []
    for method in dict.fromkeys(key[0] for key in first):
        own = {key: one for key, one in first.items() if key[0] == method}
        seen: list[Difference] = [difference(own[method, key[1], 0], one) for key, one in own.items() if key[2]]
        seen += [difference(own[key], other[key]) for other in others for key in own if not key[2]]
        lines.append(
            {
                "table": table,
                "method": method,
                "runs": len(seen),
                "decisions changed": sum(one.decisions for one in seen),
                "groups, medoids or λ changed": sum(bool(one.choices) for one in seen),
                "largest difference of a probability": f"{max((one.probability for one in seen), default=0.0):.1e}",
                "same": sum(one.is_same for one in seen),
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="2 samples, 3 nudges, twins of one core type")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--nudges", type=int)
    parser.add_argument("--cores", default=",".join(CORES))
    parser.add_argument("--tables", help="names from MANIFEST.json, with commas between")
    parser.add_argument("--out", type=Path, default=RESULTS / "same_model.csv")
    asked = parser.parse_args()
    folder = Path(os.environ["QMEDOID_DATA"])
    names = asked.tables.split(",") if asked.tables else list(json.loads((folder / "MANIFEST.json").read_text()))
    samples, nudges = asked.samples or (2 if asked.quick else 20), asked.nudges or (3 if asked.quick else 100)
    every = settings(asked.cores.split(","), samples, nudges, asked.quick)
    lines: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        for name in names:
            X, y = read_numbers(folder, name)
            file = Path(scratch) / f"{name}.pickle"
            file.write_bytes(pickle.dumps([tuple(draw(X, y, seed)) for seed in range(samples)]))
            # The longest first: it has the nudges.
            lines += compare(name, list(pool.map(lambda setting, file=file: run(file, setting), every)))
            command = " ".join(["python benchmarks/same_model.py", *sys.argv[1:]])
            write_table(asked.out, command, lines, ("numpy", "scipy", "scikit-learn"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        given = [Sample(*one) for one in pickle.loads(Path(sys.argv[2]).read_bytes())]
        made = [(key, tuple(one)) for key, one in fits(given, Setting(*json.loads(sys.argv[3])))]
        sys.stdout.buffer.write(pickle.dumps(made))
    else:
        main()
