"""What a model file holds, strictly: a zip archive, JSON and arrays. All else than what is written is refused.

The archive has stored entries in the order of `ENTRIES`, without extra fields or dates; its comment has the number of
the format. Any zip tool extracts the entries. The reader writes the archive again, with its checksums, and compares: a
file that is damaged, compressed, encrypted or zip64, or has other entries or bytes between them, is refused.

JSON has no spelling for NaN and the infinities. Here they are objects with the one key ``$float``:
``{"$float": "nan"}``, ``{"$float": "inf"}`` and ``{"$float": "-inf"}``.
"""

import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from qmedoid.exceptions import ModelError
from qmedoid.schema import RefusedError, short, shown

FORMAT = 6
"""Number of the file format. Whatever changes in what is written takes the next number."""
MANIFEST, ARRAYS, CARD = "manifest.json", "arrays.safetensors", "card.md"
REQUIRED = (MANIFEST, ARRAYS, CARD)
ENTRIES = (*REQUIRED, "circuit.qpy", "circuit.qasm", "swap_test.qpy", "swap_test.qasm")
"""Names of the entries, in their order; the card and the circuits are for people and other tools, and never parsed."""
_COMMENT = re.compile(rb"qmedoid model, format ([0-9]{1,9})\Z")
_LONGEST_COMMENT = 40
_DAMAGED = "it is not the archive that was written: an entry, a header or the directory is damaged"
LARGEST_JSON = 2**25
"""Bytes of the largest JSON file that is read."""
# Values of the largest file: each takes memory far beyond its bytes.
_MOST_VALUES = 2**21
DEEPEST = 32
"""Levels of lists and mappings within a free value."""
# Types of arrays, and bytes of their largest header: an entry takes about a hundred.
_TYPES = ("F64", "I64", "U8")
_LARGEST_HEADER = 2**22
_ENTRY = {"dtype", "shape", "data_offsets"}
_KEY = "$float"
_NAMES = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class FormatError(RefusedError):
    """The file has a format of another number."""


def archive_bytes(entries: Mapping[str, bytes]) -> bytes:
    """The file of some entries, by name."""
    out = BytesIO()
    with ZipFile(out, "w") as archive:
        for name in (name for name in ENTRIES if name in entries):
            info = ZipInfo(name)
            info.create_system, info.external_attr = 3, 0o100644 << 16  # on Windows, too
            archive.writestr(info, entries[name])
        archive.comment = f"qmedoid model, format {FORMAT}".encode()
    return out.getvalue()


def archive_entries(content: bytes) -> dict[str, bytes]:
    """The entries of a file that may hold anything, by name.

    Raises
    ------
    RefusedError
        The file is not, byte for byte, the archive of its entries.
    """
    comment = _COMMENT.search(content, max(0, len(content) - _LONGEST_COMMENT))
    if comment is None:
        raise RefusedError(
            "its end is missing or damaged" if is_model_file(content[:64]) else "it is not a file that save wrote"
        )
    if int(comment[1]) != FORMAT:
        raise FormatError(str(int(comment[1])))
    entries = dict[str, bytes]()
    try:
        with ZipFile(BytesIO(content)) as archive:
            for info in archive.infolist()[: len(ENTRIES)]:
                first = info.header_offset + 30 + len(info.filename)
                entries[info.filename] = content[first : first + info.file_size]
    except (BadZipFile, NotImplementedError, ValueError, OSError, struct.error) as error:
        raise RefusedError(f"{_DAMAGED} ({short(str(error))})") from None
    for name in REQUIRED:
        if name not in entries:
            raise RefusedError(f"it lacks the entry {name!r}")
    if archive_bytes(entries) != content:
        raise RefusedError(_DAMAGED)
    return entries


def packed_file(manifest: Any, arrays: dict[str, npt.NDArray[Any]], others: Mapping[str, bytes]) -> bytes:
    """The file of a manifest, arrays, the card and other entries by name."""
    import safetensors.numpy

    text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return archive_bytes({MANIFEST: text.encode(), ARRAYS: bytes(safetensors.numpy.save(arrays)), **others})


def unpacked_file(content: bytes) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    """The manifest and the arrays of a file that may hold anything."""
    entries = archive_entries(content)
    role = MANIFEST
    try:
        manifest = parsed(entries[MANIFEST])
        role = ARRAYS
        return manifest, read_arrays(entries[ARRAYS])
    except RefusedError as refused:
        raise RefusedError(str(refused), role) from None


def is_model_file(start: bytes) -> bool:
    """Whether a file with these first bytes is a model file, be it damaged."""
    return start.startswith(b"PK\x03\x04") and start.startswith(MANIFEST.encode(), 30)


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """A value as JSON takes it: lists, texts, numbers, truth values, None, and NaN in its spelling."""
    if depth > DEEPEST:
        raise ModelError(f"{where} is nested deeper than {DEEPEST} levels: a model file keeps flat values only.")
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _utf8(value, where)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_KEY: repr(float(value))}
    if isinstance(value, Mapping):
        if _KEY in value or not all(isinstance(key, str) for key in value):
            raise ModelError(f"{where} has keys that are not texts, or the key {_KEY!r}, which is reserved.")
        return {_utf8(key, where): plain(one, f"{where}[{key!r}]", depth + 1) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(one, where, depth + 1) for one in value]
    raise ModelError(
        f"{where} is a {type(value).__name__}, which a model file cannot hold: it holds numbers, texts, truth values, "
        "None, lists and mappings of texts to these."
    )


def parsed(content: bytes) -> Any:
    """The value that `plain` made, from bytes that may hold anything.

    Duplicate keys, bare NaN and lone surrogates are refused.
    """
    if len(content) > LARGEST_JSON:
        raise RefusedError(f"it has {len(content)} bytes, and at most {LARGEST_JSON} are read")
    if sum(content.count(mark) for mark in (b",", b"[", b"{")) > _MOST_VALUES:
        raise RefusedError(f"it holds more than {_MOST_VALUES} values")
    try:
        value = json.loads(content.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)
        if b"\\ud" in content or b"\\uD" in content:  # may be half of a pair, which no text may hold
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise RefusedError("it is nested too deep") from None
    except ValueError as error:  # of the decoder, of JSON, or of a number of too many digits
        raise RefusedError(f"it is not JSON ({short(str(error))})") from None
    return value


def read_arrays(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an entry that may hold anything, in the safetensors format.

    The library checks lengths, shapes and offsets. It takes names that are there twice, unknown fields and number types
    that NumPy lacks, so the header, of bounded size, is looked at before.
    """
    import safetensors.numpy

    length = int.from_bytes(content[:8], "little")
    if length > min(len(content) - 8, _LARGEST_HEADER):
        raise RefusedError("its header is longer than the file, or than headers are")
    header = parsed(content[8 : 8 + length])
    if not isinstance(header, dict):
        raise RefusedError("its header is not an object")
    for name, entry in header.items():
        if not isinstance(entry, dict) or entry.keys() != _ENTRY or entry["dtype"] not in _TYPES:
            raise RefusedError(f"array {shown(name)} must have the fields {sorted(_ENTRY)} and a dtype of {_TYPES}")
    try:
        return safetensors.numpy.load(content)
    except (safetensors.SafetensorError, ValueError, OverflowError) as error:
        raise RefusedError(f"its arrays cannot be read ({shown(str(error))})") from None


def _utf8(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{where} holds a text that is not Unicode: {text[:60]!a}.") from None
    return str(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any] | float:
    """An object whose keys are all different, or the number that it spells."""
    value: dict[str, Any] = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has a key twice")
    if _KEY not in value:
        return value
    name = value[_KEY]
    if len(value) > 1 or not isinstance(name, str) or name not in _NAMES:
        raise RefusedError(f"{shown(value)} is not one of the numbers {', '.join(_NAMES)}")
    return _NAMES[name]


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
