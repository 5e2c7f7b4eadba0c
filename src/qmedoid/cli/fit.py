"""``qmedoid fit``: from a table to a saved model, with figures on rows that were held out."""

import math
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from qmedoid.arrays import Codes
from qmedoid.cli._compare import compare_fit, cross_validate, folds_of, print_comparison
from qmedoid.cli._fitting import (
    Fitting,
    Judged,
    OneFit,
    held_out_report,
    make_classifier,
    share_or_file,
    timed,
    with_time_limit,
)
from qmedoid.cli._in_passes import asked_passes, run_passes, tell_passes
from qmedoid.cli._outcome import areas_of, fit_verdict, next_commands, print_outcome
from qmedoid.cli._output import be_quiet, keeps, note, print_json, shown
from qmedoid.cli._training_rows import Labeled, asked_missing, asked_roles, read_labeled, row_weights, split_table
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
    option,
)
from qmedoid.estimators._time_limit import TimeLimit, time_limit
from qmedoid.exceptions import ParameterError, some_of, warn
from qmedoid.model.storage.atomic import check_target
from qmedoid.model.storage.model_file import SUFFIX, save_model
from qmedoid.model.table import TableModel
from qmedoid.quantum.circuit_export import circuit_files
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.cells import with_missing_values_out
from qmedoid.tables.evaluating import report_notes
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.novelty import NoveltyReport
from qmedoid.tables.roles import IDENTIFIERS

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
        Path | None,
        option(OUTPUT, "Model file. Default: the table's name with .qmedoid.", "--output", "-o", metavar="FILE"),
    ] = None
    test: Annotated[
        str, option(EVALUATION, "Held-out rows: a share of the rows, a file, or 0 for none.", metavar="SHARE|FILE")
    ] = "0.25"
    valid: Annotated[
        Text,
        option(EVALUATION, "Rows to choose the settings by: a share or a file. Default: cross-validation.",
               metavar="SHARE|FILE"),
    ] = None  # fmt: skip
    time_column: Annotated[
        Text,
        option(EVALUATION, "Hold out the last rows by this column, which is not learned from.", metavar="COLUMN"),
    ] = None
    weight_column: Annotated[
        Text,
        option(LEARNED, "Sample weights: how many rows each row counts as; 0 leaves it out.", metavar="COLUMN"),
    ] = None
    class_weight: Annotated[
        Literal["balanced"] | None,
        option(LEARNED, "For imbalanced classes: weight the rows so that every class counts as much as the others.",
               metavar="balanced"),
    ] = None  # fmt: skip
    paper: Annotated[
        bool, option(MODEL, "Method and circuit of the paper, but for what docs/findings.md lists.", "--paper")
    ] = False
    refine: Annotated[
        str,
        option(MODEL, "When a trained circuit decides: auto, always, never, or a share of the records.",
               metavar="WHEN"),
    ] = "auto"  # fmt: skip
    raw_rows: Annotated[
        bool, option(MODEL, "Keep medoids as readable rows in the model file.", "--raw-rows/--no-raw-rows")
    ] = True
    circuits: Annotated[bool, option(OUTPUT, "Write the circuits too, as QPY and OpenQASM 3.", "--circuits")] = False
    compare: Annotated[
        bool, option(EVALUATION, "Fit plain baselines to the same rows, and compare on the held-out ones.", "--compare")
    ] = False
    report: Annotated[
        Path | None,
        option(OUTPUT, "Page to write: the model, and what it shows on the held-out rows.", metavar="FILE"),
    ] = None
    cv: Annotated[
        int | None,
        option(EVALUATION, "Also fit and evaluate this many folds of the training rows (cross-validation), 2 or more.",
               min=2, metavar="FOLDS"),
    ] = None  # fmt: skip
    max_rows: MaxRows = None
    memory: Annotated[
        Text,
        option(LARGE, "Fit a table in passes that needs more memory than this, such as 2GB. Default: 4GB.",
               metavar="SIZE"),
    ] = None  # fmt: skip
    resume: Annotated[
        bool, option(LARGE, "Go on where a fit in passes was stopped; keep what passes have finished.", "--resume")
    ] = False
    dask: Annotated[
        Text,
        option(LARGE, "Run passes on Dask workers: local, or a scheduler such as tcp://host:8786.", metavar="WHERE"),
    ] = None
    time_limit: Annotated[
        Number,
        option(LARGE, "Leave out what would end later: trees, neighbors, circuit, baselines, folds.",
               metavar="SECONDS"),
    ] = None  # fmt: skip
    quiet: Annotated[bool, option(OUTPUT, "Print the name of the model file, and errors.", "--quiet", "-q")] = False
    verbose: Annotated[bool, option(OUTPUT, "Print all figures, and tables of classes.", "--verbose", "-v")] = False


def default_output(table: str) -> Path:
    """The model file of a table in the current folder: ``heart.qmedoid`` for ``data/heart.csv.gz``."""
    name = Path(table).name.partition(".")[0]
    return Path((name if name and name != "-" and not set(name) & set("*?[]") else "model") + SUFFIX)


class Asked(NamedTuple):
    """What is fitted, on which rows, and by which it is judged.

    The latter are new where they are not of the same draw, and called by what they are.
    """

    fitting: Fitting
    train: Labeled
    held_out: Labeled | None
    groups: Any
    folds: list[tuple[Codes, Codes]] | None
    is_new: bool
    judges: str


def run(options: FitOptions) -> None:
    """Fit, evaluate on held-out rows, save, compare, and print what came of it."""
    if options.time_limit is not None and not 0 < options.time_limit < math.inf:
        raise ParameterError(f"--time-limit must be a number of seconds above 0. Got {options.time_limit:g} instead.")
    if options.quiet:
        be_quiet()
    with time_limit(TimeLimit(options.time_limit or math.inf)) as limit:
        _run(options, limit)


def _run(options: FitOptions, limit: TimeLimit) -> None:
    keep_pandas_away()
    began, output = time.perf_counter(), options.output or default_output(options.table)
    classifier = make_classifier(options)
    check_target(output)
    if options.report is not None:
        check_report(options.report)
    with asked_passes(options, output) as passes:
        if passes is not None:
            _run_in_passes(passes, classifier, options, output, limit, began)
            return
    asked = _asked(options)
    classifier.set_params(roles=asked.fitting.roles, date_order=options.date_order)
    train, held_out = asked.train, asked.held_out
    (fitted, model), fit_seconds = timed(lambda: asked.fitting.fit(classifier, train, asked.groups))
    # Seconds are printed and not kept: the same fit gives the same files, unless there was no time for a part.
    seconds = round(time.perf_counter() - began, 1)
    _warn_if_up(limit, seconds)
    model = with_time_limit(model, limit)
    metrics: dict[str, Any] = {"training_rows": len(train.table)}
    novelty: NoveltyReport | None = None
    judged: Judged | None = None
    if held_out is not None:
        metrics["held_out"], found, judged = held_out_report(model, held_out, asked.judges)
        novelty = found if asked.is_new else None
    model = replace(model, metrics=metrics)
    circuits = circuit_files(model) if options.circuits else None
    save_model(model, output, circuits=circuits, raw_rows=options.raw_rows)
    keeps(f"{output} was written before")
    notes = _notes(fitted, model, options)
    comparison, crossed, of_folds = None, None, None
    if options.compare and judged is not None:
        comparison, lacking = compare_fit(OneFit(model, train, fit_seconds, judged), options, limit)
        notes += lacking
    if asked.folds is not None:
        crossed, of_folds, lacking = cross_validate(train, asked.folds, asked.fitting, limit)
        notes += [note for note in lacking if note not in notes]
    if novelty is not None:
        novelty.warn()
    page = _report(options, output, None if held_out is None else held_out.table, comparison)
    sentences = fit_verdict(model, options, of_folds)
    if options.json:
        _print_document(
            model, output, notes, seconds, page, sentences,
            novelty=None if novelty is None else novelty.as_dict(),
            time_limit=_tell_limit(limit, model),
            comparison=None if comparison is None else comparison.to_dict(),
            cross_validation=None if crossed is None else crossed.to_dict(),
        )  # fmt: skip
        return
    _print_notes(notes)
    if options.quiet:
        print(shown(output))
        return
    print_outcome(model, options, sentences, areas_of(judged))
    if comparison is not None:
        rows = f"{comparison.n_rows:,} test rows"
        print_comparison(
            comparison,
            f"Compared with plain baselines on the {rows}; all are fitted to the same {len(train.table):,} rows.",
            verbose=options.verbose,
        )
    if crossed is not None:
        mean = "mean ± standard error" if crossed.n_folds > 1 else "one fold"
        print_comparison(
            crossed,
            f"{crossed.n_folds} folds of the {len(train.table):,} training rows, each fitted anew: {mean}",
            verbose=options.verbose,
        )
    _print_end(model, options, output, page, seconds, f"{len(train.table):,} rows")


def _print_document(
    model: TableModel,
    output: Path,
    notes: list[str],
    seconds: float,
    page: Any,
    sentences: list[str],
    **more: Mapping[str, Any] | None,
) -> None:
    """The JSON document of a fit."""
    optional = dict.fromkeys(("novelty", "time_limit", "comparison", "cross_validation", "passes"))
    classes = list(model.decision.classes)
    print_json(
        {"model": str(output), "method": model.deciders[0], "refinement": model.refinement, "classes": classes,
         "positive": classes[1] if len(classes) == 2 else None, "columns": len(model.contract.columns),
         "left_out": dict(model.contract.left_out), "notes": notes, "verdict": sentences,
         "operating": None if model.decision.operating is None else model.decision.operating.as_dict(),
         "parameters": dict(model.parameters), "seconds": seconds, **model.metrics, **optional, **more,
         "report": None if page is None else {"path": str(page.path), "bytes": page.bytes}}
    )  # fmt: skip


def _print_notes(notes: list[str]) -> None:
    for one in notes:
        note(one)


def _print_end(model: TableModel, options: FitOptions, output: Path, page: Any, seconds: float, rows: str) -> None:
    """Print what was written, and what can be done with it."""
    print(
        f"Saved {shown(output)} ({seconds:g} s): method {model.deciders[0]}, fitted to {rows} and "
        f"{len(model.contract.columns)} columns."
    )
    if page is not None:
        print(f"Report: {shown(page.path)} ({page.bytes:,} bytes).")
    print("\n".join(map(shown, next_commands(options, output))))


def _warn_if_up(limit: TimeLimit, seconds: float) -> None:
    if limit.is_up:
        warn(f"The fit took {seconds:g} s, and --time-limit is {limit.seconds:g}: what it needs at least takes longer.")


def _tell_limit(limit: TimeLimit, model: TableModel) -> dict[str, Any] | None:
    """What came of a time limit, fit for JSON; None without one."""
    if math.isinf(limit.seconds):
        return None
    # Of a fit that was taken up again, the model knows what an earlier run had no time for.
    known = model.parameters.get("time_limit", {}).get("left_out", [])
    left_out = list(dict.fromkeys([*known, *limit.left_out]))
    return {"seconds": limit.seconds, "left_out": left_out, "exceeded": limit.is_up}


def _run_in_passes(
    passes: Any, classifier: Any, options: FitOptions, output: Path, limit: TimeLimit, began: float
) -> None:
    """Fit a table in passes, save the model, and print what came of it."""
    classifier.set_params(roles=dict(passes.settings.roles), date_order=options.date_order, positive=options.positive)
    found = run_passes(passes, classifier, options, limit)
    _warn_if_up(limit, round(time.perf_counter() - began, 1))
    metrics: dict[str, Any] = {"training_rows": found.training_rows}
    if found.report is not None:
        metrics["held_out"] = found.report
    model = replace(found.model, metrics=metrics)
    circuits = circuit_files(model) if options.circuits else None
    save_model(model, output, circuits=circuits, raw_rows=options.raw_rows)
    if passes.folder is not None:
        passes.folder.remove()
    keeps(f"{output} was written before")
    seconds = round(time.perf_counter() - began, 1)
    notes = [*found.notes, *_notes_of(model, options, seldom=True)]
    page = _report(options, output, found.held_out if len(found.held_out) else None, None)
    sentences = fit_verdict(model, options, None)
    if options.json:
        _print_document(
            model, output, notes, seconds, page, sentences, passes=tell_passes(found),
            time_limit=_tell_limit(limit, model),
        )  # fmt: skip
        return
    _print_notes(notes)
    if options.quiet:
        print(shown(output))
        return
    print_outcome(model, options, sentences, {}, in_passes=True)
    spent = ", ".join(f"{one.name} {one.seconds:.1f} s" for one in found.times)
    print(f"Passes over {found.rows:,} rows: {spent}.")
    rows = f"{found.sampled:,} of {found.training_rows:,} training rows"
    _print_end(model, options, output, page, seconds, rows)


def check_report(path: Path) -> None:
    """Refuse a page that cannot be written, before the fit."""
    from qmedoid.report.summary import check_output

    check_output(path)


def _report(options: FitOptions, model: Path, held_out: Any, comparison: Any) -> Any:
    """The page that was asked for."""
    if options.report is None:
        return None
    from qmedoid.cli.report import report_fit

    baselines = None
    if comparison is not None:
        from qmedoid.estimators.report_fits import comparison_table

        baselines = comparison_table(comparison, f"Fits of the same training rows, on the {comparison.n_rows:,} rows "
                                     "that were held out.")  # fmt: skip
    return report_fit(options, model, held_out, baselines)


def _asked(options: FitOptions) -> Asked:
    """Read and split the tables; what is wrong with any of them, or with the folds, shows before the fit."""
    roles = asked_roles(options)
    valid, test = share_or_file("--valid", options.valid), share_or_file("--test", options.test)
    data = read_labeled(options, roles)
    if options.weight_column is not None:
        row_weights(data, options.weight_column)  # what is wrong with it shows before the fit
    # How columns are read is settled on all rows, as `qmedoid check` shows it; numbers and levels are of training rows.
    missing = asked_missing(options, data.table.column_names)
    inferred = infer_columns(
        data.table, skip={options.target}, roles=data.roles, date_order=options.date_order, missing=missing
    )
    inferred.check_any()
    tables = (with_missing_values_out(one, inferred.columns) for one in (data.table, data.read))
    data = data._replace(table=next(tables), read=next(tables))
    shares = [share if isinstance(share, float) else 0.0 for share in (valid, test)]
    learnt = [column.name for column in inferred.columns]
    train, validation, held_out, groups = split_table(data, options, learnt, *shares)
    validation = read_labeled(options, roles, valid) if isinstance(valid, str) else validation
    held_out = read_labeled(options, roles, test) if isinstance(test, str) else held_out
    folds = None if options.cv is None else folds_of(train, learnt, options)
    if options.compare and held_out is None and folds is None:
        raise ParameterError("--compare judges by held-out rows, and --test 0 holds out none: add --cv 5.")
    # Rows that were drawn by chance are like the others; those of another file, or of a later time, may not be.
    is_new = isinstance(test, str) or options.time_column is not None
    judges = "The table of --test is" if isinstance(test, str) else "The held-out rows are"
    return Asked(Fitting(options, roles, inferred, validation), train, held_out, groups, folds, is_new, judges)


def _notes(fitted: Any, model: TableModel, options: FitOptions) -> list[str]:
    """Notes about columns, classes, held-out rows and neighbors."""
    # The fit has noted a class that is hardly ever called.
    notes = _notes_of(model, options, seldom=False)
    return [note for note in fitted.notes_ if note not in fitted._left_out_notes] + notes


def _notes_of(model: TableModel, options: FitOptions, *, seldom: bool) -> list[str]:
    """Notes about what a saved model shows."""
    notes = left_out_notes(model.contract.left_out)
    if "held_out" in model.metrics:
        notes += report_notes(model, model.metrics["held_out"], seldom=seldom)
        if options.weight_column is not None or options.class_weight is not None:
            notes.append("figures of held-out rows count each row once, without weights; expected ones are weighted")
    if model.n_neighbors:
        notes.append(
            f"the model keeps {model.n_neighbors:,} training rows as neighbors; with --method {model.deciders[0]} "
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
