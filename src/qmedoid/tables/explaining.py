"""One decision as a plain dictionary: the record, the medoids it lies nearest to, and what each group contributed."""

from typing import Any

import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.models.explanation import Explanation, explain
from qmedoid.models.shares import GroupShare
from qmedoid.models.stage import PlainStage
from qmedoid.models.table import TableModel
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
    report = {
        "prediction": model.classes[why.winner],
        "against": model.classes[why.other],
        "margin": why.margin,
        "decided_by": "variational" if why.by_circuit else "fusion",
        "record": plain_records(record.select(known))[0] if known else {},
        "medoids": _medoids(model, why),
        "groups": _groups(model, why),
        "terms": dict(why.terms),
    }
    if model.probabilistic:
        probabilities = model.probabilities(decided.scores)[0]
        report["probabilities"] = {
            str(label): float(value) for label, value in zip(model.classes, probabilities, strict=True)
        }
    return report


def _medoids(model: TableModel, why: Explanation) -> list[dict[str, Any]]:
    """The nearest medoid of each class, the winner's first."""
    fusion = _fusion_of(model)
    records = model.records[0] if model.records else ()
    order = sorted(range(len(model.classes)), key=lambda code: (code != why.winner, code != why.other, code))
    return [
        {
            "class": model.classes[code],
            "training_row": int(fusion.medoid_rows[why.nearest[code]]),
            "distance": float(why.distances[code]),
            "angle": float(why.angles[code]),
            "record": dict(records[why.nearest[code]]) if records else None,
        }
        for code in order
    ]


def _groups(model: TableModel, why: Explanation) -> list[dict[str, Any]]:
    """What every group contributed, the largest first, with the columns it is made of."""
    groups = [_group(model, share) for share in why.groups]
    return sorted(groups, key=lambda group: -abs(group["contribution"]))


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
        group["records"] = [
            {
                "training_row": one.row,
                "class": model.classes[one.code],
                "distance": one.distance,
                "contribution": one.contribution,
            }
            for one in share.records
        ]
    return group


def _fusion_of(model: TableModel) -> PlainStage:
    fusion = model.fusion
    assert fusion is not None, "explain() refuses models without medoids"
    return fusion
