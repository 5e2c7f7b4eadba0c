"""One decision as a plain dictionary: contributions by column and group, and the rows that are near or similar."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ModelError
from qmedoid.explain.documents import (
    ContributingRowDict,
    ContributionDict,
    GroupContributionDict,
    KnownNearestDict,
    KnownRowsDict,
    KnownSimilarDict,
)
from qmedoid.kernels.ties import stable_order
from qmedoid.methods.contributions import GroupContribution, RowContribution
from qmedoid.model.contract import Dates, Levels
from qmedoid.model.explanation import DecisionParts, explain
from qmedoid.model.model import Model
from qmedoid.model.operating_point import probability
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import with_missing_values_out
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.issues import Issues
from qmedoid.tables.scoring import refused_by_column
from qmedoid.tables.targets import label_codes

OTHER_LEVEL = 0.5
"""What another level or truth value counts, in shares of the training rows that a number passes."""


def known_values(model: Model, encoded: int) -> Array | None:
    """Smallest and largest training value of an encoded column, and the edges of its bins; None where not known."""
    novelty = model.novelty
    if novelty is None or encoded not in novelty.limited:
        return None
    limited = int(np.searchsorted(novelty.limited, encoded))
    values = [np.array([novelty.lowest[limited], novelty.highest[limited]])]
    if encoded in novelty.binned:
        values.append(novelty.bin_edges(int(np.searchsorted(novelty.binned, encoded))))
    held = np.clip(np.concatenate(values), novelty.lowest[limited], novelty.highest[limited])
    return np.asarray(np.unique(held))


def sizes(model: Model, encoded: int, start: float | None, values: Array) -> Array:
    """Shares of the training rows between the start and each value; one half where the start is missing."""
    known = known_values(model, encoded)
    novelty = model.novelty
    if start is None or known is None or novelty is None:
        return np.full(len(values), OTHER_LEVEL)
    if encoded not in novelty.binned:
        return np.minimum(_in_widths(known, start, values), 1.0)
    place = int(np.searchsorted(novelty.binned, encoded))
    edges = np.unique(np.concatenate([known[:1], novelty.bin_edges(place), known[-1:]]))
    counts = novelty.counts[novelty.offsets[place] + place : novelty.offsets[place + 1] + place + 1]
    shares = np.concatenate([[0.0], np.cumsum(counts) / max(int(counts.sum()), 1)])
    # The first edge may be the smallest value itself: its bin below is empty then.
    heights = shares if len(edges) == len(shares) else shares[-len(edges) :]
    between = np.abs(np.interp(values, edges, heights) - np.interp(start, edges, heights))
    # Within one bin, and beyond the outer values, the distance breaks ties, however far a cell lies outside.
    away = _in_widths(known, start, values)
    return np.asarray(between + 1e-6 * away / (1.0 + away))


def _in_widths(known: Array, start: float, values: Array) -> Array:
    """Distances in units of the width of the training values."""
    width = float(known[-1] - known[0])
    return np.asarray(np.abs(values - start) / (width if width > 0 else 1.0))


class SimilarRows:
    r"""Differences of rows from one record in the columns that decide about it.

    .. math:: \frac{\sum_j |c_j|\,d_j}{\sum_j |c_j|},

    with :math:`c_j` what column j contributes to the decision, and :math:`d_j` the share of the training rows between
    the two numbers or dates; of other cells, and where one of them is missing, 1 if the model tells them apart.

    Parameters
    ----------
    model : Model
    record : pyarrow.Table
        One row, under the names of the contract.
    contributions : mapping of str to float
        By column of the contract.
    """

    def __init__(self, model: Model, record: pa.Table, contributions: Mapping[str, float]) -> None:
        self._model = model
        weights = np.abs([contributions.get(name, 0.0) for name in model.contract.names])
        # Without any contribution all columns count alike.
        self._weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1.0 / len(weights))
        self._used = np.flatnonzero(self._weights).tolist()
        self._starts = np.searchsorted(model.source, np.arange(len(model.encodings))).tolist()
        self._record = [float(column[0]) for column in encode_batch(record, model.contract, model.encodings)]

    def of_records(self, records: Sequence[Mapping[str, Any]]) -> Array:
        """Differences of records as plain values, shape (n,)."""
        return self.of_encoded(self._encoded(records))

    def is_ordered(self, name: str) -> bool:
        """Whether cells of a column can be close to each other: numbers and dates."""
        kind = self._model.contract.columns[self._model.contract.names.index(name)].kind
        return kind in ("number", "date")

    def by_column(self, record: Mapping[str, Any]) -> dict[str, float]:
        """What one record as plain values differs by in every column that contributes."""
        columns, names = self._encoded([record]), self._model.contract.names
        return {names[place]: float(self._in_column(place, columns)[0]) for place in self._used}

    def _encoded(self, records: Sequence[Mapping[str, Any]]) -> list[Array]:
        contract = self._model.contract
        names = [contract.names[place] for place in self._used]
        table = pa.table({name: _column([record.get(name) for record in records]) for name in names})
        return encode_batch(table, contract, self._model.encodings, only=self._used)

    def of_encoded(self, columns: Sequence[Array]) -> Array:
        """Differences of rows by their encoded columns, each of shape (n,), shape (n,)."""
        total = np.zeros(len(columns[0]))
        for place in self._used:
            total += self._weights[place] * self._in_column(place, columns)
        return total

    def _in_column(self, place: int, columns: Sequence[Array]) -> Array:
        encoding, first = self._model.encodings[place], self._starts[place]
        outputs = encoding.outputs
        differs = np.zeros(len(columns[0]), dtype=np.bool_)
        is_ordered = self._model.contract.columns[place].kind != "boolean" and not isinstance(encoding, Levels)
        value = first + (outputs.index(": days") if ": days" in outputs else 0)
        for column in range(first, first + len(outputs)):
            own, others = self._record[column], np.asarray(columns[column], dtype=np.float64)
            absent = outputs[column - first] == " is missing"
            if not is_ordered or absent or (isinstance(encoding, Dates) and ": days" not in outputs):
                differs |= ~((others == own) | (np.isnan(others) & np.isnan(own)))
            elif column == value:
                differs |= np.isnan(others) != np.isnan(own)
        if not is_ordered or np.isnan(self._record[value]):
            return differs.astype(np.float64)
        between = sizes(self._model, value, self._record[value], np.nan_to_num(np.asarray(columns[value], np.float64)))
        return np.where(differs, 1.0, np.minimum(between, 1.0))


def _column(cells: list[Any]) -> pa.Array:
    """Plain cells as Arrow has them: numbers, truth values or texts."""
    if any(isinstance(cell, str) for cell in cells):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    return pa.array(cells)


Part = TypeVar("Part", ContributionDict, GroupContributionDict)


def explain_record(model: Model, record: pa.Table, issues: Issues) -> dict[str, Any]:
    """Explain the decision about the only row of a table; all numbers and texts are fit for JSON.

    Contributions above 0 are for the class ``"toward"``: the positive one of two, of more the predicted one. They add
    up to the margin, by which it is ahead of the other class and above the threshold; without the operating point, the
    start, the columns and what varies add up to its log-odds.
    """
    if len(record) != 1:
        raise DataError(f"One record is explained at a time. Got a table of {len(record)} rows.")
    record = with_missing_values_out(record, model.contract.columns)  # they are shown as they are read
    columns = encode_batch(record, model.contract, model.encodings, issues=issues)
    decision = model.decision
    with refused_by_column(model, record, issues):
        decided = model.decide(columns)
        why = explain(model, columns, (1, 0) if len(decision.classes) == 2 else None)
    winner, other = int(decided.codes[0]), int(decision.runners_up(decided.scores, decided.codes)[0])
    given = set(record.column_names)
    known = [name for name in model.contract.names if name in given]
    cells = plain_records(record.select(known))[0] if known else {}
    report: dict[str, Any] = {
        "prediction": decision.classes[winner],
        "against": decision.classes[other],
        "toward": decision.classes[why.winner],
        "target": model.contract.target,
        "margin": why.margin,
        "start": why.start,
        "threshold": None,
        "is_alert": None,
        "decided_by": model.deciders[int(why.by_circuit)],
        "record": cells,
        "columns": _columns(model, why, cells),
        "medoids": _medoids(model, why, (winner, other)),
        "similar": similar_medoids(model, record, by_column(model, why)),
        "groups": _largest_first([_group(model, share) for share in why.groups]),
        "terms": dict(why.terms),
        "varying": dict(why.varying),
    }
    if why.neighbors:
        report["neighbors"] = [_record(model, one) for one in why.neighbors]
    if decision.probabilistic:
        probabilities = decision.probabilities(decided.scores)[0].tolist()
        report["probabilities"] = dict(zip(map(str, decision.classes), probabilities, strict=True))
    if len(decision.classes) == 2:
        report["threshold"] = probability(decision.cut or 0.0) if decision.probabilistic else decision.cut or 0.0
        # Whoever asked for an operating point asked for alerts.
        report["is_alert"] = winner == 1 if decision.probabilistic and decision.cut is not None else None
    return report


def _columns(model: Model, why: DecisionParts, cells: Mapping[str, Any]) -> list[ContributionDict]:
    """What every column of the table contributed, the largest first; of equal ones by name.

    Numbers that a column is encoded by, such as the levels of a category, the parts of a date or whether a cell is
    missing, count together.
    """
    columns: list[ContributionDict] = [
        {"name": name, "cell": cells.get(name), "contribution": value}
        for name, value in sorted(by_column(model, why).items())
    ]
    return _largest_first(columns)


def by_column(model: Model, why: DecisionParts) -> dict[str, float]:
    """What every column of the table contributed to the margin, by name."""
    added = np.bincount(model.source, weights=why.columns, minlength=len(model.encodings)).tolist()
    return dict(zip(model.contract.names, added, strict=True))


def _largest_first(parts: list[Part]) -> list[Part]:
    """The parts by the size of their contribution; those that are equal up to rounding keep their order."""
    order = stable_order(-np.abs(np.array([part["contribution"] for part in parts])))
    return [parts[place] for place in order]


def _medoids(model: Model, why: DecisionParts, first: tuple[int, int]) -> list[dict[str, Any]]:
    """The nearest medoid of each class, those of the predicted class and of the next one first."""
    medoids, records = model.medoids, model.records or ()
    assert medoids is not None, "explain() refuses models without medoids"
    order = sorted(range(len(model.decision.classes)), key=lambda code: (code != first[0], code != first[1], code))
    return [
        {
            "class": model.decision.classes[code],
            "training_row": int(medoids.numbers[why.nearest[code]]),
            "distance": float(why.distances[code]),
            "angle": float(why.angles[code]),
            "record": dict(records[why.nearest[code]]) if records else None,
        }
        for code in order
    ]


def _group(model: Model, share: GroupContribution) -> GroupContributionDict:
    names = model.layout.names
    group: GroupContributionDict = {
        "columns": [names[column] for column in share.columns],
        "contribution": share.contribution,
    }
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


def _record(model: Model, share: RowContribution) -> ContributingRowDict:
    code = model.decision.classes[share.code]
    return {"training_row": share.row, "class": code, "distance": share.distance, "contribution": share.contribution}


N_SHOWN = 5
"""Rows that are shown at most."""


class Found(NamedTuple):
    """A row that was found: how far it is from the record, where it stands, its class and its cells."""

    size: float
    row: int
    label: Any
    record: dict[str, Any]


class NearestRows:
    """The rows nearest to one record, and the most similar of each class, found in one pass over a table.

    The nearest are those by the distance that the model measures, the most similar those by the columns that decide
    (`SimilarRows`). Of rows that are equally near the first are kept. Rows with cells that the model cannot read are
    passed over.

    Parameters
    ----------
    model : Model
    record : pyarrow.Table
    contributions : mapping of str to float
        What every column contributes to the decision about the record.
    n_shown : int
        Nearest rows that are kept at most.
    skip : int or None
        The row of the table that is the record itself.
    """

    def __init__(
        self,
        model: Model,
        record: pa.Table,
        contributions: Mapping[str, float],
        n_shown: int = N_SHOWN,
        skip: int | None = None,
    ) -> None:
        part = model.medoid_part
        if part is None:
            raise ModelError("This model is a circuit alone: it measures no distance by which rows could be near.")
        self._model, self._part, self._n_shown, self._skip = model, part, n_shown, skip
        self._at = self._places(encode_batch(record, model.contract, model.encodings))
        self._similar = SimilarRows(model, record, contributions)
        self._kept: list[Found] = []
        self._of_class: dict[int, Found] = {}
        self._rows = 0

    def add(self, batch: pa.RecordBatch | pa.Table, labels: pa.Array | pa.ChunkedArray | None, issues: Issues) -> None:
        """Look at a batch; `labels` are its cells of the target column, if it has one."""
        columns = encode_batch(batch, self._model.contract, self._model.encodings, issues=issues)
        offsets = self._places(columns) - self._at
        distances = np.sqrt((offsets * offsets).sum(axis=1))
        distances[np.isnan(distances)] = np.inf
        if self._skip is not None and self._rows <= self._skip < self._rows + len(batch):
            distances[self._skip - self._rows] = np.inf
        codes = np.full(len(batch), -1) if labels is None else label_codes(labels, self._model.decision.classes)
        names = [name for name in self._model.contract.names if name in batch.schema.names]
        part = pa.table(batch.select(names).columns, names)
        part = with_missing_values_out(part, self._model.contract.columns)

        def found(measured: Array, rows: Codes) -> list[Found]:
            rows = rows[np.isfinite(measured[rows])]
            records = plain_records(part.take(pa.array(rows)))
            return [
                Found(float(measured[row]), self._rows + row, self._label(int(codes[row])), one)
                for row, one in zip(rows.tolist(), records, strict=True)
            ]

        self._kept += found(distances, np.argsort(distances, kind="stable")[: self._n_shown])
        self._kept = sorted(self._kept, key=lambda one: one[:2])[: self._n_shown]
        differences = np.where(np.isfinite(distances), self._similar.of_encoded(columns), np.inf)
        for code in np.unique(codes).tolist():
            of_class = np.flatnonzero(codes == code)
            for one in found(differences, of_class[[differences[of_class].argmin()]]):
                self._of_class[code] = min(self._of_class.get(code, one), one, key=lambda either: either[:2])
        self._rows += len(batch)

    def report(self) -> KnownRowsDict:
        """The nearest rows and the most similar of each class, fit for JSON; the nearest first."""
        if not self._kept:
            raise DataError(f"None of the {self._rows:,} known rows can be compared with the record.")
        nearest: list[KnownNearestDict] = [
            {"distance": far, "row": row, "class": label, "record": cells} for far, row, label, cells in self._kept
        ]
        similar: list[KnownSimilarDict] = [
            {"difference": far, "row": row, "class": label, "record": cells}
            for _, (far, row, label, cells) in sorted(self._of_class.items())
        ]
        return {"distance": self._part.rows.space, "rows": self._rows, "nearest": nearest, "similar": similar}

    def _label(self, code: int) -> Any:
        return None if code < 0 else self._model.decision.classes[code]

    def _places(self, columns: Sequence[Array]) -> Array:
        return self._part.rows.usable_points(np.column_stack(columns).astype(np.float64), self._part.columns)


def similar_medoids(model: Model, record: pa.Table, contributions: Mapping[str, float]) -> list[dict[str, Any]]:
    """The medoid of each class that is most similar by the columns that decide; empty without their cells."""
    medoids, records = model.medoids, model.records
    if medoids is None or not records:
        return []
    differences, found = SimilarRows(model, record, contributions).of_records(records), []
    for code, label in enumerate(model.decision.classes):
        of_class = np.flatnonzero(medoids.classes == code)
        if len(of_class):
            place = int(of_class[differences[of_class].argmin()])
            row, cells = int(medoids.numbers[place]), dict(records[place])
            found.append(
                {"difference": float(differences[place]), "training_row": row, "class": label, "record": cells}
            )
    return found
