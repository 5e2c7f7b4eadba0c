"""Values that stand for missing cells: those that a user names, and those that look as if they did."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Flags
from qmedoid.exceptions import DataError, ParameterError, some_of
from qmedoid.model.contract import Column, Kind
from qmedoid.spelling import did_you_mean
from qmedoid.tables import cells
from qmedoid.tables.arrow import MISSING
from qmedoid.tables.documents import SentinelDict

Role = Literal["category", "number", "date", "keep", "ignore"]
ROLES: tuple[Role, ...] = get_args(Role)
"""What a user can say that a column is; it wins over what is guessed from the cells."""

FEWEST_ROWS, LEAST_SHARE = 5, 0.005
STEPS, REACH, SPIKE = 3.0, 0.1, 3.0
_SELDOM, _SELDOM_REACH = 0.05, 0.25
"""Of a value in fewer rows than this share it must lie farther away: a few true zeros lie below small numbers."""
_NEXT, _STEPS = 10, 20
"""Different values next to the one in question whose rows and whose steps are looked at; `_NEXT` must be there."""
_FEW_OTHERS, _MOST = 20, 3
"""Rows with other values at least, and sentinels of a column at most."""
_CODES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 77, 88, 99, 777, 888, 999, 8888, 9999, 99999, 999999)
_DAYS = ("0001-01-01", "1899-12-30", "1900-01-01", "1970-01-01", "2099-12-31", "2999-12-31", "9999-12-31")
_EPOCHS = tuple(float(np.datetime64(day, "us").astype(np.int64)) for day in _DAYS)
"""Days that programs write for none, in microseconds since 1970."""
_SURE = (-99.9, -999.0, -999.9, -9999.0, -99999.0, -999999.0)
"""Numbers that are looked at in however few rows, where they lie apart; so are those days."""
_OFTEN = 10.0
"""How much more often than any other day one within the range must stand."""
_FEWEST_COUNTED, _LARGEST_COUNTED = 4, 6
"""Whole numbers from 0 up, next to which a code is found: different ones, and those that 9 is no count after."""
_WORDS = re.compile(
    r"[?.]|--?|#?n/?a|n\.a\.|nan|null|nil|unk(nown)?|unspecified|undefined|missing|no (answer|data)|"
    r"not (known|measured|available|recorded|applicable)",
    re.IGNORECASE,
)


Sentinel: TypeAlias = tuple[float | str, int, float | None]
"""A value that may stand for "not measured", its rows, and the nearest of all others, where it lies beyond them."""


class Sentinels(NamedTuple):
    """What was found in a column of a kind, and its rows that are not missing."""

    kind: Kind
    found: tuple[Sentinel, ...]
    n_rows: int
    rows: str = "rows"

    def as_dicts(self) -> list[SentinelDict]:
        """Each value with its rows and the nearest other value, fit for JSON."""
        return [
            {
                "value": cell_text(value, self.kind),
                "rows": rows,
                "nearest": None if nearest is None else cell_text(nearest, self.kind),
            }
            for value, rows, nearest in self.found
        ]

    def message(self, name: str) -> str:
        """The note that ``check`` and ``fit`` print."""
        parts, texts = [], [cell_text(value, self.kind) for value, _, _ in self.found]
        for (value, rows, nearest), text in zip(self.found, texts, strict=True):
            others = "no other day in nearly as many" if self.kind == "date" else ""
            if nearest is not None:
                beyond = ("or later", "or earlier") if self.kind == "date" else ("or more", "or less")
                others = f"{cell_text(nearest, self.kind)} {beyond[float(value) > nearest]} in all others"
            parts.append(f"{text} in {rows:,} of {self.n_rows:,} {self.rows}" + (f", and {others}" if others else ""))
        it, values = ("it", texts[0]) if len(texts) == 1 else ("them", " and ".join(texts))
        options = " ".join(f"--missing {quoted(f'{name}={text}')}" for text in texts)
        listed = ", ".join(text if self.kind == "number" else repr(text) for text in texts)
        return (
            f"{name!r} is {'; '.join(parts)}: {values} may mean 'not measured'. Read {it} as missing: {options} "
            f"(in Python missing={{{name!r}: [{listed}]}})"
        )


def quoted(text: str) -> str:
    """A text as a shell takes it, for a command in a message."""
    import shlex

    return shlex.quote(text) if text.isprintable() else "…"


def cell_text(value: float | str, kind: Kind) -> str:
    """A number as it is written in a table; a date, in microseconds since 1970, in the ISO format; a level."""
    if isinstance(value, str):
        return value
    if kind == "date":
        return str(np.datetime64(int(value), "us")).removesuffix(".000000").removesuffix("T00:00:00")
    return f"{value:.0f}" if value == np.trunc(value) and abs(value) < 2**53 else repr(float(value))


def sentinels_of(table: pa.Table, columns: Sequence[Column], *, is_sample: bool) -> dict[str, Sentinels]:
    """Values that may stand for missing cells, by the columns that hold them."""
    import pyarrow.compute as pc

    found = dict[str, Sentinels | None]()
    values_of = [column for column in columns if column.kind in ("number", "date")]
    for block, values in cells.value_blocks(table, values_of):
        may_hold = _may_hold_sentinels(values)
        for number, column in enumerate(values_of[place] for place in block.tolist()):
            if may_hold[number] or column.kind == "date":
                found[column.name] = find_sentinels(values[:, number], column.kind)
    for column in columns:
        if column.kind == "category":
            # Words that say "not measured", and codes among words. Of words that are missing in a column of numbers a
            # note on how it is read says more.
            levels, counts = cells.texts(table.column(column.name)).drop_null().value_counts().flatten()
            numbers = pc.match_substring_regex(levels, r"^-?\d+(\.\d+)?$").to_pylist()
            are_words = 2 * sum(numbers) < len(levels)
            odd: list[Sentinel] = [
                (level, count, None)
                for level, count, own in zip(levels.to_pylist(), counts.to_pylist(), numbers, strict=True)
                if (_WORDS.fullmatch(level) and level not in MISSING)
                or (own and are_words and (level[0] == "-" or set(level) == {"9"}))
            ]
            if 0 < len(odd) < len(levels):
                found[column.name] = Sentinels("category", tuple(odd), pc.sum(counts).as_py())
    names, rows = [column.name for column in columns], "sampled rows" if is_sample else "rows"
    return {name: one._replace(rows=rows) for name in names if (one := found.get(name)) is not None}


def find_sentinels(values: npt.NDArray[Any], kind: Kind) -> Sentinels | None:
    """Look for sentinels among the cells of a column of numbers or dates as `cells.read` has them.

    Columns both ends of which stand in few rows, as those of most do, are passed over without sorting.
    """
    values = cells.floats(values) if kind == "date" else values
    known = cells.is_usable(values)
    values = values if known.all() else values[known]
    least, is_epoch = _least_rows(len(values)), kind == "date" and np.isin(values, _EPOCHS).any()
    if len(values) < FEWEST_ROWS + _FEW_OTHERS or not (is_epoch or _may_hold_sentinels(values[:, None])[0]):
        return None
    different, rows = np.unique(values.astype(np.float64), return_counts=True)
    found, counts = list[float](), dict(zip(different.tolist(), rows.tolist(), strict=True))
    while len(found) < _MOST and (more := _of_an_end(different, rows, least, kind)):
        found += more
        kept = ~np.isin(different, found)
        different, rows = different[kept], rows[kept]
    # The bound that is shown is that of the cells that are left.
    left: list[Sentinel] = [
        (value, counts[value], float(different[0 if value < different[0] else -1])) for value in found
    ]
    for value in different[np.isin(different, _EPOCHS)].tolist() if kind == "date" else ():
        if (
            counts[value] >= max(least, _OFTEN * rows[different != value].max(initial=1))
            and len(different) > _FEW_OTHERS
        ):
            left.append((value, counts[value], None))
    return Sentinels(kind, tuple(left), len(values)) if left else None


def _least_rows(n_rows: Any) -> Any:
    return np.maximum(FEWEST_ROWS, np.ceil(LEAST_SHARE * n_rows)).astype(np.intp)


def _may_hold_sentinels(values: npt.NDArray[Any]) -> Flags:
    """Which columns of a block of numbers, shape (n, k), have an end that stands in rows enough, or is a known code."""
    known = cells.is_usable(values)
    least = _least_rows(known.sum(axis=0))
    lowest = values.min(axis=0, where=known, initial=np.inf)
    highest = values.max(axis=0, where=known, initial=-np.inf)
    rows = np.maximum((values == lowest).sum(axis=0), (values == highest).sum(axis=0))
    return np.asarray((rows >= least) | np.isin(lowest, _SURE))


def _of_an_end(different: Array, rows: npt.NDArray[np.intp], least: int, kind: Kind) -> list[float]:
    """The sentinels at one of the ends of the different values, in order, if there are any."""
    sure = _EPOCHS if kind == "date" else _SURE
    for sign in (1.0, -1.0):
        values, counts = (different, rows) if sign > 0 else (-different[::-1], rows[::-1])
        end = sign * float(values[0]) if len(values) else 0.0
        if len(values) < 4 or counts[0] < (1 if end in sure else least) or counts[1:].sum() < _FEW_OTHERS:
            continue
        codes, n_from_0 = -values[values < 0], int((values >= 0).sum())
        is_negative = kind == "number" and sign > 0 and -end in _CODES
        are_codes = bool(n_from_0 >= _NEXT and len(codes) <= _MOST and np.isin(codes, _CODES).all())
        # Or a single one below a few counts or grades.
        is_single = len(codes) == 1 and n_from_0 >= _FEWEST_COUNTED and bool((values == np.round(values)).all())
        nines = kind == "number" and abs(end) > 9 and set(cell_text(abs(end), kind)) <= {"9", "."}
        # Codes next to 9, 99 or 999, such as 88, 77, 98 and 97, lie apart together.
        family = np.isin(sign * values[1:], [end - 1, end - 2, end / 9 * 8, end / 9 * 7]) & (sign < 0 and end % 9 == 0)
        others, of_others = values[1:][~family], counts[1:][~family]
        if not len(others):
            continue
        n_others, gap = of_others.sum(), others[0] - values[0]
        if len(others) < _NEXT:
            is_isolated = bool(nines and gap >= STEPS * (others[-1] - others[0]))
            # Next to grades: whole numbers from 0 or 1 up to 6 at most, without a hole.
            grades = -others[::-1]
            are_grades = len(grades) >= _FEWEST_COUNTED and grades[0] in (0.0, 1.0) and grades[-1] <= _LARGEST_COUNTED
            is_isolated = is_isolated or bool(end == 9 and are_grades and (np.diff(grades) == 1.0).all())
        else:
            middle = others[np.searchsorted(np.cumsum(of_others), n_others / 2.0)]
            is_known = nines or end in sure or counts[0] >= _SELDOM * counts.sum()
            reach = REACH if is_known else _SELDOM_REACH
            is_far = gap >= STEPS * np.diff(others[:_STEPS]).max() and gap >= reach * (middle - values[0])
            is_many = counts[0] < n_others and counts[0] >= SPIKE * of_others[:_NEXT].mean()
            is_isolated = bool(is_far and (nines or is_many or end in sure))
        if is_isolated or (is_negative and (are_codes or is_single)):
            return [end, *(sign * values[1:][family]).tolist()] if is_isolated else [end]
    return []


def check_missing(
    origin: str, missing: Any, *, names: Collection[str] | None = None, target: str | None = None
) -> dict[str, tuple[Any, ...]]:
    """Values that are missing by the name of their column, with the words that name the parameter.

    What is no mapping is refused, and a column that is not among `names` (None allows all) or that is the target. No
    value stands for ``""``: no word that otherwise means a missing cell, such as ``NA``, is one in this column.
    """
    if missing is not None and not isinstance(missing, Mapping):
        such = "such as {'Cholesterol': [0]}"
        raise ParameterError(f"{origin} must map column names to lists of values, {such}. Got {missing!r}.")
    found = dict[str, tuple[Any, ...]]()
    for name, values in (missing or {}).items():
        if name == target:
            raise ParameterError(
                f"{origin} names {name!r}, which is the target: rows without a class are left out anyway."
            )
        if names is not None and name not in names:
            raise ParameterError(
                f"{origin} names {name!r}, which is not a column.{did_you_mean(name, names)} The columns are "
                f"{some_of([repr(one) for one in names])}."
            )
        is_one = isinstance(values, str | bytes) or not hasattr(values, "__iter__")
        found[name] = (values,) if is_one else tuple(values) or ("",)
        if any(value is None or value != value or (str(value).strip() == "" and value != "") for value in found[name]):
            raise ParameterError(
                f"{origin} must name values of {name!r} that are not missing anyway, such as 0 or -999, or none at all "
                f"where words such as 'NA' are not missing. Got {values!r}."
            )
    return found


def with_missing_values(
    draft: Column, values: Collection[Any], given: pa.ChunkedArray, decimal: str | None, *, is_sample: bool
) -> Column:
    """A column with values that are missing, in the spelling of the contract.

    One that its kind cannot hold must stand in the column as a text; of a sample that cannot be known.
    """
    import pyarrow.compute as pc

    # Words that are missing in a column of numbers anyway need not stand there.
    words = MISSING if draft.kind != "category" else ("",)
    values = [value for value in values if str(value).strip() not in words]
    texts = [_spelt(value, draft, decimal) for value in values]
    for number, (value, text) in enumerate(zip(values, texts, strict=True)):
        if text is None:
            texts[number] = str(value).strip()
            kind = given.type.value_type if pa.types.is_dictionary(given.type) else given.type
            is_there = kind in cells.TEXT_TYPES and pc.any(pc.equal(cells.texts(given), texts[number])).as_py()
            if not is_sample and not is_there:
                examples = cells.texts(given.slice(0, 100)).drop_null().unique().to_pylist()[:3]
                such = f", such as {', '.join(examples)}" if examples else ""
                raise DataError(
                    f"{value!r} cannot stand in column {draft.name!r}, which holds {_HOLDS[draft.kind]}{such}: name a "
                    "value that is to be read as missing as it is written there."
                )
    return replace(draft, missing_values=tuple(dict.fromkeys(str(text) for text in texts)))


_HOLDS = {"number": "numbers", "boolean": "truth values", "date": "dates", "category": "texts"}


def _spelt(value: Any, draft: Column, decimal: str | None) -> str | None:
    """A value as the contract has it; None where it is none of the column's kind."""
    if hasattr(value, "isoformat"):
        value = value.isoformat()
    text = str(cells.as_text(pa.array([value.item() if isinstance(value, np.generic) else value]))[0].as_py()).strip()
    if draft.kind == "category":
        return text
    tries = [(text, draft.spelling), (text, "")] if isinstance(value, str) else [(text, "")]
    if draft.kind == "number" and isinstance(value, str):
        tries.append((text, "1.234,5" if decimal == "," else "1,234.5"))
    if draft.kind == "date":
        tries.append((text, "yyyymmdd"))
    for one, spelling in tries:
        read = cells.read(pa.array([one]), draft.kind, spelling).values
        number = float(read.astype("M8[us]").astype(np.int64)[0]) if draft.kind == "date" else float(read[0]) + 0.0
        if not (np.isnat(read[0]) if draft.kind == "date" else not abs(number) <= cells.LARGEST):
            return cell_text(number, draft.kind)
    return None
