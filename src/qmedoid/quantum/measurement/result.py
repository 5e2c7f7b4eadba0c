"""What a measurement showed: decisions with errors, beside those of the closed form."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from qmedoid.arrays import Array, Flags
from qmedoid.quantum.documents import CircuitLineDict, CircuitResultDict, TrainedResultDict
from qmedoid.quantum.measurement.calibration import Estimates, Lines
from qmedoid.quantum.measurement.errors import Errors
from qmedoid.quantum.measurement.recorder import Decided
from qmedoid.quantum.measurement.trained import TrainedReading

if TYPE_CHECKING:
    from qmedoid.quantum.measurement.plan import MeasurementPlan


@dataclass(frozen=True, eq=False)
class MeasurementResult:
    """Decisions about measured records, with their errors.

    Attributes
    ----------
    plan : MeasurementPlan
    decided : Decided
        The decisions.
    errors : Errors
        Of margins and probabilities.
    estimates : tuple of Estimates
        Overlaps of the distinct tests with their errors, shape by shape.
    trained : TrainedReading or None
        What the trained circuit read; None where none ran.
    """

    plan: "MeasurementPlan"
    decided: Decided
    errors: Errors
    estimates: tuple[Estimates, ...]
    trained: TrainedReading | None = None

    @cached_property
    def undecided(self) -> Flags:
        """Records whose margin is less than two errors from the cut."""
        return self.errors.undecided(self.decided)

    @cached_property
    def kept(self) -> Flags:
        """Records that are decided as the closed form decides."""
        return np.asarray(self.decided.codes == self.plan.exact.codes)

    @cached_property
    def overlap_errors(self) -> Array:
        """Measured minus exact overlap of every test."""
        return joined([one.overlaps for one in self.estimates]) - self._exact_overlaps

    @cached_property
    def overlap_scores(self) -> Array:
        """The same in units of the stated errors: their deviation is about 1 where these are honest."""
        return self.overlap_errors / joined([one.errors for one in self.estimates])

    @cached_property
    def margin_errors(self) -> Array:
        """Measured minus exact gap between the two classes that the closed form ranks first, of every record."""
        exact = self.plan.exact.scores
        rows, order = np.arange(len(exact)), np.argsort(-exact, axis=1, kind="stable")
        gaps = [one[rows, order[:, 0]] - one[rows, order[:, 1]] for one in (self.decided.scores, exact)]
        return np.asarray(gaps[0] - gaps[1])

    @cached_property
    def by_circuit(self) -> Flags:
        """Records that a measured trained circuit decides."""
        rows = np.arange(len(self.kept))
        return np.zeros(len(rows), dtype=np.bool_) if self.trained is None else np.isin(rows, self.trained.circuit.rows)

    def without_calibration(self) -> "MeasurementResult":
        """What the same counts say without calibration: overlaps as they were read, with errors by shots alone."""
        trained = self.trained
        if trained is not None:
            trained = replace(trained, estimates=tuple(one.uncalibrated() for one in trained.estimates))
        return self.plan.result_of([one.uncalibrated() for one in self.estimates], trained)

    @property
    def _exact_overlaps(self) -> Array:
        return joined([tests.overlaps for tests in self.plan.tests])

    def columns(self) -> dict[str, Any]:
        """A column for every fact about the records: decision, probability and margin with errors, and closed form."""
        exact = self.plan.exact
        closed = decided_columns(exact, None, self.plan.classes)
        return {
            **decided_columns(self.decided, self.errors, self.plan.classes),
            **({} if self.trained is None else {"by_circuit": self.by_circuit}),
            "agrees": self.kept,
            **{f"{name}_in_closed_form": values for name, values in closed.items()},
        }

    def summary(self) -> CircuitResultDict:
        """What the run showed in plain values."""
        kept, undecided = self.kept, self.undecided
        return {
            "records": len(kept),
            "agreement": float(kept.mean()),
            "undecided": int(undecided.sum()),
            "agreement_of_decided": float(kept[~undecided].mean()) if not undecided.all() else None,
            "overlap_rms_error": _rms(self.overlap_errors),
            "overlap_rms_error_raw": _rms(joined([one.raw for one in self.estimates]) - self._exact_overlaps),
            "overlap_score_deviation": _rms(self.overlap_scores),
            "margin_rms_error": _rms(self.margin_errors),
            "margin_rms_stated": _rms(self.errors.margins),
            "calibration": [
                None if one.fitted is None else _described(one.fitted) | {"columns": tests.n_features}
                for one, tests in zip(self.estimates, self.plan.tests, strict=True)
            ],
            "trained_circuit": None if self.trained is None else self._trained_summary(self.trained),
            "notes": list(self.notes),
        }

    def _trained_summary(self, trained: TrainedReading) -> TrainedResultDict:
        """What the trained circuit showed, in plain values."""
        errors = trained.values - trained.exact
        return {
            "records": len(errors),
            "value_rms_error": _rms(errors),
            "value_rms_error_raw": _rms(trained.raw - trained.exact),
            "value_rms_stated": _rms(trained.errors),
            "value_score_deviation": _rms(errors / trained.errors),
            "calibration": [
                None if one.fitted is None else _described(one.fitted) | {"observable": name}
                for name, one in zip(trained.circuit.names, trained.estimates, strict=True)
            ],
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about the plan and the calibration, in sentences."""
        found = list(self.plan.notes)
        if self.trained is not None and self.plan.trained is not None:
            words = "Trained circuit", "an expectation value", "known inputs"
            advice = "Fit a circuit of fewer repetitions or qubits."
            found += _notes(words, advice, self.trained.estimates, self.plan.trained.pack.shrink)
        for one, tests, pack in zip(self.estimates, self.plan.tests, self.plan.packs, strict=True):
            words = f"Circuits of {tests.n_features} column(s)", "an overlap", "known pairs"
            found += _notes(words, "Use a narrower register or fewer columns.", [one], pack.shrink)
        if self.margin_ratio > max(1.25, 1.0 + 4.0 / np.sqrt(2.0 * len(self.kept))):
            found.append(
                f"Margins are off by {self.margin_ratio:.1f} times their stated errors on average: the device does "
                "more to overlaps than lines and their scatter tell. Take errors as so much larger, or use "
                "register='column'."
            )
        return tuple(found)

    @property
    def margin_ratio(self) -> float:
        """Actual errors of margins, which the closed form tells, in units of those that are stated; root mean square.

        About 1 where stated errors are honest. For circuits of many columns on a noisy device it may be 1.5, although
        errors of single overlaps are honest.
        """
        stated = _rms(self.errors.margins)
        return _rms(self.margin_errors) / stated if stated > 0 else 1.0


def decided_columns(decided: Decided, errors: Errors | None, classes: Sequence[Any]) -> dict[str, Any]:
    """Class, its probability if there is one, and margin, with errors and whether they leave the class undecided."""
    found: dict[str, Any] = {"class": np.asarray(classes)[decided.codes] if classes else decided.codes}
    if decided.probabilities is not None:
        found["probability"] = decided.probabilities[np.arange(len(decided.codes)), decided.codes]
    found["margin"] = decided.margins
    if errors is not None:
        if errors.probabilities is not None:
            found["probability_error"] = errors.probabilities
        found |= {"margin_error": errors.margins, "undecided": errors.undecided(decided)}
    return found


def _notes(words: tuple[str, str, str], advice: str, estimates: Sequence[Estimates], shrink: Array) -> Iterator[str]:
    """What is worth knowing about a calibration, in sentences."""
    (circuits, value, known), fitted = words, [one.fitted for one in estimates if one.fitted is not None]
    least = min((float(np.min(lines.slopes)) for lines in fitted), default=1.0)
    if not fitted and np.any(shrink < 1.0):
        yield (
            f"{circuits}: noise leaves about {shrink.mean():.2f} of {value}, by the device's error rates. Without "
            "calibration it goes into the decisions, and stated errors are those of shots alone."
        )
    elif fitted and not any(lines.used for lines in fitted):
        yield (
            f"{circuits}: {known} read what they should, within their shots, so {value} is taken as it is read, "
            "without calibration."
        )
    elif least < 0.2:
        yield f"{circuits}: noise leaves {least:.2f} of {value} at the worst place; errors are large. {advice}"
    drift = max(one.drift for one in estimates)
    if drift:
        yield (
            f"{circuits}: {known} of different jobs disagree by up to {drift:.3f} of {value}: the device drifted. It "
            "is undone job by job."
        )


def joined(of_shapes: Sequence[Array]) -> Array:
    """Numbers of the tests of all shapes one after the other; there may be none."""
    return np.concatenate([np.zeros(0), *of_shapes])


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if values.size else 0.0


def _described(lines: Lines) -> CircuitLineDict:
    slope_errors, intercept_errors = (np.sqrt(lines.covariances[:, place, place]) for place in (1, 0))
    return {
        "used": lines.used,
        "by_position": lines.by_position,
        "known_pairs": lines.n_pairs,
        "slope": float(lines.slopes.mean()),
        "slope_error": float(np.sqrt(np.mean(slope_errors**2))),
        "slope_least": float(lines.slopes.min()),
        "slope_most": float(lines.slopes.max()),
        "intercept": float(lines.intercepts.mean()),
        "intercept_error": float(np.sqrt(np.mean(intercept_errors**2))),
        "excess": lines.excess,
    }
