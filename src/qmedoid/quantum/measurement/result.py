"""What a measurement showed: decisions with errors, beside those of the closed form.

Errors of margins and probabilities come from deciding again and again, with overlaps drawn within their errors.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.quantum.documents import CircuitLineDict, CircuitResultDict, RepeatsDict, TrainedResultDict
from qmedoid.quantum.measurement.calibration import Estimates
from qmedoid.quantum.measurement.recorder import Decided
from qmedoid.quantum.measurement.trained import TrainedReading

if TYPE_CHECKING:
    from qmedoid.quantum.measurement.plan import MeasurementPlan


UNDECIDED_WITHIN = 2.0
"""A record is undecided where its margin is less than so many errors from the cut."""


class Errors(NamedTuple):
    """How far margins and probabilities may be off, for n records."""

    margins: Array  # root mean square change between the class decided for and the other, or the runner-up
    probabilities: Array | None  # of the class decided for
    distances: Array  # errors that the class is ahead of any other of three or more; ∞ for two

    def undecided(self, decided: Decided) -> Flags:
        """Which records are not settled: their margin, or a class that is further behind but less surely so."""
        return self.settled_by(decided) < UNDECIDED_WITHIN

    def settled_by(self, decided: Decided) -> Array:
        """How many errors each record is from another decision, shape (n,); none where that is no number."""
        by_margin = _in_errors(np.abs(decided.margins), self.margins)
        return np.nan_to_num(np.minimum(by_margin, self.distances), nan=0.0, posinf=np.inf)


def decided_errors(decided: Decided, again: Callable[[], Decided], n_draws: int) -> Errors:
    """Errors by deciding `n_draws` times again; `again` draws the overlaps anew.

    Changes are taken about the decision itself and not about their mean, so that what noise does on average, such as to
    make short distances longer, counts as well.
    """
    rows, n_classes = np.arange(len(decided.codes)), decided.scores.shape[1]
    gaps, chosen = _gaps(decided, decided.codes), _chosen(decided, decided.codes)
    of_gaps, of_probability = np.zeros_like(gaps), np.zeros(len(rows))
    for _ in range(n_draws):
        drawn = again()
        of_gaps += (_gaps(drawn, decided.codes) - gaps) ** 2
        share = _chosen(drawn, decided.codes)
        if chosen is not None and share is not None:
            of_probability += (share - chosen) ** 2
    errors = np.sqrt(of_gaps / n_draws)
    others = np.arange(n_classes) != decided.codes[:, None]
    second = np.where(others, gaps, np.inf).argmin(axis=1)
    ahead = np.where(others, _in_errors(gaps, errors), np.inf)
    distances = ahead.min(axis=1) if n_classes > 2 else np.full(len(rows), np.inf)
    probabilities = None if chosen is None else np.sqrt(of_probability / n_draws)
    return Errors(errors[rows, second], probabilities, distances)


def _in_errors(values: Array, errors: Array) -> Array:
    """Values in units of their errors: ∞ without an error, NaN where the error is no number."""
    return np.divide(values, errors, out=np.full_like(values, np.inf), where=errors != 0)


def _gaps(decided: Decided, codes: Codes) -> Array:
    """How far a class of each record is ahead of all, shape (n, C)."""
    gaps: Array = decided.scores[np.arange(len(codes)), codes][:, None] - decided.scores
    return gaps


def _chosen(decided: Decided, codes: Codes) -> Array | None:
    """Probability of a class of each record, shape (n,)."""
    return None if decided.probabilities is None else decided.probabilities[np.arange(len(codes)), codes]


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
    repeats : tuple of Decided
        The decisions of every repeat, the first among them; empty where there was one.
    """

    plan: "MeasurementPlan"
    decided: Decided
    errors: Errors
    estimates: tuple[Estimates, ...]
    trained: TrainedReading | None = None
    repeats: tuple[Decided, ...] = ()

    @cached_property
    def margin_scatter(self) -> Array | None:
        """Standard deviation of every margin between repeats, shape (n,); None without them.

        What noise does alike in all of them is in the errors, and not here.
        """
        if not self.repeats:
            return None
        return np.asarray(np.std([one.margins for one in self.repeats], axis=0, ddof=1))

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
        """What the same counts say without calibration: overlaps as they were read, and their bias as an error."""
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
            **({} if self.margin_scatter is None else {"margin_scatter": self.margin_scatter}),
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
                _described(one, {"columns": tests.n_features})
                for one, tests in zip(self.estimates, self.plan.tests, strict=True)
            ],
            "trained_circuit": None if self.trained is None else self._trained_summary(self.trained),
            "repeats": None if self.margin_scatter is None else self._repeated(self.margin_scatter),
            "notes": list(self.notes),
        }

    def _repeated(self, scatter: Array) -> RepeatsDict:
        codes = np.array([one.codes for one in self.repeats])
        return {
            "repeats": len(codes),
            "margin_rms_scatter": _rms(scatter),
            "margin_rms_planned": _rms(self.plan.expected_errors.margins),
            "decided_alike": float(np.mean(np.all(codes == codes[0], axis=0))),
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
                _described(one, {"observable": name})
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
            narrower = "Use other qubits (limits of Device)." if tests.n_features == 1 else "Use a narrower register."
            found += _notes(words, narrower, [one], pack.shrink)
        if self.margin_ratio > max(1.25, 1.0 + 4.0 / np.sqrt(2.0 * len(self.kept))):
            by, advice = "lines and their scatter", "use register='column'"
            if not self.plan.settings.calibrate:
                by, advice = "its error rates", "calibrate (calibrate=True, --calibrate)"
            elif self.plan.settings.register == "column":
                advice = "use other qubits (limits of Device)"
            found.append(
                f"Margins are off by {self.margin_ratio:.1f} times their stated errors on average: the device does "
                f"more to overlaps than {by} tell. Take errors as so much larger, or {advice}."
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
            "calibration it goes into the decisions, and stated errors count it as these rates have it. Calibrate to "
            "undo it: calibrate=True, --calibrate."
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


def root_mean(squares: Array) -> float:
    """Root of the mean; 0 for none."""
    return float(np.sqrt(np.mean(squares))) if len(squares) else 0.0


def _rms(values: Array) -> float:
    return root_mean(values.ravel() ** 2)


def _described(estimates: Estimates, of: Any) -> CircuitLineDict | None:
    lines = estimates.fitted
    if lines is None:
        return None
    slope_errors, intercept_errors = (np.sqrt(lines.covariances[:, place, place]) for place in (1, 0))
    found: CircuitLineDict = {
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
    found |= of
    return found
