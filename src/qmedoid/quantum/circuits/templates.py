"""Template circuits as a pass manager rewrites them, each once, and where their open parameters went."""

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np
from qiskit import QuantumCircuit
from qiskit.transpiler import PassManager

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ModelError, some_of


class Template(NamedTuple):
    """A circuit that is run for many rows of angles.

    Attributes
    ----------
    circuit : QuantumCircuit
        As it is run.
    columns : ndarray
        For each of its parameters, in its own order, the place among those of the circuit that was rewritten. A pass
        manager may drop rotations that nothing measures, and their parameters with them.
    """

    circuit: QuantumCircuit
    columns: Codes

    def bound(self, angles: Array) -> Array:
        """The values of the parameters of the circuit, from rows of angles (rows, parameters before the rewriting)."""
        return np.ascontiguousarray(angles[:, self.columns])


class Templates:
    """The templates of one backend by a key that says what they are for; a pass manager runs once for each."""

    def __init__(self, pass_manager: PassManager | None) -> None:
        self.pass_manager = pass_manager
        self._made: dict[Hashable, Template] = {}

    def get(self, key: Hashable, make: Callable[[], QuantumCircuit]) -> Template:
        """The template of that key; `make` builds the circuit the first time."""
        if key not in self._made:
            self._made[key] = self._rewritten(make())
        return self._made[key]

    def _rewritten(self, circuit: QuantumCircuit) -> Template:
        places = {parameter: place for place, parameter in enumerate(circuit.parameters)}
        if self.pass_manager is None:
            return Template(circuit, np.arange(len(places)))
        rewritten = self.pass_manager.run(circuit)
        unknown = [parameter.name for parameter in rewritten.parameters if parameter not in places]
        if unknown:
            raise ModelError(
                f"The pass manager put new open parameters into the circuit, {some_of(unknown, 5)}, and nobody has "
                "values for them. Pass one that keeps the parameters, such as generate_preset_pass_manager of Qiskit."
            )
        return Template(rewritten, np.array([places[one] for one in rewritten.parameters], dtype=np.intp))
