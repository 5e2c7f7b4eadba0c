"""The study of devices: which models are measured, by which circuits, on which simulated devices, and how often."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import product

from benchmarks.studies.cells import FRAUD_SAMPLE, Cell, StudyMethod, data_digest, load_data
from benchmarks.studies.measured import SIMULATOR, run_measured
from benchmarks.studies.runner import Study
from qmedoid.exceptions import MissingExtraError

DEVICES = "devices"
"""Name of the study, and of the part of its cells; those of a smoke run are another part."""
_QUICK = "devices, quick"
TABLES = ("heart", "breast-cancer", "wine", FRAUD_SAMPLE)
MODELS = {"default": "default", "printed": "as printed"}
"""Models that are measured: what the package does by default, and the paper's nearest medoids."""
REGISTERS = {"paper": "paper's circuit", "group": "interference", "column": "packed columns"}
"""Circuits: the compact SWAP test of a group of columns, one at a time; interference of a group; and of a column."""
BACKENDS = {SIMULATOR: "no noise", "fake_torino": "fake Torino", "fake_sherbrooke": "fake Sherbrooke"}
SHOTS = (256, 1024, 4096)
N_QUBITS = 100
_SECONDS = {"default": {"paper": 150.0, "group": 120.0, "column": 90.0}, "printed": dict.fromkeys(REGISTERS, 30.0)}
_SHARES = {"breast-cancer": 1.5, "wine": 0.7}


def method_name(model: str, register: str, backend: str) -> str:
    """The name of a method: a model, measured by a kind of circuit on a device."""
    return f"{MODELS[model]}, {REGISTERS[register]}, {BACKENDS[backend]}"


def _methods(
    shots: Sequence[int],
    repeats: Mapping[str, int],
    records: Mapping[str, int | None],
    *,
    margin_repeats: int = 0,
    share: float = 1.0,
) -> dict[str, StudyMethod]:
    """Every model, circuit and device; the wide circuits of the default model measure fewer records."""
    return {
        method_name(model, register, backend): StudyMethod(
            run_measured,
            {"model": model, "register": register, "backend": backend, "shots": list(shots),
             "repeats": repeats[register], "margin_repeats": margin_repeats if register == "column" else 0,
             "records": records[register] if model == "default" else records["printed"], "n_qubits": N_QUBITS},
            share * _SECONDS[model][register] * (0.4 if backend == SIMULATOR else 1.0),
        )
        for model, register, backend in product(MODELS, REGISTERS, BACKENDS)
    }  # fmt: skip


def _of_frauds(methods: dict[str, StudyMethod], records: int) -> dict[str, StudyMethod]:
    """The same with a limit on records for all circuits."""
    return {name: replace(method, settings={**method.settings, "records": records}) for name, method in methods.items()}


RECORDS: dict[str, int | None] = {"paper": 8, "group": 16, "column": None, "printed": 20}
"""Test records that are measured at most; None for all."""
FRAUD_RECORDS = 20
"""Of the frauds: half of them are frauds."""
REPEATS = {"paper": 3, "group": 3, "column": 3}
"""How often each number of shots is measured."""
MARGIN_REPEATS = 27
"""How often more those of packed columns, for the errors of margins alone."""
_FULL = _methods(SHOTS, REPEATS, RECORDS, margin_repeats=MARGIN_REPEATS)
_SMOKE = _methods((1024,), dict.fromkeys(REPEATS, 1), dict.fromkeys(RECORDS, 4), share=0.15)
STUDY = Study(
    {
        DEVICES: _FULL,
        f"{DEVICES}, frauds": _of_frauds(_FULL, FRAUD_RECORDS),
        _QUICK: _SMOKE,
    },
    load_data,
    data_digest,
    lambda data: _SHARES.get(data, 1.0),
    packages=("qiskit", "qiskit-aer", "qiskit-ibm-runtime"),
)


@dataclass(frozen=True)
class DevicePlan:
    """How much of the study is run; `seed` is that of the split, the fits and the noise."""

    seed: int = 0
    is_quick: bool = False

    def quick(self) -> "DevicePlan":
        """A smoke run: the wines, few records, one number of shots, one noisy device."""
        return replace(self, is_quick=True)

    @property
    def cells(self) -> list[Cell]:
        """All cells, table by table."""
        return [
            Cell(self._part(data), data, "random", self.seed, method_name(*chosen))
            for data in (("wine",) if self.is_quick else TABLES)
            for chosen in product(MODELS, REGISTERS, tuple(BACKENDS)[: 2 if self.is_quick else None])
            # The paper decides frauds by another model, of distances and a trained circuit.
            if data != FRAUD_SAMPLE or chosen[0] == "default"
        ]

    def _part(self, data: str) -> str:
        if self.is_quick:
            return _QUICK
        return f"{DEVICES}, frauds" if data == FRAUD_SAMPLE else DEVICES


def require_extras() -> None:
    """Raise where optional packages are missing that the study needs, before any work."""
    needed = {"qiskit": "ibm", "qiskit_aer": "ibm", "qiskit_ibm_runtime": "ibm"}
    missing = {module: extra for module, extra in needed.items() if find_spec(module) is None}
    if missing:
        extras = ",".join(sorted(set(missing.values())))
        raise MissingExtraError(
            f"The study of devices needs {', '.join(missing)}, which is not installed. Get it with: "
            f"pip install 'qmedoid[{extras}]'"
        )
