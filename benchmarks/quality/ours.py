"""Our classifier in the study: the recipe that ``recipe.json`` fixes, and the same with one thing changed.

The file holds parameters of `MedoidClassifier` that differ from the defaults, so that nothing stands there but what
a user would have to write, too. A parameter that is an estimator itself is ``{"module.Name": {parameters}}``; names
among them that are no parameters are settings of its method, which only an ablation changes.
"""

import json
import time
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.quality.judging import judge
from benchmarks.quality.protocol import Rows, known_rows
from benchmarks.quality.tables import Column, Table
from benchmarks.studies.cells import Cell
from qmedoid.estimators.medoid import MedoidClassifier

CODE = 1
"""Number of what these functions compute: whoever changes their figures takes the next one."""
OURS = "ours"
_RECIPE = Path(__file__).with_name("recipe.json")


@cache
def recipes(part: str) -> dict[str, dict[str, Any]]:
    """Parameters of ours by the name of the method: "ours", and "ours, " with what is changed."""
    frozen = json.loads(_RECIPE.read_text())[part]
    return {OURS: frozen["ours"]} | {f"{OURS}, {name}": changes for name, changes in frozen["changes"].items()}


def build(settings: dict[str, Any], seed: int, kind: type = MedoidClassifier, **fixed: Any) -> Any:
    """An unfitted classifier of these settings."""
    given = {name: _value(value) for name, value in settings.items()}
    return kind(**fixed, random_state=seed, **given)


def _value(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((name, settings),) = value.items()
    kind = resolve_name(name)
    own = {parameter: settings[parameter] for parameter in settings if parameter in kind().get_params(deep=False)}
    further = {
        one: tuple(given) if isinstance(given, list) else given for one, given in settings.items() if one not in own
    }
    return (_ablated(kind, further) if further else kind)(**own)


def _ablated(kind: Any, further: dict[str, Any]) -> Any:
    """The class of a method's estimator with other settings of its fit."""
    return type(kind.__name__, (kind,), {"_settings": lambda self: replace(kind._settings(self), **further)})


def run_ours(table: Table, cell: Cell, *, settings: dict[str, Any]) -> dict[str, Any]:
    """The cell of our classifier with some settings, at the size that its part is named by."""
    return our_metrics(settings, known_rows(table, int(cell.part), cell.seed), cell.seed)


def our_metrics(settings: dict[str, Any], rows: Rows, seed: int) -> dict[str, Any]:
    """Fit and judge our classifier on one split of a table as it is. Times are core-seconds."""
    classifier = build(settings, seed, operating_point="macro_f1")
    fit, test = (as_table(own) for own in (rows.fit, rows.test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.process_time()
        classifier.fit(fit, rows.y)
        fitted_at = time.process_time()
        found = np.asarray(classifier.predict_proba(test))
        predicted_at = time.process_time()
        called = np.asarray(classifier.predict(test))
    return {
        **judge(rows.y_test, found, called, rows.y),
        "fit_rows": len(rows.y),
        "fit_s": fitted_at - begun,
        "predict_s": predicted_at - fitted_at,
        "medoids": _n_medoids(classifier),
    }


def as_table(columns: dict[str, Column]) -> pa.Table:
    """An Arrow table, whose empty cells are null."""
    return pa.table({name: pa.array(own, from_pandas=True) for name, own in columns.items()})


def _n_medoids(classifier: Any) -> int:
    """Different training rows that decisions of a fitted classifier are made of."""
    rows = np.asarray(classifier.model_.medoids.numbers)
    return len(np.unique(rows[rows >= 0]))
