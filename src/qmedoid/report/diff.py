"""What differs between two saved models, and between what they decide about the rows of a table."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
import pyarrow as pa

from qmedoid.arrays import Array
from qmedoid.exceptions import DataError, ModelError
from qmedoid.explain.explaining import by_column
from qmedoid.markup.page import render
from qmedoid.metrics.intervals import share_interval
from qmedoid.model.contract import Column
from qmedoid.model.explanation import explain
from qmedoid.model.model import Decisions, Model
from qmedoid.report.diff_documents import (
    ChangedColumnDict,
    ChangedRecordDict,
    DiffClassesDict,
    DiffColumnsDict,
    DiffDecisionsDict,
    DiffGroupsDict,
    DiffMedoidsDict,
    DiffValueDict,
    FlowDict,
    ModelDiffDict,
    MovedPartDict,
)
from qmedoid.tables.encode import encode_batch
from qmedoid.tables.issues import Issues
from qmedoid.tables.scoring import decide_batch

Item = TypeVar("Item")
# Values that a notebook lists.
_LISTED = 40
# What two models that decide alike may differ in.
_ABOUT = ("versions.", "parameters.", "metrics.")


@dataclass(frozen=True, eq=False)
class ModelDiff:
    """What changed from an old model to a new one; everything is fit for JSON.

    Attributes
    ----------
    derived : bool
        Whether the new model was made from the file of the old one.
    columns : mapping
        ``"added"``, ``"removed"`` and ``"changed"`` columns, and those left out with their reasons.
    classes : mapping
        Classes ``"added"`` and ``"removed"``.
    medoids : mapping
        How many are ``"kept"``, and those ``"added"`` and ``"removed"``, with their cells where both models hold them.
    groups : mapping
        Groups of encoded columns, in the same way.
    values : tuple of mapping
        Everything else that differs: ``"name"``, ``"old"`` and ``"new"``.
    decisions : mapping or None
        Decisions about the records of a table, where one was given.
    """

    derived: bool
    columns: DiffColumnsDict
    classes: DiffClassesDict
    medoids: DiffMedoidsDict
    groups: DiffGroupsDict
    values: tuple[DiffValueDict, ...]
    decisions: DiffDecisionsDict | None = None

    @property
    def differs(self) -> bool:
        """Whether decisions differ; without a table whether anything does that decisions are made of."""
        if self.decisions is not None:
            return bool(self.decisions["changed"])
        parts: tuple[Mapping[str, Any], ...] = (self.columns, self.classes, self.medoids, self.groups)
        lists = [one for part in parts for one in part.values()]
        return any(isinstance(one, list | Mapping) and len(one) for one in lists) or any(
            not value["name"].startswith(_ABOUT) for value in self.values
        )

    def as_dict(self) -> ModelDiffDict:
        """Everything by name, fit for JSON."""
        return {
            "derived": self.derived,
            "columns": self.columns,
            "classes": self.classes,
            "medoids": self.medoids,
            "groups": self.groups,
            "values": list(self.values),
            "decisions": self.decisions,
            "differs": self.differs,
        }

    def _repr_html_(self) -> str:
        listed = [
            tuple(value_text(one)[:80] for one in (value["name"], value["old"], value["new"]))
            for value in self.values
            if not value["name"].startswith(("operating.counts.", "metrics."))
        ]
        title = "What changed between the two models"
        return render("notebook/diff.html", title=title, listed=listed[:_LISTED], **self.as_dict())


def value_text(value: Any) -> str:
    """A value of a model as it is shown: numbers in a few digits, and a dash for none."""
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 1 else f"{value:.6g}"
    if isinstance(value, list) and value and all(isinstance(one, float) for one in value):
        return ", ".join(f"{one:.4g}" for one in value)
    return "–" if value is None else str(value)


def compare_models(
    old: Model,
    new: Model,
    decisions: DiffDecisionsDict | None = None,
    *,
    sha256: str | None = None,
    versions: Sequence[Mapping[str, Any]] = ({}, {}),
) -> ModelDiff:
    """Everything that two models differ in, with decisions that were compared before.

    `sha256` is that of the file of the old model, and `versions` are those of both files.
    """
    labels = [[str(label) for label in model.decision.classes] for model in (old, new)]
    facts = [
        _flat({"versions": saved_with} | _facts(one)) for one, saved_with in zip((old, new), versions, strict=True)
    ]
    values: list[DiffValueDict] = [
        {"name": name, "old": facts[0].get(name), "new": facts[1].get(name)}
        for name in dict.fromkeys([*facts[0], *facts[1]])
        if facts[0].get(name) != facts[1].get(name)
    ]
    return ModelDiff(
        derived=sha256 is not None and new.parent == sha256,
        columns=_columns(old, new),
        classes={"added": _beyond(*labels), "removed": _beyond(*labels[::-1])},
        medoids=_medoids(old, new),
        groups=_groups(old, new),
        values=tuple(values),
        decisions=decisions,
    )


def _beyond(old: Sequence[Item], new: Sequence[Item]) -> list[Item]:
    """What is new."""
    return [one for one in new if one not in old]


def _columns(old: Model, new: Model) -> DiffColumnsDict:
    before, after = ({column.name: column for column in model.contract.columns} for model in (old, new))
    pairs = [(before[name], after[name]) for name in before if name in after]
    left = [dict(model.contract.left_out) for model in (old, new)]
    return {
        "added": _beyond(list(before), list(after)),
        "removed": _beyond(list(after), list(before)),
        "changed": [_changed(a, b) for a, b in pairs if a != b],
        "left_out": [
            {"name": name, "old": left[0].get(name), "new": left[1].get(name)}
            for name in dict.fromkeys([*left[0], *left[1]])
            if left[0].get(name) != left[1].get(name)
        ],
    }


def _changed(old: Column, new: Column) -> ChangedColumnDict:
    """What changed in a column, as pairs of old and new; of levels those added and removed."""
    levels = {"added": _beyond(old.levels, new.levels), "removed": _beyond(new.levels, old.levels)}
    others = {"kind": "kind", "missing": "missing", "is_open": "open", "spelling": "spelling"}
    pairs = {name: [getattr(old, key), getattr(new, key)] for key, name in others.items()}
    pairs["missing_values"] = [list(column.missing_values) for column in (old, new)]
    changes = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
    changes |= {f"levels_{what}": found for what, found in levels.items() if found}
    return cast("ChangedColumnDict", {"name": old.name, **changes})


def _medoids(old: Model, new: Model) -> DiffMedoidsDict:
    """Medoids by their cells where both models hold them, else by the numbers of their rows."""
    with_cells = bool(old.records) and bool(new.records)
    found = []
    for model in (old, new):
        medoids = model.medoids
        rows = [] if medoids is None else medoids.numbers.tolist()
        classes = [] if medoids is None else [str(model.decision.classes[code]) for code in medoids.classes]
        cells = model.records if with_cells and model.records else ({},) * len(rows)
        found.append([
            {"training_row": row, "class": label, **({"record": dict(record)} if with_cells else {})}
            for row, label, record in zip(rows, classes, cells, strict=True)
        ])  # fmt: skip
    keys = [[_key(one, with_cells) for one in part] for part in found]
    kept = sum((Counter(keys[0]) & Counter(keys[1])).values())
    by: Literal["cells", "row numbers"] = "cells" if with_cells else "row numbers"
    return {"matched_by": by, "kept": kept, "added": _not_in(found[1], keys[1], keys[0]),
            "removed": _not_in(found[0], keys[0], keys[1])}  # fmt: skip


def _key(medoid: Mapping[str, Any], with_cells: bool) -> Any:
    what = sorted(medoid["record"].items()) if with_cells else medoid["training_row"]
    return repr((medoid["class"], what))


def _not_in(medoids: Sequence[Any], keys: Sequence[str], others: Sequence[str]) -> list[Any]:
    """Those without a match, each of which takes one away."""
    left, found = Counter(others), []
    for medoid, key in zip(medoids, keys, strict=True):
        if left[key]:
            left[key] -= 1
        else:
            found.append(medoid)
    return found


def _groups(old: Model, new: Model) -> DiffGroupsDict:
    """Groups by the names of their encoded columns, whatever their order."""
    named = []
    for model in (old, new):
        groups = model.facts["groups"]
        named.append(sorted({tuple(sorted(model.layout.names[column] for column in group)) for group in groups}))
    added, removed = ([list(group) for group in _beyond(*pair)] for pair in (named, named[::-1]))
    return {"kept": len({*named[0]} & {*named[1]}), "added": added, "removed": removed}


def _facts(model: Model) -> dict[str, Any]:
    """A model as nested plain values."""
    decision, medoids, refinement = model.decision, model.medoids, model.refinement
    labels = [str(label) for label in decision.classes]
    operating: dict[str, Any] = {} if decision.operating is None else {**decision.operating.as_dict()}
    for figure in ("alert_rate", "precision", "recall"):
        # A figure and its interval change together.
        if operating.get(figure) is not None:
            operating[figure] = list(operating[figure].values())

    def by_class(values: Any) -> Any:
        return None if values is None else dict(zip(labels, np.asarray(values).tolist(), strict=True))

    calibrations = {}
    if medoids is not None:
        again = None if refinement is None else refinement.recalibration
        for name, one in (("calibration", model.calibration), ("recalibration", again)):
            if one is not None:
                curve = {"knots": one.knots.tolist(), "heights": one.heights.tolist()}
                calibrations[name] = {"slope": one.slope, "biases": by_class(one.biases), **curve}
    return {
        "method": {"name": model.method, **model.facts["numbers"]},
        "refinement": model.policy,
        "refine_below": None if refinement is None else refinement.refine_below,
        "target": model.contract.target,
        "classes": labels,
        "medoids": 0 if medoids is None else len(medoids.numbers),
        "neighbors": len(model.neighbors),
        **calibrations,
        "priors": by_class(decision.priors),
        "expected_priors": by_class(decision.expected_priors),
        "class_biases": by_class(decision.biases),
        "cut": decision.cut,
        "operating": operating,
        "training_rows": None if model.training is None else model.training.n_rows,
        "parameters": model.parameters,
        "metrics": model.metrics,
    }


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested mappings as one, with points between the names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{before}{name}.")
        else:
            # What is no number equals nothing, not even itself.
            is_nan = isinstance(value, float) and value != value
            found[f"{before}{name}"] = list(value) if isinstance(value, tuple) else None if is_nan else value
    return found


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

    old: Model
    new: Model
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
    def models(self) -> tuple[Model, Model]:
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
