"""Variational circuits against Qiskit Machine Learning, PennyLane, JAX and gate-by-gate NumPy.

Run as ``python benchmarks/speed_variational.py`` (some minutes). Every library gets the same circuit, rows and loss,
and its numbers are checked before it is timed; one that is not installed is left out with a message. Three tasks:

- ``spsa``: 300 steps on batches of 256 rows, two losses a step, parity read-out. Slow libraries do a few of the steps
  and are scaled up, as their rows say. ``with start-up`` is a fresh process, interpreter and imports included (of
  modules whose byte code is kept) and one BLAS thread; the ratios to it are of the other libraries' time without
  theirs, for PennyLane the median of several turns.
- ``gradient``: loss and exact gradient of 256 rows, trained Z and ZZ read-out.
- ``scoring``: class scores of 284,807 rows.

Ratios are of core-seconds on one thread of ours, where nothing else is said.
"""

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import _variational_rivals as rivals
import _variational_runs as runs
from _timing import RESULTS, Timing, core_seconds, write_table
from qmedoid.kernels import statevector
from qmedoid.methods.variational.model import Network

CIRCUITS = ((2, 4), (4, 3))
N_ROWS, THREADS = 284_807, 2
PENNYLANE_STEPS, QISKIT_STEPS, PENNYLANE_ROWS = 30, 2, 16_384
TOLERANCE = 1e-10
TURNS = 9


@contextmanager
def twin_only() -> Iterator[None]:
    """Simulate by the NumPy twin, one array operation for each gate."""
    compiled = statevector.compiled
    statevector.compiled = lambda _: None  # type: ignore[assignment]
    try:
        yield
    finally:
        statevector.compiled = compiled


class Table:
    """Rows of the result, each with its ratio to ours."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []
        self.ours: Timing | None = None

    def add(
        self, task: str, method: str, timing: Timing, factor: float = 1.0, target: str = "", note: str = ""
    ) -> None:
        """A measurement, scaled by `factor`; the first of a task is ours."""
        if method == "qmedoid":
            self.ours = timing
        ours = self.ours or timing
        self.rows.append(
            {
                "task": task,
                "method": method,
                "core ms": 1e3 * factor * timing.core,
                "wall ms": 1e3 * factor * timing.wall,
                "x qmedoid (core)": factor * timing.core / ours.core,
                "x qmedoid (wall)": factor * timing.wall / ours.wall,
                "wanted": target,
                "note": note,
            }
        )
        print(f"{task}: {method} {1e3 * factor * timing.core:.4g} core-ms", flush=True)


def attempt(method: str, make: Callable[[], Any]) -> Any:
    """What `make` returns, or None with a message where its library is missing."""
    try:
        return make()
    except ImportError as error:
        print(f"{method} is left out: {error}. Install it to compare with it.")
        return None


def check(method: str, found: Any, expected: Any) -> None:
    apart = float(np.max(np.abs(np.asarray(found) - np.asarray(expected))))
    if not apart <= TOLERANCE:
        raise SystemExit(f"{method} differs by {apart:.1e}: its time means nothing.")


def fresh_process(n_qubits: int, n_reps: int, repeats: int = 15) -> Timing:
    """A training in a separate process, from its start to its end."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import _variational_runs as runs; "
        f"runs.Training(runs.make_network({n_qubits}, {n_reps}, 'parity')).run()"
    )
    # Byte code is kept, as that of an installed package is; and NumPy starts no threads that nothing here uses.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    kept["OPENBLAS_NUM_THREADS"] = "1"
    cores: list[float] = []

    def run() -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], env=kept, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cores.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    run()
    cores.clear()
    timing = core_seconds(run, repeats)
    return Timing(float(np.median(cores)), timing.wall, None)


def turn_by_turn(run: Callable[[], Any], n_qubits: int, n_reps: int) -> list[float]:
    """Another library's wall time over ours with start-up, measured in turns: a slow minute meets both."""
    return [core_seconds(run, 1).wall / fresh_process(n_qubits, n_reps, 3).wall for _ in range(TURNS)]


def spsa(table: Table, n_qubits: int, n_reps: int) -> None:
    task = f"spsa, {n_qubits} qubits x {n_reps}"
    network = runs.make_network(n_qubits, n_reps, "parity")
    ours = runs.Training(network)
    ours.run(10)
    timing = core_seconds(ours.run, 9)
    losses = timing.result
    table.add(task, "qmedoid", timing)
    with twin_only():
        timing = core_seconds(ours.run, 3)
    check("The twin", timing.result, losses)
    table.add(task, "NumPy gate by gate", timing)
    start_up = fresh_process(n_qubits, n_reps)
    table.add(task, "qmedoid with start-up", start_up)
    for method, make, steps, target in (
        ("PennyLane default.qubit, broadcast", rivals.pennylane_expectations, PENNYLANE_STEPS, 50),
        ("Qiskit ML SamplerQNN, exact", rivals.qiskit_expectations, QISKIT_STEPS, 1000),
    ):
        expectations = attempt(method, lambda make=make: make(network))
        if expectations is None:
            continue
        theirs = runs.Training(network, expectations)
        check(method, theirs.run(1), losses[:1])
        timing = core_seconds(lambda t=theirs, s=steps: t.run(s), 3)
        check(method, timing.result, losses[:steps])
        scale = runs.STEPS / steps
        ratio = scale * timing.wall / start_up.wall
        if steps == PENNYLANE_STEPS:
            ratio = statistics.median(turn_by_turn(lambda t=theirs, s=steps: t.run(s), n_qubits, n_reps)) * scale
        with_start_up = f"{ratio:.4g} x ours with start-up (wall)"
        note = f"scaled from {steps} steps; {with_start_up}"
        table.add(task, method, timing, scale, f">= {target}", note)


def gradient(table: Table, n_qubits: int, n_reps: int) -> None:
    task = f"gradient, {n_qubits} qubits x {n_reps}"
    network = runs.make_network(n_qubits, n_reps, "strings")
    rng = np.random.default_rng(0)
    angles = runs.make_angles(2000, n_qubits)
    batch = runs.make_batch(angles, runs.make_codes(angles), rng)
    theta = network.start(rng, spread=1.0)

    def add(method: str, run: rivals.Gradient, calls: int, target: str = "") -> None:
        loss, by_theta = run(theta, batch)  # the first call compiles, where anything is compiled
        expected, expected_by_theta = network.loss_and_gradient(theta, batch)
        check(method, [loss, *by_theta], [expected, *expected_by_theta])
        timing = core_seconds(lambda: [run(theta, batch) for _ in range(calls)], 9)
        table.add(task, method, Timing(timing.core / calls, timing.wall / calls, None), target=target)

    add("qmedoid", network.loss_and_gradient, 200)
    with twin_only():
        add("NumPy gate by gate", network.loss_and_gradient, 10)
    for method, make, calls, target in (
        ("JAX, compiled", rivals.jax_gradient, 100, ">= 4"),
        ("PennyLane default.qubit, backprop", rivals.pennylane_gradient, 3, ">= 50"),
    ):
        run = attempt(method, lambda make=make: make(network))
        if run is not None:
            add(method, run, calls, target)


def scoring(table: Table, n_qubits: int, n_reps: int) -> None:
    task = f"scoring, {n_qubits} qubits x {n_reps}"
    network = runs.make_network(n_qubits, n_reps, "strings")
    theta = network.start(np.random.default_rng(0), spread=1.0)
    angles = runs.make_angles(N_ROWS, n_qubits)

    def scores(threads: int) -> Any:
        return network.scores(theta, angles, threads=threads)

    timing = core_seconds(lambda: scores(1), 9)
    expected = timing.result
    table.add(task, "qmedoid", timing)
    table.add(task, f"qmedoid, {THREADS} threads", core_seconds(lambda: scores(THREADS), 9))
    with twin_only():
        timing = core_seconds(lambda: scores(1), 3)
    check("The twin", timing.result, expected)
    table.add(task, "NumPy gate by gate", timing, target=">= 4")
    method = "PennyLane default.qubit, broadcast"
    expectations = attempt(method, lambda: rivals.pennylane_expectations(network))
    if expectations is not None:
        score = pennylane_scores(network, expectations, theta)
        timing = core_seconds(lambda: score(angles[:PENNYLANE_ROWS]), 3)
        check(method, timing.result, expected[:PENNYLANE_ROWS])
        note = f"scaled from {PENNYLANE_ROWS:,} rows"
        table.add(task, method, timing, N_ROWS / PENNYLANE_ROWS, ">= 15", note)


def pennylane_scores(network: Network, expectations: runs.Expectations, theta: runs.Array) -> Callable[..., Any]:
    parts = network.split(theta)
    return lambda angles: network.readout.scores(expectations(angles, parts.rotations), parts.readout)


def main() -> None:
    table = Table()
    for circuit in CIRCUITS:
        spsa(table, *circuit)
    for circuit in CIRCUITS:
        gradient(table, *circuit)
    scoring(table, 4, 3)
    rivals_by_module = {"qiskit_machine_learning": "qiskit-machine-learning", "pennylane": "pennylane", "jax": "jax"}
    packages = ["numpy", *(name for module, name in rivals_by_module.items() if find_spec(module) is not None)]
    write_table(RESULTS / "speed_variational.csv", "python benchmarks/speed_variational.py", table.rows, packages)


if __name__ == "__main__":
    main()
