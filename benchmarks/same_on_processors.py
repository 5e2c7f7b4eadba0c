"""Whether the default fit of a whole table gives the same probabilities on other processors.

Run as ``QMEDOID_DATA=... python benchmarks/same_on_processors.py`` (some 15 minutes on one core). Every table of the
folder's MANIFEST.json, 2,000 rows of it at most, and made tables whose classes are separated or nearly so, are fitted
by `MedoidClassifier` with one seed in a process for each core type of OpenBLAS that this processor can run; its kernels
add in another order each. Probabilities of the rows are compared with those of the first core type: by how much they
differ at most, and how many decisions do. ``same_model.py`` compares samples of a few hundred rows, by every method.
"""

import argparse
import json
import os
import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier

CORES = ("Haswell", "SkylakeX", "Nehalem", "Prescott")
MOST_ROWS = 2000
Raw = tuple[Any, npt.NDArray[Any]]


def of_folder(name: str) -> Raw:
    """Rows of a table of the folder, without classes of a single row."""
    folder = Path(os.environ["QMEDOID_DATA"])
    about = json.loads((folder / "MANIFEST.json").read_text())[name]
    file = folder / about["file"]
    table = pd.read_csv(file) if file.suffix == ".csv" else pd.read_parquet(file)
    table = table.sample(min(len(table), MOST_ROWS), random_state=0).reset_index(drop=True)
    labels = table.pop(about["target"]).astype(str)
    kept = labels.map(labels.value_counts()) > 1
    return table[kept].reset_index(drop=True), labels[kept].to_numpy()


def made(kind: str, n_classes: int) -> Raw:
    """A made table of 900 rows: blobs that lie apart or nearly so, copies of rows, or a column that is the class."""
    rng = np.random.default_rng(n_classes)
    codes = np.arange(900) % n_classes
    X = np.round(rng.normal(size=(900, 6)), 2)
    X[:, 0] += {"apart": 9.0, "nearly apart": 4.0}.get(kind, 2.0) * codes
    if kind == "copies":
        X, codes = np.tile(X[:300], (3, 1)), np.tile(codes[:300], 3)
    if kind == "a perfect column":
        X[:, 5] = codes
    if kind == "a lattice":
        X = rng.integers(0, 3, size=(900, 6)).astype(float)
        codes = np.minimum((X[:, 0] * X[:, 1] + X[:, 2]).astype(int), n_classes - 1)
    return X, codes


KINDS = ("apart", "nearly apart", "copies", "a perfect column", "a lattice")


def tables() -> dict[str, Any]:
    """Functions that give a table, by name."""
    names = json.loads((Path(os.environ["QMEDOID_DATA"]) / "MANIFEST.json").read_text())
    found: dict[str, Any] = {name: (of_folder, name) for name in names}
    return found | {f"made: {kind}, {n} classes": (made, kind, n) for kind in KINDS for n in (2, 3, 4)}


def fits(names: list[str]) -> Iterator[tuple[str, Any]]:
    """Of every table probabilities and decisions for its rows, and the seconds of the fit."""
    every = tables()
    for name in names:
        make, *how = every[name]
        X, y = make(*how)
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MedoidClassifier(random_state=0).fit(X, y)
        yield name, (model.predict_proba(X), model.predict(X), model.method_, time.perf_counter() - began)


def run(core: str, names: list[str]) -> dict[str, Any] | None:
    """The fits on one core type; None where this processor cannot run it."""
    command = [sys.executable, __file__, "--fit", json.dumps(names)]
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "QMEDOID_THREADS"), "1")
    environment = os.environ | threads | {"OPENBLAS_CORETYPE": core}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if done.returncode in (-4, 132):  # an illegal instruction
        return None
    if done.returncode:
        raise SystemExit(f"{core}: {done.stderr.decode()}")
    found: dict[str, Any] = pickle.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", default=",".join(CORES))
    parser.add_argument("--tables", nargs="*", help="some of the tables")
    parser.add_argument("--out", type=Path, default=RESULTS / "same_on_processors.csv")
    asked = parser.parse_args()
    names = asked.tables or list(tables())
    runs = {core: run(core, names) for core in asked.cores.split(",")}
    first, *others = [found for found in runs.values() if found is not None]
    lines = []
    for name in names:
        p, called, method, seconds = first[name]
        lines.append(
            {
                "table": name,
                "rows": len(p),
                "classes": p.shape[1],
                "method": method,
                "core types": 1 + len(others),
                "largest difference of a probability": f"{max(abs(p - one[name][0]).max() for one in others):.1e}",
                "decisions changed": sum(int((called != one[name][1]).sum()) for one in others),
                "seconds": round(seconds, 2),
            }
        )
    write_table(
        asked.out,
        " ".join(["python benchmarks/same_on_processors.py", *sys.argv[1:]]),
        lines,
        ("numpy", "scipy", "scikit-learn"),
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        sys.stdout.buffer.write(pickle.dumps(dict(fits(json.loads(sys.argv[2])))))
    else:
        main()
