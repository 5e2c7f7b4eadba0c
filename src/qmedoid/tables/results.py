"""Columns of results: what is written about every record, and what can be added to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Codes
from qmedoid.exceptions import ContractError, ModelError, ParameterError, some_of
from qmedoid.model.explanation import explained_by
from qmedoid.model.table import TableModel
from qmedoid.spelling import did_you_mean
from qmedoid.tables.cells import one_chunk
from qmedoid.tables.novelty import record_novelty
from qmedoid.tables.scoring import DecidedRows

ADDED = ("probabilities", "source", "row", "reasons", "sentence", "novelty", "flags")
"""What can be added to the results, in the order of their columns."""
MOST_IN_SENTENCE = 3
"""Reasons that a sentence names."""


@dataclass(frozen=True)
class ResultColumns:
    """The columns of results about records, of one model.

    Attributes
    ----------
    model : TableModel
    add : tuple of str
        Some of `ADDED`: all class probabilities, file and row (from 0) of a record, the columns that contributed
        most to its decision, the decision as a sentence, its novelty, and why a row could not be decided about.
    n_reasons : int
        Columns that are named at most as reasons.
    """

    model: TableModel
    add: tuple[str, ...] = ()
    n_reasons: int = 3

    @classmethod
    def of(cls, model: TableModel, add: Sequence[str] = (), n_reasons: int = 3) -> "ResultColumns":
        """The columns that are asked for; raise for what there is not, or what this model does not have."""
        unknown = [name for name in add if name not in ADDED]
        if unknown:
            raise ParameterError(f"What is added must be among {', '.join(ADDED)}. Got {unknown[0]!r} instead.")
        if "probabilities" in add and not model.decision.probabilistic:
            raise ModelError("This model has no probabilities, only margins: fit a MedoidClassifier.")
        if "reasons" in add or "sentence" in add:
            explained_by(model)
        return cls(model, tuple(name for name in ADDED if name in add), n_reasons)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        classes = self.model.decision.classes
        medoids = () if self.model.method is None else tuple(f"nearest_medoid_{label}" for label in classes)
        added = {"probabilities": tuple(f"probability_{label}" for label in classes), "flags": ("flag",)}
        more = (name for one in self.add for name in added.get(one, (one,)))
        return ("prediction", "score", "margin", *medoids, "decided_by", *more)

    def check_carried(self, carried: Sequence[str], names: Sequence[str]) -> None:
        """Refuse carried columns that the table does not have, or that would hide a result."""
        absent = [name for name in carried if name not in names]
        if absent:
            has, hint = some_of([*map(repr, names)]), did_you_mean(absent[0], names)
            raise ContractError(f"There is no column {absent[0]!r} to carry through.{hint} The table has: {has}.")
        hidden = [name for name in carried if name in self.names]
        if hidden:
            raise ParameterError(
                f"The column {hidden[0]!r} cannot be carried through: a result has this name. Rename it in the table."
            )

    def batch(
        self,
        carried: pa.RecordBatch | pa.Table,
        part: DecidedRows,
        origin: tuple[str, int] = ("", 0),
        *,
        keep_bad: bool = False,
    ) -> pa.RecordBatch:
        """A batch of results, behind the carried columns.

        ``score`` is the probability of the second of two classes, else of the predicted one (the margin where the model
        has no probabilities); ``nearest_medoid_…`` is the training row of the nearest medoid of each class.

        Parameters
        ----------
        carried : RecordBatch or Table
            Columns of all rows.
        part : DecidedRows
            Decisions about those that are not bad.
        origin : tuple of str and int
            Name of the file, and place of the first of these rows in it.
        keep_bad : bool
            Whether bad rows are kept, with empty results, or left out.
        """
        bad, columns = part.bad, self._of_decisions(part)
        before = [one_chunk(column) for column in carried.columns]
        places = self._places(part, *origin)
        if bad is not None and keep_bad:
            back = pa.array(np.cumsum(~bad.is_bad) - 1, mask=bad.is_bad)
            columns = {name: column.take(back) for name, column in columns.items()}
        elif bad is not None:
            good = pa.array(~bad.is_bad)
            before = [column.filter(good) for column in before]
            places = {name: column.filter(good) for name, column in places.items()}
        arrays = [*before, *(places[name] if name in places else columns[name] for name in self.names)]
        return pa.record_batch(arrays, names=[*carried.schema.names, *self.names])

    def _places(self, part: DecidedRows, source: str, first_row: int) -> dict[str, pa.Array]:
        """The columns that say where a row stands and why it is bad, by name, of all rows."""
        n_rows, places = part.n_rows, {}
        if "source" in self.add:
            places["source"] = pa.repeat(source, n_rows)
        if "row" in self.add:
            places["row"] = pa.array(np.arange(first_row, first_row + n_rows))
        if "flags" in self.add:
            places["flag"] = pa.nulls(n_rows, pa.string()) if part.bad is None else part.bad.reasons
        return places

    def _of_decisions(self, part: DecidedRows) -> dict[str, pa.Array]:
        """The columns of decided rows, by name, without those that say where a row stands."""
        decision, method, decided = self.model.decision, self.model.method, part.decided
        classes = decision.classes
        if not decision.probabilistic:
            scores = decided.margins
        elif len(classes) == 2:
            scores = decision.probabilities_of_second(decided.scores)
        else:
            scores = np.take_along_axis(decision.probabilities(decided.scores), decided.codes[:, None], axis=1)[:, 0]
        columns: list[Any] = [_chosen(classes, decided.codes), scores, decided.margins]
        if method is not None and decided.nearest is not None:
            columns += [method.rows.numbers.take(decided.nearest[:, code]) for code in range(len(classes))]
        columns.append(_chosen(self.model.deciders, decided.by_circuit.astype(np.intp)))
        if "probabilities" in self.add:
            columns += list(np.ascontiguousarray(decision.probabilities(decided.scores).T))
        if "reasons" in self.add:
            columns.append(self._reasons(part, self.n_reasons))
        if "sentence" in self.add:
            columns.append(self._sentences(part))
        if "novelty" in self.add:
            n_rows = len(decided.codes)
            columns.append(record_novelty(self.model, part.encoded, threads=1) if n_rows else np.zeros(0))
        names = [name for name in self.names if name not in ("source", "row", "flag")]
        arrays = [pa.array(column) if isinstance(column, np.ndarray) else column for column in columns]
        return dict(zip(names, arrays, strict=True))

    def _reasons(self, part: DecidedRows, count: int) -> pa.Array:
        if not len(part.decided.codes):
            return pa.array([], pa.string())
        from qmedoid.tables.reasons import reason_texts  # with Arrow's functions, which are slow to import

        return reason_texts(self.model, part.records, part.encoded, part.decided, count)

    def _sentences(self, part: DecidedRows) -> pa.Array:
        if not len(part.decided.codes):
            return pa.array([], pa.string())
        from qmedoid.tables.reasons import sentence_texts

        return sentence_texts(self.model, part.decided, self._reasons(part, min(self.n_reasons, MOST_IN_SENTENCE)))

    def nothing(self, carried: pa.Schema) -> pa.RecordBatch:
        """The results of no rows."""
        return self.batch(pa.RecordBatch.from_pylist([], schema=carried), DecidedRows.none(self.model))


def _chosen(values: Sequence[Any], places: Codes) -> Any:
    """The value at each place; Arrow's functions, which are slow to import, only where texts differ."""
    if isinstance(values[0], str):
        same = places[0] if len(places) else 0
        if (places == same).all():
            return pa.repeat(values[same], len(places))
        return pa.array(values).take(pa.array(places))
    return np.array(values)[places]
