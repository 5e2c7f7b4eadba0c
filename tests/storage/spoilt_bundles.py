"""Bundles that are damaged or forged: names of what was done, and the files that result."""

import hashlib
import json
import os
import pickle

import numpy as np
import safetensors.numpy

from qmedoid.storage._files import MANIFEST, content_entry, signed

WRONG = (
    None, True, -1, 2**70, 1.5, -1e300, "", "../../etc/passwd", [], [[]], {}, {"a": 1}, {"$float": "nan"},
    {"$float": "inf"},
)  # fmt: skip
"""Values that hardly any field may have."""


class Bomb:
    """Makes a folder when it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("exploded",))


class Bundle:
    """The files of a bundle in memory, that can be changed with or without making its hashes right again."""

    def __init__(self, path):
        self.files = {file.name: file.read_bytes() for file in path.iterdir()}
        self.manifest = json.loads(self.files[MANIFEST])

    def name(self, role):
        return self.manifest["files"][role]["name"]

    def content(self, role):
        return self.files[self.name(role)]

    def with_file(self, name, content):
        return self.files | {name: content}

    def with_manifest(self, manifest):
        """Another manifest, signed anew."""
        return self.with_file(MANIFEST, json.dumps(signed(manifest)).encode())

    def with_content(self, role, content):
        """Another file, with a manifest that knows its name, size and hash."""
        entry = content_entry(role, content)
        manifest = json.loads(json.dumps(self.manifest))
        manifest["files"][role] = {"name": entry.name, "bytes": entry.size, "sha256": entry.sha256}
        files = {name: data for name, data in self.files.items() if name != self.name(role)}
        return files | {entry.name: content, MANIFEST: json.dumps(signed(manifest)).encode()}

    def with_arrays(self, arrays):
        return self.with_content("arrays", safetensors.numpy.save(arrays))

    def arrays(self):
        return safetensors.numpy.load(self.content("arrays"))


def flipped(bundle, per_file):
    """One bit turned, anywhere."""
    rng = np.random.default_rng(1)
    for name, content in bundle.files.items():
        for position in rng.integers(len(content), size=per_file):
            changed = bytearray(content)
            changed[position] ^= 1 << int(rng.integers(8))
            yield f"a bit of {name} at {position}", bundle.with_file(name, bytes(changed))


def cut(bundle, per_file):
    """The end lost, or something behind it."""
    rng = np.random.default_rng(2)
    for name, content in bundle.files.items():
        for length in rng.integers(len(content), size=per_file):
            yield f"{name} cut at {length}", bundle.with_file(name, content[:length])
        yield f"{name} empty", bundle.with_file(name, b"")
        yield f"{name} longer", bundle.with_file(name, content + b"}")
        yield f"{name} gone", {other: data for other, data in bundle.files.items() if other != name}


def swapped(bundle, other):
    """Files of another bundle, or of another role, in place of the right ones."""
    for role in bundle.manifest["files"]:
        if role in other.manifest["files"] and other.content(role) != bundle.content(role):
            yield f"{role} of another bundle", bundle.with_file(bundle.name(role), other.content(role))
        for wrong in bundle.manifest["files"]:
            if bundle.content(wrong) != bundle.content(role):
                yield f"{wrong} in place of {role}", bundle.with_file(bundle.name(role), bundle.content(wrong))
    yield "another manifest", bundle.with_file(MANIFEST, other.files[MANIFEST])


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


def forged_json(bundle):
    """Wrong values in the manifest and in the circuits, with hashes that are right."""
    for path in places({name: value for name, value in bundle.manifest.items() if name != "sha256"}):
        for new in WRONG[:: 3 if path[0] in ("parameters", "metrics", "files") else 1]:
            yield f"manifest{list(path)} = {new!r}", bundle.with_manifest(replaced(bundle.manifest, path, new))
        yield f"manifest without {list(path)}", bundle.with_manifest(removed(bundle.manifest, path))
    for role in ("circuits", "rows"):
        value = json.loads(bundle.content(role))
        for path in places(value):
            for new in WRONG[:: 1 if role == "circuits" else 3]:
                changed = json.dumps(replaced(value, path, new)).encode()
                yield f"{role}{list(path)} = {new!r}", bundle.with_content(role, changed)


def forged_arrays(bundle):
    """Arrays of other shapes, types and values, with hashes that are right."""
    for name, array in bundle.arrays().items():
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
            yield (
                f"array {name} number {number}",
                bundle.with_arrays(bundle.arrays() | {name: np.ascontiguousarray(other)}),
            )
        rest = {key: value for key, value in bundle.arrays().items() if key != name}
        yield f"without array {name}", bundle.with_arrays(rest)
    yield "one more array", bundle.with_arrays(bundle.arrays() | {"extra": np.zeros(1)})


def forged_headers(bundle):
    """Headers of the arrays that lie about lengths, types and places, with hashes that are right."""
    content = bundle.content("arrays")
    length = int.from_bytes(content[:8], "little")
    header, body = json.loads(content[8 : 8 + length]), content[8 + length :]

    def remade(head, size=None, rest=body):
        text = head if isinstance(head, bytes) else json.dumps(head).encode()
        return bundle.with_content("arrays", (len(text) if size is None else size).to_bytes(8, "little") + text + rest)

    for size in (0, 1, length - 1, length + 1, len(content), 2**31, 2**40, 2**63, 2**64 - 1):
        yield f"header of {size} bytes", remade(content[8 : 8 + length], size)
    for head in (b"", b"{}", b"[]", b"null", b"[" * 100_000, b'{"a":' * 100_000, b"\xff"):
        yield f"header {head[:10]!r}", remade(head)
    first, second = list(header)[:2]
    text = json.dumps(header)
    yield "an array twice", remade((text[:-1] + f', "{first}": {json.dumps(header[first])}}}').encode())
    yield "metadata", remade(header | {"__metadata__": {"a": "b"}})
    yield "shared bytes", remade(header | {f"copy{i}": header[first] for i in range(20_000)})
    for name in (first, second):
        entry = header[name]
        start, end = entry["data_offsets"]
        lies = [
            {"dtype": "F32"}, {"dtype": "BOOL"}, {"dtype": "F8_E4M3"}, {"dtype": 5}, {"dtype": None},
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


def forged_manifests(bundle):
    """Manifests that ask for other formats, files elsewhere, or more than there is."""
    files = bundle.manifest["files"]
    for number in (4, 6, 1, 0, -1, 10**30, "1", 1.0, True, 5.0, None, [1]):
        yield f"format {number!r}", bundle.with_manifest(bundle.manifest | {"format": number})
    card, elsewhere = files["card"]["name"], "arrays-0123456789abcdef.safetensors"
    names = ("../x", "/etc/passwd", "..", ".", "", "a/b", "a\\b", "a\0", MANIFEST, f"{card}\n", card.upper(), elsewhere)
    for name in (*names, "x" * 100_000):
        for role in ("arrays", "card"):
            yield (
                f"{role} named {name[:30]!r}",
                bundle.with_manifest(replaced(bundle.manifest, ("files", role, "name"), name)),
            )
    for size in (2**28, 2**28 + 1, 2**40, 2**63, 2**200, -1, 0, 1.0, "1"):
        yield f"{size} bytes", bundle.with_manifest(replaced(bundle.manifest, ("files", "arrays", "bytes"), size))
    for digest in ("", "0" * 64, "g" * 64, files["card"]["sha256"], files["arrays"]["sha256"].upper(), 5):
        yield f"hash {digest!r}", bundle.with_manifest(replaced(bundle.manifest, ("files", "arrays", "sha256"), digest))
    text = json.dumps(bundle.manifest)
    for label, content in {
        "duplicate keys": text.replace('"best": 0', '"best": 0, "best": 0'),
        "a number too large": text.replace('"best": 0', '"best": 1e999'),
        "a bare NaN": text.replace('"best": 0', '"best": NaN'),
        "deep lists": text.replace('"best": 0', '"best": ' + "[" * 50_000 + "]" * 50_000),
        "deep objects": text.replace('"best": 0', '"best": ' + '{"a":' * 50_000 + "0" + "}" * 50_000),
        "a long number": text.replace('"best": 0', '"best": ' + "9" * 100_000),
        "many values": text.replace('"best": 0', '"best": [' + "0," * 3_000_000 + "0]"),
        "much space": text.replace('"best": 0', '"best": ' + " " * (2**25)),
        "a list": "[]",
        "another object": '{"name": "app"}',
        "UTF-16": "\ufeff" + text,
    }.items():
        yield (
            f"manifest with {label}",
            bundle.with_file(MANIFEST, content.encode("utf-16" if label == "UTF-16" else "utf-8")),
        )
    parameters = current = {}
    for _ in range(500):
        current["a"] = {}
        current = current["a"]
    yield "deep parameters", bundle.with_manifest(bundle.manifest | {"parameters": parameters})
    colliding = [i * (2**61 - 1) for i in range(50_000)]
    yield "labels that collide", bundle.with_manifest(bundle.manifest | {"classes": colliding})
    yield "very many classes", bundle.with_manifest(bundle.manifest | {"classes": list(range(200_000))})
    yield (
        "an unsigned manifest",
        bundle.with_file(MANIFEST, json.dumps(bundle.manifest | {"best": 0, "cut": 1.0}).encode()),
    )
    bomb = pickle.dumps(Bomb())
    for role in ("arrays", "circuits", "rows"):
        yield f"a pickle as {role}", bundle.with_content(role, bomb)
    yield (
        "a hash of nothing",
        bundle.with_manifest(replaced(bundle.manifest, ("files", "arrays", "sha256"), hashlib.sha256(b"").hexdigest())),
    )
