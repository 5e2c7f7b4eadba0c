"""Values that stand for missing cells: they are found where a person would see them, and nowhere else."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer

from qmedoid import EvidenceClassifier, MedoidClassifier, check_table
from qmedoid.exceptions import QMedoidWarning
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


def test_few_zeros_below_small_numbers_raise_no_alarm() -> None:
    rest = np.linspace(2.0, 20.0, 500)
    assert values_of(np.r_[rest, np.zeros(12)]) == []
    assert values_of(np.r_[rest, np.zeros(60)]) == [0.0]
    assert values_of(np.r_[rest + 10.0, np.zeros(12)]) == [0.0]
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    said = check_table(X.assign(y=y), "y")["findings"]
    assert not [one for one in said if "not measured" in one["message"]]  # 13 have no concave points


def test_wide_tables_are_looked_at_as_others() -> None:
    rng = np.random.default_rng(0)
    columns = {f"c{place}": np.round(rng.normal(100, 10, 300)) for place in range(40)}
    columns["c7"][:20], columns["c31"][5:60] = 0.0, 9999.0
    found = infer_columns(pa.table(columns)).sentinels
    assert found == infer_columns(pa.table({name: columns[name] for name in ("c7", "c31")})).sentinels
    assert list(found) == ["c7", "c31"]


def test_impossible_negatives_are_found_in_however_few_rows() -> None:
    rng = np.random.default_rng(0)
    for share in (1, 3):
        assert values_of(np.r_[np.round(rng.normal(37, 1, 400), 1), np.full(share, -999.0)]) == [-999.0]
        assert values_of(np.r_[np.round(rng.normal(37, 1, 400), 1), np.full(share, -30.0)]) == []
    spread = np.r_[np.round(rng.normal(0, 900, 400), 1), -999.0]
    assert values_of(spread) == []


def test_codes_of_a_family_are_found_together() -> None:
    counts = np.random.default_rng(0).integers(0, 30, 400).astype(float)
    assert values_of(np.r_[counts, np.full(9, 99.0), np.full(7, 88.0), np.full(8, 77.0)]) == [77.0, 88.0, 99.0]
    assert values_of(np.r_[counts, np.full(9, 99.0), np.full(7, 98.0)]) == [98.0, 99.0]
    assert values_of(np.r_[counts, np.full(9, 999.0), np.full(7, 998.0), np.full(7, 997.0)]) == [997.0, 998.0, 999.0]


def test_codes_of_grades_are_found() -> None:
    rng = np.random.default_rng(0)
    grades = rng.integers(1, 6, 400).astype(float)
    for code in (9.0, -1.0, -9.0, 99.0):
        assert values_of(np.r_[grades, np.full(12, code)]) == [code]
    assert values_of(np.r_[rng.integers(0, 4, 400).astype(float), np.full(12, 9.0)]) == [9.0]
    assert values_of(np.r_[rng.choice([0.0, 1.0, 3.0, 5.0], 400), np.full(12, 9.0)]) == []
    assert values_of(rng.choice([-1.0, 0.0, 1.0], 400)) == values_of(rng.choice([-1.0, 0.0, 1.0, 2.0], 400)) == []


def dates_of(days: np.ndarray) -> list[str]:
    found = find_sentinels(days.astype("M8[us]"), "date")
    return [] if found is None else [one["value"] for one in found.as_dicts()]


def test_days_that_programs_write_for_none_are_found() -> None:
    """Beyond all others in however few rows; among others where no other day stands in nearly as many."""
    rng = np.random.default_rng(0)
    days, births = (
        np.datetime64(first) + rng.integers(0, n, 600) for first, n in (("2021-01-01", 900), ("1935-01-01", 25_000))
    )
    for day in ("1900-01-01", "1970-01-01", "9999-12-31", "2099-12-31", "0001-01-01"):
        assert dates_of(np.r_[days, np.full(2, np.datetime64(day))]) == [day]
    assert dates_of(np.r_[days, np.full(2, np.datetime64("2150-07-09"))]) == []
    assert dates_of(np.r_[births, np.full(30, np.datetime64("1970-01-01"))]) == ["1970-01-01"]
    assert dates_of(np.r_[births, np.full(3, np.datetime64("1970-01-01"))]) == []
    often = [np.datetime64("1971-05-04")] * 30 + [np.datetime64("1970-01-01")]
    assert dates_of(np.r_[births, often]) == []
    visits = np.datetime64("1969-12-20") + rng.integers(0, 30, 600)
    assert dates_of(visits) == []
    message = find_sentinels(np.r_[births, np.full(30, np.datetime64("1970-01-01"))].astype("M8[us]"), "date").message(
        "b"
    )
    assert "1970-01-01 in 30 of 630 rows, and no other day in nearly as many" in message


@pytest.mark.parametrize("word", ["unknown", "Unknown", "Null", "not known", "-1", "99", "-999"])
def test_levels_that_may_mean_not_measured_are_found(word: str) -> None:
    rng = np.random.default_rng(0)
    cells = np.where(rng.random(300) < 0.1, word, rng.choice(["A", "B", "C", "D"], 300))
    (found,) = [
        one for one in check_table({"x": cells, "z": rng.normal(size=300)})["findings"] if one["columns"] == ["x"]
    ]
    n_rows = (cells == word).sum()
    assert found["message"].startswith(f"'x' is {word} in {n_rows} of 300 rows: {word} may mean 'not measured'")
    assert f"missing={{'x': ['{word}']}}" in found["message"]
    read = check_table({"x": cells, "z": rng.normal(size=300)}, missing={"x": [word]})
    assert read["columns"][0]["missing"] == n_rows
    assert [one["code"] for one in read["findings"]] == ["reading"]


@pytest.mark.parametrize("word", ["n/a", "?", "NA"])
def test_words_that_are_missing_among_numbers_have_one_note(word: str) -> None:
    cells = np.where(np.arange(300) % 9 == 0, word, np.array(["A", "B", "C"])[np.arange(300) % 3])
    found = check_table({"x": cells, "z": np.sin(np.arange(300))})["findings"]
    assert [one["code"] for one in found] == ["reading"]
    assert f"{word!r} in 34 of 300 rows: read as a level" in found[0]["message"]


def test_levels_that_are_codes_among_codes_raise_no_alarm() -> None:
    rng = np.random.default_rng(0)
    for levels in (["none", "some", "all"], ["V9", "V99", "W1"], ["250.83", "428", "V45", "99"]):
        assert check_table({"x": rng.choice(levels, 300), "z": rng.normal(size=300)})["findings"] == []


def test_fit_warns_as_the_command_line_notes() -> None:
    rng = np.random.default_rng(0)
    X = {"a": np.where(np.arange(300) < 30, -999.0, np.round(rng.normal(37, 1, 300), 1)), "b": rng.normal(size=300)}
    X["c"] = np.where(np.arange(300) % 9 == 0, "unknown", rng.choice(["x", "y", "z"], 300))
    quick = {"method": EvidenceClassifier(n_medoids=4, n_neighbors=0), "refine": "never", "random_state": 0}
    said = [one["message"] for one in check_table(X)["findings"] if one["code"] == "sentinel"]
    with pytest.warns(QMedoidWarning, match=r"^'a' is -999 in 30 of 300 rows.*; 'c' is unknown in 34 of") as warned:
        fitted = MedoidClassifier(**quick).fit(X, rng.permutation(np.arange(300) % 2))
    assert [note for note in fitted.notes_ if "may mean" in note] == said
    assert len(warned) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", QMedoidWarning)
        MedoidClassifier(missing={"a": [-999], "c": ["unknown"]}, **quick).fit(X, rng.permutation(np.arange(300) % 2))


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
