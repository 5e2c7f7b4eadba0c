"""Results on disk: what was put is got, what is damaged is absent, and what cannot be written is an error of output."""

import gzip
import json

import pytest
from benchmarks.studies.runner import CellStore
from hypothesis import given
from hypothesis import strategies as st

from qmedoid.exceptions import OutputError

KEY = "ab" + "0" * 62
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def file_of(store):
    (file,) = store.folder.rglob("*.json.gz")
    return file


@given(st.dictionaries(st.text(), plain, max_size=5))
def test_what_was_put_is_got_bit_for_bit_and_has_the_same_bytes_each_time(tmp_path_factory, result):
    stores = [CellStore(tmp_path_factory.mktemp("store") / "made" / "when needed") for _ in range(2)]
    for store in stores:
        store.put(KEY, result)
        got = store.get(KEY)
        assert got == result
        assert json.dumps(got) == json.dumps(result)
    assert file_of(stores[0]).read_bytes() == file_of(stores[1]).read_bytes()


def test_every_cut_and_every_flipped_byte_counts_as_absent_or_changes_nothing(tmp_path):
    store = CellStore(tmp_path)
    result = {"test": {"roc_auc": 0.123456789, "confusion": [[1, 2], [3, 4]]}}
    store.put(KEY, result)
    file, whole = file_of(store), file_of(store).read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place])
        assert store.get(KEY) is None
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        # Some bytes of the header, such as the time, say nothing about the content.
        assert store.get(KEY) in (None, result)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", *map(gzip.compress, (b"", b"{", b"\xff\xfe{}", b"[1]", b"null", b"[" * 100_000))],
    ids=["empty", "not gzip", "nothing", "not JSON", "not UTF-8", "a list", "null", "too deep"],
)
def test_other_files_count_as_absent_and_are_replaced(tmp_path, content):
    store = CellStore(tmp_path)
    store.put(KEY, {"old": 1})
    file_of(store).write_bytes(content)
    assert store.get(KEY) is None
    store.put(KEY, {"new": 1})
    assert store.get(KEY) == {"new": 1}


def test_places_that_cannot_be_written_are_absent_and_errors_of_output(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / KEY[:2] / f"{KEY}.json.gz").mkdir(parents=True)
    for store in (CellStore(tmp_path), CellStore(tmp_path / "file")):
        assert store.get(KEY) is None
        with pytest.raises(OutputError, match="cannot be written"):
            store.put(KEY, {})
    assert (tmp_path / "file").read_text() == "mine"
