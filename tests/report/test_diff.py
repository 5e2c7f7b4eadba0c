"""What changed between two models: nothing for the same, mirrored for swapped ones, and the decisions of both."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import qmedoid
from qmedoid import EvidenceClassifier, MedoidClassifier, NearestMedoidClassifier, VariationalClassifier
from qmedoid.exceptions import DataError, ParameterError
from qmedoid.report.diff import DecisionTally, aligned
from qmedoid.saved import SavedModel
from qmedoid.tables.difference import Issues


def drawn(n, seed=0, classes=("no", "yes")):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, len(classes), n)
    return pa.table({
        "x1": rng.normal(size=n) + 1.5 * code,
        "x2": rng.normal(size=n) - code,
        "color": np.array(["red", "green", "blue"])[np.where(rng.random(n) < 0.6, code, rng.integers(0, 3, n))],
        "y": pa.array([classes[c] for c in code]),
    })  # fmt: skip


def fitted(table, path, **changes):
    settings = {
        "method": EvidenceClassifier(n_medoids=6, n_neighbors=0),
        "refine": "never",
        "random_state": 0,
    } | changes
    model = MedoidClassifier(**settings).fit(table.drop_columns(["y"]), table["y"].to_pylist())
    return qmedoid.load(model.save(path))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diff")
    table = drawn(150)
    return {
        "old": fitted(table, folder / "old"),
        "new": fitted(drawn(150, 1), folder / "new", operating_point={"alert_rate": 0.2}),
        "fewer": fitted(table.drop_columns(["x2"]), folder / "fewer"),
        "three": fitted(drawn(150, 2, ("no", "yes", "maybe")), folder / "three"),
        "three again": fitted(drawn(150, 3, ("no", "yes", "maybe")), folder / "three again"),
    }


ROWS = drawn(300, 7).drop_columns(["y"])
PAIRS = [
    ("old", "new"),
    ("old", "fewer"),
    ("fewer", "new"),
    ("three", "three again"),
    ("old", "three"),
    ("three", "old"),
]


def test_same_model_differs_in_nothing(models):
    found = qmedoid.diff(models["old"], models["old"], ROWS)
    assert not found.differs
    assert not found.derived
    assert found.values == ()
    assert found.decisions["changed"] == 0
    assert found.decisions["mean_change"] == 0
    assert found.decisions["largest"] == []
    assert found.medoids["kept"] == 6
    assert not found.medoids["added"] + found.medoids["removed"]
    assert not qmedoid.diff(models["old"], models["old"]).differs


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_decisions_are_those_of_the_models(models, old, new):
    found = qmedoid.diff(models[old], models[new], ROWS).decisions
    before, after = (models[name].predict(ROWS) for name in (old, new))
    flows = {(one["old"], one["new"]): one["rows"] for one in found["flows"]}
    assert flows == {
        (a, b): n for (a, b) in set(zip(before, after, strict=True)) if (n := ((before == a) & (after == b)).sum())
    }
    assert found["changed"] == (before != after).sum()
    share = found["changed_share"]
    assert share["low"] < share["value"] == found["changed"] / 300 < share["high"]
    for one in found["largest"]:
        assert (one["old"], one["new"]) == (before[one["row"]], after[one["row"]])
    changes = [one["change"] for one in found["largest"]]
    assert changes == sorted(changes, reverse=True)
    if {old, new} <= {"old", "new", "fewer"}:
        chances = [models[name].predict_proba(ROWS)[:, 1] for name in (old, new)]
        moved = np.abs(chances[1] - chances[0])
        assert found["mean_change"] == pytest.approx(moved.mean())
        np.testing.assert_allclose(changes, np.sort(moved)[::-1][:10])
        for one in found["largest"]:
            of_new = [models[name].predict_proba(ROWS)[one["row"], int(one["new"] == "yes")] for name in (old, new)]
            assert one["probabilities"] == pytest.approx(of_new)


def test_swapped_models_swap_the_difference(models):
    one, other = (qmedoid.diff(models[a], models[b], ROWS).as_dict() for a, b in (("old", "fewer"), ("fewer", "old")))
    for part in ("columns", "classes", "medoids"):
        assert one[part]["added"] == other[part]["removed"]
        assert one[part]["removed"] == other[part]["added"]
    assert one["columns"]["removed"] == ["x2"]
    values = [{(v["name"], str(v["old"]), str(v["new"])) for v in found["values"]} for found in (one, other)]
    assert values[0] == {(name, new, old) for name, old, new in values[1]}
    assert one["decisions"]["changed"] == other["decisions"]["changed"]
    json.dumps(one)


def test_static_parts_say_what_changed(models, tmp_path):
    table = drawn(150)
    named = table.set_column(2, "color", pa.array(["pink" if c == "red" else c for c in table["color"].to_pylist()]))
    changed = fitted(named.append_column("id", pa.array([f"n{k:03}" for k in range(150)])), tmp_path / "changed")
    found = qmedoid.diff(models["old"], changed)
    assert found.columns["changed"] == [{"name": "color", "levels_added": ["pink"], "levels_removed": ["red"]}]
    (left_out,) = found.columns["left_out"]
    assert (left_out["name"], left_out["old"]) == ("id", None)
    assert found.differs
    assert found.medoids["matched_by"] == "cells"
    assert all(medoid["record"]["color"] == "pink" for medoid in found.medoids["added"])
    point = {value["name"]: value for value in qmedoid.diff(models["old"], models["new"]).values}
    assert (point["operating.rule"]["old"], point["operating.rule"]["new"]) == ("likeliest", "alert_rate")
    assert point["operating.alert_rate"]["new"] == [*models["new"].expected_.alert_rate]
    assert point["calibration.slope"]["new"] == models["new"].model.calibration.slope
    assert qmedoid.diff(models["old"], models["three"]).classes == {"added": ["maybe"], "removed": []}
    models["old"].save(tmp_path / "no rows", raw_rows=False)
    without = qmedoid.diff(models["old"], qmedoid.load(tmp_path / "no rows"))
    assert (without.medoids["matched_by"], without.medoids["kept"]) == ("row numbers", 6)
    assert not without.differs


def test_medoids_are_matched_one_by_one(models):
    one = models["old"]
    records, model = one.model.records, one.model
    twice = replace(model, records=(records[0], *records[:-1]))
    codes = model.medoids.classes
    part = replace(model.parts[0], medoid_classes=np.array([codes[0], *codes[:-1]]))
    twice = replace(twice, parts=(part, *model.parts[1:]))
    found = qmedoid.diff(one, SavedModel(twice)).medoids
    assert (found["kept"], len(found["added"]), len(found["removed"])) == (5, 1, 1)
    assert found["added"][0]["record"] == dict(records[0])
    assert found["removed"][0]["record"] == dict(records[-1])


def test_derived_models_name_their_parent(models, tmp_path):
    shifted = qmedoid.load(models["old"].prior_shift(0.1).save(tmp_path / "shifted"))
    found = qmedoid.diff(models["old"], shifted, ROWS)
    assert found.derived
    assert not qmedoid.diff(shifted, models["old"]).derived
    assert {value["name"] for value in found.values} >= {"expected_priors.yes", "operating.prevalence"}


@pytest.mark.parametrize("sizes", [((300,), (300,)), ((1, 299), (150, 150)), ((100,) * 3, (7,) * 42 + (6,))])
def test_batches_do_not_matter(models, sizes):
    whole = DecisionTally(models["old"].model, models["new"].model)
    whole.add([ROWS, ROWS], [Issues(), Issues()])

    def batches(lengths):
        starts = np.cumsum([0, *lengths])
        return iter([ROWS.slice(a, b).combine_chunks().to_batches()[0] for a, b in zip(starts, lengths, strict=False)])

    tally = DecisionTally(models["old"].model, models["new"].model)
    for pair in aligned(*map(batches, sizes)):
        tally.add(pair, [Issues(), Issues()])
    one, other = whole.report(), tally.report()
    assert other.pop("mean_change") == pytest.approx(one.pop("mean_change"))
    assert [found["row"] for found in other.pop("largest")] == [found["row"] for found in one.pop("largest")]
    assert one == other


def test_readings_of_different_lengths_are_refused():
    batch = ROWS.combine_chunks().to_batches()[0]
    with pytest.raises(DataError, match="changed while it was read"):
        list(aligned(iter([batch]), iter([batch.slice(1)])))


def test_models_without_probabilities_are_compared(tmp_path):
    table = drawn(120).select(["x1", "x2"])
    labels = np.array(drawn(120)["y"].to_pylist())
    X = np.column_stack([column.to_numpy() for column in table.columns])
    plain = NearestMedoidClassifier(max_passes=0, subset_sizes=(2, 2), n_models=1).fit(X, labels)
    circuit = VariationalClassifier(n_steps=5, n_reps=1, n_seeds=1, cv=2, random_state=0).fit(X, labels)
    one, other = (qmedoid.load(m.save(tmp_path / name)) for m, name in ((plain, "plain"), (circuit, "circuit")))
    found = qmedoid.diff(one, other, X)
    assert found.decisions["mean_change"] is None
    assert found.decisions["changed"] == (one.predict(X) != other.predict(X)).sum()
    assert all(record["change"] is None for record in found.decisions["largest"])
    assert found.as_dict()["medoids"]["removed"]


def test_arrays_and_other_things_in_place_of_models(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), np.repeat([0, 1], 40)
    model = EvidenceClassifier(n_medoids=4, n_neighbors=0, random_state=0).fit(X + y[:, None], y)
    saved = qmedoid.load(model.save(tmp_path / "m"))
    assert qmedoid.diff(saved, saved.prior_shift(0.2), X).decisions["rows"] == 80
    with pytest.raises(ParameterError, match=r"The 'new' parameter must be a SavedModel.* Got EvidenceClassifier"):
        qmedoid.diff(saved, model)
    with pytest.raises(ParameterError, match="The 'model' parameter must be a SavedModel"):
        qmedoid.recalibrate(tmp_path / "m", X, y)


def test_empty_tables_are_refused(models):
    with pytest.raises(DataError, match="no rows: there are no decisions to compare"):
        qmedoid.diff(models["old"], models["new"], ROWS.slice(0, 0))
