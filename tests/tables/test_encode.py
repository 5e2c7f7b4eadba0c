"""Cells become the numbers that the encodings say, and every surprise is counted."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.model.contract import Column, Contract, Dates, Levels, Numbers
from qmedoid.tables import cells
from qmedoid.tables.difference import Issues
from qmedoid.tables.encode import date_part, encode_batch, encode_column

LEVELS = Levels(("a", "b"), np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0]]), ("=a", "=b"))
PARTS = ("days", "month", "weekday", "hour")


def number(values, fill=7.0, *, indicator=False, missing=False, kind="number", issues=None):
    column = Column("c", kind, missing=missing)
    given = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    return encode_column(given, column, Numbers(fill, indicator), issues)


def level(values, *, is_open=False, missing=False, issues=None):
    given = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, pa.string())
    return encode_column(given, Column("c", "category", missing, is_open=is_open), LEVELS, issues)


def test_floats_are_not_copied():
    values = np.array([1.0, 2.0, 3.0])
    assert np.shares_memory(number(pa.array(values))[0], values)
    assert np.shares_memory(number(pa.chunked_array([pa.array(values)]))[0], values)


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 0], pa.int8()),
        pa.array([1, 2, 0], pa.uint64()),
        pa.array([1, 2, 0], pa.float16()),
        pa.array([1, 2, 0], pa.float32()),
        pa.array([Decimal(1), Decimal(2), Decimal(0)], pa.decimal128(5, 2)),
        pa.array(["1", " 2.0", "0e5"]),
        pa.array(["1", "+2.", "-.0"], pa.large_string()),
        pa.array(["1", "2", "0"], pa.string_view()),
        pa.array(["1", "2", "0"]).dictionary_encode(),
        pa.chunked_array([pa.array([1.0]), pa.array([2.0, 0.0])]),
        pa.array([dt.timedelta(seconds=1), dt.timedelta(seconds=2), dt.timedelta(0)]),
    ],
    ids=lambda values: str(values.type),
)
def test_number_is_a_number_however_it_is_stored(values):
    issues = Issues()
    np.testing.assert_array_equal(number(values, issues=issues), [[1.0, 2.0, 0.0]])
    assert not issues.columns


finite = st.floats(-1e150, 1e150, allow_nan=False)
cell = st.one_of(st.none(), finite, st.just(float("nan")), st.just(float("inf")), st.just(-1e300))


@given(st.lists(cell, min_size=1))
@settings(deadline=None)
def test_numbers_cell_by_cell(values):
    issues = Issues()
    filled, absent = number(pa.array(values, pa.float64()), indicator=True, issues=issues)
    for given_, now, is_absent in zip(values, filled, absent, strict=True):
        usable = given_ is not None and abs(given_) <= 1e150
        assert (now, is_absent) == ((given_, 0.0) if usable else (7.0, 1.0))
    huge = sum(value is not None and abs(value) > 1e150 for value in values)
    assert issues.column("c")["huge"] == huge
    assert issues.column("c")["missing"] == int(absent.sum()) - huge


@given(st.lists(st.one_of(st.none(), finite.map(str), st.sampled_from(["", " ", "nan", "x", "1,5", "1 2"]))))
@settings(deadline=None)
def test_texts_as_numbers_agree_with_python(values):
    def parsed(text):
        try:
            return float(text)
        except (TypeError, ValueError):
            return np.nan

    read = cells.read(pa.array(values, pa.string()), "number")
    np.testing.assert_array_equal(read.values, [parsed(text) for text in values])
    assert read.wrong.to_pylist() == [text for text in values if text in ("x", "1,5", "1 2")]


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ([True, False, None], 0),
        ([1, 0, None], 0),
        ([1.0, 0.0, np.nan], 0),
        (["True", "no", ""], 0),
        ([" YES", "0", None], 0),
        ([1, 0, 3], 1),
        (["t", "f", "perhaps"], 1),
    ],
)
def test_truth_values(values, wrong):
    issues = Issues()
    np.testing.assert_array_equal(number(values, kind="boolean", issues=issues), [[1.0, 0.0, 7.0]])
    assert issues.column("c")["wrong"] == wrong
    assert issues.column("c")["missing"] == 1 - wrong


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
@given(values=st.lists(st.sampled_from(["a", "b", "c", "", None])))
@settings(max_examples=30, deadline=None)
def test_levels_cell_by_cell(kind, values):
    issues = Issues()
    first, second = level(pa.array(values, pa.string()).cast(kind), issues=issues)
    place = {"a": 0, "b": 1, "": 2, None: 2, "c": 3}
    np.testing.assert_array_equal(first, [LEVELS.values[place[value], 0] for value in values])
    np.testing.assert_array_equal(second, 10 * first)
    assert issues.column("c")["unseen"] == values.count("c")
    assert list(issues.column("c")["unseen_levels"]) == ["c"] * ("c" in values)
    assert issues.column("c")["missing"] == values.count("") + values.count(None)


@given(st.lists(st.floats(allow_nan=False) | st.integers(-(2**60), 2**60).map(float) | st.none(), min_size=1))
@settings(deadline=None)
def test_float_is_a_text_whatever_its_neighbors(values):
    array = pa.array(values, pa.float64())
    alone = [cells.as_text(array.slice(place, 1))[0].as_py() for place in range(len(values))]
    assert cells.as_text(array).to_pylist() == alone
    assert [text if text is None else float(text) for text in alone] == values
    assert cells.as_text(pa.array([np.nan, 123456789000.0, 0.5], from_pandas=False)).to_pylist() == [
        None,
        "123456789000",
        "0.5",
    ]


moments = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))


@given(st.lists(moments, min_size=1))
@settings(deadline=None)
def test_parts_of_dates_agree_with_python(values):
    days, month, weekday, hour = (
        date_part(np.array(values, dtype="M8[us]"), part) for part in ("days", "month", "weekday", "hour")
    )
    epoch = dt.datetime(1970, 1, 1)
    np.testing.assert_allclose(days, [(value - epoch) / dt.timedelta(days=1) for value in values], rtol=1e-15)
    np.testing.assert_array_equal(month, [value.month for value in values])
    np.testing.assert_array_equal(weekday, [value.weekday() for value in values])
    midnight = [dt.datetime(value.year, value.month, value.day) for value in values]
    expected = [(value - start) / dt.timedelta(hours=1) for value, start in zip(values, midnight, strict=True)]
    np.testing.assert_allclose(hour, expected, rtol=1e-14)


@given(st.lists(moments, min_size=1), st.sampled_from(["us", "ns"]), st.sampled_from([None, "UTC", "+05:30"]))
@settings(deadline=None)
def test_date_is_a_date_however_it_is_stored(values, unit, zone):
    known = pa.array(values, pa.timestamp("us"))
    stored = known.cast(pa.timestamp("us", tz=zone)).cast(pa.timestamp(unit, tz=zone))
    text = pa.array([value.isoformat() for value in values])
    zoned = pa.array([value.isoformat() + "Z" for value in values])
    shifted = pa.array([value.isoformat(" ") + "+00:00" for value in values])
    for given_ in (known, stored, text, zoned, shifted, pa.chunked_array([known])):
        read = cells.read(given_, "date")
        np.testing.assert_array_equal(read.values.astype("M8[us]"), np.array(values, dtype="M8[us]"))
        assert not len(read.wrong)


def test_days_that_do_not_exist_are_wrong():
    read = cells.read(pa.array(["2024-02-29", "2023-02-29", "2024-13-01", "soon", "", None, "2024-04-30"]), "date")
    assert read.wrong.to_pylist() == ["2023-02-29", "2024-13-01", "soon"]
    np.testing.assert_array_equal(np.isnat(read.values), [False, True, True, True, True, True, False])


def test_short_ways_to_write_a_moment():
    texts = ["2024-02-29T10", "2024-02-29 10:00", "2024-02-29T10Z", "2024-02-29T12:00+02", "2024-02-29T12:00:00+0200"]
    read = cells.read(pa.array(texts), "date")
    assert not len(read.wrong)
    assert set(read.values.tolist()) == {dt.datetime(2024, 2, 29, 10)}


def test_missing_dates_have_fills_and_an_indicator():
    encoding = Dates(PARTS, np.array([100.0, 6.0, 3.0, 12.0]), indicator=True)
    given_ = pa.array([dt.datetime(1970, 1, 2, 6), None])
    outputs = encode_column(given_, Column("c", "date"), encoding)
    np.testing.assert_array_equal(outputs, [[1.25, 100.0], [1.0, 6.0], [4.0, 3.0], [6.0, 12.0], [0.0, 1.0]])


def test_times_of_day_are_dates_of_the_first_day():
    given_ = pa.array([dt.time(6), dt.time(18, 30)])
    outputs = encode_column(given_, Column("c", "date"), Dates(("days", "hour"), np.zeros(2)))
    np.testing.assert_array_equal(outputs, [[0.25, 18.5 / 24], [6.0, 18.5]])
    for texts in (["06:00:00", "18:30:00"], ["06:00", " 18:30:00.000"]):
        as_text = encode_column(pa.array(texts), Column("c", "date"), Dates(("days", "hour"), np.zeros(2)))
        np.testing.assert_array_equal(as_text, outputs)
    assert cells.read(pa.array(["24:00", "6:00", "12:60"]), "date").wrong.to_pylist() == ["24:00", "12:60"]


CONTRACT = Contract((Column("n", "number"), Column("c", "category"), Column("t", "boolean")))
ENCODINGS = (Numbers(0.0, indicator=True), LEVELS, Numbers(0.5))
TABLE = {"n": [1.0, 2.0, None], "c": ["a", "b", "x"], "t": [True, False, True]}


@given(st.permutations(sorted(TABLE)), st.integers(0, 3))
@settings(max_examples=20, deadline=None)
def test_neither_order_of_columns_nor_cuts_between_rows_matter(order, cut):
    whole, in_parts = Issues(), Issues()
    expected = encode_batch(pa.table(TABLE), CONTRACT, ENCODINGS, issues=whole)
    table = pa.table({"extra": ["?"] * 3} | {name: TABLE[name] for name in order})
    parts = [
        encode_batch(part, CONTRACT, ENCODINGS, issues=in_parts) for part in (table.slice(0, cut), table.slice(cut))
    ]
    np.testing.assert_array_equal(np.hstack(parts), expected)
    assert in_parts == whole
    assert whole.rows == 3


def test_columns_that_are_not_wanted_are_zero_and_share_their_memory():
    table = pa.table(TABLE)
    everything = encode_batch(table, CONTRACT, ENCODINGS)
    issues = Issues()
    only = encode_batch(table, CONTRACT, ENCODINGS, only={1}, issues=issues)
    np.testing.assert_array_equal(only[2:4], everything[2:4])
    assert not np.any([only[place] for place in (0, 1, 4)])
    assert only[0] is only[1] is only[4]
    assert set(issues.columns) == {"c"}


def test_column_that_is_not_there_is_missing_everywhere():
    issues = Issues()
    outputs = encode_batch(pa.table({"n": [1.0, 2.0]}).to_batches()[0], CONTRACT, ENCODINGS, issues=issues)
    np.testing.assert_array_equal(outputs, [[1, 2], [0, 0], [3, 3], [30, 30], [0.5, 0.5]])
    assert issues.column("c")["missing"] == issues.column("t")["missing"] == 2


@pytest.mark.parametrize(
    ("kind", "far", "near"),
    [
        (pa.timestamp("s"), 2**62, 86_400),
        (pa.timestamp("ms"), -(2**62), 86_400_000),
        (pa.date32(), 2**31 - 1, 1),
        (pa.date64(), 2**62 // 86_400_000 * 86_400_000, 86_400_000),
    ],
)
def test_moments_too_far_away_are_counted_and_do_not_wrap_around(kind, far, near):
    stored = pa.array([far, near, None], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind, safe=False)
    values, wrong = cells.read(stored, "date")
    assert np.isnat(values).tolist() == [True, False, True]
    assert values[1] == np.datetime64("1970-01-02")
    assert [text.split()[0] for text in wrong.to_pylist()] == [str(far)]


def test_durations_are_seconds_in_any_unit():
    for unit, per_second in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        values, _ = cells.read(pa.array([3 * per_second, None], pa.duration(unit)), "number")
        np.testing.assert_array_equal(values, [3.0, np.nan])
    assert cells.read(pa.array([2**62], pa.duration("s")), "number").values[0] == 2.0**62


@given(st.lists(st.sampled_from(["a", "b", "1", "2.5", "007"]), min_size=1), st.data())
@settings(max_examples=30, deadline=None)
def test_blanks_and_trailing_zeros_do_not_make_another_level(values, data):
    levels = ("007", "1", "2.5", "a", "b")
    ways = {"1": ["1", "1.0", "1."], "2.5": ["2.5", "2.50"]}
    written = [
        data.draw(st.sampled_from(["", " ", "\t"])) + data.draw(st.sampled_from(ways.get(value, [value]))) + "  "
        for value in values
    ]
    plain, _ = cells.level_codes(pa.array(values), levels)
    for given_ in (pa.array(written), pa.array(written).dictionary_encode()):
        codes, unseen = cells.level_codes(given_, levels)
        assert codes.tolist() == plain.tolist() == [levels.index(value) for value in values]
        assert not len(unseen)


def test_leading_zeros_and_levels_that_differ_in_spelling_alone_stay_apart():
    codes, unseen = cells.level_codes(pa.array(["7", "07", "1.0", "1", "1.00", " "]), ("007", "1", "1.0"))
    assert codes.tolist() == [4, 4, 2, 1, 4, 3]
    assert unseen.to_pylist() == ["7", "07", "1.00"]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_infinity_is_missing_in_any_precision(kind):
    values = pa.array([1.0, float("inf"), 2.0, float("-inf"), None], kind)
    encoding = Numbers(1.5, indicator=True)
    numbers, absent = encode_column(values, Column("x", "number", missing=True), encoding)
    np.testing.assert_array_equal(numbers, [1.0, 1.5, 2.0, 1.5, 1.5])
    np.testing.assert_array_equal(absent, [0, 1, 0, 1, 1])
