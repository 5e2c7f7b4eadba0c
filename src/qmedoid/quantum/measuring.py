"""The measurement of a model's records: which circuit decides which of them, and the decisions that a plan replays."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ModelError
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.methods.part import CLOSED_FORM, Backends
from qmedoid.methods.variational.model import ExpectationFunction
from qmedoid.model.model import Model
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.measurement.jobs import MeasurementSettings
from qmedoid.quantum.measurement.plan import MeasurementPlan, make_plan
from qmedoid.quantum.measurement.recorder import Decided
from qmedoid.quantum.measurement.trained import TrainedCircuit
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import OnProgress, TableReading, decide_batch, read_through

MOST_RECORDS = 100_000
"""Records that are taken from a table without being asked for: more would take days of any device."""


def plan_measurement(
    model: Model, columns: Sequence[npt.NDArray[Any]], device: Device, settings: MeasurementSettings
) -> MeasurementPlan:
    """Plan the measurement of records from their encoded columns; see `SavedModel.measurement_plan`."""
    model = replace(model, backends=CLOSED_FORM)  # no circuit runs for a plan, nor again and again for errors
    columns = [np.asarray(column) for column in columns]
    if not columns or not len(columns[0]):
        raise DataError("There are no records to measure: pass at least one row.")
    decision = model.decision
    on_device = settings.refine == "device" and model.policy != "none"
    if model.medoids is None and not on_device:
        raise ModelError(
            "This model is a circuit alone, without distances, and refine='simulated' leaves nothing to measure: take "
            "refine='device'."
        )
    # The closed form chooses which records are asked of the circuit.
    picked = model.decide(columns).by_circuit if on_device else None

    def decide(swap_test: SwapTestFunction, expectations: ExpectationFunction | None = None) -> Decided:
        found = replace(model, backends=Backends(swap_test, expectations)).decide(columns, picked=picked)
        probabilities = decision.probabilities(found.scores) if decision.probabilistic else None
        return Decided(found.codes, decision.biased(found.scores), found.margins, probabilities)

    trained = None
    if picked is not None and picked.any():
        assert model.circuit is not None, "a circuit decides records"
        network, parameters = model.circuit.network, model.circuit.parameters
        strings = network.readout.as_dict(parameters.readout).get("observables")
        names = tuple(strings or (f"class {code}" for code in range(network.readout.n_classes)))
        observables, rows = network.readout.observables, np.flatnonzero(picked)
        trained = TrainedCircuit(network.ansatz, parameters.rotations, observables, names, rows)
    plan = make_plan(decide, device, settings, classes=decision.classes, trained=trained)
    if model.policy == "none" or on_device:
        return plan
    note = (
        "The trained circuit that refines decisions is simulated exactly, with measured distances as its input: only "
        "distances are measured. refine='device' runs it on the device as well."
    )
    return replace(plan, notes=(*plan.notes, note))


def read_records(
    model: Model,
    table: str,
    *,
    limit: int | None = None,
    on_mismatch: OnMismatch = "error",
    on_progress: OnProgress | None = None,
    **dialect: Any,
) -> list[Array]:
    """Encoded columns of the first records of a table, or of all, as `plan_measurement` takes them.

    Raises
    ------
    DataError
        There are none, or too many to measure.
    """
    most = MOST_RECORDS + 1 if limit is None else limit

    def take(reading: TableReading) -> list[list[Array]]:
        taken, rows = list[list[Array]](), 0
        for batch, _ in reading.batches(on_progress=on_progress):
            first = batch.slice(0, most - rows)
            taken.append(decide_batch(model, first, reading.issues)[1])
            rows += len(first)
            if rows >= most:
                break
        return taken

    taken, _ = read_through(model, table, ScoreSettings(on_mismatch=on_mismatch, **dialect), take)
    columns = [np.concatenate(parts) for parts in zip(*taken, strict=True)]
    if not columns or not len(columns[0]):
        raise DataError("The table has no rows, and there is nothing to measure.")
    if len(columns[0]) > MOST_RECORDS and limit is None:
        raise DataError(
            f"The table has more than {MOST_RECORDS:,} rows, too many to measure all: give --limit to take the first."
        )
    return columns


def records_digest(columns: Sequence[Array]) -> str:
    """Hash of encoded columns: of what the model reads of its records."""
    digest = hashlib.sha256()
    for column in columns:
        values = np.ascontiguousarray(column, dtype="<f8")
        digest.update(f"{values.shape}\n".encode() + values.tobytes())
    return digest.hexdigest()
