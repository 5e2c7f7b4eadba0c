"""Tables in files to files of decisions, batch by batch, and what a whole table says of its classes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.metrics.prevalence import LogOddsHistogram, PrevalenceEstimate
from qmedoid.metrics.thresholds import threshold_at_count
from qmedoid.model.table import Decisions, TableModel
from qmedoid.tables.bad_rows import NAMES, OnBadRow, bad_rows_sink, set_aside
from qmedoid.tables.difference import Difference, OnMismatch
from qmedoid.tables.novelty import NoveltyCounts, NoveltyReport, NoveltyTally
from qmedoid.tables.results import ResultColumns
from qmedoid.tables.scoring import OnProgress, TableReading
from qmedoid.tables.writing import TEXT_SUFFIXES, Sink, check_output, open_sink

T = TypeVar("T")


class ScoredFile(NamedTuple):
    """How many rows were written and called each class, how the table differs from the contract and the training rows.

    `bad_rows` more could not be decided about. `prevalence` is how frequent the second class seems to be, where that
    was asked for.
    """

    rows: int
    bad_rows: int
    predicted: dict[str, int]
    difference: Difference
    novelty: NoveltyReport
    prevalence: PrevalenceEstimate | None


class FileTally(NamedTuple):
    """What was counted while a file was scored; those of several files can be added up."""

    rows: int
    bad_rows: int
    predicted: dict[str, int]
    difference: Difference
    novelty: NoveltyCounts
    log_odds: LogOddsHistogram | None

    def scored(self, model: TableModel) -> ScoredFile:
        """What the counts say."""
        estimate, priors = None, model.decision.expected_priors
        if self.log_odds is not None and self.rows and priors is not None:
            estimate = self.log_odds.estimate(float(priors[1]))
        novelty = NoveltyTally(model, self.novelty).report()
        return ScoredFile(self.rows, self.bad_rows, self.predicted, self.difference, novelty, estimate)


def score_file(model: TableModel, where: str, out: str, **how: Any) -> ScoredFile:
    """Score a table into a file, by one atomic replace, or to standard output (``"-"``); `how` as in `tally_file`."""
    return tally_file(model, where, out, **how).scored(model)


def tally_file(
    model: TableModel,
    where: str,
    out: str,
    *,
    carried: Sequence[str] = (),
    add: Sequence[str] = (),
    n_reasons: int = 3,
    on_mismatch: OnMismatch = "error",
    on_bad_row: OnBadRow = "refuse",
    bad_rows: str | None = None,
    safe_csv: bool = True,
    force: bool = False,
    prevalence: bool = False,
    on_progress: OnProgress | None = None,
    types: Mapping[str, pa.DataType] | None = None,
    facts: Callable[[int, int, dict[str, int]], Mapping[str, str]] | None = None,
    warns: bool = True,
    **dialect: Any,
) -> FileTally:
    """Score a table into a file, and count what its rows were called.

    Carried columns go through to the output, before the results; `add` names further results of
    `qmedoid.tables.results.ADDED`, with `n_reasons` columns among the reasons. A table that breaks the contract is
    refused, or scored as well as possible; one without rows gives results without rows. Only `force` overwrites a file
    that holds something else than results. With `prevalence` log-odds are counted, which show that of the second class.

    Rows that cannot be decided about (`qmedoid.tables.bad_rows`) refuse the table, are kept with empty results and a
    column ``flag`` that says why, or are left out and written to the file `bad_rows`, as they were.

    Of a file that is a part of a table, `types` are those of carried columns in all parts. `facts` makes what the foot
    of a Parquet file says, of rows, bad rows and predicted classes. Without `warns` nothing is said of the difference.
    """
    check_output(out, where, force=force)
    if bad_rows is not None:
        check_output(bad_rows, where, force=force, columns=NAMES)
    columns = ResultColumns.of(model, [*add, *(["flags"] if on_bad_row == "flag" else [])], n_reasons)
    is_text = out == "-" or out.lower().endswith(TEXT_SUFFIXES)
    with TableReading(model, where, on_mismatch, on_bad_row=on_bad_row, types=types, **dialect) as reading:
        columns.check_carried(carried, reading.source.names)
        # A row that is set aside is written with all its cells, where there is no line of text to write.
        others: Sequence[str] = [] if bad_rows is None or reading.source.is_all_text else reading.source.names
        extra = list(dict.fromkeys([*carried, *others]))
        # Whatever a text holds, all parts of a table have columns of the same type.
        as_text = is_text or types is not None

        def write(lenient: bool) -> FileTally:
            how: dict[str, Any] = {"as_text": as_text, "verbatim": is_text, "on_progress": on_progress}
            parts = reading.decided(lenient, extra, **how)
            counts, n_bad = np.zeros(len(model.decision.classes), dtype=np.int64), 0
            log_odds = LogOddsHistogram() if prevalence else None

            def results(aside: Sink | None) -> Iterator[pa.RecordBatch]:
                nonlocal n_bad
                for part, more in parts:
                    decided, origin = part.decided, reading.source.origin
                    counts[:] += np.bincount(decided.codes, minlength=len(counts))
                    if log_odds is not None:
                        log_odds.add(decided.scores[:, 1] - decided.scores[:, 0])
                    if part.bad is not None:
                        n_bad += len(part.bad.places)
                        if aside is not None:
                            set_aside(aside, part.bad, origin, more)
                    yield columns.batch(more.select(list(carried)), part, origin[:2], keep_bad=on_bad_row == "flag")

            def predicted() -> dict[str, int]:
                return {str(label): int(count) for label, count in zip(model.decision.classes, counts, strict=True)}

            def foot() -> Mapping[str, str]:
                return {} if facts is None else facts(int(counts.sum()), n_bad, predicted())

            with bad_rows_sink(bad_rows, safe_csv=safe_csv) as aside:
                batches = results(aside)
                first = next(batches, None)
                if first is None:
                    first = columns.nothing(reading.schema(carried, as_text=as_text))
                said = None if facts is None else foot
                with open_sink(out, first.schema, safe_csv=safe_csv, harmless=("decided_by",), facts=said) as sink:
                    sink.write(first)
                    for batch in batches:
                        sink.write(batch)
                    # Before the file is put in its place: a table that is refused leaves none behind.
                    difference = reading.check(warns=warns)
            return FileTally(int(counts.sum()), n_bad, predicted(), difference, reading.novelty.counts, log_odds)

        # What went to a pipe cannot be taken back.
        is_pipe = any(
            one == "-" or (Path(one).exists() and not Path(one).is_file()) for one in (out, bad_rows) if one is not None
        )
        scored: FileTally = reading.in_kind(write, once=is_pipe)
    return scored


def estimate_in_file(model: TableModel, where: str, **reading: Any) -> PrevalenceEstimate:
    """How frequent the second class is in a table that can be read once more afterwards, so not in a pipe.

    `reading` are parameters of `TableReading`, and `on_progress`.
    """
    # Another prevalence is refused where it has no meaning, before anything is read.
    model.decision.at_priors(0.5)
    priors = model.decision.expected_priors
    assert priors is not None, "a model without priors cannot be shifted"

    def count(parts: Iterator[Decisions]) -> LogOddsHistogram:
        histogram = LogOddsHistogram()
        for decided in parts:
            histogram.add(decided.scores[:, 1] - decided.scores[:, 0])
        return histogram

    how = "to estimate the prevalence", "or give the prevalence as a number"
    histogram = _first_pass(model, where, count, *how, **reading)
    if histogram.n_rows == 0:
        raise DataError(f"{where} has no rows: there is no prevalence to estimate.")
    return histogram.estimate(float(priors[1]))


class TopCut(NamedTuple):
    """Where the highest scores of a table begin: log-odds above which they lie, and how many rows there are."""

    log_odds: float
    rows: int


def top_in_file(model: TableModel, where: str, count: int, **reading: Any) -> TopCut:
    """The log-odds above which the highest scores of a table lie; it is read once more afterwards, so it is no pipe.

    Of records with equal scores all or none are above: those that would exceed the count are not. No more scores are
    held than twice the count and a batch. `reading` are parameters of `TableReading`, and `on_progress`.
    """
    model.decision.check_cuttable()

    def find(parts: Iterator[Decisions]) -> TopCut:
        highest, rows = np.zeros(0), 0
        for decided in parts:
            rows += len(decided.codes)
            highest = np.concatenate([highest, decided.scores[:, 1] - decided.scores[:, 0]])
            # One more than the count, as the cut lies between two scores.
            if len(highest) > 2 * count + 1:
                highest = np.partition(highest, -count - 1)[-count - 1 :]
        return TopCut(threshold_at_count(highest, count) if rows else 0.0, rows)

    how = "to find its highest scores", "or cut by --threshold or --alert-rate"
    return _first_pass(model, where, find, *how, **reading)


def _first_pass(
    model: TableModel,
    where: str,
    gather: Callable[[Iterator[Decisions]], T],
    why: str,
    instead: str,
    *,
    on_mismatch: OnMismatch,
    on_progress: OnProgress | None = None,
    **reading: Any,
) -> T:
    """What is gathered from all decisions about a table, which is read once more afterwards."""
    with TableReading(model, where, on_mismatch, **reading) as table:
        if not table.can_repeat:
            raise ParameterError(
                f"The table is read twice {why}, and a pipe can be read once: write it to a file, {instead}."
            )
        found: T = table.in_kind(
            lambda lenient: gather(part.decided for part, _ in table.decided(lenient, on_progress=on_progress))
        )
        table.check()
    return found
