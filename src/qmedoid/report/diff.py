"""What differs between two saved models, and between what they decide about the rows of a table."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from qmedoid.exceptions import DataError
from qmedoid.metrics.intervals import share_interval
from qmedoid.model.model import Model
from qmedoid.report import documents
from qmedoid.tables.difference import Issues
from qmedoid.tables.scoring import decide_batch

Item = TypeVar("Item")
N_SHOWN = 10
"""Records with the largest changes that are kept."""
# What two models that decide alike may differ in.
_ABOUT = ("parameters.", "metrics.")


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
    values : tuple of mapping
        Everything else that differs: ``"name"``, ``"old"`` and ``"new"``.
    decisions : mapping or None
        Decisions about the records of a table, where one was given.
    """

    derived: bool
    columns: documents.DiffColumnsDict
    classes: documents.DiffClassesDict
    medoids: documents.DiffMedoidsDict
    values: tuple[documents.DiffValueDict, ...]
    decisions: documents.DiffDecisionsDict | None = None

    @property
    def differs(self) -> bool:
        """Whether decisions differ; without a table whether anything does that decisions are made of."""
        if self.decisions is not None:
            return bool(self.decisions["changed"])
        parts: tuple[Mapping[str, Any], ...] = (self.columns, self.classes, self.medoids)
        lists = [one for part in parts for one in part.values() if isinstance(one, list)]
        return any(lists) or any(not value["name"].startswith(_ABOUT) for value in self.values)

    def as_dict(self) -> documents.ModelDiffDict:
        """Everything by name, fit for JSON."""
        return cast("documents.ModelDiffDict", {**vars(self), "values": list(self.values), "differs": self.differs})


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
    decisions: documents.DiffDecisionsDict | None = None,
    *,
    sha256: str | None = None,
) -> ModelDiff:
    """Everything that two models differ in, with decisions that were compared before.

    `sha256` is that of the file of the old model.
    """
    models = old, new
    labels = [[str(label) for label in model.decision.classes] for model in models]
    facts = [dict(_flat(_facts(model))) for model in models]
    return ModelDiff(
        derived=sha256 is not None and new.parent == sha256,
        columns=_columns(old, new),
        classes={"added": _beyond(*labels), "removed": _beyond(*labels[::-1])},
        medoids=_medoids(old, new),
        values=tuple(cast("list[documents.DiffValueDict]", _changes(*facts))),
        decisions=decisions,
    )


def _beyond(old: Sequence[Item], new: Sequence[Item]) -> list[Item]:
    """What is new."""
    return [one for one in new if one not in old]


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Values that differ by name; None stands for one that is not there."""
    names = dict.fromkeys([*old, *new])
    pairs = [{"name": name, "old": old.get(name), "new": new.get(name)} for name in names]
    return [one for one in pairs if one["old"] != one["new"]]


def _columns(old: Model, new: Model) -> documents.DiffColumnsDict:
    before, after = ({column.name: column for column in model.contract.columns} for model in (old, new))
    changed, others = [], {"kind": "kind", "missing": "missing", "is_open": "open", "spelling": "spelling"}
    for name, was in before.items():
        now = after.get(name)
        if now is None or was == now:
            continue
        pairs = {word: [getattr(was, key), getattr(now, key)] for key, word in others.items()}
        pairs["missing_values"] = [list(was.missing_values), list(now.missing_values)]
        levels = {"levels_added": _beyond(was.levels, now.levels), "levels_removed": _beyond(now.levels, was.levels)}
        differs = {word: pair for word, pair in pairs.items() if pair[0] != pair[1]}
        changed.append({"name": name, **differs, **{what: found for what, found in levels.items() if found}})
    return {
        "added": _beyond(list(before), list(after)),
        "removed": _beyond(list(after), list(before)),
        "changed": cast("list[documents.ChangedColumnDict]", changed),
        "left_out": cast("list[documents.LeftOutColumnDict]", _changes(old.contract.left_out, new.contract.left_out)),
    }


def _medoids(old: Model, new: Model) -> documents.DiffMedoidsDict:
    """Medoids by their cells where both models hold them, else by the numbers of their rows."""
    with_cells = bool(old.records) and bool(new.records)
    by_key: list[dict[str, list[Any]]] = []
    for model in (old, new):
        by_key.append({})
        medoids = model.medoids
        for place, row in enumerate([] if medoids is None else medoids.numbers.tolist()):
            label = "" if medoids is None else str(model.decision.classes[medoids.classes[place]])
            one = {"training_row": row, "class": label}
            if with_cells and model.records:
                one["record"] = dict(model.records[place])
            key = repr((label, sorted(one["record"].items()) if with_cells else row))
            by_key[-1].setdefault(key, []).append(one)
    counts = [Counter({key: len(found) for key, found in one.items()}) for one in by_key]
    # Equal medoids are matched one by one: the first ones of either model.
    without = [
        [one for key, same in found.items() for one in same[other[key] :]]
        for found, other in zip(by_key, counts[::-1], strict=True)
    ]
    return {
        "matched_by": "cells" if with_cells else "row numbers",
        "kept": (counts[0] & counts[1]).total(),
        "added": without[1],
        "removed": without[0],
    }


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
        "neighbors": model.n_neighbors,
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


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Nested mappings as one, with points between the names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            # What is no number equals nothing, not even itself.
            is_nan = isinstance(value, float) and value != value
            yield f"{before}{name}", list(value) if isinstance(value, tuple) else None if is_nan else value


class DecisionTally:
    """Counts of the decisions of an old and a new model, in memory that does not grow.

    The change of a record is the total variation of its class probabilities, for two classes the change of either; 1
    or 0 for another or the same class where a model has no probabilities.
    """

    def __init__(self, old: Model, new: Model) -> None:
        self.models, self.rows, self.changed, self.total = (old, new), 0, 0, 0.0
        # Classes are one if they are spelled alike: a class of the new model alone comes after the old ones.
        labels = [[str(label) for label in model.decision.classes] for model in self.models]
        self.labels = list(dict.fromkeys(labels[0] + labels[1]))
        self._places = [np.array([self.labels.index(label) for label in one]) for one in labels]
        self._counts = np.zeros((len(self.labels),) * 2, dtype=np.int64)
        self.probabilistic = old.decision.probabilistic and new.decision.probabilistic
        # Minus the change, the row, both classes, and the probabilities of the new one.
        self._largest: list[tuple[float, int, list[int], list[float] | None]] = []

    def add(self, batches: Sequence[pa.RecordBatch | pa.Table], issues: Sequence[Issues]) -> None:
        """Count the same rows in, as either model reads them."""
        decided = [decide_batch(*one)[0] for one in zip(self.models, batches, issues, strict=True)]
        codes = np.stack([places[one.codes] for places, one in zip(self._places, decided, strict=True)])
        np.add.at(self._counts, tuple(codes), 1)
        changes, chances = (codes[0] != codes[1]).astype(np.float64), None
        self.changed += int(changes.sum())
        if self.probabilistic:
            # Over the classes of both models.
            chances = np.zeros((2, len(changes), len(self.labels)))
            for own, model, places, one in zip(chances, self.models, self._places, decided, strict=True):
                own[:, places] = model.decision.probabilities(one.scores)
            changes = 0.5 * np.abs(chances[1] - chances[0]).sum(axis=1)
        self.total += float(changes.sum())
        top = np.lexsort((np.arange(len(changes)), -changes))[:N_SHOWN]
        for place in top[changes[top] > 0].tolist():
            both = None if chances is None else chances[:, place, codes[1, place]].tolist()
            self._largest.append((-float(changes[place]), self.rows + place, codes[:, place].tolist(), both))
        self._largest = sorted(self._largest, key=lambda one: one[:2])[:N_SHOWN]
        self.rows += len(changes)

    def report(self) -> documents.DiffDecisionsDict:
        """The counts, and the records that changed the most, fit for JSON."""
        if not self.rows:
            raise DataError("The table has no rows: there are no decisions to compare.")
        flows: list[documents.FlowDict] = [
            {"old": self.labels[a], "new": self.labels[b], "rows": int(self._counts[a, b])}
            for a, b in zip(*np.nonzero(self._counts), strict=True)
        ]
        return {
            "rows": self.rows,
            "changed": self.changed,
            "changed_share": share_interval(self.changed, self.rows).as_dict(),
            "mean_change": self.total / self.rows if self.probabilistic else None,
            "flows": flows,
            "largest": [
                {
                    "row": row,
                    "old": self.labels[old],
                    "new": self.labels[new],
                    "change": None if chances is None else -less,
                    "probabilities": chances,
                }
                for less, row, (old, new), chances in self._largest
            ],
        }


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
