"""Values that stand for missing cells: they are found where a person would see them, and nowhere else."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid import check_table
from qmedoid.tables.kinds import infer_columns
from qmedoid.tables.roles import find_sentinels

SEEDS = st.integers(0, 10_000)
SMOOTH = {
    "normal": lambda rng, n: rng.normal(size=n),
    "rounded normal": lambda rng, n: np.round(rng.normal(120, 15, n)),
    "uniform": lambda rng, n: rng.uniform(size=n),
    "exponential": lambda rng, n: np.round(rng.exponential(50, n), 1),
    "log-normal": lambda rng, n: np.round(rng.lognormal(4, 1.5, n), 2),
    "Poisson": lambda rng, n: rng.poisson(3, n).astype(float),
    "geometric": lambda rng, n: rng.geometric(0.05, n).astype(float),
    "Student": lambda rng, n: rng.standard_t(3, n),
    "binary": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "ratings": lambda rng, n: rng.integers(1, 6, n).astype(float),
    "rain": lambda rng, n: np.where(rng.random(n) < 0.4, 0.0, np.round(rng.exponential(5, n), 1)),
    "amounts": lambda rng, n: np.where(rng.random(n) < 0.92, 0.0, np.round(rng.lognormal(8, 1, n))),
}


def values_of(column: np.ndarray) -> list[float]:
    found = find_sentinels(column, "number")
    return [] if found is None else sorted(value for value, _, _ in found.found)


@pytest.mark.parametrize("name", SMOOTH)
@given(seed=SEEDS, n=st.sampled_from([40, 300, 3000]))
def test_smooth_and_zero_inflated_columns_raise_no_alarm(name: str, seed: int, n: int) -> None:
    assert values_of(SMOOTH[name](np.random.default_rng(seed), n)) == []


def test_limits_of_an_instrument_hardly_ever_raise_one() -> None:
    clipped = (np.clip(np.random.default_rng(seed).normal(50, 30, 300), 0, 100) for seed in range(500))
    assert sum(values_of(column) != [] for column in clipped) <= 5


@given(seed=SEEDS, value=st.sampled_from([0.0, -1.0, -999.0, 999.0, 9999.0]), share=st.sampled_from([0.02, 0.2, 0.45]))
def test_planted_value_is_found_with_its_rows(seed: int, value: float, share: float) -> None:
    rng = np.random.default_rng(seed)
    column = np.round(rng.normal(120, 15, 600))
    planted = rng.permutation(600) < share * 600
    found = find_sentinels(np.where(planted, value, column), "number")
    assert found is not None
    assert [(one[0], one[1]) for one in found.found] == [(value, planted.sum())]
    rest = column[~planted]
    assert found.found[0][2] == (rest.min() if value < rest.min() else rest.max())


@given(
    seed=SEEDS,
    shift=st.integers(-1000, 1000),
    scale=st.sampled_from([0.25, 0.5, 2.0, 1024.0, -1.0]),
    gap=st.integers(0, 40),
)
def test_isolation_depends_on_neither_order_nor_unit_nor_origin(seed: int, shift: int, scale: float, gap: int) -> None:
    rng = np.random.default_rng(seed)
    column = np.concatenate([np.round(rng.exponential(30, 500)) + gap, np.zeros(60)]) + 10_000.5
    moved = rng.permutation((column + shift) * scale)
    assert values_of(moved) == sorted((value + shift) * scale for value in values_of(column))


def test_several_values_of_one_column_are_found() -> None:
    column = np.r_[np.arange(100.0, 300.0), np.full(9, -9.0), np.full(7, 9999.0)]
    assert values_of(column) == [-9.0, 9999.0]
    assert [nearest for _, _, nearest in find_sentinels(column, "number").found] in ([100.0, 299.0], [299.0, 100.0])


def test_impossible_negatives_and_nines_are_found_in_however_many_rows() -> None:
    days = np.random.default_rng(0).integers(0, 30, 100).astype(float)
    assert values_of(np.r_[days, np.full(900, -1.0)]) == [-1.0]
    assert values_of(np.r_[days, np.full(900, 999.0)]) == [999.0]
    assert values_of(np.r_[np.arange(100.0, 300.0), np.full(30, 999.0)]) == [999.0]
    assert values_of(np.r_[np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 20), np.full(10, 99.0)]) == [99.0]


def test_negative_numbers_that_are_no_codes_raise_no_alarm() -> None:
    rng = np.random.default_rng(0)
    assert values_of(np.round(rng.normal(0, 3, 1000))) == []
    codes = [np.full(40, -1), np.full(40, -2), np.full(40, -3), np.full(9, -10)]
    assert values_of(np.concatenate([rng.integers(0, 30, 500), *codes]).astype(float)) == []
    assert values_of(np.r_[rng.integers(0, 30, 500), np.full(40, -9.0), np.full(40, -5.5)]) == []


def test_a_value_in_most_rows_is_the_usual_case() -> None:
    rest = np.random.default_rng(0).uniform(50, 60, 100)
    assert values_of(np.r_[rest, np.zeros(99)]) == [0.0]
    assert values_of(np.r_[rest, np.zeros(101)]) == []


def test_the_end_of_a_long_tail_raises_no_alarm() -> None:
    tail = 100.0 / np.arange(2.0, 400.0)
    assert values_of(np.r_[tail, np.full(20, 99.0)]) == []
    assert values_of(np.r_[tail, np.full(20, 101.0)]) == [101.0]


def test_codes_with_a_hole_raise_no_alarm() -> None:
    assert values_of(np.repeat([1.0, *np.arange(10.0, 40.0)], 20)) == []


def test_a_step_that_is_small_beside_the_column_raises_no_alarm() -> None:
    rest = np.r_[np.arange(5.0, 8.0, 0.1), np.linspace(8, 1000, 400)]
    assert values_of(np.r_[rest, np.zeros(40)]) == []


def test_wide_tables_are_looked_at_as_others() -> None:
    rng = np.random.default_rng(0)
    columns = {f"c{place}": np.round(rng.normal(100, 10, 300)) for place in range(40)}
    columns["c7"][:20], columns["c31"][5:60] = 0.0, 9999.0
    found = infer_columns(pa.table(columns)).sentinels
    assert found == infer_columns(pa.table({name: columns[name] for name in ("c7", "c31")})).sentinels
    assert list(found) == ["c7", "c31"]


def test_check_names_value_rows_and_option() -> None:
    rng = np.random.default_rng(0)
    day = np.datetime64("2021-01-01") + rng.integers(0, 700, 200)
    table = pa.table(
        {
            "Cholesterol": np.where(np.arange(200) < 30, 0, rng.integers(85, 600, 200)),
            "seen": np.where(np.arange(200) < 20, np.datetime64("1900-01-01"), day),
        }
    )
    found = [one for one in check_table(table)["findings"] if one["code"] == "sentinel"]
    assert [one["columns"] for one in found] == [["Cholesterol"], ["seen"]]
    low = table["Cholesterol"].to_numpy()[30:].min()
    assert f"'Cholesterol' is 0 in 30 of 200 rows, and {low} or more in all others" in found[0]["message"]
    assert "--missing Cholesterol=0 (in Python missing={'Cholesterol': [0]})" in found[0]["message"]
    assert "'seen' is 1900-01-01 in 20 of 200 rows" in found[1]["message"]
    assert "--missing seen=1900-01-01" in found[1]["message"]
    (column, _) = check_table(table)["columns"]
    assert column["sentinels"] == [{"value": "0", "rows": 30, "nearest": str(low)}]
