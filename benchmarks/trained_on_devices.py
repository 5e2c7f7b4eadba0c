"""Trained circuits on simulated devices: what calibration by known inputs undoes, and whether stated errors are honest.

Run as ``python benchmarks/trained_on_devices.py`` (some minutes); writes ``results/trained_on_devices.csv``. Models are
fitted on half of the rows of a table, and 40 records of the other half are measured twelve times with other shot noise:
distances first where the model has any, then the trained circuit with inputs from them. Errors of values are against
the exact simulation with the same inputs, those of margins against the closed form; *z* is the deviation of the errors
of values in units of the stated ones, and is 1 where these are honest.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from _timing import RESULTS, write_table
from benchmarks.datasets import Dataset, load_breast_cancer, load_wine
from qmedoid import MedoidClassifier, VariationalClassifier
from qmedoid.quantum import Device, MeasurementResult, as_device

MODELS: dict[str, tuple[Callable[[], Dataset], slice, Callable[[], Any]]] = {
    "breast cancer, a third of the records": (
        load_breast_cancer, slice(None), lambda: MedoidClassifier(method="nearest", refine=0.3, random_state=0)),
    "wine, all records": (
        load_wine, slice(None), lambda: MedoidClassifier(method="nearest", refine="always", random_state=0)),
    "breast cancer, a circuit alone": (
        load_breast_cancer, slice(0, 4), lambda: VariationalClassifier(n_qubits=4, random_state=0)),
}  # fmt: skip
DEVICES, SHOTS, RUNS, RECORDS = ("fake_sherbrooke", "fake_torino"), (1024, 4096), 12, 40


def rms(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def measured(model: Any, rows: npt.NDArray[Any], first: Device, shots: int) -> list[MeasurementResult]:
    """Results of some runs with the same circuits."""
    found = []
    for seed in range(RUNS):
        device = Device(first.backend, seed=seed)
        device.packs = first.packs
        found.append(model.measurement_plan(rows, device, shots=shots, seed=seed).run())
    return found


def line(results: list[MeasurementResult]) -> dict[str, object]:
    plan, trained = results[0].plan, [one.trained for one in results if one.trained is not None]
    assert plan.trained is not None
    assert len(trained) == len(results)
    summary = plan.trained.summary()
    errors = [one.values - one.exact for one in trained]
    fitted = [each.fitted for one in trained for each in one.estimates if each.fitted is not None]
    undecided = [one.undecided for one in results]
    return {
        "qubits": summary["qubits"],
        "two-qubit gates": f"{summary['two_qubit_gates']:.1f}",
        "side by side": summary["side_by_side"],
        "records of the circuit": summary["records"],
        "circuits": plan.n_circuits + plan.n_calibration_circuits,
        "slope": f"{np.mean([one.slopes.mean() for one in fitted]):.3f}",
        "raw error of values": f"{rms([one.raw - one.exact for one in trained]):.4f}",
        "error of values": f"{rms(errors):.4f}",
        "z": f"{rms([error / one.errors for error, one in zip(errors, trained, strict=True)]):.3f}",
        "planned error of margins": f"{rms(plan.expected_errors.margins):.4f}",
        "stated error of margins": f"{rms([one.errors.margins for one in results]):.4f}",
        "error of margins": f"{rms([one.margin_errors for one in results]):.4f}",
        "decided as the closed form": f"{np.mean([one.kept for one in results]):.3f}",
        "undecided": f"{np.mean(undecided):.3f}",
        "of the others": f"{np.mean(np.concatenate([one.kept[~one.undecided] for one in results])):.4f}",
    }


def main() -> None:
    warnings.simplefilter("ignore")
    lines: list[dict[str, object]] = []
    for name, (load, columns, make) in MODELS.items():
        data = load()
        X, order = data.X[:, columns], np.random.default_rng(0).permutation(len(data.y))
        half = len(order) // 2
        model = make().fit(X[order[:half]], data.y[order[:half]])
        rows = X[order[half : half + RECORDS]]
        for backend in DEVICES:
            device = as_device(backend)
            for shots in SHOTS:
                found = line(measured(model, rows, device, shots))
                lines.append({"model": name, "device": backend, "shots": shots, **found})
                print(lines[-1], flush=True)
    packages = ("numpy", "qiskit", "qiskit-aer", "qiskit-ibm-runtime")
    write_table(RESULTS / "trained_on_devices.csv", "python benchmarks/trained_on_devices.py", lines, packages)


if __name__ == "__main__":
    main()
