"""Reasons for many decisions as short texts: the columns that contributed most, with their cells."""

from collections.abc import Sequence
from math import log

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Array
from qmedoid.kernels.ties import first_largest_of_rows
from qmedoid.metrics.texts import (
    LONGEST,
    SMALLEST_FACTOR,
    called_before,
    called_by_score,
    called_with_chance,
    cell_text,
    class_name,
    column_sign,
    effect_text,
    shortened,
)
from qmedoid.model.contract import Column
from qmedoid.model.explanation import column_contributions
from qmedoid.model.operating_point import probability
from qmedoid.model.table import Decisions, TableModel
from qmedoid.spelling import printable
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import as_text, is_text, joined_texts, one_chunk, read, without_missing_values

# Parts of a score up to this size are rounding.
_ROUNDING = 1e-9


def reason_texts(
    model: TableModel, batch: pa.RecordBatch | pa.Table, encoded: Sequence[Array], decided: Decisions, n_reasons: int
) -> pa.Array:
    """The columns that contributed most to each decision, such as ``Age 61 (×1.7 odds); Sex F (÷1.2)``.

    The same words as in an explanation: × raises the odds of the positive class of two, of more those of the predicted
    class against the next best one. Of equal contributions the first by name comes first, as in
    `qmedoid.explain.explaining`. Columns that change the odds by less than a twentieth of a percent are left out.

    Parameters
    ----------
    model : TableModel
    batch : RecordBatch or Table
        The records, under the names of the contract.
    encoded : sequence of ndarray
        Their encoded columns.
    decided : Decisions
    n_reasons : int
        Columns that are named at most.
    """
    names = model.contract.names
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.intp)
    ordered = [model.contract.columns[place] for place in by_name]
    toward, others = decided.codes, model.decision.runners_up(decided.scores, decided.codes)
    if len(model.decision.classes) == 2:
        toward, others = np.ones_like(toward), np.zeros_like(others)
    contributions = column_contributions(model, encoded, toward, others)[:, by_name]
    sizes, each = np.abs(contributions), np.arange(len(contributions))
    # Smaller factors of the odds would be written as 1.000.
    sizes[sizes < (log(SMALLEST_FACTOR) if model.decision.probabilistic else _ROUNDING)] = 0.0
    units = ([" odds"] if model.decision.probabilistic else []) + [""] * n_reasons
    parts = []
    for unit in units[: min(n_reasons, len(names))]:
        places = first_largest_of_rows(sizes)
        values = np.where(sizes[each, places] > 0, contributions[each, places], 0.0)
        parts.append(_named(batch, ordered, places, values, unit, odds=model.decision.probabilistic))
        sizes[each, places] = 0.0
    return joined_texts(parts, "; ")


def sentence_texts(model: TableModel, decided: Decisions, reasons: pa.Array) -> pa.Array:
    """Each decision in words: what an explanation begins with, and the reasons by size."""
    decision, target = model.decision, model.contract.target
    names = [class_name(label, target) for label in decision.classes]
    others, each = decision.runners_up(decided.scores, decided.codes), np.arange(len(decided.codes))
    pairs = [(names[code], names[other]) for code, other in zip(decided.codes.tolist(), others.tolist(), strict=True)]
    is_pair = len(names) == 2
    margins = decided.margins.tolist()
    if not decision.probabilistic:
        said = [
            called_by_score(called, names[1], other, margin, is_pair=is_pair)
            for (called, other), margin in zip(pairs, margins, strict=True)
        ]
    elif is_pair:
        cut, alerts = probability(decision.cut or 0.0), decision.cut is not None
        chances = decision.probabilities_of_second(decided.scores).tolist()
        said = [
            called_with_chance(called, names[1], chance, cut, alerts=alerts)
            for (called, _), chance in zip(pairs, chances, strict=True)
        ]
    else:
        chances = decision.probabilities(decided.scores)
        both = zip(pairs, chances[each, decided.codes].tolist(), chances[each, others].tolist(), strict=True)
        said = [called_before(*pair, chance, of_other) for pair, chance, of_other in both]
    because = pc.fill_null(reasons, "none")
    return pc.binary_join_element_wise(pa.array(said, pa.string()), " Reasons: ", because, ".", "")


def _named(
    batch: pa.RecordBatch | pa.Table,
    columns: Sequence[Column],
    places: npt.NDArray[np.intp],
    values: Array,
    unit: str,
    *,
    odds: bool,
) -> pa.Array:
    """One column of each record with its cell and its effect; null where that is nothing."""
    order = np.argsort(places, kind="stable")
    # In the order of the columns, each of which is written at once.
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    pieces = [pa.array([], pa.string())]
    for rows in np.split(order, starts[1:]) if len(order) else ():
        column = columns[places[rows[0]]]
        effects = pa.array(
            [f" ({effect_text(value, odds=odds)}{unit})" for value in values[rows].tolist()], pa.string()
        )
        name = shortened(printable(column.name))
        said = pc.binary_join_element_wise(name + column_sign(name), _shown(batch, column, rows), pa.array(effects), "")
        pieces.append(pc.if_else(pa.array(values[rows] != 0), said, pa.scalar(None, pa.string())))
    back = np.empty(len(order), dtype=np.intp)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(back))


def _shown(batch: pa.RecordBatch | pa.Table, column: Column, rows: npt.NDArray[np.intp]) -> pa.Array:
    """Some cells of a column as `explain` shows them: numbers with six digits, and missing ones in words."""
    if column.name not in batch.schema.names:
        return pa.repeat("missing", len(rows))
    given = one_chunk(without_missing_values(batch.column(column.name), column)).take(pa.array(rows))
    if pa.types.is_dictionary(given.type):
        given = given.dictionary_decode()
    if is_text(given.type) and not column.spelling and column.kind in ("number", "boolean"):
        # Cells of a file that had to be read as texts are shown as those of any other.
        values = read(given, column.kind).values
        given = pa.array(values, mask=np.isnan(values))
        given = given.cast(pa.bool_()) if column.kind == "boolean" else given
    if pa.types.is_floating(given.type):
        values = given.to_numpy(zero_copy_only=False).astype(np.float64)
        text = pa.array(np.char.mod("%.6g", values).tolist(), pa.string(), mask=np.isnan(values))
    elif pa.types.is_boolean(given.type):
        text = pc.if_else(given, "True", "False")
    elif is_text(given.type) or pa.types.is_integer(given.type):
        text = as_text(given).cast(pa.string())
        if pc.any(pc.greater(pc.utf8_length(text), LONGEST)).as_py():
            text = pa.array([None if cell is None else cell_text(cell) for cell in text.to_pylist()], pa.string())
    else:
        text = pa.array([cell_text(cell[""]) for cell in plain_records(pa.table({"": given}))], pa.string())
    return pc.fill_null(text, "missing")
