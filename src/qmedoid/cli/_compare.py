"""``qmedoid fit --compare`` and ``--cv``: our model next to plain baselines, on held-out rows and in folds."""

import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from qmedoid.arrays import Codes
from qmedoid.cli._fitting import Fitting, OneFit
from qmedoid.cli._output import grid, plain_console, progress_bar
from qmedoid.cli._training_rows import Labeled, given_row_groups, time_order
from qmedoid.estimators._time_limit import TimeLimit
from qmedoid.exceptions import InterruptedWarning, ParameterError, QMedoidWarning
from qmedoid.geometry.row_groups import equal_rows, group_folds, row_groups
from qmedoid.tables.cells import cell_codes
from qmedoid.tables.targets import label_codes

if TYPE_CHECKING:
    from qmedoid.cli.fit import FitOptions
    from qmedoid.estimators.comparison import ComparedFold, Comparison, Spread

# Progress of a fold when our fit is done.
_FIT_SHARE = 0.9
_TITLES = {"log_loss": "log-loss", "roc_auc": "ROC-AUC", "pr_auc": "PR-AUC", "macro_f1": "macro-F1",
           "fit_seconds": "fit s"}  # fmt: skip


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


def compare_fit(fit: OneFit, options: "FitOptions", limit: TimeLimit) -> tuple["Comparison", list[str]]:
    """A model and the baselines on its held-out rows, and sentences on baselines that lack."""
    from qmedoid.estimators.comparison import compared

    fold, notes = judged_fold(fit, options, limit)
    return compared([fold]), notes


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


def print_comparison(comparison: "Comparison", title: str, *, verbose: bool) -> None:
    """Print the figures of each method, the best of every column marked; macro-F1 of two classes with `verbose`."""
    console = plain_console()
    console.print(title, soft_wrap=True)
    is_two = comparison.best("roc_auc") is not None
    shown = [name for name in _TITLES if verbose or not is_two or name != "macro_f1"]
    figures = [name for name in shown if comparison.best(name) is not None]
    versus = any(one.difference is not None for one in comparison.methods)
    names = ["", _TITLES["log_loss"], *(["minus ours"] if versus else []), *(_TITLES[name] for name in figures[1:])]
    console.print(grid(names, list(_table_rows(comparison, figures, versus))))
    if versus:
        console.print(
            "* is the best of its column. Minus ours: mean difference ± its standard error.\n"
            "Baselines have the default settings of their libraries.",
            soft_wrap=True,
        )
        console.print(comparison.verdict(), soft_wrap=True)


def _table_rows(comparison: "Comparison", figures: Sequence[str], versus: bool) -> Iterator[list[str]]:
    for one in comparison.methods:
        cells = [_marked(comparison, name, one.figures[name]) for name in figures]
        found = one.difference
        if versus:
            cells.insert(1, "" if found is None else f"{found.mean:+.4f} ± {found.error:.4f}")
        yield [one.name, *cells]


def _marked(comparison: "Comparison", name: str, spread: "Spread | None") -> str:
    if spread is None:
        return "– "
    text = f"{spread.mean:.4f}" + ("" if spread.error is None else f" ± {spread.error:.4f}")
    if name == "fit_seconds":
        text = f"{spread.mean:.{2 if spread.mean < 10 else 0}f}"
    # Alone, ours is the best of every column, and that says nothing.
    return text + ("*" if len(comparison.methods) > 1 and spread.mean == comparison.best(name) else " ")
