"""``qmedoid fit``: from a table to a saved model, with figures on rows that were held out."""

import math
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from qmedoid.cli.documents import FitDict, TimeLimitDict
from qmedoid.cli.fitting import (
    cross_validate,
    fit_dataset,
    held_out_report,
    judged_fold,
    make_classifier,
    notes_of_fit,
    share_or_file,
    with_time_limit,
)
from qmedoid.cli.in_passes import Passes, open_for_fit
from qmedoid.cli.options import (
    EVALUATION,
    LARGE,
    LEARNED,
    MODEL,
    OUTPUT,
    MaxRows,
    Number,
    PointOptions,
    Text,
    TrainingOptions,
    flag,
    option,
)
from qmedoid.cli.outcome import Areas, areas_of, fit_verdict, next_commands, print_comparison, print_outcome
from qmedoid.cli.output import be_quiet, keeps, note, print_json
from qmedoid.cli.report import report_fit
from qmedoid.cli.training_rows import open_source, read_dataset
from qmedoid.estimators.time_limit import TimeLimit, time_limit
from qmedoid.exceptions import ParameterError, some_of, warn
from qmedoid.model.model import Model
from qmedoid.model.storage.atomic import check_target
from qmedoid.model.storage.model_file import SUFFIX, save_model
from qmedoid.report.summary import check_output
from qmedoid.spelling import printable
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.dataset import Dataset, Folds
from qmedoid.tables.evaluating import report_notes
from qmedoid.tables.kinds import IDENTIFIERS
from qmedoid.tables.novelty import NoveltyReport

if TYPE_CHECKING:
    from qmedoid.estimators.comparison import Comparison
    from qmedoid.large.fit import InPasses

# Columns of one reason that are named one by one.
_MANY = 5


@dataclass(frozen=True, kw_only=True)
class FitOptions(PointOptions, TrainingOptions):
    """Learn from a table, say how good the model is, save it.

    A quarter of the rows is held out: the model never sees them, and they say how good it is. Two classes or more
    (multiclass). For imbalanced classes set the threshold, such as with --alert-rate.
    """

    most_used = ("target", "output", "positive", "alert_rate", "ignore", "test", "compare", "report")
    examples = (
        "qmedoid fit patients.csv --target outcome",
        "qmedoid fit payments.parquet --target fraud --alert-rate 1% --compare",
    )

    output: Annotated[
        Path | None, option(OUTPUT, "FILE", "Model file. Default: the table's name with .qmedoid.", "--output", "-o")
    ] = None
    test: Annotated[
        str, option(EVALUATION, "SHARE|FILE", "Held-out rows: a share of the rows, a file, or 0 for none.")
    ] = "0.25"
    valid: Annotated[
        Text,
        option(
            EVALUATION, "SHARE|FILE", "Rows to choose the settings by: a share or a file. Default: cross-validation."
        ),
    ] = None
    time_column: Annotated[
        Text, option(EVALUATION, "COLUMN", "Hold out the last rows by this column, which is not learned from.")
    ] = None
    weight_column: Annotated[
        Text, option(LEARNED, "COLUMN", "Sample weights: how many rows each row counts as; 0 leaves it out.")
    ] = None
    class_weight: Annotated[
        Literal["balanced"] | None,
        option(
            LEARNED,
            "balanced",
            "For imbalanced classes: weight the rows so that every class counts as much as the others.",
        ),
    ] = None
    paper: Annotated[
        bool, flag(MODEL, "Method and circuit of the paper, but for what docs/findings.md lists.", "--paper")
    ] = False
    refine: Annotated[
        str, option(MODEL, "WHEN", "When a trained circuit decides: auto, always, never, or a share of the records.")
    ] = "auto"
    raw_rows: Annotated[
        bool, flag(MODEL, "Keep medoids as readable rows in the model file.", "--raw-rows/--no-raw-rows")
    ] = True
    circuits: Annotated[bool, flag(OUTPUT, "Write the circuits too, as QPY and OpenQASM 3.", "--circuits")] = False
    compare: Annotated[
        bool, flag(EVALUATION, "Fit plain baselines to the same rows, and compare on the held-out ones.", "--compare")
    ] = False
    report: Annotated[
        Path | None, option(OUTPUT, "FILE", "Page to write: the model, and what it shows on the held-out rows.")
    ] = None
    cv: Annotated[
        int | None,
        option(
            EVALUATION,
            "FOLDS",
            "Also fit and evaluate this many folds of the training rows (cross-validation), 2 or more.",
            min=2,
        ),
    ] = None
    max_rows: MaxRows = None
    memory: Annotated[
        Text,
        option(LARGE, "SIZE", "Fit a table in passes that needs more memory than this, such as 2GB. Default: 4GB."),
    ] = None
    resume: Annotated[
        bool, flag(LARGE, "Go on where a fit in passes was stopped; keep what passes have finished.", "--resume")
    ] = False
    dask: Annotated[
        Text, option(LARGE, "WHERE", "Run passes on Dask workers: local, or a scheduler such as tcp://host:8786.")
    ] = None
    time_limit: Annotated[
        Number, option(LARGE, "SECONDS", "Leave out what would end later: trees, neighbors, circuit, baselines, folds.")
    ] = None
    quiet: Annotated[bool, flag(OUTPUT, "Print the name of the model file, and errors.", "--quiet", "-q")] = False
    verbose: Annotated[bool, flag(OUTPUT, "Print all figures, and tables of classes.", "--verbose", "-v")] = False


def default_output(table: str) -> Path:
    """The model file of a table in the current folder: ``heart.qmedoid`` for ``data/heart.csv.gz``."""
    name = Path(table).name.partition(".")[0]
    return Path((name if name and name != "-" and not set(name) & set("*?[]") else "model") + SUFFIX)


def run(options: FitOptions) -> None:
    """Fit, evaluate on held-out rows, save, compare, and print what came of it."""
    if options.time_limit is not None and not 0 < options.time_limit < math.inf:
        raise ParameterError(f"--time-limit must be a number of seconds above 0. Got {options.time_limit:g} instead.")
    if options.quiet:
        be_quiet()
    keep_pandas_away()
    began, output = time.perf_counter(), options.output or default_output(options.table)
    with time_limit(TimeLimit(options.time_limit or math.inf)) as limit:
        classifier = make_classifier(options)
        check_target(output)
        if options.report is not None:
            check_output(options.report)
        shares = share_or_file("--valid", options.valid), share_or_file("--test", options.test)
        with open_for_fit(options, output) as (source, passes):
            if passes is not None:
                _fit_in_passes(passes, classifier, options, output, limit, began)
                return
            parts = _split(options, read_dataset(options, source), *shares)
        _fit_whole(classifier, options, output, limit, began, *parts)


def _split(
    options: FitOptions, data: Dataset, *asked: float | str
) -> tuple[Dataset, Dataset | None, Dataset | None, Folds | None]:
    """Training, validation and held-out rows, and folds; what is wrong with any of them shows before the fit.

    Validation and held-out rows are shares of the rows, or another file.
    """
    valid, test = (share if isinstance(share, float) else 0.0 for share in asked)
    train, *others = data.split(valid, test, options.seed)
    for one in train.notes:
        note(one)
    for place, where in enumerate(asked):
        if isinstance(where, str):
            with open_source(options, where) as source:
                others[place] = read_dataset(options, source, data)
    folds = None if options.cv is None else train.folds(options.cv, options.seed)
    if options.compare and others[1] is None and folds is None:
        raise ParameterError("--compare judges by held-out rows, and --test 0 holds out none: add --cv 5.")
    return train, others[0], others[1], folds


def _fit_whole(
    classifier: Any,
    options: FitOptions,
    output: Path,
    limit: TimeLimit,
    began: float,
    train: Dataset,
    validation: Dataset | None,
    held_out: Dataset | None,
    folds: Folds | None,
) -> None:
    """Fit a table that fits in memory, and compare the model with others."""
    fit_began = time.perf_counter()
    fitted, model = fit_dataset(options, classifier, train, validation)
    fit_seconds = time.perf_counter() - fit_began
    # Seconds are printed and not kept: the same fit gives the same files, unless there was no time for a part.
    seconds = _seconds(began, limit)
    more: dict[str, Any] = {}
    metrics: dict[str, Any] = {"training_rows": len(train.table)}
    if held_out is not None:
        is_other = held_out.whole is not train.whole
        judges = "The table of --test is" if is_other else "The held-out rows are"
        metrics["held_out"], novelty, decided = held_out_report(model, held_out, judges)
        if not (options.json or options.quiet):  # which do not show them
            more["areas"] = areas_of(held_out.target.codes_in(model.decision.classes), decided)
        # Rows that were drawn by chance are like the others; those of another file, or of a later time, may not be.
        if is_other or options.time_column is not None:
            more["novelty"] = novelty
    model = _saved(with_time_limit(model, limit), metrics, options, output)
    # The fit has noted a class that is hardly ever called.
    notes = [*notes_of_fit(fitted), *_notes_of(model, options, seldom=False)]
    if options.compare and held_out is not None:
        from qmedoid.estimators.comparison import compared

        fold, lacking = judged_fold(model, train, fit_seconds, held_out, decided, options, limit)
        more["comparison"] = compared([fold])
        notes += lacking
    if folds is not None:
        more["crossed"], more["of_folds"], lacking = cross_validate(train, folds, validation, options, limit)
        notes += [note for note in lacking if note not in notes]
    _tell(model, options, output, limit, notes, seconds, None if held_out is None else held_out.table, **more)


def _fit_in_passes(
    passes: Passes, classifier: Any, options: FitOptions, output: Path, limit: TimeLimit, began: float
) -> None:
    """Fit a table in passes."""
    classifier.set_params(positive=options.positive)
    found = passes(classifier, limit)
    _seconds(began, limit)
    report = {} if found.report is None else {"held_out": found.report}
    model = _saved(found.model, {"training_rows": found.training_rows, **report}, options, output)
    notes = [*found.notes, *_notes_of(model, options, seldom=True)]
    held_out = found.held_out if len(found.held_out) else None
    _tell(model, options, output, limit, notes, round(time.perf_counter() - began, 1), held_out, passes=found)


def _seconds(began: float, limit: TimeLimit) -> float:
    """Seconds so far, with a warning where a time limit was too short."""
    seconds = round(time.perf_counter() - began, 1)
    if limit.is_up:
        warn(f"The fit took {seconds:g} s, and --time-limit is {limit.seconds:g}: what it needs at least takes longer.")
    return seconds


def _saved(model: Model, metrics: dict[str, Any], options: FitOptions, output: Path) -> Model:
    """The model with its figures, written to its file."""
    model, circuits = replace(model, metrics=metrics), None
    if options.circuits:
        from qmedoid.quantum import circuit_files

        circuits = circuit_files(model)
    save_model(model, output, circuits=circuits, raw_rows=options.raw_rows)
    keeps(f"{output} was written before")
    return model


def _tell(
    model: Model,
    options: FitOptions,
    output: Path,
    limit: TimeLimit,
    notes: list[str],
    seconds: float,
    held_out: Any,
    *,
    areas: Areas | None = None,
    novelty: NoveltyReport | None = None,
    comparison: "Comparison | None" = None,
    crossed: "Comparison | None" = None,
    of_folds: list[list[int]] | None = None,
    passes: "InPasses | None" = None,
) -> None:
    """Write the page that was asked for, and print what came of the fit."""
    if novelty is not None:
        novelty.warn()
    page = None if options.report is None else report_fit(options, output, held_out, comparison)
    sentences = fit_verdict(model, options, of_folds)
    if options.json:
        classes, operating = list(model.decision.classes), model.decision.operating
        document: FitDict = {
            "model": str(output),
            "method": model.method,
            "refinement": model.policy,
            "classes": classes,
            "positive": classes[1] if len(classes) == 2 else None,
            "columns": len(model.contract.columns),
            "left_out": dict(model.contract.left_out),
            "notes": notes,
            "verdict": sentences,
            "operating": None if operating is None else operating.as_dict(),
            "parameters": dict(model.parameters),
            "seconds": seconds,
            "training_rows": model.metrics["training_rows"],
            "novelty": None if novelty is None else novelty.found,
            "time_limit": _tell_limit(limit, model),
            "comparison": None if comparison is None else comparison.to_dict(),
            "cross_validation": None if crossed is None else crossed.to_dict(),
            "passes": None
            if passes is None
            else {
                "rows": passes.rows,
                "sampled": passes.sampled,
                "passes": [
                    {"name": name, "seconds": round(seconds, 3), "read": read} for name, seconds, read in passes.times
                ],
            },
            "report": None if page is None else {"path": str(page.path), "bytes": page.bytes},
        }
        if "held_out" in model.metrics:
            document["held_out"] = model.metrics["held_out"]
        print_json(document)
        return
    for one in notes:
        note(one)
    if options.quiet:
        print(printable(output))
        return
    print_outcome(model, options, sentences, areas or {}, in_passes=passes is not None)
    rows = f"{model.metrics['training_rows']:,} "
    if comparison is not None:
        on = f"on the {comparison.n_rows:,} test rows; all are fitted to the same {rows}rows."
        print_comparison(comparison, f"Compared with plain baselines {on}", verbose=options.verbose)
    if crossed is not None:
        mean = "mean ± standard error" if crossed.n_folds > 1 else "one fold"
        about = f"{crossed.n_folds} folds of the {rows}training rows, each fitted anew: {mean}"
        print_comparison(crossed, about, verbose=options.verbose)
    rows += "rows"
    if passes is not None:
        spent = ", ".join(f"{name} {seconds:.1f} s" for name, seconds, _ in passes.times)
        print(f"Passes over {passes.rows:,} rows: {spent}.")
        rows = f"{passes.sampled:,} of {passes.training_rows:,} training rows"
    print(
        f"Saved {printable(output)} ({seconds:g} s): method {model.method}, fitted to {rows} and "
        f"{(n_columns := len(model.contract.columns))} column{'s' * (n_columns != 1)}."
    )
    if page is not None:
        print(f"Report: {printable(page.path)} ({page.bytes:,} bytes).")
    print("\n".join(map(printable, next_commands(options, output))))


def _tell_limit(limit: TimeLimit, model: Model) -> TimeLimitDict | None:
    """What came of a time limit, fit for JSON; None without one."""
    if math.isinf(limit.seconds):
        return None
    # Of a fit that was taken up again, the model knows what an earlier run had no time for.
    known = model.parameters.get("time_limit", {}).get("left_out", [])
    left_out = list(dict.fromkeys([*known, *limit.left_out]))
    return {"seconds": limit.seconds, "left_out": left_out, "exceeded": limit.is_up}


def _notes_of(model: Model, options: FitOptions, *, seldom: bool) -> list[str]:
    """Notes about what a saved model shows."""
    notes = left_out_notes(model.contract.left_out)
    if "held_out" in model.metrics:
        notes += report_notes(model, model.metrics["held_out"], seldom=seldom)
        if options.weight_column is not None or options.class_weight is not None:
            notes.append("figures of held-out rows count each row once, without weights; expected ones are weighted")
    if model.n_neighbors:
        notes.append(
            f"the model keeps {model.n_neighbors:,} training rows as neighbors; with --method {model.method} "
            "--neighbors 0 it keeps none but the medoids"
        )
    return notes


def left_out_notes(left_out: Mapping[str, str]) -> list[str]:
    """A line for each column that was left out, or for all of one reason where they are many."""
    notes = []
    for why in dict.fromkeys(left_out.values()):
        # A reason that is a guess can be overruled.
        hint = " (--keep {} keeps it)" if why in IDENTIFIERS else ""
        names = [name for name, reason in left_out.items() if reason == why]
        if len(names) <= _MANY:
            quoted = [shlex.quote(name) if name.isprintable() else "NAME" for name in names]
            notes += [
                f"column {name!r} was left out: {why}{hint.format(text)}"
                for name, text in zip(names, quoted, strict=True)
            ]
        else:
            some = some_of([repr(name) for name in names], _MANY)
            notes.append(f"{len(names):,} columns were left out ({some}): {why}{hint.format('NAME')}")
    return notes
