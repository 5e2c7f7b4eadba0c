"""The report of a recalibration: the new model, and figures before and after."""

from dataclasses import dataclass

from qmedoid.estimators.documents import RecalibrationDict, RecalibrationFiguresDict, RecalibrationLeftOutDict
from qmedoid.metrics.intervals import Interval
from qmedoid.saved import SavedModel


@dataclass(frozen=True, eq=False)
class Recalibration:
    """A recalibrated model, and what that does to rows that it was not fitted on.

    Attributes
    ----------
    model : SavedModel
        The new model; save it with ``model.save(path)``.
    rows : int
        Labeled rows that it was calibrated on.
    left_out : mapping of str to int
        Other rows of the table: ``"known"`` from the fit, without a class (``"missing"``), of a class that the model
        does not have (``"unknown"``), and beyond the largest sample (``"sampled"``).
    before, after : mapping
        Figures on these rows of the model as it was, and of models calibrated in folds without the row.
    gain : Interval
        By how much the mean log-loss falls, with its 95 % interval.
    notes : tuple of str
    """

    model: SavedModel
    rows: int
    left_out: RecalibrationLeftOutDict
    before: RecalibrationFiguresDict
    after: RecalibrationFiguresDict
    gain: Interval
    notes: tuple[str, ...]

    @property
    def helps(self) -> bool:
        """Whether the gain is beyond chance."""
        return self.gain.low > 0

    @property
    def verdict(self) -> str:
        """Whether it helps, in a sentence."""
        what = "makes the probabilities better" if self.helps else "does not help beyond chance"
        if self.gain.high < 0:
            what = "makes the probabilities worse"
        return (
            f"Recalibration {what}: the log-loss is {self.before['log_loss']:.4f} before and "
            f"{self.after['log_loss']:.4f} after, out of fold: a gain of {self.gain.value:.4f} (95 %: "
            f"{self.gain.low:.4f} to {self.gain.high:.4f})."
        )

    def as_dict(self) -> RecalibrationDict:
        """Everything but the model by name, fit for JSON."""
        operating = self.model.expected_
        priors = self.model.model.decision.priors
        return {
            "parent": self.model.model.parent,
            "rows": self.rows,
            "left_out": self.left_out,
            "priors": None if priors is None else priors.tolist(),
            "operating": None if operating is None else operating.as_dict(),
            "before": self.before,
            "after": self.after,
            "gain": self.gain.as_dict(),
            "helps": self.helps,
            "notes": list(self.notes),
        }
