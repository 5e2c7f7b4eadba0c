"""What is said of a scored table: classes, alert rate, prevalence, records unlike the training rows."""

from typing import Any

from qmedoid.cli._output import shown, tell
from qmedoid.exceptions import some_of, warn
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.metrics.texts import percent_text
from qmedoid.model.operating_point import Drift
from qmedoid.model.table import TableModel
from qmedoid.tables.novelty import ENOUGH_ROWS
from qmedoid.tables.score_file import ScoredFile

# Classes whose counts are printed.
_MANY = 10
# What is said of a drift, by its names in JSON.
_EXPECTED = {"expected_alert_rate": "expected", "expected_low": "low", "expected_high": "high",
             "standard_errors": "standard_errors", "drift": "direction"}  # fmt: skip


def warn_of_drift(model: TableModel, scored: ScoredFile) -> Drift | None:
    """How the alert rate differs from what was expected, with a warning if it was not to be expected."""
    if model.decision.operating is None:
        return None
    drift = model.decision.operating.drift(scored.predicted[str(model.decision.classes[1])], scored.rows)
    if drift is not None and drift.direction != "none":
        warn(_changed(model, drift))
    return drift


def warn_of_ties(top: int | None, alerts: int, rows: int) -> None:
    """Say why fewer records than asked for are alerts."""
    if top is not None and alerts < min(top, rows):
        warn(
            f"{alerts:,} records are alerts instead of {top:,}: those that come next have the same score, "
            "and records of one score are all alerts or none is. A larger --top takes them all."
        )


def can_estimate(model: TableModel) -> bool:
    """Whether the scores of a model show how frequent its classes are in a table of any length."""
    return len(model.decision.classes) == 2 and model.decision.probabilistic and model.decision.priors is not None


def alerts_dict(model: TableModel, predicted: dict[str, int], rows: int, drift: Drift | None) -> dict[str, Any]:
    """The alert rate of two classes and what was expected, by name."""
    if len(model.decision.classes) != 2:
        return {}
    alerts = predicted[str(model.decision.classes[1])]
    expected = {name: getattr(drift, key, None) for name, key in _EXPECTED.items()}
    return {"alerts": alerts, "alert_rate": alerts / rows if rows else None, **expected}


def prevalence_dict(model: TableModel, found: PrevalenceEstimate | None) -> dict[str, Any] | None:
    """How frequent the second class was taken to be, and seems to be."""
    if not can_estimate(model) or model.decision.priors is None or model.decision.expected_priors is None:
        return None
    known = {"trained": float(model.decision.priors[1]), "used": float(model.decision.expected_priors[1])}
    if found is None:
        return known | {"estimate": None, "low": None, "high": None}
    return known | {"estimate": found.prevalence, "low": float(found.low[1]), "high": float(found.high[1])}


def tell_scored(model: TableModel, scored: ScoredFile, drift: Drift | None, found: PrevalenceEstimate | None) -> None:
    """Say how many records were called what, and how that compares with what was expected."""
    most = sorted(scored.predicted.items(), key=lambda item: -item[1]) if len(scored.predicted) > _MANY else None
    parts = some_of([f"{count:,} of class {shown(label)}" for label, count in most or scored.predicted.items()], _MANY)
    tell(f"{scored.rows:,} {'row' if scored.rows == 1 else 'rows'} scored: {parts}.")
    if not scored.rows:
        tell("the table has a header and no rows, and so have the results.")
    if drift is not None and drift.direction == "none":
        tell(
            f"{percent_text(drift.alert_rate, 3)} are called {shown(model.decision.classes[1])}, as expected "
            f"({percent_text(drift.low)} to {percent_text(drift.high)})."
        )
    if scored.novelty.status == "too few" and scored.rows:
        tell(f"too few rows to compare with those the model was fitted on: {ENOUGH_ROWS} are enough.")
    if found is not None and (priors := model.decision.expected_priors) is not None:
        # What probabilities are for is within half a record of what was estimated.
        used, estimate = f"{priors[1]:.4g}", f"{found.prevalence:.4g}"
        tell(
            f"prevalence of {shown(model.decision.classes[1])} estimated as {estimate} (95 %: {found.low[1]:.4g} to "
            f"{found.high[1]:.4g}); probabilities are for "
            f"{'that' if used == estimate else f'{used}, which is half a record'}."
        )


def _changed(model: TableModel, drift: Drift) -> str:
    """What is said of an alert rate that was not to be expected."""
    hint = ""
    if can_estimate(model) and model.decision.shift is None:
        positive = shown(model.decision.classes[1])
        hint = f" If {positive} has only become more or less frequent, score with --prevalence estimate."
    return (
        f"The alert rate is {drift.alert_rate:.4g}, and {drift.low:.4g} to {drift.high:.4g} was expected for "
        f"{drift.rows:,} rows ({drift.standard_errors:+.1f} standard errors): these are not new records like those "
        f"the model was fitted on.{hint}"
    )
