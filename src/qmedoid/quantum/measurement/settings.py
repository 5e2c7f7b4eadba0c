"""How a batch of records is measured."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from qmedoid.exceptions import ParameterError
from qmedoid.quantum.circuits.compact_swap import CircuitForm, FormName, form_named
from qmedoid.quantum.measurement.errors import MOST_ALLOWED, check_shots
from qmedoid.quantum.measurement.packing import Packing
from qmedoid.quantum.measurement.recorder import Register, check_register

Refine = Literal["device", "simulated"]
REFINE: tuple[Refine, ...] = ("device", "simulated")


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
        Circuits of known pairs for each shape of circuit, about; every job has at least four.
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
        check_register(self.register)
        check_shots(self.shots)
        if self.refine not in REFINE:
            allowed = " or ".join(map(repr, REFINE))
            raise ParameterError(f"The 'refine' parameter must be {allowed}. Got {self.refine!r} instead.")
        for name in ("budget", "calibration_circuits", "circuits_per_job", "draws", "seed"):
            value, least = getattr(self, name), 0 if name == "seed" else 1
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise ParameterError(f"The {name!r} parameter must be an int >= {least}. Got {value!r} instead.")
        if self.budget > MOST_ALLOWED:
            raise ParameterError(
                f"The 'budget' parameter must be at most {MOST_ALLOWED:,}. Got {self.budget!r} instead."
            )
        if not isinstance(self.calibrate, bool | np.bool_):
            raise ParameterError(f"The 'calibrate' parameter must be True or False. Got {self.calibrate!r} instead.")
        if self.calibrate and self.calibration_circuits < 6:
            raise ParameterError("A line needs at least calibration_circuits=6; or pass calibrate=False.")

    @property
    def form(self) -> CircuitForm:
        """The circuit; the paper's register has the paper's."""
        return form_named("compact_swap" if self.register == "paper" else self.circuit)

    @property
    def packing(self) -> Packing:
        """How tests become jobs."""
        known = self.calibration_circuits if self.calibrate else 0
        return Packing(int(self.circuits_per_job), known, self.register == "paper", self.seed)
