"""How many SWAP tests a record takes, and how near scores by shots come to the closed form.

Run as ``QMEDOID_DATA=... python benchmarks/swap_tests.py`` (a minute). Three quarters of the rows of each table are
fitted with the defaults, and some of the others are measured. A test of vectors with d columns is d tests of one column
on one qubit each; those of equal numbers are one test, and 100 of them run side by side in one circuit. With shots each
of these tests reads 1 as often as its overlap s says (the interference circuit).
"""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
from sklearn.datasets import load_breast_cancer, load_wine

from _timing import RESULTS, write_table
from qmedoid import MedoidClassifier, RareEventClassifier, compact_swap_test
from qmedoid.arrays import Array
from qmedoid.geometry.overlap import SwapTest
from qmedoid.methods.part import Backends

QUBITS, SHOTS, RECORDS, COMMON = 100, 1024, 60, 40_000


class Counted:
    """The closed form, which keeps the tests that it was asked for: of whole vectors, and of one column."""

    def __init__(self) -> None:
        self.vectors = set[tuple[bytes, bytes]]()
        self.columns = set[tuple[float, float]]()

    def __call__(self, X: Array, Y: Array) -> SwapTest:
        """Overlap, distance and angle of every pair of rows."""
        for x in X:
            for y in Y:
                self.vectors.add((x.tobytes(), y.tobytes()))
                # A test with a zero vector has a known result.
                self.columns.update((a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True) if a and b)
        return compact_swap_test(X, Y)


class Shots:
    """Overlaps of vectors from tests of one column with shots, each test drawn once."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.squares: dict[tuple[float, float], float] = {}

    def __call__(self, X: Array, Y: Array) -> SwapTest:
        """Overlap and distance of every pair of rows; there is no angle."""
        squared = np.array([[sum(map(self._square, x, y)) for y in Y.tolist()] for x in X.tolist()])
        z = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1)
        overlap = np.divide(squared, 2.0 * z, out=np.zeros_like(z), where=z > 0)
        return SwapTest(overlap, np.sqrt(squared), np.zeros_like(z))

    def _square(self, x: float, y: float) -> float:
        z = x * x + y * y
        if (x, y) not in self.squares:
            drawn = self.rng.binomial(SHOTS, (x - y) ** 2 / (2 * z)) / SHOTS if x and y else 0.5
            self.squares[x, y] = 2.0 * z * drawn
        return self.squares[x, y]


def heart(folder: Path) -> tuple[Any, Any]:
    table = pyarrow.csv.read_csv(folder / "heart.csv")
    return table.drop_columns(["HeartDisease"]), table["HeartDisease"].to_numpy()


def payments(folder: Path) -> tuple[Any, Any]:
    """All frauds and some of the other payments."""
    table = pq.read_table(folder / "creditcard.parquet")
    y = table["Class"].to_numpy().astype(np.intp)
    common = np.random.default_rng(0).choice(np.flatnonzero(y == 0), COMMON, replace=False)
    rows = np.sort(np.append(np.flatnonzero(y), common))
    table = table.take(rows)
    return np.column_stack([table[name].to_numpy() for name in table.column_names if name != "Class"]), y[rows]


def measured(name: str, classifier: Any, X: Any, y: Any) -> dict[str, object]:
    fitted, new = np.flatnonzero(np.arange(len(y)) % 4), np.arange(0, len(y), 4)
    classifier.fit(X.take(fitted) if not isinstance(X, np.ndarray) else X[fitted], y[fitted])
    # As many records of each class, as far as there are.
    new = np.concatenate([new[y[new] == label][: RECORDS // len(np.unique(y))] for label in np.unique(y)])
    rows = X[new] if isinstance(X, np.ndarray) else classifier._encoded(X.take(new))
    model = classifier.model_
    counts = []
    for row in rows:
        counted = Counted()
        replace(model, backends=Backends(counted)).score(row[None])
        counts.append((len(counted.vectors), len(counted.columns)))
    vectors, columns = np.array(counts).T
    began = time.process_time()
    exact = replace(model, backends=Backends(compact_swap_test)).score(rows).scores
    seconds, plain = time.process_time() - began, model.score(rows).scores
    margins, drawn = (scores - scores[:, :1] for scores in (plain, model.score_measured(rows, Shots(0)).scores))
    return {
        "table": name,
        "method": model.name,
        "columns": rows.shape[1],
        "tests of vectors": float(vectors.mean()),
        "tests of a column": float(columns.mean()),
        f"circuits of {QUBITS} qubits": float(np.ceil(columns / QUBITS).mean()),
        "at most": int(np.ceil(columns.max() / QUBITS)),
        "milliseconds a record": 1e3 * seconds / len(rows),
        "error of scores, exact": float(np.abs(exact - plain).max()),
        f"error of margins, {SHOTS} shots": float(np.sqrt(np.mean((drawn - margins)[:, 1:] ** 2))),
        "deviation of margins": float(margins[:, 1:].std()),
        "decisions kept": float(np.mean(drawn.argmin(axis=1) == margins.argmin(axis=1))),
    }


def main() -> None:
    folder = Path(os.environ["QMEDOID_DATA"])
    rows = [
        measured("wine", MedoidClassifier(random_state=0), *load_wine(return_X_y=True)),
        measured("breast cancer", MedoidClassifier(random_state=0), *load_breast_cancer(return_X_y=True)),
        measured("heart", MedoidClassifier(random_state=0), *heart(folder)),
        measured("credit card", RareEventClassifier(random_state=0), *payments(folder)),
    ]
    write_table(RESULTS / "swap_tests.csv", "python benchmarks/swap_tests.py", rows)


if __name__ == "__main__":
    main()
