"""What changed between two saved models: columns, classes, medoids, groups, values, and decisions about a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import numpy as np

from qmedoid.markup.page import render
from qmedoid.model.contract import Column
from qmedoid.model.hybrid import HybridModel
from qmedoid.model.table import TableModel
from qmedoid.report.diff_documents import (
    ChangedColumnDict,
    DiffClassesDict,
    DiffColumnsDict,
    DiffDecisionsDict,
    DiffGroupsDict,
    DiffMedoidsDict,
    DiffValueDict,
    ModelDiffDict,
)

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
    old: TableModel,
    new: TableModel,
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


def _columns(old: TableModel, new: TableModel) -> DiffColumnsDict:
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


def _medoids(old: TableModel, new: TableModel) -> DiffMedoidsDict:
    """Medoids by their cells where both models hold them, else by the numbers of their rows."""
    with_cells = bool(old.records and old.records[0]) and bool(new.records and new.records[0])
    found = []
    for model in (old, new):
        method = model.method
        rows = [] if method is None else method.rows.numbers.tolist()
        classes = [] if method is None else [str(model.decision.classes[code]) for code in method.rows.classes]
        cells = model.records[0] if with_cells and model.records else ({},) * len(rows)
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


def _groups(old: TableModel, new: TableModel) -> DiffGroupsDict:
    """Groups by the names of their encoded columns, whatever their order."""
    named = []
    for model in (old, new):
        groups = () if model.method is None else model.method.facts["groups"]
        named.append(sorted({tuple(sorted(model.layout.names[column] for column in group)) for group in groups}))
    added, removed = ([list(group) for group in _beyond(*pair)] for pair in (named, named[::-1]))
    return {"kept": len({*named[0]} & {*named[1]}), "added": added, "removed": removed}


def _facts(model: TableModel) -> dict[str, Any]:
    """A model as nested plain values."""
    decision, method, best = model.decision, model.method, model.best
    labels = [str(label) for label in decision.classes]
    operating: dict[str, Any] = {} if decision.operating is None else {**decision.operating.as_dict()}
    for figure in ("alert_rate", "precision", "recall"):
        # A figure and its interval change together.
        if operating.get(figure) is not None:
            operating[figure] = list(operating[figure].values())

    def by_class(values: Any) -> Any:
        return None if values is None else dict(zip(labels, np.asarray(values).tolist(), strict=True))

    calibrations = {}
    if isinstance(best, HybridModel):
        for name, one in (("calibration", best.calibration), ("recalibration", best.recalibration)):
            if one is not None:
                curve = {"knots": one.knots.tolist(), "heights": one.heights.tolist()}
                calibrations[name] = {"slope": one.slope, "biases": by_class(one.biases), **curve}
    return {
        "method": {"name": model.deciders[0], **({} if method is None else method.facts["numbers"])},
        "refinement": model.refinement,
        "refine_below": best.refine_below if isinstance(best, HybridModel) and best.variational is not None else None,
        "target": model.contract.target,
        "classes": labels,
        "medoids": 0 if method is None else len(method.rows.numbers),
        "neighbors": model.n_neighbors,
        "models": len(model.models),
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
