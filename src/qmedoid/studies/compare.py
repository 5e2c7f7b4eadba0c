"""``qmedoid.compare``: a classifier next to plain baselines, from data frames to a comparison."""

import time
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from qmedoid.arrays import Codes
from qmedoid.estimators._inputs import check_target
from qmedoid.estimators._raw_reading import read_table
from qmedoid.estimators.medoid import MedoidClassifier
from qmedoid.exceptions import DataError, ParameterError, some_of, warn
from qmedoid.geometry.row_groups import row_groups
from qmedoid.studies.comparison import OURS, Comparison, Fold, Outcome, compared
from qmedoid.studies.plain_baselines import plain_rows, run_baselines
from qmedoid.tables.cells import cell_codes, with_missing_values_out
from qmedoid.tables.targets import label_codes


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
