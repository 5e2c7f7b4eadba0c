"""``qmedoid score``: a table to a file of decisions."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from qmedoid.cli._cut import asked_cut, listed, tell_cut, tell_top
from qmedoid.cli._output import keeps, print_json, reading_bar, shown, tell
from qmedoid.cli.options import ScoreOptions
from qmedoid.exceptions import ParameterError, some_of, warn
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.budgets import SpentBudget, budgets_on_curve
from qmedoid.model.operating_point import Drift
from qmedoid.model.table import TableModel
from qmedoid.spelling import number_of
from qmedoid.storage.model_file import load_model
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.novelty import ENOUGH_ROWS
from qmedoid.tables.score_file import ScoredFile, estimate_in_file, score_file, top_in_file
from qmedoid.tables.writing import SUFFIXES

# Classes whose counts are printed.
_MANY = 10
# What is said of a drift, by its names in JSON.
_EXPECTED = {"expected_alert_rate": "expected", "expected_low": "low", "expected_high": "high",
             "standard_errors": "standard_errors", "drift": "direction"}  # fmt: skip


def run(options: ScoreOptions) -> None:
    """Score a table, say how many records were called what, and whether that was to be expected."""
    if options.json and options.output == "-":
        raise ParameterError("--json prints where the results go with -o -: give a file to write instead.")
    bad_rows = _bad_rows_file(options)
    point, prevalence = asked_cut(options), _asked_prevalence(options.prevalence)
    keep_pandas_away()
    dialect = {"delimiter": options.delimiter, "decimal": options.decimal}
    loaded, found = _at_prevalence(load_model(options.model), prevalence, options, dialect)
    top: SpentBudget | None = None
    if options.top is not None:
        loaded, top = _at_top(loaded, options.top, options, dialect)
    elif point is not None:
        loaded = loaded.at_operating_point(point)
    if options.output == "-":
        keeps("the rows on standard output are not all")
    with reading_bar("scoring") as progress:
        scored = score_file(
            loaded, options.table, options.output, carried=listed(options.columns), on_mismatch=options.on_mismatch,
            safe_csv=options.safe_csv, force=options.force, add=_added(options),
            n_reasons=options.reasons or options.explain or 3,
            on_bad_row=options.on_bad_row, bad_rows=bad_rows,
            # Text shows no estimate, and need not wait for it.
            prevalence=options.json and found is None and _can_estimate(loaded), on_progress=progress, **dialect,
        )  # fmt: skip
    keeps(f"{options.output} was written before")
    drift = None
    # How many of the highest scores there are says nothing of a drift.
    if loaded.decision.operating is not None and options.top is None:
        drift = loaded.decision.operating.drift(scored.predicted[str(loaded.decision.classes[1])], scored.rows)
    if drift is not None and drift.direction != "none":
        warn(_changed(loaded, drift))
    alerts = scored.predicted[str(loaded.decision.classes[1])]
    if options.top is not None and alerts < min(options.top, scored.rows):
        warn(
            f"{alerts:,} records are alerts instead of {options.top:,}: those that come next have the same score, "
            "and records of one score are all alerts or none is. A larger --top takes them all."
        )
    scored.novelty.warn()
    if options.json:
        operating = loaded.decision.operating
        print_json(
            {
                "rows": scored.rows,
                "bad_rows": scored.bad_rows,
                "bad_rows_file": bad_rows,
                "predicted": scored.predicted,
                **_alerts(loaded, scored, drift),
                "operating": None if operating is None else operating.as_dict(),
                **({} if options.top is None else {"top": None if top is None else top.as_dict()}),
                "prevalence": _prevalence(loaded, found or scored.prevalence),
                "novelty": scored.novelty.as_dict(),
                "output": options.output,
                "difference": scored.difference.as_dict(),
            }
        )
    elif sys.stderr.isatty() or options.output != "-":
        _tell(loaded, scored, drift, found)
        if scored.bad_rows:
            where = f"written to {bad_rows}" if bad_rows else "flagged, without results"
            tell(f"{scored.bad_rows:,} {'row' if scored.bad_rows == 1 else 'rows'} could not be read: {where}.")
        if options.top is not None and loaded.decision.operating is not None and scored.rows:
            tell_top(loaded.decision.classes[1], options.top, loaded.decision.operating.threshold, top)
        elif point is not None:
            tell_cut(loaded)


def _asked_prevalence(text: str | None) -> float | str | None:
    asked = text if text in (None, "estimate") else number_of(str(text))
    if text is not None and asked is None:
        raise ParameterError(f"--prevalence must be 'estimate' or a share (0.05, 5%). Got {text!r} instead.")
    return asked


def _at_prevalence(
    model: TableModel, prevalence: float | str | None, options: ScoreOptions, dialect: dict[str, Any]
) -> tuple[TableModel, PrevalenceEstimate | None]:
    """The model at the prevalence that is asked for, and the estimate of it, if that is."""
    if prevalence is None:
        return model, None
    found = None
    if len(model.decision.classes) != 2:
        raise ParameterError(
            "--prevalence is the share of the second of two classes, and this model has "
            f"{len(model.decision.classes)}: leave it out."
        )
    if isinstance(prevalence, str):
        with reading_bar("estimating") as progress:
            found = estimate_in_file(
                model, options.table, on_mismatch=options.on_mismatch, on_bad_row=options.on_bad_row,
                on_progress=progress, **dialect,
            )  # fmt: skip
        # Half a record at least: a class that does not occur has no odds.
        half = 0.5 / found.n_rows
        prevalence = min(max(found.prevalence, half), 1.0 - half)
    return replace(model, decision=model.decision.at_priors(prevalence)), found


def _at_top(
    model: TableModel, count: int, options: ScoreOptions, dialect: dict[str, Any]
) -> tuple[TableModel, SpentBudget | None]:
    """The model that calls the highest scores of the table positive, and what held-out rows show at this rate."""
    with reading_bar("looking for the highest scores") as progress:
        found = top_in_file(
            model, options.table, count, on_mismatch=options.on_mismatch, on_bad_row=options.on_bad_row,
            on_progress=progress, **dialect,
        )  # fmt: skip
    curve = None if model.training is None else model.training.curve
    expected = None
    if curve is not None and found.rows:
        (expected,) = budgets_on_curve([f"{100 * min(count / found.rows, 1.0)}%"], model.decision, curve)
    return replace(model, decision=model.decision.at_log_odds(found.log_odds, curve)), expected


def _bad_rows_file(options: ScoreOptions) -> str | None:
    """The file for rows that are set aside, None where none are."""
    if options.on_bad_row != "skip":
        if options.bad_rows is not None:
            raise ParameterError("--bad-rows is the file for rows that --on-bad-row skip sets aside: give both.")
        return None
    if options.bad_rows is None and options.output == "-":
        raise ParameterError("With -o - give --bad-rows FILE, the file for rows that are set aside.")
    if options.bad_rows is not None and (
        options.bad_rows == "-" or Path(options.bad_rows).absolute() == Path(options.output).absolute()
    ):
        raise ParameterError("--bad-rows must be a file of its own, not that of the results.")
    ending = next((one for one in SUFFIXES if options.output.lower().endswith(one)), "")
    return options.bad_rows or f"{options.output[: len(options.output) - len(ending)]}.bad-rows.csv"


def _added(options: ScoreOptions) -> list[str]:
    """What is added to the results; a number of reasons asks for reasons."""
    if options.reasons is not None and options.explain is not None:
        raise ParameterError("--reasons and --explain both say how many reasons are added: give one of them.")
    reasons = ["reasons"] if options.reasons is not None else []
    return [*listed(options.add), *reasons, *(["reasons", "sentence"] if options.explain is not None else [])]


def _can_estimate(model: TableModel) -> bool:
    """Whether the scores of a model show how frequent its classes are in a table of any length."""
    return len(model.decision.classes) == 2 and model.decision.probabilistic and model.decision.priors is not None


def _alerts(model: TableModel, scored: ScoredFile, drift: Drift | None) -> dict[str, Any]:
    """The alert rate of two classes and what was expected, by name."""
    if len(model.decision.classes) != 2:
        return {}
    alerts = scored.predicted[str(model.decision.classes[1])]
    expected = {name: getattr(drift, key, None) for name, key in _EXPECTED.items()}
    return {"alerts": alerts, "alert_rate": alerts / scored.rows if scored.rows else None, **expected}


def _prevalence(model: TableModel, found: PrevalenceEstimate | None) -> dict[str, Any] | None:
    """How frequent the second class was taken to be, and seems to be."""
    if not _can_estimate(model) or model.decision.priors is None or model.decision.expected_priors is None:
        return None
    known = {"trained": float(model.decision.priors[1]), "used": float(model.decision.expected_priors[1])}
    if found is None:
        return known | {"estimate": None, "low": None, "high": None}
    return known | {"estimate": found.prevalence, "low": float(found.low[1]), "high": float(found.high[1])}


def _tell(model: TableModel, scored: ScoredFile, drift: Drift | None, found: PrevalenceEstimate | None) -> None:
    most = sorted(scored.predicted.items(), key=lambda item: -item[1]) if len(scored.predicted) > _MANY else None
    parts = some_of([f"{count:,} of class {shown(label)}" for label, count in most or scored.predicted.items()], _MANY)
    tell(f"{scored.rows:,} {'row' if scored.rows == 1 else 'rows'} scored: {parts}.")
    if not scored.rows:
        tell("the table has a header and no rows, and so have the results.")
    if drift is not None and drift.direction == "none":
        tell(
            f"alert rate {drift.alert_rate:.4g}, as expected: {drift.expected:.4g} from held-out rows, "
            f"{drift.low:.4g} to {drift.high:.4g} for {scored.rows:,} rows."
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
    if _can_estimate(model) and model.decision.shift is None:
        positive = shown(model.decision.classes[1])
        hint = f" If {positive} has only become more or less frequent, score with --prevalence estimate."
    return (
        f"The alert rate is {drift.alert_rate:.4g}, and {drift.low:.4g} to {drift.high:.4g} was expected for "
        f"{drift.rows:,} rows ({drift.standard_errors:+.1f} standard errors): these are not new records like those "
        f"the model was fitted on.{hint}"
    )
