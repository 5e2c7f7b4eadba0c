"""``qmedoid.compare``: a classifier next to plain baselines on the same rows, and paired differences."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from qmedoid.arrays import Array, Codes
from qmedoid.estimators._inputs import check_target
from qmedoid.estimators._raw_reading import read_table
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.estimators.plain_baselines import Outcome, plain_rows, run_baselines
from qmedoid.exceptions import DataError, ParameterError, some_of, warn
from qmedoid.geometry.row_groups import group_sums, numbered, row_groups
from qmedoid.metrics.agreement import mean_and_error
from qmedoid.metrics.classification import evaluate, pr_auc, roc_auc
from qmedoid.tables.cells import cell_codes, with_missing_values_out
from qmedoid.tables.targets import label_codes

OURS = "qmedoid"
FIGURES = ("log_loss", "roc_auc", "pr_auc", "macro_f1", "fit_seconds")
"""What methods are compared by; areas and macro-F1 are better the larger they are, the others the smaller."""
_SMALL_IS_GOOD = ("log_loss", "fit_seconds")
_SMALLEST = float(np.finfo(np.float64).eps)
# Standard errors on both sides of a mean that 95 % of normal draws lie within.
_WIDTH = 1.96


class Fold(NamedTuple):
    """The methods by name on some judged rows, their class codes, and which of them are one draw."""

    outcomes: Mapping[str, Outcome]
    codes: Codes
    groups: Codes | None = None


class Spread(NamedTuple):
    """Mean of a figure over folds, with its standard error; None for that of one fold."""

    mean: float
    error: float | None


class PairedDifference(NamedTuple):
    """How much larger the log-loss of a baseline is than ours: mean over rows, standard error, and 95 % interval."""

    mean: float
    error: float
    low: float
    high: float


class MethodFigures(NamedTuple):
    """A method, its figures by name (None where one is not defined), and its difference from ours."""

    name: str
    figures: Mapping[str, Spread | None]
    difference: PairedDifference | None


@dataclass(frozen=True)
class Comparison:
    """Methods on the same rows, ours first.

    Attributes
    ----------
    methods : tuple of MethodFigures
    n_rows : int
        Rows that judge.
    n_folds : int
    """

    methods: tuple[MethodFigures, ...]
    n_rows: int
    n_folds: int

    def best(self, figure: str) -> float | None:
        """The best mean of a figure; None where it is not defined."""
        means = [spread.mean for one in self.methods if (spread := one.figures[figure]) is not None]
        return (min if figure in _SMALL_IS_GOOD else max)(means, default=None)

    def verdict(self) -> str:
        """One sentence: whether a plain baseline is better, by log-loss, and whether that may be luck."""
        baselines = [(one, one.difference) for one in self.methods if one.difference is not None]
        if not baselines:
            return "No baseline was fitted."
        best, found = min(baselines, key=lambda pair: pair[1].mean)
        by = f"by {abs(found.mean):.4f} (95 %: {found.low:+.4f} to {found.high:+.4f})"
        if found.high < 0:
            return f"A plain baseline wins: the log-loss of {best.name} is lower than ours {by}."
        if found.low > 0:
            return f"No plain baseline wins: the log-loss of the best, {best.name}, is higher than ours {by}."
        side = "lower" if found.mean < 0 else "higher"
        return f"The log-loss of the best plain baseline, {best.name}, is {side} than ours {by}: that may be luck."

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        return {
            "rows": self.n_rows,
            "folds": self.n_folds,
            "methods": [
                {"name": one.name,
                 **{name: None if spread is None else spread.mean for name, spread in one.figures.items()},
                 "errors": {name: None if spread is None else spread.error for name, spread in one.figures.items()},
                 "log_loss_difference": None if one.difference is None else one.difference._asdict()}
                for one in self.methods
            ],
            "verdict": self.verdict(),
        }  # fmt: skip


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
    >>> found.methods[0].name, found.n_rows
    ('qmedoid', 75)

    See Also
    --------
    qmedoid.stability : how much a classifier changes when the rows change.
    """
    if not isinstance(classifier, MedoidClassifier):
        raise ParameterError(f"The 'classifier' must be a MedoidClassifier. Got {type(classifier).__name__} instead.")
    fitted, began = clone(classifier), time.perf_counter()
    fitted.fit(X, y)
    seconds = time.perf_counter() - began
    model = fitted.table_model()
    classes = model.decision.classes
    columns = model.contract.columns
    read = [read_table(fitted, rows, reset=False, name=name) for rows, name in ((X, "X"), (X_test, "X_test"))]
    tables = [with_missing_values_out(table, columns) for table in read]
    codes = _codes(y, classes, len(tables[0]), "y")
    judged = _codes(y_test, classes, len(tables[1]), "y_test")
    order = [fitted.classes_.tolist().index(label) for label in classes]
    outcomes = {OURS: Outcome(fitted.predict_proba(X_test)[:, order], seconds)}
    for name, found in run_baselines(plain_rows(columns, *tables), codes, random_state):
        if isinstance(found, str):
            warn(f"{name} is not compared: {found}")
        else:
            outcomes[name] = found
    groups = row_groups(cell_codes(tables[1], [column.name for column in columns]), judged)
    return compared([Fold(outcomes, judged, groups)])


def _codes(target: Any, classes: tuple[Any, ...], n_rows: int, name: str) -> Codes:
    """Class codes of a target, all of classes that were fitted."""
    labels = check_target(target, n_rows, name=name, table=f"X{name[1:]}")
    codes = label_codes(pa.array(labels.tolist()), classes)
    if (codes < 0).any():
        unknown = [repr(label) for label in np.unique(labels[codes < 0]).tolist()]
        raise DataError(f"{name} has labels that are no class of the fit: {some_of(unknown, 5)}. Leave such rows out.")
    return codes


def compared(folds: Sequence[Fold]) -> Comparison:
    """Figures of one fold, or their means over several, and differences over the rows of all."""
    names = [name for name in folds[0].outcomes if all(name in fold.outcomes for fold in folds)]
    losses = {name: np.concatenate([row_losses(fold.outcomes[name], fold.codes) for fold in folds]) for name in names}
    draws = _draws(folds)
    methods = []
    for name in names:
        by_fold = [_figures(fold.outcomes[name], fold.codes) for fold in folds]
        figures = {figure: _spread([one[figure] for one in by_fold]) for figure in FIGURES}
        difference = None if name == OURS else paired_difference(losses[name], losses[OURS], draws)
        methods.append(MethodFigures(name, figures, difference))
    return Comparison(tuple(methods), sum(len(fold.codes) for fold in folds), len(folds))


def row_losses(outcome: Outcome, codes: Codes) -> Array:
    """−log p of the true class of every row."""
    of_true_class = outcome.probabilities[np.arange(len(codes)), codes]
    return np.asarray(-np.log(np.maximum(of_true_class, _SMALLEST)))


def paired_difference(losses: Array, ours: Array, groups: Codes | None = None) -> PairedDifference:
    r"""Mean difference of two losses of the same rows, with the standard error of the mean.

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
    return PairedDifference(mean, error, mean - _WIDTH * error, mean + _WIDTH * error)


def _draws(folds: Sequence[Fold]) -> Codes | None:
    """Groups of the rows of all folds; those of two folds are never one."""
    if all(fold.groups is None for fold in folds):
        return None
    labels, begin = [], 0
    for fold in folds:
        own = np.arange(len(fold.codes)) if fold.groups is None else numbered(fold.groups)
        labels.append(own + begin)
        begin += len(own)
    return numbered(np.concatenate(labels))


def _spread(values: Sequence[float]) -> Spread | None:
    known = [value for value in values if not math.isnan(value)]
    return Spread(*mean_and_error(known)) if known else None


def _figures(outcome: Outcome, codes: Codes) -> dict[str, float]:
    """Figures of one method: areas of the second of two classes, or means of one class against all others."""
    probabilities, n_classes = outcome.probabilities, outcome.probabilities.shape[1]
    called = evaluate(codes, probabilities.argmax(axis=1), n_classes)
    classes = [1] if n_classes == 2 else np.unique(codes).tolist()
    areas = [roc_auc(codes == code, probabilities[:, code]) for code in classes]
    return {
        "log_loss": float(row_losses(outcome, codes).mean()),
        "roc_auc": float(np.mean(areas)),
        "pr_auc": pr_auc(codes == 1, probabilities[:, 1]) if n_classes == 2 else math.nan,
        "macro_f1": float(called.f1[called.support > 0].mean()),
        "fit_seconds": outcome.seconds,
    }
