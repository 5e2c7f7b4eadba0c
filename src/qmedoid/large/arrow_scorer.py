"""Arrow batches to batches of results, as a function that any engine can send to its workers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa

from qmedoid.arrays import row_slices
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.large.shared import cached_model
from qmedoid.tables.arrow import BATCH_ROWS, as_table
from qmedoid.tables.difference import Issues, OnMismatch, compare_columns
from qmedoid.tables.results import ResultColumns, ScoreSettings
from qmedoid.tables.scoring import decide_rows
from qmedoid.tables.writing import OnBadRow


def arrow_scorer(
    path: str | Path,
    *,
    columns: Sequence[str] = (),
    add: Sequence[str] = (),
    n_reasons: int = 3,
    on_mismatch: OnMismatch = "error",
    on_bad_row: OnBadRow = "refuse",
) -> "ArrowScorer":
    """A function from Arrow batches to batches of results, for Spark, Ray, DuckDB, Polars and other engines.

    Parameters
    ----------
    path : str or Path
        A saved model, at a path that all workers can read.
    columns, add, n_reasons, on_mismatch, on_bad_row
        As `SavedModel.score_table` has them.

    Returns
    -------
    ArrowScorer
        Its pickle holds the path, the SHA-256 of the file and these options, and not the model: each process loads it
        once, and refuses another file under that path.

    Raises
    ------
    ModelError
        The file is no saved model, or the model does not have what is to be added.

    See Also
    --------
    SavedModel.score_table : the same results about a table in memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> from qmedoid import EvidenceClassifier, arrow_scorer
    >>> rows = pa.table({"a": [0.0, 0.1, 0.2, 1.0, 1.1, 1.2], "b": [5.0, 5.1, 5.2, 6.1, 6.0, 6.2]})
    >>> model = EvidenceClassifier(random_state=0).fit(rows.to_pandas(), [0, 0, 0, 1, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     scorer = arrow_scorer(model.save(Path(folder) / "small.qmedoid"), columns=["a"])
    ...     results = scorer(iter(rows.to_batches()))
    ...     print(pa.Table.from_batches(results).column_names[:3])
    ['a', 'prediction', 'score']
    """
    for name, given, kind in (("on_mismatch", on_mismatch, OnMismatch), ("on_bad_row", on_bad_row, OnBadRow)):
        if given not in get_args(kind):
            options = " or ".join(map(repr, get_args(kind)))
            raise ParameterError(f"The {name!r} parameter of arrow_scorer must be {options}. Got {given!r} instead.")
    for name, texts in (("columns", columns), ("add", add)):
        if isinstance(texts, str):
            raise ParameterError(
                f"The {name!r} parameter of arrow_scorer must be a list of names. Got the text {texts!r} instead."
            )
    model = cached_model(path)
    settings = ScoreSettings(tuple(columns), tuple(add), n_reasons, on_mismatch, on_bad_row)
    ResultColumns(model.model, settings).nothing(pa.schema([(name, pa.string()) for name in columns]))
    return ArrowScorer(str(Path(path).absolute()), model.sha256, settings)


@dataclass(frozen=True)
class ArrowScorer:
    """A function from Arrow batches to batches of results, made by `arrow_scorer`.

    It is called with an iterator of record batches of one schema, and yields batches of results: row for row, in their
    order, what `SavedModel.score_table` says of all of them together. Rows are scored in blocks of 65,536, however they
    arrive, so that batches out are other batches than those in. An iterator of empty batches gives one empty batch.

    What breaks the contract is an error at the block where it shows, before its results; notes are one warning after
    the last block. ``row``, where it is added, counts from the first row of the iterator.

    It can be pickled, and called from several threads at once.

    Attributes
    ----------
    path, sha256 : str
        The file of the model, and its hash.
    settings : ScoreSettings
        What was given to `arrow_scorer`.

    See Also
    --------
    arrow_scorer : makes one.

    Examples
    --------
    >>> import pickle
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pyarrow as pa
    >>> from qmedoid import EvidenceClassifier, arrow_scorer
    >>> rows = pa.table({"a": [0.0, 0.1, 0.2, 1.0, 1.1, 1.2], "b": [5.0, 5.1, 5.2, 6.1, 6.0, 6.2]})
    >>> model = EvidenceClassifier(random_state=0).fit(rows.to_pandas(), [0, 0, 0, 1, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sent = pickle.dumps(arrow_scorer(model.save(Path(folder) / "small.qmedoid")))
    ...     scorer = pickle.loads(sent)
    ...     print(scorer.schema(rows.schema).names[:2], len(scorer.reader(rows).read_all()))
    ['prediction', 'score'] 6
    """

    path: str
    sha256: str
    settings: ScoreSettings

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Results about the rows of some batches."""
        return self._results(batches, None)

    def reader(self, data: Any) -> pa.RecordBatchReader:
        """Results about what has the Arrow stream interface, one block after the other, as a stream with a schema.

        Parameters
        ----------
        data : RecordBatchReader, Arrow table, Polars data frame, DuckDB relation or the like

        Returns
        -------
        RecordBatchReader
            It reads its blocks from the data as they are requested; ``read_all()`` makes a table of them.
        """
        if not hasattr(data, "__arrow_c_stream__"):
            raise DataError(
                "The data must have the Arrow stream interface, as a RecordBatchReader or an Arrow table has. Got "
                f"{type(data).__name__} instead: call the scorer itself with an iterator of record batches."
            )
        given = data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
        return pa.RecordBatchReader.from_batches(self.schema(given.schema), self._results(given, given.schema))

    def schema(self, given: pa.Schema) -> pa.Schema:
        """The schema of the results about batches of a schema, for engines that ask for it before they run.

        Raises
        ------
        ContractError
            The columns are not those of the model, unless ``on_mismatch="warn"``, or lack a carried one.
        """
        return _Blocks(self, as_table(given.empty_table())).nothing.schema

    def _results(self, batches: Iterable[pa.RecordBatch], given: pa.Schema | None) -> Iterator[pa.RecordBatch]:
        """Results block by block; `given` is the schema of the batches, where it is known before the first."""
        blocks = None if given is None else _Blocks(self, as_table(given.empty_table()))
        waiting, n_waiting = list[pa.Table](), 0
        try:
            for number, batch in enumerate(batches):
                table = as_table(batch)
                blocks = _Blocks(self, table) if blocks is None else blocks
                waiting.append(blocks.in_schema(table, number))
                n_waiting += len(table)
                if n_waiting >= BATCH_ROWS:
                    rows = pa.concat_tables(waiting)
                    n_blocks = n_waiting // BATCH_ROWS
                    waiting, n_waiting = [rows.slice(n_blocks * BATCH_ROWS)], n_waiting % BATCH_ROWS
                    yield from blocks.results(rows.slice(0, n_blocks * BATCH_ROWS))
            if blocks is not None:
                if n_waiting or not blocks.n_rows:
                    yield from blocks.results(pa.concat_tables([blocks.empty, *waiting]))
                blocks.finish()
        except GeneratorExit:
            # Results were taken whose notes would not be heard otherwise.
            if blocks is not None and blocks.n_rows:
                blocks.finish()
            raise


class _Blocks:
    """Results about the blocks of one stream of rows, and what breaks the contract in them so far."""

    def __init__(self, scorer: ArrowScorer, first: pa.Table) -> None:
        self.settings, self.model = scorer.settings, cached_model(scorer.path, scorer.sha256).model
        self.empty, self.n_rows, self._issues = first.slice(0, 0), 0, Issues()
        self._columns = ResultColumns(self.model, self.settings)
        self._difference = compare_columns(self.model.contract, first.schema)
        if self.settings.on_mismatch == "error":
            self._difference.raise_or_warn("error")
        self.nothing = self._columns.nothing(self.empty.schema)

    def in_schema(self, table: pa.Table, number: int) -> pa.Table:
        """A batch, if it has the schema of the first one; columns without a value are taken in its types."""
        wanted = self.empty.schema
        pairs = zip(wanted, table.schema, strict=False)
        if table.column_names != wanted.names or any(new.type not in (old.type, pa.null()) for old, new in pairs):
            first, other = (", ".join(f"{one.name} {one.type}" for one in schema) for schema in (wanted, table.schema))
            raise DataError(
                "All batches must have the same columns in the same order, of the same types. The first has "
                f"({first}), and batch {number} (from 0) has ({other}): select and cast them before."
            )
        return table if table.schema.equals(wanted) else table.cast(wanted)

    def results(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        """Results about the next rows, in blocks; a broken contract is refused before them."""
        settings = self.settings
        for place in row_slices(len(rows), BATCH_ROWS):
            block = rows.slice(place.start, place.stop - place.start).combine_chunks()
            decided = decide_rows(self.model, block, self._issues, on_bad_row=settings.on_bad_row)
            made = self._columns.batch(block, decided, ("", self.n_rows))
            self.n_rows += len(block)
            if settings.on_mismatch == "error" and (now := replace(self._difference, issues=self._issues)).breaks:
                now.raise_or_warn("error")
            yield made

    def finish(self) -> None:
        """Give the notes about all rows as a warning."""
        replace(self._difference, issues=self._issues).raise_or_warn(self.settings.on_mismatch)
