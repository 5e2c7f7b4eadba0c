"""A model with its distances, its circuit, or both measured by a backend, and the plan of such a measurement."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Codes
from qmedoid.exceptions import ModelError
from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.table import TableModel
from qmedoid.variational.model import ExpectationFunction, MeasuredVariational, VariationalModel

if TYPE_CHECKING:
    from qmedoid.measurement.asking import Decide, Decided
    from qmedoid.measurement.plan import MeasurementPlan


def measured_hybrid(
    model: HybridModel, swap_test: SwapTestFunction | None, expectations: ExpectationFunction | None
) -> HybridModel:
    """A copy with distances, the circuit, or both measured by backends."""
    if swap_test is not None:
        model = replace(model, method=model.method.plain.with_swap_test(swap_test))
    if expectations is not None and model.variational is not None:
        circuit = model.variational
        circuit = circuit.model if isinstance(circuit, MeasuredVariational) else circuit
        model = replace(model, variational=MeasuredVariational(circuit, expectations))
    return model


def measured_table_model(
    model: TableModel,
    swap_test: SwapTestFunction | None = None,
    expectations: ExpectationFunction | None = None,
) -> TableModel:
    """A copy whose best model is measured by backends."""
    best: Any = model.best
    if isinstance(best, VariationalModel | MeasuredVariational):
        plain = best.model if isinstance(best, MeasuredVariational) else best
        best = plain if expectations is None else MeasuredVariational(plain, expectations)
    else:
        best = measured_hybrid(best, swap_test, expectations)
    return replace(model, models=(best, *model.models[1:]))


def plain_table_model(model: TableModel) -> TableModel:
    """A copy whose best model is in closed form, and its circuit simulated, whatever measured them."""
    best: Any = model.best
    if isinstance(best, MeasuredVariational):
        best = best.model
    elif isinstance(best, HybridModel):
        circuit = best.variational
        circuit = circuit.model if isinstance(circuit, MeasuredVariational) else circuit
        best = replace(best, method=best.method.plain, variational=circuit)
    return replace(model, models=(best, *model.models[1:]))


def decider(model: TableModel, columns: Sequence[npt.NDArray[Any]]) -> "Decide":
    """Decides about some of the records of encoded columns with the distances of any SWAP test."""
    model = plain_table_model(model)  # no circuit runs for a plan, nor again and again for errors
    if model.method is None:
        raise ModelError(
            "This model is a circuit alone, without distances: run it with measured_by(expectations=...), or fit a "
            "MedoidClassifier."
        )
    from qmedoid.measurement.asking import Decided

    decision = model.decision

    def decide(swap_test: SwapTestFunction, rows: Codes) -> "Decided":
        found = measured_table_model(model, swap_test).decide([np.asarray(column)[rows] for column in columns])
        probabilities = decision.probabilities(found.scores) if decision.probabilistic else None
        return Decided(found.codes, decision.biased(found.scores), found.margins, probabilities)

    return decide


def plan_measurement(
    model: TableModel,
    columns: Sequence[npt.NDArray[Any]],
    backend: Any = None,
    *,
    calibration: Any = None,
    n_qubits: int = 100,
    seed: int = 0,
    **settings: Any,
) -> "MeasurementPlan":
    """Plan the measurement of records from their encoded columns; see `SavedModel.measurement_plan`."""
    from qmedoid.devices import as_device
    from qmedoid.measurement import MeasurementSettings, make_plan

    chosen = MeasurementSettings(seed=seed, **settings)
    device = as_device(backend, n_qubits=n_qubits, seed=seed)
    n_records = len(columns[0]) if len(columns) else 0
    plan = make_plan(
        decider(model, columns), n_records, device, chosen, calibration=calibration, classes=model.decision.classes
    )
    if model.refinement == "none":
        return plan
    note = (
        "The trained circuit that refines decisions is simulated exactly, with measured distances as its input: only "
        "distances are measured. Run it on a device with measured_by(expectations=...)."
    )
    return replace(plan, notes=(note,))
