"""Laws of passes: chances are fair and depend on a row alone, summaries merge in any order, and files are whole."""

from itertools import permutations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.exceptions import ParameterError
from qmedoid.large.base import Summary, chances, content_hashes, kept_rows, key_of, merge, uniform
from qmedoid.large.passes import scale_for
from qmedoid.large.runner import SUFFIX, SummaryFolder
from qmedoid.large.split import class_rates, memory_bytes, needed_bytes, shares_for, sizes_for, width_of


def summary(first: int, n: int) -> Summary:
    """A summary of rows that begin at a place."""
    batch = pa.record_batch({"a": pa.array(np.arange(first, first + n) * 1.5)})
    rows = kept_rows([batch], batch.schema, [np.arange(first, first + n)])
    return Summary({"rows": {"": n}, "labels": {f"label {first % 2}": n}}, {"sample": rows})


def same(one: Summary, other: Summary) -> bool:
    return one.counts == other.counts and all(one.rows[name].equals(other.rows[name]) for name in one.rows)


def test_summaries_merge_in_any_order_and_any_grouping() -> None:
    parts = [summary(0, 3), summary(3, 0), summary(3, 2), summary(5, 4)]
    whole = merge([summary(0, 9)])
    for order in permutations(parts):
        found = merge(order)
        assert found.rows["sample"].combine_chunks().equals(whole.rows["sample"])
        assert found.counts["rows"] == {"": 9}
        assert same(merge([merge(order[:2]), merge(order[2:])]), found)


@given(st.integers(0, 2**31), st.integers(0, 10**12), st.integers(1, 50), st.integers(0, 49))
def test_the_chance_of_a_row_does_not_depend_on_its_batch(seed: int, first: int, n: int, cut: int) -> None:
    key, cut = key_of("sample", seed), min(cut, n)
    whole = chances(key, first, n)
    parts = np.concatenate([chances(key, first, cut), chances(key, first + cut, n - cut)])
    assert whole.tobytes() == parts.tobytes()
    assert ((whole >= 0) & (whole < 1)).all()


@pytest.mark.parametrize("seed", range(3))
def test_chances_are_fair(seed: int) -> None:
    from scipy.stats import kstest

    n = 200_000
    for found in (
        chances(key_of("sample", seed), 10**9 * seed, n),
        uniform(content_hashes(key_of("split", seed), [np.arange(n) * 0.01])),
        uniform(content_hashes(key_of("split", seed), [pa.array([f"name {row}" for row in range(n)])])),
    ):
        assert kstest(found, "uniform").pvalue > 1e-4
        assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 5 / np.sqrt(n)
    two = chances(key_of("sample", seed), 0, n), chances(key_of("hard", seed), 0, n)
    assert abs(np.corrcoef(*two)[0, 1]) < 5 / np.sqrt(n), "two draws about one row are independent"


def test_equal_rows_have_one_hash_and_others_another() -> None:
    key = key_of("split", 0)
    numbers = np.array([0.0, -0.0, 1.0, np.nan, np.float64("nan"), np.inf])
    texts = pa.array(["a", "a", "b", None, None, "b"])
    found = content_hashes(key, [numbers, texts])
    assert found[0] == found[1]
    assert found[3] == found[4]
    assert len(np.unique(found)) == 4
    chunked = pa.chunked_array([texts.slice(0, 2), texts.slice(2).dictionary_encode().cast(pa.string())])
    assert (content_hashes(key, [numbers, chunked]) == found).all()
    days = np.array(["2024-01-01", "NaT"], dtype="M8[D]")
    assert (content_hashes(key, [days]) == content_hashes(key, [days.astype("M8[us]")])).all()
    # Cells are not swapped between columns in silence.
    assert (content_hashes(key, [numbers, numbers[::-1]]) != content_hashes(key, [numbers[::-1], numbers])).any()


def test_a_summary_is_read_as_it_was_written_or_not_at_all(tmp_path: Path) -> None:
    one, folder = summary(7, 5), SummaryFolder(tmp_path / "parts")
    key = folder.key("count", {"target": "y"}, "content")
    assert key != folder.key("count", {"target": "z"}, "content")
    assert key != folder.key("count", {"target": "y"}, "other content")
    assert folder.get(key) is None
    folder.put(key, one)
    kept = folder.get(key)
    assert kept is not None
    assert same(kept, one)
    file, rng = tmp_path / "parts" / (key + SUFFIX), np.random.default_rng(0)
    data = file.read_bytes()
    for place in rng.integers(0, len(data), 60).tolist():
        bad = bytearray(data)
        bad[place] ^= 1 << int(rng.integers(8))
        for content in (bytes(bad), data[:place]):
            file.write_bytes(content)
            assert folder.get(key) is None
    folder.put_bytes("fit", b"model")
    assert folder.get_bytes("fit") == b"model"
    (tmp_path / "parts" / "mine.txt").write_text("not a summary")
    folder.remove()
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["mine.txt"]


def test_rates_fill_the_sample_and_no_class_is_lost() -> None:
    rare = class_rates({"0": 1_000_000, "1": 1_700}, 0.7, 10_000, frozenset({"1"}))
    assert rare["1"] == 1.0
    assert 0.7 * (1_000_000 * rare["0"] + 1_700 * rare["1"]) == pytest.approx(8_000)
    many = class_rates({"0": 10_000_000, "1": 1_000_000}, 0.7, 10_000, frozenset({"1"}))
    assert 0.7 * 1_000_000 * many["1"] == pytest.approx(2_000)
    even = class_rates({"a": 900_000, "b": 99_950, "c": 50}, 0.5, 10_000, frozenset())
    assert even["a"] == even["b"]
    assert even["c"] == 1.0
    assert 0.5 * 999_950 * even["a"] == pytest.approx(10_000, rel=1e-3)


def test_hard_rows_are_as_many_as_asked_for() -> None:
    odds = np.exp(np.random.default_rng(0).normal(-8, 3, size=20_000))
    scale = scale_for(odds, each=50.0, count=30_000)
    assert 50.0 * np.minimum(1.0, odds * scale).sum() == pytest.approx(30_000, rel=1e-6)


def test_memory_decides_how_many_rows_are_fitted_and_judged() -> None:
    assert memory_bytes("2GB") == memory_bytes("2 gib") == memory_bytes(2**31) == 2**31
    assert memory_bytes("1.5g") == 3 * 2**29
    for bad in ("much", "-1GB", "2GB of it", True):
        with pytest.raises(ParameterError, match="a size such as 2GB"):
            memory_bytes(bad)
    small, large = sizes_for(2**30, 30), sizes_for(2**31, 30)
    assert small[0] < large[0]
    assert needed_bytes(large[0], 30) <= 2**31 < needed_bytes(large[0] + 2, 30)
    schema = pa.schema([("a", pa.float64()), ("b", pa.string()), ("c", pa.int8())])
    assert width_of(schema) == 6
    assert shares_for(10_000, 50_000, 0.25, is_requested=False)[0] == 0.25
    assert shares_for(10_000_000, 50_000, 0.25, is_requested=False)[0] == 0.005
    with pytest.raises(ParameterError, match=r"give a share of at most 0\.005"):
        shares_for(10_000_000, 50_000, 0.25, is_requested=True)
