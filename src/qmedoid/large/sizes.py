"""How many rows a fit takes: by the memory that it may use, and by what there is."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from qmedoid.exceptions import ParameterError

DEFAULT_MEMORY = 4 * 2**30
"""Memory of a fit, in bytes, where none is given: a table that needs more is fitted in passes."""
MOST_ROWS = 1_000_000
"""Rows of a fit at most: beyond, it takes hours and learns little."""
LEAST_MEMORY = 5 * 2**27
# The interpreter with its libraries, and what passes hold while they read.
_BASE = 461 * 2**20
# Bytes of a fit for every row, and for every number of a row: no fit of benchmarks/fit_memory.py takes more.
_ROW_BYTES, _CELL_BYTES = 0, 220
# Columns that models look at closely, and bytes of a number of any other one.
_CLOSELY, _WIDE_BYTES = 500, 60
# Numbers that a column becomes, about: of a category one for each level, up to some, and of a date its parts.
_NUMBERS, _OTHERS = 1, 4
# Bytes of a judged row, at the peak of sorting and calibrating.
_JUDGED_BYTES = 400
# Shares of the sample: rows of a rare class at most, and hard rows of the common one.
RARE_SHARE, HARD_SHARE = 0.2, 0.2
# A sample has so many rows of every class at least, if there are so many.
SMALL_CLASS = 50
# Rows that calibrate, as a share of the table at most, and of those that are not held out.
_CALIBRATING, _OF_TRAINING = 0.1, 0.25
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def memory_bytes(memory: int | str) -> int:
    """Bytes: a number of them, or a text such as ``"2GB"`` or ``"512 MB"``, with units that are powers of 1024."""
    found = _SIZE.fullmatch(str(memory))
    if found is None or isinstance(memory, bool):
        raise ParameterError(f"The memory of a fit is a size such as 2GB or 512MB. Got {memory!r} instead.")
    return int(float(found[1]) * _UNITS[found[2].lower()])


class Sizes(NamedTuple):
    """Rows of the sample that is fitted, and rows that are judged, at most."""

    sample: int
    judged: int


def width_of(schema: pa.Schema) -> int:
    """Numbers that a row of a table becomes, about."""
    plain = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return sum(_NUMBERS if any(holds(one.type) for holds in plain) else _OTHERS for one in schema)


def sizes_for(memory: int, width: int) -> Sizes:
    """What fits in so many bytes; `width` is that of `width_of`."""
    if memory < LEAST_MEMORY:
        raise ParameterError(
            f"A fit needs at least {LEAST_MEMORY / 2**20:.0f} MB of memory. Got {memory / 2**20:.0f} MB."
        )
    free = memory - _BASE
    return Sizes(min(int(free / _row_bytes(width)), MOST_ROWS), int(free / _JUDGED_BYTES / 2))


def needed_bytes(n_rows: int, width: int) -> int:
    """Memory that a fit of all rows takes, about; `width` is that of `width_of`."""
    return _BASE + n_rows * _row_bytes(width)


def _row_bytes(width: int) -> int:
    return _ROW_BYTES + _CELL_BYTES * min(width, _CLOSELY) + _WIDE_BYTES * max(width - _CLOSELY, 0)


class Shares(NamedTuple):
    """Shares of the rows that are held out and that calibrate."""

    test: float
    calibrate: float


def shares_for(n_rows: int, sizes: Sizes, asked: float, *, is_asked: bool) -> Shares:
    """Shares of a table; by default, no more rows are held out than can be judged in memory."""
    test = asked if is_asked else min(asked, sizes.judged / n_rows)
    if test * n_rows > 1.01 * sizes.judged:
        most = sizes.judged / n_rows
        raise ParameterError(
            f"--test {asked:g} holds out {test * n_rows:,.0f} rows, and {sizes.judged:,} can be judged in the memory "
            f"of this fit: give a share of at most {most:.3g}, or more --memory."
        )
    return Shares(test, min(_CALIBRATING, _OF_TRAINING * (1.0 - test), sizes.judged / n_rows))


def class_rates(counts: Mapping[str, int], share: float, sizes: Sizes, rare: frozenset[str]) -> dict[str, float]:
    """The rate at which rows of every label are drawn, where a `share` of the rows trains.

    Rows of `rare` labels, if there are any, have their own part of the sample.
    """
    total = sum(counts.values())
    n_rare = sum(counts[label] for label in rare)
    if n_rare:
        of_rare = min(1.0, RARE_SHARE * sizes.sample / (share * n_rare))
        left = sizes.sample * (1.0 - HARD_SHARE) - of_rare * share * n_rare
        of_common = min(1.0, left / (share * (total - n_rare)))
        return {label: of_rare if label in rare else of_common for label in counts}
    rate = min(1.0, sizes.sample / (share * total))
    return {label: max(rate, min(1.0, SMALL_CLASS / (share * max(n, 1)))) for label, n in counts.items()}
