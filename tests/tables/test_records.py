"""Rows as people see them: the same plain values in the model file and in an explanation."""

import datetime as dt
import json
from decimal import Decimal

import pyarrow as pa
import pytest

from qmedoid.tables.arrow import plain_records


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, None),
        ("a", "a"),
        (True, True),
        (3, 3),
        (1.5, 1.5),
        (float("nan"), None),
        (float("inf"), None),
        (Decimal("1.50"), 1.5),
        (dt.timedelta(seconds=90), 90.0),
        (dt.date(2024, 2, 29), "2024-02-29"),
        (dt.datetime(2024, 2, 29, 12), "2024-02-29T12:00:00"),
        (dt.time(1, 2), "01:02:00"),
        ([1], "[1]"),
    ],
)
def test_every_cell_is_plain(cell, expected):
    (record,) = plain_records(pa.table({"c": pa.array([cell])}))
    assert record == {"c": expected}
    assert type(record["c"]) is type(expected)
    assert json.loads(json.dumps(record)) == record


def test_nanoseconds_and_moments_beyond_the_calendar():
    table = pa.table(
        {
            "far": pa.array([2**62], pa.timestamp("s")),
            "fine": pa.array([1_700_000_000_123_456_789], pa.timestamp("ns", tz="UTC")),
            "clock": pa.array([123_456_789], pa.time64("ns")),
            "span": pa.array([1_500_000_001], pa.duration("ns")),
        }
    )
    assert plain_records(table) == [
        {"far": None, "fine": "2023-11-14T22:13:20.123456+00:00", "clock": "00:00:00.123456", "span": 1.5}
    ]


def test_categories_are_their_levels():
    table = pa.table({"c": pa.array(["x", None, "y"]).dictionary_encode()})
    assert plain_records(table) == [{"c": "x"}, {"c": None}, {"c": "y"}]
