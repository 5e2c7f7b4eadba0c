"""Tables against a model: open, check, decide batch by batch, and write the decisions, with memory for one batch."""

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ContractError, DataError, ParameterError, some_of
from qmedoid.metrics.prevalence import LogOddsHistogram, PrevalenceEstimate
from qmedoid.model.table import Decisions, TableModel
from qmedoid.suggestions import did_you_mean
from qmedoid.tables.arrow import CellTypeError, without_missing
from qmedoid.tables.difference import Difference, OnMismatch, compare_columns
from qmedoid.tables.encode import encode_batch, note_grouped, training_sizes
from qmedoid.tables.issues import Issues
from qmedoid.tables.novelty import NoveltyReport, NoveltyTally, record_novelty
from qmedoid.tables.source import open_table
from qmedoid.tables.writing import TEXT_SUFFIXES, check_output, open_sink

OnProgress = Callable[[int, int, int | None], None]
"""Progress callback; receives the rows and the bytes read so far, and all bytes there are, where that is known."""

_TYPES: dict[str, Any] = {"number": pa.float64, "category": pa.string, "boolean": pa.bool_}
# Rows from which on several threads are faster than one.
_LONG = 100_000


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
        self._names = {new: old for old, new in self._difference.renames.items()}
        """Names in the table, by those of the contract, where they differ."""

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
        self.issues, self.novelty = Issues(trusts_points=self._trusts_points), NoveltyTally(self.model)
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
            known = {self._names.get(name, name): name for name in training_sizes(self.model, self._places)}
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


def decide_batch(
    model: TableModel, batch: pa.RecordBatch | pa.Table, issues: Issues, tally: NoveltyTally | None = None
) -> tuple[Decisions, list[Array]]:
    """Decisions about the records of a batch, and its encoded columns, those that the model reads.

    What breaks the contract is counted in `issues`, records unlike the training rows in `tally`.
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
        tally.add(columns)
    return decided, columns


@contextmanager
def refused_by_column(model: TableModel, batch: pa.RecordBatch | pa.Table, issues: Issues) -> Iterator[None]:
    """Name the columns where a model refuses missing cells that it cannot fill in."""
    try:
        yield
    except DataError:
        read = replace(model.contract, columns=tuple(model.contract.columns[place] for place in model.layout.used))
        difference = replace(compare_columns(read, batch.schema), issues=issues)
        if difference.has_refused_cells:
            difference.raise_or_warn("error")
        raise


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
    check_output(out, where, force=force)
    as_text = out == "-" or out.lower().endswith(TEXT_SUFFIXES)
    with TableReading(model, where, on_mismatch, **dialect) as reading:
        if carried:
            check_carried(model, carried, reading.source.names, novelty=novelty)

        def write(lenient: bool) -> ScoredFile:
            parts = reading.batches(lenient, carried, as_text=as_text, verbatim=as_text, on_progress=on_progress)
            counts, log_odds = (
                np.zeros(len(model.decision.classes), dtype=np.int64),
                LogOddsHistogram() if prevalence else None,
            )

            def results() -> Iterator[pa.RecordBatch]:
                for batch, extra in parts:
                    decided, columns = decide_batch(model, batch, reading.issues, reading.novelty)
                    counts[:] += np.bincount(decided.codes, minlength=len(counts))
                    if log_odds is not None:
                        log_odds.add(decided.scores[:, 1] - decided.scores[:, 0])
                    distances = record_novelty(model, columns, threads=1) if novelty else None
                    yield result_batch(model, extra, decided, distances)

            batches = results()
            first = next(batches, None)
            if first is None:
                raise DataError(f"{reading.source.description} has no rows: there is nothing to score.")
            with open_sink(out, first.schema, safe_csv=safe_csv, harmless=("decided_by",)) as sink:
                sink.write(first)
                for batch in batches:
                    sink.write(batch)
                # Before the file is put in its place: a table that is refused leaves none behind.
                difference = reading.check()
            predicted = {str(label): int(count) for label, count in zip(model.decision.classes, counts, strict=True)}
            estimate = None
            if log_odds is not None and (priors := model.decision.expected_priors) is not None:
                estimate = log_odds.estimate(float(priors[1]))
            return ScoredFile(int(counts.sum()), predicted, difference, reading.novelty.report(), estimate)

        # What went to a pipe cannot be taken back.
        is_pipe = out == "-" or (Path(out).exists() and not Path(out).is_file())
        scored: ScoredFile = reading.in_kind(write, once=is_pipe)
    return scored


def check_carried(model: TableModel, carried: Sequence[str], names: Sequence[str], *, novelty: bool = False) -> None:
    """Refuse carried columns that the table does not have, or that would hide a result."""
    absent = [name for name in carried if name not in names]
    if absent:
        has, hint = some_of([*map(repr, names)]), did_you_mean(absent[0], names)
        raise ContractError(f"There is no column {absent[0]!r} to carry through.{hint} The table has: {has}.")
    hidden = [name for name in carried if name in result_names(model, novelty=novelty)]
    if hidden:
        raise ParameterError(
            f"The column {hidden[0]!r} cannot be carried through: a result has this name. Rename it in the table."
        )


def result_names(model: TableModel, *, novelty: bool = False) -> tuple[str, ...]:
    """Names of the columns of results, with the novelty of each record where that is asked for."""
    medoids = () if model.method is None else tuple(f"nearest_medoid_{label}" for label in model.decision.classes)
    return ("prediction", "score", "margin", *medoids, "decided_by", *(["novelty"] if novelty else []))


def result_batch(
    model: TableModel, carried: pa.RecordBatch, decided: Decisions, novelty: Array | None = None
) -> pa.RecordBatch:
    """A batch of results, behind the carried columns.

    ``score`` is the probability of the second of two classes, else of the predicted one (the margin where the model
    has no probabilities); ``nearest_medoid_…`` is the training row of the nearest medoid of each class.
    """
    decision, method = model.decision, model.method
    if not decision.probabilistic:
        scores = decided.margins
    elif len(model.decision.classes) == 2:
        scores = decision.probabilities_of_second(decided.scores)
    else:
        scores = np.take_along_axis(decision.probabilities(decided.scores), decided.codes[:, None], axis=1)[:, 0]
    columns: list[Any] = [*carried.columns, _chosen(model.decision.classes, decided.codes), scores, decided.margins]
    if method is not None and decided.nearest is not None:
        columns += [method.medoid_rows.take(decided.nearest[:, code]) for code in range(len(model.decision.classes))]
    columns.append(_chosen(model.deciders, decided.by_circuit.astype(np.intp)))
    columns += [] if novelty is None else [novelty]
    arrays = [column if isinstance(column, pa.Array) else pa.array(column) for column in columns]
    return pa.record_batch(arrays, names=[*carried.schema.names, *result_names(model, novelty=novelty is not None)])


def _chosen(values: Sequence[Any], places: Codes) -> Any:
    """The value at each place; Arrow's functions, which are slow to import, only where texts differ."""
    if isinstance(values[0], str):
        same = places[0] if len(places) else 0
        if (places == same).all():
            return pa.repeat(values[same], len(places))
        return pa.array(values).take(pa.array(places))
    return np.array(values)[places]


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
            for batch, _ in reading.batches(lenient, on_progress=on_progress):
                scores = decide_batch(model, batch, reading.issues)[0].scores
                histogram.add(scores[:, 1] - scores[:, 0])
            return histogram

        histogram: LogOddsHistogram = reading.in_kind(count)
        reading.check()
    if histogram.n_rows == 0:
        raise DataError(f"{where} has no rows: there is no prevalence to estimate.")
    return histogram.estimate(float(priors[1]))
