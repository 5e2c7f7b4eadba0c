"""Which qubits and couplers of a device are used: those of bad quality are left out, the best come first."""

import json
from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from qiskit.transpiler import Target

# What an error rate counts for where a device reports none.
_UNKNOWN = 1e-3
# Operations of one qubit that turn nothing: changes of the frame, waiting and reading.
_NO_ROTATIONS = frozenset(("rz", "p", "u1", "z", "s", "sdg", "t", "tdg", "id", "delay", "measure", "reset"))


LIMITS = {"readout": 0.1, "one_qubit": 0.01, "coupler": 0.05}
"""Error rates beyond which a qubit or a coupler is not used."""


class Quality:
    """Error rates of a device's target, and what is left of it within limits.

    Parameters
    ----------
    target : Target
    limits : dict
        As `LIMITS`.
    """

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


def noise_digest(backend: Any) -> str:
    """Hash of the noise of a simulated backend: of its noise model, or of the rates and times of its target."""
    model: Any = getattr(getattr(backend, "options", None), "noise_model", None)
    if model is not None:
        # The names of errors are drawn anew for every object, and their order differs from process to process.
        known = [{key: one for key, one in error.items() if key != "id"} for error in model.to_dict()["errors"]]
    else:
        target = backend.target
        known = [
            {name: qubits, "rates": None if one is None else [one.error, one.duration]}
            for name in target.operation_names
            for qubits, one in (target[name] or {}).items()
        ]
        times = enumerate(target.qubit_properties or ())
        known += [{"qubit": qubit, "times": None if one is None else [one.t1, one.t2]} for qubit, one in times]
    lines = sorted(json.dumps(one, sort_keys=True, default=_plain) for one in known)
    return sha256("\n".join(lines).encode()).hexdigest()


def _plain(value: Any) -> str:
    """Matrices by their bytes, and anything else that JSON lacks by its text."""
    return value.tobytes().hex() if isinstance(value, np.ndarray) else str(value)


def _error(properties: Any) -> float:
    """An error rate; a gate that a device calls broken, or whose rate is no number, counts as wrong always."""
    error = _UNKNOWN if properties is None or properties.error is None else float(properties.error)
    return error if np.isfinite(error) else 1.0
