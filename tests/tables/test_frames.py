"""Data in memory: whichever library holds them, the same table comes out."""

import datetime
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.exceptions import DataError
from qmedoid.tables.arrow import as_table
from qmedoid.tables.kinds import infer_columns

COLUMNS = {
    "number": [1.5, None, -2.0],
    "whole": [1, 2, 3],
    "text": ["a", None, "ü"],
    "flag": [True, False, True],
    "day": [datetime.datetime(2024, 2, 29), None, datetime.datetime(1969, 1, 1)],
}

FRAMES = {
    "mapping": dict,
    "arrow": pa.table,
    "batch": pa.RecordBatch.from_pydict,
    "pandas": lambda columns: pd.DataFrame(columns, index=[7, 8, 9]),
    "pandas of objects": lambda columns: pd.DataFrame(columns).astype(object),
    "pandas with Arrow types": lambda columns: pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with its own missing": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": pl.DataFrame,
    "polars with an enumeration": lambda columns: pl.DataFrame(columns).with_columns(
        pl.col("text").cast(pl.Enum(["ü", "a"]))
    ),
    "polars categories": lambda columns: pl.DataFrame(columns).with_columns(pl.col("text").cast(pl.Categorical)),
    "pandas categories": lambda columns: pd.DataFrame(columns).astype({"text": "category"}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_all_libraries_hold_the_same_table(kind):
    data = FRAMES[kind](COLUMNS)
    table = as_table(data)
    assert table.to_pydict() == COLUMNS
    declared = "categories" in kind or "enumeration" in kind
    assert table["text"].type == (pa.dictionary(pa.int32(), pa.string()) if declared else pa.string())
    assert table.num_rows == 3
    assert as_table(data, names=["text", "whole"]).column_names == ["text", "whole"]
    with pytest.raises(DataError, match="no column 'other'"):
        as_table(data, names=["other"])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.none(), st.floats(), st.text(max_size=3), st.booleans(), st.integers()), min_size=1))
def test_column_of_anything_is_taken(cells):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    result = as_table(frame)["x"]
    missing = [cell is None or cell != cell for cell in cells]
    assert [cell is None for cell in result.to_pylist()] == missing
    if result.type == pa.string():
        assert result.to_pylist() == [None if gone else str(cell) for cell, gone in zip(cells, missing, strict=True)]


def test_arrays_and_lists_of_rows():
    array = np.arange(6.0).reshape(3, 2)
    expected = {"x0": [0.0, 2.0, 4.0], "x1": [1.0, 3.0, 5.0]}
    for data in (array, np.asfortranarray(array), array.tolist(), [tuple(row) for row in array], list(array)):
        assert as_table(data).to_pydict() == expected
    assert as_table(array, names=["p", "q"]).column_names == ["p", "q"]
    mixed = as_table([[1, "a"], [2, None]], names=["n", "t"])
    assert mixed == pa.table({"n": [1, 2], "t": ["a", None]})
    assert as_table(np.array([[np.nan]]))["x0"].to_pylist() == [None]


def test_numbers_are_not_copied_from_arrow_or_columns():
    column = np.arange(1000.0)
    for data in ({"x": column}, pa.table({"x": column}), pd.DataFrame({"x": column}, copy=False)):
        assert np.shares_memory(as_table(data)["x"].chunk(0).to_numpy(), column)


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pd.DataFrame([[1, 2]], columns=["1", 1]),
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
    ],
)
def test_repeated_names_are_refused(data):
    with pytest.raises(DataError, match=r"\(columns 1, 2\)"):
        as_table(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pl.LazyFrame(COLUMNS), r"collect\(\)"),
        (pd.Series([1, 2]), "Got Series"),
        (pl.Series([1, 2]), "Got Series"),
        (np.zeros(3), r"shape \(3,\)"),
        ([1, 2], "Got list"),
        ("text", "Got str"),
        (None, "Got NoneType"),
        (3, "Got int"),
        ([[1], [1, 2]], "Got 1 and 2"),
        ({"a": [1], "b": [1, 2]}, "'a' 1, 'b' 2"),
        ({"a": 3}, "Column 'a' must hold one cell per row"),
        (pd.DataFrame({"a": [1 + 2j, 3j]}), "Column 'a' holds complex numbers. Give two columns"),
        ({"a": ["b", np.complex64(1j)]}, "Column 'a' holds complex numbers. Give two columns"),
        ({"a": ["b\ud800", None]}, r"Column 'a' holds 'b\\ud800', half a letter"),
    ],
)
def test_what_is_no_table_is_refused(data, message):
    with pytest.raises(DataError, match=message):
        as_table(data)


def printed_by(program):
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    return done.stdout.strip()


def test_no_data_frame_library_is_imported_for_another():
    program = (
        "import sys, polars; from qmedoid.tables.arrow import as_table\n"
        "as_table(polars.DataFrame({'x': ['a', 'b']}))\n"
        "print([name for name in ('pandas', 'sklearn') if name in sys.modules])"
    )
    assert printed_by(program) == "[]"


@pytest.mark.parametrize("alone", [True, False])
def test_arrow_can_be_kept_from_importing_pandas(alone):
    program = (
        "import sys, numpy as np, pyarrow as pa; from qmedoid.tables.arrow import keep_pandas_away\n"
        f"if {alone}: keep_pandas_away()\n"
        "found = pa.array(np.arange(3.0)).to_numpy().tolist(), pa.array(['a', None]).to_pylist()\n"
        "found += ('pandas' in sys.modules,)\n"
        "import pandas; print(found, pandas.Series([1]).sum())"
    )
    assert printed_by(program) == f"([0.0, 1.0, 2.0], ['a', None], {not alone}) 1"


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        (pd.Categorical([1, 3, None, 1]), ["1", "3", None, "1"]),
        (pd.Categorical([1.0, 2.5, None, 1.0]), ["1", "2.5", None, "1"]),
        (pd.Categorical(["1", "3", None, "1"]), ["1", "3", None, "1"]),
        (pl.Series(["1", "3", None, "1"], dtype=pl.Categorical), ["1", "3", None, "1"]),
        (pl.Series(["1", "3", None, "1"], dtype=pl.Enum(["3", "1"])), ["1", "3", None, "1"]),
        (pa.chunked_array([pa.array([1, 3]), pa.array([None, 1])]).dictionary_encode(), ["1", "3", None, "1"]),
    ],
)
def test_declared_category_stays_one(column, levels):
    frame = {"Categorical": pd.DataFrame, "Series": pl.DataFrame}.get(type(column).__name__, pa.table)({"c": column})
    table = as_table(frame)
    assert table["c"].to_pylist() == levels
    assert [found.kind for found in infer_columns(table).columns] == ["category"]


def test_declared_truth_values_and_dates_are_what_they_are():
    days = [datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2)]
    table = as_table(pd.DataFrame({"b": pd.Categorical([True, False]), "d": pd.Categorical(days)}))
    assert [found.kind for found in infer_columns(table).columns] == ["boolean", "date"]
    assert table["d"].to_pylist() == days
