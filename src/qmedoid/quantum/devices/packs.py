"""Copies of one small circuit side by side on a device's qubits: transpiled once, placed by error rates.

Qubits and couplers of bad quality are left out, and the best come first.
"""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import islice
from math import prod
from typing import Any

import numpy as np
import rustworkx
from qiskit import ClassicalRegister, QuantumCircuit, qpy
from qiskit.circuit import ParameterVector
from qiskit.transpiler import Target, TranspilerError, generate_preset_pass_manager

from qmedoid.arrays import Array, Codes
from qmedoid.quantum.circuits.compact_swap import OUTCOME

_ATTEMPTS = 10
# Places that are looked at for a circuit of several qubits; a line of six has some thousands on a device of 130.
_MOST_PLACES = 20_000


# What an error rate counts for where a device reports none.
_UNKNOWN = 1e-3
# Operations of one qubit that turn nothing: changes of the frame, waiting and reading.
_NO_ROTATIONS = frozenset(("rz", "p", "u1", "z", "s", "sdg", "t", "tdg", "id", "delay", "measure", "reset"))


LIMITS = {"readout": 0.1, "one_qubit": 0.01, "coupler": 0.05}
"""Error rates beyond which a qubit or a coupler is not used."""


class Quality:
    """Error rates of a device's target, and what is left of it within limits such as `LIMITS`."""

    def __init__(self, target: Target, limits: Mapping[str, float]) -> None:
        self.target, self.limits = target, limits

    @cached_property
    def readout(self) -> dict[int, float]:
        """Error of reading each qubit."""
        return self._one_qubit_errors(("measure",))

    @cached_property
    def gate(self) -> dict[int, float]:
        """Error of the worst rotation of each qubit, whatever the device calls it; frame changes have none."""
        operations = zip(self.target.operation_names, self.target.operations, strict=True)
        return self._one_qubit_errors(
            [name for name, one in operations if name not in _NO_ROTATIONS and getattr(one, "num_qubits", 0) == 1]
        )

    @cached_property
    def couplers(self) -> dict[tuple[int, int], float]:
        """Least error of a gate between two qubits, whatever its direction, of those within the limits."""
        found: dict[tuple[int, int], float] = {}
        for name in self.target.operation_names:
            for qubits, properties in (self.target[name] or {}).items():
                if qubits is not None and len(qubits) == 2:
                    pair, error = (min(qubits), max(qubits)), _error(properties)
                    found[pair] = min(error, found.get(pair, 1.0))
        usable = set(self.qubits)
        return {p: e for p, e in found.items() if e <= self.limits["coupler"] and usable.issuperset(p)}

    @cached_property
    def qubits(self) -> tuple[int, ...]:
        """Qubits within the limits, the best to read first."""
        usable = [
            qubit
            for qubit in range(self.target.num_qubits or 0)
            if self.readout.get(qubit, 1.0) <= self.limits["readout"]
            and self.gate.get(qubit, 1.0) <= self.limits["one_qubit"]
        ]
        return tuple(sorted(usable, key=lambda qubit: (self.readout[qubit] + 2.0 * self.gate[qubit], qubit)))

    def _one_qubit_errors(self, names: Any) -> dict[int, float]:
        errors: dict[int, float] = {}
        for name in names:
            for qubits, properties in (self.target[name] or {}).items():
                if qubits is None:  # the same for all qubits
                    errors.update(dict.fromkeys(range(self.target.num_qubits or 0), 0.0))
                else:
                    errors[qubits[0]] = max(_error(properties), errors.get(qubits[0], 0.0))
        return errors

    def reduced(self) -> Target:
        """The target of the usable qubits and couplers alone, numbered anew."""
        place = {qubit: number for number, qubit in enumerate(sorted(self.qubits))}
        small = Target(num_qubits=len(place), dt=self.target.dt)
        for name in self.target.operation_names:
            operation, where = self.target.operation_from_name(name), self.target[name] or {}
            if isinstance(operation, type):  # control flow, which no circuit of ours has
                continue
            properties = {}
            for qubits, known in where.items():
                if qubits is None or not place.keys() >= set(qubits):
                    continue
                if len(qubits) == 2 and (min(qubits), max(qubits)) not in self.couplers:
                    continue
                properties[tuple(place[qubit] for qubit in qubits)] = known
            if properties:
                small.add_instruction(operation, properties)
        return small


def _error(properties: Any) -> float:
    """An error rate; a gate that a device calls broken, or whose rate is no number, counts as wrong always."""
    error = _UNKNOWN if properties is None or properties.error is None else float(properties.error)
    return error if np.isfinite(error) else 1.0


@dataclass(frozen=True, eq=False)
class Pack:
    """Several copies of a circuit in one, with open angles."""

    circuit: QuantumCircuit  # copy i is measured into the bits from i · n_bits on of ``outcome``
    n_copies: int
    n_angles: int  # open angles of each copy
    order: Codes  # which angle, copy by copy, each parameter of the circuit is
    qubits: tuple[tuple[int, ...], ...] = ()  # of each copy; empty where there is no device
    shrink: Array = field(default_factory=lambda: np.ones(0))  # of an overlap, what noise leaves, about, (n_copies,)
    n_bits: int = 1  # that each copy is measured into

    @cached_property
    def two_qubit_gates(self) -> int:
        """Gates between qubits, of all copies together."""
        return int(self.circuit.num_nonlocal_gates())

    @cached_property
    def depth(self) -> int:
        """Depth of the circuit, measurements included."""
        return int(self.circuit.depth())

    @cached_property
    def sha256(self) -> str:
        """Hash of the gates in their order, with the qubits and bits that they are on: the same in every process."""
        digest, place = sha256(), self.circuit.find_bit
        for one in self.circuit.data:
            where = [place(bit).index for bit in (*one.qubits, *one.clbits)]
            angles = [str(angle) for angle in one.operation.params]
            digest.update(f"{one.operation.name} {where} {angles}\n".encode())
        return digest.hexdigest()


def packed(
    template: QuantumCircuit, n_copies: int, quality: Quality | None, routes: Sequence[QuantumCircuit], *, seed: int
) -> Pack | None:
    """As many copies as are asked for or fit on the usable qubits, rewritten for the device; None if not one fits.

    Without a quality every pair of qubits is coupled, as in simulators, and nothing is rewritten. Routes are the
    circuit in gates between coupled qubits, the cheapest first; the first that has a place is taken.
    """
    places, shrink = list[tuple[int, ...]](), np.ones(n_copies)
    if quality is None:
        circuit, vectors = _side_by_side(template, n_copies, template.name)
    else:
        for route in routes:
            places = list(islice(_disjoint_places(route, quality), n_copies))
            if places:
                break
        else:
            return None
        circuit, vectors = _side_by_side(route, len(places), template.name)
        manager = generate_preset_pass_manager(
            optimization_level=1,
            target=quality.target,
            seed_transpiler=seed,
            initial_layout=[qubit for place in places for qubit in place],
        )
        circuit = manager.run(circuit)
        # About how much of an overlap is left: an error of reading turns it over, one of a gate forgets it.
        left = (
            prod(1.0 - (2.0 if is_reading else 1.0) * error for is_reading, error in _errors(route, place, quality))
            for place in places
        )
        shrink = np.maximum(np.fromiter(left, dtype=np.float64), 0.01)
    number = {parameter: place for place, parameter in enumerate(p for vector in vectors for p in vector)}
    order = np.array([number[parameter] for parameter in circuit.parameters], dtype=np.intp)
    return Pack(circuit, len(vectors), template.num_parameters, order, tuple(places), shrink, template.num_clbits)


def routed(template: QuantumCircuit, quality: Quality, *, seed: int) -> list[QuantumCircuit]:
    """The circuit in gates between coupled qubits, on the qubits that it needs alone; the cheapest attempt first.

    Half of the attempts look at the usable part of the device, half at all of it: a good way there may have a place
    among the usable ones as well.
    """
    if template.num_qubits == 1:
        return [template]
    attempts = []
    for target in (quality.target, quality.reduced()):
        if (target.num_qubits or 0) >= template.num_qubits:
            for attempt in range(_ATTEMPTS):
                manager = generate_preset_pass_manager(
                    optimization_level=3, target=target, seed_transpiler=seed + attempt
                )
                try:
                    attempts.append(_on_its_qubits(manager.run(template)))
                except TranspilerError:  # no part of coupled qubits is large enough
                    break
    return sorted(attempts, key=lambda circuit: (circuit.num_nonlocal_gates(), circuit.depth()))


def _on_its_qubits(circuit: QuantumCircuit) -> QuantumCircuit:
    """A circuit without the qubits that it does not use."""
    used = sorted({circuit.find_bit(qubit).index for one in circuit.data for qubit in one.qubits})
    place = {qubit: number for number, qubit in enumerate(used)}
    small = QuantumCircuit(len(used), name=circuit.name)
    small.add_register(ClassicalRegister(circuit.num_clbits, OUTCOME))
    for one in circuit.data:
        qubits = [place[circuit.find_bit(qubit).index] for qubit in one.qubits]
        small.append(one.operation, qubits, [circuit.find_bit(bit).index for bit in one.clbits])
    return small


def _disjoint_places(circuit: QuantumCircuit, quality: Quality) -> Iterator[tuple[int, ...]]:
    """Places for copies of a routed circuit that share no qubit, those of the least error first."""
    if circuit.num_qubits == 1:
        yield from ((qubit,) for qubit in quality.qubits)
        return
    # About how often a copy at a place errs: the sum of the errors of its gates and of its reading.
    scored = sorted(
        (sum(error for _, error in _errors(circuit, place, quality)), place) for place in _places(circuit, quality)
    )
    taken: set[int] = set()
    for _, place in scored:
        if taken.isdisjoint(place):
            taken.update(place)
            yield place


def _places(circuit: QuantumCircuit, quality: Quality) -> Iterator[tuple[int, ...]]:
    """Qubits of the device for each qubit of a routed circuit, so that all its gates are between coupled qubits."""
    pattern: rustworkx.PyGraph = rustworkx.PyGraph()
    pattern.add_nodes_from(range(circuit.num_qubits))
    qubits = [sorted(circuit.find_bit(qubit).index for qubit in one.qubits) for one in circuit.data]
    pattern.add_edges_from_no_data(sorted({(pair[0], pair[1]) for pair in qubits if len(pair) == 2}))
    device: rustworkx.PyGraph = rustworkx.PyGraph()
    device.add_nodes_from(range(quality.target.num_qubits or 0))
    device.add_edges_from_no_data(sorted(quality.couplers))
    found = rustworkx.graph_vf2_mapping(device, pattern, subgraph=True, induced=False, id_order=False)
    for mapping in islice(found, _MOST_PLACES):
        of_pattern = {number: qubit for qubit, number in mapping.items()}
        yield tuple(of_pattern[number] for number in range(circuit.num_qubits))


def _errors(circuit: QuantumCircuit, place: tuple[int, ...], quality: Quality) -> Iterator[tuple[bool, float]]:
    """Whether it is that of a reading, and how large it is, for every error of a copy at a place."""
    for one in circuit.data:
        qubits = [place[circuit.find_bit(qubit).index] for qubit in one.qubits]
        if one.operation.name == "measure":
            yield True, quality.readout[qubits[0]]
        elif len(qubits) == 2:
            yield False, quality.couplers[min(qubits), max(qubits)]
        elif one.operation.name != "rz":
            yield False, quality.gate[qubits[0]]


def _side_by_side(block: QuantumCircuit, n_copies: int, name: str) -> tuple[QuantumCircuit, list[ParameterVector]]:
    """Copies of a measured block in one circuit, and the angles of each."""
    width, n_bits = block.num_qubits, block.num_clbits
    circuit = QuantumCircuit(n_copies * width, name=f"{n_copies} x {name}")
    circuit.add_register(ClassicalRegister(n_copies * n_bits, OUTCOME))
    vectors = [ParameterVector(f"theta_{copy}", block.num_parameters) for copy in range(n_copies)]
    for copy, vector in enumerate(vectors):
        own = block.assign_parameters(dict(zip(block.parameters, vector, strict=True)))
        bits = range(copy * n_bits, (copy + 1) * n_bits)
        circuit.compose(own, range(copy * width, (copy + 1) * width), bits, inplace=True)
    return circuit, vectors


_MAGIC = b"QISKIT"
# From this version on a parameter expression is a list of operations; before, it is a text that is evaluated.
_LEAST_VERSION = 13
_SIZES = ("n_copies", "n_angles", "n_bits")


def pack_to_bytes(pack: Pack) -> bytes:
    """A packed circuit in QPY, with everything else in its metadata."""
    circuit, out = pack.circuit.copy(), io.BytesIO()
    circuit.metadata = {name: getattr(pack, name) for name in ("qubits", *_SIZES)}
    circuit.metadata |= {"order": pack.order.tolist(), "shrink": pack.shrink.tolist()}
    qpy.dump(circuit, out)
    return out.getvalue()


def pack_from_bytes(content: bytes) -> Pack:
    """The packed circuit that was written; reading it runs no code. Other bytes raise a ValueError."""
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC)] < _LEAST_VERSION:
        raise ValueError("it holds no circuit in QPY of a version that can be read")
    try:
        (circuit,) = qpy.load(io.BytesIO(content))
        head, circuit.metadata = circuit.metadata, {}
        order, qubits = np.array(head["order"], dtype=np.intp), tuple(tuple(map(int, one)) for one in head["qubits"])
        sizes = {name: int(head[name]) for name in _SIZES}
        return Pack(circuit, order=order, qubits=qubits, shrink=np.array(head["shrink"], dtype=np.float64), **sizes)
    except Exception as error:  # whatever bytes make Qiskit raise
        raise ValueError(f"its circuit cannot be read ({type(error).__name__}: {error})") from error
