"""The settings of a score: what is written about every record, and how a table is read; the same in all places."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from qmedoid.model.model import Model
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.writing import OnBadRow


@dataclass(frozen=True)
class ScoreSettings:
    """What a score writes and how it reads its table, for a file, a folder, a data frame and a worker alike.

    Attributes
    ----------
    columns : tuple of str
        Columns of the table to carry through, before the results.
    add : tuple of str
        Further results, of `qmedoid.tables.results.ADDED`.
    n_reasons : int
        Columns that are named at most as reasons.
    on_mismatch : {"error", "warn"}
        A table that breaks the contract is refused, or scored as well as possible.
    on_bad_row : {"refuse", "flag", "skip"}
        Rows that cannot be decided about refuse the table, are kept with empty results and a column ``flag`` that says
        why, or are left out.
    bad_rows : str or None
        File that takes the rows that are left out, as they were.
    safe_csv : bool
        Whether texts in CSV that a spreadsheet would run as a formula get an apostrophe before them.
    delimiter, decimal : str or None
        Of a text; detected where None.
    """

    columns: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    n_reasons: int = 3
    on_mismatch: OnMismatch = "error"
    on_bad_row: OnBadRow = "refuse"
    bad_rows: str | None = None
    safe_csv: bool = True
    delimiter: str | None = None
    decimal: str | None = None

    def key(self) -> dict[str, Any]:
        """What results depend on, for JSON; equal results have equal keys."""
        settings = {name: value for name, value in vars(self).items() if name != "bad_rows"}
        return settings | {"safe_csv": self.safe_csv or self.on_bad_row != "skip"}


class Cut(NamedTuple):
    """Another cut of a model: a prevalence of the second class, and an operating point or log-odds to cut at."""

    prevalence: float | None = None
    point: Any = None
    log_odds: float | None = None

    def key(self) -> dict[str, Any]:
        """The cut for JSON."""
        return self._asdict() | {"log_odds": None if self.log_odds is None else repr(self.log_odds)}  # may be infinite


def at(model: Model, cut: Cut) -> Model:
    """A copy of a model for another prevalence and with another cut, where these are given."""
    if cut.prevalence is not None:
        model = replace(model, decision=model.decision.at_priors(cut.prevalence))
    if cut.log_odds is not None:
        curve = None if model.training is None else model.training.curve
        return replace(model, decision=model.decision.at_log_odds(cut.log_odds, curve))
    return model if cut.point is None else model.at_operating_point(cut.point)
