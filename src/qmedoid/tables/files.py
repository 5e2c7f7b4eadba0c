"""A table in a file against a model: how it differs is noted, and every record is decided, batch by batch."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError, QMedoidError
from qmedoid.metrics.prevalence import LogOddsHistogram, PrevalenceEstimate
from qmedoid.model.table import TableModel
from qmedoid.storage.atomic import would_be_lost
from qmedoid.tables.arrow import CellTypeError, without_missing
from qmedoid.tables.difference import Difference, OnMismatch, compare_columns
from qmedoid.tables.encode import Issues, note_grouped, training_sizes
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally, record_novelty
from qmedoid.tables.scoring import RESULTS, check_carried, decide_batch, result_batch
from qmedoid.tables.source import find_files, open_table
from qmedoid.tables.writing import TEXT_SUFFIXES, check_output, open_sink

OnProgress = Callable[[int, int, int | None], None]
"""Progress callback; receives the rows and the bytes read so far, and all bytes there are, where that is known."""

_TYPES: dict[str, Any] = {"number": pa.float64, "category": pa.string, "boolean": pa.bool_}


class TablePart(NamedTuple):
    """Some rows of a table: the columns that a model reads, under the names of its contract, and others as they are."""

    batch: pa.RecordBatch
    extra: pa.RecordBatch


class TableReading:
    """The batches of a table under the names of a model's contract; a context manager.

    Cells of a text file are read as the kinds of the contract. Where one cannot be, `batches` is asked again with
    ``lenient=True``: texts stay as they are, so that every such cell is counted and can be taken as missing. `issues`
    and `novelty` are those of the last reading.
    """

    def __init__(
        self, model: TableModel, where: str, on_mismatch: OnMismatch, *, all_columns: bool = False, **dialect: Any
    ) -> None:
        self.model, self.on_mismatch = model, on_mismatch
        # An explanation shows what the model does not read as well.
        self._places = range(len(model.contract.columns)) if all_columns else model.layout.used
        self.source = open_table(where, **dialect)
        self.can_repeat = self.source.n_bytes is not None
        self._trusts_points = dialect.get("decimal") is not None
        self.issues, self.novelty = Issues(), NoveltyTally(model)
        # Types of a text file are a guess, and its cells are read as the contract says: they are judged one by one.
        given = self.source.names if self.source.is_text else self.source.schema
        try:
            self._difference = compare_columns(model.contract, given)
            if on_mismatch == "error":
                self._difference.raise_or_warn(on_mismatch)
        except BaseException:
            self.source.close()
            raise

    def __enter__(self) -> "TableReading":
        return self

    def __exit__(self, *_: object) -> None:
        self.source.close()

    def batches(
        self,
        extra: Sequence[str] = (),
        *,
        as_text: bool,
        lenient: bool,
        verbatim: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Iterator[TablePart]:
        """Parts with the columns that the best model reads, and others.

        The others can be had as text from text files, and verbatim: cells such as ``NA`` are then not missing in them.
        """
        self.issues, self.novelty = Issues(trusts_points=self._trusts_points), NoveltyTally(self.model)
        source, renames = self.source, self._difference.renames
        back = {new: old for old, new in renames.items()}
        wanted = [self.model.contract.columns[place] for place in self._places]
        here = {back.get(column.name, column.name): column for column in wanted}
        here = {name: column for name, column in here.items() if name in source.names}
        plain = [name for name, column in here.items() if column.kind == "number" and not column.spelling]
        types: dict[str, pa.DataType] = {}
        if source.is_text:
            types = {name: _TYPES[column.kind]() for name, column in here.items() if column.kind in _TYPES}
            # What was spelt in some way is read by the same rule.
            types |= {name: pa.string() for name, column in here.items() if column.spelling}
            # What is carried stays as it is written, even where the model reads it as a number.
            types |= {name: pa.string() for name in [*(here if lenient else ()), *(extra if as_text else ())]}
            if lenient and self.can_repeat:
                types |= {name: pa.string() for name in extra}
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
            yield TablePart(read, batch.select(list(extra)))

    def in_kind(self, run: Callable[[bool], Any], *, once: bool = False) -> Any:
        """The result of a run over the batches: first with cells read as the contract says, then leniently if needed.

        What can be read only once is read leniently at once, and so is what must not be run twice.
        """
        if once or not self.can_repeat:
            return run(True)
        try:
            return run(False)
        except CellTypeError:
            return run(True)

    def check(self) -> Difference:
        """How columns and cells differ, once all batches were decided; refused or a warning, as was asked for."""
        if self.source.is_text:
            back = {new: old for old, new in self._difference.renames.items()}
            known = {back.get(name, name): name for name in training_sizes(self.model, self._places)}
            named = [name for name in known if name in self.source.names]
            grouped = self.source.first_grouped(named) if named else {}
            if grouped:
                note_grouped(self.issues, self.model, {known[name]: one for name, one in grouped.items()})
        difference = replace(self._difference, issues=self.issues)
        difference.raise_or_warn(self.on_mismatch)
        return difference


def _with_points(batch: pa.RecordBatch, numbers: Sequence[str]) -> pa.RecordBatch:
    """Columns of numbers that were read as text, with a point instead of the decimal comma."""
    from qmedoid.tables._numbers import comma_numbers

    for name in numbers:
        place = batch.schema.get_field_index(name)
        if pa.types.is_string(batch.column(place).type):
            batch = batch.set_column(place, name, comma_numbers(batch.column(place)))
    return batch


class ScoredFile(NamedTuple):
    """How many rows were written and called each class, how the table differs from the contract and the training rows.

    `prevalence` is how frequent the second class seems to be, where that was asked for.
    """

    rows: int
    predicted: dict[str, int]
    difference: Difference
    novelty: NoveltyReport
    prevalence: PrevalenceEstimate | None


def score_file(
    model: TableModel,
    where: str,
    out: str,
    *,
    carried: Sequence[str] = (),
    on_mismatch: OnMismatch = "error",
    safe_csv: bool = True,
    force: bool = False,
    novelty: bool = False,
    prevalence: bool = False,
    on_progress: OnProgress | None = None,
    **dialect: Any,
) -> ScoredFile:
    """Score a table into a file, by one atomic replace, or to standard output (``"-"``).

    Carried columns go through to the output, before the results; with `novelty` the results have a last column with the
    novelty of each record. A table that breaks the contract is refused, or scored as well as possible. Only `force`
    overwrites a file that holds something else than results. With `prevalence` that of the second class is estimated.
    """
    check_output(out)
    with TableReading(model, where, on_mismatch, **dialect) as reading:
        check_other_file(where, out)
        if not force:
            check_results_file(out)
        if carried:
            check_carried(model, carried, reading.source.names, novelty=novelty)
        as_text = out == "-" or out.lower().endswith(TEXT_SUFFIXES)

        def write(lenient: bool) -> ScoredFile:
            parts = reading.batches(
                carried, as_text=as_text, lenient=lenient, verbatim=as_text, on_progress=on_progress
            )
            return _write(model, reading, parts, out, safe_csv, novelty, LogOddsHistogram() if prevalence else None)

        # What went to a pipe cannot be taken back.
        is_pipe = out == "-" or (Path(out).exists() and not Path(out).is_file())
        scored: ScoredFile = reading.in_kind(write, once=is_pipe)
    return scored


def check_other_file(where: str, out: str) -> None:
    """Refuse to write the results over the table they are about."""
    target = Path(out)
    if "-" in (where, out) or not target.is_file():
        return
    if any(target.samefile(file) for file in find_files(where)):
        raise ParameterError(f"The output {out!r} is the table itself, which would be lost. Give another output.")


def check_results_file(out: str) -> None:
    """Refuse to overwrite a file whose columns are not those of results."""
    file = Path(out)
    if out == "-" or not file.is_file() or file.stat().st_size == 0:
        return
    try:
        with open_table(out) as source:
            names = set(source.names)
    except QMedoidError:
        names = set()
    if not names >= RESULTS:
        raise would_be_lost(out)


def _write(
    model: TableModel,
    reading: TableReading,
    parts: Iterator[TablePart],
    out: str,
    safe: bool,
    with_novelty: bool,
    log_odds: LogOddsHistogram | None,
) -> ScoredFile:
    first = next(parts, None)
    if first is None:
        raise DataError(f"{reading.source.description} has no rows: there is nothing to score.")
    counts = np.zeros(len(model.decision.classes), dtype=np.int64)

    def results(part: TablePart) -> pa.RecordBatch:
        decided, columns = decide_batch(model, part.batch, reading.issues, reading.novelty)
        counts[:] += np.bincount(decided.codes, minlength=len(counts))
        if log_odds is not None:
            log_odds.add(decided.scores[:, 1] - decided.scores[:, 0])
        novelty = record_novelty(model, columns, threads=1) if with_novelty else None
        return result_batch(model, part.extra, decided, novelty)

    result = results(first)
    with open_sink(out, result.schema, safe_csv=safe, harmless=("decided_by",)) as sink:
        sink.write(result)
        for part in parts:
            sink.write(results(part))
        # Before the file is put in its place: a table that is refused leaves none behind.
        difference = reading.check()
    predicted = {str(label): int(count) for label, count in zip(model.decision.classes, counts, strict=True)}
    priors = model.decision.expected_priors
    estimate = None if log_odds is None or priors is None else log_odds.estimate(float(priors[1]))
    return ScoredFile(int(counts.sum()), predicted, difference, reading.novelty.report(), estimate)


def estimate_in_file(
    model: TableModel, where: str, *, on_mismatch: OnMismatch, on_progress: OnProgress | None = None, **dialect: Any
) -> PrevalenceEstimate:
    """How frequent the second class is in a table that can be read once more afterwards, so not in a pipe."""
    # Another prevalence is refused where it has no meaning, before anything is read.
    model.decision.at_priors(0.5)
    priors = model.decision.expected_priors
    assert priors is not None, "a model without priors cannot be shifted"
    with TableReading(model, where, on_mismatch, **dialect) as reading:
        if not reading.can_repeat:
            raise ParameterError(
                "The table is read twice to estimate the prevalence, and a pipe can be read once: write it to a file, "
                "or give the prevalence as a number."
            )

        def count(lenient: bool) -> LogOddsHistogram:
            histogram = LogOddsHistogram()
            for batch, _ in reading.batches(as_text=False, lenient=lenient, on_progress=on_progress):
                scores = decide_batch(model, batch, reading.issues)[0].scores
                histogram.add(scores[:, 1] - scores[:, 0])
            return histogram

        histogram: LogOddsHistogram = reading.in_kind(count)
        reading.check()
    if histogram.n_rows == 0:
        raise DataError(f"{where} has no rows: there is no prevalence to estimate.")
    return histogram.estimate(float(priors[1]))
