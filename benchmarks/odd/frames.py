"""Odd data in memory: data frames, Arrow tables, and objects in cells."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.odd.base import N_ROWS, Odd, base, is_yes


def frames() -> Iterator[Odd]:
    """Pandas data frames."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    columns = base()
    x, place, truth = columns["x"], columns["place"], is_yes()
    gaps = [None if i % 9 == 0 else one for i, one in enumerate(x)]

    def frame(name: str, cells, means=None, says: str = "", both: bool = False) -> Odd:
        table = pd.DataFrame(columns)
        table.insert(0, "z", cells)
        return Odd(name, table, None if means is None else {"z": means}, says, both=both)

    whole, some = [round(one) for one in x], [None if one is None else round(one) for one in gaps]
    answers = [None if i % 9 == 0 else one ^ (i % 5 == 0) for i, one in enumerate(truth)]
    days = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=i % 60 + 30 * one) for i, one in enumerate(truth)]
    yield frame("whole numbers of pandas with gaps", pd.array(some, dtype="Int64"), some)
    yield frame("floats of pandas with gaps", pd.array(gaps, dtype="Float64"), gaps)
    yield frame("truth values of pandas with gaps", pd.array(answers, dtype="boolean"), answers)
    yield frame("texts of pandas", pd.array(place, dtype="string"), place)
    yield frame("objects of truth values and None", pd.Series(answers, dtype=object), answers)
    yield frame("objects of numbers and None", pd.Series(gaps, dtype=object), gaps)
    mixed = [one if i % 2 else str(one) for i, one in enumerate(x)]
    yield frame("objects of numbers and texts", pd.Series(mixed, dtype=object), x, "number|types")
    nothing = [one if i % 3 else "none of these" for i, one in enumerate(x)]
    yield frame("objects of numbers and words", pd.Series(nothing, dtype=object), None, "number|types|different|text")
    yield frame("decimals of Python", pd.Series([Decimal(str(one)) for one in x], dtype=object), x)
    yield frame(
        "fractions of Python",
        pd.Series([Fraction(round(one), 7) for one in x], dtype=object),
        None,
        "fraction|type|text|number|name|different",
    )
    yield frame("dates of Python", pd.Series([one.date() for one in days], dtype=object), days)
    unused = pd.Categorical(place, categories=["Bern", "Oslo", "Paris", "Rome", "Wien"])
    yield frame("a categorical with unused levels", unused, place)
    ordered = pd.Categorical(place, categories=["Rome", "Oslo", "Bern"], ordered=True)
    yield frame("an ordered categorical", ordered, place)
    numbers = pd.Categorical(whole)
    yield frame("a categorical of numbers", numbers, [str(one) for one in whole])
    lengths = [datetime.timedelta(seconds=one) for one in whole]
    yield frame("lengths of time", pd.Series(lengths), [float(one) for one in whole])
    yield frame("periods", pd.PeriodIndex(days, freq="D").array, None, "period|date|type|level|text|different|time")
    yield frame(
        "intervals",
        pd.arrays.IntervalArray.from_breaks(np.arange(N_ROWS + 1.0)),
        None,
        "interval|struct|type|number",
    )
    zoned = pd.Series(days).dt.tz_localize("Europe/Berlin")
    yield frame(
        "moments with a zone",
        zoned,
        [one.to_pydatetime().astimezone(datetime.UTC).replace(tzinfo=None) for one in zoned],
    )
    gone = pd.Series([pd.NaT if i % 9 == 0 else one for i, one in enumerate(days)])
    yield frame("moments that are missing", gone, [None if i % 9 == 0 else one for i, one in enumerate(days)])
    yield frame("lists in cells", pd.Series([[1, 2]] * N_ROWS), None, "list")
    yield frame("dictionaries in cells", pd.Series([{"a": 1}] * N_ROWS), None, "struct|dict")
    yield frame("bytes in cells", pd.Series([b"ab"] * N_ROWS, dtype=object), None, "binary|bytes")
    yield frame("complex numbers", pd.Series(np.array(x) * 1j), None, "complex")
    yield frame("sets in cells", pd.Series([{1}] * N_ROWS, dtype=object), None, "set|type|every cell")
    yield frame("functions in cells", pd.Series([len] * N_ROWS, dtype=object), None, "function|type|every cell")
    infinite = [np.inf if i % 2 and i < 50 else -np.inf if i < 50 and i % 4 == 0 else one for i, one in enumerate(x)]
    yield frame("many infinite cells", infinite, None, "infinite|inf|1e150")
    yield frame("half precision", np.array(whole, dtype=np.float16), [float(one) for one in whole])
    yield frame(
        "unsigned numbers beyond 2^53",
        np.array([2**63 + i for i in range(N_ROWS)], dtype=np.uint64),
        None,
        "2\\^53|exact|numbers the rows|digits",
    )
    yield frame("one byte each", np.array(whole, dtype=np.uint8), [float(one) for one in whole])
    yield frame("None alone", pd.Series([None] * N_ROWS, dtype=object), None, "missing|empty")
    sparse = pd.arrays.SparseArray([0.0 if one else 1.5 for one in truth])
    yield frame("a sparse column", sparse, [0.0 if one else 1.5 for one in truth], "sparse|type")
    lone = ["a\ud800b" if one else "c" for one in truth]
    yield frame("half a letter", pd.Series(lone, dtype=object), None, "surrogate|encod|utf|letter")
    double = pd.DataFrame(columns)
    double.insert(0, "x ", x)
    double.columns = ["x", "x", "place", "y"]
    yield Odd("two columns of one name in a frame", double, None, "twice|name|same|duplicate|differ")
    deep = pd.DataFrame(columns)
    deep.columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "place"), ("b", "y")])
    yield Odd("names of two levels", deep, None, "name|level|text|str|column", target=("b", "y"))
    numbered = pd.DataFrame(columns)
    numbered.columns = [0, 1, "y"]
    yield Odd("numbers as names", numbered, {"0": x})
    shuffled = pd.DataFrame(columns, index=np.arange(N_ROWS)[::-1] * 7)
    yield Odd("an index in another order", shuffled, columns)
    twice = pd.DataFrame(columns, index=[0] * N_ROWS)
    yield Odd("an index of equal names", twice, columns)


def arrow() -> Iterator[Odd]:
    """Arrow tables, and other things that hold columns."""
    columns = base()
    whole, truth = [round(one) for one in columns["x"]], is_yes()

    def table(name: str, cells: pa.Array, means=None, says: str = "") -> Odd:
        plain = pa.table({"z": cells, **columns})
        return Odd(name, plain, None if means is None else {"z": means}, says)

    day = [datetime.datetime(2024, 1, 1) + datetime.timedelta(days=i % 40, seconds=i) for i in range(N_ROWS)]
    yield table("Arrow decimals", pa.array([Decimal(one) for one in whole], pa.decimal128(20, 4)), whole)
    yield table("Arrow wide decimals", pa.array([Decimal(one) for one in whole], pa.decimal256(60, 4)), whole)
    yield table("Arrow moments of nanoseconds with a zone", pa.array(day, pa.timestamp("ns", "UTC")), day)
    yield table("Arrow moments of seconds", pa.array(day, pa.timestamp("s")), day)
    yield table(
        "Arrow dates of milliseconds",
        pa.array([one.date() for one in day], pa.date64()),
        [one.replace(hour=0, minute=0, second=0) for one in day],
    )
    yield table("Arrow views of texts", pa.array(columns["place"], pa.string_view()), columns["place"])
    codes = pa.array([("a", "b")[one] for one in truth]).dictionary_encode()
    yield table("Arrow dictionaries", codes, [("a", "b")[one] for one in truth])
    numbers = pa.DictionaryArray.from_arrays(pa.array([int(one) for one in truth], pa.int8()), pa.array([3, 8]))
    yield table("Arrow dictionaries of numbers", numbers, [("3", "8")[one] for one in truth])
    yield table("Arrow half precision", pa.array(np.array(whole, np.float16)), whole)
    yield table("Arrow fixed bytes", pa.array([b"ab"] * N_ROWS, pa.binary(2)), None, "binary|bytes")
    yield table("Arrow lists", pa.array([[1]] * N_ROWS), None, "list")
    yield table("Arrow maps", pa.array([[("a", 1)]] * N_ROWS, pa.map_(pa.string(), pa.int64())), None, "map|list")
    yield table("Arrow nulls", pa.nulls(N_ROWS), None, "missing|empty")
    yield table(
        "Arrow lengths of time", pa.array([datetime.timedelta(seconds=one) for one in whole], pa.duration("ms")), whole
    )
    yield Odd("a dictionary of lists", dict(columns), columns)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    yield Odd("a list of dictionaries", rows, None, "rows|list|dict|frame")
    uneven = dict(columns) | {"x": columns["x"][:-1]}
    yield Odd("columns of two lengths", uneven, None, "length|rows|cells")
    polars = pytest.importorskip("polars", reason="polars is not installed: pip install polars")
    yield Odd("a frame of polars", polars.DataFrame(columns), columns)
