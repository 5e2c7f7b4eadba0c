"""How much sooner exact gradients reach the loss that 300 steps of SPSA reach, both tuned.

Writes ``benchmarks/results/training_speed.csv``. Two problems, 256 rows a batch, each class weighted to its true prior:
the two deltas of the credit-card data under the default method classifier (2 qubits, 4 repetitions), and the first
four columns of phoneme (4 qubits, 3 repetitions). ``creditcard.parquet`` and ``phoneme.parquet`` are looked for in the
folder that ``QMEDOID_DATA`` names.

Both trainings of a seed begin with the same parameters. The loss is that of all training rows. SPSA is given the lower
of the losses of its last parameters and of the mean over its last 30 %; exact gradients are there at the first
of ten steps in a row that are no worse. Losses over all rows are computed afterwards and cost no time.
``--tune`` prints the best gains and learning rates on other seeds: SPSA by the loss it ends with, exact gradients by
how soon they get there. A loss with its gradient counts as one evaluation; seconds say what it costs.
"""

import argparse
import itertools
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from _timing import RESULTS, write_table
from qmedoid import NearestMedoidClassifier
from qmedoid.exceptions import QMedoidWarning
from qmedoid.geometry.channels import delta_features
from qmedoid.methods.variational.model import Batch
from qmedoid.methods.variational.training import (
    BatchObjective,
    CircuitSettings,
    batch_objective,
    fit_angle_map,
    row_weights,
)
from qmedoid.optimize.minimizers import Minimum, OnStep, Stopping, TrainingState, minimize_adam, minimize_spsa

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

STEPS, BATCH_ROWS, LASTING = 300, 256, 10
SEEDS, TUNING_SEEDS = range(10), range(100, 105)

# Chosen by `--tune` out of the grids below.
TUNED: dict[str, dict[str, dict[str, Any]]] = {
    "credit-card deltas, 2 qubits, 4 repetitions": {
        "spsa": {"gains": (100.0, 0.02, 0.602, 0.101), "clip_norm": 1.0},
        "gradients": {"learning_rate": 0.2, "steps": 300},
    },
    "phoneme, 4 qubits, 3 repetitions": {
        "spsa": {"gains": (10.0, 0.02, 0.602, 0.101), "clip_norm": 1.0},
        "gradients": {"learning_rate": 0.2, "steps": 100},
    },
}
GAINS = [
    {"gains": (a, c, 0.602, 0.101), "clip_norm": clip}
    for a, c, clip in itertools.product((0.2, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0), (0.02, 0.1, 0.3), (1.0, None))
]
RATES = [
    {"learning_rate": rate, "steps": steps}
    for rate, steps in itertools.product((0.02, 0.05, 0.1, 0.2, 0.4), (100, 300))
]


@dataclass
class Trace:
    """Parameters and clocks after every step."""

    thetas: list[Array] = field(default_factory=list)
    core: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def __call__(self, state: TrainingState) -> None:
        """Note a step."""
        self.core.append(time.process_time())
        self.wall.append(time.perf_counter())
        self.thetas.append(state.theta.copy())


@dataclass(frozen=True)
class Run:
    """A training: what it kept, its parameters step by step, and the core- and wall seconds spent up to each step."""

    kept: Array
    thetas: list[Array]
    core: Array
    wall: Array


def data_folder() -> Path:
    folder = os.environ.get("QMEDOID_DATA")
    if folder is None or not all((Path(folder) / f"{name}.parquet").exists() for name in ("creditcard", "phoneme")):
        sys.exit(
            "This benchmark needs creditcard.parquet (Kaggle mlg-ulb/creditcardfraud) and phoneme.parquet (KEEL; "
            "jbrownlee/Datasets on GitHub): set QMEDOID_DATA to their folder."
        )
    return Path(folder)


def read(name: str, target: str, dropped: tuple[str, ...] = ()) -> tuple[Array, Codes]:
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder() / f"{name}.parquet")
    columns = [table[column].to_numpy() for column in table.column_names if column not in (target, *dropped)]
    codes = np.unique(table[target].to_numpy(), return_inverse=True)[1]
    return np.column_stack(columns).astype(np.float64), codes.astype(np.intp)


def training_part(X: Array, y: Codes) -> tuple[Array, Codes]:
    X_train, _, y_train, _ = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    return X_train, y_train


def credit_card() -> BatchObjective:
    X, y = training_part(*read("creditcard", "Class", ("Time",)))
    method = NearestMedoidClassifier(random_state=0).fit(X, y).model_
    found = method.score(X, channels=True)
    return problem(delta_features(found.channels, found.scores), y, n_reps=4)


def phoneme() -> BatchObjective:
    X, y = training_part(*read("phoneme", "target"))
    return problem(X[:, :4], y, n_reps=3)


PROBLEMS: dict[str, Callable[[], BatchObjective]] = {
    "credit-card deltas, 2 qubits, 4 repetitions": credit_card,
    "phoneme, 4 qubits, 3 repetitions": phoneme,
}


def problem(features: Array, codes: Codes, n_reps: int) -> BatchObjective:
    """The default circuit on these features, in batches with rows of both classes."""
    settings = CircuitSettings(n_reps=n_reps)
    network = settings.network(features.shape[1], 2)
    rows = Batch(fit_angle_map(features, settings).apply(features), codes, row_weights(codes, np.ones(2)))
    return batch_objective(network, rows, np.ones(2), BATCH_ROWS, "importance")


def traced(objective: BatchObjective, seed: int, minimize: Callable[[TrainingState, OnStep], Minimum]) -> Run:
    rng = np.random.default_rng(seed)
    shares = np.bincount(objective.data.codes) / len(objective.data.codes)
    state = TrainingState(objective.network.start(rng, shares=shares), rng)
    trace, core, wall = Trace(), time.process_time(), time.perf_counter()
    kept, _, _ = minimize(state, trace)
    return Run(kept, trace.thetas, np.array(trace.core) - core, np.array(trace.wall) - wall)


def by_spsa(objective: BatchObjective, seed: int, gains: dict[str, Any]) -> Run:
    return traced(objective, seed, lambda state, trace: minimize_spsa(
        objective, state, Stopping(STEPS), on_step=trace, **gains
    ))  # fmt: skip


def by_gradients(objective: BatchObjective, seed: int, learning_rate: float, steps: int) -> Run:
    return traced(objective, seed, lambda state, trace: minimize_adam(
        objective, state, Stopping(steps), learning_rate=learning_rate, on_step=trace
    ))  # fmt: skip


def reached(objective: BatchObjective, run: Run) -> float:
    """The loss over all rows that a training ends with."""
    return min(objective.network.loss(theta, objective.data) for theta in (run.kept, run.thetas[-1]))


def steps_to(objective: BatchObjective, run: Run, loss: float) -> int | None:
    """The first of `LASTING` steps in a row with at most the given loss over all rows; None if there are none."""
    met = 0
    for step, theta in enumerate(run.thetas, start=1):
        met = met + 1 if objective.network.loss(theta, objective.data) <= loss else 0
        if met == LASTING:
            return step - LASTING + 1
    return None


def tune(objective: BatchObjective, name: str) -> dict[str, dict[str, Any]]:
    losses = [[reached(objective, by_spsa(objective, seed, gains)) for seed in TUNING_SEEDS] for gains in GAINS]
    means = np.nan_to_num(np.mean(losses, axis=1), nan=np.inf)
    best = int(np.argmin(means))
    sooner = []
    for rates in RATES:
        found = [
            steps_to(objective, by_gradients(objective, seed, **rates), loss)
            for seed, loss in zip(TUNING_SEEDS, losses[best], strict=True)
        ]
        sooner.append(np.mean([np.inf if steps is None else steps for steps in found]))
    fastest = int(np.argmin(sooner))
    for number in np.argsort(means):
        print(f"    # {means[number]:.5f} {GAINS[number]}")
    for rates, steps in zip(RATES, sooner, strict=True):
        print(f"    # {steps:.1f} steps {rates}")
    print(f"    {name!r}: {{'spsa': {GAINS[best]}, 'gradients': {RATES[fastest]}}},", flush=True)
    return {"spsa": GAINS[best], "gradients": RATES[fastest]}


def compare(objective: BatchObjective, name: str) -> dict[str, object]:
    chosen = TUNED[name]
    losses, ends, steps_taken, ratios = [], [], [], []
    for seed in SEEDS:
        spsa = by_spsa(objective, seed, chosen["spsa"])
        exact = by_gradients(objective, seed, **chosen["gradients"])
        losses.append(reached(objective, spsa))
        ends.append(reached(objective, exact))
        steps = steps_to(objective, exact, losses[-1])
        steps_taken.append(np.inf if steps is None else steps)
        if steps is None:
            ratios.append((0.0, 0.0, 0.0))
            continue
        at = steps - 1
        ratios.append(
            (
                2 * len(spsa.thetas) / (at + 1),
                spsa.core[-1] / exact.core[at],
                spsa.wall[-1] / exact.wall[at],
            )
        )
        print(name, seed, f"{losses[-1]:.5f}", steps, [round(ratio, 2) for ratio in ratios[-1]], flush=True)
    evaluations, core, wall = zip(*ratios, strict=True)
    return {
        "problem": name,
        "rows": len(objective.data.codes),
        "parameters": objective.network.n_parameters,
        "SPSA": _named(chosen["spsa"]),
        "exact gradients": _named(chosen["gradients"]),
        "loss of SPSA (median)": f"{statistics.median(losses):.5f}",
        "loss of exact gradients at their end": f"{statistics.median(ends):.5f}",
        "steps to the loss of SPSA": _spread(steps_taken, 0),
        "x fewer evaluations": _spread(evaluations),
        "x sooner (core-s)": _spread(core),
        "x sooner (wall)": _spread(wall),
    }


def _named(settings: dict[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _spread(values: Any, digits: int = 1) -> str:
    """Median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tune", action="store_true", help="choose gains and learning rates instead, on other seeds")
    options = parser.parse_args()
    warnings.simplefilter("ignore", QMedoidWarning)
    data_folder()
    found = []
    for name, make in PROBLEMS.items():
        found.append((tune if options.tune else compare)(make(), name))
    if not options.tune:
        write_table(RESULTS / "training_speed.csv", "python benchmarks/training_speed.py", found)


if __name__ == "__main__":
    main()
