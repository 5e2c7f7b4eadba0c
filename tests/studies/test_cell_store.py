"""Results on disk: what was put is got, what is damaged is absent, and nobody sees half of a file."""

import gzip
import json
import multiprocessing
import os

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
def test_what_was_put_is_got_bit_for_bit(tmp_path_factory, result):
    store = CellStore(tmp_path_factory.mktemp("store"))
    store.put(KEY, result)
    got = store.get(KEY)
    assert got == result
    assert json.dumps(got) == json.dumps(result)


def test_keys_do_not_mix(tmp_path):
    store = CellStore(tmp_path / "made" / "when" / "needed")
    assert store.get(KEY) is None
    others = [KEY[:-1] + "1", "00" + KEY[2:]]
    for number, key in enumerate([KEY, *others]):
        store.put(key, {"number": number})
    assert [store.get(key) for key in (KEY, *others)] == [{"number": number} for number in range(3)]
    assert store.get("ff" + KEY[2:]) is None


def test_the_same_result_gives_the_same_bytes(tmp_path):
    stores = [CellStore(tmp_path / name) for name in ("a", "b")]
    for store in stores:
        store.put(KEY, {"x": [0.1, 2]})
    assert len({file_of(store).read_bytes() for store in stores}) == 1


def test_every_cut_and_every_flipped_byte_counts_as_absent_or_changes_nothing(tmp_path):
    store = CellStore(tmp_path)
    result = {"test": {"roc_auc": 0.123456789, "confusion": [[1, 2], [3, 4]]}}
    store.put(KEY, result)
    file, whole = file_of(store), file_of(store).read_bytes()
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        assert store.get(KEY) is None
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        # Some bytes of the header, such as the time, say nothing about the content.
        assert store.get(KEY) in (None, result)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        gzip.compress(b""),
        gzip.compress(b"{"),
        gzip.compress(b"\xff\xfe{}"),
        gzip.compress(b"[1]"),
        gzip.compress(b"null"),
        gzip.compress(b"[" * 100_000),
    ],
    ids=["empty", "not gzip", "nothing", "not JSON", "not UTF-8", "a list", "null", "too deep"],
)
def test_other_files_count_as_absent_and_are_replaced(tmp_path, content):
    store = CellStore(tmp_path)
    store.put(KEY, {"old": 1})
    file_of(store).write_bytes(content)
    assert store.get(KEY) is None
    store.put(KEY, {"new": 1})
    assert store.get(KEY) == {"new": 1}


def test_a_folder_in_place_of_a_file(tmp_path):
    store = CellStore(tmp_path)
    (tmp_path / KEY[:2] / f"{KEY}.json.gz").mkdir(parents=True)
    assert store.get(KEY) is None
    with pytest.raises(OutputError, match="cannot be written"):
        store.put(KEY, {})


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "store").write_text("mine")
    store = CellStore(tmp_path / "store")
    assert store.get(KEY) is None
    with pytest.raises(OutputError, match="cannot be written"):
        store.put(KEY, {})
    assert (tmp_path / "store").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="permissions"):
        CellStore(tmp_path).put(KEY, {})


def test_nothing_is_left_of_a_result_that_cannot_be_kept(tmp_path):
    store = CellStore(tmp_path)
    with pytest.raises(TypeError):
        store.put(KEY, {"x": object()})
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def put_often(folder, letter, stop):
    store = CellStore(folder)
    while not stop.is_set():
        store.put(KEY, {"text": letter * 50_000})


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="forks writers")
def test_two_writers_at_once_leave_a_whole_file(tmp_path):
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    writers = [context.Process(target=put_often, args=(tmp_path, letter, stop)) for letter in "ab"]
    store = CellStore(tmp_path)
    store.put(KEY, {"text": "c" * 50_000})
    seen = set()
    for writer in writers:
        writer.start()
    try:
        for _ in range(300):
            got = store.get(KEY)
            assert got is not None
            assert len(got["text"]) == 50_000
            assert len(set(got["text"])) == 1
            seen.add(got["text"][0])
    finally:
        stop.set()
        for writer in writers:
            writer.join(10)
    assert {"a", "b"} & seen
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{KEY}.json.gz"]
