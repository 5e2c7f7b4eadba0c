"""A classifier and plain baselines on the same rows: ``qmedoid.compare``, paired differences."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.estimators.documents import ComparedMethodDict, ComparisonDict, LossDifferenceDict
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.raw_tables import dataset_of, held_out_rows
from qmedoid.exceptions import DataError, MissingExtraError, ParameterError, some_of, warn
from qmedoid.geometry.row_groups import group_sums, numbered, row_groups
from qmedoid.metrics.classification import evaluate, mean_and_error, pr_auc, roc_auc
from qmedoid.model.contract import Column
from qmedoid.report.documents import BaselineDict, ReportBaselinesDict
from qmedoid.tables import cells

OURS = "qmedoid"
FIGURES = {
    "log_loss": "log-loss",
    "roc_auc": "ROC-AUC",
    "pr_auc": "PR-AUC",
    "macro_f1": "macro-F1",
    "fit_seconds": "fit s",
}
"""What methods are compared by; areas and macro-F1 are better the larger they are, the others the smaller."""
_SMALL_IS_GOOD = ("log_loss", "fit_seconds")
_SMALLEST = float(np.finfo(np.float64).eps)
# Standard errors on both sides of a mean that 95 % of normal draws lie within.
_WIDTH = 1.96
# Numbers beyond this are no measurements; our methods take them as missing, too.
_LARGEST = 1e150
# Levels of a category that have a column, or a bin, of their own; the others are one.
_MOST_LEVELS = 254


Outcome = tuple[Array, float]
"""A method on the evaluated rows of one fold: its probabilities, shape (m, C), and how long its fit took."""
ComparedFold = tuple[Mapping[str, Outcome], Codes, Codes | None]
"""The methods by name on some evaluated rows, their class codes, and which of them are one draw."""


@dataclass(frozen=True)
class Comparison:
    """Methods on the same rows, ours first.

    Attributes
    ----------
    methods : tuple of dict
        Each with its ``name``, its figures (the mean over folds; None where one is not defined), their standard
        ``errors``, and ``log_loss_difference``: log-loss minus ours, with its standard error and 95 % interval.
    n_rows, n_folds : int
        Rows that they are evaluated on, and folds.
    """

    methods: tuple[ComparedMethodDict, ...]
    n_rows: int
    n_folds: int

    def best(self, figure: str) -> float | None:
        """The best mean of a figure; None where it is not defined."""
        means = [mean for one in self.methods if (mean := figure_of(one, figure)) is not None]
        return (min if figure in _SMALL_IS_GOOD else max)(means, default=None)

    def verdict(self) -> str:
        """One sentence: whether a plain baseline is better, by log-loss, and whether that may be luck."""
        baselines = [(one["name"], found) for one in self.methods if (found := one["log_loss_difference"]) is not None]
        if not baselines:
            return "No baseline was fitted."
        name, found = min(baselines, key=lambda pair: pair[1]["mean"])
        by = f"by {abs(found['mean']):.4f} (95 %: {found['low']:+.4f} to {found['high']:+.4f})"
        if found["high"] < 0:
            return f"A plain baseline wins: the log-loss of {name} is lower than ours {by}."
        if found["low"] > 0:
            return f"No plain baseline wins: the log-loss of the best, {name}, is higher than ours {by}."
        side = "lower" if found["mean"] < 0 else "higher"
        return f"The log-loss of the best plain baseline, {name}, is {side} than ours {by}: that may be luck."

    def to_dict(self) -> ComparisonDict:
        """The comparison as plain values."""
        return {
            "rows": self.n_rows,
            "folds": self.n_folds,
            "methods": list(self.methods),
            "verdict": self.verdict(),
        }


def figure_of(method: ComparedMethodDict, figure: str) -> float | None:
    """A figure of a method by its name."""
    return cast("float | None", method[figure])  # type: ignore[literal-required]


def figure_with_error(method: ComparedMethodDict, figure: str) -> str:
    """A figure of a method, with its standard error if it has one."""
    mean, error = figure_of(method, figure), method["errors"][figure]
    if mean is None:
        return "–"
    return (f"{mean:.1f}" if figure == "fit_seconds" else f"{mean:.4f}") + ("" if error is None else f" ± {error:.4f}")


def compare(
    classifier: MedoidClassifier, X: Any, y: Any, X_test: Any, y_test: Any, *, random_state: int = 0
) -> Comparison:
    """Fit a classifier and plain baselines to the same rows, and compare them on the same other rows.

    The baselines are logistic regression and boosted trees of scikit-learn and, where it is installed (extra
    ``baselines``), LightGBM, all with the settings of their libraries. Each gets categories, dates and missing cells in
    the form that it takes best.

    Parameters
    ----------
    classifier : MedoidClassifier
        A copy of it is fitted; it stays as it is.
    X, y : data frame, Arrow table, dict of columns or array of shape (n, M); array-like of shape (n,)
        Rows to fit.
    X_test, y_test
        Rows to compare on, none of which should be among the rows to fit.
    random_state : int, default=0
        Seed of the baselines.

    Returns
    -------
    Comparison
        Log-loss, ROC-AUC, PR-AUC, macro-F1 and seconds of each method, ours first; the difference of each log-loss from
        ours, with the standard error of a mean over pairs; `verdict` and `to_dict`. Equal rows count as one.

    Examples
    --------
    >>> import qmedoid
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> classifier = qmedoid.MedoidClassifier(method="evidence", random_state=0)
    >>> found = qmedoid.compare(classifier, X[::2], y[::2], X[1::2], y[1::2])
    >>> found.methods[0]["name"], found.n_rows
    ('qmedoid', 75)

    See Also
    --------
    qmedoid.stability : how much a classifier changes when the rows change.
    """
    if not isinstance(classifier, MedoidClassifier):
        raise ParameterError(f"The 'classifier' must be a MedoidClassifier. Got {type(classifier).__name__} instead.")
    fitted, began = clone(classifier), time.perf_counter()
    data = dataset_of(fitted, X, y)
    fitted.fit(data)
    seconds = time.perf_counter() - began
    model = fitted.model_
    classes, columns = model.decision.classes, model.contract.columns
    table, target = held_out_rows(fitted, X_test, y_test, "test")
    table, judged = cells.with_missing_values_out(table, columns), target.codes_in(classes)
    if (judged < 0).any():
        unknown = [repr(label) for label in target.classes[np.unique(target.codes[judged < 0])].tolist()]
        raise DataError(f"y_test has labels that are no class of the fit: {some_of(unknown, 5)}. Leave such rows out.")
    order = [fitted.classes_.tolist().index(label) for label in classes]
    baselines, notes = run_baselines(columns, data.table, table, data.target.codes_in(classes), random_state)
    for note in notes:
        warn(note)
    outcomes = {OURS: (fitted.predict_proba(X_test)[:, order], seconds), **baselines}
    groups = row_groups(cells.cell_ranks(table, columns)[0], judged)
    return compared([(outcomes, judged, groups)])


def compared(folds: Sequence[ComparedFold]) -> Comparison:
    """Figures of one fold, or their means over several, and differences over the rows of all."""
    names = [name for name in folds[0][0] if all(name in outcomes for outcomes, _, _ in folds)]
    losses = {
        name: np.concatenate([row_losses(outcomes[name], codes) for outcomes, codes, _ in folds]) for name in names
    }
    draws, methods = _draws(folds), list[ComparedMethodDict]()
    for name in names:
        by_fold = [_figures(outcomes[name], codes) for outcomes, codes, _ in folds]
        means, errors = dict[str, float | None](), dict[str, float | None]()
        for figure in FIGURES:
            known = [one[figure] for one in by_fold if not math.isnan(one[figure])]
            means[figure], errors[figure] = mean_and_error(known) if known else (None, None)
        difference = None if name == OURS else paired_difference(losses[name], losses[OURS], draws)
        found = {"name": name, **means, "errors": errors, "log_loss_difference": difference}
        methods.append(cast("ComparedMethodDict", found))
    return Comparison(tuple(methods), sum(len(codes) for _, codes, _ in folds), len(folds))


def row_losses(outcome: Outcome, codes: Codes) -> Array:
    """−log p of the true class of every row."""
    of_true_class = outcome[0][np.arange(len(codes)), codes]
    return np.asarray(-np.log(np.maximum(of_true_class, _SMALLEST)))


def paired_difference(losses: Array, ours: Array, groups: Codes | None = None) -> LossDifferenceDict:
    r"""Mean difference of two losses of the same rows, with the standard error of the mean and a 95 % interval.

    Rows of one group are one draw: with sums :math:`D_g` over the :math:`n_g` rows of each of G groups and the mean
    :math:`\bar d`,

    .. math:: \frac{1}{n}\sqrt{\frac{G}{G-1} \sum_g (D_g - n_g \bar d)^2},

    which is the usual s/√n where every row is a group. A single group has no spread, and an infinite error.
    """
    differences = losses - ours
    mean = float(differences.mean())
    by_group = group_sums(differences - mean, groups)
    n_groups = len(by_group)
    spread = n_groups / (n_groups - 1) * float(by_group @ by_group) if n_groups > 1 else math.inf
    error = math.sqrt(spread) / len(differences)
    return {"mean": mean, "error": error, "low": mean - _WIDTH * error, "high": mean + _WIDTH * error}


def _draws(folds: Sequence[ComparedFold]) -> Codes | None:
    """Groups of the rows of all folds; those of two folds are never one."""
    if all(groups is None for _, _, groups in folds):
        return None
    labels, begin = [], 0
    for _, codes, groups in folds:
        own = np.arange(len(codes)) if groups is None else numbered(groups)
        labels.append(own + begin)
        begin += len(own)
    return numbered(np.concatenate(labels))


def _figures(outcome: Outcome, codes: Codes) -> dict[str, float]:
    """Figures of one method: areas of the second of two classes, or means of one class against all others."""
    probabilities, n_classes = outcome[0], outcome[0].shape[1]
    called = evaluate(codes, probabilities.argmax(axis=1), n_classes)
    classes = [1] if n_classes == 2 else np.unique(codes).tolist()
    areas = [roc_auc(codes == code, probabilities[:, code]) for code in classes]
    return {
        "log_loss": float(row_losses(outcome, codes).mean()),
        "roc_auc": float(np.mean(areas)),
        "pr_auc": pr_auc(codes == 1, probabilities[:, 1]) if n_classes == 2 else math.nan,
        "macro_f1": float(called.f1[called.support > 0].mean()),
        "fit_seconds": outcome[1],
    }


def plain_rows(columns: Sequence[Column], *tables: pa.Table) -> list[Array]:
    """Tables as plain classifiers take them, shape (n, M) each; a column that a table lacks is missing in every row.

    Codes of a category go by frequency among the rows of the first table, the most frequent level first. What is
    missing, cannot be read or is a level that the first table lacks is NaN.
    """
    made = list[list[Array]]()
    for column in columns:
        arrays = [_cells(table, column) for table in tables]
        if column.kind == "category":
            levels = _levels(arrays[0])
            made.append([_codes(array, levels) for array in arrays])
        else:
            made.append([_numbers(array, column) for array in arrays])
    return [np.column_stack(side) for side in zip(*made, strict=True)]


def _cells(table: pa.Table, column: Column) -> pa.Array:
    if column.name not in table.column_names:
        return pa.nulls(len(table), pa.string())
    return cells.one_chunk(cells.without_missing_values(table.column(column.name), column))


def _levels(array: pa.Array) -> tuple[str, ...]:
    """Levels, the most frequent first; those that are equally frequent by name."""
    import pyarrow.compute as pc

    counts = pc.utf8_trim_whitespace(cells.texts(array).drop_null()).value_counts()
    pairs = zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True)
    return tuple(level for level, _ in sorted(pairs, key=lambda pair: (-pair[1], pair[0])) if level)


def _codes(array: pa.Array, levels: tuple[str, ...]) -> Array:
    codes = cells.level_codes(array, levels)[0].astype(np.float64)
    return np.where(codes < len(levels), codes, np.nan)


def _numbers(array: pa.Array, column: Column) -> Array:
    values = cells.read(array, column.kind, column.spelling).values
    if values.dtype.kind == "M":
        whole = values.astype("M8[us]")
        return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / 86_400e6)
    numbers = np.asarray(values, dtype=np.float64)
    return np.where(np.abs(numbers) < _LARGEST, numbers, np.nan)


def _logistic(seed: int, is_category: Flags) -> Any:
    """Logistic regression on standardized numbers, with a flag for missing ones, and on a column for each level."""
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    levels = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=_MOST_LEVELS)
    columns = ColumnTransformer([("numbers", numbers, ~is_category), ("levels", levels, is_category)])
    return make_pipeline(columns, LogisticRegression(max_iter=2000, random_state=seed))


def _boosted(seed: int, is_category: Flags) -> Any:
    """Boosted trees of scikit-learn, which take no more levels than they have bins: the rarer ones are one."""
    merged = FunctionTransformer(lambda X: np.where(is_category, np.minimum(X, _MOST_LEVELS), X))
    return make_pipeline(merged, HistGradientBoostingClassifier(random_state=seed, categorical_features=is_category))


def _lightgbm(seed: int, is_category: Flags) -> Any:
    """LightGBM on one thread, so that its bits do not depend on the number of threads."""
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise MissingExtraError("LightGBM is not installed. Get it with: pip install 'qmedoid[baselines]'") from error
    model: Any = LGBMClassifier(random_state=seed, n_jobs=1, deterministic=True, force_row_wise=True, verbose=-1)
    model.fit = partial(model.fit, categorical_feature=np.flatnonzero(is_category).tolist() or "auto")
    return model


BASELINES: dict[str, Callable[[int, Flags], Any]] = {
    "logistic regression": _logistic,
    "scikit-learn boosted trees": _boosted,
    "LightGBM": _lightgbm,
}
"""Plain classifiers with the settings of their libraries, given a seed and which columns are categories."""


def run_baselines(
    columns: Sequence[Column],
    fit: pa.Table,
    judged: pa.Table,
    codes: Codes,
    seed: int,
    may_begin: Callable[[str], bool] = lambda _: True,
) -> tuple[dict[str, Outcome], list[str]]:
    """Fit the baselines to rows with these class codes, and what each says of the evaluated rows.

    A sentence tells which baseline is not installed, or fails; one that may not begin is left out.
    """
    outcomes, notes = dict[str, Outcome](), list[str]()
    rows, new = plain_rows(columns, fit, judged)
    is_category = np.array([column.kind == "category" for column in columns])
    for name, make in BASELINES.items():
        if not may_begin(name):
            continue
        try:
            model = make(seed, is_category)
            began = time.perf_counter()
            model.fit(rows, codes)
            seconds = time.perf_counter() - began
            outcomes[name] = np.asarray(model.predict_proba(new), dtype=np.float64), seconds
        except MissingExtraError as error:
            notes.append(f"{name} is not compared: {error}")
        except Exception as error:  # whatever a library raises is no reason to lose our own fit
            notes.append(f"{name} is not compared: it failed with {type(error).__name__}: {error}")
    return outcomes, notes


def comparison_table(found: Comparison, about: str) -> ReportBaselinesDict:
    """A comparison as a report has it: texts by method, and which is the best of each figure."""
    names = [name for name in FIGURES if name != "fit_seconds" and found.best(name) is not None]
    rows = list[BaselineDict]()
    for one in found.methods:
        texts = [figure_with_error(one, name) for name in names]
        # Alone, ours is the best of every figure, and that says nothing.
        best = [len(found.methods) > 1 and figure_of(one, name) == found.best(name) for name in names]
        rows.append({"name": one["name"], "values": texts, "best": best})
    differences = [one["log_loss_difference"] for one in found.methods]
    return {
        "about": about,
        "figures": [FIGURES[name] for name in names],
        "rows": rows,
        "verdict": found.verdict(),
        "better": any(one["high"] < 0 for one in differences if one) if any(differences) else None,
    }
