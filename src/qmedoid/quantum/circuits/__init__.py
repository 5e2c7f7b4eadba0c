"""The package's circuits in Qiskit, and the backends that run them (algorithms 6 and 15)."""

from qmedoid.exceptions import MissingExtraError

try:
    from qmedoid.quantum.circuits.backends import (
        EstimatorExpectations,
        SamplerExpectations,
        SamplerSwapTest,
        StatevectorExpectations,
        StatevectorSwapTest,
    )
    from qmedoid.quantum.circuits.compact_swap import (
        compact_swap_angles,
        compact_swap_circuit,
        compact_swap_template,
        interference_angles,
        interference_circuit,
        interference_template,
    )
    from qmedoid.quantum.circuits.variational import variational_circuit
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "qiskit":
        raise
    raise MissingExtraError(
        "qmedoid.quantum.circuits needs Qiskit, which is not installed. Install it with: pip install "
        '"qmedoid[quantum]". '
        "qmedoid.geometry.overlap.compact_swap_test and qmedoid.kernels.statevector compute the same quantities "
        "without it.",
        name=error.name,
    ) from error

__all__ = [
    "EstimatorExpectations",
    "SamplerExpectations",
    "SamplerSwapTest",
    "StatevectorExpectations",
    "StatevectorSwapTest",
    "compact_swap_angles",
    "compact_swap_circuit",
    "compact_swap_template",
    "interference_angles",
    "interference_circuit",
    "interference_template",
    "variational_circuit",
]
