"""Tables as partitions, and who goes through them: threads of this process, or the workers of a cluster.

Partitions of files are row groups of Parquet files, and other files as a whole.
"""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from qmedoid._version import __version__
from qmedoid.exceptions import DataError, OutputError
from qmedoid.kernels.backend import thread_count
from qmedoid.large.base import Pass, RawReading, Summary, file_digest, merge
from qmedoid.model.model import Model
from qmedoid.model.storage.atomic import atomic_file, remove_leftovers
from qmedoid.model.storage.model_file import model_bytes
from qmedoid.tables.binary_files import BinaryFile
from qmedoid.tables.source import Bytes, TableSource, find_files, open_table

PARTITION_ROWS = 2**20
"""Rows of a Parquet file that are one partition, about: whole row groups until they are reached."""


@dataclass(frozen=True)
class FilePartition:
    """Rows of a file."""

    path: Path
    schema: pa.Schema  # types that all partitions of the table have in common
    row_groups: range | None = None  # of a Parquet file; None for all rows
    n_rows: int | None = None  # None where the file does not say it
    delimiter: str | None = None  # of a text; detected where None
    decimal: str | None = None

    def open(self) -> TableSource:
        """The rows as a table of their own, in the types of the whole table."""
        if self.row_groups is None:
            source = open_table(self.path, delimiter=self.delimiter, decimal=self.decimal)
        else:
            source = TableSource([BinaryFile(self.path, self.row_groups)], self.path.stat().st_size)
        # Columns of another file may stand in another order.
        source.schema, source.names = self.schema, tuple(self.schema.names)
        return source

    def digest(self) -> str:
        """Hash of the content: the bytes of the file, which of its rows these are, and the types they are read in."""
        how = self.row_groups, self.delimiter, self.decimal, [(one.name, str(one.type)) for one in self.schema]
        hashed = hashlib.blake2b(repr(how).encode(), digest_size=16)
        facts = self.path.stat()
        hashed.update(_content(self.path.absolute(), facts.st_size, facts.st_mtime_ns).encode())
        return hashed.hexdigest()


@cache
def _content(path: Path, _size: int, _time: int) -> str:
    """Hash of a file, which is read once in a process as long as its size and its time stay the same."""
    return file_digest(path)


@dataclass(frozen=True)
class TableFacts:
    """What all partitions of a table have in common, known without reading its rows."""

    description: str
    schema: pa.Schema
    reading: RawReading = RawReading(False)  # noqa: RUF009 (it cannot be changed)
    given_decimal: str | None = None  # where the user has said it
    categories: frozenset[str] = frozenset()  # columns that are said to be categories
    partitions: tuple[FilePartition, ...] = ()  # of files, in order


def file_table(where: str | Path, *, delimiter: str | None = None, decimal: str | None = None) -> TableFacts:
    """The partitions of a file, a folder or a pattern."""
    with open_table(where, delimiter=delimiter, decimal=decimal) as source:
        parts = list[FilePartition]()
        for path in find_files(where):
            whole = FilePartition(path, source.schema, delimiter=delimiter, decimal=decimal)
            with closing(Bytes(path)) as data:
                is_parquet = data.form == "parquet" and not data.is_compressed
            if is_parquet:
                parts += _of_parquet(whole)
                continue
            with whole.open() as opened:
                parts.append(replace(whole, n_rows=opened.n_rows))
        reading, categories = RawReading(source.is_text, source.decimal), source.declared_categories
        return TableFacts(source.description, source.schema, reading, decimal, categories, tuple(parts))


def _of_parquet(whole: FilePartition) -> list[FilePartition]:
    """Runs of row groups of about `PARTITION_ROWS` rows."""
    from pyarrow import parquet

    try:
        facts = parquet.ParquetFile(whole.path).metadata
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{whole.path.name} cannot be read as parquet: {error}.") from error
    parts, first, rows = list[FilePartition](), 0, 0
    for place in range(facts.num_row_groups):
        rows += facts.row_group(place).num_rows
        if rows >= PARTITION_ROWS or place == facts.num_row_groups - 1:
            parts.append(replace(whole, row_groups=range(first, place + 1), n_rows=rows))
            first, rows = place + 1, 0
    return parts or [replace(whole, n_rows=0)]


SUFFIX = ".summary"
FORMAT = 3
"""Number of the file format: a part of every name."""
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
        return f"{name.replace(' ', '-')}-{hashlib.blake2b(what.encode(), digest_size=20).hexdigest()}"

    def get(self, key: str) -> Summary | None:
        """A summary that is there whole; None where there is none."""
        content = self.get_bytes(key)
        return None if content is None else _unpacked(content)

    def put(self, key: str, summary: Summary) -> None:
        """Keep a summary, by one atomic replace."""
        self.put_bytes(key, _packed(summary))

    def get_bytes(self, key: str) -> bytes | None:
        """What `put_bytes` kept under a key; None where it is not there, or not whole."""
        try:
            data = (self.path / (key + SUFFIX)).read_bytes()
        except FileNotFoundError:
            return None
        content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        return content if hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest() == digest else None

    def put_bytes(self, key: str, content: bytes) -> None:
        """Keep some bytes with their hash, by one atomic replace."""
        self._make()  # another fit of the same file may have ended, and removed it
        with atomic_file(self.path / (key + SUFFIX)) as file:
            file.write(content + hashlib.blake2b(content, digest_size=_DIGEST_BYTES).digest())

    def remove(self) -> None:
        """Remove the summaries, and the folder if nothing else is in it."""
        for file in self.path.glob("*" + SUFFIX):
            remove_leftovers(file.parent, file)
            file.unlink(missing_ok=True)
        if self.path.is_dir() and not any(self.path.iterdir()):
            shutil.rmtree(self.path, ignore_errors=True)


def _packed(summary: Summary) -> bytes:
    """A summary as bytes: streams of tables, behind an empty one that has the counts."""
    head = json.dumps({"counts": summary.counts, "rows": [*summary.rows]})
    sink = pa.BufferOutputStream()
    for table in (pa.schema([], {"head": head}).empty_table(), *summary.rows.values()):
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _unpacked(content: bytes) -> Summary:
    """A summary from its bytes."""
    source = pa.BufferReader(content)
    head = json.loads(pa.ipc.open_stream(source).read_all().schema.metadata[b"head"])
    return Summary(head["counts"], {name: pa.ipc.open_stream(source).read_all() for name in head["rows"]})


OnRows = Callable[[str, int, int | None], None]
"""Progress callback; receives the name of the pass, the rows that are done, and all rows where these are known."""
Results = Callable[[str, Callable[..., Any], Any, Sequence[tuple[Any, ...]]], Iterator[tuple[int, Any]]]
"""Runs ``function(shared, *task)`` for every task, and yields places of tasks with results as they are done.

Arguments are what is done in words, the function, what all tasks share, and the tasks."""


@dataclass
class Runner:
    """Runs passes over the partitions of one table.

    A summary depends on the rows of its partition, their order, and the place of the first one, so neither the number
    of workers nor their death changes a result. Rows that change between the passes of a runner are refused.
    """

    facts: TableFacts
    tasks: Sequence[tuple[Any, ...]]  # what `summarize` takes after what is shared and the index of the first row
    summarize: Callable[..., tuple[Summary, str | None]]  # with a hash of the rows, where that shows other rows
    lengths: Sequence[int | None]  # rows of the partitions, where they are known
    results: Results
    more: Any = None  # what the tasks share besides the pass
    target: str | None = None  # of collections
    folder: SummaryFolder | None = None
    on_rows: OnRows | None = None
    times: list[tuple[str, float, int]] = field(default_factory=list)  # name, seconds and partitions read of each pass
    _digests: list[str] = field(default_factory=list)
    _rows_seen: dict[int, Any] = field(default_factory=dict)  # of partitions in the first pass that has read them

    def each(self, name: str, one: Pass) -> list[Summary]:
        """The summary of every partition, in order; places of rows are counted from 0 in each of them."""
        return self._summaries(name, one, [0] * len(self.tasks), self.lengths)

    def run(self, name: str, one: Pass, lengths: Sequence[int]) -> Summary:
        """The merged summary of all partitions, which have these lengths."""
        return merge(self._summaries(name, one, [0, *accumulate(lengths)][: len(lengths)], lengths))

    def _summaries(self, name: str, one: Pass, starts: Sequence[int], lengths: Sequence[int | None]) -> list[Summary]:
        began = time.perf_counter()
        for place in range(len(self.tasks)):
            self._check_rows(name, place, None)
        keys = self._keys(name, one, starts)
        found = [None if self.folder is None else self.folder.get(key) for key in keys]
        left = [place for place, summary in enumerate(found) if summary is None]
        total = None if None in lengths else sum(n for n in lengths if n is not None)
        done = sum(lengths[place] or summary.total("rows") for place, summary in enumerate(found) if summary)
        tasks = [(starts[place], *self.tasks[place]) for place in left]
        for number, (summary, rows) in self.results(name, self.summarize, (one, self.more), tasks):
            place = left[number]
            self._check_rows(name, place, rows)
            found[place] = summary
            if self.folder is not None:
                self.folder.put(keys[place], summary)
            done += lengths[place] or summary.total("rows")
            if self.on_rows is not None:
                self.on_rows(name, done, total)
        self.times.append((name, time.perf_counter() - began, len(left)))
        return [summary for summary in found if summary is not None]

    def _check_rows(self, name: str, place: int, rows: Any) -> None:
        """Refuse a partition whose rows are others, or in another order, than in an earlier pass."""
        part = self.tasks[place][0]
        if isinstance(part, FilePartition):
            try:
                stat = part.path.stat()
            except OSError as error:
                raise DataError(f"{part.path} cannot be read any more: {error.strerror}.") from error
            rows = stat.st_size, stat.st_mtime_ns
        if rows is None or self._rows_seen.setdefault(place, rows) == rows:
            return
        if isinstance(part, FilePartition):
            raise DataError(f"{part.path} was changed while the table was fitted: begin again when it is complete.")
        raise DataError(
            f"{name}: partition {place} (from 0) of {self.facts.description} has other rows, or the same in "
            "another order, than in an earlier pass. After a shuffle, or with random numbers, every computation may "
            "give others: write the collection to Parquet and fit that, or persist() it, on workers that stay."
        )

    def _keys(self, name: str, one: Pass, starts: Sequence[int]) -> list[str]:
        """Names of the summaries in the folder."""
        if self.folder is None:
            return [""] * len(starts)
        if not self._digests:
            found = dict(self.results("hash", lambda _, part: part.digest(), None, self.tasks))
            self._digests = [found[place] for place in range(len(self.tasks))]
        # All that a summary depends on besides the rows.
        facts = {
            name: hashlib.blake2b(model_bytes(v), digest_size=16).hexdigest() if isinstance(v, Model) else repr(v)
            for name, v in one.keywords.items()
        }
        return [
            self.folder.key(name, {**facts, "first_row": start}, digest)
            for start, digest in zip(starts, self._digests, strict=True)
        ]


def file_runner(
    table: TableFacts,
    results: Results | None = None,
    *,
    folder: SummaryFolder | None = None,
    on_rows: OnRows | None = None,
) -> Runner:
    """A runner over the partitions of files, which all workers must see under the same paths; by default on threads."""
    lengths = [one.n_rows for one in table.partitions]
    tasks = [(one,) for one in table.partitions]
    results = results or partial(on_threads, threads=thread_count(None))
    return Runner(table, tasks, _of_file, lengths, results, folder=folder, on_rows=on_rows)


def on_threads(
    _: str,
    function: Callable[..., Any],
    shared: Any,
    tasks: Sequence[tuple[Any, ...]],
    *,
    threads: int = 1,
    ready: Callable[[tuple[Any, ...]], tuple[Any, ...]] = tuple,
) -> Iterator[tuple[int, Any]]:
    """Results on threads of this process; what is not begun is dropped when a task fails.

    `ready` makes the arguments of a task where it runs.
    """

    def run(place: int) -> tuple[int, Any]:
        return place, function(shared, *ready(tasks[place]))

    with ThreadPoolExecutor(max(1, min(threads, len(tasks)))) as pool:
        try:
            for done in as_completed([pool.submit(run, number) for number in range(len(tasks))]):
                yield done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _of_file(shared: tuple[Pass, None], first_row: int, part: FilePartition) -> tuple[Summary, None]:
    with part.open() as source:
        return shared[0](source, first_row), None
