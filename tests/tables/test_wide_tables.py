"""Wide tables: columns that are worked on many at a time are what they are one by one, and cost no call each."""

import warnings

import numpy as np
import pandas as pd
import pytest

from qmedoid import MedoidClassifier
from qmedoid.geometry.row_groups import ranks
from qmedoid.geometry.scaling import _FEW_ROWS
from qmedoid.kernels.ties import with_equal_cells
from qmedoid.methods.evidence.design import fit_rank_scaling
from qmedoid.model.novelty import fit_novelty
from qmedoid.tables import arrow, cells, text_files
from qmedoid.tables.arrow import as_table, plain_records
from qmedoid.tables.kinds import infer_alike, infer_columns
from qmedoid.tables.source import open_table

ROWS = 60


def frame(n_columns: int = 40) -> pd.DataFrame:
    """Columns of all kinds of numbers, with those that a fit has something to say about."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.standard_normal((ROWS, n_columns)), columns=[f"c{place}" for place in range(n_columns)])
    table["c1"], table["c2"], table["c3"] = 7.5, np.nan, table["c3"].astype(np.float32)
    table["c4"] = rng.integers(0, 5, ROWS)
    table.loc[::3, "c5"] = np.nan
    table.loc[[4, 5], "c6"] = np.inf, -1e200
    table["c7"] = np.where(rng.random(ROWS) < 0.5, 1.0, np.nan)
    table["c8"] = (20_240_101 + np.arange(ROWS) % 28).astype(float)
    table["c9"] = 2**53 + rng.integers(0, 3, ROWS)
    table["c10"] = np.where(rng.random(ROWS) < 0.5, 0.0, -0.0)
    table["c11"] = table["c12"].iloc[0] * (1 + np.arange(ROWS) % 4 * 2e-16)
    table["row id"], table["number"] = np.arange(ROWS), rng.permutation(50 * ROWS)[:ROWS].astype(float)
    table["user id"] = np.where(np.arange(ROWS) < 2, 1.0, table["number"])
    table["run"] = rng.permutation(ROWS) + 10
    table["word"], table["truth"] = rng.choice(["a", "b", "c"], ROWS), rng.random(ROWS) < 0.5
    return table


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no column worked on together with others."""
    monkeypatch.setattr(arrow, "MOST_ROWS", 0)


def test_columns_are_the_same_many_at_a_time_as_one_by_one(monkeypatch):
    table = as_table(frame())
    found, records = infer_columns(table), plain_records(table, np.array([7, 4, 5, 0]))
    settled, places = infer_alike(table, found), cells.cell_ranks(table, found.columns)
    assert {"c1", "c2", "row id", "number", "run"} <= set(found.left_out)
    assert {"c6", "c8", "c9", "user id"} <= set(found.notes)
    one_by_one(monkeypatch)
    again = as_table(frame())
    assert again.equals(table)
    assert again.schema.equals(table.schema)
    assert infer_columns(table) == found
    assert infer_alike(table, found) == settled
    assert repr(plain_records(table, np.array([7, 4, 5, 0]))) == repr(records)
    alone = cells.cell_ranks(table, found.columns)
    assert np.array_equal(alone[0], places[0])
    assert alone[1] == places[1]


def test_a_fitted_model_is_the_same_many_columns_at_a_time_as_one_by_one(monkeypatch, tmp_path):
    table, rows = frame(), slice(None, None, 2)
    classes = (table["c0"] + table["c12"] > 0).to_numpy().astype(int)
    made = []
    for name in ("together", "alone"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = MedoidClassifier(method="evidence", random_state=0).fit(table, classes)
            odd = model.predict_proba(table.iloc[rows].assign(c0=np.nan))
        model.save(tmp_path / name)
        made.append(((tmp_path / name).read_bytes(), model.notes_, odd.tobytes()))
        one_by_one(monkeypatch)
    assert made[0] == made[1]


def test_the_reading_of_cells_does_not_grow_with_the_plain_columns_of_a_fit(monkeypatch):
    calls, plain = [], cells.read
    monkeypatch.setattr(cells, "read", lambda *given: calls.append(1) or plain(*given))
    counts = []
    for n_columns in (40, 120):
        X = np.random.default_rng(0).standard_normal((30, n_columns))
        MedoidClassifier(method="evidence", random_state=0).fit(X, (X[:, 0] > 0).astype(int))
        counts.append(len(calls))
        calls.clear()
    assert counts == [0, 0]
    MedoidClassifier(method="evidence", random_state=0).fit(X.astype(np.float32)[:, :3], (X[:, 0] > 0).astype(int))
    assert calls


def test_ranks_and_equal_cells_are_those_of_each_column():
    rng = np.random.default_rng(1)
    X = np.round(rng.standard_normal((50, 30)), 1)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 4] = 3.0 * (1 + np.arange(50) % 3 * 2.0**-51)
    X[::7, 4] = np.nan
    assert np.array_equal(ranks(X), np.column_stack([np.unique(x, return_inverse=True)[1] for x in X.T]))
    merged = with_equal_cells(X)
    known = ~np.isnan(X[:, 4])
    assert np.array_equal(np.isnan(merged), np.isnan(X))
    assert len(np.unique(merged[known, 4])) == 1


@pytest.mark.parametrize("n_rows", [1, _FEW_ROWS, _FEW_ROWS + 1])
def test_rank_scaling_of_few_rows_is_the_interpolation_of_each_column_bit_by_bit(n_rows):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 60))
    X[:, ::3], X[:, 5] = np.round(X[:, ::3], 1), 2.0
    scaling = fit_rank_scaling(X)
    rows = np.where(rng.random((n_rows, 60)) < 0.3, X[:1], 2 * rng.standard_normal((n_rows, 60)))
    rows[0, 7] = np.nan
    for column, scaled in enumerate(scaling.apply(rows).T):
        knots = slice(scaling.offsets[column], scaling.offsets[column + 1])
        own = np.interp(rows[:, column], scaling.values[knots], scaling.scores[knots])
        assert scaled.tobytes() == own.tobytes()


def test_bins_and_limits_of_a_column_do_not_depend_on_the_others():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((90, 12))
    X[:, 1], X[:, 2], X[:, 3] = np.exp(3 * X[:, 1]), np.maximum(X[:, 2], 0), 5.0
    together = fit_novelty(X)
    for column in range(X.shape[1]):
        alone = fit_novelty(X[:, [column]])
        assert np.array_equal(alone.low, together.low[together.limited == column])
        assert np.array_equal(alone.high, together.high[together.limited == column])
        for place in np.flatnonzero(together.binned == column):
            first, last = together.offsets[place], together.offsets[place + 1]
            assert np.array_equal(alone.edges, together.edges[first:last])
            assert np.array_equal(alone.counts, together.counts[first + place : last + place + 1])
            assert alone.counts.sum() == 90


def test_a_text_file_is_the_same_converted_some_columns_at_a_time(monkeypatch, tmp_path):
    path = tmp_path / "table.csv"
    frame().to_csv(path, index=False)
    with open_table(path) as source:
        table, schema = source.read()[0], source.schema
    monkeypatch.setattr(text_files, "_COLUMNS_AT_ONCE", 3)
    with open_table(path) as source:
        again = source.read()[0]
        assert source.schema.equals(schema)
    assert again.equals(table)
    assert again.schema.equals(table.schema, check_metadata=True)
