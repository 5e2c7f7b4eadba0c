"""Cells as spreadsheets write them: numbers, dates, long whole numbers, lists."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid import MedoidClassifier
from qmedoid.exceptions import DataError
from qmedoid.model.contract import DATE_SPELLINGS, Contract, is_spelling
from qmedoid.model.storage.forms import read
from qmedoid.tables import cells
from qmedoid.tables.dataset import Dataset, DatasetSettings
from qmedoid.tables.dates import find_dates
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.source import open_table
from qmedoid.tables.targets import label_codes
from qmedoid.tables.text_kinds import find_spelling

SIGNS = st.sampled_from(
    [("", "."), ("", ","), (",", "."), (".", ","), (" ", ","), ("\u00a0", "."), ("'", "."), ("\u202f", ",")]
)
MONEY = st.sampled_from(["{}", "${}", "{} €", "EUR {}", "{} %", "{}%", "CHF {}"])
NEGATIVE = st.sampled_from(["-{}", "({})", "{}-", "−{}"])


def inferred(values, name="a", **hints):
    return infer_columns(pa.table({name: values}), **hints)


def only(values, **hints):
    """The one column, and what was said about it."""
    found = inferred(values, **hints)
    return (found.columns[0] if found.columns else None), " ".join([*found.notes.values(), *found.left_out.values()])


@settings(max_examples=50)
@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=30), SIGNS, MONEY, NEGATIVE, st.sampled_from([1, 2, 4])
)
def test_what_one_spelling_writes_is_read_back(counts, signs, money, negative, digits):
    """Whatever spelling is found, the numbers are those that were written; or it is asked for."""
    values = [count / 10**digits for count in counts]

    def spelt(value):
        text = f"{abs(value):,.{digits}f}".translate(str.maketrans({",": signs[0], ".": signs[1]}))
        text = money.format(text)
        return negative.format(text) if value < 0 else text

    text = pa.array([spelt(value) for value in values])
    found = find_spelling(text)
    assert found.spelling is not None
    assert is_spelling("number", found.spelling)
    read = cells.read(text, "number", found.spelling)
    assert not len(read.wrong)
    expected = np.array(values) / (100 if "%" in money else 1)
    np.testing.assert_allclose(read.values, expected, rtol=1e-12, atol=1e-15)


@settings(max_examples=50)
@given(st.lists(st.dates(dt.date(1900, 1, 1), dt.date(2199, 12, 31)), min_size=1, max_size=30),
       st.sampled_from(["%d.%m.%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d-%b-%Y", "%b %d, %Y", "%d.%m.%Y %H:%M",
                        "%m/%d/%Y %I:%M %p", "%Y-%m-%dT%H:%M:%S"]))  # fmt: skip
def test_dates_are_read_back_or_asked_for(days, form):
    moments = [dt.datetime.combine(day, dt.time(day.day % 24, day.month)) for day in days]
    text = pa.array([moment.strftime(form) for moment in moments])
    if "%H" not in form and "%I" not in form:
        moments = [dt.datetime.combine(day, dt.time()) for day in days]
    found = find_dates(text)
    if found.ambiguous:
        assert all(day.day <= 12 for day in days)
        found = find_dates(text, "day-first" if form.startswith("%d") else "month-first")
    read = cells.read(text, "date", found.spelling)
    assert read.values.tolist() == moments


@pytest.mark.parametrize(
    ("texts", "spelling", "first"),
    [
        (["1,275.22", "935.1"], "1,234.5", 1275.22),
        (["1.275,22", "935,1"], "1.234,5", 1275.22),
        (["20'628", "5"], "1'234", 20628),
        (["20 628", "5"], "1 234", 20628),
        (["20.6%", "3%"], "1234.5 %", 0.206),
        (["$1,234", "$5"], "1,234 $", 1234),
        (["20628.65 €", "5 €"], "1234.5 €", 20628.65),
        (["(123.4)", "5"], "1234.5", -123.4),
        (["123.4-", "5"], "1234.5", -123.4),
        (["20,6", "5"], "1234,5", 20.6),
    ],
)
def test_numbers_as_spreadsheets_write_them(texts, spelling, first):
    column, said = only(texts * 3)
    assert (column.kind, column.spelling) == ("number", spelling)
    assert repr(texts[0]) in said
    np.testing.assert_allclose(cells.read(pa.array(texts), "number", spelling).values[0], first)


def test_points_between_thousands_are_not_decimal_points():
    texts = ["1.275", "935", "12.001", "7"]
    with pytest.raises(DataError, match=r"1\.275.*935.*--decimal"):
        only(texts)
    assert only(texts, decimal=",")[0].spelling == "1.234"
    assert only(texts, decimal=".")[0].spelling == "1234.5"
    # Any other number of digits, or a zero in front, shows decimals.
    assert only([*texts, "1.5"])[0].spelling == only([*texts, "0.275"])[0].spelling == ""


@pytest.mark.parametrize("decimals", [False, True])
def test_thousands_of_a_german_export_are_thousands(tmp_path, decimals):
    rows = [
        [text, "1,5" if decimals else "x", "ab"[place % 2]] for place, text in enumerate(["1.275", "935", "20.628"] * 8)
    ]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(";".join(row) for row in [["a", "b", "y"], *rows]))
    for options in ({}, {"max_rows": 100}):
        with open_table(path) as source:
            table = source.read(**options)[0]
        if decimals:
            assert infer_columns(table).columns[0].spelling == "1.234"
        else:
            with pytest.raises(DataError, match="--decimal"):
                infer_columns(table)


@pytest.mark.parametrize(
    ("texts", "kind", "said"),
    [
        (["1,275.22", "1.275,22", "3"], "category", "not spelt alike"),
        (["$5", "€5", "$7"], "category", "two units"),
        (["5%", "0.5", "7%"], "category", "percent sign"),
        (["31.01.24", "01.02.2024", "03.02.24"], "category", "not alike"),
        (["31/01/2024", "01/31/2024", "01/02/2024"], "category", "day first"),
        (["1.2.3", "1.2.4", "1.3.0"], "category", ""),
        (["A12", "B13", "B14"], "category", ""),
        (["10-20", "20-30", "30-40"], "category", "'10-20' is a range"),
    ],
)
def test_what_is_in_the_way_is_said(texts, kind, said):
    column, notes = only(texts * 3)
    assert column.kind == kind
    assert said in notes
    assert bool(notes) == bool(said)


def test_dates_that_do_not_show_their_order_are_asked_for():
    texts = ["01/02/2024", "03/04/2024", "05/05/2024"]
    with pytest.raises(DataError, match="--date-order"):
        only(texts)
    assert only(texts, date_order="day-first")[0].spelling == "d/m/y"
    assert only(texts, date_order="month-first")[0].spelling == "m/d/y"
    with pytest.raises(DataError, match="--date-order"):
        MedoidClassifier().fit(pa.table({"a": texts * 10}), ["u", "v", "u"] * 10)


@pytest.mark.parametrize("as_text", [False, True])
def test_eight_digits_are_dates_where_nearly_all_are(as_text):
    days = [20240100 + day for day in range(1, 32)] + [20240200 + day for day in range(1, 29)]
    given = list(map(str, days)) if as_text else days
    column, said = only(given)
    assert (column.kind, column.spelling) == ("date", "yyyymmdd")
    assert "20240101" in said
    assert cells.read(pa.array(given), "date", "yyyymmdd").values[31] == np.datetime64("2024-02-01")
    # More than one in ten that are no days, or too few days, and they are numbers.
    assert only(given[:3] * 20)[0].kind == "number"
    wrong = [*days, *[20241301] * 7]
    assert only(list(map(str, wrong)) if as_text else wrong)[0].kind == "number"


@pytest.mark.parametrize("kind", ["int", "text"])
def test_long_whole_numbers_are_not_equal_because_their_floats_are(kind, tmp_path):
    ids = [2**60 + 3 * 10**6 * (row // 2) + row % 2 for row in range(40)]
    assert len(set(map(float, ids))) < len(ids)
    given = ids if kind == "int" else list(map(str, ids))
    assert inferred(given, "order_id").left_out["order_id"].endswith("as an identifier has")
    path = tmp_path / "table.csv"
    longer = [10**19 + 7 * row for row in range(40)]
    path.write_text("\n".join(["order_id,b", *(f"{one},{row % 3}" for row, one in enumerate(longer))]))
    with open_table(path) as source:
        table = source.read(max_rows=100)[0]
    assert len(table["order_id"].unique()) == 40
    assert "order_id" in infer_columns(table).left_out
    assert only([2**60, 2**60 + 1] * 15)[1].count("digits") == 1


def test_long_whole_numbers_as_a_feature_are_noted():
    column, said = only([2**60 + row // 2 + 10**17 * (row % 5) for row in range(40)])
    assert column.kind == "number"
    assert "2^53" in said


NESTED = [
    pa.array([[1, 2]] * 12),
    pa.array([{"a": 1}] * 12),
    pa.array([[("k", 1)]] * 12, pa.map_(pa.string(), pa.int64())),
]


@pytest.mark.parametrize("nested", NESTED, ids=lambda array: str(array.type).partition("<")[0])
def test_lists_and_structs_are_refused_in_one_sentence(nested, tmp_path):
    with pytest.raises(DataError, match="holds no classes"):
        label_codes(pa.chunked_array([nested]), ("a", "b"))
    with pytest.raises(DataError, match="time column 't'"):
        in_time(tmp_path, nested)
    assert "are not read" in inferred(nested).left_out["a"]
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"a": nested}), path)
    with open_table(path) as source:
        assert infer_columns(source.read(max_rows=5)[0]).left_out


def in_time(folder, times):
    """Rows of a table in the order of a time column."""
    pq.write_table(pa.table({"t": times, "x": range(len(times)), "y": ["a", "b"] * 6}), folder / "times.parquet")
    with open_table(folder / "times.parquet") as source:
        settings = DatasetSettings(target="y", times="t")
        return Dataset.read(source, settings, 100, np.random.default_rng(0)).time_order().tolist()


@pytest.mark.parametrize("texts", [["31.01.2024", "01.02.2023"], ["soon", "later"]])
def test_time_column_holds_iso_dates(tmp_path, texts):
    with pytest.raises(DataError, match="ISO dates"):
        in_time(tmp_path, texts * 6)


@pytest.mark.parametrize(
    ("kind", "spelling"),
    [
        ("number", "1.234.5"),
        ("number", "d.m.y"),
        ("date", "1,234"),
        ("category", "1,234"),
        ("number", "1234 a, b"),
        ("number", "1:28:00"),
    ],
)
def test_spelling_of_another_kind_is_none(kind, spelling):
    assert not is_spelling(kind, spelling)  # loading refuses it


def test_saved_spelling_is_read_back():
    for kind, spelling in [("number", "1.234,5 €"), *(("date", one) for one in DATE_SPELLINGS)]:
        column = {"name": "a", "kind": kind, "missing": False, "levels": [], "is_open": True}
        column |= {"spelling": spelling, "missing_values": []}
        assert read(Contract, {"columns": [column], "target": None, "left_out": {}}, {}).columns[0].spelling == spelling
