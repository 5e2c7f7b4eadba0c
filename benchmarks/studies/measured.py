"""Cells of the study of devices: a fitted model measured on a simulated device, beside its closed form.

What a circuit reads on a simulated device is known exactly, under the device's noise. So the chances are computed once
for a plan, and the counts of any number of shots are drawn from them, with the law of a run: the copies side by side in
a circuit are not entangled with each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchmarks.datasets import Dataset
from benchmarks.studies.cells import Cell, Result, Split, paper_split
from qmedoid.arrays import Array, Codes
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.nearest import NearestMedoidClassifier
from qmedoid.exceptions import ModelError, ParameterError

if TYPE_CHECKING:
    from qmedoid.quantum import Device, MeasurementPlan, MeasurementResult
    from qmedoid.quantum.devices.packs import Pack

CODE = 2
"""Number of what these functions compute: whoever changes their figures takes the next one."""
NO_SHOT_NOISE = 2**38
"""Shots that stand for infinitely many: counts are the chances themselves, to 1e-11, and weights stay within range."""
SIMULATOR = "simulator"
"""The device without noise; its overlaps are not calibrated."""
_ALONE = 20
"""Records whose circuits are counted one by one."""
_RARE = 0.1
"""Share of a class below which it is rare."""

Chances = list[list[Array]]
"""Probability that each copy of each circuit reads 1, job by job and batch by batch."""
Counts = npt.NDArray[np.int64]


def run_measured(
    data: Dataset,
    cell: Cell,
    *,
    model: str,
    register: str,
    backend: str,
    shots: Sequence[int],
    repeats: int,
    margin_repeats: int = 0,
    records: int | None = None,
    n_qubits: int = 100,
) -> Result:
    """A model of a table, fitted on training rows, measured on test rows by one kind of circuit on one device.

    Parameters
    ----------
    model : {"default", "printed"}
        What the package does by default, or the paper's nearest medoids.
    register : {"column", "group", "paper"}
        The kind of circuit, see `qmedoid.quantum.MeasurementSettings`.
    backend : str
        Name of a simulated device.
    shots : sequence of int
        Shots of each circuit; each number is measured on its own.
    repeats : int
        How often, with other shot noise.
    margin_repeats : int
        How often more, for the errors of margins alone: most of them are small and a few are large, by jumps of trees,
        so that a few runs do not tell their mean square.
    records : int or None
        Test rows that are measured at most; None for all.
    n_qubits : int
        Qubits that are used at most.
    """
    from qmedoid.quantum import as_device

    split = paper_split(data.y, cell.seed)
    fitted = _fitted(model, data, split, cell.seed)
    rows = chosen_rows(data.y, split.test, records)
    device = as_device(backend, n_qubits=n_qubits, seed=cell.seed)

    def plan_of(some: Codes, n: int, *, errors: bool = True) -> "MeasurementPlan":
        # Without shot noise there are no errors to find.
        draws = {"draws": 1} if n == NO_SHOT_NOISE or not errors else {}
        endless = n == NO_SHOT_NOISE
        made: MeasurementPlan = fitted.measurement_plan(
            data.X[some], device, shots=1 if endless else n, register=register, calibrate=backend != SIMULATOR,
            seed=cell.seed, refine="simulated", **draws,  # the study is about distances
        )  # fmt: skip
        return _without_shot_noise(made) if endless else made

    plan = plan_of(rows, int(shots[-1]))
    chances = chances_of(plan)
    codes = np.searchsorted(np.asarray(plan.classes), data.y[rows])
    measured: list[Result] = []
    for place, n in enumerate((NO_SHOT_NOISE, *map(int, shots))):
        again, rng = plan_of(rows, n), np.random.default_rng([cell.seed, place])
        times, more = (1, 0) if n == NO_SHOT_NOISE else (repeats, margin_repeats)
        results = [again.read_out(drawn_counts(again, plan, chances, rng)) for _ in range(times)]
        short = plan_of(rows, n, errors=False) if more else again
        margins = [short.read_out(drawn_counts(short, plan, chances, rng)).margin_errors for _ in range(more)]
        measured.append(_figures(again, results, margins, codes, n))
    return {
        "chosen_method": getattr(fitted, "method_", "nearest"),
        "records": len(rows),
        "test_rows": len(split.test),
        "margin_deviation": float(plan.exact.margins.std()),
        "closed_form_accuracy": float(np.mean(plan.exact.codes == codes)),
        "plan": plan.summary(),
        "circuits_alone": [plan_of(row[None], 1).n_circuits for row in rows[:: -(-len(rows) // _ALONE)]],
        "measured": measured,
    }


def _without_shot_noise(plan: "MeasurementPlan") -> "MeasurementPlan":
    """A plan with more shots than a device may be asked for; its counts are drawn here."""
    jobs = tuple(
        replace(job, batches=tuple(replace(batch, shots=NO_SHOT_NOISE) for batch in job.batches)) for job in plan.jobs
    )
    return replace(plan, jobs=jobs, shots=NO_SHOT_NOISE)


def _fitted(model: str, data: Dataset, split: Split, seed: int) -> Any:
    if model == "printed":
        printed = NearestMedoidClassifier.paper(random_state=seed)
        return printed.fit(data.X[split.train], data.y[split.train], X_val=data.X[split.val], y_val=data.y[split.val])
    return MedoidClassifier(random_state=seed).fit(data.X[split.fit], data.y[split.fit])


def chosen_rows(y: npt.NDArray[Any], test: Codes, records: int | None) -> Codes:
    """The first test rows; where a class is rare, equally many of every class."""
    if records is None:
        return test
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() >= _RARE * len(y):
        return test[:records]
    return np.concatenate([test[y[test] == label][: records // len(labels)] for label in labels])


def chances_of(plan: "MeasurementPlan") -> Chances:
    """What infinitely many shots of a plan's circuits would show on its simulated device.

    Circuits of one pack are asked for together, because a pack is read once for all of them.
    """
    batches = [batch for job in plan.jobs for batch in job.batches]
    found: dict[int, Array] = {}
    for pack in {id(batch.pack): batch.pack for batch in batches}.values():
        own = [place for place, batch in enumerate(batches) if batch.pack is pack]
        angles = np.concatenate([batches[place].angles for place in own])
        ends = np.cumsum([len(batches[place].angles) for place in own])
        found |= dict(zip(own, np.split(chances(plan.device, pack, angles), ends[:-1]), strict=True))
    places = iter(range(len(batches)))
    return [[found[next(places)] for _ in job.batches] for job in plan.jobs]


def chances(device: "Device", pack: "Pack", angles: Array) -> Array:
    """Probability that each copy of a circuit reads 1, or each basis state, on a device that is simulated here."""
    from qmedoid.quantum import BlockSampler

    sampler = device.make_sampler()
    if not isinstance(sampler, BlockSampler):
        raise ParameterError(f"The device {device.name!r} shows shots alone: pass 'simulator' or a fake device.")
    states = np.arange(2**pack.n_bits)
    found = np.ones((len(angles), pack.n_copies, len(states)))
    for bits, probabilities in sampler.block_probabilities(pack.circuit, angles[:, pack.order]):
        # Gates join the qubits of one copy, or of a part of it.
        copy = bits[0] // pack.n_bits
        outcomes = sum((states >> (bit - copy * pack.n_bits) & 1) << place for place, bit in enumerate(bits))
        found[:, copy] *= probabilities[:, outcomes]
    found = np.clip(found, 0.0, 1.0)
    return found[..., 1] if pack.n_bits == 1 else found


def drawn_counts(
    plan: "MeasurementPlan", first: "MeasurementPlan", chances: Chances, rng: np.random.Generator
) -> list[list[Counts]]:
    """Counts of a plan from the chances of the first one, which has the same circuits and perhaps other shots."""
    counts = []
    for job, other, of_job in zip(plan.jobs, first.jobs, chances, strict=True):
        for batch, same in zip(job.batches, other.batches, strict=True):
            if not np.array_equal(batch.angles, same.angles):
                raise ModelError("Plans of the same records have different circuits: their chances cannot be shared.")
        counts.append([_counts(batch.shots, ones, rng) for batch, ones in zip(job.batches, of_job, strict=True)])
    return counts


def _counts(shots: int, chances: Array, rng: np.random.Generator) -> Counts:
    if shots == NO_SHOT_NOISE:
        return np.rint(shots * chances).astype(np.int64)
    return np.asarray(rng.binomial(shots, chances), dtype=np.int64)


def _figures(
    plan: "MeasurementPlan", results: "Sequence[MeasurementResult]", margins: Sequence[Array], codes: Codes, shots: int
) -> Result:
    """Errors and decisions of repeated measurements, raw and calibrated, beside what was planned."""
    calibrate = plan.settings.calibrate
    raw = [one.without_calibration() for one in results] if calibrate else results
    return {
        "shots": None if shots == NO_SHOT_NOISE else shots,
        "repeats": len(results),
        "planned": {
            "s_error": rms(np.concatenate([one.errors for one in plan.expected_estimates])),
            "margin_error": rms(plan.expected_errors.margins),
            "clear": int((~plan.undecided).sum()),
        },
        "raw": _pooled(raw, () if calibrate else margins, codes),
        "calibrated": _pooled(results, margins, codes) if calibrate else None,
        "lines": results[0].summary()["calibration"],
    }


def _pooled(results: "Sequence[MeasurementResult]", more: Sequence[Array], codes: Codes) -> Result:
    """Figures over all of some repeated measurements, and the margin's error of each and of more."""
    kept = np.array([one.kept for one in results])
    clear = np.array([~one.undecided for one in results])
    margins = np.array([*(one.margin_errors for one in results), *more])
    return {
        "s_error": rms(np.array([one.overlap_errors for one in results])),
        "s_error_by_shape": [rms(errors) for errors in _by_shape(results)],
        "s_score_deviation": rms(np.array([one.overlap_scores for one in results])),
        "margin_error": rms(margins),
        # What is left of it in the mean over repeats: how far shot noise bends margins, and not only blurs them.
        "margin_shift": rms(margins.mean(axis=0)),
        "margin_errors": [rms(one) for one in margins],
        "margin_stated": rms(np.array([one.errors.margins for one in results])),
        "decisions": int(kept.size),
        "kept": int(kept.sum()),
        "clear": int(clear.sum()),
        "clear_kept": int((kept & clear).sum()),
        "accuracy": float(np.mean([one.decided.codes == codes for one in results])),
    }


def _by_shape(results: "Sequence[MeasurementResult]") -> Iterator[Array]:
    """Errors of overlaps of all tests with the same number of columns, shape by shape."""
    ends = np.cumsum([len(tests) for tests in results[0].plan.tests])
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        yield np.array([one.overlap_errors[start:stop] for one in results])


def rms(values: Array) -> float:
    """Root of the mean square."""
    return float(np.sqrt(np.mean(np.square(values)))) if np.size(values) else 0.0
