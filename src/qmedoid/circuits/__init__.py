"""The compact SWAP test as a Qiskit circuit, and the backends that run it (algorithm 6)."""

from qmedoid.exceptions import MissingExtraError

try:
    from qmedoid.circuits.backends import SamplerSwapTest, StatevectorSwapTest
    from qmedoid.circuits.compact_swap import compact_swap_angles, compact_swap_circuit, compact_swap_template
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "qiskit":
        raise
    raise MissingExtraError(
        'qmedoid.circuits needs Qiskit, which is not installed. Install it with: pip install "qmedoid[quantum]". '
        "qmedoid.geometry.overlap.compact_swap_test computes the same quantities without it.",
        name=error.name,
    ) from error

__all__ = [
    "SamplerSwapTest",
    "StatevectorSwapTest",
    "compact_swap_angles",
    "compact_swap_circuit",
    "compact_swap_template",
]
