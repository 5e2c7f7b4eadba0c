"""What all decisions about a table say together, counted while it is read, in memory that does not grow."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy.typing as npt

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.metrics.prevalence import LogOddsHistogram, PrevalenceEstimate
from qmedoid.model.table import Decisions, TableModel
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.files import OnProgress, Reading
from qmedoid.tables.scoring import decide_batch


@dataclass(frozen=True, eq=False)
class WatchedModel(TableModel):
    """A model of two classes that counts the log-odds of all records that it is asked about.

    Attributes
    ----------
    log_odds : LogOddsHistogram
        Those of the records so far.
    """

    log_odds: LogOddsHistogram = field(default_factory=LogOddsHistogram)

    @classmethod
    def of(cls, model: TableModel) -> "WatchedModel":
        """The same model, watched."""
        return cls(**{one.name: getattr(model, one.name) for one in fields(TableModel)})

    def decide(self, columns: Sequence[npt.NDArray[Any]], *, threads: int | None = None) -> Decisions:
        """Decide, and count."""
        decided = super().decide(columns, threads=threads)
        self.log_odds.add(decided.scores[:, 1] - decided.scores[:, 0])
        return decided

    def begins_anew(self, rows: int) -> None:
        """Forget all records where a table is read from its beginning again; `rows` are those read in this reading.

        They are told before they are decided about, so that in one reading they are always more than were counted.
        """
        if rows <= self.log_odds.n_rows:
            self.log_odds.clear()

    def estimated(self, rows: int) -> PrevalenceEstimate | None:
        """The prevalence among the records, if these are all `rows` of a table and the model's own priors are known."""
        priors = self.decision.expected_priors
        if priors is None or self.log_odds.n_rows != rows or rows == 0:
            return None
        return self.log_odds.estimate(float(priors[1]))


def can_estimate(model: TableModel) -> bool:
    """Whether the scores of a model say how frequent its classes are in a table of any length."""
    return len(model.classes) == 2 and model.decision.probabilistic and model.decision.priors is not None


def estimate_in_file(
    model: TableModel, where: str, *, on_mismatch: OnMismatch, on_progress: OnProgress | None = None, **dialect: Any
) -> PrevalenceEstimate:
    """How frequent the second class is in a table that can be read once more afterwards.

    Raises
    ------
    ParameterError
        It is a pipe.
    """
    # Another prevalence is refused where it has no meaning, before anything is read.
    model.decision.at_priors(0.5)
    priors = model.decision.expected_priors
    assert priors is not None, "a model without priors cannot be shifted"
    with Reading(model, where, on_mismatch, **dialect) as reading:
        if not reading.can_repeat:
            raise ParameterError(
                "The table is read twice to estimate the prevalence, and a pipe can be read once: write it to a file, "
                "or give the prevalence as a number."
            )
        histogram: LogOddsHistogram = reading.in_kind(lambda lenient: _counted(model, reading, lenient, on_progress))
        reading.check()
    if histogram.n_rows == 0:
        raise DataError(f"{where} has no rows: there is no prevalence to estimate.")
    return histogram.estimate(float(priors[1]))


def _counted(model: TableModel, reading: Reading, lenient: bool, on_progress: OnProgress | None) -> LogOddsHistogram:
    histogram = LogOddsHistogram()
    for scores in _scores(model, reading, lenient, on_progress):
        histogram.add(scores[:, 1] - scores[:, 0])
    return histogram


def _scores(
    model: TableModel, reading: Reading, lenient: bool, on_progress: OnProgress | None
) -> Iterator[npt.NDArray[Any]]:
    for batch, _ in reading.batches(as_text=False, lenient=lenient, on_progress=on_progress):
        yield decide_batch(model, batch, reading.found).scores
