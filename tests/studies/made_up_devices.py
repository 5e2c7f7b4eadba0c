"""Results of the study of devices that nobody ran: every goal is met, just so."""

import numpy as np
from benchmarks.studies.devices import STUDY, DevicePlan
from benchmarks.studies.results import StudyResults


def _figures(shots, rng, *, calibrated):
    """What a cell that nobody ran found at a number of shots."""

    def own():
        return {
            "s_error": rng.random(), "s_error_by_shape": [rng.random()], "s_score_deviation": 1.0,
            "margin_error": 0.5, "margin_shift": rng.random(), "margin_errors": [0.4, 0.6],
            "margin_stated": rng.random(),
            "decisions": 200, "kept": 199, "clear": 190, "clear_kept": 190, "accuracy": rng.random(),
        }  # fmt: skip

    best = own()
    planned = {"s_error": best["s_error"], "margin_error": 0.5, "clear": 95}
    line = {"slope": 0.9, "slope_least": 0.8, "slope_most": 0.95, "intercept": 0.05, "excess": 0.001}
    return {
        "shots": shots, "repeats": 2, "planned": planned, "raw": own(), "calibrated": best if calibrated else None,
        "lines": [line if calibrated else None],
    }  # fmt: skip


def made_up(asked: DevicePlan, seed: int = 0) -> StudyResults:
    """A result for every cell of a plan."""
    rng = np.random.default_rng(seed)
    shape = {"columns": 4, "tests": 50, "side_by_side": 26, "qubits": 78, "two_qubit_gates": 7.0, "depth": 31}
    cells = {}
    for cell in asked.cells:
        settings = STUDY.method(cell).settings
        calibrated = settings["backend"] != "simulator"
        cells[cell] = {
            "chosen_method": "evidence", "records": 100, "test_rows": 100, "margin_deviation": 2.0,
            "closed_form_accuracy": 0.9, "circuits_alone": [19, 20],
            "plan": {"records": 100, "tests_asked": 1000, "tests": 50, "circuits": 40, "circuits_per_record": 0.4,
                     "calibration_circuits": 32, "jobs": 1, "device_seconds": 12.0, "shapes": [shape]},
            "measured": [_figures(n, rng, calibrated=calibrated) for n in (None, *settings["shots"])],
            "seconds": 1.0, "peak_mb": 1.0,
        }  # fmt: skip
    return StudyResults(cells)
