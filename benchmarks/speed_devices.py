"""A thousand records on a noisy device of a hundred qubits, beside a plain loop over samplers, circuit by circuit.

Run as ``python benchmarks/speed_devices.py`` (some minutes). All rows of heart disease and breast cancer are measured
on the fake device Torino with the noise of Aer's model of it: packed columns, calibrated, by models that are fitted on
75 % of the rows. ``plan`` finds the circuits, ``jobs`` are what a device would do, ``decisions`` fit the calibration,
decide, and state errors. The loops send some of the same circuits one by one, and are scaled up to all of them: the
note says from how many. Aer runs them as matrix product states; left to itself, as by ``BackendSamplerV2`` of the fake
device, it takes a statevector for such circuits, and a hundred qubits do not fit.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from qiskit_aer import AerSimulator
from qiskit_aer.primitives import SamplerV2

from _timing import RESULTS, write_table
from benchmarks.studies.cells import hold_out, load_data
from qmedoid import MedoidClassifier
from qmedoid.quantum import BlockSampler, Device, MeasurementPlan, as_device
from qmedoid.quantum.devices.blocks import device_noise
from qmedoid.quantum.devices.sampling import CircuitBatch
from qmedoid.quantum.measurement.jobs import run_jobs

TABLES = ("heart", "breast-cancer")


class Clock:
    """Core and wall seconds since it was made, or since it was last read."""

    def __init__(self) -> None:
        self.read()

    def read(self) -> tuple[float, float]:
        """Core and wall seconds."""
        now = time.process_time(), time.perf_counter()
        before, self.begun = getattr(self, "begun", now), now
        return now[0] - before[0], now[1] - before[1]


def measured(name: str, device: Device, shots: int) -> tuple[MeasurementPlan, list[dict[str, object]]]:
    """The plan of all rows of a table, and what its steps take."""
    data = load_data(name)
    rest, _ = hold_out(data.y, 0)
    model = MedoidClassifier(random_state=0).fit(data.X[rest], data.y[rest])
    clock, rows = Clock(), []
    plan = model.measurement_plan(data.X, device, shots=shots)
    total = plan.n_circuits + plan.n_calibration_circuits

    def add(step: str, seconds: tuple[float, float], note: str = "") -> None:
        rows.append(row(plan, f"qmedoid: {step}", total, seconds, note))

    spent = [clock.read()]
    add("plan", spent[0])
    counts = run_jobs(plan.jobs, device)
    spent.append(clock.read())
    add("jobs", spent[1], f"{len(plan.jobs)} jobs")
    result = plan.read_out(counts)
    spent.append(clock.read())
    add("decisions", spent[2], f"{100 * result.kept.mean():.2f} % as the closed form")
    add("all", (sum(core for core, _ in spent), sum(wall for _, wall in spent)))
    return plan, [{"table": data.name, **one} for one in rows]


def row(
    plan: MeasurementPlan, method: str, total: int, seconds: tuple[float, float], note: str = ""
) -> dict[str, object]:
    core, wall = seconds
    return {
        "records": plan.n_records,
        "shots": plan.settings.shots,
        "circuits": total,
        "method": method,
        "core seconds": core,
        "wall seconds": wall,
        "core ms per circuit": 1e3 * core / total,
        "wall ms per circuit": 1e3 * wall / total,
        "note": note,
    }


def looped(batches: list[CircuitBatch], sampler: Any, count: int) -> tuple[float, float]:
    """Seconds of some circuits, each sent by its own call of ``run``."""
    pubs = [(circuit, values[[place]], shots) for circuit, values, shots in (one.pub for one in batches)
            for place in range(len(values))]  # fmt: skip
    clock = Clock()
    for pub in pubs[:count]:
        sampler.run([pub]).result()
    return clock.read()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shots", type=int, default=1024)
    parser.add_argument("--circuits", type=int, default=3, help="circuits of the loops over Aer")
    arguments = parser.parse_args()
    device = as_device("fake_torino", seed=0)
    # Both find the noise of the device first, once: seconds that are the same for all.
    simulator = AerSimulator(method="matrix_product_state", noise_model=device_noise(device.backend).model)
    loops: list[tuple[str, Callable[[], Any], int]] = [
        ("loop: qmedoid's sampler", lambda: BlockSampler(device.backend, seed=1), 100),
        ("loop: Aer's SamplerV2, matrix product state", lambda: SamplerV2.from_backend(simulator, seed=1),
         arguments.circuits),
    ]  # fmt: skip
    rows: list[dict[str, object]] = []
    for name in TABLES:
        plan, found = measured(name, device, arguments.shots)
        total = plan.n_circuits + plan.n_calibration_circuits
        batches = [batch for job in plan.jobs for batch in job.batches]
        for method, make, count in loops:
            count = min(count, total)
            core, wall = np.array(looped(batches, make(), count)) * total / count
            note = f"scaled from {count} circuits"
            found.append({"table": found[0]["table"], **row(plan, method, total, (float(core), float(wall)), note)})
        for one in found:
            print({key: one[key] for key in ("table", "method", "wall seconds")}, flush=True)
        rows += found
    command = f"python benchmarks/speed_devices.py --shots {arguments.shots}"
    packages = ("numpy", "qiskit", "qiskit-aer", "qiskit-ibm-runtime")
    write_table(RESULTS / "speed_devices.csv", command, rows, packages)


if __name__ == "__main__":
    main()
