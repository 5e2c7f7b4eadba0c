"""``qmedoid fit``: from a table to a saved model, with figures on rows that were held out."""

import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa

from qmedoid.cli._output import print_json, print_metrics, print_operating, tell
from qmedoid.cli._training_rows import Labeled, asked_roles, read_labeled, row_weights, split_table
from qmedoid.cli.options import FitOptions
from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.model.table import TableModel
from qmedoid.storage.atomic import check_target
from qmedoid.storage.model_file import SUFFIX, save_model
from qmedoid.tables._thousands import Grouped, grouped_columns
from qmedoid.tables.arrow import keep_pandas_away
from qmedoid.tables.cells import read
from qmedoid.tables.difference import compare_columns
from qmedoid.tables.encode import note_grouped
from qmedoid.tables.evaluating import labeled_report, report_notes
from qmedoid.tables.issues import Issues
from qmedoid.tables.kinds import Inferred, infer_columns, with_levels_of
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally
from qmedoid.tables.roles import IDENTIFIERS, ROLES
from qmedoid.tables.row_hashes import row_hashes
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.targets import label_codes

# Columns of one reason that are named one by one.
_MANY = 5


def default_output(table: str) -> Path:
    """The model file of a table in the current folder: ``heart.qmedoid`` for ``data/heart.csv.gz``."""
    name = Path(table).name.partition(".")[0]
    return Path((name if name and name != "-" and not set(name) & set("*?[]") else "model") + SUFFIX)


def run(options: FitOptions) -> None:
    """Fit, evaluate on held-out rows, save, and print what came of it."""
    keep_pandas_away()
    began, output, roles = time.perf_counter(), options.output or default_output(options.table), asked_roles(options)
    valid, test = _share_or_file("--valid", options.valid), _share_or_file("--test", options.test)
    classifier = make_classifier(options).set_params(roles=roles, date_order=options.date_order)
    check_target(output)
    data = read_labeled(options, roles)
    if options.weight_column is not None:
        row_weights(data, options.weight_column)  # what is wrong with it shows before the fit
    # How columns are read is settled on all rows, as `qmedoid check` shows it; numbers and levels are of training rows.
    inferred = infer_columns(data.table, skip={options.target}, roles=data.roles, date_order=options.date_order)
    inferred.check_any()
    shares = [share if isinstance(share, float) else 0.0 for share in (valid, test)]
    learnt = [column.name for column in inferred.columns]
    train, validation, held_out, groups = split_table(data, options, learnt, *shares)
    # Other files are read before the fit, so that what is wrong with them shows before it.
    validation = read_labeled(options, roles, valid) if isinstance(valid, str) else validation
    held_out = read_labeled(options, roles, test) if isinstance(test, str) else held_out
    fitted, model = _fit(classifier, train, validation, options, inferred, groups)
    # Seconds are printed and not kept: the same fit gives the same files.
    seconds = round(time.perf_counter() - began, 1)
    metrics: dict[str, Any] = {"training_rows": len(train.table)}
    novelty: NoveltyReport | None = None
    if held_out is not None:
        metrics["held_out"], found = _held_out(model, held_out)
        # Rows that were drawn by chance are like the others; those of another file, or of a later time, may not be.
        novelty = found if isinstance(test, str) or options.time_column is not None else None
    model = replace(model, metrics=metrics)
    save_model(model, output, circuits=options.circuits, raw_rows=options.raw_rows)
    notes = [note for note in fitted.notes_ if note not in fitted._left_out_notes]
    notes += left_out_notes(model.contract.left_out)
    if held_out is not None:
        # The fit has noted a class that is hardly ever called.
        notes += report_notes(model, metrics["held_out"], seldom=False)
        if options.weight_column is not None or options.class_weight is not None:
            notes.append("figures of held-out rows count each row once, without weights; expected ones are weighted")
    if model.n_neighbors:
        notes.append(
            f"the model keeps {model.n_neighbors:,} training rows as neighbors; with --method {model.deciders[0]} "
            "--neighbors 0 it keeps none but the medoids"
        )
    if novelty is not None:
        novelty.warn()
    if options.json:
        print_json(
            {"model": str(output), "method": model.deciders[0], "refinement": model.refinement,
             "classes": list(model.decision.classes), "positive": fitted.positive_,
             "columns": len(model.contract.columns),
             "left_out": dict(model.contract.left_out), "notes": notes,
             "operating": None if model.decision.operating is None else model.decision.operating.as_dict(),
             "parameters": dict(model.parameters), "seconds": seconds, **metrics,
             "novelty": None if novelty is None else novelty.as_dict()}
        )  # fmt: skip
        return
    for note in notes:
        if note not in fitted._warned:  # those are on standard error already
            tell(f"note: {note}")
    if "held_out" in metrics:
        print_metrics(metrics["held_out"], _title(metrics["held_out"]))
    if model.decision.operating is not None:
        print_operating(model.decision.operating, model.decision.classes[1])
    print(
        f"{model.deciders[0]} model of {len(train.table):,} rows and {len(model.contract.columns)} columns "
        f"saved in {output} ({seconds:g} s)."
    )


def _title(report: Mapping[str, Any]) -> str:
    """What the figures on held-out rows are about; that rows are new is said where it was checked."""
    about, seen = f"held out: {report['rows']:,} rows", report["seen"]
    if seen is None:
        return about
    if seen["rows"]:
        return f"{about}, {seen['rows']:,} of them with the cells of training rows"
    if seen["checked"] < report["rows"]:
        return f"{about}; {seen['checked']:,} were checked, and none was seen in fitting"
    return f"{about}, never seen in fitting"


def make_classifier(options: FitOptions) -> Any:
    """The classifier that the options describe; wrong values are refused before anything is read."""
    from qmedoid.estimators._parameters import RULE_CONSTRAINTS, check_parameters
    from qmedoid.estimators.medoid import MedoidClassifier
    from qmedoid.estimators.progress import TrainingProgress

    settings: dict[str, Any] = {
        "refine": _word_or_number(options.refine),
        "operating_point": None if options.operating_point is None else _word_or_number(options.operating_point),
        "random_state": options.seed,
        "class_weight": options.class_weight,
    }
    rules = {name: getattr(options, name) for name in RULE_CONSTRAINTS}
    asked = {name: value for name, value in rules.items() if value is not None}
    check_parameters("fit", asked, {name: RULE_CONSTRAINTS[name] for name in asked})
    given = [name for name in ("operating_point", *asked) if name in asked or settings[name] is not None]
    if len(given) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in given[:2])
        raise ParameterError(f"{first} and {second} both say where to cut: give one of them.")
    settings["operating_point"] = asked or settings["operating_point"]
    method = asked_method(options.method, options.medoids, options.neighbors)
    if options.paper and method != "auto":
        raise ParameterError(
            "--paper fits the nearest-medoid method of the paper: leave --method, --medoids and --neighbors out."
        )
    made = MedoidClassifier.paper(**settings) if options.paper else MedoidClassifier(method=method, **settings)
    check_parameters("fit", made.get_params(deep=False), made._constraints)
    # Without a terminal nobody sees the progress.
    return made.set_callbacks(TrainingProgress()) if sys.stderr is not None and sys.stderr.isatty() else made


def asked_method(method: str, medoids: int | None, neighbors: str | None) -> Any:
    """The method that was asked for."""
    asked: dict[str, Any] = {} if medoids is None else {"n_medoids": medoids}
    if neighbors is not None:
        asked["n_neighbors"] = int(neighbors) if neighbors.isdecimal() else neighbors
    if not asked:
        return method
    from qmedoid.estimators._parameters import check_parameters
    from qmedoid.methods.registry import estimator_class

    # So many medoids, or none beside them, is a small model: evidence alone.
    kind = estimator_class("evidence" if method == "auto" else method)
    for name in asked:
        if name not in kind().get_params():
            raise ParameterError(
                f"--{name.removeprefix('n_')} is of --method evidence and sum, and {method} was asked for."
            )
    made = kind(**asked)
    check_parameters(kind.__name__, made.get_params(deep=False), made._constraints)
    return made


def _word_or_number(text: str) -> str | float:
    """A number where the text is one; words are checked with the classifier's parameters."""
    try:
        return float(text)
    except ValueError:
        return text


def _share_or_file(option: str, value: str | None) -> float | str:
    """A share of the rows as a number, or the name of a file; None and 0 are no rows at all."""
    share = 0.0 if value is None else _word_or_number(value)
    if isinstance(share, float) and not 0 <= share < 1:
        raise ParameterError(f"{option} must be a file or a share of at least 0 and below 1. Got {value} instead.")
    return share


def _fit(
    classifier: Any, train: Labeled, valid: Labeled | None, options: FitOptions, inferred: Inferred, groups: Any
) -> tuple[Any, TableModel]:
    fitted = classifier.set_params(positive=_positive(train, options))
    fitted._settled = inferred
    validation = {} if valid is None else _validation(train, valid, options)
    labels = np.array(train.target.to_pylist())
    weights = None if options.weight_column is None else row_weights(train, options.weight_column)
    fitted.fit(train.table.drop_columns([options.target]), labels, groups=groups, sample_weight=weights, **validation)
    model = fitted.table_model()
    left_out = dict(model.contract.left_out)
    if options.time_column is not None:
        left_out[options.time_column] = "it orders the rows in time"
    if options.group_column is not None:
        left_out[options.group_column] = "it says which rows belong together"
    if options.weight_column is not None:
        left_out[options.weight_column] = "it weighs the rows"
    # A level that only rows held out have is encoded as one not seen, and the file that was fitted on can be scored.
    columns = with_levels_of(model.contract.columns, train.read)
    contract = replace(model.contract, columns=columns, target=options.target, left_out=left_out)
    training = model.training
    if training is not None and options.time_column is not None:
        times = train.table[options.time_column]
        from qmedoid.tables._text_kinds import rows_per_day

        training = replace(training, days=rows_per_day(times, options.time_column, options.date_order))
    # Medoids are numbered by their rows in the file, not among the training rows.
    hybrids = cast("tuple[Any, ...]", model.models)
    models = tuple(replace(one, method=one.method.with_row_numbers(train.rows)) for one in hybrids)
    # The options that were given, for the model card; of the table its name.
    others = ("output", "json", *ROLES)
    asked = {name: value for name, value in vars(options).items() if value is not None and name not in others}
    asked |= {"table": Path(options.table).name, "roles": fitted.roles}
    parameters = {"command": asked, **model.parameters}
    return fitted, replace(model, contract=contract, models=models, parameters=parameters, training=training)


def _validation(train: Labeled, valid: Labeled, options: FitOptions) -> dict[str, Any]:
    """Validation rows with the labels of the training rows, however their file spells them."""
    labels = tuple(dict.fromkeys(train.target.to_pylist()))
    codes = label_codes(valid.target, labels)
    # Against all others together, a class that is new is one of the others.
    rest = next((code for code, label in enumerate(labels) if label != _positive(train, options)), 0)
    if options.positive is not None and len(labels) > 2:
        codes = np.where(codes < 0, rest, codes)
    if (codes < 0).any():
        unknown = valid.target.filter(pa.array(codes < 0)).unique().to_pylist()
        raise DataError(
            f"The validation rows have classes that the training rows do not: {some_of(list(map(repr, unknown)))}."
        )
    return {"X_val": valid.table.drop_columns([options.target]), "y_val": np.array(labels)[codes]}


def left_out_notes(left_out: Mapping[str, str]) -> list[str]:
    """A line for each column that was left out, or for all of one reason where they are many."""
    notes = []
    for why in dict.fromkeys(left_out.values()):
        # A reason that is a guess can be overruled.
        hint = " (--keep {} keeps it)" if why in IDENTIFIERS else ""
        names = [name for name, reason in left_out.items() if reason == why]
        if len(names) <= _MANY:
            notes += [f"column {name!r} was left out: {why}{hint.format(shlex.quote(name))}" for name in names]
        else:
            some = some_of([repr(name) for name in names], _MANY)
            notes.append(f"{len(names):,} columns were left out ({some}): {why}{hint.format('NAME')}")
    return notes


def _positive(data: Labeled, options: FitOptions) -> Any:
    """The positive class as the table spells it."""
    if options.positive is None:
        return None
    labels = sorted(set(data.target.to_pylist()), key=str)
    code = label_codes(pa.array([options.positive]), tuple(labels))[0]
    if code < 0:
        raise ParameterError(
            f"--positive {options.positive!r} is no class in {options.target!r}, which holds "
            f"{', '.join(map(repr, labels[:10]))}."
        )
    return labels[code]


def _held_out(model: TableModel, data: Labeled) -> tuple[dict[str, Any], NoveltyReport]:
    """What the model shows on held-out rows, and how unlike the training rows they are.

    What breaks the contract there is said and filled in.
    """
    issues, tally = Issues(), NoveltyTally(model)
    difference = compare_columns(model.contract, data.table.schema)
    table = difference.renamed(data.table)
    decided, _ = decide_batch(model, table, issues, tally)
    # Columns in which every point may part thousands, by their names in training.
    grouped = {
        difference.renames.get(name, name): Grouped.of(example, read(data.table[name], "number").values)
        for name, example in grouped_columns(data.table).items()
    }
    note_grouped(issues, model, grouped)
    replace(difference, issues=issues).raise_or_warn("warn")
    report = labeled_report(model, label_codes(data.target, model.decision.classes), decided, row_hashes(model, table))
    return report, tally.report().with_rows(data.rows)
