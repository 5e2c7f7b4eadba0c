"""Decisions of two models about the records of one table: counted batch by batch, the largest changes explained."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ModelError
from qmedoid.explain.explaining import by_column
from qmedoid.metrics.intervals import share_interval
from qmedoid.model.explanation import explain
from qmedoid.model.table import Decisions, TableModel
from qmedoid.report.diff_documents import ChangedRecordDict, DiffDecisionsDict, FlowDict, MovedPartDict
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.issues import Issues
from qmedoid.tables.scoring import decide_batch

N_SHOWN = 10
"""Records with the largest changes that are kept."""


class ChangedRecord(NamedTuple):
    """A record, the class that each model calls it, how its probabilities changed, and its row for either model."""

    change: float
    row: int
    codes: tuple[int, int]
    chances: tuple[Array | None, Array | None]
    records: tuple[pa.Table, pa.Table]


@dataclass
class DecisionTally:
    """Counts of the decisions of an old and a new model, in memory that does not grow.

    The change of a record is the total variation of its class probabilities, for two classes the change of either; 1
    or 0 for another or the same class where a model has no probabilities.
    """

    old: TableModel
    new: TableModel
    rows: int = 0
    changed: int = 0
    total: float = 0.0
    largest: list[ChangedRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Classes are one if they are spelled alike: a class of the new model alone comes after the old ones.
        labels = [[str(label) for label in model.decision.classes] for model in self.models]
        self.labels = list(dict.fromkeys(labels[0] + labels[1]))
        self._places = [np.array([self.labels.index(label) for label in one]) for one in labels]
        self.counts = np.zeros((len(self.labels),) * 2, dtype=np.int64)
        self.probabilistic = all(model.decision.probabilistic for model in self.models)

    @property
    def models(self) -> tuple[TableModel, TableModel]:
        """Both models."""
        return self.old, self.new

    def add(self, batches: Sequence[pa.RecordBatch | pa.Table], issues: Sequence[Issues]) -> None:
        """Count the same rows in, as either model reads them."""
        decided = [decide_batch(*one)[0] for one in zip(self.models, batches, issues, strict=True)]
        old, new = (places[one.codes] for places, one in zip(self._places, decided, strict=True))
        np.add.at(self.counts, (old, new), 1)
        chances = [self._chances(number, one) for number, one in enumerate(decided)]
        if chances[0] is not None and chances[1] is not None:
            changes = 0.5 * np.abs(chances[1] - chances[0]).sum(axis=1)
        else:
            changes = (old != new).astype(np.float64)
        self.changed += int((old != new).sum())
        self.total += float(changes.sum())
        top = np.lexsort((np.arange(len(changes)), -changes))[:N_SHOWN]
        rows = [pa.Table.from_batches([one]) if isinstance(one, pa.RecordBatch) else one for one in batches]
        for place in top[changes[top] > 0].tolist():
            of_row = [None if one is None else one[place] for one in chances]
            # Taken, not sliced: a slice would keep the whole batch in memory.
            records = [one.take(pa.array([place])) for one in rows]
            codes = int(old[place]), int(new[place])
            change = float(changes[place])
            self.largest.append(
                ChangedRecord(change, self.rows + place, codes, (of_row[0], of_row[1]), (records[0], records[1]))
            )
        self.largest = sorted(self.largest, key=lambda one: (-one.change, one.row))[:N_SHOWN]
        self.rows += len(changes)

    def report(self) -> DiffDecisionsDict:
        """The counts, and the records that changed the most with what moved them, fit for JSON."""
        if not self.rows:
            raise DataError("The table has no rows: there are no decisions to compare.")
        flows: list[FlowDict] = [
            {"old": self.labels[a], "new": self.labels[b], "rows": int(self.counts[a, b])}
            for a, b in zip(*np.nonzero(self.counts), strict=True)
        ]
        return {
            "rows": self.rows,
            "changed": self.changed,
            "changed_share": share_interval(self.changed, self.rows).as_dict(),
            "mean_change": self.total / self.rows if self.probabilistic else None,
            "flows": flows,
            "largest": [self._described(one) for one in self.largest],
        }

    def _chances(self, number: int, decided: Decisions) -> Array | None:
        """Probabilities over the classes of both models, shape (n, labels)."""
        if not self.probabilistic:
            return None
        chances = np.zeros((len(decided.codes), len(self.labels)))
        chances[:, self._places[number]] = self.models[number].decision.probabilities(decided.scores)
        return chances

    def _described(self, one: ChangedRecord) -> ChangedRecordDict:
        """A record with what moved it: differences of contributions, which add up to that of the margin."""
        old, new = one.codes
        described: ChangedRecordDict = {
            "row": one.row,
            "old": self.labels[old],
            "new": self.labels[new],
            "change": one.change if self.probabilistic else None,
            # The probability of the new class, by either model.
            "probabilities": None if one.chances[0] is None else [float(p[new]) for p in one.chances if p is not None],
            "for": None,
            "against": None,
            "margins": None,
            "columns": None,
            "terms": None,
        }
        pair = self._pair(one)
        if pair is not None:
            with suppress(ModelError):  # a circuit alone has no contributions
                margins, columns, terms = zip(*(self._parts(number, one, pair) for number in range(2)), strict=True)
                described |= {
                    "for": self.labels[pair[0]],
                    "against": self.labels[pair[1]],
                    "margins": list(margins),
                    "columns": _differences(*columns),
                    "terms": _differences(*terms),
                }
        return described

    def _pair(self, one: ChangedRecord) -> tuple[int, int] | None:
        """Classes that both models know: the new one against the old one or, if it is the same, the next best."""
        old, new = one.codes
        shared = [place for place in range(len(self.labels)) if all(place in places for places in self._places)]
        if old == new:
            others = [place for place in shared if place != new]
            chances = one.chances[1]
            order = others if chances is None else sorted(others, key=lambda place: (-chances[place], place))
            old = order[0] if order else new
        return (new, old) if old != new and {old, new} <= {*shared} else None

    def _parts(
        self, number: int, one: ChangedRecord, pair: tuple[int, int]
    ) -> tuple[float, dict[str, float], Mapping[str, float]]:
        model, record = self.models[number], one.records[number]
        codes = [int(np.flatnonzero(self._places[number] == place)[0]) for place in pair]
        columns = encode_batch(record, model.contract, model.encodings, only=model.layout.used, issues=Issues())
        why = explain(model, columns, (codes[0], codes[1]))
        return why.margin, by_column(model, why), why.terms


def _differences(old: Mapping[str, float], new: Mapping[str, float]) -> list[MovedPartDict]:
    """New minus old by name, the largest first; what one model lacks is 0 there."""
    names = dict.fromkeys([*old, *new])
    found = [(name, old.get(name, 0.0), new.get(name, 0.0)) for name in names]
    found.sort(key=lambda one: (-abs(one[2] - one[1]), one[0]))
    return [{"name": name, "old": a, "new": b, "change": b - a} for name, a, b in found]


def aligned(
    first: Iterator[pa.RecordBatch], second: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Batches of the same rows from two readings of one table, however either is cut into batches."""
    left, right = next(first, None), next(second, None)
    while left is not None and right is not None:
        n_rows = min(len(left), len(right))
        yield left.slice(0, n_rows), right.slice(0, n_rows)
        left = left.slice(n_rows) if len(left) > n_rows else next(first, None)
        right = right.slice(n_rows) if len(right) > n_rows else next(second, None)
    if left is not None or right is not None:
        raise DataError("The table changed while it was read: the two models saw different numbers of rows.")
