"""Contributions of the columns of a table to many decisions, exact, row by row; their mean sizes; views of a model.

A contribution is what a column adds to the margin between two classes, in log-odds, as in an explanation. What belongs
to no column, such as votes of neighbors, the intercept, the curve of the calibration or the circuit, has none.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qmedoid.arrays import Array, Codes, row_slices
from qmedoid.exceptions import DataError, ModelError
from qmedoid.kernels.ties import stable_order
from qmedoid.markup.charts import label
from qmedoid.markup.page import render
from qmedoid.methods.part import OutOfFold, refuse_overflow
from qmedoid.model.model import Decisions, Model
from qmedoid.model.operating_point import rule_in_words

MOST_ROWS = 1000
"""Training rows that importances are the mean of, at most."""
# Rows of batches whose contributions are added up together, and those that are explained at a time.
_BLOCK_ROWS, _EXPLAINED_ROWS = 4096, 1024


NO_MEDOIDS = (
    "This model is a circuit alone: it has no medoids to explain a decision by. Explain a model of MedoidClassifier or "
    "NearestMedoidClassifier instead."
)


def check_explained(model: Model) -> None:
    """Raise for a circuit alone, whose decisions are no sums."""
    if model.medoids is None:
        raise ModelError(NO_MEDOIDS)


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def column_contributions(model: Model, columns: Sequence[npt.NDArray[Any]], winners: Codes, others: Codes) -> Array:
    """What every column of the contract adds to the margin of one class over another, row by row, shape (n, columns).

    The same as `explain` says of each record: numbers that a column is encoded by count together.

    Parameters
    ----------
    model : Model
    columns : sequence of ndarray of shape (n,)
        The encoded columns.
    winners, others : ndarray of shape (n,)
        Class codes.
    """
    check_explained(model)
    starts = np.searchsorted(model.source, np.arange(len(model.encodings)))
    added = np.empty((len(others), len(model.encodings)))
    for rows in row_slices(added, _EXPLAINED_ROWS):
        part = np.column_stack([column[rows] for column in columns]).astype(np.float64)
        by_number = np.zeros(part.shape)
        for weight, member in zip(model.weights, model.parts, strict=True):
            by_number += weight * member.column_contributions(part, winners[rows], others[rows])
        added[rows] = model.slope * np.add.reduceat(by_number, starts, axis=1)
    refuse_overflow(added)
    return added


def class_contributions(model: Model, X: Array, code: int) -> Array:
    """What every column adds for a class against the other, of two, or the mean of all others, shape (n, columns)."""
    others = [other for other in range(len(model.decision.classes)) if other != code]
    winner = np.full(len(X), code)
    added = [column_contributions(model, list(X.T), winner, np.full(len(X), other)) for other in others]
    return np.asarray(np.mean(added, axis=0))


NO_ROWS = "The table has no rows: there is nothing that contributes."


class ImportanceTally:
    """The mean absolute contribution of every column to decisions, gathered batch by batch."""

    def __init__(self, model: Model) -> None:
        check_explained(model)
        self._model, self._sums, self.rows = model, np.zeros(len(model.encodings)), 0

    def add(self, columns: Sequence[Array], decided: Decisions) -> None:
        """Look at records by their encoded columns, and what was decided about them."""
        others = self._model.decision.runners_up(decided.scores, decided.codes)
        for block in row_slices(len(others), _BLOCK_ROWS):
            rows = [column[block] for column in columns]
            found = column_contributions(self._model, rows, decided.codes[block], others[block])
            self._sums += np.abs(found).sum(axis=0)
        self.rows += len(others)

    @property
    def importances(self) -> Array:
        """By column of the contract, shape (columns,)."""
        if not self.rows:
            raise DataError(NO_ROWS)
        return self._sums / self.rows


def by_importance(names: Sequence[str], importances: Array) -> dict[str, float]:
    """Importances by the names of the columns, the largest first; those that are equal up to rounding by name."""
    order = sorted(range(len(names)), key=names.__getitem__)
    ranked = stable_order(-importances[order])
    return {names[order[index]]: float(importances[order[index]]) for index in ranked}


def training_importances(model: Model, X: Array, held_out: OutOfFold | None) -> Array | None:
    """Importances by a sample of the training rows X (n, M), of those that have calibrated out-of-fold scores, if any.

    None for a circuit alone. Out-of-fold scores say which class is decided for, and which one is the runner-up. The
    contributions to the margin between them are those of the model, which has seen the rows: fits keep out-of-fold
    scores of whole parts, leave-one-out ones of the evidence in closed form, and no weights that belong to them.
    """
    if model.medoids is None:
        return None
    unseen = np.zeros(0, dtype=np.intp) if held_out is None else np.flatnonzero(held_out.fold >= 0)
    rows = unseen if len(unseen) else np.arange(len(X))
    if len(rows) > MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))
    found = held_out.scores[rows] if held_out is not None and len(unseen) else model.decide(list(X[rows].T)).scores
    codes = model.decision.codes(found)
    added = column_contributions(model, list(X[rows].T), codes, model.decision.runners_up(found, codes))
    importances: Array = np.abs(added).mean(axis=0)
    return importances


# Classes and columns that are named.
_CLASSES, _IMPORTANT, _COLUMNS = 10, 10, 50
VIEW = "notebook/model.html"
"""The template of what a notebook shows of a model or of parameters."""


def model_view(model: Model, title: str, sha256: str | None = None, *, settings: Sequence[tuple[str, str]] = ()) -> str:
    """What a model is, what to expect of it, which columns matter, and the parameters that were set."""
    decision, medoids, names = model.decision, model.medoids, model.contract.names
    labels, contract, used = [str(one)[:80] for one in decision.classes], model.contract, set(model.layout.used)
    classes = ", ".join(labels[:_CLASSES]) + (f" and {len(labels) - _CLASSES} more" if len(labels) > _CLASSES else "")
    facts = [
        ("target", contract.target),
        ("classes", classes),
        ("decided by", model.method),
        ("medoids", None if medoids is None else f"{len(medoids.numbers):,} training rows"),
        ("neighbors", f"{model.n_neighbors:,} further training rows" if model.n_neighbors else None),
        ("training rows", None if model.training is None else f"{model.training.n_rows:,}"),
        ("columns", f"{len(contract.columns):,}, left out {len(contract.left_out):,}"),
        ("SHA-256", sha256),
    ]
    if (operating := decision.operating) is not None:
        cut = f"above a probability of {label(operating.threshold)} ({rule_in_words(operating)})"
        facts += [(f"{labels[1]} is called", cut), ("held-out rows", f"{operating.n_rows:,}")]
        forecast = operating.forecast()
        for key in ("precision", "recall", "alert_rate"):
            if (one := forecast.get(key)) is not None:
                next_rows = f"{label(one.low)} to {label(one.high)} in as many next rows"
                facts.append((key.replace("_", " "), f"{label(one.value)} ({next_rows})"))
    ranked = {} if model.importances is None else by_importance(names, model.importances)
    columns = [
        (one.name, one.kind, "yes" if place in used else "no", "yes" if one.missing else "no")
        for place, one in enumerate(contract.columns)
    ]
    important = [(name, value, label(value)) for name, value in list(ranked.items())[:_IMPORTANT]]
    return render(
        VIEW,
        title=title,
        facts=facts,
        importances=important,
        columns=columns[:_COLUMNS],
        more=max(len(columns) - _COLUMNS, 0),
        settings=settings,
    )
