"""``qmedoid score``: a table to a file of decisions, or its files to a folder of them."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
    command,
    cut_of,
    flag,
    listed,
    option,
)
from qmedoid.cli.output import Said, note, print_json, progress_bar, reading_bar, tell, tell_cut, tell_expected
from qmedoid.exceptions import ParameterError, QMedoidError, require_dask, some_of, warn
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.metrics.texts import percent_text
from qmedoid.model.model import Model
from qmedoid.model.operating_point import Drift, OperatingSummary, budget_dict
from qmedoid.model.storage.model_file import ModelFile, load_file
from qmedoid.spelling import number_of, printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.evaluating import estimate_in_file, top_in_file
from qmedoid.tables.novelty import ENOUGH_ROWS, LEAST_SHIFT
from qmedoid.tables.results import Cut, ScoreSettings, at
from qmedoid.tables.scoring import ScoredFile, score_file, shows_prevalence
from qmedoid.tables.writing import NAMES, SUFFIXES, check_output

if TYPE_CHECKING:
    from qmedoid.large.score_files import PartResult, PartTotals, ScoreTask

_SETTINGS = frozenset(one.name for one in fields(ScoreSettings))
# Classes whose counts are printed.
_MANY = 10


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(CutOptions):
    """Options of a score."""

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
            "Columns to add: probabilities, source, row, reasons, novelty (repeatable, or with commas between).",
        ),
    ] = None
    reasons: Annotated[
        int | None, option(RESULTS, "N", "Add this many reasons: the columns that contribute most. Default: 3.", min=1)
    ] = None
    on_bad_row: Annotated[
        Literal["refuse", "flag", "skip"],
        option(
            READING,
            "WHAT",
            "If a row cannot be read: refuse the table, flag the row, or skip it, into OUT with .bad-rows.csv.",
        ),
    ] = "refuse"
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


@command(
    "qmedoid score patients.qmedoid new.csv -o decisions.csv",
    "qmedoid score patients.qmedoid new.csv -o out.csv --columns id --add reasons",
    most_used=("output", "columns", "add", "reasons", "threshold", "alert_rate", "top", "on_mismatch"),
)
def run(options: ScoreOptions) -> None:
    """Predict: a class and a score for each row of a table.

    The table may be larger than the memory. Each run also says whether the share of alerts, and the values, are like
    those of the training rows: that is how to monitor a model.
    """
    if is_folder(options.output):
        _score_folder(options)
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
    settings = replace(_score_settings(options), bad_rows=_bad_rows_file(options))
    file, _, estimate, expected, tied = _model_at_cut(options, settings)
    check_output(options.output, options.table, force=options.force)
    if settings.bad_rows is not None:
        check_output(settings.bad_rows, options.table, force=options.force, columns=NAMES)
    if options.output == "-":
        Said.kept = "the rows on standard output are not all"
    with reading_bar("scoring") as progress:
        scored = score_file(file.model, options.table, options.output, settings, on_progress=progress)
    Said.kept = f"{options.output} was written before"
    _say_scored(options, file.model, scored, scored, settings.bad_rows, estimate, expected, tied)


def _score_folder(options: ScoreOptions) -> None:
    """Score the files of a table one by one into a folder, and say what they were called."""
    from qmedoid.large.score_files import BAD_ROWS, PartTotals, ScoreTask, plan_scoring

    shard, aside = _asked_shard(options), str(Path(options.output) / BAD_ROWS)
    settings = _score_settings(options)
    file, cut, estimate, expected, tied = _model_at_cut(options, settings)
    task = ScoreTask(str(options.model.absolute()), file.sha256, cut, settings)
    how = {"resume": options.resume, "force": options.force}
    tasks, finish = plan_scoring(task, options.table, options.output, shard=shard, **how)
    totals, done = PartTotals.none(file.model), "no file is done"
    try:
        with progress_bar() as bar:
            task_of_bar = bar.add_task("files", total=len(tasks))
            for part in _parts(tasks, options.dask):
                bar.advance(task_of_bar)
                totals.add(part)
                n_done = totals.scored + totals.skipped
                done = f"{n_done:,} of {len(tasks):,} files are done, and --resume goes on from there"
                Said.kept = done
    except QMedoidError:
        if totals.scored + totals.skipped:
            note(f"{done}.")
        raise
    files: ScoreFilesDict = {"shard": options.shard, **finish(totals)}
    Said.kept = f"{options.output} was written before"
    totals.now.difference.raise_or_warn("warn")
    bad_rows = aside if options.on_bad_row == "skip" else None
    _say_scored(options, file.model, totals.now, totals, bad_rows, estimate, expected, tied, files)
    if options.json:
        return
    tell(
        f"{files['scored']:,} {'file' if files['scored'] == 1 else 'files'} scored into {options.output}, "
        f"{files['skipped']:,} were done before: {totals.rows:,} rows in all."
    )
    if files["removed"]:
        tell(f"results removed that are of another content, model or option: {files['removed']:,}.")
    if files["missing"]:
        tell(f"inputs without results so far, of other shards: {files['missing']:,} of {files['inputs']:,}.")


def _asked_shard(options: ScoreOptions) -> tuple[int, int]:
    """The shard K/N that is asked for; 1/1 is everything."""
    if options.shard is None:
        return 1, 1
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", options.shard)
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise ParameterError(
            f"--shard must be K/N with K from 1 to N, such as 3/16: the third of 16 parts of the input files. Got "
            f"{options.shard!r} instead."
        )
    whole = {"--top": options.top is not None, "--prevalence estimate": options.prevalence == "estimate"}
    for name, is_given in whole.items():
        if is_given:
            raise ParameterError(
                f"{name} is about the whole table, and --shard scores a part of it. Leave one of them out, or give the "
                f"{'cut by --threshold or --alert-rate' if name == '--top' else 'prevalence as a number'}."
            )
    return number, count


def _parts(tasks: "Sequence[ScoreTask]", where: str | None) -> "Iterator[PartResult]":
    """What became of the tasks, in their order: here, or on Dask workers, which see the same files."""
    from qmedoid.large.score_files import score_part

    if where is None:
        yield from map(score_part, tasks)
        return
    require_dask("--dask")
    from qmedoid.large.workers import connected, results_by

    n_given, found = 0, dict[int, Any]()
    with connected(where) as client:
        results = results_by(client)("score", lambda _, task: score_part(task), None, [(task,) for task in tasks])
        for number, part in results:
            found[number] = part
            while n_given in found:
                yield found.pop(n_given)
                n_given += 1


def _say_scored(
    options: ScoreOptions,
    model: Model,
    scored: ScoredFile,
    totals: "ScoredFile | PartTotals",
    bad_rows_file: str | None,
    estimate: PrevalenceEstimate | None,
    expected: tuple[str, OperatingSummary] | None,
    tied: int,
    files: ScoreFilesDict | None = None,
) -> None:
    """Say how many records were called what, in all results, and of those scored now whether that was expected."""
    decision, novelty = model.decision, scored.novelty.report(model)
    # How many of the highest scores there are says nothing of a drift.
    drift = None if options.top is not None else _warn_of_drift(model, scored)
    alerts, positive = totals.predicted[str(decision.classes[1])], printable(decision.classes[1])
    if options.top is not None and tied:
        warn(
            f"{alerts:,} records are called {positive} instead of {options.top:,}: {tied:,} have one score and tie for "
            f"the other {options.top - alerts:,}. Records of one score are all called so or none is: "
            f"--top {alerts + tied} calls these too."
        )
    novelty.warn()
    if options.json:
        document: ScoreDict = {
            "rows": totals.rows,
            "bad_rows": totals.bad_rows,
            "bad_rows_file": bad_rows_file,
            "predicted": totals.predicted,
            "operating": None if decision.operating is None else decision.operating.as_dict(),
            "prevalence": _prevalence_dict(model, estimate or scored.prevalence(model)),
            "novelty": novelty.found,
            "output": options.output,
            "difference": scored.difference.as_dict(),
        }
        if len(decision.classes) == 2:
            document["alerts"], document["alert_rate"] = alerts, alerts / totals.rows if totals.rows else None
            document["expected_alert_rate"] = None if drift is None else drift.expected
            document["expected_low"], document["expected_high"] = (
                (None, None) if drift is None else (drift.low, drift.high)
            )
            document["standard_errors"] = None if drift is None else drift.standard_errors
            document["drift"] = None if drift is None else drift.direction
        if options.top is not None:
            document["top"] = None if expected is None else budget_dict(*expected)
            document["top_tied"] = tied
        if files is not None:
            document["files"] = files
        print_json(document)
        return
    if options.output == "-" and not sys.stderr.isatty():
        return
    if files is None or files["scored"]:
        # A table that breaks the contract is unlike, and one with many cells such as the training rows did not have.
        found = scored.difference.as_dict()
        odd = [max(one["missing"], one["unseen"], one["wrong"], one["huge"]) for one in found["cells"].values()]
        is_unlike = found["breaks"] or max(odd, default=0) >= max(LEAST_SHIFT * scored.rows, 1)
        _tell_scored(model, scored, drift, estimate, "unlike" if is_unlike else novelty.found["status"])
        if novelty.found["status"] == "too few" and scored.rows:
            tell(f"too few rows to compare with those the model was fitted on: {ENOUGH_ROWS} are enough.")
        if options.top is not None and decision.operating is not None and scored.rows:
            above = f"probability above {decision.operating.threshold:.4g}"
            if alerts:
                tell(f"Called {positive}: {alerts:,} with the highest scores ({above}).")
            if expected is not None:
                tell_expected(expected[1])
            elif alerts:
                tell("the model holds no curve of held-out rows: nothing is known of the precision at this alert rate.")
        elif options.top is None and cut_of(options) is not None:
            tell_cut(model)
    if totals.bad_rows:
        place = f"written to {bad_rows_file}" if bad_rows_file else "flagged, without results"
        tell(f"{totals.bad_rows:,} {'row' if totals.bad_rows == 1 else 'rows'} could not be read: {place}.")


def is_folder(output: str) -> bool:
    """Whether an output is a folder, for a file per input; one that is called like a file needs a slash."""
    is_file = output in ("", "-") or output.lower().endswith(SUFFIXES)
    return output.endswith(("/", os.sep)) or (not is_file and Path(output).is_dir())


def _score_settings(options: ScoreOptions) -> ScoreSettings:
    """The settings of a score: options of the same names; a number of reasons asks for reasons."""
    add = listed(options.add) + (["reasons"] if options.reasons is not None else [])
    columns, n_reasons = tuple(listed(options.columns)), options.reasons or 3
    return settings_of(options, columns=columns, add=tuple(add), n_reasons=n_reasons)


def settings_of(options: Any, **settings: Any) -> ScoreSettings:
    """The settings with the options of the same names, and others."""
    return ScoreSettings(**{name: value for name, value in vars(options).items() if name in _SETTINGS} | settings)


def _model_at_cut(
    options: ScoreOptions, settings: ScoreSettings
) -> tuple[ModelFile, Cut, PrevalenceEstimate | None, tuple[str, OperatingSummary] | None, int]:
    """Load the model and cut where the options say, by what the table shows if need be.

    Returns the file with the model at the cut, the cut, the estimate of the prevalence, what held-out rows show at the
    rate of the highest scores, and how many records tie for the last of these places.
    """
    point, asked = cut_of(options), options.prevalence
    prior = None if asked in (None, "estimate") else number_of(str(asked))
    if asked not in (None, "estimate") and prior is None:
        raise ParameterError(f"--prevalence must be 'estimate' or a share (0.05, 5%). Got {asked!r} instead.")
    keep_pandas_away()
    file = load_file(options.model)
    decision, estimate, expected, tied = file.model.decision, None, None, 0
    if asked is not None and len(decision.classes) != 2:
        raise ParameterError(
            "--prevalence is the share of the second of two classes, and this model has "
            f"{len(decision.classes)}: leave it out."
        )
    if asked == "estimate":
        with reading_bar("estimating") as progress:
            estimate = estimate_in_file(file.model, options.table, settings, on_progress=progress)
        # Half a record at least: a class that does not occur has no odds.
        half = 0.5 / estimate.n_rows
        prior = min(max(estimate.prevalence, half), 1.0 - half)
    cut = Cut(prior, point)
    if options.top is not None:
        model = at(file.model, Cut(prior))
        with reading_bar("looking for the highest scores") as progress:
            log_odds, rows, above, tied = top_in_file(model, options.table, options.top, settings, on_progress=progress)
        cut, curve = Cut(prior, log_odds=log_odds), None if model.training is None else model.training.curve
        if curve is not None and above:
            (expected,) = model.decision.budgets([f"{100 * above / rows}%"], curve)
    moved = file if cut == Cut() else file._replace(model=at(file.model, cut))
    return moved, cut, estimate, expected, tied


def _bad_rows_file(options: ScoreOptions) -> str | None:
    """The file for rows that are set aside, None where none are."""
    if options.on_bad_row != "skip":
        return None
    if options.output == "-":
        raise ParameterError("Rows that are set aside need a file: with -o - give --on-bad-row flag, or write a file.")
    ending = next((one for one in SUFFIXES if options.output.lower().endswith(one)), "")
    return f"{options.output[: len(options.output) - len(ending)]}.bad-rows.csv"


def _warn_of_drift(model: Model, scored: ScoredFile) -> Drift | None:
    """How the alert rate differs from what was expected, with a warning if it was not to be expected."""
    if model.decision.operating is None:
        return None
    drift = model.decision.operating.drift(scored.predicted[str(model.decision.classes[1])], scored.rows)
    if drift is not None and drift.direction != "none":
        hint = ""
        if shows_prevalence(model) and model.decision.shift is None:
            positive = printable(model.decision.classes[1])
            hint = f" If {positive} has only become more or less frequent, score with --prevalence estimate."
        warn(
            f"The alert rate is {drift.alert_rate:.4g}, and {drift.low:.4g} to {drift.high:.4g} was expected for "
            f"{drift.rows:,} rows ({drift.standard_errors:+.1f} standard errors): these are not new records like those "
            f"the model was fitted on.{hint}"
        )
    return drift


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
    model: Model, scored: ScoredFile, drift: Drift | None, found: PrevalenceEstimate | None, novelty: str
) -> None:
    """Say how many records were called what, and how that compares with what was expected."""
    counts = list(scored.predicted.items())
    if len(counts) > _MANY:
        counts.sort(key=lambda item: -item[1])
    parts = some_of([f"{count:,} of class {printable(label)}" for label, count in counts], _MANY)
    tell(f"{scored.rows:,} {'row' if scored.rows == 1 else 'rows'} scored: {parts}.")
    positive = printable(model.decision.classes[1])
    if drift is not None and drift.direction == "none":
        called = f"{percent_text(drift.alert_rate, 3)} are called {positive}"
        expected = f"{percent_text(drift.low)} to {percent_text(drift.high)}"
        if novelty in ("unlike", "unknown"):
            like = "which these are not" if novelty == "unlike" else "and whether these are is not known"
            tell(f"{called}; {expected} was expected of records like the training rows, {like}.")
        else:
            tell(f"{called}, as expected ({expected}).")
    if found is not None and (priors := model.decision.expected_priors) is not None:
        # What probabilities are for is within half a record of what was estimated.
        used, estimate = f"{priors[1]:.4g}", f"{found.prevalence:.4g}"
        tell(
            f"prevalence of {positive} estimated as {estimate} (95 %: {found.low[1]:.4g} to {found.high[1]:.4g}); "
            f"probabilities are for {'that' if used == estimate else f'{used}, which is half a record'}"
            f"{'' if novelty != 'unlike' else '; both hold of records like the training rows, which these are not'}."
        )
