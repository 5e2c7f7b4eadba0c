"""``qmedoid score``: a table to a file of decisions, or its files to a folder of them."""

import os
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from qmedoid.cli._output import keeps, print_json, reading_bar, shown, tell, tell_cut, tell_top
from qmedoid.cli.documents import ScoreDict, ScoreFilesDict, ScorePrevalenceDict
from qmedoid.cli.options import (
    LARGE,
    OUTPUT,
    POINT,
    READING,
    RESULTS,
    CutOptions,
    Force,
    Names,
    Text,
    flag,
    listed,
    option,
)
from qmedoid.exceptions import ParameterError, some_of, warn
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.metrics.texts import percent_text
from qmedoid.model.cut import budget_dict
from qmedoid.model.model import Model
from qmedoid.model.operating_point import Drift, OperatingSummary
from qmedoid.model.storage.model_file import ModelFile, load_file
from qmedoid.spelling import number_of
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.evaluating import estimate_in_file, top_in_file
from qmedoid.tables.novelty import ENOUGH_ROWS, NoveltyReport
from qmedoid.tables.score_settings import Cut, ScoreSettings, at
from qmedoid.tables.scoring import ScoredFile, score_file, shows_prevalence
from qmedoid.tables.writing import NAMES, SUFFIXES, check_output

if TYPE_CHECKING:
    from qmedoid.large.shards import PartTotals

_SETTINGS = frozenset(one.name for one in fields(ScoreSettings))
# Classes whose counts are printed.
_MANY = 10


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(CutOptions):
    """Predict: a class and a score for each row of a table.

    The table may be larger than the memory. Each run also says whether the share of alerts, and the values, are like
    those of the training rows: that is how to monitor a model.
    """

    most_used = ("output", "columns", "add", "reasons", "threshold", "alert_rate", "top", "on_mismatch")
    examples = (
        "qmedoid score patients.qmedoid new.csv -o decisions.csv",
        "qmedoid score patients.qmedoid new.csv -o out.csv --columns id --add reasons",
    )

    output: Annotated[
        str,
        option(
            OUTPUT,
            "FILE",
            "File to write, CSV or Parquet by its ending; - for CSV on a pipe; FOLDER/ for a file per input.",
            "--output",
            "-o",
        ),
    ]
    columns: Annotated[
        Names, option(RESULTS, "COLUMNS", "Columns to carry through, such as ids (repeatable, or with commas between).")
    ] = None
    prevalence: Annotated[
        Text,
        option(
            POINT, "SHARE", "Share of the positive class in this table, or 'estimate': probabilities are then for it."
        ),
    ] = None
    safe_csv: Annotated[
        bool, flag(OUTPUT, "Make texts safe that a spreadsheet would run as formulas.", "--safe-csv/--no-safe-csv")
    ] = True
    force: Force = False
    top: Annotated[int | None, option(POINT, "N", "Call this many records positive: the highest scores.", min=1)] = None
    add: Annotated[
        Names,
        option(
            RESULTS,
            "WHAT",
            "Columns to add: probabilities, source, row, reasons, sentence, novelty, flags (repeatable, or with commas "
            "between).",
        ),
    ] = None
    reasons: Annotated[
        int | None, option(RESULTS, "N", "Add this many reasons: the columns that contribute most. Default: 3.", min=1)
    ] = None
    explain: Annotated[
        int | None, option(RESULTS, "N", "Add this many reasons, and each decision in words.", min=1)
    ] = None
    on_bad_row: Annotated[
        Literal["refuse", "flag", "skip"],
        option(READING, "WHAT", "If a row cannot be read: refuse the table, flag the row, or skip it."),
    ] = "refuse"
    bad_rows: Annotated[
        Text, option(READING, "FILE", "File for the rows that are left out. Default: OUT with .bad-rows.csv.")
    ] = None
    resume: Annotated[
        bool, flag(LARGE, "Into a folder: score only files whose results are missing or out of date.", "--resume")
    ] = False
    shard: Annotated[Text, option(LARGE, "K/N", "Into a folder: score the K-th of N parts of the input files.")] = None
    dask: Annotated[
        Text,
        option(
            LARGE, "WHERE", "Into a folder: score files on Dask workers: local, or a scheduler such as tcp://host:8786."
        ),
    ] = None


def run(options: ScoreOptions) -> None:
    """Score a table, say how many records were called what, and whether that was to be expected."""
    if is_folder(options.output):
        from qmedoid.cli.score_folder import run_folder

        run_folder(options)
        return
    into_folder = {"--resume": options.resume, "--shard": options.shard, "--dask": options.dask}
    given = next((name for name, value in into_folder.items() if value), None)
    if given is not None:
        raise ParameterError(
            f"{given} is for a folder as output, with a file for every input file: write it with a slash at its end, "
            f"such as -o out/. Got -o {options.output} instead."
        )
    if options.json and options.output == "-":
        raise ParameterError("--json prints where the results go with -o -: give a file to write instead.")
    settings = replace(score_settings(options), bad_rows=_bad_rows_file(options))
    file, _, estimate, expected = model_at_cut(options, settings)
    check_output(options.output, options.table, force=options.force)
    if settings.bad_rows is not None:
        check_output(settings.bad_rows, options.table, force=options.force, columns=NAMES)
    if options.output == "-":
        keeps("the rows on standard output are not all")
    with reading_bar("scoring") as progress:
        scored = score_file(file.model, options.table, options.output, settings, on_progress=progress)
    keeps(f"{options.output} was written before")
    say_scored(options, file.model, scored, scored, settings.bad_rows, estimate, expected)


def say_scored(
    options: ScoreOptions,
    model: Model,
    scored: ScoredFile,
    totals: "ScoredFile | PartTotals",
    bad_rows_file: str | None,
    estimate: PrevalenceEstimate | None,
    expected: tuple[str, OperatingSummary] | None,
    files: ScoreFilesDict | None = None,
) -> None:
    """Say how many records were called what, in all results, and of those scored now whether that was expected."""
    decision, novelty = model.decision, scored.novelty.report(model)
    # How many of the highest scores there are says nothing of a drift.
    drift = None if options.top is not None else _warn_of_drift(model, scored)
    alerts = totals.predicted[str(decision.classes[1])]
    _warn_of_ties(options.top, alerts, totals.rows)
    novelty.warn()
    if options.json:
        document: ScoreDict = {
            "rows": totals.rows,
            "bad_rows": totals.bad_rows,
            "bad_rows_file": bad_rows_file,
            "predicted": totals.predicted,
            "alerts": alerts,
            "alert_rate": alerts / totals.rows if totals.rows else None,
            "expected_alert_rate": None if drift is None else drift.expected,
            "expected_low": None if drift is None else drift.low,
            "expected_high": None if drift is None else drift.high,
            "standard_errors": None if drift is None else drift.standard_errors,
            "drift": None if drift is None else drift.direction,
            "operating": None if decision.operating is None else decision.operating.as_dict(),
            "top": None if expected is None else budget_dict(*expected),
            "prevalence": _prevalence_dict(model, estimate or scored.prevalence(model)),
            "novelty": novelty.as_dict(),
            "output": options.output,
            "difference": scored.difference.as_dict(),
        }
        if len(decision.classes) > 2:
            del document["alerts"], document["alert_rate"], document["expected_alert_rate"], document["expected_low"]
            del document["expected_high"], document["standard_errors"], document["drift"]
        if options.top is None:
            del document["top"]
        if files is not None:
            document["files"] = files
        print_json(document)
        return
    if options.output == "-" and not sys.stderr.isatty():
        return
    if files is None or files["scored"]:
        _tell_scored(model, scored, novelty, drift, estimate)
        if options.top is not None and decision.operating is not None and scored.rows:
            tell_top(decision.classes[1], options.top, decision.operating.threshold, expected)
        elif options.top is None and options.cut() is not None:
            tell_cut(model)
    if totals.bad_rows:
        place = f"written to {bad_rows_file}" if bad_rows_file else "flagged, without results"
        tell(f"{totals.bad_rows:,} {'row' if totals.bad_rows == 1 else 'rows'} could not be read: {place}.")


def is_folder(output: str) -> bool:
    """Whether an output is a folder, for a file per input; one that is called like a file needs a slash."""
    is_file = output in ("", "-") or output.lower().endswith(SUFFIXES)
    return output.endswith(("/", os.sep)) or (not is_file and Path(output).is_dir())


def score_settings(options: ScoreOptions) -> ScoreSettings:
    """The settings of a score: options of the same names; a number of reasons asks for reasons."""
    if options.reasons is not None and options.explain is not None:
        raise ParameterError("--reasons and --explain both say how many reasons are added: give one of them.")
    add = listed(options.add) + (["reasons"] if options.reasons is not None else [])
    add += ["reasons", "sentence"] if options.explain is not None else []
    columns, n_reasons = tuple(listed(options.columns)), options.reasons or options.explain or 3
    return settings_of(options, columns=columns, add=tuple(add), n_reasons=n_reasons)


def settings_of(options: Any, **settings: Any) -> ScoreSettings:
    """The settings with the options of the same names, and others."""
    return ScoreSettings(**{name: value for name, value in vars(options).items() if name in _SETTINGS} | settings)


def model_at_cut(
    options: ScoreOptions, settings: ScoreSettings
) -> tuple[ModelFile, Cut, PrevalenceEstimate | None, tuple[str, OperatingSummary] | None]:
    """Load the model and cut where the options say, by what the table shows if need be.

    Returns the file with the model at the cut, the cut, the estimate of the prevalence, and what held-out rows show at
    the rate of the highest scores.
    """
    point, prevalence = options.cut(), _asked_prevalence(options.prevalence)
    keep_pandas_away()
    file = load_file(options.model)
    prior, estimate = _prior(file.model, prevalence, options, settings)
    cut, expected = Cut(prior, point), None
    if options.top is not None:
        cut, expected = _top(file.model, prior, options.top, options, settings)
    return file._replace(model=at(file.model, cut)), cut, estimate, expected


def _asked_prevalence(text: str | None) -> float | str | None:
    asked = text if text in (None, "estimate") else number_of(str(text))
    if text is not None and asked is None:
        raise ParameterError(f"--prevalence must be 'estimate' or a share (0.05, 5%). Got {text!r} instead.")
    return asked


def _prior(
    model: Model, prevalence: float | str | None, options: ScoreOptions, settings: ScoreSettings
) -> tuple[float | None, PrevalenceEstimate | None]:
    """The prevalence that is asked for, and the estimate of it, if that is."""
    if prevalence is not None and len(model.decision.classes) != 2:
        raise ParameterError(
            "--prevalence is the share of the second of two classes, and this model has "
            f"{len(model.decision.classes)}: leave it out."
        )
    if not isinstance(prevalence, str):
        return prevalence, None
    with reading_bar("estimating") as progress:
        found = estimate_in_file(model, options.table, settings, on_progress=progress)
    # Half a record at least: a class that does not occur has no odds.
    half = 0.5 / found.n_rows
    return min(max(found.prevalence, half), 1.0 - half), found


def _top(
    model: Model, prior: float | None, count: int, options: ScoreOptions, settings: ScoreSettings
) -> tuple[Cut, tuple[str, OperatingSummary] | None]:
    """The cut above which the highest scores of the table lie, and what held-out rows show at this rate."""
    model = at(model, Cut(prior))
    with reading_bar("looking for the highest scores") as progress:
        log_odds, rows = top_in_file(model, options.table, count, settings, on_progress=progress)
    curve = None if model.training is None else model.training.curve
    expected = None
    if curve is not None and rows:
        (expected,) = model.decision.budgets([f"{100 * min(count / rows, 1.0)}%"], curve)
    return Cut(prior, log_odds=log_odds), expected


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


def _warn_of_drift(model: Model, scored: ScoredFile) -> Drift | None:
    """How the alert rate differs from what was expected, with a warning if it was not to be expected."""
    if model.decision.operating is None:
        return None
    drift = model.decision.operating.drift(scored.predicted[str(model.decision.classes[1])], scored.rows)
    if drift is not None and drift.direction != "none":
        warn(_changed(model, drift))
    return drift


def _warn_of_ties(top: int | None, alerts: int, rows: int) -> None:
    """Say why fewer records than asked for are alerts."""
    if top is not None and alerts < min(top, rows):
        warn(
            f"{alerts:,} records are alerts instead of {top:,}: those that come next have the same score, "
            "and records of one score are all alerts or none is. A larger --top takes them all."
        )


def _prevalence_dict(model: Model, found: PrevalenceEstimate | None) -> ScorePrevalenceDict | None:
    """How frequent the second class was taken to be, and seems to be."""
    priors, expected = model.decision.priors, model.decision.expected_priors
    if not shows_prevalence(model) or priors is None or expected is None:
        return None
    return {
        "trained": float(priors[1]),
        "used": float(expected[1]),
        "estimate": None if found is None else found.prevalence,
        "low": None if found is None else float(found.low[1]),
        "high": None if found is None else float(found.high[1]),
    }


def _tell_scored(
    model: Model,
    scored: ScoredFile,
    novelty: NoveltyReport,
    drift: Drift | None,
    found: PrevalenceEstimate | None,
) -> None:
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
    if novelty.status == "too few" and scored.rows:
        tell(f"too few rows to compare with those the model was fitted on: {ENOUGH_ROWS} are enough.")
    if found is not None and (priors := model.decision.expected_priors) is not None:
        # What probabilities are for is within half a record of what was estimated.
        used, estimate = f"{priors[1]:.4g}", f"{found.prevalence:.4g}"
        tell(
            f"prevalence of {shown(model.decision.classes[1])} estimated as {estimate} (95 %: {found.low[1]:.4g} to "
            f"{found.high[1]:.4g}); probabilities are for "
            f"{'that' if used == estimate else f'{used}, which is half a record'}."
        )


def _changed(model: Model, drift: Drift) -> str:
    """What is said of an alert rate that was not to be expected."""
    hint = ""
    if shows_prevalence(model) and model.decision.shift is None:
        positive = shown(model.decision.classes[1])
        hint = f" If {positive} has only become more or less frequent, score with --prevalence estimate."
    return (
        f"The alert rate is {drift.alert_rate:.4g}, and {drift.low:.4g} to {drift.high:.4g} was expected for "
        f"{drift.rows:,} rows ({drift.standard_errors:+.1f} standard errors): these are not new records like those "
        f"the model was fitted on.{hint}"
    )
