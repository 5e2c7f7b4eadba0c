"""An archive holds the entries it was given, for other zip tools too, and any other bytes are refused."""

import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmedoid.model.storage.strict import ENTRIES, FORMAT, REQUIRED, archive_bytes, archive_entries
from qmedoid.schema import RefusedError

# Contents that look like parts of an archive are among them.
COMMENT = b"qmedoid model, format %d" % FORMAT
MARKS = [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x07", COMMENT]
CONTENTS = st.binary(max_size=60) | st.lists(st.sampled_from(MARKS) | st.binary(max_size=5)).map(b"".join)
ARCHIVES = st.fixed_dictionaries(
    dict.fromkeys(REQUIRED, CONTENTS), optional={name: CONTENTS for name in ENTRIES if name not in REQUIRED}
)


@given(ARCHIVES)
@settings(deadline=None)
def test_entries_come_back_in_their_order_and_from_another_zip_reader_too(entries):
    content = archive_bytes(entries)
    found = archive_entries(content)
    assert found == entries
    assert list(found) == [name for name in ENTRIES if name in entries]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(name) for name in archive.namelist()} == entries


@given(ARCHIVES, st.data())
@settings(deadline=None, max_examples=50)
def test_any_other_bytes_are_refused(entries, data):
    content = archive_bytes(entries)
    first = data.draw(st.integers(0, len(content)))
    last = data.draw(st.integers(first, min(len(content), first + 40)))
    changed = content[:first] + data.draw(CONTENTS) + content[last:]
    if changed != content:
        with pytest.raises(RefusedError):
            archive_entries(changed)


@given(st.binary(max_size=300) | st.lists(st.sampled_from(MARKS) | st.binary(max_size=40)).map(b"".join))
@settings(deadline=None, max_examples=50)
def test_bytes_of_any_kind_are_refused(content):
    with pytest.raises(RefusedError):
        archive_entries(content)


def test_entries_in_any_order_give_the_same_archive():
    entries = {name: name.encode() for name in ENTRIES}
    assert archive_bytes(dict(reversed(entries.items()))) == archive_bytes(entries)
