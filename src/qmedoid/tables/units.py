"""Rows of units below the header of a table, such as ``years,kg``, which are no records."""

from collections.abc import Mapping
from typing import NamedTuple

import pyarrow as pa

from qmedoid.exceptions import DataError, some_of, warn
from qmedoid.tables import cells
from qmedoid.tables.kinds import kind_of_type
from qmedoid.tables.roles import Role

# Rows below the header that may be no records.
_MOST = 3
# Cells that a column has below these rows at least, and the share of them that are numbers.
_FEWEST, _MOSTLY = 5, 0.9
# Cells that show of most columns of texts that they are none of numbers.
_FEW = 100
# Roles that settle what a column is.
_SETTLED = ("number", "category", "date", "ignore")
# What a text has that says something, and words that say that a cell is missing: neither - nor n/a is a unit.
_SIGNS = r"[\pL%°$€£¥]"
_ABSENT = r"^(?i:unknown|missing|none|null|nan|na|n/a|n\.a\.|nil|not available|not known|error|undefined)$"


class UnitRows(NamedTuple):
    """The rows at the beginning of a table that look like units: how many, and texts of them by column."""

    n_rows: int
    texts: dict[str, str]

    @property
    def is_sure(self) -> bool:
        """Whether it cannot be a record with a single cell that was mistyped."""
        return len(self.texts) > 1

    def message(self, first: str = "the first row") -> str:
        """What is said of these rows; the `first` of them is called so."""
        several = self.n_rows > 1
        such = some_of([f"{text!r} in {name!r}" for name, text in self.texts.items()], 3)
        name = next(iter(self.texts))
        rows = f"{first} and the {'next' if self.n_rows == 2 else 'next two'} look" if several else f"{first} looks"
        record = "they are records" if several else "it is a record"
        return (
            f"{rows} like units, not like {'records' if several else 'a record'}: {such}, above cells that are "
            f"numbers. Remove {'them' if several else 'it'}; or, if {record}, say --number {name!r} "
            f"(roles={{{name!r}: 'number'}} in Python), and so on: then such cells are missing"
        )

    def refuse_or_warn(self, first: str = "the first row") -> None:
        """Refuse the table where these rows are surely no records, else warn."""
        text = f"{self.message(first)}."
        text = text[0].upper() + text[1:]
        if self.is_sure:
            raise DataError(text)
        warn(text)


def find_units(table: pa.Table, roles: Mapping[str, Role]) -> UnitRows | None:
    """The rows of units that a table begins with; None where it begins with a record.

    Such a row has texts in more of the columns that hold numbers below than it has numbers, and the texts do not occur
    again. Columns whose role settles what they are do not count.
    """
    if not any(cells.is_text(field.type) for field in table.schema):
        return None
    texts, numbers = [dict[str, str]() for _ in range(_MOST)], _MOST * [0]
    for name, column in zip(table.column_names, table.columns, strict=True):
        if roles.get(name) in _SETTLED:
            continue
        if kind_of_type(column.type) == "number":
            for row, cell in enumerate(column.slice(0, _MOST).is_valid().to_pylist()):
                numbers[row] += cell
        elif cells.is_text(column.type):
            for row, (text, is_number) in enumerate(_head_of_numbers(column)):
                numbers[row] += is_number
                if text is not None:
                    texts[row][name] = text
    n_rows = next((row for row in range(_MOST) if len(texts[row]) <= numbers[row]), _MOST)
    return UnitRows(n_rows, texts[0]) if n_rows else None


def _head_of_numbers(column: pa.ChunkedArray) -> list[tuple[str | None, bool]]:
    """Of the first cells of a column of numbers the text, if one is no number, and whether it is; else nothing."""
    import pyarrow.compute as pc

    from qmedoid.tables._numbers import look_like_numbers

    if not _are_numbers(_texts(column.slice(_MOST, _FEW)).drop_null(), fewest=0):
        return []
    head = _texts(column.slice(0, _MOST))
    are_numbers = look_like_numbers(head)
    says = pc.and_(pc.match_substring_regex(head, _SIGNS), pc.invert(pc.match_substring_regex(head, _ABSENT)))
    is_unit = pc.and_(pc.fill_null(says, False), pc.invert(are_numbers))
    if pc.any(is_unit).as_py():
        # All other cells are looked at where it matters only: that takes its time.
        below = _texts(column.slice(_MOST)).drop_null()
        if not _are_numbers(below, fewest=_FEWEST):
            return []
        is_unit = pc.and_(is_unit, pc.invert(pc.is_in(head, value_set=below.unique())))
    parts = zip(head.to_pylist(), is_unit.to_pylist(), are_numbers.to_pylist(), strict=True)
    return [(text if unit else None, bool(number)) for text, unit, number in parts]


def _texts(column: pa.ChunkedArray) -> pa.Array:
    return cells.texts(column).cast(pa.string())


def _are_numbers(given: pa.Array, *, fewest: int) -> bool:
    """Whether there are enough cells, and nearly all of them are numbers in any spelling."""
    import pyarrow.compute as pc

    from qmedoid.tables._numbers import look_like_numbers

    return len(given) >= fewest and (pc.sum(look_like_numbers(given)).as_py() or 0) >= _MOSTLY * len(given)
