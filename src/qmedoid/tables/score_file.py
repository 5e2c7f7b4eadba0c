"""Tables in files to files of decisions, batch by batch, and what a whole table says of its classes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError, ParameterError
from qmedoid.metrics.prevalence import LogOddsHistogram, PrevalenceEstimate
from qmedoid.model.table import TableModel
from qmedoid.tables.difference import Difference, OnMismatch
from qmedoid.tables.novelty import NoveltyReport
from qmedoid.tables.results import ResultColumns
from qmedoid.tables.scoring import OnProgress, TableReading, decide_batch
from qmedoid.tables.writing import TEXT_SUFFIXES, check_output, open_sink


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
    add: Sequence[str] = (),
    n_reasons: int = 3,
    on_mismatch: OnMismatch = "error",
    safe_csv: bool = True,
    force: bool = False,
    prevalence: bool = False,
    on_progress: OnProgress | None = None,
    **dialect: Any,
) -> ScoredFile:
    """Score a table into a file, by one atomic replace, or to standard output (``"-"``).

    Carried columns go through to the output, before the results; `add` names further results of
    `qmedoid.tables.results.ADDED`, with `n_reasons` columns among the reasons. A table that breaks the contract is
    refused, or scored as well as possible; one without rows gives results without rows. Only `force` overwrites a file
    that holds something else than results. With `prevalence` that of the second class is estimated.
    """
    check_output(out, where, force=force)
    columns = ResultColumns.of(model, add, n_reasons)
    as_text = out == "-" or out.lower().endswith(TEXT_SUFFIXES)
    with TableReading(model, where, on_mismatch, **dialect) as reading:
        columns.check_carried(carried, reading.source.names)

        def write(lenient: bool) -> ScoredFile:
            parts = reading.batches(lenient, carried, as_text=as_text, verbatim=as_text, on_progress=on_progress)
            counts, log_odds = (
                np.zeros(len(model.decision.classes), dtype=np.int64),
                LogOddsHistogram() if prevalence else None,
            )

            def results() -> Iterator[pa.RecordBatch]:
                for batch, extra in parts:
                    decided, encoded = decide_batch(model, batch, reading.issues, reading.novelty)
                    counts[:] += np.bincount(decided.codes, minlength=len(counts))
                    if log_odds is not None:
                        log_odds.add(decided.scores[:, 1] - decided.scores[:, 0])
                    yield columns.batch(extra, decided, batch, encoded, *reading.source.origin)

            batches = results()
            first = next(batches, None)
            if first is None:
                first = columns.nothing(reading.schema(carried, as_text=as_text))
            with open_sink(out, first.schema, safe_csv=safe_csv, harmless=("decided_by",)) as sink:
                sink.write(first)
                for batch in batches:
                    sink.write(batch)
                # Before the file is put in its place: a table that is refused leaves none behind.
                difference = reading.check()
            predicted = {str(label): int(count) for label, count in zip(model.decision.classes, counts, strict=True)}
            estimate = None
            if log_odds is not None and counts.any() and (priors := model.decision.expected_priors) is not None:
                estimate = log_odds.estimate(float(priors[1]))
            return ScoredFile(int(counts.sum()), predicted, difference, reading.novelty.report(), estimate)

        # What went to a pipe cannot be taken back.
        is_pipe = out == "-" or (Path(out).exists() and not Path(out).is_file())
        scored: ScoredFile = reading.in_kind(write, once=is_pipe)
    return scored


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
