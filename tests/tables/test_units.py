"""Rows of units below the header are no records: they are refused or noted, and no real table is."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from qmedoid import MedoidClassifier, check_table
from qmedoid.exceptions import DataError, QMedoidWarning
from qmedoid.tables import cells
from qmedoid.tables.roles import find_units

ROWS = 40


def columns(*heads):
    """Columns of numbers as texts below the rows of `heads`, with a column of names."""
    rng = np.random.default_rng(0)
    made = {name: [f"{value:.2f}" for value in rng.normal(50, 9, ROWS)] for name in ("age", "weight")}
    made["town"] = [f"town {place % 3}" for place in range(ROWS)]
    for head in reversed(heads):
        made = {name: [cell, *made[name]] for name, cell in zip(made, head, strict=True)}
    return pa.table({name: pa.array(made[name], pa.string()) for name in made})


@pytest.mark.parametrize(
    ("heads", "n_rows", "texts"),
    [
        ([("years", "kg", "")], 1, {"age": "years", "weight": "kg"}),
        ([("cm", "cm", None)], 1, {"age": "cm", "weight": "cm"}),
        ([("years", None, "name")], 1, {"age": "years"}),
        ([("Age at visit", "Weight", "Town"), ("years", "kg", "")], 2, {"age": "Age at visit", "weight": "Weight"}),
        ([("%", "°C", "-")], 1, {"age": "%", "weight": "°C"}),
    ],
)
def test_units_are_found(heads, n_rows, texts):
    assert find_units(columns(*heads), {}) == (n_rows, texts)


@pytest.mark.parametrize(
    "heads",
    [
        [],
        [("years", "51.5", "town 1")],  # one cell of a record that was mistyped
        [("?", "-", "town 1")],  # signs of missing cells
        [("unknown", "n/a", "town 1")],
        [("51.5", "60.5", "town 1"), ("years", "kg", "")],  # not at the beginning
    ],
)
def test_records_are_no_units(heads):
    assert find_units(columns(*heads), {}) == (0, {})


def test_text_that_occurs_again_is_no_unit():
    table = columns(("low", "low", ""))
    again = pa.table({name: [*table[name].to_pylist(), "low" if name != "town" else ""] for name in table.column_names})
    assert find_units(table, {}) != (0, {})
    assert find_units(again, {}) == (0, {})


def test_roles_settle_what_a_column_is():
    table = columns(("years", "kg", ""))
    assert find_units(table, {"age": "number"})[1] == {"weight": "kg"}
    assert find_units(table, {"age": "number", "weight": "category"}) == (0, {})


def test_numbers_of_typed_columns_count():
    table = columns(("years", "kg", ""))
    for name in ("a", "b"):
        table = table.append_column(name, pa.array(np.arange(len(table))))
    assert find_units(table, {}) == (0, {})


def test_fit_refuses_units_and_warns_of_a_single_one():
    ages = [float(age) for age in columns()["age"].to_pylist()]
    y = np.array([0, *(np.array(ages) > np.median(ages)).astype(int)])
    with pytest.raises(DataError, match=r"The first row of X looks like units.*'years' in 'age', 'kg' in 'weight'"):
        MedoidClassifier(method="evidence").fit(columns(("years", "kg", "")), y)
    with pytest.warns(QMedoidWarning, match="'kg' in 'weight'"):
        MedoidClassifier(method="evidence", roles={"age": "number"}).fit(columns(("years", "kg", "")), y)


def test_check_names_units_a_problem():
    findings = {one["code"]: one for one in check_table(columns(("years", "kg", "")))["findings"]}
    assert (findings["units"]["severity"], findings["units"]["columns"]) == ("problem", ["age", "weight"])
    single = {one["code"]: one for one in check_table(columns(("years", None, "")))["findings"]}
    assert single["units"]["severity"] == "note"


def test_no_real_table_begins_with_units():
    folder = os.environ.get("QMEDOID_DATA")
    if folder is None:
        pytest.skip("set QMEDOID_DATA to the folder of the large data sets")
    for about in json.loads((Path(folder) / "MANIFEST.json").read_text()).values():
        file = Path(folder) / about["file"]
        if file.suffix == ".csv":
            table = pyarrow.csv.read_csv(file)
        else:
            table = pa.Table.from_batches([next(pq.ParquetFile(file).iter_batches(2000))])
        texts = {name: cells.as_text(cells.decoded(table[name])) for name in table.column_names}
        for given in (table, pa.table(texts)):
            assert find_units(given, {}) == (0, {}), about["file"]
