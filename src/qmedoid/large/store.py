"""Summaries of finished partitions in a folder, so that a fit that was stopped goes on where it was.

A file holds a head in JSON, tables as Arrow streams, and a hash of all of it: reading one runs no code. Its name is
the hash of what the summary depends on: the pass with its facts, and the content of the partition.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid._version import __version__
from qmedoid.exceptions import OutputError
from qmedoid.large.base import Summary
from qmedoid.model.storage.atomic import atomic_file, remove_leftovers

SUFFIX = ".summary"
FORMAT = 1
"""Number of the file format: a part of every name."""
_MAGIC = b"qmedoid summary\n"
_DIGEST_BYTES = 32


class SummaryFolder:
    """A folder of summaries; made when it is not there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._make()

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            where = str(self.path)
            raise OutputError(f"The folder {where!r} for finished partitions cannot be made: {error}.") from error

    def key(self, name: str, facts: Mapping[str, Any], content: str) -> str:
        """The name of the summary of a partition by a pass."""
        what = json.dumps([FORMAT, __version__, name, facts, content], sort_keys=True, default=str)
        return f"{name}-{hashlib.blake2b(what.encode(), digest_size=20).hexdigest()}"

    def get(self, key: str) -> Summary | None:
        """A summary that is there whole; None where there is none."""
        try:
            return unpacked((self.path / (key + SUFFIX)).read_bytes())
        except FileNotFoundError:
            return None

    def put(self, key: str, summary: Summary) -> None:
        """Keep a summary, by one atomic replace."""
        self._make()  # another fit of the same file may have ended, and removed it
        with atomic_file(self.path / (key + SUFFIX)) as file:
            file.write(packed(summary))

    def get_bytes(self, name: str, key: str) -> bytes | None:
        """What `put_bytes` kept under a name and key; None where it is not there, or not whole."""
        try:
            data = (self.path / f"{name}-{key}{SUFFIX}").read_bytes()
        except FileNotFoundError:
            return None
        content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        return content if hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest() == digest else None

    def put_bytes(self, name: str, key: str, content: bytes) -> None:
        """Keep some bytes with their hash, by one atomic replace."""
        self._make()
        with atomic_file(self.path / f"{name}-{key}{SUFFIX}") as file:
            file.write(content + hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest())

    def remove(self) -> None:
        """Remove the summaries, and the folder if nothing else is in it."""
        for file in self.path.glob("*" + SUFFIX):
            remove_leftovers(file)
            file.unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            shutil.rmtree(self.path, ignore_errors=True)


def packed(summary: Summary) -> bytes:
    """A summary as bytes."""
    streams = []
    for table in summary.rows.values():
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        streams.append(sink.getvalue().to_pybytes())
    sizes = dict(zip(summary.rows, map(len, streams), strict=True))
    head = json.dumps({"counts": summary.counts, "rows": sizes}).encode()
    content = b"".join([_MAGIC, len(head).to_bytes(8, "little"), head, *streams])
    return content + hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest()


def unpacked(data: bytes) -> Summary | None:
    """A summary from its bytes; None where they are not whole."""
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if not content.startswith(_MAGIC) or hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest() != digest:
        return None
    start = len(_MAGIC) + 8
    end = start + int.from_bytes(content[len(_MAGIC) : start], "little")
    head, rows = json.loads(content[start:end]), {}
    for name, size in head["rows"].items():
        rows[name] = pa.ipc.open_stream(pa.py_buffer(content[end : end + size])).read_all()
        end += size
    return Summary(head["counts"], rows)
