"""Cells of a table that is scored which are spelt otherwise than in training."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from qmedoid.arrays import Flags
from qmedoid.model.contract import Column
from qmedoid.tables._csv import POINT_MARK
from qmedoid.tables._date_spelling import look_like_dates
from qmedoid.tables._spelling import may_be_other_thousands, may_be_thousands, respelt, shows_points
from qmedoid.tables.cells import as_text


def in_other_spelling(wrong: pa.Array, column: Column) -> pa.Array:
    """Those of the cells that were not read which are numbers or dates all the same, spelt otherwise."""
    if column.kind == "date":
        return wrong.filter(look_like_dates(wrong))
    marked = pc.or_(pc.ends_with(wrong, POINT_MARK), pc.match_substring_regex(wrong, _DOUBTFUL))
    return wrong.filter(pc.or_(marked, respelt(wrong, column.spelling)))


def doubtful_points(given: pa.Array, spelling: str) -> tuple[Flags, pa.Array] | None:
    """Which cells may have thousands for decimals, and their texts; None where others show what the sign means."""
    if spelling:
        is_doubtful, is_shown = may_be_other_thousands(given, spelling), False
    else:
        is_doubtful, is_shown = may_be_thousands(given), shows_points(given)
    if not is_doubtful:
        return None if is_shown else (np.zeros(len(given), dtype=bool), pa.array([], pa.string()))
    text = pc.utf8_trim_whitespace(as_text(given))
    doubtful = pc.fill_null(pc.match_substring_regex(text, _DOUBTFUL), False)
    return doubtful.to_numpy(zero_copy_only=False), text.filter(doubtful).cast(pa.string())


_DOUBTFUL = r"^[^.,]*[1-9]\d{0,2}[.,]\d{3}[^.,\d]*$"
