"""What fine-tuning through a noisy device wins back of what noise takes from a trained circuit, and at which price.

Run as ``QMEDOID_DATA=... python benchmarks/fine_tuning.py`` (some minutes); writes ``results/fine_tuning.csv``. From
each table 1,000 rows, or a third of fewer, are fitted in the exact simulation, by three columns on three qubits. As
many other rows tune the circuit through a simulated device (fake Manila and fake Torino of qiskit-ibm-runtime, exactly
under their noise) with 1,024 shots a circuit, and at most 500 further rows are measured before and after, with 4,096
shots. Weights that `fine_tuned` does not keep have no gain. Figures are means over three splits, and ± is the standard
error of the gain over all test rows. Exact gradients, which take most circuits, are tried in the first case alone.
"""

import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.csv
import pyarrow.parquet as pq
from qiskit.transpiler import generate_preset_pass_manager
from qiskit_ibm_runtime.fake_provider import FakeManilaV2, FakeTorino

from _timing import RESULTS, write_table
from qmedoid import VariationalClassifier
from qmedoid.kernels.cross_entropy import row_losses
from qmedoid.quantum.circuits import SamplerExpectations
from qmedoid.quantum.devices import BlockSampler

Array = npt.NDArray[np.float64]
TABLES = {
    "heart": ("HeartDisease", ("Age", "MaxHR", "Oldpeak")),
    "phoneme": ("target", ("f0", "f1", "f2")),
    "magic": ("target", ("FLength", "FSize", "FAlpha")),
}
CASES = [
    ("fake Manila", 3, ("readout", "spsa", "adam")),
    ("fake Manila", 6, ("readout", "spsa")),
    ("fake Torino", 3, ("readout", "spsa")),
]
DEVICES = {"fake Manila": FakeManilaV2, "fake Torino": FakeTorino}
SEEDS, FITTED_ROWS, TEST_ROWS, SHOTS, TEST_SHOTS = range(3), 1000, 500, 1024, 4096


class Device(NamedTuple):
    """A simulated device and the pass manager for it."""

    device: Any
    passes: Any

    def backend(self, shots: int, seed: int) -> SamplerExpectations:
        """A backend with its own stream of shots."""
        sampler = BlockSampler(self.device, seed=seed)
        return SamplerExpectations(sampler=sampler, shots=shots, pass_manager=self.passes, rows_per_job=1000)


def read(folder: Path, name: str) -> tuple[Array, npt.NDArray[np.intp]]:
    target, columns = TABLES[name]
    csv = folder / f"{name}.csv"
    table = pyarrow.csv.read_csv(csv) if csv.exists() else pq.read_table(folder / f"{name}.parquet")
    codes = np.unique(np.array(table[target].to_pylist()), return_inverse=True)[1]
    return np.column_stack([table[one].to_numpy().astype(np.float64) for one in columns]), codes.astype(np.intp)


def losses(model: VariationalClassifier, X: Array, codes: npt.NDArray[np.intp]) -> Array:
    return row_losses(np.log(model.predict_proba(X)), codes)


def compared(place: Device, table: str, X: Array, y: npt.NDArray[np.intp], n_reps: int, optimizers: Any) -> Any:
    """For each optimizer, what every split shows: circuits, kept, losses of the test rows."""
    found: dict[str, list[Any]] = {optimizer: [] for optimizer in optimizers}
    for seed in SEEDS:
        rows = np.random.default_rng(seed).permutation(len(y))
        n_fitted = min(FITTED_ROWS, len(y) // 3)
        fitted, new, test = rows[:n_fitted], rows[n_fitted : 2 * n_fitted], rows[2 * n_fitted :][:TEST_ROWS]
        model = VariationalClassifier(n_qubits=3, n_reps=n_reps, random_state=seed).fit(X[fitted], y[fitted])
        judge = place.backend(TEST_SHOTS, 1000 + seed)
        exact, noisy = (losses(one, X[test], y[test]) for one in (model, model.measured_by(judge)))
        for optimizer in optimizers:
            began, backend = time.perf_counter(), place.backend(SHOTS, seed)
            tuned = model.fine_tuned(X[new], y[new], backend, optimizer=optimizer, random_state=seed)
            report = tuned.fine_tuning_
            after = losses(tuned.measured_by(judge), X[test], y[test]) if report.kept else noisy
            found[optimizer].append((report, exact, noisy, after))
            print(
                f"{table} {n_reps} {optimizer} {seed}: exact {exact.mean():.4f} noisy {noisy.mean():.4f} tuned "
                f"{after.mean():.4f}, {report.reason} ({time.perf_counter() - began:.0f} s)",
                flush=True,
            )
    return found


def main() -> None:
    folder = os.environ.get("QMEDOID_DATA")
    if folder is None:
        sys.exit("Set QMEDOID_DATA to the folder of heart.csv, phoneme.parquet and magic.parquet.")
    warnings.simplefilter("ignore")
    lines: list[dict[str, object]] = []
    for name, n_reps, optimizers in CASES:
        device = DEVICES[name]()
        passes = generate_preset_pass_manager(optimization_level=3, backend=device, seed_transpiler=1)
        for table in TABLES:
            X, y = read(Path(folder), table)
            found = compared(Device(device, passes), table, X, y, n_reps, optimizers)
            for optimizer, runs in found.items():
                reports, exact, noisy, after = zip(*runs, strict=True)
                gains = np.concatenate(noisy) - np.concatenate(after)
                lines.append(
                    {
                        "device": name,
                        "repetitions": n_reps,
                        "table": table,
                        "optimizer": optimizer,
                        "circuits": reports[0].n_circuits,
                        "log-loss exact": f"{np.concatenate(exact).mean():.4f}",
                        "log-loss under noise": f"{np.concatenate(noisy).mean():.4f}",
                        "tuned": f"{np.concatenate(after).mean():.4f}",
                        "gain": f"{gains.mean():+.4f}",
                        "±": f"{gains.std(ddof=1) / np.sqrt(len(gains)):.4f}",
                        "kept": f"{sum(report.kept for report in reports)} of {len(reports)}",
                    }
                )
    packages = ("numpy", "qiskit", "qiskit-aer", "qiskit-ibm-runtime")
    write_table(RESULTS / "fine_tuning.csv", "python benchmarks/fine_tuning.py", lines, packages)


if __name__ == "__main__":
    main()
