"""Values that are read as missing: a model is that of the table where these cells are empty, wherever it decides."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import qmedoid
from few_trees import few_trees
from missing_tables import MISSING, both_tables
from qmedoid import MedoidClassifier, arrow_scorer, check_table
from qmedoid.exceptions import DataError, ModelError, ParameterError
from qmedoid.explain.flips import nearest_flips
from qmedoid.model.storage.model_file import save_model
from qmedoid.tables.encode import row_hashes
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.roles import find_sentinels

RAW, EMPTY, Y = both_tables()
TRAIN, NEW = slice(0, 300), slice(300, None)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of the table with the values and of the one with empty cells, saved and loaded."""
    folder = tmp_path_factory.mktemp("models")
    with few_trees():
        own = MedoidClassifier(missing=MISSING, random_state=0).fit(RAW[TRAIN], Y[TRAIN])
        plain = MedoidClassifier(random_state=0).fit(EMPTY[TRAIN], Y[TRAIN])
    paths = own.save(folder / "own.qmedoid"), plain.save(folder / "plain.qmedoid")
    return own, plain, *map(qmedoid.load, paths), *paths


def test_a_fit_is_that_of_the_table_with_empty_cells(models):
    own, plain = models[:2]
    assert own.predict_proba(RAW[NEW]).tobytes() == plain.predict_proba(EMPTY[NEW]).tobytes()
    assert own.predict_proba(EMPTY[NEW]).tobytes() == plain.predict_proba(EMPTY[NEW]).tobytes()
    assert own.medoid_records_ == plain.medoid_records_
    bare = replace(
        own.model_.contract, columns=tuple(replace(one, missing_values=()) for one in own.model_.contract.columns)
    )
    assert bare == plain.model_.contract
    assert [one.missing_values for one in own.model_.contract.columns] == [
        ("0",), ("1900-01-01",), ("unknown",), ("-9.5", "99"), (),
    ]  # fmt: skip
    assert np.array_equal(own.model_.training.missing, plain.model_.training.missing)


def test_the_saved_model_reads_in_the_same_way(models):
    own, _, saved, plain = models[:4]
    assert saved.model.contract == own.model_.contract
    assert saved.predict_proba(RAW[NEW]).tobytes() == own.predict_proba(RAW[NEW]).tobytes()
    assert saved.score_table(RAW[NEW]).equals(plain.score_table(EMPTY[NEW]))


def test_one_row_alone_is_read_as_among_others(models):
    saved, plain = models[2:4]
    for row in range(300, 340):
        assert saved.score_table(RAW[row : row + 1]).equals(plain.score_table(EMPTY[row : row + 1]))


def test_the_scorer_of_engines_reads_in_the_same_way(models):
    batches = [pa.Table.from_pandas(one[NEW], preserve_index=False).to_batches() for one in (RAW, EMPTY)]
    found = [pa.Table.from_batches(arrow_scorer(path)(iter(of))) for path, of in zip(models[4:], batches, strict=True)]
    assert found[0].equals(found[1])


def test_rows_are_known_by_the_cells_as_they_are_read(models):
    saved, plain = models[2:4]
    tables = [pa.Table.from_pandas(one, preserve_index=False) for one in (RAW, EMPTY)]
    of_one_key = replace(plain.model, seen=saved.model.seen)
    pairs = zip((saved.model, of_one_key), tables, strict=True)
    assert np.array_equal(*(row_hashes(model, table) for model, table in pairs))


def test_explanations_show_such_cells_as_missing_and_no_flip_proposes_one(models):
    saved, plain = models[2:4]
    values = {name: {str(value) for value in of} for name, of in MISSING.items()}
    n_flips = 0
    for row in range(40):
        one, two = (model.explain(of[NEW], row=row) for model, of in ((saved, RAW), (plain, EMPTY)))
        assert one == two
        table = pa.Table.from_pandas(RAW[NEW][row : row + 1], preserve_index=False)
        for flip in nearest_flips(saved.model, table):
            n_flips += 1
            assert str(flip["to"]) not in values.get(flip["column"], ())
            assert str(flip["cell"]) not in values.get(flip["column"], ())
    assert n_flips


def test_no_flip_leads_to_a_value_within_the_range_of_the_column():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 21, 400)
    with few_trees():
        fitted = MedoidClassifier(method="evidence", missing={"x": [10, 11]}, random_state=0).fit(
            pa.table({"x": x, "z": rng.normal(size=400)}), (x > 9).astype(int)
        )
    for start in range(21):
        for flip in nearest_flips(fitted.model_, pa.table({"x": [start], "z": [0.0]})):
            assert flip["column"] != "x" or flip["to"] not in (10, 11)


def test_values_are_found_in_texts_in_the_spelling_of_their_column():
    texts = ["0,0 kg", "70,5", "81,25", "0", "64,0", "unknown", "1.070,5"] * 10
    table = pa.table({"weight": [text.replace(" kg", "") for text in texts]})
    (column,) = infer_columns(table, decimal=",", missing={"weight": ["0,0", "unknown"]}).columns
    assert (column.kind, column.missing, column.missing_values) == ("number", True, ("0", "unknown"))
    (column,) = infer_columns(table, decimal=",", missing={"weight": ["1.070,5", "unknown"]}).columns
    assert column.missing_values == ("1070.5", "unknown")


def test_a_column_is_what_its_other_cells_are():
    cells = [*map(str, range(20)), *["not asked"] * 10]
    assert infer_columns(pa.table({"n": cells})).columns[0].kind == "category"
    (column,) = infer_columns(pa.table({"n": cells}), missing={"n": ["not asked"]}).columns
    assert (column.kind, column.missing) == ("number", True)


@pytest.mark.parametrize("text", ["0", "-999", "0.5", "1e-07", "12345678901234567890"])
def test_the_option_that_is_named_says_the_value_that_was_found(text):
    rng = np.random.default_rng(0)
    value = float(text)
    values = np.r_[np.full(60, value), rng.uniform(2, 3, 500) * max(abs(value), 1.0)]
    (one,) = find_sentinels(values, "number").as_dicts()
    (column,) = infer_columns(pa.table({"x": values}), missing={"x": [one["value"]]}).columns
    assert column.missing_numbers == (value,)


@pytest.mark.parametrize(
    ("missing", "error", "message"),
    [
        ({"choll": [0]}, ParameterError, "names 'choll', which is not a column. Did you mean 'chol'"),
        ({"chol": ["low"]}, DataError, "'low' cannot stand in column 'chol', which holds numbers, such as"),
        ({"day": ["someday"]}, DataError, "'someday' cannot stand in column 'day', which holds dates, such as"),
        ({"chol": [" "]}, ParameterError, "must name values of 'chol' that are not missing anyway"),
        ({"chol": [None]}, ParameterError, "must name values of 'chol' that are not missing anyway"),
        ([("chol", 0)], ParameterError, "must map column names to lists of values"),
    ],
)
def test_what_cannot_be_is_refused(missing, error, message):
    with pytest.raises(error, match=message):
        MedoidClassifier(missing=missing).fit(RAW, Y)
    with pytest.raises(error, match=message):
        check_table(RAW, missing=missing)


def test_a_value_that_never_occurs_is_noted():
    report = check_table(RAW, missing={"chol": [-999]})
    assert report["columns"][0]["note"] == "column 'chol': no cell is -999, which is read as missing"
    report = check_table(RAW, missing={"chol": 0})
    assert report["columns"][0]["missing"] == (RAW.chol == 0).sum()
    assert "hold 0, read as missing" in report["columns"][0]["note"]
    assert report["columns"][0]["sentinels"] == []


@pytest.mark.parametrize("wrong", [("2021-13-45",), ("",), ("0", "0"), ("b",)], ids=str)
def test_a_stored_contract_with_impossible_values_is_refused(wrong, tmp_path):
    y = ["no", "yes"] * 30
    table = pd.DataFrame({"a": pd.date_range("2024-01-01", periods=60), "b": ["b", "c", "d"] * 20})
    model = MedoidClassifier(method="evidence", random_state=0).fit(table, y).model_
    columns = [replace(one, missing_values=wrong) for one in model.contract.columns]
    with pytest.raises(ModelError, match="missing_values"):
        save_model(replace(model, contract=replace(model.contract, columns=tuple(columns))), tmp_path / "m")


def test_arrays_name_columns_by_their_place():
    X = RAW[["chol", "age"]].to_numpy(float)
    empty = EMPTY[["chol", "age"]].to_numpy(float)
    missing = {"x0": [0], "x1": [-9.5, 99]}
    with few_trees():
        own = MedoidClassifier(missing=missing, random_state=0).fit(X, Y)
        plain = MedoidClassifier(random_state=0).fit(empty, Y)
        never = MedoidClassifier(missing={"x0": [7000]}, random_state=0).fit(np.nan_to_num(empty, nan=200.0), Y)
    assert own.predict_proba(X).tobytes() == plain.predict_proba(empty).tobytes()
    # One that no training row had is missing in later rows all the same.
    known = np.nan_to_num(empty, nan=200.0)
    later = known.copy()
    later[:5, 0] = 7000
    known[:5, 0] = np.median(known[:, 0])
    assert np.array_equal(never.predict_proba(later), never.predict_proba(known))
    tables = [pa.table({"x0": one[:, 0], "x1": one[:, 1]}) for one in (later, known)]
    saved = qmedoid.SavedModel(never.model_)
    assert np.array_equal(*(saved.predict_proba(table) for table in tables))


def test_tables_of_many_columns_are_read_in_the_same_way():
    rng = np.random.default_rng(2)
    empty = rng.normal(size=(200, 40))
    y = (empty[:, 0] + empty[:, 1] > 0).astype(int)
    empty[rng.random(empty.shape) < 0.1] = np.nan
    with few_trees():
        own = MedoidClassifier(missing={f"x{place}": [-99] for place in range(40)}, random_state=0)
        own.fit(np.nan_to_num(empty, nan=-99), y)
        plain = MedoidClassifier(random_state=0).fit(empty, y)
    assert own.predict_proba(np.nan_to_num(empty, nan=-99)).tobytes() == plain.predict_proba(empty).tobytes()
    own, plain = (qmedoid.SavedModel(one.model_) for one in (own, plain))
    tables = [pa.table({f"x{place}": one[:, place] for place in range(40)})
              for one in (np.nan_to_num(empty, nan=-99), empty)]  # fmt: skip
    assert own.score_table(tables[0]).equals(plain.score_table(tables[1]))


def test_single_precision_is_compared_in_single_precision():
    table = pa.table({"x": pa.array([-9.9, 1.5, 2.5, 3.5] * 10, pa.float32())})
    inferred = infer_columns(table, missing={"x": [-9.9]})
    assert "10 of 40 rows hold -9.9" in inferred.notes["x"]
