"""Tables against a model: open, check, decide and write, batch by batch, with memory for one batch."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError
from qmedoid.metrics.prevalence import LogOddsHistogram, PrevalenceEstimate
from qmedoid.model.model import Decisions, Model
from qmedoid.tables.arrow import CellTypeError, without_missing
from qmedoid.tables.difference import Difference, OnMismatch, compare_columns
from qmedoid.tables.encode import encode_batch, note_grouped, training_sizes
from qmedoid.tables.issues import Issues
from qmedoid.tables.novelty import NoveltyTally
from qmedoid.tables.results import DecidedRows, ResultColumns
from qmedoid.tables.score_settings import ScoreSettings
from qmedoid.tables.source import open_table
from qmedoid.tables.writing import TEXT_SUFFIXES, OnBadRow, bad_rows_sink, find_bad_rows, open_sink, set_aside

OnProgress = Callable[[int, int, int | None], None]
"""Progress callback; receives the rows and the bytes read so far, and all bytes there are, where that is known."""

_TYPES: dict[str, Any] = {"number": pa.float64, "category": pa.string, "boolean": pa.bool_}
# Rows from which on several threads are faster than one.
_LONG = 100_000
T = TypeVar("T")


class TableReading:
    """The batches of a table under the names of a model's contract; a context manager.

    Cells of a text file are read as the kinds of the contract. Where one cannot be, `batches` is asked again with
    ``lenient=True``: texts stay as they are, so that every such cell is counted and can be taken as missing. `issues`
    and `novelty` are those of the last reading.
    """

    def __init__(
        self,
        model: Model,
        where: str,
        on_mismatch: OnMismatch,
        *,
        all_columns: bool = False,
        on_bad_row: OnBadRow = "refuse",
        **dialect: Any,
    ) -> None:
        self.model, self.on_mismatch, self.on_bad_row = model, on_mismatch, on_bad_row
        # An explanation shows what the model does not read as well.
        self._places = range(len(model.contract.columns)) if all_columns else model.layout.used
        self.source = open_table(where, **dialect, tolerant=on_bad_row != "refuse")
        self.can_repeat = self.source.n_bytes is not None
        self._trusts_points = dialect.get("decimal") is not None
        self.issues, self.novelty = Issues(), NoveltyTally()
        # Types of a text file are a guess, and its cells are read as the contract says: they are judged one by one.
        given = self.source.names if self.source.is_text else self.source.schema
        try:
            self._difference = compare_columns(model.contract, given)
            if on_mismatch == "error":
                self._difference.raise_or_warn(on_mismatch)
        except BaseException:
            self.source.close()
            raise
        self._names = {new: old for old, new in self._difference.renames.items()}
        """Names in the table, by those of the contract, where they differ."""

    @classmethod
    def by(cls, model: Model, where: str, settings: ScoreSettings) -> "TableReading":
        """The reading of a table that a score asks for."""
        return cls(
            model,
            where,
            settings.on_mismatch,
            on_bad_row=settings.on_bad_row,
            delimiter=settings.delimiter,
            decimal=settings.decimal,
        )

    def __enter__(self) -> "TableReading":
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def batches(
        self,
        lenient: bool,
        extra: Sequence[str] = (),
        *,
        as_text: bool = False,
        verbatim: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Batches of the columns that the best model reads, under the names of the contract, and of `extra` ones.

        The extra ones can be had as text from text files, and verbatim: cells such as ``NA`` are then not missing.
        """
        self.issues, self.novelty = Issues(trusts_points=self._trusts_points), NoveltyTally()
        source, renames = self.source, self._difference.renames
        wanted = [self.model.contract.columns[place] for place in self._places]
        here = {self._names.get(column.name, column.name): column for column in wanted}
        here = {name: column for name, column in here.items() if name in source.names}
        plain = [name for name, column in here.items() if column.kind == "number" and not column.spelling]
        types: dict[str, pa.DataType] = {}
        if source.is_text:
            types = {name: _TYPES[column.kind]() for name, column in here.items() if column.kind in _TYPES}
            # What was spelt in some way is read by the same rule; what is carried stays as it is written, even where
            # the model reads it as a number.
            texts = [name for name, column in here.items() if column.spelling or lenient]
            texts += extra if as_text or (lenient and self.can_repeat) else ()
            types |= dict.fromkeys(texts, pa.string())
        rows = 0
        # A carried column may be one that the model reads as well: it is read once. Rows without any column cannot be
        # counted.
        columns = list(dict.fromkeys([*here, *extra])) or [source.names[0]]
        verbatim = verbatim and source.is_text and bool(extra)
        watched = () if lenient or self._trusts_points else plain
        for batch in source.batches(columns, types, verbatim=verbatim, watched=watched):
            rows += len(batch)
            if on_progress is not None:
                on_progress(rows, source.bytes_read, source.n_bytes)
            read = batch.select(list(here))
            if verbatim:
                cells = [without_missing(one) if one.type == pa.string() else one for one in read.columns]
                read = pa.record_batch(cells, names=read.schema.names)
            if source.is_text and source.decimal == ",":
                read = _with_points(read, plain)
            if renames:
                read = read.rename_columns([renames.get(name, name) for name in read.schema.names])
            yield read, batch.select(list(extra))

    def decided(
        self, lenient: bool, extra: Sequence[str] = (), **reading: Any
    ) -> Iterator[tuple["DecidedRows", pa.RecordBatch]]:
        """Decisions about the rows of `batches` that are not bad, and the extra columns of all rows."""
        passed, how = 0, self.on_bad_row
        for batch, more in self.batches(lenient, extra, **reading):
            malformed = None if how == "refuse" else self.source.origin.malformed(len(batch))
            yield decide_rows(self.model, batch, self.issues, self.novelty, how, malformed, passed), more
            passed += len(batch)

    def with_all(self, columns: Sequence[str], bad_rows: str | None) -> list[str]:
        """The columns, with all others if bad rows are set aside whole, as there is no line of text to write."""
        others = () if bad_rows is None or self.source.is_all_text else self.source.names
        return list(dict.fromkeys([*columns, *others]))

    def schema(self, extra: Sequence[str], *, as_text: bool = False) -> pa.Schema:
        """The types that `extra` columns are read in, as `batches` has them."""
        source = self.source
        types = {name: source.schema.field(name).type for name in extra}
        texts = [name for name, kind in types.items() if pa.types.is_null(kind) or (as_text and source.is_text)]
        return pa.schema(list((types | dict.fromkeys(texts, pa.string())).items()))

    def in_kind(self, run: Callable[[bool], T], outputs: Sequence[str | None] = ()) -> T:
        """The result of a run over the batches: first with cells read as the contract says, then leniently if needed.

        What can be read only once is read leniently at once, and so is what goes to a pipe, which takes nothing back.
        """
        is_pipe = any(one == "-" or (Path(one).exists() and not Path(one).is_file()) for one in outputs if one)
        if is_pipe or not self.can_repeat:
            return run(True)
        try:
            return run(False)
        except CellTypeError:
            return run(True)

    def row(self, number: int) -> pa.Table:
        """The row of that number, counted from 0, as a table."""

        def find(lenient: bool) -> pa.Table:
            passed = 0
            for batch, _ in self.batches(lenient):
                if number < passed + len(batch):
                    return pa.Table.from_batches([batch.slice(number - passed, 1)])
                passed += len(batch)
            raise DataError(f"There is no row {number}: the table has {passed:,} rows, counted from 0.")

        return self.in_kind(find)

    def check(self, *, warns: bool = True) -> Difference:
        """How columns and cells differ, once all batches were decided; refused or a warning, as was asked for."""
        if self.source.is_text:
            known = {self._names.get(name, name): name for name in training_sizes(self.model, self._places)}
            named = [name for name in known if name in self.source.names]
            grouped = self.source.first_grouped(named) if named else {}
            if grouped:
                note_grouped(self.issues, self.model, {known[name]: one for name, one in grouped.items()})
        difference = replace(self._difference, issues=self.issues)
        difference.raise_or_warn(self.on_mismatch, warns=warns)
        return difference


def _with_points(batch: pa.RecordBatch, numbers: Sequence[str]) -> pa.RecordBatch:
    """Columns of numbers that were read as text, with a point instead of the decimal comma."""
    from qmedoid.tables.numbers import comma_numbers

    for name in numbers:
        place = batch.schema.get_field_index(name)
        if pa.types.is_string(batch.column(place).type):
            batch = batch.set_column(place, name, comma_numbers(batch.column(place)))
    return batch


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
    if bad.is_bad.all():
        return DecidedRows.none(model, len(batch), bad)
    good = batch.filter(pa.array(~bad.is_bad))
    decided, encoded = decide_batch(model, good, issues, tally, np.flatnonzero(~bad.is_bad) + first_row)
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
    """What was counted while a table was scored; the counts of several files add up.

    Attributes
    ----------
    rows, bad_rows : int
        Rows that were written with results, and rows that could not be decided about.
    predicted : dict of str to int
        Rows by their class.
    difference : Difference
        How the table differs from the contract.
    novelty : NoveltyTally
    log_odds : LogOddsHistogram or None
        Of two classes with probabilities.
    """

    rows: int
    bad_rows: int
    predicted: dict[str, int]
    difference: Difference
    novelty: NoveltyTally
    log_odds: LogOddsHistogram | None

    @classmethod
    def none(cls, model: Model) -> "ScoredFile":
        """Nothing so far."""
        predicted = dict.fromkeys(map(str, model.decision.classes), 0)
        log_odds = LogOddsHistogram() if shows_prevalence(model) else None
        return cls(0, 0, predicted, Difference(model.contract), NoveltyTally(), log_odds)

    def count(self, part: DecidedRows) -> None:
        """Count the rows of one more batch."""
        counts = np.bincount(part.decided.codes, minlength=len(self.predicted))
        for label, count in zip(self.predicted, counts.tolist(), strict=True):
            self.predicted[label] += count
        self.rows += len(part.decided.codes)
        self.bad_rows += 0 if part.bad is None else len(part.bad.places)
        if self.log_odds is not None:
            self.log_odds.add(part.decided.scores[:, 1] - part.decided.scores[:, 0])

    def add(self, other: "ScoredFile", file: str) -> None:
        """Add what was counted in one more file of the table."""
        self.rows, self.bad_rows = self.rows + other.rows, self.bad_rows + other.bad_rows
        self.predicted = {label: count + other.predicted[label] for label, count in self.predicted.items()}
        self.difference = self.difference.merged(other.difference)
        self.novelty.merge(other.novelty, file)
        if self.log_odds is not None and other.log_odds is not None:
            self.log_odds.merge(other.log_odds)

    def prevalence(self, model: Model) -> PrevalenceEstimate | None:
        """How frequent the second class seems to be; None where nothing shows it."""
        priors = model.decision.expected_priors
        return None if not self.rows or self.log_odds is None or priors is None else self.log_odds.estimate(priors[1])


class TablePart(NamedTuple):
    """A file that is one part of a table: types of the carried columns in all parts, and the foot of its results.

    The foot is what the end of a Parquet file says of it, made of what was counted when all rows are written.
    """

    types: Mapping[str, pa.DataType]
    foot: Callable[[ScoredFile], Mapping[str, str]]


def score_file(
    model: Model,
    where: str,
    out: str,
    settings: ScoreSettings,
    *,
    on_progress: OnProgress | None = None,
    part: TablePart | None = None,
) -> ScoredFile:
    """Score a table into a file, by one atomic replace, or to standard output (``"-"``), and count its rows.

    What is there is overwritten: see `qmedoid.tables.writing.check_output`. A table without rows gives results without
    rows. Of a part of a table nothing is said of the difference.
    """
    is_text = out == "-" or out.lower().endswith(TEXT_SUFFIXES)
    columns = ResultColumns(model, settings)
    with TableReading.by(model, where, settings) as reading:
        if part is not None:
            types = [(one.name, part.types.get(one.name, one.type)) for one in reading.source.schema]
            reading.source.schema = pa.schema(types)
        columns.check_carried(reading.source.names)
        extra = reading.with_all(settings.columns, settings.bad_rows)
        # Whatever a text holds, all parts of a table have columns of the same type.
        as_text = is_text or part is not None

        def write(lenient: bool) -> ScoredFile:
            scored = ScoredFile.none(model)

            def results() -> Iterator[pa.RecordBatch]:
                decided = reading.decided(lenient, extra, as_text=as_text, verbatim=is_text, on_progress=on_progress)
                for rows, more in decided:
                    scored.count(rows)
                    origin = reading.source.origin
                    if aside is not None and rows.bad is not None:
                        set_aside(aside, rows.bad, origin, more)
                    yield columns.batch(more, rows, origin[:2])

            with ExitStack() as stack:
                aside = None
                if settings.bad_rows is not None:
                    aside = stack.enter_context(bad_rows_sink(settings.bad_rows, safe_csv=settings.safe_csv))
                batches = results()
                first = next(batches, None)
                if first is None:
                    first = columns.nothing(reading.schema(settings.columns, as_text=as_text))
                foot = None if part is None else partial(part.foot, scored)
                sink = stack.enter_context(
                    open_sink(out, first.schema, safe_csv=settings.safe_csv, harmless=("decided_by",), facts=foot)
                )
                sink.write(first)
                for batch in batches:
                    sink.write(batch)
                # Before the file is put in its place: a table that is refused leaves none behind.
                scored.difference = reading.check(warns=part is None)
            scored.novelty = reading.novelty
            return scored

        return reading.in_kind(write, [out, settings.bad_rows])
