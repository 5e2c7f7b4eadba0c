"""How a batch of records is measured."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from qmedoid.exceptions import ParameterError
from qmedoid.quantum.circuits.compact_swap import CircuitForm, FormName, form_named
from qmedoid.quantum.measurement.recorder import REGISTERS, Register

Refine = Literal["device", "simulated"]
REFINE: tuple[Refine, ...] = ("device", "simulated")
MOST_ALLOWED = 1_000_000
"""Shots of a circuit that are taken at most: a job of a simulator has a bit of every shot and qubit in memory."""
_LEAST = {"shots": 1, "budget": 1, "calibration_circuits": 6, "circuits_per_job": 1, "draws": 1, "seed": 0}


@dataclass(frozen=True, kw_only=True)
class MeasurementSettings:
    """How a batch of records is measured.

    Parameters
    ----------
    circuit : {"interference", "compact_swap"}
        The circuit of a test.
    register : {"column", "group", "paper"}
        ``"column"`` is one test for every column, a single qubit, many side by side. ``"group"`` is one test for all
        columns of a group, in a register of several qubits, as many side by side as fit. ``"paper"`` is the compact
        SWAP test of a group, one in each circuit.
    shots : int or "auto"
        Measurements of each circuit. ``"auto"`` chooses them by margins: more where they are small.
    budget : int
        Mean shots of a circuit that ``"auto"`` keeps to, without those of known pairs: all together have no more shots
        than with so many for each.
    calibrate : bool
        Whether pairs of known overlap run in every job, to undo what noise does to overlaps.
    calibration_circuits : int
        Circuits of known pairs for each shape of circuit, about, at least 6; every job has at least four.
    circuits_per_job : int
        Circuits that are sent at once, without those of known pairs.
    refine : {"device", "simulated"}
        Where the trained circuit of a model runs that refines decisions or is the whole model: on the device as well,
        or in an exact simulation, with measured distances as its input.
    draws : int
        Decisions with overlaps drawn within their errors that errors of margins come from.
    seed : int
        Of these draws and of the choice of known pairs.
    """

    circuit: FormName = "interference"
    register: Register = "column"
    shots: int | Literal["auto"] = 4096
    budget: int = 4096
    calibrate: bool = True
    calibration_circuits: int = 32
    circuits_per_job: int = 100
    refine: Refine = "device"
    draws: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        form_named(self.circuit)
        allowed: dict[str, tuple[object, ...]] = {"register": REGISTERS, "refine": REFINE, "calibrate": (True, False)}
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ParameterError(
                    f"The {name!r} parameter must be one of {', '.join(map(repr, values))}. "
                    f"Got {getattr(self, name)!r} instead."
                )
        for name, least in _LEAST.items():
            value, most = getattr(self, name), MOST_ALLOWED if name in ("shots", "budget") else np.inf
            is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not (is_int and least <= value <= most) and (name, value) != ("shots", "auto"):
                limit = f">= {least}" if most == np.inf else f"from {least} to {most:,}"
                other = ", or 'auto'" if name == "shots" else ""
                raise ParameterError(f"The {name!r} parameter must be an int {limit}{other}. Got {value!r} instead.")

    @property
    def form(self) -> CircuitForm:
        """The circuit; the paper's register has the paper's."""
        return form_named("compact_swap" if self.register == "paper" else self.circuit)
