"""The summary of a training table counts missing cells and days as the table has them."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from qmedoid import MedoidClassifier
from qmedoid.tables.text_kinds import rows_per_day


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    n = 120
    codes = np.arange(n) % 2
    shop = [None if k % 10 == 0 else f"shop {k % 37}" for k in range(n)]
    table = pa.table(
        {
            "x": pa.array(np.where(np.arange(n) % 7 == 0, np.nan, rng.normal(size=n) + codes), from_pandas=True),
            "paid": pa.array([None if k % 6 == 0 else bool(rng.random() < 0.5) for k in range(n)]),
            "color": pa.array([None if k % 5 == 0 else ("red", "blue")[k % 2] for k in range(n)]),
            "shop": pa.array(shop),
            "when": pa.array([None if k % 4 == 0 else datetime.date(2024, 1, 1 + k % 28) for k in range(n)]),
        }
    )
    model = MedoidClassifier(refine="never", random_state=0).fit(table, codes).model_
    return table, codes, model


def test_missing_cells_are_those_of_the_table(case):
    table, _, model = case
    assert model.training.n_rows == len(table)
    expected = [table[name].null_count for name in model.contract.names]
    assert model.training.missing.tolist() == expected
    assert min(expected) > 0


def test_curve_of_a_fit_agrees_with_its_operating_summary(case):
    _, codes, model = case
    curve, counts = model.training.curve, model.decision.operating.counts
    assert (curve.n_positive, curve.n_negative) == (codes.sum(), (1 - codes).sum())
    called = curve.thresholds > model.decision.operating.log_odds
    assert (curve.true_positives[called][-1], curve.false_positives[called][-1]) == (counts.tp, counts.fp)


def test_rows_per_day_are_counted_from_dates_times_and_texts():
    days = [datetime.date(1969, 12, 31), datetime.date(2024, 2, 29), datetime.date(2024, 2, 29)]
    times = [datetime.datetime.combine(day, datetime.time(23, 59)) for day in days]
    for column in (
        pa.array(days),
        pa.array(times),
    ):
        assert rows_per_day(column) == 1.5
    for column in (pa.array([1, 2, 2]), pa.array([1.5, 2.0]), pa.array([datetime.time(1, 2)])):
        assert rows_per_day(column) is None
