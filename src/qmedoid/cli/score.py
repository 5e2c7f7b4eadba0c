"""``qmedoid score``: a table of any size to a file of decisions."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from qmedoid.cli._output import print_json, reading_bar, shown, tell
from qmedoid.exceptions import ParameterError, some_of, warn
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.operating_point import Drift
from qmedoid.model.table import TableModel
from qmedoid.storage.model_file import load_model
from qmedoid.tables.arrow_alone import keep_pandas_away
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.files import Scored, score_file
from qmedoid.tables.novelty import ENOUGH_ROWS
from qmedoid.tables.tally import WatchedModel, can_estimate, estimate_in_file

# Classes whose counts are told.
_MANY = 10


def run(
    model: Path,
    table: str,
    output: str,
    *,
    columns: list[str],
    prevalence: str | None,
    safe_csv: bool,
    force: bool,
    novelty: bool,
    on_mismatch: OnMismatch,
    as_json: bool,
    **dialect: Any,
) -> None:
    """Score a table, say how many records were called what, and whether that was to be expected."""
    if as_json and output == "-":
        raise ParameterError("--json prints where the results go with -o -: give a file to write instead.")
    asked = _asked_prevalence(prevalence)
    keep_pandas_away()
    loaded = load_model(model)
    found: PrevalenceEstimate | None = None
    if asked is not None and len(loaded.classes) != 2:
        raise ParameterError(
            f"--prevalence is the share of the second of two classes, and this model tells {len(loaded.classes)} "
            "apart: leave it out."
        )
    if asked is not None:
        if asked == "estimate":
            with reading_bar("estimating") as advance:
                found = estimate_in_file(loaded, table, on_mismatch=on_mismatch, on_progress=advance, **dialect)
            asked = _within(found)
        loaded = replace(loaded, decision=loaded.decision.at_priors(asked))
    # Whoever reads text is not told an estimate, and need not wait for it.
    watched = WatchedModel.of(loaded) if as_json and found is None and can_estimate(loaded) else None
    carried = list(dict.fromkeys(name for part in columns for name in _split(part)))
    with reading_bar("scoring") as advance:

        def progress(rows: int, n_read: int, n_bytes: int | None) -> None:
            if watched is not None:
                watched.begins_anew(rows)
            advance(rows, n_read, n_bytes)

        scored = score_file(
            watched or loaded, table, output, carried=carried, on_mismatch=on_mismatch, safe_csv=safe_csv,
            force=force, novelty=novelty, on_progress=progress, **dialect,
        )  # fmt: skip
    drift = _drift(loaded, scored)
    if drift is not None and drift.direction != "none":
        warn(_changed(loaded, drift))
    scored.novelty.warn()
    if as_json:
        found = watched.estimated(scored.rows) if watched is not None else found
        print_json(
            {
                "rows": scored.rows,
                "predicted": scored.predicted,
                **_alerts(loaded, scored, drift),
                "prevalence": _prevalence(loaded, found),
                "novelty": scored.novelty.as_dict(),
                "output": output,
                "difference": scored.difference.as_dict(),
            }
        )
    elif sys.stderr.isatty() or output != "-":
        _tell(loaded, scored, drift, found)


def _asked_prevalence(text: str | None) -> str | float | None:
    if text is None or text == "estimate":
        return text
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"--prevalence must be 'estimate' or a number. Got {text!r} instead.") from None


def _within(found: PrevalenceEstimate) -> float:
    """The estimate, but half a record at least: a class that does not occur has no odds."""
    half = 0.5 / found.n_rows
    return min(max(found.prevalence, half), 1.0 - half)


def _drift(model: TableModel, scored: Scored) -> Drift | None:
    return None if model.operating is None else model.operating.drift(_n_alerts(model, scored), scored.rows)


def _n_alerts(model: TableModel, scored: Scored) -> int:
    return scored.predicted[str(model.classes[1])]


def _alerts(model: TableModel, scored: Scored, drift: Drift | None) -> dict[str, Any]:
    """The alert rate of two classes beside what was expected, by name."""
    if len(model.classes) != 2:
        return {}
    alerts = _n_alerts(model, scored)
    return {
        "alerts": alerts,
        "alert_rate": alerts / scored.rows,
        "expected_alert_rate": None if drift is None else drift.expected,
        "expected_low": None if drift is None else drift.low,
        "expected_high": None if drift is None else drift.high,
        "standard_errors": None if drift is None else drift.standard_errors,
        "drift": None if drift is None else drift.direction,
    }


def _prevalence(model: TableModel, found: PrevalenceEstimate | None) -> dict[str, Any] | None:
    """How frequent the second class was taken to be, and seems to be."""
    if not can_estimate(model) or model.decision.priors is None or model.decision.expected_priors is None:
        return None
    return {
        "trained": float(model.decision.priors[1]),
        "used": float(model.decision.expected_priors[1]),
        "estimate": None if found is None else found.prevalence,
        "low": None if found is None else float(found.low[1]),
        "high": None if found is None else float(found.high[1]),
    }


def _tell(model: TableModel, scored: Scored, drift: Drift | None, found: PrevalenceEstimate | None) -> None:
    most = sorted(scored.predicted.items(), key=lambda item: -item[1]) if len(scored.predicted) > _MANY else None
    parts = some_of([f"{count:,} {label}" for label, count in most or scored.predicted.items()], _MANY)
    tell(f"{scored.rows:,} {'row' if scored.rows == 1 else 'rows'} scored: {parts}.")
    if drift is not None and drift.direction == "none":
        tell(
            f"alert rate {drift.alert_rate:.4g}, as expected: {drift.expected:.4g} from held-out rows, "
            f"{drift.low:.4g} to {drift.high:.4g} for so many rows."
        )
    _tell_novelty(scored)
    if found is not None:
        tell(
            f"prevalence of {shown(model.classes[1])} estimated as {found.prevalence:.4g} (95 %: {found.low[1]:.4g} to "
            f"{found.high[1]:.4g}); probabilities are for {_used(model, found)}."
        )


def _tell_novelty(scored: Scored) -> None:
    if scored.novelty.status == "too few":
        tell(f"too few rows to tell whether they are like those the model was fitted on: {ENOUGH_ROWS} are enough.")


def _used(model: TableModel, found: PrevalenceEstimate) -> str:
    """The prevalence that probabilities are for, which is within half a record of what was estimated."""
    priors = model.decision.expected_priors
    used = found.prevalence if priors is None else float(priors[1])
    return "that" if f"{used:.4g}" == f"{found.prevalence:.4g}" else f"{used:.4g}, which is half a record"


def _changed(model: TableModel, drift: Drift) -> str:
    """What is said of an alert rate that was not to be expected."""
    hint = ""
    if can_estimate(model) and model.decision.shift is None:
        hint = f" If {shown(model.classes[1])} has only become more or less frequent, score with --prevalence estimate."
    return (
        f"The alert rate is {drift.alert_rate:.4g}, and {drift.low:.4g} to {drift.high:.4g} was expected for "
        f"{drift.rows:,} rows ({drift.standard_errors:+.1f} standard errors): these are not new records like those "
        f"the model was fitted on.{hint}"
    )


def _split(part: str) -> list[str]:
    """Names with commas between them; a name with a comma in it is put in double quotes."""
    import csv

    return [name.strip() for name in next(csv.reader([part], skipinitialspace=True), []) if name.strip()]
