"""A noisy device of a hundred qubits, simulated block by block, beside a plain loop over Aer's sampler.

Run as ``python benchmarks/speed_sampler.py`` (some minutes). A circuit has 100 one-qubit tests side by side on the fake
device Torino, or 20 blocks of four qubits, and is run at 1,024 shots for many rows of angles. Aer simulates wide
circuits with noise as matrix product states, shot by shot; it does a few of the circuits. ``error`` is the root mean
square of the z-scores of the counted ones against the exact probabilities, which is 1 for exact simulation.
"""

import argparse
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from qiskit import QuantumCircuit
from qiskit.circuit import ParameterVector
from qiskit.primitives import BaseSamplerV2, BitArray
from qiskit.transpiler import generate_preset_pass_manager
from qiskit_aer import AerSimulator
from qiskit_aer.primitives import SamplerV2
from qiskit_ibm_runtime.fake_provider import FakeTorino

from _timing import RESULTS, core_seconds, write_table
from qmedoid.quantum import BlockSampler
from qmedoid.quantum.devices.blocks import device_noise

SHOTS, N_TESTS, N_BLOCKS, WIDTH = 1024, 100, 20, 4

Numbers = npt.NDArray[np.float64]


def one_qubit_tests(backend: FakeTorino) -> QuantumCircuit:
    angles = ParameterVector("angles", N_TESTS)
    circuit = QuantumCircuit(N_TESTS)
    for qubit, angle in enumerate(angles):
        circuit.ry(angle, qubit)
        circuit.h(qubit)
    circuit.measure_all()
    return transpiled(circuit, backend, list(range(N_TESTS)))


def four_qubit_blocks(backend: FakeTorino) -> QuantumCircuit:
    places = list(chains(backend))[:N_BLOCKS]
    angles = ParameterVector("angles", 2 * WIDTH * N_BLOCKS)
    circuit = QuantumCircuit(WIDTH * N_BLOCKS, N_BLOCKS)
    for block in range(N_BLOCKS):
        qubits = range(WIDTH * block, WIDTH * (block + 1))
        for layer in range(2):
            for qubit in qubits:
                circuit.ry(angles[layer * WIDTH * N_BLOCKS + qubit], qubit)
            for first, second in pairwise(qubits):
                circuit.cx(first, second)
        circuit.h(qubits[-1])
        circuit.measure(qubits[-1], block)
    return transpiled(circuit, backend, [qubit for place in places for qubit in place])


def chains(backend: FakeTorino) -> Iterator[list[int]]:
    """Chains of neighbors that share no qubit."""
    free = set(range(backend.num_qubits))
    for start in range(backend.num_qubits):
        chain = [start]
        while len(chain) < WIDTH and (ways := {*backend.coupling_map.neighbors(chain[-1])} & free - {*chain}):
            chain.append(min(ways))
        if len(chain) == WIDTH and start in free:
            free -= {*chain}
            yield chain


def transpiled(circuit: QuantumCircuit, backend: FakeTorino, layout: list[int]) -> QuantumCircuit:
    return generate_preset_pass_manager(1, backend, initial_layout=layout, seed_transpiler=1).run(circuit)


def outcomes(sampler: BaseSamplerV2, circuit: QuantumCircuit, values: Numbers, *, loop: bool) -> list[BitArray]:
    """Shots of all rows, in one job or in a job each."""
    register = circuit.cregs[0].name
    jobs = [values[[row]] for row in range(len(values))] if loop else [values]
    return [sampler.run([(circuit, rows)], shots=SHOTS).result()[0].data[register] for rows in jobs]


def error(measured: list[BitArray], exact: Numbers) -> float:
    n_bits = measured[0].num_bits
    bits = np.concatenate([np.unpackbits(part.array, axis=2)[:, :, -n_bits:] for part in measured])
    means = bits[:, :, ::-1].mean(axis=1)
    exact = exact[: len(means)]
    return float(np.sqrt(np.mean((means - exact) ** 2 / (exact * (1 - exact) / SHOTS))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--circuits", type=int, default=200)
    parser.add_argument("--aer-circuits", type=int, default=3, help="circuits that Aer runs")
    arguments = parser.parse_args()
    backend = FakeTorino()
    noise = device_noise(backend).model
    rows: list[dict[str, object]] = []
    for name, circuit in (
        ("100 one-qubit tests", one_qubit_tests(backend)),
        ("20 blocks of four qubits", four_qubit_blocks(backend)),
    ):
        values = np.random.default_rng(1).uniform(0, np.pi, (arguments.circuits, circuit.num_parameters))
        ours = BlockSampler(backend, seed=1)
        blocks = sorted(ours.block_probabilities(circuit, values), key=lambda block: block[0])
        exact = np.column_stack([probabilities[:, 1] for _, probabilities in blocks])
        simulator = AerSimulator(method="matrix_product_state", noise_model=noise)
        aer = SamplerV2.from_backend(simulator, seed=1)
        for method, sampler, count, loop in (
            ("qmedoid, one job", ours, len(values), False),
            ("qmedoid, a job per circuit", ours, len(values), True),
            ("Aer matrix product state, a job per circuit", aer, arguments.aer_circuits, True),
            ("Aer matrix product state, one job", aer, arguments.aer_circuits, False),
        ):
            timing = core_seconds(
                lambda s=sampler, c=circuit, v=values[:count], each=loop: outcomes(s, c, v, loop=each),
                repeats=3 if sampler is ours else 1,
            )
            rows.append(
                {
                    "circuit": name,
                    "method": method,
                    "circuits": count,
                    "core ms per circuit": 1e3 * timing.core / count,
                    "wall ms per circuit": 1e3 * timing.wall / count,
                    "error": error(timing.result, exact),
                }
            )
    command = f"python benchmarks/speed_sampler.py --circuits {arguments.circuits}"
    write_table(RESULTS / "speed_sampler.csv", command, rows, ("numpy", "qiskit", "qiskit-aer", "qiskit-ibm-runtime"))


if __name__ == "__main__":
    main()
