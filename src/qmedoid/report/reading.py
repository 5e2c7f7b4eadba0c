"""What a report looks at in a table: decisions about all rows, and a random sample of the rows, in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes, Flags
from qmedoid.exceptions import ContractError, DataError, some_of
from qmedoid.model.model import Decisions, Model
from qmedoid.model.training_summary import Hashes
from qmedoid.spelling import did_you_mean
from qmedoid.tables.arrow import BATCH_ROWS, as_table
from qmedoid.tables.difference import Difference, Issues, OnMismatch, compare_columns
from qmedoid.tables.encode import row_hashes
from qmedoid.tables.evaluating import joined
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally
from qmedoid.tables.results import ScoreSettings
from qmedoid.tables.scoring import OnProgress, TableReading, decide_batch, read_through
from qmedoid.tables.targets import MISSING, label_codes

MOST_SAMPLED = 5_000
"""Rows of the sample at most; fewer of a table with many columns."""
MOST_CELLS = 5_000_000
"""Encoded cells of the sample at most."""
MOST_RARE = 400
"""Rows of the positive class, or called so, that are kept in any case: of a rare class a sample has too few."""


def evenly(n: int, most: int) -> Codes:
    """Indices of at most this many evenly spread rows."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).round().astype(np.intp))


class Sample(NamedTuple):
    """Rows of a table, in its order.

    Attributes
    ----------
    table : pyarrow.Table
        The columns that the model reads.
    encoded : list of ndarray of shape (n,)
    codes : ndarray of shape (n,)
        Class codes; below 0 where a row has no class of the model.
    rows : ndarray of shape (n,)
        Places in the table.
    """

    table: pa.Table
    encoded: list[Array]
    codes: Codes
    rows: Codes

    def take(self, places: Codes) -> "Sample":
        """Some of the rows."""
        encoded = [np.asarray(column)[places].astype(np.float64, copy=False) for column in self.encoded]
        return Sample(self.table.take(pa.array(places)), encoded, self.codes[places], self.rows[places])

    def first(self, n_rows: int) -> "Sample":
        """At most this many of them, evenly spread."""
        return self if len(self.table) <= n_rows else self.take(evenly(len(self.table), n_rows))

    def joined(self, others: Sequence["Sample"]) -> "Sample":
        """These rows and then others."""
        parts = [self, *others]
        return Sample(
            pa.concat_tables([part.table for part in parts], promote_options="permissive"),
            [np.concatenate(columns) for columns in zip(*(part.encoded for part in parts), strict=True)],
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.rows for part in parts]),
        )


class Drawn:
    """A random sample of the rows that were added, every row as likely as any other: the smallest random numbers."""

    def __init__(self, most: int) -> None:
        self.most, self._limit = most, 1.0
        self._parts: list[tuple[Array, Sample]] = []

    def add(self, chances: Array, is_wanted: Flags, batch: Sample) -> None:
        """Look at a batch, of which some rows are wanted."""
        places = np.flatnonzero(is_wanted & (chances < self._limit))
        self._parts.append((chances[places], batch.take(places)))
        if sum(len(chance) for chance, _ in self._parts) > 2 * self.most:
            self._parts = [self.kept()]

    def kept(self) -> tuple[Array, Sample]:
        """The rows that are kept, in their order, with their random numbers."""
        chances = np.concatenate([chance for chance, _ in self._parts])
        first, *others = (part for _, part in self._parts)
        every = first.joined(others)
        if len(chances) <= self.most:
            return chances, every
        self._limit = float(np.partition(chances, self.most)[self.most])
        kept = np.flatnonzero(chances < self._limit)
        return chances[kept], every.take(kept)


@dataclass(frozen=True, eq=False)
class Looked:
    """What was found in a table.

    Attributes
    ----------
    rows : int
    target : str or None
        Column of the classes; None where the table has none.
    codes : ndarray of shape (n,)
        As in `qmedoid.tables.targets`; all `MISSING` without a target.
    decided : Decisions
    hashes : ndarray or None
    novelty : NoveltyReport
    difference : Difference
    sample : Sample
    rare : Sample
        Rows of the positive class and rows called so, of two classes: all of them, or some drawn at random.
    """

    rows: int
    target: str | None
    codes: Codes
    decided: Decisions
    hashes: Hashes | None
    novelty: NoveltyReport
    difference: Difference
    sample: Sample
    rare: Sample


class LookTally:
    """Decisions and a sample, gathered batch by batch."""

    def __init__(self, model: Model, target: str | None, most: int = MOST_SAMPLED) -> None:
        self.model, self.target, self.rows = model, target, 0
        self._parts: list[tuple[Codes, Decisions, Hashes | None]] = []
        self._rng = np.random.default_rng(0)
        most = max(200, min(most, MOST_CELLS // max(len(model.layout.names), 1)))
        self._drawn, self._rare = Drawn(most), Drawn(min(most, MOST_RARE))

    def add(self, batch: pa.RecordBatch | pa.Table, labels: Any, issues: Issues, novelty: NoveltyTally) -> None:
        """Look at a batch, with the cells of its target column if there is one."""
        model, n = self.model, len(batch)
        codes = np.full(n, MISSING) if labels is None else label_codes(labels, model.decision.classes)
        decided, columns = decide_batch(model, batch, issues, novelty)
        self._parts.append((codes, decided._replace(nearest=None), row_hashes(model, batch)))
        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        whole = Sample(table, columns, codes, np.arange(n) + self.rows)
        chances = self._rng.random(n)
        self._drawn.add(chances, np.ones(n, dtype=np.bool_), whole)
        is_two = len(model.decision.classes) == 2
        self._rare.add(chances, (codes >= 0) & ((codes == 1) | (decided.codes == 1)) & is_two, whole)
        self.rows += n

    def found(self, novelty: NoveltyReport, difference: Difference) -> Looked:
        """All of it."""
        if not self._parts or not self.rows:
            raise DataError("The table has no rows: there is nothing to report about.")
        codes, decided, hashes = zip(*self._parts, strict=True)
        known = None if self.model.seen is None else np.concatenate([one for one in hashes if one is not None])
        target = self.target
        found = Looked(
            self.rows,
            target,
            np.concatenate(codes),
            joined(decided),
            known,
            novelty,
            difference,
            self._drawn.kept()[1],
            self._rare.kept()[1],
        )
        if target is not None and target != self.model.contract.target and not (found.codes >= 0).any():
            raise ContractError(
                f"No cell of the column {target!r} is a class of the model "
                f"({some_of([*map(repr, self.model.decision.classes)])}): name the column that holds the classes."
            )
        return found


def look_at_file(
    model: Model,
    where: str,
    *,
    target: str | None = None,
    on_mismatch: OnMismatch = "error",
    on_progress: OnProgress | None = None,
    **dialect: Any,
) -> Looked:
    """Read a table from a file, batch by batch."""

    def look(reading: TableReading) -> LookTally:
        name = _target(model, target, reading.source.names)
        tally = LookTally(model, name)
        extra = [] if name is None else [name]
        for batch, more in reading.batches(extra, as_text=True, on_progress=on_progress):
            tally.add(batch, None if name is None else more.column(name), reading.issues, reading.novelty)
        return tally

    tally, reading = read_through(model, where, ScoreSettings(on_mismatch=on_mismatch, **dialect), look)
    return tally.found(reading.novelty.report(model), reading.difference)


def look_at_data(model: Model, data: Any, *, target: str | None = None, on_mismatch: OnMismatch = "error") -> Looked:
    """Look at a data frame, an Arrow table or a dictionary of columns."""
    issues, novelty = Issues(), NoveltyTally()
    names = model.contract.names
    plain = isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == len(names)
    table = as_table(data, names=names if plain else None)
    difference = compare_columns(model.contract, table.schema)
    if on_mismatch == "error":
        difference.raise_or_warn(on_mismatch)
    name = _target(model, target, table.column_names)
    tally = LookTally(model, name)
    labels = None if name is None else table.column(name)
    read = [names[place] for place in sorted(model.layout.used) if names[place] in table.column_names]
    table = table.select(read or table.column_names[:1])
    for start in range(0, len(table), BATCH_ROWS):
        batch = table.slice(start, BATCH_ROWS).combine_chunks()
        tally.add(batch, None if labels is None else labels.slice(start, len(batch)), issues, novelty)
    difference = replace(difference, issues=issues)
    difference.raise_or_warn(on_mismatch)
    return tally.found(novelty.report(model), difference)


def _target(model: Model, asked: str | None, names: Any) -> str | None:
    """The column of the classes; None where the table does not have the one of the fit."""
    if asked is not None and asked not in names:
        raise ContractError(
            f"There is no column {asked!r} with the classes.{did_you_mean(asked, names)} The table has: "
            f"{some_of([*map(repr, names)])}."
        )
    name = asked or model.contract.target
    return name if name in names else None
