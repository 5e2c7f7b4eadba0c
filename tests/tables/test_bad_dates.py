"""Cells of dates and times that are none: one in ten is missing, with a note, at fit and at scoring."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from qmedoid import MedoidClassifier, SavedModel
from qmedoid.tables.dates import find_dates, other_dates
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import TableReading

N = 200
DAYS = np.datetime64("2022-01-01") + 3 * np.arange(N)
ISO = [str(day) for day in DAYS]
SPELT = {
    "": ISO,
    "d/m/y": [f"{day[8:]}/{day[5:7]}/{day[:4]}" for day in ISO],
    "m/d/y": [f"{day[5:7]}/{day[8:]}/{day[:4]}" for day in ISO],
    "d.m.y": [f"{day[8:]}.{day[5:7]}.{day[:4]}" for day in ISO],
}


def with_bad(cells, *bad, n=20):
    """Cells of which `n` are bad ones, in turns; the first in row 7."""
    cells = list(cells)
    for number in range(n):
        cells[7 + 9 * number] = bad[number % len(bad)]
    return cells


def inferred(cells, **how):
    found = infer_columns(pa.table({"when": cells, "x": np.arange(N) / 7}), **how)
    return next((one for one in found.columns if one.name == "when"), None), found.notes.get("when", "")


@pytest.mark.parametrize("spelling", SPELT)
@pytest.mark.parametrize("bad", [("2024-02-30",), ("31/11/2023",), ("0000-00-00", "unknown"), ("00/00/0000",)])
def test_one_cell_in_ten_may_be_no_date(spelling, bad):
    column, note = inferred(with_bad(SPELT[spelling], *bad))
    assert (column.kind, column.spelling, column.missing) == ("date", spelling, True)
    assert f"20 of {N} cells are not dates, such as {bad[0]!r}: taken as missing, the first in row 7 (from 0)" in note
    column, note = inferred(with_bad(SPELT[spelling], *bad, n=21))
    assert column is None or column.kind == "category"


def test_the_row_is_that_of_the_source():
    _, note = inferred(with_bad(ISO, "2024-02-30"), rows=np.arange(N) * 10 + 3)
    assert "the first in row 73 (from 0)" in note


def test_times_are_as_dates():
    times = [f"{minute // 60 % 24:02d}:{minute % 60:02d}" for minute in 7 * np.arange(N)]
    column, note = inferred(with_bad(times, "25:61", "24:00"))
    assert column.kind == "date"
    assert f"20 of {N} cells are not dates, such as '25:61'" in note


@pytest.mark.parametrize("bad", [20240230, 0, 99999999])
def test_whole_numbers_that_are_days_may_hold_others(bad):
    days = np.array([int(day.replace("-", "")) for day in ISO])
    column, note = inferred(with_bad(days, bad))
    assert (column.kind, column.spelling, column.missing, column.is_open) == ("date", "yyyymmdd", True, True)
    assert f"20 of {N} cells are not dates, such as '{bad}'" in note
    assert inferred(with_bad(days, bad, n=21))[0].kind == "number"


def test_a_day_that_is_none_does_not_show_the_order():
    doubtful = [f"{1 + k % 12:02d}/{1 + k // 12 % 12:02d}/2023" for k in range(N)]
    assert find_dates(pa.array(with_bad(doubtful, "31/11/2023"))).ambiguous == "/"
    shown = find_dates(pa.array([*with_bad(doubtful, "31/11/2023"), "12/31/2023"]))
    assert shown.spelling == "m/d/y"
    both = find_dates(pa.array([*doubtful, "12/31/2023", "31/12/2023"]))
    assert both.spelling is None
    assert "has the day first" in both.problem


def test_dates_by_some_spelling():
    text = pa.array(
        ["2024-02-29", "2023-02-29", "31/12/2023", "12/31/2023", "31/11/2023", "1/2/24", "7:65", "07:35", "x"]
    )
    assert other_dates(text).to_pylist() == [True, False, True, True, False, True, False, True, False]


def test_at_scoring_the_same_cells_are_missing_with_the_same_words(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"when": with_bad(ISO, "2024-02-30", "31/11/2023"), "x": rng.normal(size=N).round(3)})
    model = MedoidClassifier(method="evidence", random_state=0).fit(frame, (np.arange(N) > 90).astype(int)).to_saved()
    frame.to_csv(tmp_path / "t.csv", index=False)
    with TableReading(model.model, str(tmp_path / "t.csv"), ScoreSettings()) as reading:
        found = reading.in_kind(lambda: [rows.decided.scores for rows, _ in reading.decided(warns=False)])
    line = f"~ kind: 'when' was a date, 20 of {N} cells are not, such as '2024-02-30': taken as missing"
    assert reading.deviations == [line]
    empty = frame.assign(when=[None if cell in ("2024-02-30", "31/11/2023") else cell for cell in frame["when"]])
    for_empty = SavedModel(model.model).predict_proba(empty)
    with pytest.warns(UserWarning, match="20 of 200 cells are not, such as"):
        np.testing.assert_array_equal(model.predict_proba(frame), for_empty)
    assert len(np.concatenate(found)) == N
