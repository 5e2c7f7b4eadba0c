"""The small fits whose values are kept: tables made of seeded random numbers, and what is asked of the classifier.

Nothing here knows the package. Settings are words of the glossary; `adapter.build` turns them into parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Table = Array | dict[str, list[Any]]

N_NEW = 12


@dataclass(frozen=True)
class Case:
    """One fit."""

    train: Table
    new: Table  # rows to be scored
    target: list[Any]
    settings: dict[str, Any] = field(default_factory=dict)  # what is asked of the classifier, by neutral names
    groups: list[int] | None = None  # of the training rows
    prevalence: float | list[float] | None = None  # of the second class, or of every class, that is shifted to
    explained: tuple[int, ...] = (0, 5)  # rows of `new` whose decisions are explained; none for a circuit alone


def evidence_two_classes() -> Case:
    X, codes = numbers(1, 140, 5, 2)
    return split(X, codes.tolist(), method="evidence", n_medoids=12, n_neighbors=0)


def evidence_three_classes() -> Case:
    X, codes = numbers(2, 180, 4, 3)
    return split(X, codes.tolist(), method="evidence", n_medoids=12, n_neighbors=0)


def text_labels() -> Case:
    X, codes = numbers(3, 150, 5, 3)
    return split(X, [("low", "middle", "high")[code] for code in codes], method="evidence", n_medoids=9, n_neighbors=0)


def rare_events() -> Case:
    rng = np.random.default_rng(4)
    X = np.exp(rng.normal(size=(700, 5)))
    codes = (rng.random(700) < 0.08).astype(int)
    X[codes == 1] *= np.array([5.0, 1.0, 0.2, 1.0, 3.0])
    # Some rare rows among those to be scored.
    order = np.append(np.delete(np.arange(700), rare := np.flatnonzero(codes)[:5]), rare)
    settings = {"n_rare": 12, "n_common": 14, "n_hard": 6}
    table, target = np.round(X[order], 3), codes[order].tolist()
    return split(table, target, method="rare", refine="never", explained=(0, 8), **settings)


def rare_events_with_circuit() -> Case:
    case = rare_events()
    circuit = {"n_steps": 15, "n_seeds": 1, "n_reps": 1, "cv": 2}
    return replace(case, settings=case.settings | {"refine": 0.2, "circuit": circuit})


def nearest_medoid() -> Case:
    X, codes = numbers(5, 160, 6, 3)
    settings = {"n_anchors": 4, "group_size": 4, "n_medoids": 2, "cv": 3}
    return split(X, codes.tolist(), method="nearest", refine="never", **settings)


def nearest_medoid_alone() -> Case:
    X, codes = numbers(6, 140, 5, 2)
    settings = {"n_anchors": 4, "group_size": 4, "cv": 3}
    return split(X, codes.tolist(), method="nearest", alone=True, **settings)


def paper() -> Case:
    X, codes = numbers(7, 160, 6, 2)
    return split(np.round(X + 3.0, 3), codes.tolist(), paper=True, group_size=4, operating_point="macro_f1")


def paper_with_circuit() -> Case:
    X, codes = numbers(18, 150, 5, 2)
    circuit = {"n_steps": 15, "n_seeds": 1, "cv": 2}
    settings = {"paper": True, "group_size": 4, "refine": 0.4, "circuit": circuit, "operating_point": 0.3}
    return split(np.round(X + 3.0, 3), codes.tolist(), **settings)


def circuit() -> Case:
    X, codes = numbers(8, 160, 4, 2)
    settings = {"n_steps": 15, "n_seeds": 1, "n_reps": 1, "cv": 2}
    return split(
        X, codes.tolist(), method="evidence", n_medoids=8, n_neighbors=0, refine=0.4, circuit=settings, explained=(0, 4)
    )


def circuit_three_classes() -> Case:
    X, codes = numbers(19, 150, 4, 3)
    circuit = {"n_steps": 15, "n_seeds": 1, "n_reps": 1, "cv": 2}
    settings = {"method": "evidence", "n_medoids": 9, "n_neighbors": 0, "refine": 0.4, "circuit": circuit}
    return split(X, codes.tolist(), **settings)


def circuit_alone() -> Case:
    X, codes = numbers(9, 120, 3, 2)
    settings = {"n_steps": 15, "n_seeds": 2, "n_reps": 1, "cv": 2}
    return split(X, codes.tolist(), explained=(), circuit=settings, alone=True, operating_point="macro_f1")


def raw_table() -> Case:
    rng = np.random.default_rng(10)
    n = 220
    town, color = rng.integers(14, size=n), rng.integers(3, size=n)
    member, day = rng.random(n) < 0.4, rng.integers(700, size=n)
    amount = np.round(np.exp(rng.normal(3.0, 0.8, size=n)), 2)
    drive = 0.9 * (town % 3) + 1.1 * (color == 2) - 0.8 * member + 0.003 * day + 0.02 * amount
    columns: dict[str, list[Any]] = {
        "customer": [f"C{1000 + 7 * number}" for number in range(n)],
        "town": [f"town {chr(97 + code)}" for code in town],
        "color": [("red", "green", "blue")[code] for code in color],
        "member": [bool(value) for value in member],
        "opened": [(date(2022, 1, 1) + timedelta(days=int(value))).isoformat() for value in day],
        "amount": amount.tolist(),
    }
    target = np.where(drive + rng.logistic(scale=0.5, size=n) > 2.6, "bad", "good").tolist()
    return split(columns, target, raw=True, method="evidence", n_medoids=8, n_neighbors=0, positive="bad")


def missing_cells() -> Case:
    rng = np.random.default_rng(11)
    X, codes = numbers(11, 170, 4, 2)
    names = ("age", "income", "score", "visits")
    columns: dict[str, list[Any]] = {name: X[:, place].tolist() for place, name in enumerate(names)}
    columns["kind"] = [("x", "y", "z")[value] for value in (rng.integers(3, size=170) + codes) % 3]
    for name, share in (("income", 0.2), ("score", 0.1), ("kind", 0.15)):
        columns[name] = [
            None if out else cell for out, cell in zip(rng.random(170) < share, columns[name], strict=True)
        ]
    target = ["yes" if code else "no" for code in codes]
    return split(columns, target, raw=True, method="evidence", n_medoids=8, n_neighbors=0, positive="yes")


def neighbors() -> Case:
    rng = np.random.default_rng(12)
    X = np.round(rng.uniform(0.0, 4.0, size=(420, 2)), 3)
    board = (np.floor(X[:, 0]) + np.floor(X[:, 1])).astype(int) % 2
    codes = np.where(rng.random(420) < 0.3, (X[:, 0] > 2.0).astype(int), board)
    return split(X, codes.tolist(), method="evidence", n_medoids=6, n_neighbors=300)


def operating_point_alert_rate() -> Case:
    X, codes = numbers(113, 200, 4, 2, share=0.25)
    point = {"alert_rate": 0.1}
    return split(X, codes.tolist(), method="evidence", n_medoids=8, n_neighbors=0, operating_point=point)


def operating_point_metric() -> Case:
    X, codes = numbers(14, 200, 4, 2, share=0.25)
    return split(X, codes.tolist(), method="evidence", n_medoids=8, n_neighbors=0, operating_point="f1")


def operating_point_cost() -> Case:
    X, codes = numbers(15, 200, 4, 2, share=0.25)
    point = {"cost": 5.0}
    return split(X, codes.tolist(), method="evidence", n_medoids=8, n_neighbors=0, operating_point=point)


def prior_shift() -> Case:
    X, codes = numbers(16, 200, 4, 2, share=0.3)
    point = {"min_recall": 0.8}
    settings = {"method": "evidence", "n_medoids": 8, "n_neighbors": 0, "operating_point": point}
    return split(X, codes.tolist(), prevalence=0.1, **settings)


def prior_shift_three_classes() -> Case:
    X, codes = numbers(20, 160, 4, 3)
    settings = {"method": "evidence", "n_medoids": 9, "n_neighbors": 0}
    return split(X, codes.tolist(), prevalence=[0.6, 0.3, 0.1], **settings)


def groups_of_rows() -> Case:
    rng = np.random.default_rng(17)
    persons = rng.integers(30, size=180)
    X, codes = numbers(17, 30, 4, 2)
    X = np.round(X[persons] + 0.2 * rng.normal(size=(180, 4)), 3)
    return split(X, codes[persons].tolist(), groups=persons.tolist(), method="evidence", n_medoids=8, n_neighbors=0)


def embedded_table() -> Case:
    return Case({}, {}, [], {"embedded": "heart", "n_rows": 240, "method": "auto", "n_medoids": 8, "n_neighbors": 0})


CASES: dict[str, Callable[[], Case]] = {
    make.__name__: make
    for make in (
        evidence_two_classes,
        evidence_three_classes,
        text_labels,
        rare_events,
        rare_events_with_circuit,
        nearest_medoid,
        nearest_medoid_alone,
        paper,
        paper_with_circuit,
        circuit,
        circuit_three_classes,
        circuit_alone,
        raw_table,
        missing_cells,
        neighbors,
        operating_point_alert_rate,
        operating_point_metric,
        operating_point_cost,
        prior_shift,
        prior_shift_three_classes,
        groups_of_rows,
        embedded_table,
    )
}
"""How each fit is made, by the name of its file."""


def numbers(
    seed: int, n: int, n_columns: int, n_classes: int, share: float = 0.5
) -> tuple[Array, npt.NDArray[np.intp]]:
    """Correlated columns with three decimals, and classes that depend on them with noise; the last has the share."""
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n, n_columns)) @ (np.eye(n_columns) + 0.4 * rng.normal(size=(n_columns, n_columns)))
    X = np.round(mixed, 3)
    drive = X @ rng.normal(size=n_columns) + 0.7 * X[:, 0] * X[:, 1] + 0.8 * rng.normal(size=n)
    first = (1.0 - share) if n_classes == 2 else 1.0 / n_classes
    cuts = np.quantile(drive, first + (1.0 - first) * np.arange(n_classes - 1) / max(n_classes - 1, 1))
    return X, np.searchsorted(cuts, drive)


def split(
    table: Table,
    target: list[Any],
    *,
    groups: list[int] | None = None,
    prevalence: float | list[float] | None = None,
    explained: tuple[int, ...] = (0, 5),
    **settings: Any,
) -> Case:
    """The last rows are those to be scored."""
    head, tail = slice(None, -N_NEW), slice(-N_NEW, None)
    if isinstance(table, dict):
        train: Table = {name: cells[head] for name, cells in table.items()}
        new: Table = {name: cells[tail] for name, cells in table.items()}
    else:
        train, new = table[head], table[tail]
    return Case(train, new, target[head], settings, None if groups is None else groups[head], prevalence, explained)
