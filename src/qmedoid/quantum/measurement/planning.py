"""From a model and records to a plan: what is asked for in closed form becomes tests, circuits and jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.quantum.devices.device import Device
from qmedoid.quantum.devices.packs import Pack
from qmedoid.quantum.measurement.calibration import Lines
from qmedoid.quantum.measurement.errors import shots_for
from qmedoid.quantum.measurement.packing import make_jobs, shapes_of
from qmedoid.quantum.measurement.plan import MeasurementPlan, RecordBlock, decided_block, put_together, shots_of
from qmedoid.quantum.measurement.recorder import Decide, Decided, Recorder, tests_of
from qmedoid.quantum.measurement.settings import MeasurementSettings
from qmedoid.quantum.measurement.trained import TrainedCircuit
from qmedoid.quantum.measurement.trained_stage import TrainedStage, make_stage

# Shots at which "auto" looks at errors first.
_TRIAL_SHOTS = 1024
# How often it chooses less where the budget does not reach.
_TRIALS = 5


def make_plan(
    decide: Decide,
    n_records: int,
    device: Device,
    settings: MeasurementSettings,
    *,
    calibration: Sequence[Lines | None] | None = None,
    classes: Sequence[Any] = (),
    trained: TrainedCircuit | None = None,
) -> MeasurementPlan:
    """Plan the measurement of records; no circuit runs.

    Parameters
    ----------
    decide : callable (swap_test, rows) -> Decided
    n_records : int
    device : Device
    settings : MeasurementSettings
    calibration : sequence of Lines or None
        What noise does by an earlier run of the same shapes (`MeasurementResult.lines`); shots and expected errors
        take it into account.
    classes : sequence
        Names of the classes.
    trained : TrainedCircuit or None
        A trained circuit that runs on the device as well, for the records that it decides.
    """
    if n_records < 1:
        raise DataError("There are no records to measure: pass at least one row.")
    everybody, planner = np.arange(n_records), _Planner(decide, device, settings, calibration, trained)
    if settings.shots == "auto":
        plan = planner.by_margins(everybody)
    else:
        plan = planner.plan([(everybody, int(settings.shots))])
    return replace(plan, classes=tuple(classes))


@dataclass(frozen=True, eq=False)
class _Planner:
    """What plans for some records have in common, whatever the shots of each."""

    decide: Decide
    device: Device
    settings: MeasurementSettings
    calibration: Sequence[Lines | None] | None
    trained: TrainedCircuit | None

    def by_margins(self, everybody: Codes) -> MeasurementPlan:
        """More shots for records that these settle; all together have no more than with the budget for each circuit."""
        trial = replace(self, settings=replace(self.settings, shots=_TRIAL_SHOTS))
        first = trial.plan([(everybody, _TRIAL_SHOTS)])
        distances = first.expected_errors.settled_by(first.exact)
        budget, mean = self.settings.budget * first.n_circuits, float(self.settings.budget)
        for _ in range(_TRIALS):
            chosen = shots_for(distances, _TRIAL_SHOTS, mean)
            plan = self.plan([(np.flatnonzero(chosen == n), int(n)) for n in np.unique(chosen)])
            if plan.n_test_shots <= budget:
                return plan
            # Records share tests, which run with the most shots that one of them asks for.
            mean *= 0.95 * budget / plan.n_test_shots
        return self.plan([(everybody, int(self.settings.budget))])

    def plan(self, groups: Sequence[tuple[Codes, int]]) -> MeasurementPlan:
        """A plan for groups of records, each with its shots."""
        exact, recorders, inputs = self._recorded(groups)
        calls = [call for recorder in recorders for call in recorder.calls]
        tests, asked = tests_of(calls, self.settings.form, self.settings.register)
        blocks, start = [], 0
        for (rows, shots), recorder in zip(groups, recorders, strict=True):
            stop = start + len(recorder.calls)
            blocks.append(RecordBlock(rows, shots, tuple(calls[start:stop]), tuple(asked[start:stop])))
            start = stop
        packing = self.settings.packing
        shapes = shapes_of(tests, shots_of(blocks, tests), self.settings.form, self.device, packing)
        jobs, packs = tuple(make_jobs(shapes, packing)), tuple(shape.pack for shape in shapes)
        return MeasurementPlan(
            self.device,
            self.settings,
            self.decide,
            tuple(blocks),
            tests,
            packs,
            jobs,
            exact,
            self._lines(packs),
            trained=self._stage(groups, inputs, after=len(jobs)),
        )

    def _recorded(self, groups: Sequence[tuple[Codes, int]]) -> tuple[Decided, list[Recorder], Array]:
        """Decisions in closed form, what is asked for them, and inputs of the trained circuit, shape (n, m)."""
        recorders, trained = [Recorder() for _ in groups], self.trained
        inputs = np.zeros((0, 0) if trained is None else (len(trained.rows), trained.ansatz.n_inputs))

        def noted(places: Codes, given: Array) -> Array:
            assert trained is not None
            inputs[places] = given
            return trained.exact(places, given)

        exact = put_together(
            (rows, decided_block(self.decide, trained, recorder, rows, noted))
            for (rows, _), recorder in zip(groups, recorders, strict=True)
        )
        return exact, recorders, inputs

    def _stage(self, groups: Sequence[tuple[Codes, int]], inputs: Array, *, after: int) -> TrainedStage | None:
        if self.trained is None:
            return None
        shots = np.zeros(sum(len(rows) for rows, _ in groups), dtype=np.int64)
        for rows, n_shots in groups:
            shots[rows] = n_shots
        return make_stage(
            self.trained, inputs, shots[self.trained.rows], self.device, self.settings.packing, after=after
        )

    def _lines(self, packs: Sequence[Pack]) -> tuple[Lines | None, ...]:
        """The calibration of an earlier run, if it is of the same circuits."""
        lines = tuple(self.calibration) if self.calibration is not None else (None,) * len(packs)
        sizes = [None if one is None else len(one.slopes) for one in lines]
        if len(lines) != len(packs) or any(
            n not in (None, pack.n_copies) for n, pack in zip(sizes, packs, strict=True)
        ):
            raise ParameterError(
                f"The calibration is of {len(lines)} shapes of circuits side by side {sizes} times, and these records "
                f"need {[pack.n_copies for pack in packs]}: take that of a run with the same model, circuit and "
                "register."
            )
        return lines
