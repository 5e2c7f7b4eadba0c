"""Passes on the workers of a Dask cluster: over files that the workers see, or over Dask data frames and arrays."""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.kernels._backend import thread_count
from qmedoid.large.base import Pass, Summary, merge
from qmedoid.large.collections import by_rows, check_same_rows, nothing_of, partitions_of, series_name, with_targets
from qmedoid.large.partitions import FilePartition, FileTable
from qmedoid.large.runner import OnRows, PassTime, TableFacts, file_facts
from qmedoid.large.store import SummaryFolder
from qmedoid.large.workers import Workers
from qmedoid.spelling import did_you_mean
from qmedoid.tables._memory import MemoryFile
from qmedoid.tables.arrow import as_table, common_type, is_declared_category, plain_type
from qmedoid.tables.source import TableSource

# Names of the target, where it has none that is free.
_TARGETS = ("target", "class", "y", "label")


class RowLayout(NamedTuple):
    """Columns of the partitions of a collection: those of X, the target, and the types of all."""

    columns: tuple[str, ...]
    target: str
    schema: pa.Schema

    def table(self, place: int, x: Any, y: Any = None) -> pa.Table:
        """A partition of X with its targets, if these are apart, as one table."""
        table = as_table(x, names=self.columns)
        if y is None:
            return table
        check_same_rows(place, x, y)
        return table.append_column(self.target, as_table({self.target: y}).column(0))

    def source(self, place: int, table: pa.Table) -> TableSource:
        """A partition as files are read."""
        source = TableSource([MemoryFile(table, f"partition {place}")], None)
        source.schema = self.schema
        return source


@dataclass
class DaskRunner:
    """Runs passes on Dask; made by `of_files` and `of_collections`.

    A summary depends on the rows of its partition, their order, and the place of the first one, so neither the number
    of workers nor their death changes a result. The pass, with the models in it, goes to every worker once. Without a
    cluster, partitions are read on threads of this process, as by `LocalRunner`.

    Rows of a collection that was shuffled have no order of their own: Dask may give them in another one whenever it is
    computed. Rows that change between the passes of a runner are refused. Rows that are in another order for another
    runner cannot be noticed: results are right then, but of another sample. Write such a collection to Parquet first.

    Attributes
    ----------
    facts : TableFacts
    target : str or None
        The name of the target, of collections.
    """

    facts: TableFacts
    tasks: Sequence[tuple[Any, ...]]
    summarize: Callable[..., Any]
    layout: RowLayout | None = None
    lengths: Sequence[int | None] = ()
    workers: Workers = field(default_factory=Workers)
    folder: SummaryFolder | None = None
    on_rows: OnRows | None = None
    times: list[PassTime] = field(default_factory=list)
    _digests: list[str] = field(default_factory=list)
    # Hashes of the rows of partitions of collections, from the first pass that has read them.
    _rows_seen: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of_files(
        cls,
        table: FileTable,
        client: Any = None,
        *,
        folder: SummaryFolder | None = None,
        on_rows: OnRows | None = None,
    ) -> "DaskRunner":
        """Over the partitions of files, which all workers must see under the same paths.

        Parameters
        ----------
        table : FileTable
        client : distributed.Client or None
            None takes the client in force.
        folder : SummaryFolder or None
            Where summaries of finished partitions are kept, if they are.
        on_rows : callable or None
        """
        return cls(
            file_facts(table), [(one,) for one in table.partitions], _of_file,
            lengths=[one.n_rows for one in table.partitions], workers=_workers(client), folder=folder, on_rows=on_rows,
        )  # fmt: skip

    @classmethod
    def of_collections(cls, X: Any, y: Any, client: Any = None, *, on_rows: OnRows | None = None) -> "DaskRunner":
        """Over the partitions of a Dask data frame or array.

        Every pass computes the partitions anew: `persist` a collection that is costly to make, and fits in the memory
        of the cluster. Types of columns are those that the collection says; of columns of Python objects they are
        found by one more pass.

        Parameters
        ----------
        X : dask.dataframe.DataFrame or dask.array.Array of shape (n, p)
        y : dask.dataframe.Series, dask.array.Array of shape (n,) or str
            Targets in the partitions of X, or the name of a column of X.
        client : distributed.Client or None
            None takes the client in force.
        on_rows : callable or None
        """
        X = by_rows(X)
        known = as_table(nothing_of(X))
        parts: list[tuple[Any, ...]]
        names, schema = tuple(known.column_names), known.schema
        if isinstance(y, str):
            if y not in names:
                raise DataError(f"X has no column {y!r}.{did_you_mean(y, names)}")
            target, parts = y, [(one,) for one in partitions_of(X)]
        else:
            target, parts = _free_name(series_name(y), names), with_targets(X, y)
            schema = schema.append(as_table({target: nothing_of(y)}).schema.field(0))
        categories = frozenset(one.name for one in schema if is_declared_category(one.type))
        schema = pa.schema([(one.name, plain_type(one.type)) for one in schema])
        layout, workers = RowLayout(names, target, schema), _workers(client)
        tasks = [(place, *part) for place, part in enumerate(parts)]
        layout = layout._replace(schema=_types(layout, workers, tasks))
        description = f"a Dask {'data frame' if hasattr(X, 'columns') else 'array'} of {len(parts)} partitions"
        facts = TableFacts(description, tuple(layout.schema.names), layout.schema, categories=categories)
        return cls(facts, tasks, _of_rows, layout, [None] * len(tasks), workers=workers, on_rows=on_rows)

    @property
    def description(self) -> str:
        """The table in words."""
        return self.facts.description

    @property
    def target(self) -> str | None:
        """The name of the target, of collections."""
        return None if self.layout is None else self.layout.target

    def each(self, one: Pass) -> list[Summary]:
        """The summary of every partition, in order; places of rows are counted from 0 in each of them."""
        return self._summaries(one, [0] * len(self.tasks), self.lengths)

    def run(self, one: Pass, lengths: Sequence[int]) -> Summary:
        """The merged summary of all partitions, which have so many rows."""
        starts = [sum(lengths[:place]) for place in range(len(lengths))]
        return merge(self._summaries(one, starts, lengths))

    def _summaries(self, one: Pass, starts: Sequence[int], lengths: Sequence[int | None]) -> list[Summary]:
        began = time.perf_counter()
        keys = self._keys(one, starts)
        found = [None if key is None or self.folder is None else self.folder.get(key) for key in keys]
        left = [place for place, summary in enumerate(found) if summary is None]
        total = None if None in lengths else sum(n for n in lengths if n is not None)
        done = sum(self._rows(summary, lengths[place]) for place, summary in enumerate(found) if summary is not None)
        tasks = [(starts[place], *self.tasks[place]) for place in left]
        for number, (summary, rows) in self.workers.results(one.name, self.summarize, (one, self.layout), tasks):
            place = left[number]
            self._check_rows(one, place, rows)
            found[place], key = summary, keys[place]
            if self.folder is not None and key is not None:
                self.folder.put(key, summary)
            done += self._rows(summary, lengths[place])
            if self.on_rows is not None:
                self.on_rows(one.name, done, total)
        self.times.append(PassTime(one.name, time.perf_counter() - began, len(left)))
        return [summary for summary in found if summary is not None]

    def _check_rows(self, one: Pass, place: int, rows: str | None) -> None:
        """Refuse a partition whose rows are others, or in another order, than in an earlier pass."""
        if rows is not None and self._rows_seen.setdefault(place, rows) != rows:
            raise DataError(
                f"{one.name}: partition {place} (from 0) of {self.description} has other rows, or the same in another "
                "order, than in an earlier pass. After a shuffle, or with random numbers, every computation may give "
                "others: write the collection to Parquet and fit that, or persist() it, on workers that stay."
            )

    def _rows(self, summary: Summary, length: int | None) -> int:
        return length or summary.total("rows")

    def _keys(self, one: Pass, starts: Sequence[int]) -> list[str | None]:
        """Names of the summaries in the folder; None where none are kept."""
        if self.folder is None:
            return [None] * len(starts)
        if not self._digests:
            found = dict(self.workers.results("hash", _digest, None, self.tasks))
            self._digests = [found[place] for place in range(len(self.tasks))]
        name = one.name.replace(" ", "-")
        return [
            self.folder.key(name, {**one.facts, "first_row": start}, digest)
            for start, digest in zip(starts, self._digests, strict=True)
        ]


def _workers(client: Any) -> Workers:
    threads = thread_count(None)
    return Workers(threads=threads) if client is None else Workers(client, threads=threads)


class Summarized(NamedTuple):
    """The summary of a partition, and a hash of its rows in their order; None for files, which stay as they are."""

    summary: Summary
    rows: str | None


def _of_file(shared: tuple[Pass, None], first_row: int, part: FilePartition) -> Summarized:
    with part.open() as source:
        return Summarized(shared[0].summarize(source, first_row), None)


def _of_rows(shared: tuple[Pass, RowLayout], first_row: int, place: int, x: Any, y: Any = None) -> Summarized:
    one, layout = shared
    table = layout.table(place, x, y)
    return Summarized(one.summarize(layout.source(place, table), first_row), _row_digest(table))


def _row_digest(table: pa.Table) -> str:
    """Hash of all cells in the order of the rows."""
    hashed = hashlib.blake2b(digest_size=16)
    for batch in table.combine_chunks().to_batches():
        hashed.update(batch.serialize())
    return hashed.hexdigest()


def _digest(_: None, part: FilePartition) -> str:
    return part.digest()


def _free_name(given: str | None, names: Sequence[str]) -> str:
    """The name of a target: its own, if no column is called so."""
    wanted = [*([given] if given else []), *_TARGETS]
    numbered = (f"target_{number}" for number in range(len(names) + 1))
    return next(name for name in [*wanted, *numbered] if name not in names)


def _types(layout: RowLayout, workers: Workers, tasks: Sequence[tuple[Any, ...]]) -> pa.Schema:
    """Types of all columns; those of Python objects are the ones that all partitions have in common."""
    unknown = [one.name for one in layout.schema if pa.types.is_null(one.type)]
    if not unknown:
        return layout.schema
    found = [types for _, types in workers.results("types", _types_of, (layout, unknown), tasks)]
    schema = layout.schema
    for number, name in enumerate(unknown):
        kinds = [types[number] for types in found if not pa.types.is_null(types[number])]
        kind = common_type(sorted(kinds, key=str)) if kinds else pa.string()
        schema = schema.set(schema.get_field_index(name), pa.field(name, kind))
    return schema


def _types_of(shared: tuple[RowLayout, list[str]], place: int, x: Any, y: Any = None) -> list[pa.DataType]:
    layout, names = shared
    schema = layout.table(place, x, y).schema
    return [plain_type(schema.field(name).type) for name in names]
