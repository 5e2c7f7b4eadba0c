"""From options to a dataset, a classifier, a fitted model with its report, and folds of ``--cv``."""

import math
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.cli.documents import HeldTogetherDict, HeldTogetherFiguresDict
from qmedoid.cli.options import TableOptions, cut_of
from qmedoid.cli.output import note, progress_bar
from qmedoid.exceptions import DataError, InterruptedWarning, ParameterError, QMedoidWarning, warn
from qmedoid.metrics.texts import figure_text
from qmedoid.model.model import Decisions, Model
from qmedoid.spelling import number_of
from qmedoid.tables.dataset import Dataset, DatasetSettings, Folds, check_roles, read_roles_file
from qmedoid.tables.difference import Issues, compare_columns
from qmedoid.tables.documents import EvaluationDict
from qmedoid.tables.encode import row_hashes
from qmedoid.tables.evaluating import labeled_report
from qmedoid.tables.kinds import with_levels_of
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally
from qmedoid.tables.roles import ROLES, Role, check_missing, quoted
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.source import TableSource

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions
    from qmedoid.estimators.comparison import ComparedFold, Comparison
    from qmedoid.estimators.documents import LossDifferenceDict
    from qmedoid.estimators.recipes import TimeLimit

# Options that change no model.
_OF_THE_CALL = ("output", "report", "json", "compare", "cv", "time_limit", "resume", "dask", *ROLES)

MOST_ROWS = 5_000_000
"""Rows that are read as a whole at most, where no number is asked for."""
ALONE = "none"
"""The group column that is none, unless the table has a column of this name."""
# The share of the rows that shows what groups change, where no share is held out.
_SHARE = 0.25
# Standard errors beyond which a difference is no chance.
_ERRORS = 1.96
_COLUMNS = {"groups": "group_column", "weights": "weight_column", "times": "time_column"}


def dataset_settings(options: TableOptions, names: Sequence[str]) -> DatasetSettings:
    """What the options say about a table with these columns."""
    roles: list[tuple[str, Mapping[str, Role]]] = []
    if options.roles is not None:
        roles.append((options.roles.name, read_roles_file(options.roles)))
    roles += [(f"--{role}", dict.fromkeys(getattr(options, role) or (), role)) for role in ROLES]
    named = {use: getattr(options, option, None) for use, option in _COLUMNS.items()}
    alone = named["groups"] == "" or (named["groups"] == ALONE and ALONE not in names)
    if alone:
        named["groups"] = None
    return DatasetSettings(
        target=options.target,
        roles=check_roles(*roles, target=options.target),
        date_order=options.date_order,
        missing=_missing_values(options, names),
        takes_numbers=getattr(options, "classes", False) or getattr(options, "positive", None) is not None,
        alone=alone,
        **named,
    )


def _missing_values(options: TableOptions, names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Values that are read as missing, by column; a name may hold an equals sign itself."""
    if not options.missing:
        return {}
    found: dict[str, list[str]] = {}
    for text in options.missing:
        places = [place for place, sign in enumerate(text) if sign == "="]
        if not places:
            raise ParameterError(f"--missing takes a column and a value, such as Cholesterol=0. Got {text!r} instead.")
        name, value = next(
            ((text[:place], text[place + 1 :]) for place in reversed(places) if text[:place] in names),
            (text[: places[0]], text[places[0] + 1 :]),
        )
        found.setdefault(name, []).append(value)
    return check_missing("--missing", found, names=names)


def read_dataset(options: TableOptions, source: TableSource, like: Dataset | None = None) -> Dataset:
    """The rows of an open table that have a class, with notes on how they were read."""
    settings = dataset_settings(options, source.names) if like is None else like.settings
    if like is None and settings.groups == ALONE:
        note(f"--group-column {ALONE} is a column of this table, and groups its rows: '' looks for no groups.")
    rng = np.random.default_rng(options.seed)
    data = Dataset.read(source, settings, options.max_rows or MOST_ROWS, rng, like)
    for one in data.notes:
        note(one)
    return data


def make_classifier(options: "FitOptions", *, shown: bool = True) -> Any:
    """The classifier that the options describe; wrong values are refused before anything is read.

    Its fit is `shown` on a terminal.
    """
    from qmedoid.estimators.medoid import MedoidClassifier
    from qmedoid.estimators.parameters import check_parameters

    refine = number_of(options.refine)
    settings: dict[str, Any] = {
        "refine": options.refine if refine is None else refine,
        "operating_point": cut_of(options),
        "random_state": options.seed,
        "class_weight": options.class_weight,
    }
    method = parse_method(options.method, options.medoids, options.neighbors)
    if options.paper and method != "auto":
        raise ParameterError(
            "--paper fits the nearest-medoid method of the paper: leave --method, --medoids and --neighbors out."
        )
    made = MedoidClassifier.paper(**settings) if options.paper else MedoidClassifier(method=method, **settings)
    check_parameters("fit", made.get_params(deep=False), made._constraints)
    # Without a terminal nobody sees the progress.
    is_seen = shown and sys.stderr is not None and sys.stderr.isatty()
    return made.set_callbacks(FitBar()) if is_seen else made


class FitBar:
    """A callback of scikit-learn that shows how far the tasks of a fit are."""

    def __init__(self) -> None:
        self._bar, self._tasks = progress_bar(), dict[Any, Any]()

    def setup(self, estimator: Any, context: Any) -> None:  # noqa: ARG002
        """Show the bars."""
        self._bar.start()

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:  # noqa: ARG002
        """Add a bar for a task of a known number of steps."""
        if context.max_subtasks:
            self._tasks[context] = self._bar.add_task(context.task_name, total=context.max_subtasks)

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:  # noqa: ARG002
        """Advance the bar of the task that a step is part of, and remove that of a task."""
        if context.parent in self._tasks:
            self._bar.advance(self._tasks[context.parent])
        if context in self._tasks:
            self._bar.remove_task(self._tasks.pop(context))

    def teardown(self, estimator: Any, context: Any) -> None:  # noqa: ARG002
        """Remove the bars."""
        self._bar.stop()


def parse_method(method: str, medoids: int | None, neighbors: str | None) -> Any:
    """The requested method; medoids or neighbors by number make it an estimator."""
    from qmedoid.estimators.parameters import check_parameters
    from qmedoid.estimators.recipes import RECIPES, recipe_class

    if method not in ("auto", *RECIPES):
        raise ParameterError(f"The methods are auto, {', '.join(sorted(RECIPES))}. Got {method!r} instead.")
    given: dict[str, Any] = {} if medoids is None else {"n_medoids": medoids}
    if neighbors is not None:
        given["n_neighbors"] = int(neighbors) if neighbors.isdecimal() else neighbors
    if not given:
        return method
    # A number of medoids, or of neighbors, describes a small model: evidence alone.
    kind = recipe_class("evidence" if method == "auto" else method)
    for name in given:
        if name not in kind().get_params():
            raise ParameterError(
                f"--{name.removeprefix('n_')} is of --method evidence and sum, and {method} was asked for."
            )
    made = kind(**given)
    check_parameters(kind.__name__, made.get_params(deep=False), made._constraints)
    return made


def fit_dataset(options: "FitOptions", classifier: Any, data: Dataset) -> tuple[Any, Model]:
    """The fitted classifier, and its model as it is saved, with the names of all levels in the file."""
    roles, date_order = dict(data.settings.roles), options.date_order
    positive = None
    if options.positive is not None:
        positive = data.target.classes.tolist()[data.target.place_of(options.positive)]
    fitted = classifier.set_params(positive=positive, roles=roles, date_order=date_order)
    try:
        fitted.fit(data)
    except MemoryError as error:
        n_rows, n_columns = data.table.num_rows, data.table.num_columns - 1
        size, is_wide = f"{n_rows:,} rows of {n_columns:,} columns", n_columns > n_rows
        remedy = "Leave out columns with --ignore NAME." if is_wide else "Fit on fewer rows with --max-rows."
        raise DataError(f"There is not enough memory to fit {size}. {remedy}") from error
    model: Model = fitted.model_
    # A level that only held-out rows have is encoded as one not seen, and the file that was fitted can be scored.
    columns = with_levels_of(model.contract.columns, data.table if data.whole is None else data.whole)
    training = model.training
    if training is not None and data.times is not None:
        from qmedoid.tables.text_kinds import rows_per_day

        training = replace(training, rows_per_day=rows_per_day(data.times))
    # The options that were given, for the model card; of the table its name.
    asked = {name: value for name, value in vars(options).items() if value is not None and name not in _OF_THE_CALL}
    asked |= {"table": Path(options.table).name, "roles": roles}
    contract, parameters = replace(model.contract, columns=columns), {"command": asked, **model.parameters}
    return fitted, replace(model, contract=contract, parameters=parameters, training=training)


def held_together(
    options: "FitOptions", data: Dataset, test: float | str, limit: "TimeLimit"
) -> tuple["FitOptions", Dataset, HeldTogetherDict | None, tuple[Any, Model, float] | None]:
    """Fit with rows held out together that were found to belong together, and one by one, and choose.

    Returns the options and rows to go on with, what was found, and the fit to the training rows of these, with its
    seconds, if `test` is a share of the rows. Where a column is learned from, and of runs, rows stay as they are; a
    warning says so.
    """
    found, name = data.repeats[0], data.repeats[0].column
    if options.time_column is not None:  # who is held out by time may well be known
        warn(f"{found.message()}.")
        return options, data, None, None
    is_near, is_learned = found.kind == "near_rows", name in {column.name for column in data.kinds.columns}
    may_use = is_near or not (is_learned or found.kind == "runs")
    share = _SHARE if isinstance(test, str) or not test else test
    known, figures = dict[bool, tuple[Any, Model, float]](), dict[bool, HeldTogetherFiguresDict]()
    losses = dict[bool, "LossDifferenceDict"]()
    try:
        together = data if is_near else data.grouped(found)
        apart = replace(data, settings=replace(data.settings, alone=True)) if is_near else data
        for is_together in (may_use, not may_use):
            expected = next((seconds for *_, seconds in known.values()), 0.0)
            if known and not limit.allows("the figures with and without groups", expected):
                break
            with warnings.catch_warnings():
                if known:
                    warnings.simplefilter("ignore", QMedoidWarning)
                changed = replace(options, group_column=name) if is_together and name is not None else options
                rows = together if is_together else apart
                fitted = _fitted_parts(changed, rows, share, data.rows, found.groups)
                known[is_together], figures[is_together], losses[is_together] = fitted
    except ValueError as error:
        warn(f"{found.message()}. What that changes is not known: {error}")
        return options, data, None, None
    difference = None
    if len(losses) == 2:
        some, others = losses[True], losses[False]
        difference = some["mean"] - others["mean"] > _ERRORS * math.hypot(some["error"], others["error"])
    used = is_near or (may_use and difference is not False)
    told: HeldTogetherDict = {
        "kind": found.kind,
        "column": name,
        "groups": int(found.groups.max()) + 1,
        "used": used,
        "together": figures.get(True),
        "one_by_one": figures.get(False),
        "beyond_errors": difference,
    }
    (note if used or difference is False else warn)(_held_together_text(*found.words(), told))
    if used and name is not None:
        options, data = replace(options, group_column=name), together
    return options, data, told, known.get(used) if share == test else None


def _fitted_parts(
    options: "FitOptions", data: Dataset, test: float, numbers: Codes, groups: Codes
) -> tuple[tuple[Any, Model, float], HeldTogetherFiguresDict, "LossDifferenceDict"]:
    """A fit to training rows, with figures and losses of the held-out ones; of the groups of all rows one is a draw."""
    from qmedoid.estimators.comparison import paired_difference, row_losses

    train, held_out = data.split(test, options.seed)
    if held_out is None:
        raise DataError("no row can be held out")
    began = time.perf_counter()
    fitted, model = fit_dataset(options, make_classifier(options), train)
    seconds = time.perf_counter() - began
    codes = held_out.target.codes_in(model.decision.classes)
    rows = np.flatnonzero(codes >= 0)
    decided, _ = decide_batch(model, held_out.table.take(pa.array(rows)), Issues())
    losses = row_losses((model.decision.probabilities(decided.scores), 0.0), codes[rows])
    together = groups[np.searchsorted(numbers, held_out.rows[rows])]
    figures: HeldTogetherFiguresDict = {
        "accuracy": float(np.mean(decided.codes == codes[rows])),
        "log_loss": float(losses.mean()),
        "rows": len(rows),
    }
    difference = paired_difference(losses, np.zeros(len(rows)), np.unique(together, return_inverse=True)[1])
    return (fitted, model, seconds), figures, difference


def _held_together_text(found: str, advice: str, told: HeldTogetherDict) -> str:
    """What was found, what it changes, and what is done."""
    together, alone, name = told["together"], told["one_by_one"], told["column"]
    said, option = [found], "" if name is None else f" with --group-column {quoted(name)}"
    if together is not None and alone is not None:
        some, others = (
            f"accuracy is {figure_text(one['accuracy'])} and log-loss {figure_text(one['log_loss'])}"
            for one in (together, alone)
        )
        said.append(f"Where they are held out together, {some}; where they are not, {others}")
    if told["used"]:
        said.append(f"They are held out together{', as' * bool(option)}{option}; --group-column {ALONE} undoes that")
    elif told["beyond_errors"] is False:
        said.append(
            f"That is within the errors: they are not held out together{', as they are' * bool(option)}{option}"
        )
    else:
        said.append(f"The figures of this fit are those of rows that are known: {advice}")
    return ". ".join(said) + "."


def held_out_report(
    model: Model, data: Dataset, what: str = "The held-out rows are"
) -> tuple[EvaluationDict, NoveltyReport, Decisions]:
    """What the model shows on held-out rows, how unlike the training rows they are, and its decisions about them.

    What breaks the contract there is said and filled in.
    """
    issues, tally = Issues(), NoveltyTally()
    difference = compare_columns(model.contract, data.table.schema)
    table = data.table
    decided, _ = decide_batch(model, table, issues, tally)
    replace(difference, issues=issues).raise_or_warn("warn", subject=f"{what} not like the training rows")
    codes = data.target.codes_in(model.decision.classes)
    report = labeled_report(model, codes, decided, row_hashes(model, table))
    return report, tally.report(model, data.rows), decided


def evaluated_fold(
    model: Model,
    train: Dataset,
    seconds: float,
    held_out: Dataset,
    decided: Decisions,
    options: "FitOptions",
    limit: "TimeLimit",
) -> tuple["ComparedFold", list[str]]:
    """Outcomes on held-out rows of our model and, if asked for, of the baselines; and sentences on those that lack.

    Counted are rows whose class is one of the model.
    """
    from qmedoid.estimators.comparison import OURS, run_baselines

    own = held_out.target.codes_in(model.decision.classes)
    known = np.flatnonzero(own >= 0)
    own, table, columns = own[known], held_out.table.take(pa.array(known)), model.contract.columns
    outcomes, notes = {OURS: (model.decision.probabilities(decided.scores)[known], seconds)}, list[str]()
    if options.compare:
        codes = train.target.codes_in(model.decision.classes)
        found, notes = run_baselines(columns, train.table, table, codes, options.seed, limit.allows)
        outcomes |= found
    return (outcomes, own, held_out.take(known).together()), notes


def cross_validate(
    train: Dataset, folds: Folds, options: "FitOptions", limit: "TimeLimit"
) -> tuple["Comparison | None", list[list[int]] | None, list[str]]:
    """Fit and evaluate every fold for which there is time; the notes of its fits were given for that of all rows.

    Returns figures, the confusion matrix of all folds, and notes.
    """
    from qmedoid.estimators.comparison import compared

    unknown = 0
    done, confusion, notes = list["ComparedFold"](), list[list[list[int]]](), list[str]()
    with progress_bar() as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", QMedoidWarning)
        warnings.simplefilter("always", InterruptedWarning)
        task, began = bar.add_task(f"{len(folds)} folds", total=len(folds)), limit.clock()
        for place, (fit, rows) in enumerate(folds, 1):
            # A fold takes as long as the one before it.
            if not limit.allows(f"folds {place} to {len(folds)} of --cv", limit.clock() - began):
                break
            began = limit.clock()
            part = train.take(fit)
            _, model = fit_dataset(options, make_classifier(options, shown=False), part)
            seconds = limit.clock() - began
            others = train.take(rows)
            report, _, decided = held_out_report(model, others)
            fold, lacking = evaluated_fold(model, part, seconds, others, decided, options, limit)
            done.append(fold)
            confusion.append(report["confusion"])
            unknown += len(rows) - len(fold[1])
            notes += [note for note in lacking if note not in notes]
            bar.update(task, completed=place)
    if unknown:
        notes.append(f"{unknown:,} rows of --cv are of a class that the rows to fit of their fold lack: left out.")
    return (compared(done), np.sum(confusion, axis=0).tolist(), notes) if done else (None, None, notes)
