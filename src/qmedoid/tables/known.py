"""The rows of a table that lie nearest to a record, by the distance that the model measures to its medoids."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ModelError
from qmedoid.methods.base import usable_coordinates
from qmedoid.model.table import TableModel
from qmedoid.tables.encode import Found, encode_batch
from qmedoid.tables.labels import label_codes
from qmedoid.tables.records import plain_records

N_SHOWN = 5
"""Rows that are shown at most."""


class NearestRows:
    """The rows nearest to one record, found in one pass over the batches of a table.

    Of rows that are equally near the first are kept. Rows with cells that the model cannot read are passed over.
    """

    def __init__(self, model: TableModel, record: pa.Table, n_shown: int = N_SHOWN) -> None:
        stage = model.method
        if stage is None:
            raise ModelError("This model is a circuit alone: it measures no distance by which rows could be near.")
        self._model, self._stage, self._n_shown = model, stage, n_shown
        self._at = self._places(record, Found())
        self._kept: list[tuple[float, int, Any, dict[str, Any]]] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch | pa.Table, labels: pa.Array | pa.ChunkedArray | None, found: Found) -> None:
        """Look at a batch; `labels` are its cells of the target column, if it has one."""
        apart = self._places(batch, found) - self._at
        distances = np.sqrt((apart * apart).sum(axis=1))
        distances[np.isnan(distances)] = np.inf
        nearest = np.argsort(distances, kind="stable")[: self._n_shown]
        nearest = nearest[np.isfinite(distances[nearest])]
        codes = None if labels is None else label_codes(labels, self._model.classes)
        part = pa.table(batch.select(self._shown(batch.schema.names)).columns, self._shown(batch.schema.names))
        records = plain_records(part.take(pa.array(nearest)))
        for place, record in zip(nearest.tolist(), records, strict=True):
            code = -1 if codes is None else int(codes[place])
            label = self._model.classes[code] if code >= 0 else None
            self._kept.append((float(distances[place]), self._rows + place, label, record))
        self._kept = sorted(self._kept, key=lambda one: one[:2])[: self._n_shown]
        self._rows += len(batch)

    def report(self) -> dict[str, Any]:
        """The nearest rows, fit for JSON; the nearest first."""
        if not self._kept:
            raise DataError(f"None of the {self._rows:,} known rows can be compared with the record.")
        return {
            "distance": self._stage.distance_name,
            "rows": self._rows,
            "nearest": [
                {"row": row, "class": label, "distance": distance, "record": record}
                for distance, row, label, record in self._kept
            ],
        }

    def _places(self, batch: pa.RecordBatch | pa.Table, found: Found) -> Array:
        columns = encode_batch(batch, self._model.contract, self._model.encodings, found=found)
        return usable_coordinates(self._stage, np.column_stack(columns).astype(np.float64))

    def _shown(self, names: Sequence[str]) -> list[str]:
        return [name for name in self._model.contract.names if name in names]
