"""Batches of a raw table to batches of decisions, with memory bounded by one batch."""

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ContractError, DataError, ParameterError, some_of
from qmedoid.model.table import Decisions, TableModel
from qmedoid.tables.difference import compare_columns
from qmedoid.tables.encode import Issues, encode_batch
from qmedoid.tables.novelty import NoveltyTally

# Rows from which on more threads than one are worth their while.
_LONG = 100_000

RESULTS = frozenset(("prediction", "score", "margin", "decided_by"))
"""Columns that the results of every model have."""


def check_carried(model: TableModel, carried: Sequence[str], names: Sequence[str], *, novelty: bool = False) -> None:
    """Refuse carried columns that the table does not have, or that would hide a result."""
    absent = [name for name in carried if name not in names]
    if absent:
        raise ContractError(f"There is no column {absent[0]!r} to carry through. The table has: {some_of(names)}.")
    hidden = [name for name in carried if name in result_names(model, novelty=novelty)]
    if hidden:
        raise ParameterError(
            f"The column {hidden[0]!r} cannot be carried through: a result has this name. Rename it in the table."
        )


def decide_batch(
    model: TableModel, batch: pa.RecordBatch | pa.Table, issues: Issues, tally: NoveltyTally | None = None
) -> tuple[Decisions, list[Array]]:
    """Decisions about the records of a batch, and its encoded columns, those that the model reads.

    What breaks the contract is counted in `issues`, records unlike the training rows in `tally`.
    """
    # A batch of a file is too short to share between threads: starting them costs as much as they save.
    threads = None if len(batch) > _LONG else 1
    counted = copy.deepcopy(issues)
    columns = encode_batch(
        batch, model.contract, model.encodings, only=model.layout.used, unchecked=model.layout.checked, issues=counted
    )
    try:
        decided = model.decide(columns, threads=threads)
    except DataError:
        # A bad value somewhere: now it pays to look for all of them.
        columns = encode_batch(batch, model.contract, model.encodings, only=model.layout.used, issues=issues)
        with refused_by_column(model, batch, issues):
            decided = model.decide(columns, threads=threads)
    else:
        issues.rows, issues.columns, issues.shows_points = counted.rows, counted.columns, counted.shows_points
    if tally is not None:
        tally.add(columns)
    return decided, columns


@contextmanager
def refused_by_column(model: TableModel, batch: pa.RecordBatch | pa.Table, issues: Issues) -> Iterator[None]:
    """Name the columns where a model refuses missing cells that it cannot fill in."""
    try:
        yield
    except DataError:
        read = replace(model.contract, columns=tuple(model.contract.columns[place] for place in model.layout.used))
        difference = replace(compare_columns(read, batch.schema), issues=issues)
        if difference.has_refused_cells:
            difference.raise_or_warn("error")
        raise


def result_names(model: TableModel, *, novelty: bool = False) -> tuple[str, ...]:
    """Names of the columns of results, with the novelty of each record where that is asked for."""
    medoids = () if model.method is None else tuple(f"nearest_medoid_{label}" for label in model.decision.classes)
    return ("prediction", "score", "margin", *medoids, "decided_by", *(["novelty"] if novelty else []))


def result_batch(
    model: TableModel, carried: pa.RecordBatch, decided: Decisions, novelty: Array | None = None
) -> pa.RecordBatch:
    """A batch of results, behind the carried columns.

    ``score`` is the probability of the second of two classes, else of the predicted one (the margin where the model
    has no probabilities); ``nearest_medoid_…`` is the training row of the nearest medoid of each class.
    """
    columns: list[Any] = [*carried.columns, _chosen(model.decision.classes, decided.codes)]
    columns += [_scores(model, decided), decided.margins]
    method = model.method
    if method is not None and decided.nearest is not None:
        columns += [method.medoid_rows.take(decided.nearest[:, code]) for code in range(len(model.decision.classes))]
    columns.append(_chosen(model.deciders, decided.by_circuit.astype(np.intp)))
    if novelty is not None:
        columns.append(novelty)
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns]
    return pa.record_batch(arrays, names=[*carried.schema.names, *result_names(model, novelty=novelty is not None)])


def _chosen(values: Sequence[Any], places: Codes) -> Any:
    """The value at each place; Arrow's functions, which are slow to import, only where texts differ."""
    if isinstance(values[0], str):
        same = places[0] if len(places) else 0
        if (places == same).all():
            return pa.repeat(values[same], len(places))
        return pa.array(values).take(pa.array(places))
    return np.array(values)[places]


def _scores(model: TableModel, decided: Decisions) -> Array:
    if not model.decision.probabilistic:
        return decided.margins
    if len(model.decision.classes) == 2:
        return model.decision.probabilities_of_second(decided.scores)
    return np.take_along_axis(model.decision.probabilities(decided.scores), decided.codes[:, None], axis=1)[:, 0]
