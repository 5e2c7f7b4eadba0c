"""Quantum circuits of a model: what they are, where they run, what they measure and how it is kept.

Everything but the documents needs the extra ``quantum``. Names are imported on first use: so the package can be
imported without Qiskit, and one place says what is missing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from qmedoid.exceptions import MissingExtraError

if TYPE_CHECKING:
    from qmedoid.quantum.circuits.backends import (
        SamplerExpectations,
        SamplerSwapTest,
        StatevectorExpectations,
        StatevectorSwapTest,
    )
    from qmedoid.quantum.circuits.compact_swap import compact_swap_circuit, interference_circuit
    from qmedoid.quantum.circuits.variational import variational_circuit
    from qmedoid.quantum.devices.device import Device, as_device
    from qmedoid.quantum.devices.simulators import BlockSampler
    from qmedoid.quantum.export import circuit_files as circuit_files
    from qmedoid.quantum.export import circuit_of_record as circuit_of_record
    from qmedoid.quantum.export import drawing, qasm_text, qpy_bytes
    from qmedoid.quantum.export import export_circuit as export_circuit
    from qmedoid.quantum.measurement.jobs import MeasurementSettings
    from qmedoid.quantum.measurement.plan import MeasurementPlan, make_plan
    from qmedoid.quantum.measurement.result import MeasurementResult
    from qmedoid.quantum.measuring import plan_measurement as plan_measurement
    from qmedoid.quantum.measuring import read_records as read_records
    from qmedoid.quantum.measuring import records_digest as records_digest
    from qmedoid.quantum.runs.files import JobFiles
    from qmedoid.quantum.runs.folder import RunFolder
    from qmedoid.quantum.runs.folder import asked_for as asked_for

_HOMES = {
    "circuits.backends": "SamplerExpectations SamplerSwapTest StatevectorExpectations StatevectorSwapTest",
    "circuits.compact_swap": "compact_swap_circuit interference_circuit",
    "circuits.variational": "variational_circuit",
    "devices.device": "Device as_device",
    "devices.simulators": "BlockSampler",
    "export": "drawing qasm_text qpy_bytes circuit_files circuit_of_record export_circuit",
    "measurement.jobs": "MeasurementSettings",
    "measurement.plan": "MeasurementPlan make_plan",
    "measurement.result": "MeasurementResult",
    "measuring": "plan_measurement read_records records_digest",
    "runs.files": "JobFiles",
    "runs.folder": "RunFolder asked_for",
}

__all__ = [
    "BlockSampler",
    "Device",
    "JobFiles",
    "MeasurementPlan",
    "MeasurementResult",
    "MeasurementSettings",
    "RunFolder",
    "SamplerExpectations",
    "SamplerSwapTest",
    "StatevectorExpectations",
    "StatevectorSwapTest",
    "as_device",
    "compact_swap_circuit",
    "drawing",
    "interference_circuit",
    "make_plan",
    "qasm_text",
    "qpy_bytes",
    "variational_circuit",
]


def __getattr__(name: str) -> Any:
    home = next((module for module, names in _HOMES.items() if name in names.split()), None)
    if home is None:
        raise AttributeError(f"module 'qmedoid.quantum' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"qmedoid.quantum.{home}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("qiskit", "qiskit_aer", "rustworkx"):
            raise
        raise MissingExtraError(
            f"qmedoid.quantum.{name} needs Qiskit and Aer, which are not both installed. Install them with: "
            'pip install "qmedoid[quantum]". qmedoid.compact_swap_test computes overlaps without them.',
            name=error.name,
        ) from error
    globals()[name] = value
    return value
