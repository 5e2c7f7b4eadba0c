"""The plan of a measurement of records, and the decisions that it replays."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import DataError, ModelError
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.methods.part import CLOSED_FORM, Backends
from qmedoid.methods.variational.model import ExpectationFunction
from qmedoid.model.model import Model
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.score_settings import ScoreSettings
from qmedoid.tables.scoring import OnProgress, TableReading, decide_batch

if TYPE_CHECKING:
    from qmedoid.quantum.measurement.plan import MeasurementPlan
    from qmedoid.quantum.measurement.recorder import Decided
    from qmedoid.quantum.measurement.trained import TrainedCircuit


class Decider:
    """Decides about some of the records of encoded columns with the distances of any SWAP test.

    Parameters
    ----------
    model : Model
    columns : sequence of ndarray
    picked : ndarray of shape (n,) or None
        Records that the trained circuit decides; None for those that measured distances pick.
    """

    def __init__(self, model: Model, columns: Sequence[npt.NDArray[Any]], picked: Flags | None = None) -> None:
        self.model = replace(model, backends=CLOSED_FORM)  # no circuit runs for a plan, nor again and again for errors
        self.columns, self.picked = [np.asarray(column) for column in columns], picked

    def __call__(
        self, swap_test: SwapTestFunction, rows: Codes, expectations: ExpectationFunction | None = None
    ) -> "Decided":
        """Decisions; without a backend the trained circuit is simulated exactly."""
        from qmedoid.quantum.measurement.recorder import Decided

        decision, measured = self.model.decision, replace(self.model, backends=Backends(swap_test, expectations))
        picked = None if self.picked is None else self.picked[rows]
        found = measured.decide([column[rows] for column in self.columns], picked=picked)
        probabilities = decision.probabilities(found.scores) if decision.probabilistic else None
        return Decided(found.codes, decision.biased(found.scores), found.margins, probabilities)


def trained_circuit(decider: Decider) -> "TrainedCircuit | None":
    """The trained circuit of a model for the records that it decides; None where it decides none."""
    from qmedoid.quantum.measurement.trained import TrainedCircuit

    circuit = decider.model.circuit
    if circuit is None or decider.picked is None or not decider.picked.any():
        return None
    network, parameters = circuit.network, circuit.parameters
    strings = network.readout.as_dict(parameters.readout).get("observables")
    names = tuple(strings or (f"class {code}" for code in range(network.readout.n_classes)))
    rows = np.flatnonzero(decider.picked)
    return TrainedCircuit(network.ansatz, parameters.rotations, network.readout.observables, names, rows, decider)


def plan_measurement(
    model: Model,
    columns: Sequence[npt.NDArray[Any]],
    backend: Any = None,
    *,
    calibration: Any = None,
    n_qubits: int = 100,
    seed: int = 0,
    **settings: Any,
) -> "MeasurementPlan":
    """Plan the measurement of records from their encoded columns; see `SavedModel.measurement_plan`."""
    from qmedoid.quantum.devices import as_device
    from qmedoid.quantum.measurement import MeasurementSettings, make_plan

    model, chosen = replace(model, backends=CLOSED_FORM), MeasurementSettings(seed=seed, **settings)
    device = as_device(backend, n_qubits=n_qubits, seed=seed)
    n_records = len(columns[0]) if len(columns) else 0
    on_device = chosen.refine == "device" and model.policy != "none"
    if model.medoids is None and not on_device:
        raise ModelError(
            "This model is a circuit alone, without distances, and refine='simulated' leaves nothing to measure: take "
            "refine='device'."
        )
    # The closed form chooses which records are asked of the circuit.
    picked = model.decide(columns).by_circuit if on_device and n_records else None
    decide = Decider(model, columns, picked)
    plan = make_plan(
        decide,
        n_records,
        device,
        chosen,
        calibration=calibration,
        classes=model.decision.classes,
        trained=trained_circuit(decide),
    )
    if model.policy == "none" or on_device:
        return plan
    note = (
        "The trained circuit that refines decisions is simulated exactly, with measured distances as its input: only "
        "distances are measured. refine='device' runs it on the device as well."
    )
    return replace(plan, notes=(note,))


MOST_RECORDS = 100_000
"""Records that are taken from a table without being asked for: more would take days of any device."""


class Records(NamedTuple):
    """Encoded columns of records, as `plan_measurement` takes them."""

    columns: Sequence[Array]
    n_rows: int

    @property
    def sha256(self) -> str:
        """Hash of what the model reads of the records."""
        return _digest(self.columns)


def read_records(
    model: Model,
    table: str,
    *,
    limit: int | None = None,
    on_mismatch: OnMismatch = "error",
    on_progress: OnProgress | None = None,
    **dialect: Any,
) -> Records:
    """The first records of a table, or all.

    Raises
    ------
    DataError
        There are none, or too many to measure.
    """
    most = MOST_RECORDS + 1 if limit is None else limit
    with TableReading(model, table, ScoreSettings(on_mismatch=on_mismatch, **dialect)) as reading:

        def take() -> list[list[Array]]:
            taken, rows = list[list[Array]](), 0
            for batch, _ in reading.batches(on_progress=on_progress):
                first = batch.slice(0, most - rows)
                taken.append(decide_batch(model, first, reading.issues)[1])
                rows += len(first)
                if rows >= most:
                    break
            return taken

        taken = reading.in_kind(take)
        reading.check()
    columns = [np.concatenate(parts) for parts in zip(*taken, strict=True)]
    n_rows = len(columns[0]) if columns else 0
    if not n_rows:
        raise DataError("The table has no rows, and there is nothing to measure.")
    if n_rows > MOST_RECORDS and limit is None:
        raise DataError(
            f"The table has more than {MOST_RECORDS:,} rows, too many to measure all: give --limit to take the first."
        )
    return Records(columns, n_rows)


def _digest(columns: Sequence[Any]) -> str:
    """Hash of encoded columns: of what the model reads of its records."""
    digest = hashlib.sha256()
    for column in columns:
        values = np.ascontiguousarray(column, dtype="<f8")
        digest.update(f"{values.shape}\n".encode() + values.tobytes())
    return digest.hexdigest()
