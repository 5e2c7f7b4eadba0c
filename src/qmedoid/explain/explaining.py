"""One decision: contributions that add up to the margin (fact 20), and the real rows that are nearest or most similar.

With w the class that won and o the one it is compared with, the margin is a difference of calibrated scores, b_w − b_o
+ β·(s_o − s_w), where s are the dissimilarities of the method, which has the contributions of columns, of groups of
columns and of training rows to s_o − s_w. Calibration, circuit, prevalence and operating point are other terms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from qmedoid.arrays import Array, Codes
from qmedoid.exceptions import DataError, ModelError
from qmedoid.explain.documents import ContributingRowDict, ContributionDict
from qmedoid.explain.flips import sizes
from qmedoid.kernels.ties import stable_order
from qmedoid.methods.contributions import Contributions, GroupContribution, RowContribution
from qmedoid.methods.part import CLOSED_FORM, refuse_overflow
from qmedoid.model.contract import Dates, Levels
from qmedoid.model.importance import NO_MEDOIDS
from qmedoid.model.model import Model
from qmedoid.model.operating_point import probability
from qmedoid.tables.arrow import plain_records
from qmedoid.tables.cells import with_missing_values_out
from qmedoid.tables.difference import Issues
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.scoring import refused_by_column
from qmedoid.tables.targets import label_codes

N_DECIDING, N_SHOWN = 5, 5
"""Columns that similar rows are compared in, those that contribute most; and similar rows that are shown at most."""
# Share of the training rows between two numbers that are close.
_CLOSE = 0.05
# Parts of terms up to this size are rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionParts(Contributions):
    """Contributions to the decision about one record: columns, or groups, and terms add up to the margin.

    Attributes
    ----------
    winner, other : int
        Codes of the class that won and of the one it is compared with: the other of two, else the next best.
    margin : float
        By how much the winner is ahead, in the units of the class scores.
    start : float
        The part of the terms that is the same for every record, without the operating point.
    varying : mapping of str to float
        What is left of the terms, where it is not 0; these, start, columns and operating point add up to the margin.
    by_circuit : bool
    nearest, distances, angles : ndarray of shape (C,)
        Index of the nearest medoid of each class, and how far it is.
    """

    winner: int
    other: int
    margin: float
    start: float
    varying: Mapping[str, float]
    by_circuit: bool
    nearest: Codes
    distances: Array
    angles: Array


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def explain(model: Model, columns: Sequence[npt.NDArray[Any]], pair: tuple[int, int] | None = None) -> DecisionParts:
    """Explain the decision about one record from its encoded columns, each of shape (1,).

    With a `pair` of class codes the first is explained against the second, whichever won: the margin may be below 0.
    """
    decided = model.decide(columns)
    found = replace(model, backends=CLOSED_FORM).score(columns, channels=True)
    if found.nearest is None:
        raise ModelError(NO_MEDOIDS)
    scores, winner = decided.scores[0], int(decided.codes[0])
    winner, other = pair or (winner, int(model.decision.runners_up(decided.scores, decided.codes)[0]))
    calibration, refinement = model.calibration, model.refinement
    calibrated = calibration.apply(found.scores)[0]
    row = np.column_stack(list(columns)).astype(np.float64)
    last = None if refinement is None else refinement.recalibration
    # In units of the last scores: a calibration after the circuit stretches all that comes before it.
    stretch = 1.0 if last is None else last.slope
    shares = model.contributions(row, winner, other, unit=model.slope)
    shift = model.decision.shift
    prevalence = 0.0 if shift is None else float(shift.log_ratios[winner] - shift.log_ratios[other])
    # For two classes the cut is taken off the score of the second.
    cut, biases = model.decision.cut or 0.0, model.decision.biases
    cut = cut * (1.0 if winner == 0 else -1.0) if biases is None else float(biases[winner] - biases[other])
    added = calibration.biases + calibration.curve_part(found.scores)[0]
    constant = {"prevalence": prevalence, "calibration": stretch * _ahead(calibration.biases, winner, other)}
    moved = 0.0
    if refinement is not None and last is not None:
        before = replace(model, refinement=replace(refinement, recalibration=None))
        refined = -before.class_scores(model.score(columns, channels=True))[0]
        moved = float(np.diff((last.biases + last.curve_part(refined))[0, [other, winner]])[0])
        constant["recalibration"] = _ahead(last.biases, winner, other)
    circuit = (scores[winner] - scores[other]) - stretch * (calibrated[winner] - calibrated[other]) - prevalence - moved
    terms = dict(shares.terms) | {
        "calibration": float(stretch * (added[winner] - added[other])),
        "circuit": float(circuit),
        **({} if last is None else {"recalibration": moved}),
        "prevalence": prevalence,
        "operating point": cut,
    }
    constant["intercept"] = terms.get("intercept", 0.0)
    # Differences of equal numbers leave rounding behind.
    varying = {name: value - constant.get(name, 0.0) for name, value in terms.items() if name != "operating point"}
    contributions = [share.contribution for share in shares.groups]
    assert found.distance is not None, "channels are wanted"
    assert found.angle is not None, "channels are wanted"
    refuse_overflow(contributions, list(terms.values()), found.distance[0], found.angle[0])
    return DecisionParts(
        **(vars(shares) | {"terms": terms}),
        winner=winner,
        other=other,
        margin=float(scores[winner] - scores[other] + cut),
        start=sum(constant.values()),
        varying={name: value for name, value in varying.items() if abs(value) > _ROUNDING},
        by_circuit=bool(decided.by_circuit[0]),
        nearest=found.nearest[0],
        distances=found.distance[0],
        angles=found.angle[0],
    )


def _ahead(scores: Array, winner: int, other: int) -> float:
    """By how much one class is ahead of the other in these scores, shape (C,)."""
    return float(scores[winner] - scores[other])


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
    report : mapping
        The explanation of the decision about the record, by `explain_record`.
    """

    def __init__(self, model: Model, record: pa.Table, report: Mapping[str, Any]) -> None:
        self._model, self._report = model, report
        contributions = {one["name"]: one["contribution"] for one in report["columns"]}
        weights = np.abs([contributions.get(name, 0.0) for name in model.contract.names])
        # Without any contribution all columns count alike.
        self._weights = weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1.0 / len(weights))
        self._used = np.flatnonzero(self._weights).tolist()
        self._record = [float(column[0]) for column in encode_batch(record, model.contract, model.encodings)]

    def of_records(self, records: Sequence[Mapping[str, Any]]) -> Array:
        """Differences of records as plain values, shape (n,)."""
        return self.of_encoded(self._encoded(records))

    def compared(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The row of the predicted class, and that of the next one, with the columns that decide.

        In each it is the same, close or another cell.
        """
        contract, report = self._model.contract, self._report
        own, first = report["record"], [report["prediction"], report["against"], None]
        found = []
        for row in sorted((one for one in rows if one["class"] in first), key=lambda one: first.index(one["class"])):
            made: dict[str, Any] = {
                key: row[key] for key in ("class", "training_row", "row", "difference") if key in row
            }
            made |= {"same": [], "close": [], "differs": []}
            if row["difference"] is not None:
                cells, columns = row["record"], self._encoded([row["record"]])
                for name in [column["name"] for column in report["columns"][:N_DECIDING]]:
                    place = contract.names.index(name)
                    if place in self._used:
                        cell, is_ordered = cells.get(name), contract.columns[place].kind in ("number", "date")
                        is_close = is_ordered and self._in_column(place, columns)[0] <= _CLOSE
                        how = "same" if _alike(cell, own.get(name)) else "close" if is_close else "differs"
                        made[how].append({"name": name, "cell": cell, "own": own.get(name)})
            found.append(made)
        return found

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
        encoding, first = self._model.encodings[place], int(np.searchsorted(self._model.source, place))
        outputs = encoding.outputs
        value = first + (outputs.index(": days") if ": days" in outputs else 0)
        differs = np.zeros(len(columns[0]), dtype=np.bool_)
        is_ordered = self._model.contract.columns[place].kind != "boolean" and not isinstance(encoding, Levels)
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


def _alike(one: Any, other: Any) -> bool:
    """Whether two cells are the same; those of a file may be texts where those of the record are numbers."""
    if one is None or other is None or one == other:
        return bool(one == other)
    try:
        return float(one) == float(other)
    except ValueError:
        return str(one) == str(other)


def _column(cells: list[Any]) -> pa.Array:
    """Plain cells as Arrow has them: numbers, truth values or texts."""
    if any(isinstance(cell, str) for cell in cells):
        return pa.array([None if cell is None else str(cell) for cell in cells], pa.string())
    return pa.array(cells)


Part = TypeVar("Part", ContributionDict, dict[str, Any])


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
    # Numbers that a column is encoded by, such as the levels of a category, the parts of a date or whether a cell is
    # missing, count together; columns that add the same come by name.
    columns_added: list[ContributionDict] = [
        {"name": name, "cell": cells.get(name), "contribution": value}
        for name, value in sorted(by_column(model, why).items())
    ]
    report: dict[str, Any] = {
        "prediction": decision.classes[winner],
        "against": decision.classes[other],
        "toward": decision.classes[why.winner],
        "target": model.contract.target,
        "margin": why.margin,
        "start": why.start,
        "threshold": None,
        "is_alert": None,
        "decided_by": "circuit" if why.by_circuit else model.method,
        "record": cells,
        "columns": _largest_first(columns_added),
        "medoids": _medoids(model, why, (winner, other)),
        "groups": _largest_first([_group(model, share) for share in why.groups]),
        "terms": dict(why.terms),
        "varying": dict(why.varying),
    }
    report["similar"] = _similar_medoids(model, record, report)
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
    medoids = model.medoids
    assert medoids is not None, "explain() refuses models without medoids"
    records = model.records or ()
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


def _group(model: Model, share: GroupContribution) -> dict[str, Any]:
    names = model.layout.names
    group: dict[str, Any] = {
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


Found = tuple[float, int, Any, dict[str, Any]]
"""A row: how much it differs from the record, where it stands, its class and its cells."""


class NearestRows:
    """The rows of a table that are most similar to one record, and those of each class, found in one pass.

    Similar are rows by the columns that decide (`SimilarRows`); of equally similar ones the first are kept.

    Parameters
    ----------
    model : Model
    record : pyarrow.Table
    report : mapping
        The explanation of the decision about the record, by `explain_record`.
    skip : int or None
        The row of the table that is the record itself.
    """

    def __init__(self, model: Model, record: pa.Table, report: Mapping[str, Any], skip: int | None = None) -> None:
        self._model, self._skip, self._similar = model, skip, SimilarRows(model, record, report)
        self._kept, self._of_class, self._rows = list[Found](), dict[int, Found](), 0

    def add(self, batch: pa.RecordBatch | pa.Table, labels: pa.Array | pa.ChunkedArray | None, issues: Issues) -> None:
        """Look at a batch; `labels` are its cells of the target column, if it has one."""
        model = self._model
        differences = self._similar.of_encoded(encode_batch(batch, model.contract, model.encodings, issues=issues))
        if self._skip is not None and self._rows <= self._skip < self._rows + len(batch):
            differences[self._skip - self._rows] = np.inf
        codes = np.full(len(batch), -1) if labels is None else label_codes(labels, model.decision.classes)
        names = [name for name in model.contract.names if name in batch.schema.names]
        order = np.argsort(differences, kind="stable")
        places = [order[:N_SHOWN], *(order[codes[order] == code][:1] for code in np.unique(codes))]
        rows = np.unique(np.concatenate(places))
        rows = rows[np.isfinite(differences[rows])]
        part = pa.table(batch.select(names).columns, names).take(pa.array(rows))
        records = plain_records(with_missing_values_out(part, model.contract.columns))
        for row, cells in zip(rows.tolist(), records, strict=True):
            code = int(codes[row])
            label = None if code < 0 else model.decision.classes[code]
            one: Found = (float(differences[row]), self._rows + row, label, cells)
            self._kept.append(one)
            self._of_class[code] = min(self._of_class.get(code, one), one, key=lambda either: either[:2])
        self._kept = sorted(self._kept, key=lambda one: one[:2])[:N_SHOWN]
        self._rows += len(batch)

    def found(self) -> dict[str, Any]:
        """What takes the place of the ``"similar"`` medoids in the explanation, and the ``"known"`` rows."""
        if not self._kept:
            raise DataError(f"None of the {self._rows:,} known rows can be compared with the record.")
        nearest, similar = (
            [{"difference": far, "row": row, "class": label, "record": cells} for far, row, label, cells in rows]
            for rows in (self._kept, [one for _, one in sorted(self._of_class.items())])
        )
        return {"known": {"rows": self._rows, "nearest": nearest}, "similar": self._similar.compared(similar)}


def _similar_medoids(model: Model, record: pa.Table, report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The medoids of the predicted class and of the next one that are most similar by the columns that decide.

    They are the nearest ones where the model keeps no cells of its medoids.
    """
    medoids, records = model.medoids, model.records or ()
    measure = SimilarRows(model, record, report)
    if medoids is None or not records:
        return measure.compared([{**one, "difference": None} for one in report["medoids"]])
    differences, found = measure.of_records(records), []
    for code, label in enumerate(model.decision.classes):
        place = int(np.where(medoids.classes == code, differences, np.inf).argmin())
        row, cells = int(medoids.numbers[place]), dict(records[place])
        found.append({"difference": float(differences[place]), "training_row": row, "class": label, "record": cells})
    return measure.compared(found)
