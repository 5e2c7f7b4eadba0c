"""Columns of results: what is written about every record, and what can be added to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import ContractError, ModelError, ParameterError, some_of
from qmedoid.model.explanation import explained_by
from qmedoid.model.table import Decisions, TableModel
from qmedoid.tables.cells import one_chunk
from qmedoid.tables.novelty import record_novelty

ADDED = ("probabilities", "source", "row", "reasons", "novelty")
"""What can be added to the results, in the order of their columns."""


@dataclass(frozen=True)
class ResultColumns:
    """The columns of results about records, of one model.

    Attributes
    ----------
    model : TableModel
    add : tuple of str
        Some of `ADDED`: all class probabilities, file and row (from 0) of a record, the columns that contributed
        most to its decision, and its novelty.
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
        if "reasons" in add:
            explained_by(model)
        return cls(model, tuple(name for name in ADDED if name in add), n_reasons)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in their order."""
        classes = self.model.decision.classes
        medoids = () if self.model.method is None else tuple(f"nearest_medoid_{label}" for label in classes)
        added = {"probabilities": tuple(f"probability_{label}" for label in classes)}
        more = (name for one in self.add for name in added.get(one, (one,)))
        return ("prediction", "score", "margin", *medoids, "decided_by", *more)

    def check_carried(self, carried: Sequence[str], names: Sequence[str]) -> None:
        """Refuse carried columns that the table does not have, or that would hide a result."""
        absent = [name for name in carried if name not in names]
        if absent:
            raise ContractError(f"There is no column {absent[0]!r} to carry through. The table has: {some_of(names)}.")
        hidden = [name for name in carried if name in self.names]
        if hidden:
            raise ParameterError(
                f"The column {hidden[0]!r} cannot be carried through: a result has this name. Rename it in the table."
            )

    def batch(
        self,
        carried: pa.RecordBatch | pa.Table,
        decided: Decisions,
        records: pa.RecordBatch | pa.Table | None = None,
        encoded: Sequence[Array] = (),
        source: str = "",
        first_row: int = 0,
    ) -> pa.RecordBatch:
        """A batch of results, behind the carried columns.

        ``score`` is the probability of the second of two classes, else of the predicted one (the margin where the model
        has no probabilities); ``nearest_medoid_…`` is the training row of the nearest medoid of each class.

        Parameters
        ----------
        carried : RecordBatch or Table
        decided : Decisions
        records, encoded : RecordBatch, sequence of ndarray
            The records under the names of the contract, for the reasons, and their encoded columns.
        source, first_row : str, int
            Name of the file, and place of the first of these rows in it.
        """
        decision, method = self.model.decision, self.model.method
        n_classes, n_rows = len(decision.classes), len(decided.codes)
        if not decision.probabilistic:
            scores = decided.margins
        elif n_classes == 2:
            scores = decision.probabilities_of_second(decided.scores)
        else:
            scores = np.take_along_axis(decision.probabilities(decided.scores), decided.codes[:, None], axis=1)[:, 0]
        columns: list[Any] = [*carried.columns, _chosen(decision.classes, decided.codes), scores, decided.margins]
        if method is not None and decided.nearest is not None:
            columns += [method.medoid_rows.take(decided.nearest[:, code]) for code in range(n_classes)]
        columns.append(_chosen(self.model.deciders, decided.by_circuit.astype(np.intp)))
        if "probabilities" in self.add:
            columns += list(np.ascontiguousarray(decision.probabilities(decided.scores).T))
        if "source" in self.add:
            columns.append(pa.repeat(source, n_rows))
        if "row" in self.add:
            columns.append(np.arange(first_row, first_row + n_rows))
        if "reasons" in self.add:
            columns.append(self._reasons(records, encoded, decided))
        if "novelty" in self.add:
            columns.append(record_novelty(self.model, encoded, threads=1) if n_rows else np.zeros(0))
        arrays = [pa.array(column) if isinstance(column, np.ndarray) else one_chunk(column) for column in columns]
        return pa.record_batch(arrays, names=[*carried.schema.names, *self.names])

    def _reasons(
        self, records: pa.RecordBatch | pa.Table | None, encoded: Sequence[Array], decided: Decisions
    ) -> pa.Array:
        if records is None:
            return pa.array([], pa.string())
        from qmedoid.tables.reasons import reason_texts  # with Arrow's functions, which are slow to import

        return reason_texts(self.model, records, encoded, decided, self.n_reasons)

    def nothing(self, carried: pa.Schema) -> pa.RecordBatch:
        """The results of no rows."""
        n_classes = len(self.model.decision.classes)
        nearest = None if self.model.method is None else np.zeros((0, n_classes), dtype=np.intp)
        codes = np.zeros(0, dtype=np.intp)
        decided = Decisions(codes, np.zeros((0, n_classes)), np.zeros(0), codes.astype(np.bool_), nearest)
        return self.batch(pa.RecordBatch.from_pylist([], schema=carried), decided)


def _chosen(values: Sequence[Any], places: Codes) -> Any:
    """The value at each place; Arrow's functions, which are slow to import, only where texts differ."""
    if isinstance(values[0], str):
        same = places[0] if len(places) else 0
        if (places == same).all():
            return pa.repeat(values[same], len(places))
        return pa.array(values).take(pa.array(places))
    return np.array(values)[places]
