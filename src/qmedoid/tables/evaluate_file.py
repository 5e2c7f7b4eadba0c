"""Decisions about a table in files, next to the classes that it holds."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.exceptions import ContractError, DataError, some_of
from qmedoid.model.seen_rows import Hashes
from qmedoid.model.table import Decisions, TableModel
from qmedoid.spelling import did_you_mean
from qmedoid.tables.bad_rows import NAMES, BadRows, OnBadRow, bad_rows_sink, set_aside
from qmedoid.tables.difference import OnMismatch
from qmedoid.tables.evaluating import joined
from qmedoid.tables.novelty import NoveltyReport
from qmedoid.tables.row_hashes import row_hashes
from qmedoid.tables.scoring import OnProgress, TableReading
from qmedoid.tables.source import Origin
from qmedoid.tables.targets import label_codes
from qmedoid.tables.writing import check_output


class EvaluatedFile(NamedTuple):
    """Class codes of n rows (those of `qmedoid.tables.targets`), decisions about them and their hashes, if kept.

    `bad_rows` more could not be decided about, and `first_bad` says where the first of them is, and why.
    """

    codes: Codes
    decided: Decisions
    hashes: Hashes | None
    novelty: NoveltyReport
    bad_rows: int
    first_bad: str | None


def evaluate_file(
    model: TableModel,
    where: str,
    target: str,
    *,
    on_mismatch: OnMismatch = "error",
    on_bad_row: OnBadRow = "refuse",
    bad_rows: str | None = None,
    force: bool = False,
    on_progress: OnProgress | None = None,
    **dialect: Any,
) -> EvaluatedFile:
    """Decide about every record of a table, and read its classes from the column `target`.

    Rows that cannot be decided about (`qmedoid.tables.bad_rows`) refuse the table, or are left out and, if there is
    one, written to the file `bad_rows` as they were.
    """
    if bad_rows is not None:
        check_output(bad_rows, where, force=force, columns=NAMES)
    with TableReading(model, where, on_mismatch, on_bad_row=on_bad_row, **dialect) as reading:
        source = reading.source
        if target not in source.names:
            raise ContractError(
                f"There is no column {target!r} with the classes.{did_you_mean(target, source.names)} The table "
                f"has: {some_of([*map(repr, source.names)])}. Pass --target."
            )
        # A row that is set aside is written with all its cells, where there is no line of text to write.
        others: list[str] = [] if bad_rows is None or source.is_all_text else list(source.names)
        extra = list(dict.fromkeys([target, *others]))

        def decide(lenient: bool) -> EvaluatedFile:
            parts, n_bad, first_bad = list[tuple[Codes, Decisions, Hashes | None]](), 0, None
            with bad_rows_sink(bad_rows, safe_csv=True) as aside:
                for part, more in reading.decided(lenient, extra, as_text=True, on_progress=on_progress):
                    labels = more.column(target)
                    if part.bad is not None:
                        n_bad += len(part.bad.places)
                        first_bad = first_bad or _where_and_why(part.bad, source.origin)
                        if aside is not None:
                            set_aside(aside, part.bad, source.origin, more)
                        labels = labels.filter(pa.array(~part.bad.is_bad))
                    if len(labels):
                        decided = part.decided._replace(nearest=None)
                        codes = label_codes(labels, model.decision.classes)
                        parts.append((codes, decided, row_hashes(model, part.records)))
                # Before the file is put in its place: a table that is refused leaves none behind.
                reading.check()
                if not parts and n_bad:
                    raise DataError(f"None of the {n_bad:,} rows could be read, the first {first_bad}.")
                if not parts:
                    raise DataError("The table has no rows: there is nothing to evaluate.")
            of_rows, decisions, hashes = zip(*parts, strict=True)
            return EvaluatedFile(
                np.concatenate(of_rows), joined(decisions), None if model.seen is None else np.concatenate(hashes),
                reading.novelty.report(), n_bad, first_bad,
            )  # fmt: skip

        # What went to a pipe cannot be taken back.
        is_pipe = bad_rows is not None and Path(bad_rows).exists() and not Path(bad_rows).is_file()
        found: EvaluatedFile = reading.in_kind(decide, once=is_pipe)
    return found


def _where_and_why(bad: BadRows, origin: Origin) -> str:
    """Where the first bad row of a batch is, and what is wrong with it."""
    place = int(bad.places[0])
    written = origin.written([place])
    at = f"row {origin.first_row + place:,} (from 0)" if written is None else f"line {written[0].line:,}"
    return f"at {at} of {origin.source}: {bad.reasons[place].as_py()}"
