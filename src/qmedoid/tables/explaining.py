"""One decision as a plain dictionary: what each column of the table contributed, and the medoids it lies nearest to."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.kernels.ties import stable_order
from qmedoid.methods.base import GroupShare, Method, RecordShare
from qmedoid.model.explanation import Explanation, explain
from qmedoid.model.table import TableModel
from qmedoid.tables.encode import Found, encode_batch
from qmedoid.tables.records import plain_records
from qmedoid.tables.scoring import holes_told


def explain_record(model: TableModel, record: pa.Table, found: Found) -> dict[str, Any]:
    """Explain the decision about the only row of a table; all numbers and texts are fit for JSON."""
    if len(record) != 1:
        raise DataError(f"One record is explained at a time. Got a table of {len(record)} rows.")
    columns = encode_batch(record, model.contract, model.encodings, found=found)
    with holes_told(model, record, found):
        why, decided = explain(model, columns), model.decide(columns)
    known = [name for name in model.contract.names if name in record.column_names]
    cells = plain_records(record.select(known))[0] if known else {}
    report = {
        "prediction": model.classes[why.winner],
        "against": model.classes[why.other],
        "margin": why.margin,
        "decided_by": model.deciders[int(why.by_circuit)],
        "record": cells,
        "columns": _columns(model, why, cells),
        "medoids": _medoids(model, why),
        "groups": _groups(model, why),
        "terms": dict(why.terms),
    }
    if why.neighbors:
        report["neighbors"] = [_record(model, one) for one in why.neighbors]
    if model.decision.probabilistic:
        probabilities = model.decision.probabilities(decided.scores)[0]
        report["probabilities"] = {
            str(label): float(value) for label, value in zip(model.classes, probabilities, strict=True)
        }
    return report


def _columns(model: TableModel, why: Explanation, cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What every column of the table contributed, the largest first; of equal ones by name.

    Numbers that a column is encoded by, such as the levels of a category, the parts of a date or whether a cell is
    missing, count together.
    """
    source = np.repeat(np.arange(len(model.encodings)), [encoding.width for encoding in model.encodings])
    added = np.bincount(source, weights=why.columns, minlength=len(model.encodings)).tolist()
    columns = [
        {"name": name, "cell": cells.get(name), "contribution": amount}
        for name, amount in zip(model.contract.names, added, strict=True)
    ]
    return _largest_first(sorted(columns, key=lambda column: str(column["name"])))


def _largest_first(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts by the size of their contribution; those that are equal up to rounding keep their order."""
    order = stable_order(-np.abs(np.array([part["contribution"] for part in parts])))
    return [parts[place] for place in order]


def _medoids(model: TableModel, why: Explanation) -> list[dict[str, Any]]:
    """The nearest medoid of each class, the winner's first."""
    method = _fusion_of(model)
    records = model.records[0] if model.records else ()
    order = sorted(range(len(model.classes)), key=lambda code: (code != why.winner, code != why.other, code))
    return [
        {
            "class": model.classes[code],
            "training_row": int(method.medoid_rows[why.nearest[code]]),
            "distance": float(why.distances[code]),
            "angle": float(why.angles[code]),
            "record": dict(records[why.nearest[code]]) if records else None,
        }
        for code in order
    ]


def _groups(model: TableModel, why: Explanation) -> list[dict[str, Any]]:
    """What every group contributed, the largest first, with the columns it is made of."""
    groups = [_group(model, share) for share in why.groups]
    return _largest_first(groups)


def _group(model: TableModel, share: GroupShare) -> dict[str, Any]:
    names = model.output_names
    group: dict[str, Any] = {
        "columns": [names[column] for column in share.columns],
        "contribution": share.contribution,
    }
    if share.name is not None:
        group["name"] = share.name
    if share.value is not None:
        group["value"] = share.value
        group["medoid_values"] = {str(model.classes[code]): value for code, value in share.medoid_values.items()}
    if share.records:
        group["records"] = [_record(model, one) for one in share.records]
    return group


def _record(model: TableModel, share: RecordShare) -> dict[str, Any]:
    return {
        "training_row": share.row,
        "class": model.classes[share.code],
        "distance": share.distance,
        "contribution": share.contribution,
    }


def _fusion_of(model: TableModel) -> Method:
    method = model.method
    assert method is not None, "explain() refuses models without medoids"
    return method
