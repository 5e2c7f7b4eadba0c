"""The fits of ``qmedoid fit``: from options to a classifier, to a model and its report, and to folds of ``--cv``."""

import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.cli._output import progress_bar
from qmedoid.cli._training_rows import Labeled, given_row_groups, row_weights, time_order
from qmedoid.cli.options import PointOptions
from qmedoid.estimators._time_limit import TimeLimit
from qmedoid.exceptions import DataError, InterruptedWarning, ParameterError, QMedoidWarning, some_of
from qmedoid.geometry.row_groups import equal_rows, group_folds, row_groups
from qmedoid.model.model import Model
from qmedoid.schema import renumbered
from qmedoid.spelling import did_you_mean, number_of
from qmedoid.tables.cells import cell_codes, read
from qmedoid.tables.difference import compare_columns
from qmedoid.tables.documents import EvaluationDict
from qmedoid.tables.encode import note_grouped
from qmedoid.tables.evaluating import labeled_report
from qmedoid.tables.issues import Issues
from qmedoid.tables.kinds import Inferred, with_levels_of
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally
from qmedoid.tables.roles import ROLES, Role
from qmedoid.tables.row_hashes import row_hashes
from qmedoid.tables.scoring import decide_batch
from qmedoid.tables.targets import label_codes
from qmedoid.tables.text_types import grouped_columns, median_size

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions
    from qmedoid.estimators.comparison import ComparedFold, Comparison

# Classes that are named where another was asked for.
_CLASSES = 10
# Progress of a fold when our fit is done.
_FIT_SHARE = 0.9
# Options that change no model.
_OF_THE_CALL = ("output", "report", "json", "quiet", "verbose", "compare", "cv", "time_limit", "resume", "dask", *ROLES)


def make_classifier(options: "FitOptions", *, shown: bool = True) -> Any:
    """The classifier that the options describe; wrong values are refused before anything is read.

    Its fit is `shown` on a terminal.
    """
    from qmedoid.estimators._parameters import check_parameters
    from qmedoid.estimators.medoid import MedoidClassifier
    from qmedoid.estimators.progress import TrainingProgress

    settings: dict[str, Any] = {
        "refine": word_or_number(options.refine),
        "operating_point": asked_point("fit", options),
        "random_state": options.seed,
        "class_weight": options.class_weight,
    }
    method = asked_method(options.method, options.medoids, options.neighbors)
    if options.paper and method != "auto":
        raise ParameterError(
            "--paper fits the nearest-medoid method of the paper: leave --method, --medoids and --neighbors out."
        )
    made = MedoidClassifier.paper(**settings) if options.paper else MedoidClassifier(method=method, **settings)
    check_parameters("fit", made.get_params(deep=False), made._constraints)
    # Without a terminal nobody sees the progress.
    is_seen = shown and sys.stderr is not None and sys.stderr.isatty()
    return made.set_callbacks(TrainingProgress()) if is_seen else made


def asked_point(command: str, options: PointOptions) -> Any:
    """The operating point that options ask for; None where they ask for none."""
    from qmedoid.estimators._parameters import RULE_CONSTRAINTS, check_parameters

    rules = {name: getattr(options, name) for name in RULE_CONSTRAINTS}
    asked = {name: value for name, value in rules.items() if value is not None}
    check_parameters(command, asked, {name: RULE_CONSTRAINTS[name] for name in asked})
    given = [*([] if options.operating_point is None else ["operating_point"]), *asked]
    if len(given) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in given[:2])
        raise ParameterError(f"{first} and {second} both say where to cut: give one of them.")
    return asked or (None if options.operating_point is None else word_or_number(options.operating_point))


def asked_method(method: str, medoids: int | None, neighbors: str | None) -> Any:
    """The method that was asked for."""
    asked: dict[str, Any] = {} if medoids is None else {"n_medoids": medoids}
    if neighbors is not None:
        asked["n_neighbors"] = int(neighbors) if neighbors.isdecimal() else neighbors
    if not asked:
        return method
    from qmedoid.estimators._parameters import check_parameters
    from qmedoid.estimators.recipes import recipe_class

    # So many medoids, or none beside them, is a small model: evidence alone.
    kind = recipe_class("evidence" if method == "auto" else method)
    for name in asked:
        if name not in kind().get_params():
            raise ParameterError(
                f"--{name.removeprefix('n_')} is of --method evidence and sum, and {method} was asked for."
            )
    made = kind(**asked)
    check_parameters(kind.__name__, made.get_params(deep=False), made._constraints)
    return made


def word_or_number(text: str) -> str | float:
    """A number where the text is one, or a percentage; words are checked with the classifier's parameters."""
    number = number_of(text)
    return text if number is None else number


def share_or_file(option: str, value: str | None) -> float | str:
    """A share of the rows as a number, or the name of a file; None and 0 are no rows at all."""
    share = 0.0 if value is None else word_or_number(value)
    if isinstance(share, float) and not 0 <= share < 1:
        raise ParameterError(
            f"{option} must be a file or a share of at least 0 and below 1, such as 0.25 or 25%. Got {value} instead."
        )
    return share


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """What a call returns, and the seconds that it took."""
    began = time.perf_counter()
    made = run()
    return made, time.perf_counter() - began


def with_time_limit(model: Model, limit: TimeLimit) -> Model:
    """A model that says what there was no time for."""
    if not limit.left_out:
        return model
    left_out = {"seconds": limit.seconds, "left_out": list(limit.left_out)}
    return replace(model, parameters={**model.parameters, "time_limit": left_out})


class Judged(NamedTuple):
    """Rows under the names of a model's contract, with their class codes, and its probabilities and margins of them.

    The confusion matrix counts its decisions about the rows that have a class.
    """

    table: pa.Table
    codes: Codes
    probabilities: Array
    margins: Array
    confusion: list[list[int]]

    def known(self) -> "Judged":
        """The rows whose class is one of the model."""
        rows = np.flatnonzero(self.codes >= 0)
        table, codes, margins = self.table.take(rows), self.codes[rows], self.margins[rows]
        return Judged(table, codes, self.probabilities[rows], margins, self.confusion)


class _Pieces:
    """A scikit-learn callback that reports every piece of a fit as a share of the task that it is part of."""

    max_propagation_depth: int | None = None

    def __init__(self, report: Callable[[float], None]) -> None:
        self._report = report

    def setup(self, estimator: Any, context: Any) -> None:
        """Nothing is shown before the first piece."""

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """A piece is reported when it ends."""

    def on_fit_task_end(self, estimator: Any, context: Any, *, metadata: Any = None) -> None:  # noqa: ARG002
        """Report a piece."""
        if context.parent is not None and context.parent.max_subtasks:
            self._report(1.0 / context.parent.max_subtasks)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing was begun."""


class OneFit(NamedTuple):
    """A model, the rows it was fitted to, how long that took, and rows it was not fitted to."""

    model: Model
    train: Labeled
    seconds: float
    judged: Judged


class Fitting(NamedTuple):
    """What every fit of a command has in common: options and roles, how columns are read, and validation rows.

    `totals` are the rows of every label in the whole table, where the rows of a fit are a sample of it.
    """

    options: "FitOptions"
    roles: dict[str, Role]
    inferred: Inferred
    validation: Labeled | None
    totals: Mapping[str, int] | None = None

    def fit(self, classifier: Any, train: Labeled, groups: Any, weights: Array | None = None) -> tuple[Any, Model]:
        """The fitted classifier, and its model as it is saved: under the names of the file and with its row numbers."""
        options = self.options
        fitted = classifier.set_params(positive=_positive(train, options))
        fitted._settled, fitted._totals = self.inferred, self.totals
        validation = {} if self.validation is None else _validation(train, self.validation, options)
        labels = np.array(train.target.to_pylist())
        table = train.table.drop_columns([options.target])
        if options.weight_column is not None:
            weights = row_weights(train, options.weight_column)
        try:
            fitted.fit(table, labels, groups=groups, sample_weight=weights, **validation)
        except MemoryError as error:
            size = f"{table.num_rows:,} rows of {table.num_columns:,} columns"
            is_wide = table.num_columns > table.num_rows
            remedy = "Leave out columns with --ignore NAME." if is_wide else "Fit on fewer rows with --max-rows."
            raise DataError(f"There is not enough memory to fit {size}. {remedy}") from error
        model: Model = fitted.model_
        left_out = dict(model.contract.left_out)
        if options.time_column is not None:
            left_out[options.time_column] = "it orders the rows in time"
        if options.group_column is not None:
            left_out[options.group_column] = "it says which rows belong together"
        if options.weight_column is not None:
            left_out[options.weight_column] = "it weighs the rows"
        # A level that only held-out rows have is encoded as one not seen, and the file that was fitted can be scored.
        columns = with_levels_of(model.contract.columns, train.read)
        contract = replace(model.contract, columns=columns, target=options.target, left_out=left_out)
        training = model.training
        if training is not None and options.time_column is not None:
            times = train.table[options.time_column]
            from qmedoid.tables.text_kinds import rows_per_day

            training = replace(training, days=rows_per_day(times, options.time_column, options.date_order))
        # Medoids are numbered by their rows in the file, not among the training rows.
        model = renumbered(model, train.rows)
        # The options that were given, for the model card; of the table its name.
        asked = {name: value for name, value in vars(options).items() if value is not None and name not in _OF_THE_CALL}
        asked |= {"table": Path(options.table).name, "roles": fitted.roles}
        parameters = {"command": asked, **model.parameters}
        return fitted, replace(model, contract=contract, parameters=parameters, training=training)

    def again(self, train: Labeled, judged: Labeled, progress: Callable[[float], None]) -> OneFit:
        """Fit other rows in the same way, and decide about rows that they were not fitted to.

        The progress callback receives what is done of the fit, piece by piece.
        """
        options = self.options
        classifier = make_classifier(options, shown=False).set_callbacks(_Pieces(progress))
        classifier.set_params(roles=self.roles, date_order=options.date_order)
        groups = None if options.group_column is None else given_row_groups(train, options.group_column)
        (_, model), seconds = timed(lambda: self.fit(classifier, train, groups))
        return OneFit(model, train, seconds, held_out_report(model, judged)[2])


def _validation(train: Labeled, valid: Labeled, options: "FitOptions") -> dict[str, Any]:
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


def _positive(data: Labeled, options: "FitOptions") -> Any:
    """The positive class as the table spells it."""
    if options.positive is None:
        return None
    labels = sorted(set(data.target.to_pylist()), key=str)
    code = label_codes(pa.array([options.positive]), tuple(labels))[0]
    if code < 0:
        raise ParameterError(
            f"--positive {options.positive!r} is no class in {options.target!r}."
            f"{did_you_mean(options.positive, labels)} The classes are {some_of([*map(repr, labels)], _CLASSES)}."
        )
    return labels[code]


def held_out_report(
    model: Model, data: Labeled, what: str = "The held-out rows are"
) -> tuple[EvaluationDict, NoveltyReport, Judged]:
    """What the model shows on held-out rows, how unlike the training rows they are, and what it says of each.

    What breaks the contract there is said and filled in.
    """
    issues, tally = Issues(), NoveltyTally()
    difference = compare_columns(model.contract, data.table.schema)
    table = difference.renamed(data.table)
    decided, _ = decide_batch(model, table, issues, tally)
    # Columns in which every point may part thousands, by their names in training.
    grouped = {
        difference.renames.get(name, name): (example, median_size(read(data.table[name], "number").values))
        for name, example in grouped_columns(data.table).items()
    }
    note_grouped(issues, model, grouped)
    replace(difference, issues=issues).raise_or_warn("warn", subject=f"{what} not like the training rows")
    codes = label_codes(data.target, model.decision.classes)
    report = labeled_report(model, codes, decided, row_hashes(model, table))
    probabilities = model.decision.probabilities(decided.scores)
    judged = Judged(table, codes, probabilities, decided.margins, report["confusion"])
    return report, tally.report(model).with_rows(data.rows), judged


def judged_fold(fit: OneFit, options: "FitOptions", limit: TimeLimit) -> tuple["ComparedFold", list[str]]:
    """Our outcome on the judged rows, with those of the baselines if asked for; and sentences on those that lack."""
    from qmedoid.estimators.comparison import OURS, ComparedFold, run_baselines

    judged, columns = fit.judged.known(), fit.model.contract.columns
    outcomes, notes = {OURS: (judged.probabilities, fit.seconds)}, list[str]()
    if options.compare:
        codes = label_codes(fit.train.target, fit.model.decision.classes)
        found, notes = run_baselines(columns, fit.train.table, judged.table, codes, options.seed, limit.allows)
        outcomes |= found
    here, given = judged.table.column_names, options.group_column
    names = [column.name for column in columns if column.name in here]
    groups = row_groups(cell_codes(judged.table, names), judged.codes) if names else None
    if given is not None and given in here:
        groups = equal_rows(cell_codes(judged.table, [given]))
    return ComparedFold(outcomes, judged.codes, groups), notes


def folds_of(train: Labeled, learnt: Sequence[str], options: "FitOptions") -> list[tuple[Codes, Codes]]:
    """Rows to fit and rows to judge by of each fold of ``--cv``, split as ``--test`` splits: groups kept together.

    In an order of time the rows are cut into one block more than there are folds, and every block but the first is
    judged by a fit of all blocks before it.
    """
    n_folds, n_rows = options.cv or 0, len(train.table)
    codes = train.target.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.intp)
    if options.time_column is not None:
        order = time_order(train.table[options.time_column], options.time_column, options.date_order)
        blocks = np.array_split(order, n_folds + 1)
        folds = [(np.concatenate(blocks[:place]), blocks[place]) for place in range(1, n_folds + 1)]
    else:
        given = options.group_column
        equal = row_groups(cell_codes(train.table, learnt), codes) if given is None else given_row_groups(train, given)
        groups = np.arange(n_rows) if equal is None else equal
        fold = group_folds(groups, codes, n_folds, np.random.default_rng(options.seed))
        folds = [(np.flatnonzero(fold != place), np.flatnonzero(fold == place)) for place in range(n_folds)]
    for place, (fit, judged) in enumerate(folds, 1):
        if len(judged) == 0 or len(np.unique(codes[fit])) < 2:
            lacks = "no row to judge by" if len(judged) == 0 else "rows of one class only to fit"
            raise ParameterError(f"--cv {n_folds}: fold {place} has {lacks}. Give fewer folds, or more rows.")
    return folds


def cross_validate(
    train: Labeled, folds: Sequence[tuple[Codes, Codes]], fitting: Fitting, limit: TimeLimit
) -> tuple["Comparison | None", list[list[int]] | None, list[str]]:
    """Fit and judge every fold for which there is time; the notes of its fits were given for that of all rows.

    Returns figures, the confusion matrix of all folds, and notes.
    """
    from qmedoid.estimators.comparison import compared

    done, confusion, notes = list["ComparedFold"](), list[list[list[int]]](), list[str]()
    with progress_bar() as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore", QMedoidWarning)
        warnings.simplefilter("always", InterruptedWarning)
        task, began = bar.add_task(f"{len(folds)} folds", total=len(folds)), limit.clock()
        for place, (fit, judged) in enumerate(folds, 1):
            # A fold takes as long as the one before it.
            if not limit.allows(f"folds {place} to {len(folds)} of --cv", limit.clock() - began):
                break
            began = limit.clock()
            one = fitting.again(
                part_of(train, fit), part_of(train, judged), lambda share: bar.advance(task, _FIT_SHARE * share)
            )
            fold, lacking = judged_fold(one, fitting.options, limit)
            done.append(fold)
            confusion.append(one.judged.confusion)
            notes += [note for note in lacking if note not in notes]
            bar.update(task, completed=place)
    unknown = sum(len(judged) for _, judged in folds[: len(done)]) - sum(len(fold.codes) for fold in done)
    if unknown:
        notes.append(f"{unknown:,} rows of --cv are of a class that the rows to fit of their fold lack: left out.")
    return (compared(done), np.sum(confusion, axis=0).tolist(), notes) if done else (None, None, notes)


def part_of(data: Labeled, rows: Codes) -> Labeled:
    """Some rows of a table."""
    return data._replace(table=data.table.take(rows), target=data.target.take(rows), rows=data.rows[rows])
