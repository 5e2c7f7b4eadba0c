"""``qmedoid fit``: from a table to a saved model, with figures on rows that were held out.

A table that is larger than the memory of a fit is fitted in passes, which can be taken up again.
"""

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from qmedoid._version import __version__
from qmedoid.cli.fitting import (
    cross_validate,
    dataset_settings,
    evaluated_fold,
    fit_dataset,
    held_out_report,
    held_together,
    make_classifier,
    read_dataset,
)
from qmedoid.cli.options import (
    EVALUATION,
    LARGE,
    LEARNED,
    MODEL,
    OUTPUT,
    MaxRows,
    NextRows,
    Number,
    PointOptions,
    Text,
    TrainingOptions,
    command,
    flag,
    option,
)
from qmedoid.cli.outcome import tell_fit
from qmedoid.cli.output import Said, note, progress_bar
from qmedoid.exceptions import ParameterError, warn
from qmedoid.model.model import Model
from qmedoid.model.storage.atomic import check_target
from qmedoid.model.storage.model_file import SUFFIX, model_bytes, read_model, save_model
from qmedoid.report.summary import check_output
from qmedoid.spelling import number_of
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.dataset import Dataset, Folds, check_group_type, check_names
from qmedoid.tables.source import TableSource, open_table

if TYPE_CHECKING:
    from qmedoid.estimators.recipes import TimeLimit
    from qmedoid.large.fit import InPasses

SMALL_TEXT = 2**22
"""Bytes of a text that is fitted as a whole, packed or not, without a look at its rows."""
# Notes about files that are shown one by one.
_MOST_NOTES = 10
_CHANGES_NO_MODEL = ("output", "report", "json", "memory", "resume", "dask", "table")
Passes = Callable[[Any, "TimeLimit"], "InPasses"]
"""Fits a classifier in passes."""


@dataclass(frozen=True, kw_only=True)
class FitOptions(PointOptions, TrainingOptions):
    """Options of a fit."""

    output: Annotated[
        Path | None, option(OUTPUT, "FILE", "Model file. Default: the table's name with .qmedoid.", "--output", "-o")
    ] = None
    test: Annotated[
        str, option(EVALUATION, "SHARE|FILE", "Held-out rows: a share of the rows, a file, or 0 for none.")
    ] = "0.25"
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
    rows: NextRows = None
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


def default_output(table: str) -> Path:
    """The model file of a table in the current folder: ``heart.qmedoid`` for ``data/heart.csv.gz``."""
    name = Path(table).name.partition(".")[0]
    return Path((name if name and name != "-" and not set(name) & set("*?[]") else "model") + SUFFIX)


@command(
    "qmedoid fit patients.csv --target outcome",
    "qmedoid fit payments.parquet --target fraud --alert-rate 1% --compare",
    most_used=("target", "output", "positive", "alert_rate", "ignore", "test", "compare", "report"),
)
def run(options: FitOptions) -> None:
    """Learn from a table, say how good the model is, save it.

    A quarter of the rows is held out: the model never sees them, and they say how good it is. Two classes or more
    (multiclass). For imbalanced classes set the threshold, such as with --alert-rate.
    """
    if options.time_limit is not None and not 0 < options.time_limit < math.inf:
        raise ParameterError(f"--time-limit must be a number of seconds above 0. Got {options.time_limit:g} instead.")
    from qmedoid.estimators.recipes import time_limit

    keep_pandas_away()
    began, output = time.perf_counter(), options.output or default_output(options.table)
    with time_limit(options.time_limit or math.inf) as limit:
        classifier = make_classifier(options)
        check_target(output)
        if options.report is not None:
            check_output(options.report)
        test = _share_or_file(options.test)
        with _open_for_fit(options, output) as (source, passes):
            if passes is not None:
                _fit_in_passes(passes, classifier, options, output, limit, began)
                return
            data = read_dataset(options, source)
            parts, together, known = _split(options, data, test), None, None
            if data.repeats:
                options, chosen, together, known = held_together(options, data, test, limit)
                parts = parts if chosen is data else _split(options, chosen, test)
        _fit_whole(classifier, options, output, limit, began, *parts, known, {"together": together})


def _split(options: FitOptions, data: Dataset, test: float | str) -> tuple[Dataset, Dataset | None, Folds | None]:
    """Training rows, held-out ones (a share of the rows, or another file) and folds.

    What is wrong with any of them shows before the fit.
    """
    train, held_out = data.split(0.0 if isinstance(test, str) else test, options.seed)
    for one in train.notes:
        note(one)
    if isinstance(test, str):
        with open_table(test, delimiter=options.delimiter, decimal=options.decimal) as source:
            held_out = read_dataset(options, source, data)
    folds = None if options.cv is None else train.folds(options.cv, options.seed)
    if options.compare and held_out is None and folds is None:
        raise ParameterError("--compare uses held-out rows, and --test 0 holds out none: add --cv 5.")
    return train, held_out, folds


def _fit_whole(
    classifier: Any,
    options: FitOptions,
    output: Path,
    limit: "TimeLimit",
    began: float,
    train: Dataset,
    held_out: Dataset | None,
    folds: Folds | None,
    known: tuple[Any, Model, float] | None,
    more: dict[str, Any],
) -> None:
    """Fit a table that fits in memory, unless that fit is known, and compare the model with others."""
    if known is None:
        fit_began = time.perf_counter()
        fitted, model = fit_dataset(options, classifier, train)
        fit_seconds = time.perf_counter() - fit_began
    else:
        fitted, model, fit_seconds = known
    # Seconds are printed and not kept: the same fit gives the same files, unless there was no time for a part.
    more["seconds"] = _seconds(began, limit)
    metrics: dict[str, Any] = {"training_rows": len(train.table)}
    if held_out is not None:
        is_other = held_out.whole is not train.whole
        subject = "The table of --test is" if is_other else "The held-out rows are"
        metrics["held_out"], novelty, decided = held_out_report(model, held_out, subject)
        more |= {"held_out": held_out.table, "known": (held_out.target.codes_in(model.decision.classes), decided)}
        # Rows that were drawn by chance are like the others; those of another file, or of a later time, may not be.
        if is_other or options.time_column is not None:
            more["novelty"] = novelty
    model = _saved(_with_time_limit(model, limit), metrics, options, output)
    notes = _notes_of_fit(fitted)
    if options.compare and held_out is not None:
        from qmedoid.estimators.comparison import compared

        fold, lacking = evaluated_fold(model, train, fit_seconds, held_out, decided, options, limit)
        more["comparison"] = compared([fold])
        notes += lacking
    if folds is not None:
        more["crossed"], more["confusion"], lacking = cross_validate(train, folds, options, limit)
        notes += [note for note in lacking if note not in notes]
    tell_fit(model, options, output, limit, notes, **more)


def _fit_in_passes(
    passes: Passes, classifier: Any, options: FitOptions, output: Path, limit: "TimeLimit", began: float
) -> None:
    """Fit a table in passes."""
    classifier.set_params(positive=options.positive)
    found = passes(classifier, limit)
    _seconds(began, limit)
    report = {} if found.report is None else {"held_out": found.report}
    model = _saved(found.model, {"training_rows": found.training_rows, **report}, options, output)
    held_out = found.held_out if len(found.held_out) else None
    seconds = round(time.perf_counter() - began, 1)
    tell_fit(model, options, output, limit, found.notes, seconds=seconds, held_out=held_out, passes=found)


def _seconds(began: float, limit: "TimeLimit") -> float:
    """Seconds so far, with a warning where a time limit was too short."""
    seconds = time.perf_counter() - began
    if seconds > limit.seconds:
        warn(
            f"The fit took {seconds:.1f} s, and --time-limit is {limit.seconds:g}: what it needs at least takes longer."
        )
    return round(seconds, 1)


def _saved(model: Model, metrics: dict[str, Any], options: FitOptions, output: Path) -> Model:
    """The model with its figures, written to its file."""
    model = replace(model, metrics=metrics)
    save_model(model, output, raw_rows=options.raw_rows)
    Said.kept = f"{output} was written before"
    return model


@contextmanager
def _open_for_fit(options: FitOptions, output: Path) -> Iterator[tuple[TableSource, Passes | None]]:
    """The table of a fit, and what fits it in passes; None where it is to be read as a whole."""
    is_requested = options.memory is not None or options.resume or options.dask is not None
    if options.table == "-" and is_requested:
        raise ParameterError("A pipe can be read once, and a fit in passes reads its table several times: give files.")
    with open_table(options.table, delimiter=options.delimiter, decimal=options.decimal) as source:
        # How many rows a text has is not known before it is read.
        is_small = source.n_rows is None and (source.n_bytes or 0) <= SMALL_TEXT
        if is_requested or not (is_small or options.table == "-" or options.max_rows is not None):
            with _passes(options, output, source, is_small=is_small) as passes:
                yield source, passes
        else:
            yield source, None


@contextmanager
def _passes(options: FitOptions, output: Path, source: TableSource, *, is_small: bool) -> Iterator[Passes | None]:
    """What fits a table in passes; summaries of finished partitions are removed once the model is there."""
    from qmedoid.large.fit import PassFit, dataset_digest
    from qmedoid.large.passes import count_rows
    from qmedoid.large.runner import SummaryFolder, file_runner, file_table
    from qmedoid.large.split import DEFAULT_MEMORY, memory_bytes, needed_bytes, sizes_for, width_of

    memory, width = DEFAULT_MEMORY if options.memory is None else memory_bytes(options.memory), width_of(source.schema)
    sizes_for(memory, width)  # too little memory is refused before anything is read
    if source.n_rows is not None:
        is_small = needed_bytes(source.n_rows, width) <= memory
    if not is_small and options.max_rows is not None and needed_bytes(options.max_rows, width) > memory:
        raise ParameterError(
            f"A fit of --max-rows {options.max_rows:,} rows needs about {needed_bytes(options.max_rows, width):,} "
            "bytes: give more --memory or fewer rows, or leave --max-rows out for a fit in passes."
        )
    if is_small or options.max_rows is not None:
        yield None
        return
    table = file_table(options.table, delimiter=options.delimiter, decimal=options.decimal)
    settings = dataset_settings(options, source.names)
    check_names(source.names, source.description, [options.target, *settings.all_roles])
    if settings.groups is not None:
        check_group_type(settings.groups, source.schema.field(settings.groups).type)
    folder = SummaryFolder(output.with_name(output.name + ".parts")) if options.resume else None
    if folder is not None:
        Said.kept = f"finished partitions are in {folder.path}, and the same command goes on from there"
    with ExitStack() as stack:
        bar = stack.enter_context(progress_bar())
        task = bar.add_task("pass: count", total=None)

        def show(name: str, rows: int, total: int | None) -> None:
            bar.update(task, description=f"pass: {name}", completed=rows, total=total)

        results = []
        if options.dask is not None:
            from qmedoid.exceptions import require_dask

            require_dask("--dask")
            from qmedoid.large.workers import connected, results_by

            results.append(results_by(stack.enter_context(connected(options.dask))))
        runner = file_runner(table, *results, folder=folder, on_rows=show)
        counted = count_rows(runner, options.target, settings.missing.get(options.target, ()))
        if needed_bytes(counted.n_rows, width) <= memory:
            if folder is not None:
                folder.remove()
                Said.kept = "nothing was written"
            yield None
            return
        how: dict[str, Any] = {"test": _test_share(options), "is_requested": options.test != type(options).test}
        for one in counted.notes[:_MOST_NOTES]:
            note(one)
        if len(counted.notes) > _MOST_NOTES:
            note(f"{len(counted.notes) - _MOST_NOTES:,} more such notes about the files are left out.")
        given = {name: value for name, value in vars(options).items() if name not in _CHANGES_NO_MODEL}

        def fit(classifier: Any, limit: "TimeLimit") -> "InPasses":
            def fit_sample(sampled: Dataset) -> tuple[Any, list[str]]:
                # The fit of the sample is kept as well where passes are.
                key = f"fit-{dataset_digest(sampled, __version__, sorted(given.items()))}"
                known = None if folder is None else folder.get_bytes(key)
                if known is not None:
                    head, _, content = known.partition(b"\n")
                    return read_model(content).model, json.loads(head)
                fitted, model = fit_dataset(options, classifier, sampled)
                model, notes = _with_time_limit(model, limit), _notes_of_fit(fitted)
                if folder is not None:
                    folder.put_bytes(key, json.dumps(notes).encode() + b"\n" + model_bytes(model))
                return model, notes

            asked = PassFit(classifier, runner, counted, settings, **how, memory=memory, seed=options.seed)
            return asked.run(fit_sample)

        yield fit
        if folder is not None:
            folder.remove()


def _test_share(options: FitOptions) -> float:
    """The share of the rows that is held out; what a fit in passes has not is refused."""
    test = _share_or_file(options.test)
    if isinstance(test, str):
        raise ParameterError(
            "The table is fitted in passes, and --test is a share of its rows then: leave it out, and run 'qmedoid "
            f"evaluate MODEL {test}' on the model."
        )
    lacking = ("compare", "cv", "weight_column", "class_weight", "paper")
    given = next((name for name in lacking if getattr(options, name) not in (None, False)), None)
    if given is not None:
        raise ParameterError(
            f"--{given.replace('_', '-')} is for tables that fit in memory, and this one is fitted in passes: leave it "
            "out, give more --memory, or fit a sample with --max-rows."
        )
    return test


def _share_or_file(value: str) -> float | str:
    """A share of the rows as a number, or the name of a file."""
    share = number_of(value)
    if share is not None and not 0 <= share < 1:
        raise ParameterError(
            f"--test must be a file or a share of at least 0 and below 1, such as 0.25 or 25%. Got {value} instead."
        )
    return value if share is None else share


def _with_time_limit(model: Model, limit: "TimeLimit") -> Model:
    """A model that says what there was no time for."""
    if not limit.left_out:
        return model
    left_out = {"seconds": limit.seconds, "left_out": list(limit.left_out)}
    return replace(model, parameters={**model.parameters, "time_limit": left_out})


def _notes_of_fit(fitted: Any) -> list[str]:
    """The notes of a fitted classifier, but for those on columns that were left out."""
    from qmedoid.estimators.raw_tables import left_out_note

    left_out = {left_out_note(name, why) for name, why in fitted.model_.contract.left_out.items()}
    return [one for one in fitted.notes_ if one not in left_out]
