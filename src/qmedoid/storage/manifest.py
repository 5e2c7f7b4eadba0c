"""The manifest of a model file: format, versions, description of the model, and the hash of every other entry."""

import hashlib
import platform
from collections.abc import Mapping
from typing import Any

from qmedoid._version import __version__
from qmedoid.fields import Fields, RefusedError, parsed, written
from qmedoid.storage.archive import FORMAT, LARGEST_FILE, MANIFEST

FRAME = ("format", "versions", "entries")
"""Fields of every manifest; the others describe the model."""
_LIBRARIES = ("numpy", "pyarrow", "safetensors", "scikit-learn")
VERSIONS = ("qmedoid", "python", *_LIBRARIES)
"""What a model was saved with, for the reader."""


def manifest_bytes(description: Mapping[str, Any], others: Mapping[str, bytes]) -> bytes:
    """The manifest of a model with its other entries."""
    return written(
        {
            "format": FORMAT,
            "versions": {"qmedoid": __version__, "python": platform.python_version()}
            | {name: _version(name) for name in _LIBRARIES},
            **description,
            "entries": {
                name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
                for name, content in others.items()
            },
        }
    )


def read_manifest(entries: Mapping[str, memoryview], description: tuple[str, ...]) -> Fields:
    """The fields of a manifest; every other entry has the size and the hash that it says."""
    manifest = Fields(parsed(bytes(entries[MANIFEST])), "it", (*FRAME, *description))
    manifest.whole("format", FORMAT, FORMAT)
    versions = Fields(manifest.raw("versions"), "versions", VERSIONS)
    for name in VERSIONS:
        if versions.raw(name) is not None:
            versions.text(name)
    others = [name for name in entries if name != MANIFEST]
    listed = Fields(manifest.raw("entries"), "entries", others)
    for name in others:
        entry = Fields(listed.raw(name), f"entries[{name!r}]", ("bytes", "sha256"))
        size, digest = entry.whole("bytes", 0, LARGEST_FILE), entry.text("sha256")
        if size != len(entries[name]) or digest != hashlib.sha256(entries[name]).hexdigest():
            raise RefusedError("its contents do not match its size and SHA-256 in the manifest", name)
    return manifest


def _version(name: str) -> str | None:
    from importlib import metadata  # slow, and needed to save only

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
