"""One decision as a plain dictionary: contributions by column and group, nearest medoids, nearest known rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ModelError
from qmedoid.kernels.ties import stable_order
from qmedoid.methods.base import usable_coordinates
from qmedoid.methods.contributions import GroupContribution, RowContribution
from qmedoid.model.explanation import DecisionParts, explain
from qmedoid.model.table import TableModel
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.issues import Issues
from qmedoid.tables.scoring import refused_by_column
from qmedoid.tables.targets import label_codes


def explain_record(model: TableModel, record: pa.Table, issues: Issues) -> dict[str, Any]:
    """Explain the decision about the only row of a table; all numbers and texts are fit for JSON."""
    if len(record) != 1:
        raise DataError(f"One record is explained at a time. Got a table of {len(record)} rows.")
    columns = encode_batch(record, model.contract, model.encodings, issues=issues)
    with refused_by_column(model, record, issues):
        why, decided = explain(model, columns), model.decide(columns)
    given = set(record.column_names)
    known = [name for name in model.contract.names if name in given]
    cells = plain_records(record.select(known))[0] if known else {}
    report = {
        "prediction": model.decision.classes[why.winner],
        "against": model.decision.classes[why.other],
        "margin": why.margin,
        "decided_by": model.deciders[int(why.by_circuit)],
        "record": cells,
        "columns": _columns(model, why, cells),
        "medoids": _medoids(model, why),
        "groups": _largest_first([_group(model, share) for share in why.groups]),
        "terms": dict(why.terms),
    }
    if why.neighbors:
        report["neighbors"] = [_record(model, one) for one in why.neighbors]
    if model.decision.probabilistic:
        probabilities = model.decision.probabilities(decided.scores)[0].tolist()
        report["probabilities"] = dict(zip(map(str, model.decision.classes), probabilities, strict=True))
    return report


def _columns(model: TableModel, why: DecisionParts, cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What every column of the table contributed, the largest first; of equal ones by name.

    Numbers that a column is encoded by, such as the levels of a category, the parts of a date or whether a cell is
    missing, count together.
    """
    columns = sorted(by_column(model, why).items())
    return _largest_first([{"name": name, "cell": cells.get(name), "contribution": value} for name, value in columns])


def by_column(model: TableModel, why: DecisionParts) -> dict[str, float]:
    """What every column of the table contributed to the margin, by name."""
    added = np.bincount(model.source, weights=why.columns, minlength=len(model.encodings)).tolist()
    return dict(zip(model.contract.names, added, strict=True))


def _largest_first(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts by the size of their contribution; those that are equal up to rounding keep their order."""
    order = stable_order(-np.abs(np.array([part["contribution"] for part in parts])))
    return [parts[place] for place in order]


def _medoids(model: TableModel, why: DecisionParts) -> list[dict[str, Any]]:
    """The nearest medoid of each class, the winner's first."""
    method = model.method
    assert method is not None, "explain() refuses models without medoids"
    records = model.records[0] if model.records else ()
    order = sorted(range(len(model.decision.classes)), key=lambda code: (code != why.winner, code != why.other, code))
    return [
        {
            "class": model.decision.classes[code],
            "training_row": int(method.medoid_rows[why.nearest[code]]),
            "distance": float(why.distances[code]),
            "angle": float(why.angles[code]),
            "record": dict(records[why.nearest[code]]) if records else None,
        }
        for code in order
    ]


def _group(model: TableModel, share: GroupContribution) -> dict[str, Any]:
    names = model.layout.names
    group: dict[str, Any] = {"columns": [names[column] for column in share.columns], "contribution": share.contribution}
    if share.name is not None:
        group["name"] = share.name
    if share.value is not None:
        group["value"] = share.value
        group["medoid_values"] = {
            str(model.decision.classes[code]): value for code, value in share.medoid_values.items()
        }
    if share.records:
        group["records"] = [_record(model, one) for one in share.records]
    return group


def _record(model: TableModel, share: RowContribution) -> dict[str, Any]:
    code = model.decision.classes[share.code]
    return {"training_row": share.row, "class": code, "distance": share.distance, "contribution": share.contribution}


N_SHOWN = 5
"""Rows that are shown at most."""


class NearestRows:
    """The rows nearest to one record, found in one pass over the batches of a table.

    Of rows that are equally near the first are kept. Rows with cells that the model cannot read are passed over.
    """

    def __init__(self, model: TableModel, record: pa.Table, n_shown: int = N_SHOWN) -> None:
        method = model.method
        if method is None:
            raise ModelError("This model is a circuit alone: it measures no distance by which rows could be near.")
        self._model, self._method, self._n_shown = model, method, n_shown
        self._at = self._places(record, Issues())
        self._kept: list[tuple[float, int, Any, dict[str, Any]]] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch | pa.Table, labels: pa.Array | pa.ChunkedArray | None, issues: Issues) -> None:
        """Look at a batch; `labels` are its cells of the target column, if it has one."""
        offsets = self._places(batch, issues) - self._at
        distances = np.sqrt((offsets * offsets).sum(axis=1))
        distances[np.isnan(distances)] = np.inf
        nearest = np.argsort(distances, kind="stable")[: self._n_shown]
        nearest = nearest[np.isfinite(distances[nearest])]
        codes = None if labels is None else label_codes(labels, self._model.decision.classes)
        names = [name for name in self._model.contract.names if name in batch.schema.names]
        part = pa.table(batch.select(names).columns, names)
        records = plain_records(part.take(pa.array(nearest)))
        for place, record in zip(nearest.tolist(), records, strict=True):
            label = None if codes is None or codes[place] < 0 else self._model.decision.classes[codes[place]]
            self._kept.append((float(distances[place]), self._rows + place, label, record))
        self._kept = sorted(self._kept, key=lambda one: one[:2])[: self._n_shown]
        self._rows += len(batch)

    def report(self) -> dict[str, Any]:
        """The nearest rows, fit for JSON; the nearest first."""
        if not self._kept:
            raise DataError(f"None of the {self._rows:,} known rows can be compared with the record.")
        names = ("distance", "row", "class", "record")
        nearest = [dict(zip(names, one, strict=True)) for one in self._kept]
        return {"distance": self._method.distance_name, "rows": self._rows, "nearest": nearest}

    def _places(self, batch: pa.RecordBatch | pa.Table, issues: Issues) -> Array:
        columns = encode_batch(batch, self._model.contract, self._model.encodings, issues=issues)
        return usable_coordinates(self._method, np.column_stack(columns).astype(np.float64))
