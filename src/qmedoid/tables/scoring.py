"""Tables against a model: open, check, decide and write, batch by batch, with memory for one batch."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError
from qmedoid.metrics.prevalence import (
    NO_LOG_ODDS,
    PrevalenceEstimate,
    joined_histogram,
    log_odds_histogram,
    prevalence_of,
)
from qmedoid.model.model import Decisions, Model
from qmedoid.tables.arrow import WORDS, CellTypeError, without_missing
from qmedoid.tables.difference import Difference, Issues, compare_columns
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.novelty import NoveltyTally
from qmedoid.tables.results import DecidedRows, ResultColumns, ScoreSettings
from qmedoid.tables.source import open_table
from qmedoid.tables.writing import TEXT_SUFFIXES, OnBadRow, bad_rows_sink, find_bad_rows, open_sink

OnProgress = Callable[[int, int, int | None], None]
"""Progress callback; receives the rows and the bytes read so far, and all bytes there are, where that is known."""

_TYPES: dict[str, Any] = {"number": pa.float64, "category": pa.string, "boolean": pa.bool_}
# Rows from which on several threads are faster than one.
_LONG = 100_000
T = TypeVar("T")


class TableReading(AbstractContextManager["TableReading"]):
    """The batches of a table as a model reads it; a context manager.

    Cells of a text file are read as the kinds of the contract. Where one cannot be, all is read again and `lenient`:
    texts stay as they are, so that every such cell is counted and can be taken as missing. `issues`, `novelty`, the
    number of bad rows and where the first of them is are those of the last reading.
    """

    def __init__(
        self, model: Model, where: str, settings: ScoreSettings | None = None, *, all_columns: bool = False
    ) -> None:
        self.model, self.settings = model, settings or ScoreSettings()
        dialect = {"delimiter": self.settings.delimiter, "decimal": self.settings.decimal}
        # An explanation shows what the model does not read as well.
        places = range(len(model.contract.columns)) if all_columns else model.layout.used
        self.source = open_table(where, **dialect, tolerant=self.settings.on_bad_row != "refuse")
        self.can_repeat, self.lenient = self.source.n_bytes is not None, False
        self._start()
        # Types of a text file are a guess, and its cells are read as the contract says: they are judged one by one.
        given = self.source.names if self.source.is_text else self.source.schema
        try:
            self._difference = compare_columns(model.contract, given)
            if self.settings.on_mismatch == "error":
                self._difference.raise_or_warn("error")
        except BaseException:
            self.source.close()
            raise
        names, columns = set(self.source.names), model.contract.columns
        self._here = {columns[place].name: columns[place] for place in places if columns[place].name in names}
        # Words for missing cells that are levels, or classes: so they are in a column of the target.
        encodings = {one.name: encoding for one, encoding in zip(columns, model.encodings, strict=True)}
        self._words = {name: [*{*getattr(encodings[name], "levels", ())} & {*WORDS}] for name in self._here}
        self._labels = [str(label) for label in model.decision.classes if str(label) in WORDS]
        self._plain = [name for name, one in self._here.items() if one.kind == "number" and not one.spelling]

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def _start(self) -> None:
        trusts_points = self.settings.decimal is not None
        self.issues, self.novelty = Issues(trusts_points=trusts_points), NoveltyTally()
        self.bad_rows, self.first_bad = 0, ""

    def _texts(self, extra: Sequence[str], as_text: bool) -> Sequence[str]:
        """Which `extra` columns are read as text: all of text files, if asked for, or if nothing else can be known."""
        return extra if self.source.is_text and (as_text or (self.lenient and self.can_repeat)) else ()

    def batches(
        self,
        extra: Sequence[str] = (),
        *,
        as_text: bool = False,
        verbatim: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Batches of the columns that the model reads, and of `extra` ones.

        The extra ones can be had as text from text files, and verbatim: cells such as ``NA`` are then not missing.
        """
        self._start()
        source, here = self.source, self._here
        types: dict[str, pa.DataType] = {}
        if source.is_text:
            types = {name: _TYPES[column.kind]() for name, column in here.items() if column.kind in _TYPES}
            # What was spelt in some way is read by the same rule; what is carried stays as it is written, even where
            # the model reads it as a number.
            texts = [name for name, column in here.items() if column.spelling or self.lenient]
            types |= dict.fromkeys([*texts, *self._texts(extra, as_text)], pa.string())
        rows = 0
        # A carried column may be one that the model reads as well: it is read once. Rows without any column cannot be
        # counted.
        columns = list(dict.fromkeys([*here, *extra])) or [source.names[0]]
        verbatim = verbatim and source.is_text and bool(extra)
        watched = () if self.lenient or self.issues.trusts_points else self._plain
        words = dict.fromkeys(extra, self._labels) | self._words
        for batch in source.batches(columns, types, verbatim=verbatim, watched=watched, words=words):
            rows += len(batch)
            if on_progress is not None:
                on_progress(rows, source.bytes_read, source.n_bytes)
            read = batch.select(list(here))
            if verbatim:
                cells = [
                    without_missing(one, words[name]) if one.type == pa.string() else one
                    for name, one in zip(read.schema.names, read.columns, strict=True)
                ]
                read = pa.record_batch(cells, names=read.schema.names)
            if source.is_text and source.decimal == ",":
                from qmedoid.tables.text_kinds import comma_numbers

                for name in self._plain:
                    at = read.schema.get_field_index(name)
                    if pa.types.is_string(read.column(at).type):
                        read = read.set_column(at, name, comma_numbers(read.column(at)))
            yield read, batch.select(list(extra))

    def decided(
        self, extra: Sequence[str] = (), *, for_what: str = "", warns: bool = True, **reading: Any
    ) -> Iterator[tuple["DecidedRows", pa.RecordBatch]]:
        """Decisions about the rows of `batches` that are not bad, and the extra columns of all rows.

        Bad rows are written to the file of the settings, which is put in its place when the table was checked. What is
        named by a verb `for_what` needs at least one row.
        """
        passed, source, how = 0, self.source, self.settings.on_bad_row
        if self.settings.bad_rows and not source.is_all_text:
            # Bad rows are set aside whole, and there is no line of text to write.
            extra = list(dict.fromkeys([*extra, *source.names]))
        where = self.settings.bad_rows
        with nullcontext() if where is None else bad_rows_sink(where, safe_csv=self.settings.safe_csv) as set_aside:
            for batch, more in self.batches(extra, **reading):
                malformed = None if how == "refuse" else source.malformed(len(batch))
                rows = decide_rows(self.model, batch, self.issues, self.novelty, how, malformed, passed)
                passed += len(batch)
                if rows.bad is not None:
                    if not self.first_bad:
                        first = int(np.flatnonzero(rows.bad.is_valid())[0])
                        written, (file, start) = source.written([first]), source.origin
                        at = f"row {start + first:,} (from 0)" if written is None else f"line {written[0][0]:,}"
                        self.first_bad = f"at {at} of {file}: {rows.bad[first].as_py()}"
                    self.bad_rows += len(rows.bad) - rows.bad.null_count
                    if set_aside is not None:
                        set_aside(rows.bad, source, more)
                yield rows, more
            self.check(warns=warns)
            if for_what and passed == self.bad_rows:
                no_rows = f"The table has no rows: there is nothing to {for_what}."
                none_read = f"None of the {passed:,} rows could be read, the first {self.first_bad}."
                raise DataError(none_read if passed else no_rows)

    def schema(self, *, as_text: bool = False) -> pa.Schema:
        """The types that columns are read in as extra ones, as `batches` has them."""
        types = {one.name: pa.string() if pa.types.is_null(one.type) else one.type for one in self.source.schema}
        return pa.schema(list((types | dict.fromkeys(self._texts(self.source.names, as_text), pa.string())).items()))

    def in_kind(self, run: Callable[[], T], outputs: Sequence[str | None] = ()) -> T:
        """The result of a run over the batches: first with cells read as the contract says, then leniently if needed.

        What can be read only once is read leniently at once, and so is what goes to a pipe, which takes nothing back.
        """
        is_pipe = any(one == "-" or (Path(one).exists() and not Path(one).is_file()) for one in outputs if one)
        self.lenient = is_pipe or not self.can_repeat
        try:
            return run()
        except CellTypeError:
            if self.lenient:
                raise
        self.lenient = True
        return run()

    def check(self, *, warns: bool = True) -> Difference:
        """How columns and cells differ, once all batches were decided; refused or a warning, as was asked for."""
        self.difference = replace(self._difference, issues=self.issues, left_out=tuple(self.source.left_out))
        self.deviations = self.difference.raise_or_warn(self.settings.on_mismatch, warns=warns)
        return self.difference


def read_through(
    model: Model, where: str, settings: ScoreSettings, look: Callable[[TableReading], T], *, all_columns: bool = False
) -> tuple[T, TableReading]:
    """What is made of a table, and its reading, once it was checked; `look` goes through the batches, maybe twice."""
    with TableReading(model, where, settings, all_columns=all_columns) as reading:
        found = reading.in_kind(lambda: look(reading))
        reading.check()
        return found, reading


def read_row(
    model: Model, where: str, settings: ScoreSettings, number: int, look: Callable[[pa.Table, Issues], T]
) -> tuple[pa.Table, T, list[str]]:
    """The row of that number (from 0) as a table, what is made of it, and how the table differs from the contract."""

    def look_at_row(reading: TableReading) -> tuple[pa.Table, T]:
        passed = 0
        for batch, _ in reading.batches():
            if number < passed + len(batch):
                record = pa.Table.from_batches([batch.slice(number - passed, 1)])
                return record, look(record, reading.issues)
            passed += len(batch)
        raise DataError(f"There is no row {number}: the table has {passed:,} rows, counted from 0.")

    (record, made), reading = read_through(model, where, settings, look_at_row, all_columns=True)
    return record, made, reading.deviations


def decide_rows(
    model: Model,
    batch: pa.RecordBatch | pa.Table,
    issues: Issues,
    tally: NoveltyTally | None = None,
    on_bad_row: OnBadRow = "refuse",
    malformed: Mapping[int, str] | None = None,
    first_row: int = 0,
) -> DecidedRows:
    """Decisions about the records of a batch; unless they are refused, bad ones are found and left out.

    `malformed` are rows that are bad however their cells are read; `first_row` is the place of the first in its table.
    """
    bad = None if on_bad_row == "refuse" else find_bad_rows(model, batch, issues, malformed)
    if bad is None:
        rows = None if on_bad_row == "refuse" else np.arange(first_row, first_row + len(batch))
        decided, encoded = decide_batch(model, batch, issues, tally, rows)
        return DecidedRows(len(batch), batch, encoded, decided)
    if not bad.null_count:
        return DecidedRows.none(model, len(batch), bad)
    good = batch.filter(bad.is_null())
    decided, encoded = decide_batch(model, good, issues, tally, np.flatnonzero(bad.is_null()) + first_row)
    return DecidedRows(len(batch), good, encoded, decided, bad)


def decide_batch(
    model: Model,
    batch: pa.RecordBatch | pa.Table,
    issues: Issues,
    tally: NoveltyTally | None = None,
    rows: Codes | None = None,
) -> tuple[Decisions, list[Array]]:
    """Decisions about the records of a batch, and its encoded columns, those that the model reads.

    What breaks the contract is counted in `issues`, records unlike the training rows in `tally`, where `rows` are their
    places in the table if some were left out.
    """
    # A batch of a file is too short to share between threads: starting them costs as much as they save.
    threads = None if len(batch) > _LONG else 1
    counted = copy.deepcopy(issues)
    columns = encode_batch(
        batch, model.contract, model.encodings, only=model.layout.used, unchecked=model.layout.checked, issues=counted
    )
    try:
        decided = model.decide(columns, threads=threads)
    except DataError:
        # A bad value somewhere: now all of them are looked for.
        columns = encode_batch(batch, model.contract, model.encodings, only=model.layout.used, issues=issues)
        with refused_by_column(model, batch, issues):
            decided = model.decide(columns, threads=threads)
    else:
        vars(issues).update(vars(counted))
    if tally is not None:
        tally.add(model, columns, rows)
    return decided, columns


@contextmanager
def refused_by_column(model: Model, batch: pa.RecordBatch | pa.Table, issues: Issues) -> Iterator[None]:
    """Name the columns where a model refuses missing cells that it cannot fill in."""
    try:
        yield
    except DataError:
        read = replace(model.contract, columns=tuple(model.contract.columns[place] for place in model.layout.used))
        difference = replace(compare_columns(read, batch.schema), issues=issues)
        if difference.has_refused_cells:
            difference.raise_or_warn("error")
        raise


def shows_prevalence(model: Model) -> bool:
    """Whether the scores of a model show how frequent its classes are in a table of any length."""
    return len(model.decision.classes) == 2 and model.decision.probabilistic and model.decision.priors is not None


@dataclass
class ScoredFile:
    """What was counted while a table was scored; the counts of several files add up."""

    rows: int  # that were written with results
    bad_rows: int  # that could not be decided about
    predicted: dict[str, int]  # rows by their class
    difference: Difference
    novelty: NoveltyTally
    log_odds: Array | None  # histogram of those of two classes with probabilities

    @classmethod
    def none(cls, model: Model) -> "ScoredFile":
        """Nothing so far."""
        predicted = dict.fromkeys(map(str, model.decision.classes), 0)
        log_odds = NO_LOG_ODDS if shows_prevalence(model) else None
        return cls(0, 0, predicted, Difference(model.contract), NoveltyTally(), log_odds)

    def count(self, part: DecidedRows) -> None:
        """Count the rows of one more batch."""
        counts = np.bincount(part.decided.codes, minlength=len(self.predicted))
        for label, count in zip(self.predicted, counts.tolist(), strict=True):
            self.predicted[label] += count
        self.rows += len(part.decided.codes)
        self.bad_rows += part.n_rows - len(part.decided.codes)
        if self.log_odds is not None:
            log_odds = part.decided.scores[:, 1] - part.decided.scores[:, 0]
            self.log_odds = log_odds_histogram(log_odds, self.log_odds)

    def add(self, other: "ScoredFile", file: str) -> None:
        """Add what was counted in one more file of the table."""
        self.rows, self.bad_rows = self.rows + other.rows, self.bad_rows + other.bad_rows
        self.predicted = {label: count + other.predicted[label] for label, count in self.predicted.items()}
        self.difference = self.difference.merged(other.difference)
        self.novelty.merge(other.novelty, file)
        if self.log_odds is not None and other.log_odds is not None:
            self.log_odds = joined_histogram(self.log_odds, other.log_odds)

    def prevalence(self, model: Model) -> PrevalenceEstimate | None:
        """How frequent the second class seems to be; None where nothing shows it."""
        priors = model.decision.expected_priors
        if not self.rows or self.log_odds is None or priors is None:
            return None
        return prevalence_of(self.log_odds, priors[1])


def score_file(
    model: Model,
    where: str,
    out: str,
    settings: ScoreSettings,
    *,
    on_progress: OnProgress | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    foot: Callable[[ScoredFile], Mapping[str, str]] | None = None,
) -> ScoredFile:
    """Score a table into a file, by one atomic replace, or to standard output (``"-"``), and count its rows.

    What is there is overwritten: see `qmedoid.tables.writing.check_output`. A table without rows gives results without
    rows. Of a part of a table, which has `types` of the carried columns in all parts, nothing is said of the
    difference. The `foot` is what the end of a Parquet file says, made of what was counted when all rows are written.
    """
    is_text, is_part = out == "-" or out.lower().endswith(TEXT_SUFFIXES), types is not None
    columns = ResultColumns(model, settings)
    with TableReading(model, where, settings) as reading:
        given = reading.source.schema
        reading.source.schema = pa.schema([(one.name, (types or {}).get(one.name, one.type)) for one in given])
        # Whatever a text holds, all parts of a table have columns of the same type.
        how: dict[str, Any] = {"as_text": is_text or is_part}

        def write() -> ScoredFile:
            scored = ScoredFile.none(model)
            schema = columns.nothing(reading.schema(**how)).schema
            facts = None if foot is None else partial(foot, scored)
            with open_sink(out, schema, safe_csv=settings.safe_csv, harmless=("decided_by",), facts=facts) as put:
                # All is read and checked before the file is put in its place: a refused table leaves none behind.
                for rows, more in reading.decided(
                    settings.columns, warns=not is_part, verbatim=is_text, on_progress=on_progress, **how
                ):
                    scored.count(rows)
                    put(columns.batch(more, rows, reading.source.origin))
                scored.difference, scored.novelty = reading.difference, reading.novelty
            return scored

        return reading.in_kind(write, [out, settings.bad_rows])
