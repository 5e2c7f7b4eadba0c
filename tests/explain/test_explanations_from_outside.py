"""Explanations against a plain recomputation from the saved arrays, and what must swap where columns or medoids do."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest
from sklearn.base import clone

from outside import Outside
from qmedoid import (
    EvidenceClassifier,
    MedoidClassifier,
    NearestMedoidClassifier,
    RareEventClassifier,
    SumClassifier,
    VariationalClassifier,
    load,
)
from qmedoid.saved import SavedModel

SMALL = {"n_medoids": 12, "n_pairs": 3, "n_triples": 2, "n_neighbors": 0}
QUICK = VariationalClassifier(n_steps=15, n_seeds=1, n_reps=1, cv=2)
RARE = RareEventClassifier(n_common=30, n_hard=8)
CASES = {
    "evidence": (2, {"method": EvidenceClassifier(**SMALL), "operating_point": {"alert_rate": 0.3}}),
    "evidence, three classes": (3, {"method": EvidenceClassifier(**SMALL)}),
    "evidence, circuit": (2, {"method": EvidenceClassifier(**SMALL), "refine": 0.4, "variational": QUICK}),
    "neighbors": (2, {"method": EvidenceClassifier(**SMALL | {"n_neighbors": "auto"})}),
    "sum": (2, {"method": SumClassifier(**SMALL), "operating_point": {"alert_rate": 0.3}}),
    "sum, three classes": (3, {"method": SumClassifier(**SMALL)}),
    "sum, neighbors": (2, {"method": SumClassifier(**SMALL | {"n_neighbors": "auto"}, comparisons=False)}),
    "rare": (2, {"method": RARE, "refine": "never", "operating_point": {"alert_rate": 0.3}}),
    "rare, circuit": (2, {"method": RARE, "refine": 0.4, "variational": QUICK}),
    "nearest": (2, {"method": NearestMedoidClassifier(n_medoids=2), "refine": "never"}),
    "convex, three classes": (
        3, {"method": NearestMedoidClassifier(n_medoids=2, score_weight={0: 1.0, 1: 2.0, 2: 0.5}), "refine": "never"},
    ),
    "convex, circuit": (2, {"method": NearestMedoidClassifier(), "refine": 0.4, "variational": QUICK}),
}  # fmt: skip
ROWS = (0, 3, 17, 44, 101)


def mixed_table(n_classes, n=140, squares=False):
    """Numbers, one of them with missing cells, and two categories."""
    rng = np.random.default_rng(5)
    code = rng.permutation(np.arange(n) % n_classes)
    age = rng.normal(50, 9, size=n) + 6 * code
    dose = rng.gamma(2.0, size=n) * (1 + code)
    if n > 140:  # steps, which trees tell
        steps = ((dose > 1.5) & (age > 52)).astype(int) + (dose > 5.0) * (n_classes > 2)
        code = np.where(rng.random(n) < 0.9, steps, code)
    if squares:  # fields of a board, which only the nearest rows tell
        age, dose = rng.uniform(0, 5, size=(2, n))
        code = (np.floor(age) + np.floor(dose)).astype(int) % 2
    site = np.where(rng.random(n) < 0.6, code % 3, rng.integers(0, 3, n))
    table = pa.table(
        {
            "dose": pa.array(dose, mask=None if squares else rng.random(n) < 0.1),
            "site": np.array(["north", "south", "west"])[site],
            "age": age,
            "sex": np.where(rng.random(n) < 0.5, "F", "M"),
            "load": rng.normal(size=n) + 0.5 * code,
        }
    )
    return table.select(["age", "dose"]) if squares else table, code.tolist()


@lru_cache
def fitted(name):
    n_classes, settings = CASES[name]
    squares = name.endswith("neighbors")
    n = 1000 if squares and "sum" in name else 300 if squares else 400 if "sum" in name else 140
    table, codes = mixed_table(n_classes, n, squares)
    return table, codes, MedoidClassifier(**settings, random_state=0).fit(table, codes)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-10)


def assert_same(report, expected):
    for name in ("prediction", "against", "toward", "decided_by"):
        assert report[name] == expected[name]
    assert report["margin"] == close(expected["margin"])
    assert {one["name"]: one["contribution"] for one in report["columns"]} == close(expected["columns"])
    assert {name: value for name, value in report["terms"].items() if name in expected["terms"]} == close(
        expected["terms"]
    )
    assert set(report["terms"]) == set(expected["terms"])
    for medoid, (label, row, distance, angle, cells) in zip(report["medoids"], expected["medoids"], strict=True):
        assert (medoid["class"], medoid["training_row"], medoid["record"]) == (label, row, cells)
        assert (medoid["distance"], medoid["angle"]) == (close(distance), pytest.approx(angle, abs=1e-7))
    groups = {(tuple(one["columns"]), one.get("name")): one for one in report["groups"]}
    assert len(groups) == len(report["groups"]) == len(expected["groups"])
    for columns, name, amount, records in expected["groups"]:
        group = groups[columns, name]
        assert group["contribution"] == close(amount)
        assert_records(group.get("records", []), records)
    assert_records(report.get("neighbors", []), expected["neighbors"])


def assert_records(records, expected):
    found = sorted((one["training_row"], one["class"], one["distance"], one["contribution"]) for one in records)
    assert [one[:2] for one in found] == [one[:2] for one in expected]
    np.testing.assert_allclose(
        [one[2:] for one in found] or [[0, 0]], [one[2:] for one in expected] or [[0, 0]], rtol=1e-8, atol=1e-10
    )


@pytest.mark.parametrize("name", CASES)
def test_every_number_and_name_follows_from_the_saved_arrays(name, tmp_path):
    table, codes, classifier = fitted(name)
    classifier.save(tmp_path / "fitted")
    folder = tmp_path / "fitted"
    if len(classifier.classes_) == 2:
        # A prevalence is a term, and is not the circuit's part.
        folder = load(folder).prior_shift(0.3).save(tmp_path / "shifted")
    model, outside = load(folder), Outside(folder)
    probabilities = model.predict_proba(table)
    by_circuit = 0
    for row in ROWS:
        report = model.explain(table, row)
        assert_same(report, outside.explain(table.slice(row, 1).to_pylist()[0], probabilities[row]))
        for medoid in report["medoids"]:
            assert codes[medoid["training_row"]] == medoid["class"]
            assert medoid["record"] == table.slice(medoid["training_row"], 1).to_pylist()[0]
        by_circuit += report["decided_by"] == "circuit"
    assert (by_circuit > 0) == ("circuit" in name)
    assert ("neighbors" in report) == name.endswith("neighbors")
    compared = any(group.get("name") == "comparisons" for group in report["groups"])
    assert compared == any(one["type"] == "comparisons" for one in outside.manifest["parts"])
    assert compared or name not in ("sum", "sum, three classes")


@pytest.mark.parametrize("name", ["evidence", "evidence, three classes", "rare", "nearest", "sum"])
def test_columns_that_swap_their_names_swap_what_they_contribute(name):
    table, codes, classifier = fitted(name)
    other_name = {"age": "load", "load": "age"}
    renamed = table.rename_columns([other_name.get(column, column) for column in table.column_names])
    swapped = clone(classifier).fit(renamed, codes)
    for row in ROWS:
        before, after = explained(classifier, table, row), explained(swapped, renamed, row)
        assert {other_name.get(one["name"], one["name"]): one["contribution"] for one in before["columns"]} == close(
            {one["name"]: one["contribution"] for one in after["columns"]}
        )
        by_name = {one["name"]: one for one in after["columns"]}
        assert by_name["age"]["cell"] == table["load"][row].as_py()
        assert by_name["age"]["contribution"] != by_name["load"]["contribution"]


@pytest.mark.parametrize(
    "name", ["evidence", "evidence, three classes", "neighbors", "rare", "nearest", "sum", "sum, neighbors"]
)
def test_another_order_of_columns_changes_no_reason(name):
    table, codes, classifier = fitted(name)
    mixed = table.select(table.column_names[::-1])
    other = clone(classifier).fit(mixed, codes)
    for row in ROWS:
        before, after = explained(classifier, table, row), explained(other, mixed, row)
        assert [one["name"] for one in before["columns"]] == [one["name"] for one in after["columns"]]
        for one, same in zip(before["columns"], after["columns"], strict=True):
            assert one["cell"] == same["cell"]
            assert one["contribution"] == pytest.approx(same["contribution"], abs=1e-6)


def test_medoids_that_swap_their_places_swap_in_no_explanation():
    table, _, classifier = fitted("evidence")
    before = classifier.model_
    stage = before.parts[0]
    order = np.random.default_rng(0).permutation(len(stage.rows.numbers))
    moved = replace(
        stage,
        medoids=stage.medoids[order],
        medoid_classes=stage.medoid_classes[order],
        medoid_rows=stage.rows.numbers[order],
        terms=replace(stage.terms, medoid=np.argsort(order)[stage.terms.medoid]),
    )
    records = tuple(before.records[place] for place in order)
    after = replace(before, parts=(moved,), records=records)
    for row in ROWS:
        one, same = SavedModel(before).explain(table, row), SavedModel(after).explain(table, row)
        for key in ("columns", "medoids", "terms"):
            assert flat(one[key]) == pytest.approx(flat(same[key]), abs=1e-12)


def flat(value):
    """All numbers and texts of a report, numbers first."""
    if isinstance(value, dict):
        return [item for key in sorted(value) for item in flat(value[key])]
    return [item for one in value for item in flat(one)] if isinstance(value, list) else [value]


def explained(classifier, table, row):
    return SavedModel(classifier.model_).explain(table, row)
