"""Model files that are damaged or forged: names of what was done, and the bytes that result."""

import io
import json
import os
import pickle
import struct
import zipfile

import numpy as np
import safetensors.numpy

from qmedoid.model.storage.strict import ARRAYS, CARD, ENTRIES, FORMAT, MANIFEST, archive_bytes

WRONG = (
    None, True, -1, 2**70, 1.5, -1e300, "", "../../etc/passwd", [], [[]], {}, {"a": 1}, {"$float": "nan"},
    {"$float": "inf"},
)  # fmt: skip
"""Values that hardly any field may have."""


class Bomb:
    """Makes a folder when it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("exploded",))


class Spoilt:
    """A model file in memory that can be changed with or without making its hashes right again."""

    def __init__(self, path):
        self.content = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            self.entries = {name: archive.read(name) for name in archive.namelist()}
        self.manifest = json.loads(self.entries[MANIFEST])

    def with_entries(self, entries):
        """The archive of other entries, whose hash is right."""
        return archive_bytes(self.entries | entries)

    def with_manifest(self, manifest):
        return self.with_entries({MANIFEST: json.dumps(manifest).encode()})

    def with_arrays(self, arrays):
        return self.with_entries({ARRAYS: safetensors.numpy.save(arrays)})

    def arrays(self):
        return safetensors.numpy.load(self.entries[ARRAYS])

    @property
    def headers(self):
        """Positions of all bytes that belong to no entry's contents."""
        inside = set()
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            for info in archive.infolist():
                first = info.header_offset + 30 + len(info.filename)
                inside.update(range(first, first + info.file_size))
        return sorted(set(range(len(self.content))) - inside)


def flipped(file, count):
    """One bit turned: in every byte of the headers, and in some of the contents."""
    rng = np.random.default_rng(1)
    for position in [*file.headers, *rng.integers(len(file.content), size=count).tolist()]:
        changed = bytearray(file.content)
        changed[position] ^= 1 << int(rng.integers(8))
        yield f"a bit at {position}", bytes(changed)


def cut(file, count):
    """The beginning or the end lost, or something before or behind the file."""
    rng = np.random.default_rng(2)
    size = len(file.content)
    for length in [0, 1, size - 1, *file.headers, *rng.integers(size, size=count).tolist()]:
        yield f"cut at {length}", file.content[:length]
    for position in [1, size - 1, *file.headers[1::3], *rng.integers(size, size=count // 4).tolist()]:
        yield f"begun at {position}", file.content[position:]
        yield f"a byte lost at {position}", file.content[:position] + file.content[position + 1 :]
        yield f"a byte more at {position}", file.content[:position] + b"P" + file.content[position:]
    for junk in (b"\0", b"PK\x03\x04", b"#!/bin/sh\n", file.content, b" " * 70_000):
        yield "junk before", junk + file.content
        yield "junk behind", file.content + junk


def swapped(file, other):
    """Entries of another model, or of another name, in place of the right ones, or not there; the hash is the old."""

    def stale(entries):
        return archive_bytes(entries)[:-64] + file.content[-64:]

    for name in file.entries:
        if other.entries[name] != file.entries[name]:
            yield f"{name} of another model", stale(file.entries | {name: other.entries[name]})
        for wrong in file.entries:
            if file.entries[wrong] != file.entries[name]:
                yield f"{wrong} in place of {name}", stale(file.entries | {name: file.entries[wrong]})
        rest = {key: value for key, value in file.entries.items() if key != name}
        yield f"{name} gone", archive_bytes(rest)
        yield f"{name} empty", stale(file.entries | {name: b""})
        yield f"{name} longer", stale(file.entries | {name: file.entries[name] + b"}"})
    for name in set(ENTRIES) - set(file.entries):
        yield f"{name} added", stale(file.entries | {name: b"x"})


def forged_archives(file):
    """Zip archives with the right contents and hashes that are not as they are written."""
    comment = _comment(file)
    whole = list(file.entries.items())

    def packed(entries=whole, method=zipfile.ZIP_STORED, change=None, note=comment):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, content in entries:
                info = zipfile.ZipInfo(name)
                info.compress_type, info.create_system, info.external_attr = method, 3, 0o100644 << 16
                if change is not None:
                    change(info)
                archive.writestr(info, content)
            archive.comment = note
        return out.getvalue()

    assert packed() == file.content  # so that what follows differs in one thing alone
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        yield f"compressed by {method}", packed(method=method)
    card = (CARD, file.entries[CARD])
    for name in ("extra", "../x", "/etc/passwd", "a\\b", "", ".", "card.md/", "CARD.MD", "cärd.md", "x" * 60_000):
        yield f"one more entry {name[:20]!r}", packed([*whole, (name, b"x")])
        yield f"the card as {name[:20]!r}", packed([(name if one == CARD else one, data) for one, data in whole])
    for name, data in whole:
        yield f"{name} twice", packed([(one, d) for one, d in whole for _ in range(1 + (one == name))])
        yield f"{name} and another {name}", packed([*whole, (name, b"{}")])
        yield f"another {name} before", packed([(name, b"{}"), *whole])
        if name != MANIFEST:
            yield f"{name} first", packed([(name, data), *(one for one in whole if one[0] != name)])
    yield "the other way round", packed(whole[::-1])
    yield "no entry", packed([])
    yield "many entries", packed([*whole, *((f"{number}", b"") for number in range(60_000))])
    for label, change in {
        "a date": lambda info: setattr(info, "date_time", (2026, 1, 2, 3, 4, 6)),
        "extra fields": lambda info: setattr(info, "extra", struct.pack("<HHQ", 0x6375, 8, 1)),
        "a comment of an entry": lambda info: setattr(info, "comment", b"x"),
        "attributes": lambda info: setattr(info, "external_attr", 0o120777 << 16),
        "another system": lambda info: setattr(info, "create_system", 0),
        "an internal attribute": lambda info: setattr(info, "internal_attr", 1),
    }.items():
        yield f"archive with {label}", packed(change=change)
    for note in (
        b"",
        comment + b", sha256 " + b"0" * 64,
        comment + b" ",
        comment.upper(),
        b"x" * 60_000,
        comment * 2,
        comment[:-1] + b"x",
    ):
        yield f"comment {note[:30]!r}", packed(note=note)
    yield "the card twice at the end", packed([*whole[:-1], card, card])
    with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
        directory, end = archive.start_dir, file.content.rindex(b"PK\x05\x06")
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
    record = struct.pack("<4sQHHLLQQQQ", b"PK\x06\x06", 44, 45, 45, 0, 0, 2**40, 2**40, 2**60, 0)
    yield "zip64", file.content[:end] + record + locator + file.content[end:]
    yield "a gap", file.content[:directory] + b"\0" * 100 + file.content[directory:]


def _comment(file):
    with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
        return archive.comment


def places(value, path=()):
    """The path of every value within JSON, lists only by their first two entries."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*path, key))
    elif isinstance(value, list):
        for i, one in enumerate(value[:2]):
            yield from places(one, (*path, i))


def replaced(value, path, new):
    """A copy with another value at a path."""
    result = json.loads(json.dumps(value))  # far faster than a deep copy
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return result


def removed(value, path):
    result = json.loads(json.dumps(value))  # far faster than a deep copy
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return result


def forged_json(file):
    """Wrong values in the manifest and in the rows, with hashes that are right."""
    for number, path in enumerate(places(file.manifest)):
        free = ("parameters", "metrics", "versions")
        # Neighboring fields take turns.
        for new in WRONG[number % 2 :: 4 if set(path[:2]) & {*free} else 2]:
            yield f"manifest{list(path)} = {new!r}", file.with_manifest(replaced(file.manifest, path, new))
        yield f"manifest without {list(path)}", file.with_manifest(removed(file.manifest, path))


def forged_arrays(file):
    """Arrays of other shapes, types and values, with hashes that are right."""
    for name, array in file.arrays().items():
        others = [array[:-1], np.concatenate([array, array[:1]]), array.reshape(*array.shape, 1)[..., 0:1], array[:0]]
        others += [
            np.nan_to_num(array).astype(np.float64 if array.dtype != np.float64 else np.int64),
            array.astype(np.float32),
        ]
        for bad in (np.nan, np.inf, 0, -1, 2**62) if array.dtype != np.uint8 else (255,):
            for position in {0, array.size // 2, array.size - 1} if array.size else ():
                with np.errstate(invalid="ignore"):
                    changed = array.astype(np.float64) if isinstance(bad, float) else array.copy()
                changed.flat[position] = bad
                others.append(changed.copy())
        for number, other in enumerate(others):
            arrays = file.arrays() | {name: np.ascontiguousarray(other)}
            yield f"array {name} number {number}", file.with_arrays(arrays)
        rest = {key: value for key, value in file.arrays().items() if key != name}
        yield f"without array {name}", file.with_arrays(rest)
    yield "one more array", file.with_arrays(file.arrays() | {"extra": np.zeros(1)})


def forged_headers(file):
    """Headers of the arrays that lie about lengths, types and places, with hashes that are right."""
    content = file.entries[ARRAYS]
    length = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]

    def remade(head, size=None, rest=body):
        text = head if isinstance(head, bytes) else json.dumps(head).encode()
        return file.with_entries({ARRAYS: (len(text) if size is None else size).to_bytes(8, "little") + text + rest})

    for size in (0, 1, length - 1, length + 1, len(content), 2**31, 2**40, 2**63, 2**64 - 1):
        yield f"header of {size} bytes", remade(content[8 : 8 + length], size)
    for head in (b"", b"{}", b"[]", b"null", b"[" * 100_000, b'{"a":' * 100_000, b"\xff", b" " * 2**23):
        yield f"header {head[:10]!r}", remade(head)
    first, second = list(header)[:2]
    text = json.dumps(header)
    yield "an array twice", remade((text[:-1] + f', "{first}": {json.dumps(header[first])}}}').encode())
    yield "metadata", remade(header | {"__metadata__": {"a": "b"}})
    yield "shared bytes", remade(header | {f"copy{i}": header[first] for i in range(20_000)})
    yield "empty arrays", remade(header | {f"e{i}": header[first] | {"shape": [0]} for i in range(60_000)})
    for name in (first, second):
        entry = header[name]
        start, end = entry["data_offsets"]
        lies = [
            {"dtype": "F32"}, {"dtype": "BOOL"}, {"dtype": "F8_E4M3"}, {"dtype": 5}, {"dtype": None},
            {"dtype": "F4"}, {"dtype": "BF16"},
            {"shape": [2**62, 2]}, {"shape": [2**40]}, {"shape": [-1]}, {"shape": [1.0]}, {"shape": ["1"]},
            {"shape": [True]}, {"shape": [[1]]}, {"shape": [0, 2**70]}, {"shape": [1] * 40}, {"shape": {}},
            {"data_offsets": [start, end + 8]}, {"data_offsets": [start + 8, end + 8]}, {"data_offsets": [end, start]},
            {"data_offsets": [-8, 0]}, {"data_offsets": [start]}, {"data_offsets": [0, 2**62]}, {"extra": 1},
            {"data_offsets": [start, end, end]}, {"data_offsets": None}, {"data_offsets": [2**70, 2**70]},
        ]  # fmt: skip
        for lie in lies:
            yield f"array {name} with {lie}", remade(header | {name: entry | lie})
    yield "bytes behind the arrays", remade(header, rest=body + b"\0" * 8)
    yield "bytes lost", remade(header, rest=body[:-8])
    for name, other in header.items():
        if other["data_offsets"][0] > header[first]["data_offsets"][0] and other["shape"] == header[first]["shape"]:
            yield f"{name} over {first}", remade(header | {name: header[first]})


def forged_manifests(file):
    """Comments of other formats, and manifests that are not strict JSON."""
    for number in (1, 2, 0, -1, 10**30, "2.5", "x"):
        yield f"format {number!r}", file.content.replace(b"format %d" % FORMAT, f"format {number}".encode())
    text = json.dumps(file.manifest)
    for label, value in {
        "duplicate keys": 'null, "parent": null',
        "a number too large": "1e999",
        "a bare NaN": "NaN",
        "deep lists": "[" * 50_000 + "]" * 50_000,
        "deep objects": '{"a":' * 50_000 + "0" + "}" * 50_000,
        "a long number": "9" * 100_000,
        "many values": "[" + "0," * 3_000_000 + "0]",
    }.items():
        forged = text.replace('"parent": null', f'"parent": {value}')
        assert forged != text
        yield f"manifest with {label}", file.with_entries({MANIFEST: forged.encode()})
    yield "manifest with much space", file.with_entries({MANIFEST: (text + " " * 2**25).encode()})
    yield "another field", file.with_manifest(file.manifest | {"format": FORMAT})
    for content in (b"[]", b'{"name": "app"}', ("\ufeff" + text).encode("utf-16"), b"", b"\xff"):
        yield f"manifest {content[:20]!r}", file.with_entries({MANIFEST: content})
    parameters = current = {}
    for _ in range(500):
        current["a"] = {}
        current = current["a"]
    yield "deep parameters", file.with_manifest(replaced(file.manifest, ("model", "parameters"), parameters))
    colliding = [i * (2**61 - 1) for i in range(50_000)]
    for label, classes in {"labels that collide": colliding, "very many classes": list(range(200_000))}.items():
        yield label, file.with_manifest(replaced(file.manifest, ("model", "decision", "classes"), classes))
    bomb = pickle.dumps(Bomb())
    for name in (MANIFEST, ARRAYS):
        yield f"a pickle as {name}", file.with_entries({name: bomb})
    yield "a pickle", bomb
