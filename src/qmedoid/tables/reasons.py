"""Reasons for many decisions as short texts: the columns that contributed most, with their cells."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Array
from qmedoid.kernels.ties import first_largest_of_rows
from qmedoid.model.contract import Column
from qmedoid.model.explanation import column_contributions
from qmedoid.model.table import Decisions, TableModel
from qmedoid.spelling import printable
from qmedoid.tables.cells import as_text, is_text, joined_texts, one_chunk, read

# Characters of a cell that are shown.
_LONGEST = 40


def reason_texts(
    model: TableModel, batch: pa.RecordBatch | pa.Table, encoded: Sequence[Array], decided: Decisions, n_reasons: int
) -> pa.Array:
    """The columns that contributed most to each decision, such as ``Age is 61 (+0.52); Sex is M (-0.2)``.

    Above 0 is for the class that was decided for; of equal contributions the first by name comes first, as in
    `qmedoid.tables.explaining`. Columns that contributed nothing are left out.

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
    others = model.decision.runners_up(decided.scores, decided.codes)
    contributions = column_contributions(model, encoded, decided.codes, others)[:, by_name]
    sizes, each = np.abs(contributions), np.arange(len(contributions))
    parts = []
    for _ in range(min(n_reasons, len(names))):
        places = first_largest_of_rows(sizes)
        parts.append(_named(batch, ordered, places, contributions[each, places]))
        sizes[each, places] = 0.0
    return joined_texts(parts, "; ")


def sentence_texts(model: TableModel, decided: Decisions, reasons: pa.Array) -> pa.Array:
    """Each decision in words: the class, its probability or margin, the reasons, and the nearest medoids."""
    classes, method = [printable(str(label)) for label in model.decision.classes], model.method
    others = model.decision.runners_up(decided.scores, decided.codes)
    each = np.arange(len(others))
    if model.decision.probabilistic:
        found = model.decision.probabilities(decided.scores)[each, decided.codes]
        # What would be rounded to 1 is no certainty.
        how = np.where(
            found < 0.99995, np.char.mod("with a probability of %.4g", found), "with a probability above 0.9999"
        )
    else:
        how = np.char.mod("by a margin of %.4g", np.abs(decided.margins))
    winner = pa.array(classes).take(pa.array(decided.codes))
    parts = ["Called ", winner, " ", pa.array(how.tolist()), "; largest contributions: ", pc.fill_null(reasons, "none")]
    if method is not None and decided.nearest is not None:
        for codes in (decided.codes, others):
            rows = method.medoid_rows[decided.nearest[each, codes]]
            parts += [
                "; nearest known ",
                pa.array(classes).take(pa.array(codes)),
                ": training row ",
                pa.array(rows).cast(pa.string()),
            ]
    return pc.binary_join_element_wise(*parts, ".", "")


def _named(
    batch: pa.RecordBatch | pa.Table, columns: Sequence[Column], places: npt.NDArray[np.intp], values: Array
) -> pa.Array:
    """One column of each record with its cell and what it contributed; null where that is nothing."""
    order = np.argsort(places, kind="stable")
    # In the order of the columns, each of which is written at once.
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    pieces = [pa.array([], pa.string())]
    for rows in np.split(order, starts[1:]) if len(order) else ():
        column = columns[places[rows[0]]]
        amounts = pa.array(np.char.mod("%+.3g", values[rows]).tolist(), pa.string())
        said = pc.binary_join_element_wise(
            printable(column.name), " is ", _shown(batch, column, rows), " (", amounts, ")", ""
        )
        pieces.append(pc.if_else(pa.array(values[rows] != 0), said, pa.scalar(None, pa.string())))
    back = np.empty(len(order), dtype=np.intp)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(pieces).take(pa.array(back))


def _shown(batch: pa.RecordBatch | pa.Table, column: Column, rows: npt.NDArray[np.intp]) -> pa.Array:
    """Some cells of a column as `explain` shows them: numbers with six digits, and missing ones in words."""
    if column.name not in batch.schema.names:
        return pa.repeat("missing", len(rows))
    given = one_chunk(batch.column(column.name)).take(pa.array(rows))
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
    else:
        text = as_text(given).cast(pa.string())
    text = pc.if_else(
        pc.greater(pc.utf8_length(text), _LONGEST),
        pc.binary_join_element_wise(pc.utf8_slice_codeunits(text, 0, _LONGEST - 1), "…", ""),
        text,
    )
    return pc.fill_null(text, "missing")
