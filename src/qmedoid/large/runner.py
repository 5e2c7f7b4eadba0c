"""Who goes through the partitions of a table: threads of this process, here; a cluster has a runner of its own."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.kernels._backend import thread_count
from qmedoid.large.base import Pass, Summary, merge
from qmedoid.large.partitions import FileTable
from qmedoid.large.store import SummaryFolder

OnRows = Callable[[str, int, int | None], None]
"""Progress callback; receives the name of the pass, the rows that are done, and all rows where these are known."""


class TableFacts(NamedTuple):
    """What all partitions of a table have in common.

    `as_text` says that cells are read as text, and their types are found by the fit; `given_decimal` is the decimal
    sign where the user has said it.
    """

    description: str
    names: tuple[str, ...]
    schema: pa.Schema
    as_text: bool = False
    decimal: str = "."
    given_decimal: str | None = None
    categories: frozenset[str] = frozenset()


def file_facts(table: FileTable) -> TableFacts:
    """What all partitions of files have in common."""
    return TableFacts(
        table.description, table.names, table.schema, table.is_text, table.decimal, table.given_decimal,
        table.categories,
    )  # fmt: skip


class PassTime(NamedTuple):
    """A pass that was run: its name, seconds, and partitions that had to be read."""

    name: str
    seconds: float
    read: int


class Runner(Protocol):
    """Runs passes over the partitions of one table."""

    times: list[PassTime]

    @property
    def facts(self) -> TableFacts:
        """What is known of the table without reading its rows."""

    @property
    def description(self) -> str:
        """The table in words."""

    def each(self, one: Pass) -> list[Summary]:
        """The summary of every partition, in order; places of rows are counted from 0 in each of them."""

    def run(self, one: Pass, lengths: Sequence[int]) -> Summary:
        """The merged summary of all partitions, which have so many rows."""


@dataclass
class LocalRunner:
    """Reads the partitions of files in threads of this process.

    Parameters
    ----------
    table : FileTable
    folder : SummaryFolder or None
        Where summaries of finished partitions are kept, if they are.
    on_rows : callable or None
    threads : int or None
    """

    table: FileTable
    folder: SummaryFolder | None = None
    on_rows: OnRows | None = None
    threads: int | None = None
    times: list[PassTime] = field(default_factory=list)
    # Sizes and times of the files, as they were when they were first read.
    _stamps: dict[Path, tuple[int, int]] = field(default_factory=dict)

    @property
    def facts(self) -> TableFacts:
        """What is known of the table without reading its rows."""
        return file_facts(self.table)

    @property
    def description(self) -> str:
        """The table in words."""
        return self.table.description

    def each(self, one: Pass) -> list[Summary]:
        """The summary of every partition."""
        return self._summaries(one, [0] * len(self.table.partitions), [part.n_rows for part in self.table.partitions])

    def run(self, one: Pass, lengths: Sequence[int]) -> Summary:
        """The merged summary of all partitions."""
        starts = [sum(lengths[:place]) for place in range(len(lengths))]
        return merge(self._summaries(one, starts, list(lengths)))

    def _summaries(self, one: Pass, starts: list[int], lengths: Sequence[int | None]) -> list[Summary]:
        began, found = time.perf_counter(), [Summary()] * len(starts)
        total = sum(n for n in lengths if n is not None) if None not in lengths else None
        done = n_read = 0
        n_threads = max(1, min(thread_count(self.threads), len(starts)))
        with ThreadPoolExecutor(n_threads) as pool:
            waiting: dict[Future[tuple[Summary, bool]], int] = {}
            places = iter(range(len(starts)))
            try:
                while True:
                    # Few partitions at a time: what is not begun can be dropped when one fails.
                    while len(waiting) < n_threads and (place := next(places, None)) is not None:
                        waiting[pool.submit(self._one, one, place, starts[place])] = place
                    if not waiting:
                        break
                    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                        place = waiting.pop(future)
                        found[place], was_read = future.result()
                        n_read += was_read
                        done += lengths[place] or found[place].total("rows")
                        if self.on_rows is not None:
                            self.on_rows(one.name, done, total)
            finally:
                for future in waiting:
                    future.cancel()
        self.times.append(PassTime(one.name, time.perf_counter() - began, n_read))
        return found

    def _one(self, one: Pass, place: int, first_row: int) -> tuple[Summary, bool]:
        """The summary of a partition, and whether it had to be read."""
        part, key = self.table.partitions[place], None
        self._check_unchanged(part.path)
        if self.folder is not None:
            facts: dict[str, Any] = {**one.facts, "first_row": first_row}
            key = self.folder.key(one.name.replace(" ", "-"), facts, part.digest())
            known = self.folder.get(key)
            if known is not None:
                return known, False
        with part.open() as source:
            summary = one.summarize(source, first_row)
        if self.folder is not None and key is not None:
            self.folder.put(key, summary)
        return summary, True

    def _check_unchanged(self, path: Path) -> None:
        """Refuse a file that was changed between two passes: what was counted is not what is drawn then."""
        try:
            facts = path.stat()
        except OSError as error:
            raise DataError(f"{path} cannot be read any more: {error.strerror}.") from error
        stamp = facts.st_size, facts.st_mtime_ns
        if self._stamps.setdefault(path, stamp) != stamp:
            raise DataError(f"{path} was changed while the table was fitted: begin again when it is complete.")
