"""Simulated noisy devices for circuits of many small blocks side by side.

A hundred one-qubit tests in one circuit are too wide for a density matrix, and simulators of wide circuits draw noise
anew for every shot. But the blocks are not entangled: their outcomes are independent, and each has an exact
distribution under the device's noise, from which shots are drawn.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import ArrayLike
from qiskit import QuantumCircuit
from qiskit.primitives import (
    BaseSamplerV2,
    BitArray,
    DataBin,
    PrimitiveJob,
    PrimitiveResult,
    SamplerPub,
    SamplerPubLike,
    SamplerPubResult,
)
from qiskit.providers import BackendV2
from qiskit_aer.noise import NoiseModel

from qmedoid.arrays import Array
from qmedoid.exceptions import ParameterError, warn
from qmedoid.quantum.devices.blocks import QubitBlock, blocks_of, device_noise

_DEFAULT_SHOTS = 1024


class BlockSampler(BaseSamplerV2):
    """Sampler (V2) of a noisy device for circuits that fall into unentangled blocks of up to ten qubits.

    The outcome distribution of each block is exact under the noise model (gate errors, thermal relaxation, readout
    errors), for all rows of parameters at once. Shots are drawn from it, independently for each block.

    Circuits are transpiled for the device: their qubit i is the device's qubit i, and their gates are the device's.
    They have any number of classical registers. Measurements come last; mid-circuit measurements, resets and control
    flow are refused, as are gates that the device does not have.

    Parameters
    ----------
    backend : BackendV2 or NoiseModel
        A device, real or fake, whose noise is simulated; an ``AerSimulator`` with its noise; or Aer's noise model.
        ``NoiseModel()`` is a device without noise that has every gate.
    seed : int or numpy.random.Generator
        Source of randomness. It goes on from job to job: no two jobs repeat their noise.

    Notes
    -----
    A job reads its circuits first, which takes longer than a row of parameters: give it many rows. Its result has
    ``shots × bytes`` of every row in memory. Aer leaves out terms of an error with a probability of 1e-10 or less; here
    they count, and distributions differ by some 1e-9.

    Examples
    --------
    >>> from qiskit import QuantumCircuit
    >>> from qiskit_aer.noise import NoiseModel
    >>> from qmedoid.quantum import BlockSampler
    >>> circuit = QuantumCircuit(100)
    >>> _ = circuit.x(range(50))
    >>> circuit.measure_all()
    >>> outcomes = BlockSampler(NoiseModel(), seed=7).run([circuit], shots=3).result()[0].data.meas
    >>> outcomes.bitcount().tolist()
    [50, 50, 50]
    """

    def __init__(self, backend: BackendV2 | NoiseModel, *, seed: int | np.random.Generator) -> None:
        if seed is None:
            raise ParameterError("BlockSampler needs a 'seed': pass an int or a numpy.random.Generator.")
        self._noise = device_noise(backend)
        self._rng = np.random.default_rng(seed)

    def run(
        self, pubs: Iterable[SamplerPubLike], *, shots: int | None = None
    ) -> PrimitiveJob[PrimitiveResult[SamplerPubResult]]:
        """Start a job; circuits that cannot be simulated are refused here.

        Parameters
        ----------
        pubs : iterable of circuits or tuples (circuit, parameter_values, shots)
            As for every sampler of Qiskit.
        shots : int or None
            Shots where a pub names none. None is 1,024.

        Returns
        -------
        PrimitiveJob
            Whose ``result()`` has, for each pub, a ``BitArray`` per classical register.
        """
        coerced = [SamplerPub.coerce(pub, _DEFAULT_SHOTS if shots is None else shots) for pub in pubs]
        work = [(pub, blocks_of(pub.circuit, self._noise)) for pub in coerced]
        if not all(blocks for _, blocks in work):
            warn("A circuit measures nothing: its classical bits stay zero. Add measurements at its end.")
        # Jobs may run at the same time: each has its own generator, whatever the order in which they are done.
        rng = np.random.default_rng(self._rng.integers(2**63, size=4))
        job = PrimitiveJob(
            lambda: PrimitiveResult([_result(pub, blocks, rng) for pub, blocks in work], metadata={"version": 2})
        )
        job._submit()
        return job

    def block_probabilities(
        self, circuit: QuantumCircuit, parameter_values: ArrayLike | None = None
    ) -> list[tuple[tuple[int, ...], Array]]:
        """Exact outcome distributions of a circuit's blocks: what infinitely many shots would show.

        Parameters
        ----------
        circuit : QuantumCircuit
            As for :meth:`run`.
        parameter_values : array-like of shape (..., P) or None
            Values of the circuit's parameters, as for :meth:`run`.

        Returns
        -------
        list of (clbits, probabilities)
            For each block in the order of the device's qubits: the numbers of its classical bits in the circuit, and
            probabilities of shape (..., 2 ** len(clbits)). Bit j of an outcome's number goes to ``clbits[j]``.
        """
        pub = SamplerPub.coerce((circuit, parameter_values), 1)
        values = _values(pub)
        return [
            (block.clbits, block.probabilities(values).reshape(*pub.shape, 2 ** len(block.clbits)))
            for block in blocks_of(circuit, self._noise)
        ]


def _values(pub: SamplerPub) -> Array:
    """The rows of parameters of a pub, of shape (n, P)."""
    values = pub.parameter_values.as_array(pub.circuit.parameters)
    return np.asarray(values, dtype=float).reshape(pub.size, pub.circuit.num_parameters)


def _result(pub: SamplerPub, blocks: Sequence[QubitBlock], rng: np.random.Generator) -> SamplerPubResult:
    values, circuit = _values(pub), pub.circuit
    groups, drawn = list[tuple[int, Array]](), list[int]()
    # Blocks with the same number of bits are drawn together: the first bit of all of them, the second of all, …
    for n_bits, same in groupby(sorted(blocks, key=lambda one: len(one.clbits)), key=lambda one: len(one.clbits)):
        alike = list(same)
        probabilities = np.stack([block.probabilities(values) for block in alike], axis=1)
        groups.append((n_bits, np.cumsum(probabilities, axis=2)[:, :, :-1].transpose(0, 2, 1)))
        drawn += [bit for bits in zip(*(block.clbits for block in alike), strict=True) for bit in bits]
    # For each bit of a register, its place among the drawn bits; those not measured come after these.
    places = {circuit.clbits[bit]: place for place, bit in enumerate(drawn)}
    registers = [(one.name, [places.get(bit, len(drawn)) for bit in one]) for one in circuit.cregs]
    found = {name: np.empty((pub.size, pub.shots, -(-len(own) // 8)), dtype=np.uint8) for name, own in registers}
    bits = np.zeros((pub.shots, len(drawn) + 1), dtype=np.bool_)
    for row in range(pub.size):
        start = 0
        for n_bits, steps in groups:
            uniform = rng.random((pub.shots, steps.shape[2]))
            outcome = np.zeros(uniform.shape, dtype=np.uint8 if n_bits <= 8 else np.uint16)
            for step in steps[row]:
                outcome += uniform >= step
            for bit in range(n_bits):
                stop = start + uniform.shape[1]
                bits[:, start:stop] = outcome >> bit & 1
                start = stop
        for name, own in registers:
            found[name][row] = BitArray.from_bool_array(bits.take(own, axis=1), "little").array
    arrays = {
        name: BitArray(found[name].reshape(*pub.shape, *found[name].shape[1:]), len(own)) for name, own in registers
    }
    metadata = {"shots": pub.shots, "circuit_metadata": circuit.metadata}
    return SamplerPubResult(DataBin(**arrays, shape=pub.shape), metadata=metadata)
