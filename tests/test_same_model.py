"""The same rows give the same model: on any processor, with kernels or twins, and when cells move in the last place.

Rounding must decide nothing. It is another on other processors (OpenBLAS and NumPy have kernels for each), and where
cells are moved by a few units in the last place. ``benchmarks/same_model.py`` does the same for many tables.
"""

import itertools
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks._fingerprints import Fingerprint, difference, fingerprint, nudged
from benchmarks.datasets import load_heart
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from few_trees import few_trees
from qmedoid import MedoidClassifier, VariationalClassifier
from qmedoid.kernels.ties import (
    first_largest,
    first_largest_of_rows,
    first_smallest,
    merged,
    stable_order,
)

ROOT = Path(__file__).parent.parent
# What other processors of the same family run; those that this one cannot run end with an illegal instruction.
CORES = ("Prescott", "Sandybridge", "Haswell", "SkylakeX")
# Those older than the vector instructions of which NumPy has kernels of its own.
OLD_CORES = ("Prescott", "Sandybridge")

TREES = {"n_iterations": 30}
"""Trees are grown alike, the first ones and the last ones."""


@pytest.fixture(autouse=True)
def thirty_trees():
    with few_trees(**TREES):
        yield


def lattice():
    """Few whole numbers, copies of columns and complements: ties wherever something is compared."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, size=(160, 5)).astype(float)
    X = np.column_stack([X, 2.0 - X[:, 0], X[:, 1], X[:, 2] == 1.0])
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=160) > 2.5).astype(int)


def tables():
    heart, wine, cancer, digits = load_heart(), load_wine(), load_breast_cancer(), load_digits()
    return {
        "heart": (heart.X, heart.y),
        "wine": (wine.data, wine.target),
        # Digits beyond the sixteenth: no cell is a short decimal.
        "breast cancer": (cancer.data * np.pi, cancer.target),
        "digits": (digits.data, digits.target % 3),
        "lattice": lattice(),
    }


def sample(name, seed, n=110):
    """Rows to fit and new ones."""
    X, y = tables()[name]
    rows = np.random.default_rng(seed).permutation(len(X))
    return X[rows[:n]], y[rows[:n]], X[rows[n : n + 60]]


CASES = [
    *(("evidence", name, seed) for name in ("heart", "wine", "breast cancer", "digits", "lattice") for seed in (0, 1)),
    *(("sum", name, 0) for name in ("heart", "breast cancer", "lattice")),
    *(("rare", name, 0) for name in ("heart", "breast cancer", "lattice")),
    *((method, name, 0) for method in ("nearest", "paper") for name in ("heart", "wine", "lattice")),
    *(("tiny", name, 2) for name in ("heart", "digits")),
    ("circuit", "lattice", 0),
]


@pytest.mark.parametrize(("method", "name", "seed"), CASES)
def test_cells_moved_in_the_last_place_change_nothing(method, name, seed):
    X, y, new = sample(name, seed)
    as_it_is = fingerprint(method, X, y, new)
    for number in range(3 if method == "evidence" else 2):
        rng = np.random.default_rng(number)
        found = difference(as_it_is, fingerprint(method, nudged(X, rng), y, nudged(new, rng)))
        assert found.is_same, found


def numpy_dispatch() -> str:
    """The instructions that NumPy uses here beyond those of every processor it runs on."""
    try:
        from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
    except ImportError:
        return ""
    return " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))


def fitted_elsewhere(core: str, kernels: str, threads: int) -> "list[Fingerprint] | None":
    """Fingerprints of some fits in a process for another processor; None where this one cannot run it."""
    settings = {
        "OPENBLAS_CORETYPE": core,
        "OPENBLAS_NUM_THREADS": str(threads),
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "passive",  # or threads would spin while they wait for a core
        "QMEDOID_THREADS": str(threads),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
        "QMEDOID_KERNELS": kernels,
        "NPY_DISABLE_CPU_FEATURES": numpy_dispatch() if core in OLD_CORES else "",
    }
    done = subprocess.run([sys.executable, __file__], env=os.environ | settings, capture_output=True, check=False)
    if done.returncode in (-4, 132):  # SIGILL
        return None
    assert done.returncode == 0, done.stderr.decode()
    return [Fingerprint(*one) for one in pickle.loads(done.stdout)]


def some_fits() -> list[Fingerprint]:
    """Those of which rounding chose some parts, on one processor or another, before ties were broken by order."""
    cases = [("evidence", "heart", 0), ("sum", "lattice", 0), ("rare", "heart", 0), ("nearest", "lattice", 0)]
    return [fingerprint(method, *sample(name, seed, 150)) for method, name, seed in cases]


def test_every_processor_finds_the_same_model():
    kernels = itertools.cycle(["", "numpy"])
    threads = itertools.cycle([1, 2, 2, 1])
    runs = {core: fitted_elsewhere(core, next(kernels), next(threads)) for core in CORES}
    ran = {core: fits for core, fits in runs.items() if fits is not None}
    if len(ran) < 2:
        pytest.skip("This processor runs the kernels of one core type alone.")
    first, *others = ran
    for other in others:
        for one, same in zip(ran[first], ran[other], strict=True):
            found = difference(one, same)
            assert found.is_same, (first, other, found)


def test_nearly_separable_classes_have_one_model_on_two_processors():
    """The table car: its refits do not arrive, and probabilities were up to 0.04 apart for one seed."""
    if not (Path(os.environ.get("QMEDOID_DATA", "")) / "MANIFEST.json").is_file():
        pytest.skip("needs car.parquet: set QMEDOID_DATA to the folder that holds it.")
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    if "openblas" not in blas:
        pytest.skip(f"NumPy is built with {blas}, whose kernels are not chosen by OPENBLAS_CORETYPE.")
    command = [sys.executable, str(ROOT / "benchmarks" / "same_on_processors.py"), "--fit", '["car"]']
    found = []
    for core in ("Haswell", "SkylakeX"):
        settings = {"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, check=False)
        if done.returncode in (-4, 132):  # SIGILL
            pytest.skip(f"This processor does not run the kernels of {core}.")
        assert done.returncode == 0, done.stderr.decode()
        found.append(pickle.loads(done.stdout)["car"])
    (p, called, *_), (other, called_there, *_) = found
    np.testing.assert_array_equal(called_there, called)
    np.testing.assert_allclose(other, p, rtol=0, atol=1e-6)


def test_records_at_the_margin_of_the_circuit_have_one_decider():
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(240, 3)), 1)
    y = (X[:, 0] + 0.7 * rng.normal(size=240) > 0).astype(int)
    X[rng.permutation(240)[:140]] = 0.3  # so many equal rows that the share ends among them
    circuit = VariationalClassifier(n_steps=5, n_seeds=1, n_reps=1, cv=2)
    deciders = []
    for nudge in range(5):
        moved = X if nudge == 0 else nudged(X, np.random.default_rng(nudge))
        fitted = MedoidClassifier(method="evidence", variational=circuit, refine=0.3, random_state=0).fit(moved, y)
        deciders.append(fitted.decided_by(moved).tolist())
    assert len(set(deciders[0])) == 2
    assert all(other == deciders[0] for other in deciders[1:])


def test_the_first_of_equal_numbers_is_taken():
    up = 1.0 + 1e-13
    assert first_smallest([2.0, up, 1.0]) == 1
    assert first_largest([0.5, 1.0, up]) == 1
    assert first_smallest([2.0, 1.1, 1.0]) == 2
    assert stable_order(np.array([3.0, up, 1.0, 2.0])).tolist() == [1, 2, 3, 0]
    assert stable_order(np.array([3.0, 1.0, 2.0])).tolist() == [1, 2, 0]
    # Differences of large numbers are equal up to the rounding of those.
    assert stable_order(np.array([1e-7, 0.0]), size=1e3).tolist() == [0, 1]
    assert first_largest_of_rows(np.array([[0.5, 0.5 + 1e-12], [0.4, 0.6]])).tolist() == [0, 1]
    assert len(set(merged(np.array([up, 5.0, 1.0, 5.0 - 1e-12])).tolist())) == 2


if __name__ == "__main__":
    with few_trees(**TREES):
        sys.stdout.buffer.write(pickle.dumps([tuple(fit) for fit in some_fits()]))
