"""``qmedoid score``: a table to a file of decisions, or its files to a folder of them."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from qmedoid.cli._cut import asked_cut, listed, tell_cut, tell_top
from qmedoid.cli._output import keeps, print_json, reading_bar, tell
from qmedoid.cli._scored import (
    alerts_dict,
    can_estimate,
    prevalence_dict,
    tell_scored,
    warn_of_drift,
    warn_of_ties,
)
from qmedoid.cli.options import LARGE, OUTPUT, POINT, READING, RESULTS, CutOptions, Force, Names, Text, option
from qmedoid.exceptions import ParameterError
from qmedoid.large.shards import at_cut
from qmedoid.metrics.prevalence import PrevalenceEstimate
from qmedoid.model.budgets import SpentBudget, budgets_on_curve
from qmedoid.model.storage.model_file import load_file
from qmedoid.model.table import TableModel
from qmedoid.spelling import number_of
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.score_file import estimate_in_file, score_file, top_in_file
from qmedoid.tables.writing import SUFFIXES


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
            "File to write, CSV or Parquet by its ending; - for CSV on a pipe; FOLDER/ for a file per input.",
            "--output", "-o", metavar="FILE",
        ),
    ]  # fmt: skip
    columns: Annotated[
        Names,
        option(RESULTS, "Columns to carry through, such as ids (repeatable, or with commas between).",
               metavar="COLUMNS"),
    ] = None  # fmt: skip
    prevalence: Annotated[
        Text,
        option(POINT, "Share of the positive class in this table, or 'estimate': probabilities are then for it.",
               metavar="SHARE"),
    ] = None  # fmt: skip
    safe_csv: Annotated[
        bool,
        option(OUTPUT, "Make texts safe that a spreadsheet would run as formulas.", "--safe-csv/--no-safe-csv"),
    ] = True
    force: Force = False
    top: Annotated[
        int | None, option(POINT, "Call this many records positive: the highest scores.", min=1, metavar="N")
    ] = None
    add: Annotated[
        Names,
        option(
            RESULTS,
            "Columns to add: probabilities, source, row, reasons, sentence, novelty, flags (repeatable, or with commas "
            "between).",
            metavar="WHAT",
        ),
    ] = None
    reasons: Annotated[
        int | None,
        option(RESULTS, "Add this many reasons: the columns that contribute most. Default: 3.", min=1, metavar="N"),
    ] = None
    explain: Annotated[
        int | None, option(RESULTS, "Add this many reasons, and each decision in words.", min=1, metavar="N")
    ] = None
    on_bad_row: Annotated[
        Literal["refuse", "flag", "skip"],
        option(READING, "If a row cannot be read: refuse the table, flag the row, or skip it.", metavar="WHAT"),
    ] = "refuse"
    bad_rows: Annotated[
        Text,
        option(READING, "File for the rows that are left out. Default: OUT with .bad-rows.csv.", metavar="FILE"),
    ] = None
    resume: Annotated[
        bool, option(LARGE, "Into a folder: score only files whose results are missing or out of date.", "--resume")
    ] = False
    shard: Annotated[
        Text, option(LARGE, "Into a folder: score the K-th of N parts of the input files.", metavar="K/N")
    ] = None
    dask: Annotated[
        Text,
        option(LARGE, "Into a folder: score files on Dask workers: local, or a scheduler such as tcp://host:8786.",
               metavar="WHERE"),
    ] = None  # fmt: skip


def run(options: ScoreOptions) -> None:
    """Score a table, say how many records were called what, and whether that was to be expected."""
    if is_folder(options.output):
        from qmedoid.cli.score_folder import run_folder

        run_folder(options)
        return
    asked = {"--resume": options.resume, "--shard": options.shard, "--dask": options.dask}
    given = next((name for name, value in asked.items() if value), None)
    if given is not None:
        raise ParameterError(
            f"{given} is for a folder as output, with a file for every input file: write it with a slash at its end, "
            f"such as -o out/. Got -o {options.output} instead."
        )
    if options.json and options.output == "-":
        raise ParameterError("--json prints where the results go with -o -: give a file to write instead.")
    bad_rows = _bad_rows_file(options)
    cut = asked_model(options)
    loaded = cut.model
    if options.output == "-":
        keeps("the rows on standard output are not all")
    with reading_bar("scoring") as progress:
        scored = score_file(
            loaded, options.table, options.output, carried=listed(options.columns), on_mismatch=options.on_mismatch,
            safe_csv=options.safe_csv, force=options.force, add=asked_additions(options),
            n_reasons=asked_reasons(options), on_bad_row=options.on_bad_row, bad_rows=bad_rows,
            # Text shows no estimate, and need not wait for it.
            prevalence=options.json and cut.found is None and can_estimate(loaded), on_progress=progress,
            **dialect_of(options),
        )  # fmt: skip
    keeps(f"{options.output} was written before")
    # How many of the highest scores there are says nothing of a drift.
    drift = None if options.top is not None else warn_of_drift(loaded, scored)
    warn_of_ties(options.top, scored.predicted[str(loaded.decision.classes[1])], scored.rows)
    scored.novelty.warn()
    if options.json:
        operating = loaded.decision.operating
        print_json(
            {
                "rows": scored.rows,
                "bad_rows": scored.bad_rows,
                "bad_rows_file": bad_rows,
                "predicted": scored.predicted,
                **alerts_dict(loaded, scored.predicted, scored.rows, drift),
                "operating": None if operating is None else operating.as_dict(),
                **cut.top_dict(options),
                "prevalence": prevalence_dict(loaded, cut.found or scored.prevalence),
                "novelty": scored.novelty.as_dict(),
                "output": options.output,
                "difference": scored.difference.as_dict(),
            }
        )
    elif sys.stderr.isatty() or options.output != "-":
        tell_scored(loaded, scored, drift, cut.found)
        tell_bad_rows(scored.bad_rows, bad_rows)
        cut.tell(options, scored.rows)


def is_folder(output: str) -> bool:
    """Whether an output is a folder, for a file per input; one that is called like a file needs a slash."""
    is_file = output in ("", "-") or output.lower().endswith(SUFFIXES)
    return output.endswith(("/", os.sep)) or (not is_file and Path(output).is_dir())


class AskedModel(NamedTuple):
    """The model with the cut that was asked for, what the cut is, and what the table and held-out rows say of it."""

    model: TableModel
    sha256: str
    prior: float | None
    point: Any
    log_odds: float | None
    found: PrevalenceEstimate | None
    top: SpentBudget | None

    def top_dict(self, options: ScoreOptions) -> dict[str, Any]:
        """What held-out rows show at the rate of the highest scores, for JSON."""
        return {} if options.top is None else {"top": None if self.top is None else self.top.as_dict()}

    def tell(self, options: ScoreOptions, rows: int) -> None:
        """Say where the cut is that was asked for."""
        decision = self.model.decision
        if options.top is not None and decision.operating is not None and rows:
            tell_top(decision.classes[1], options.top, decision.operating.threshold, self.top)
        elif self.point is not None and options.top is None:
            tell_cut(self.model)


def asked_model(options: ScoreOptions) -> AskedModel:
    """Load the model, and find the cut and the prevalence that are asked for, in the table if need be."""
    point, prevalence = asked_cut(options), _asked_prevalence(options.prevalence)
    if options.top is not None:
        point = None
    keep_pandas_away()
    file = load_file(options.model)
    prior, found = _prior(file.model, prevalence, options)
    log_odds = top = None
    if options.top is not None:
        log_odds, top = _top(at_cut(file.model, prior, None, None), options.top, options)
    return AskedModel(at_cut(file.model, prior, point, log_odds), file.sha256, prior, point, log_odds, found, top)


def dialect_of(options: ScoreOptions) -> dict[str, Any]:
    """How texts are read."""
    return {"delimiter": options.delimiter, "decimal": options.decimal}


def asked_reasons(options: ScoreOptions) -> int:
    """How many reasons are named at most."""
    return options.reasons or options.explain or 3


def asked_additions(options: ScoreOptions) -> list[str]:
    """What is added to the results; a number of reasons asks for reasons."""
    if options.reasons is not None and options.explain is not None:
        raise ParameterError("--reasons and --explain both say how many reasons are added: give one of them.")
    reasons = ["reasons"] if options.reasons is not None else []
    return [*listed(options.add), *reasons, *(["reasons", "sentence"] if options.explain is not None else [])]


def tell_bad_rows(count: int, where: str | None) -> None:
    """Say how many rows could not be read, and where they are."""
    if count:
        place = f"written to {where}" if where else "flagged, without results"
        tell(f"{count:,} {'row' if count == 1 else 'rows'} could not be read: {place}.")


def _asked_prevalence(text: str | None) -> float | str | None:
    asked = text if text in (None, "estimate") else number_of(str(text))
    if text is not None and asked is None:
        raise ParameterError(f"--prevalence must be 'estimate' or a share (0.05, 5%). Got {text!r} instead.")
    return asked


def _prior(
    model: TableModel, prevalence: float | str | None, options: ScoreOptions
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
        found = estimate_in_file(
            model, options.table, on_mismatch=options.on_mismatch, on_bad_row=options.on_bad_row,
            on_progress=progress, **dialect_of(options),
        )  # fmt: skip
    # Half a record at least: a class that does not occur has no odds.
    half = 0.5 / found.n_rows
    return min(max(found.prevalence, half), 1.0 - half), found


def _top(model: TableModel, count: int, options: ScoreOptions) -> tuple[float, SpentBudget | None]:
    """Log-odds above which the highest scores of the table lie, and what held-out rows show at this rate."""
    with reading_bar("looking for the highest scores") as progress:
        found = top_in_file(
            model, options.table, count, on_mismatch=options.on_mismatch, on_bad_row=options.on_bad_row,
            on_progress=progress, **dialect_of(options),
        )  # fmt: skip
    curve = None if model.training is None else model.training.curve
    expected = None
    if curve is not None and found.rows:
        (expected,) = budgets_on_curve([f"{100 * min(count / found.rows, 1.0)}%"], model.decision, curve)
    return found.log_odds, expected


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
