"""The files of a bundle: their names, the manifest with its own hash, and reading that follows no links."""

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from qmedoid.fields import LARGEST_JSON, Fields, RefusedError, compact, parsed, shown

MANIFEST = "manifest.json"
LARGEST_BUNDLE = 2**28
"""Bytes of all files of the largest bundle that is read."""
SUFFIXES = {
    "arrays": ".safetensors",
    "circuits": ".json",
    "rows": ".json",
    "card": ".md",
    "circuit.qpy": ".qpy",
    "circuit.qasm": ".qasm",
    "swap_test.qpy": ".qpy",
    "swap_test.qasm": ".qasm",
}
"""How the names of the files end, by what the files are for."""
CONTENT_NAME = re.compile(r"(arrays|circuits?|rows|card|swap_test)-[0-9a-f]{16}\.(safetensors|json|md|qpy|qasm)", re.A)
"""Names of files that are named by their contents."""
_DIGEST = re.compile(r"[0-9a-f]{64}", re.A)
_HASH = "sha256"


class FileEntry(NamedTuple):
    """What a manifest says of a file."""

    name: str
    size: int
    sha256: str


def content_entry(role: str, content: bytes) -> FileEntry:
    """The entry of a file that is named by its content."""
    digest = hashlib.sha256(content).hexdigest()
    return FileEntry(f"{role.partition('.')[0]}-{digest[:16]}{SUFFIXES[role]}", len(content), digest)


def signed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with the hash of all the rest of it."""
    rest = {name: value for name, value in manifest.items() if name != _HASH}
    return {**rest, _HASH: hashlib.sha256(compact(rest)).hexdigest()}


def parse_manifest(content: bytes) -> dict[str, Any]:
    """A manifest from bytes that may hold anything; its own hash must be right."""
    manifest = parsed(content)
    if not isinstance(manifest, dict) or not {"format", "files", _HASH} <= set(manifest):
        raise RefusedError("it is not the manifest of a saved model")
    try:
        own = signed(manifest)[_HASH]
    except ValueError:  # such as 1e999, which is read as infinity
        raise RefusedError("it holds a number that is too large") from None
    if own != manifest[_HASH]:
        raise RefusedError("its contents do not match its SHA-256")
    return manifest


def file_entries(manifest: Mapping[str, Any]) -> dict[str, FileEntry]:
    """The files that a manifest names, by what they are for."""
    files = manifest["files"]
    if not isinstance(files, dict):
        raise RefusedError(f"files must be an object, and is {shown(files)}")
    entries = {}
    for role, value in files.items():
        fields = Fields(value, f"files[{shown(role)}]", ("name", "bytes", _HASH))
        entry = FileEntry(fields.text("name"), fields.whole("bytes", 0, LARGEST_BUNDLE), fields.text(_HASH))
        if role not in SUFFIXES:
            raise RefusedError(f"files has the unknown entry {shown(role)}")
        named = f"{role.partition('.')[0]}-{entry.sha256[:16]}{SUFFIXES[role]}"
        if not _DIGEST.fullmatch(entry.sha256) or entry.name != named:
            raise RefusedError(f"files[{role!r}] names {shown(entry.name)}, which is not the name of its contents")
        entries[role] = entry
    if sum(entry.size for entry in entries.values()) > LARGEST_BUNDLE:
        raise RefusedError(f"its files have more than {LARGEST_BUNDLE} bytes")
    return entries


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[int | None]:
    """A handle of a folder, so that its files stay those of one folder; None where the system has none."""
    if os.open not in os.supports_dir_fd:
        yield None
        return
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield handle
    finally:
        os.close(handle)


def read_manifest(path: Path, folder: int | None) -> bytes:
    """The bytes of the manifest."""
    return _read(path, folder, MANIFEST, None, LARGEST_JSON)


def read_content(path: Path, folder: int | None, entry: FileEntry) -> bytes:
    """The bytes of a file, of the length and the hash that the manifest says."""
    content = _read(path, folder, entry.name, entry.size, entry.size)
    if hashlib.sha256(content).hexdigest() != entry.sha256:
        raise RefusedError("its contents do not match its SHA-256 in the manifest")
    return content


def _read(path: Path, folder: int | None, name: str, size: int | None, largest: int) -> bytes:
    # A pipe in place of a file must not keep the reader waiting.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    target = path / name
    if not hasattr(os, "O_NOFOLLOW") and target.is_symlink():
        raise RefusedError("it is a link")
    handle = os.open(target, flags) if folder is None else os.open(name, flags, dir_fd=folder)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise RefusedError("it is not a regular file")
        if size is not None and found.st_size != size:
            raise RefusedError(f"it has {found.st_size} bytes, and the manifest says {size}")
        if found.st_size > largest:
            raise RefusedError(f"it has {found.st_size} bytes, and at most {largest} are read")
        content = file.read(largest + 1)
    if len(content) != found.st_size:
        raise RefusedError("it changed while it was read")
    return content
