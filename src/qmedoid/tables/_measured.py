"""Saved models on quantum devices: copies whose distances or circuits a backend runs, and plans of measurements."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from qmedoid.geometry.overlap import SwapTestFunction
from qmedoid.model.measuring import measured_table_model, plain_table_model, plan_measurement
from qmedoid.tables.difference import OnMismatch
from qmedoid.variational.model import ExpectationFunction

if TYPE_CHECKING:
    from qmedoid.measurement.plan import MeasurementPlan


class MeasuringMixin:
    """A saved model that can be measured."""

    model: Any

    def measured_by(
        self, swap_test: SwapTestFunction | None = None, expectations: ExpectationFunction | None = None
    ) -> Self:
        """A copy with distances, the circuit, or both run by circuits instead of by closed form and simulator.

        Parameters
        ----------
        swap_test : callable (X, Y) -> SwapTest, optional
            Measures the overlaps, for example `qmedoid.circuits.SamplerSwapTest`.
        expectations : callable, optional
            Runs the variational circuit, for example `qmedoid.circuits.SamplerExpectations`.
        """
        measured: Self = self._derived(measured_table_model(self.model, swap_test, expectations))  # type: ignore[attr-defined]
        return measured

    def measurement_plan(
        self,
        data: Any,
        backend: Any = None,
        *,
        on_mismatch: OnMismatch = "error",
        shots: int | str = 4096,
        circuit: str = "interference",
        register: str = "column",
        refine: str = "device",
        calibrate: bool = True,
        calibration: Sequence[Any] | None = None,
        n_qubits: int = 100,
        seed: int = 0,
        **settings: Any,
    ) -> "MeasurementPlan":
        """Plan the measurement of records on a quantum device; no circuit runs before `MeasurementPlan.run`.

        Parameters
        ----------
        data : data frame, Arrow table, dict of columns or array
            The records.
        backend : Device, BackendV2, BaseSamplerV2, str or None
            Where circuits run; names are ``"simulator"``, fake devices such as ``"fake_torino"``, and devices of the
            service. None is the exact simulator.
        on_mismatch : {"error", "warn"}
        shots : int or "auto"
            Measurements of each circuit; ``"auto"`` spends them where margins are small, `budget` on average.
        circuit : {"interference", "compact_swap"}
            The circuit of a test.
        register : {"column", "group", "paper"}
            One test for every column, one for every group of columns, or the paper's.
        refine : {"device", "simulated"}
            Where the trained circuit runs, if there is one: on the device after the distances, or in an exact
            simulation.
        calibrate : bool
            Whether pairs of known overlap, and known inputs of a trained circuit, run in every job, to undo what noise
            does.
        calibration : sequence of Lines, optional
            That of an earlier run, `MeasurementResult.lines`, for the expected errors.
        n_qubits : int
            Qubits that are used at most.
        seed : int
            Of transpilation, simulated measurements, known pairs and draws.
        **settings
            Others of `qmedoid.measurement.MeasurementSettings`.
        """
        plain = self._derived(plain_table_model(self.model))  # type: ignore[attr-defined]
        columns = plain._decide(data, on_mismatch)[1]
        return plan_measurement(
            self.model, columns, backend, shots=shots, circuit=circuit, register=register, refine=refine,
            calibrate=calibrate, calibration=calibration, n_qubits=n_qubits, seed=seed, **settings,
        )  # fmt: skip
