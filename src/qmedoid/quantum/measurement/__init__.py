"""From a batch of records to circuits and back: tests, packing, calibration, errors, and the plan of a run.

A model knows nothing of this: it asks a SWAP test for overlaps. What it asks is noted down in closed form, becomes a
list of distinct tests, is packed on the qubits that are there, runs in a few jobs, and is answered from the counts.
"""

from qmedoid.exceptions import MissingExtraError

try:
    from qmedoid.quantum.measurement.plan import MeasurementPlan
    from qmedoid.quantum.measurement.planning import make_plan
    from qmedoid.quantum.measurement.result import MeasurementResult
    from qmedoid.quantum.measurement.settings import MeasurementSettings
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in ("qiskit", "qiskit_aer", "rustworkx"):
        raise
    raise MissingExtraError(
        "Measurements need Qiskit and Aer, which are not both installed. Install them with: "
        'pip install "qmedoid[quantum]".',
        name=error.name,
    ) from error

__all__ = ["MeasurementPlan", "MeasurementResult", "MeasurementSettings", "make_plan"]
