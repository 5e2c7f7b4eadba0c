"""The archive of a model file: a zip of stored entries, every byte of which follows from their contents.

Entries are stored in the order of `ENTRIES`, without compression, extra fields or dates. The comment of the archive
has the number of the format and the SHA-256 of the first entry, the manifest; the manifest has those of all others.
Any zip tool can extract the entries. The reader compares every header with the one that the writer would write, so
that whatever else a zip may have is refused: compressed, encrypted, renamed, added or doubled entries, a directory
that disagrees with the headers, zip64, and bytes before, between or behind the entries.
"""

import hashlib
import re
import struct
import zlib
from collections.abc import Mapping, Sequence

from qmedoid.schema import RefusedError

FORMAT = 3
"""Number of the file format. Whatever changes in what is written takes the next number."""
MANIFEST, ARRAYS, ROWS, CARD = "manifest.json", "arrays.safetensors", "rows.json", "card.md"
REQUIRED = (MANIFEST, ARRAYS, CARD)
ENTRIES = (MANIFEST, ARRAYS, ROWS, CARD, "circuit.qpy", "circuit.qasm", "swap_test.qpy", "swap_test.qasm")
"""Names of the entries, in their order; the circuits are for other tools and are never parsed."""
LARGEST_FILE = 2**28
"""Bytes of the largest file that is read."""

# A local header, an entry of the central directory, and its end (PKWARE's APPNOTE.TXT, 4.3.7, 4.3.12 and 4.3.16).
_LOCAL, _LISTED, _END = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s4H2LH")
_LOCAL_MARK = b"PK\x03\x04"
# Version 2.0, no flags, stored, midnight of 1980-01-01.
_PLAIN = (20, 0, 0, 0, 33)
_MADE_ON_UNIX, _READABLE = 3 << 8 | 20, 0o100644 << 16
_COMMENT = re.compile(rb"qmedoid model, format ([0-9]{1,9}), manifest ([0-9a-f]{64})\Z")
_LONGEST_COMMENT = 120


class FormatError(RefusedError):
    """The file has a format of another number."""


def archive_bytes(entries: Mapping[str, bytes]) -> bytes:
    """The file of some entries, by name."""
    parts, listing, start = list[bytes](), list[bytes](), 0
    for name in (name for name in ENTRIES if name in entries):
        local, listed = _headers(name, entries[name], start)
        parts += [local, entries[name]]
        listing.append(listed)
        start += len(local) + len(entries[name])
    return b"".join([*parts, _tail(listing, start, hashlib.sha256(entries[MANIFEST]).hexdigest())])


def archive_entries(content: bytes) -> dict[str, memoryview]:
    """The entries of a file that may hold anything, by name; the hash of the manifest is right.

    Raises
    ------
    RefusedError
        The file is not, byte for byte, the archive of its entries.
    """
    digest = _manifest_digest(content)
    entries, listing, start, left = dict[str, memoryview](), list[bytes](), 0, list(ENTRIES)
    while content.startswith(_LOCAL_MARK, start) and len(content) >= start + _LOCAL.size:
        *_, size, name_length, _ = _LOCAL.unpack_from(content, start)
        first = start + _LOCAL.size + name_length
        name = content[start + _LOCAL.size : first].decode("ascii", "replace")
        if name not in left:
            raise RefusedError(f"it holds the entry {name[:60]!r} where none of this name belongs")
        left = left[left.index(name) + 1 :]
        entries[name] = memoryview(content)[first : first + size]
        local, listed = _headers(name, entries[name], start)
        if content[start:first] != local:
            raise RefusedError("its header is not the one of these contents, stored without compression", name)
        listing.append(listed)
        start = first + size
    for name in REQUIRED:
        if name not in entries:
            raise RefusedError(f"it lacks the entry {name!r}")
    if hashlib.sha256(entries[MANIFEST]).hexdigest() != digest:
        raise RefusedError("its contents do not match its SHA-256", MANIFEST)
    if content[start:] != _tail(listing, start, digest):
        raise RefusedError("its directory is not the one of its entries")
    return entries


def _headers(name: str, content: bytes | memoryview, start: int) -> tuple[bytes, bytes]:
    """The local header of an entry that begins at `start`, and its entry in the central directory."""
    facts = (*_PLAIN, zlib.crc32(content), len(content), len(content), len(name), 0)
    listed = _LISTED.pack(b"PK\x01\x02", _MADE_ON_UNIX, *facts, 0, 0, 0, _READABLE, start)
    return _LOCAL.pack(_LOCAL_MARK, *facts) + name.encode(), listed + name.encode()


def is_model_file(start: bytes) -> bool:
    """Whether a file with these first bytes is a model file, be it damaged."""
    return start.startswith(_LOCAL_MARK) and start.startswith(MANIFEST.encode(), _LOCAL.size)


def _manifest_digest(content: bytes) -> str:
    """The SHA-256 of the manifest by the comment of the archive, whose format is checked."""
    comment = _COMMENT.search(content, max(0, len(content) - _LONGEST_COMMENT))
    if comment is None and is_model_file(content[:64]):
        raise RefusedError("its end is missing or damaged")
    if comment is None:
        raise RefusedError("it is not a file that save wrote")
    if int(comment[1]) != FORMAT:
        raise FormatError(str(int(comment[1])))
    return comment[2].decode()


def _tail(listing: Sequence[bytes], start: int, digest: str) -> bytes:
    """The central directory of the archive, which begins at `start`, its end and its comment."""
    comment, listed = f"qmedoid model, format {FORMAT}, manifest {digest}".encode(), b"".join(listing)
    facts = (0, 0, len(listing), len(listing), len(listed), start, len(comment))
    return listed + _END.pack(b"PK\x05\x06", *facts) + comment
